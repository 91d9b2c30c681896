/* Softmax along rows whose elements lie side by side: each row is read once and written once.

     softmax_short_rows   a group of threads of one block keeps its row in registers; or, of 16 bits at level exact, its terms in shared memory
         each thread: loads its vectors; the row's maximum, by the warp and shared memory
         terms of its elements; their sum over the group
         stores the results
     softmax_long_rows    a block, or several that exchange messages, keep a row in shared memory
         each thread, for every row: waits for the copies of its elements; the maximum of the block
         terms; their sum over the block, then over all blocks of the row, brought to one maximum
         stores the results, and starts copies of the next row in the places that become free

   Rows that fit neither are left to the two passes of axis.cu. */
#include "kernels/axis_softmax_fast.cuh"
#include "kernels/axis_softmax_whole.cuh"

/* short_rows: in registers. */
template <class Element, bool short_rows>
using quick_row_of = std::conditional_t<short_rows && sizeof(typename Element::stored) == 2, quick_row<Element, kept_terms<Element>, kept_results<Element>>,
                                        quick_row<Element, row_terms<Element>, row_results<Element>>>;
template <class Element, bool logarithm, bool exact, bool short_rows>
using row_of = std::conditional_t<exact || sizeof(typename Element::value) == 8, whole_row<Element, logarithm, exact || logarithm, short_rows>,
                                  std::conditional_t<logarithm, quick_row<Element, log_terms<Element>, log_results<Element>>,
                                                     quick_row_of<Element, short_rows>>>;

/* A group's row in registers: thread `member` has vectors member, member + members, ... */
template <class Element> struct row_kept {
    typedef typename Element::stored stored;
    const stored *x;
    stored *y;
    uint32_t length;
    bool aligned; /* the row is whole vectors, on their boundaries */
};

/* Loads a thread's vectors; what is missing is -inf. */
template <class Element, int vectors>
static __device__ __forceinline__ void row_load(const row_kept<Element> &row, uint32_t member, uint32_t members, uint4 kept[vectors])
{
    typedef typename Element::stored stored;
    constexpr int count = Element::per_vector;
    if (row.aligned) {
#pragma unroll
        for (int i = 0; i < vectors; i++) {
            const uint32_t at = (member + i * members) * count;
            kept[i] = at < row.length ? load_read_only(row.x + at) : least_vector<Element>();
        }
        return;
    }
#pragma unroll
    for (int i = 0; i < vectors; i++) {
        const uint32_t at = (member + i * members) * count;
        kept[i] = least_vector<Element>();
        stored elements[count];
#pragma unroll
        for (int j = 0; j < count; j++)
            elements[j] = at + j < row.length ? row.x[at + j] : vector_element<stored>(kept[i], j);
        kept[i] = vector_of(elements);
    }
}

template <class Element, int vectors, class Kept, class Results>
static __device__ __forceinline__ void row_store(const row_kept<Element> &row, uint32_t member, uint32_t members, const Kept &kept,
                                                 const Results &results)
{
    constexpr int count = Element::per_vector;
#pragma unroll
    for (int i = 0; i < vectors; i++) {
        const uint32_t at = (member + i * members) * count;
        if (at >= row.length)
            continue;
        const uint4 y = results.of(kept[i]);
        if (row.aligned) {
            __stcs((uint4 *)(row.y + at), y);
            continue;
        }
#pragma unroll
        for (int j = 0; j < count; j++)
            if (at + j < row.length)
                row.y[at + j] = vector_element<typename Element::stored>(y, j);
    }
}

template <class Row> static __global__ void __launch_bounds__(ROW_SHAPE.threads, Row::short_blocks)
softmax_short_rows(const __grid_constant__ struct softmax_axis_work work, uint32_t members_bits, bool aligned)
{
    typedef typename Row::element Element;
    typedef typename Element::stored stored;
    constexpr int vectors = ROW_SHAPE.vectors, threads = ROW_SHAPE.threads;
    const uint32_t members = 1u << members_bits, member = threadIdx.x & (members - 1);
    const uint64_t r = ((uint64_t)blockIdx.x * threads + threadIdx.x) >> members_bits;
    const bool is_row = r < work.box.outer; /* the threads of no row take part in barriers and shuffles */
    const row_kept<Element> row = {(const stored *)work.x + (is_row ? r * work.box.outer_stride : 0),
                                   (stored *)work.y + (is_row ? r * work.y_outer_stride : 0), is_row ? (uint32_t)work.box.length : 0, aligned};
    uint4 x[vectors];
    row_load<Element, vectors>(row, member, members, x);
    typename Row::real max = -INFINITY;
    Row::template take_max<vectors>(&max, x);
    group_share<threads>(&max, members, take_larger());
    typename Row::terms terms(max);
    const auto end = [&](auto kept) {
        terms.template take<vectors>(x, kept);
        row_store<Element, vectors>(row, member, members, kept, terms.template results_of_group<threads>(members_bits));
    };
    if constexpr (Row::in_shared) {
        extern __shared__ __align__(16) unsigned char bytes[];
        end(shared_terms<threads>{(uint4 *)bytes + threadIdx.x});
    } else {
        typename Row::kept kept[vectors];
        end(&kept[0]);
    }
}

/* The work of all blocks of the second kernel: `blocks` of them have one row, and share it evenly. */
struct long_rows {
    struct softmax_axis_work work;
    uint64_t vectors;
    uint32_t blocks, groups;
    uint32_t places;   /* stages that a block has room for */
    uint32_t stages;   /* of a block's part of a row */
    uint64_t *scratch; /* two messages for each block, in turns, PART_WORDS each */
    uint32_t first_id; /* of the messages of each group's first row */
};
static_assert(sizeof(struct fold_message) >= 2048 / LONG_SHAPE.threads * PART_WORDS * sizeof(uint64_t), "room for those of all blocks");

/* A stage that a thread asks for: stage `number` of row `row`, in a place of shared memory. */
struct stage_next {
    uint64_t row;
    uint32_t number, place;
};

template <class Element> struct block_rows {
    const uint4 *x;
    uint4 *y;
    uint64_t x_stride, y_stride, rows; /* in vectors */
    uint32_t count; /* vectors of this block in a row */
    uint4 *places;
};

/* Starts the copies of the next stage, if there is one, and moves on. Copies are counted by stages, so there is a group for each. */
template <class Element>
static __device__ __forceinline__ void stage_copy(const block_rows<Element> &block, const struct long_rows &rows, struct stage_next *next)
{
    constexpr int threads = LONG_SHAPE.threads, stage = LONG_SHAPE.stage;
    uint4 *const place = block.places + next->place * (threads * stage);
    const uint4 *const from = block.x + next->row * block.x_stride;
    if (next->row < block.rows)
#pragma unroll
        for (int i = 0; i < stage; i++) {
            const uint32_t at = (next->number * stage + i) * threads + threadIdx.x;
            if (at < block.count)
                copy_async(place + i * threads, from + at);
        }
    copy_commit();
    next->place = next->place + 1 < rows.places ? next->place + 1 : 0;
    next->number++;
    if (next->number == rows.stages) {
        next->number = 0;
        next->row += rows.groups;
    }
}

/* A thread's vectors of stage `number`, which lies in that place. */
template <class Element>
static __device__ __forceinline__ void stage_read(const block_rows<Element> &block, uint32_t number, uint32_t place,
                                                  uint4 vectors[LONG_SHAPE.stage])
{
    constexpr int threads = LONG_SHAPE.threads, stage = LONG_SHAPE.stage;
#pragma unroll
    for (int i = 0; i < stage; i++) {
        const uint32_t at = (number * stage + i) * threads + threadIdx.x;
        vectors[i] = at < block.count ? block.places[place * (threads * stage) + i * threads] : least_vector<Element>();
    }
}

/* turn: of the group's rows. */
static __device__ __forceinline__ struct row_parts parts_of(const struct long_rows &rows, uint32_t turn)
{
    const uint32_t first = blockIdx.x / rows.blocks * rows.blocks;
    return {rows.scratch + (uint64_t)(turn % 2 * gridDim.x + first) * PART_WORDS, rows.first_id + turn, blockIdx.x - first, rows.blocks};
}

/* Copies are waited for in the order in which they began: before stage s of a row is read, all but those of the places behind it. */
template <class Row> static __global__ void __launch_bounds__(LONG_SHAPE.threads, long_shape_of(Row::heavy).blocks)
softmax_long_rows(const __grid_constant__ struct long_rows rows)
{
    typedef typename Row::element Element;
    constexpr int threads = LONG_SHAPE.threads, stage = LONG_SHAPE.stage;
    extern __shared__ __align__(16) unsigned char bytes[];
    const uint32_t group = blockIdx.x / rows.blocks, rank = blockIdx.x % rows.blocks;
    const uint64_t each = rows.vectors / rows.blocks, longer = rows.vectors % rows.blocks;
    const uint64_t first = rank * each + (rank < longer ? rank : longer);
    const block_rows<Element> block = {(const uint4 *)rows.work.x + first, (uint4 *)rows.work.y + first,
                                       rows.work.box.outer_stride / Element::per_vector, rows.work.y_outer_stride / Element::per_vector,
                                       rows.work.box.outer, (uint32_t)(each + (rank < longer ? 1 : 0)), (uint4 *)bytes + threadIdx.x};
    struct stage_next next = {group, 0, 0};
    uint32_t place = 0; /* of the row's first stage */
#pragma unroll 1
    for (uint32_t i = 0; i < rows.places; i++)
        stage_copy(block, rows, &next);
    uint32_t turn = 0;
#pragma unroll 1
    for (uint64_t r = group; r < block.rows; r += rows.groups, turn++) {
        typename Row::real max = -INFINITY;
        uint32_t at = place;
#pragma unroll 1
        for (uint32_t s = 0; s < rows.stages; s++) {
            uint4 vectors[stage];
            copy_wait((int)(rows.places - 1 - s));
            stage_read(block, s, at, vectors);
            Row::template take_max<stage>(&max, vectors);
            at = at + 1 < rows.places ? at + 1 : 0;
        }
        group_share<threads>(&max, threads, take_larger());
        typename Row::terms terms(max);
        at = place;
#pragma unroll 1
        for (uint32_t s = 0; s < rows.stages; s++) {
            uint4 vectors[stage];
            stage_read(block, s, at, vectors);
            terms.template take<stage>(vectors, vectors);
            if constexpr (Row::replaces)
#pragma unroll
                for (int i = 0; i < stage; i++)
                    block.places[at * (threads * stage) + i * threads] = vectors[i];
            at = at + 1 < rows.places ? at + 1 : 0;
        }
        const typename Row::results results = terms.template results_of_blocks<threads>(parts_of(rows, turn));
        uint4 *const to = block.y + r * block.y_stride;
#pragma unroll 1
        for (uint32_t s = 0; s < rows.stages; s++) {
            uint4 vectors[stage];
            stage_read(block, s, place, vectors);
            stage_copy(block, rows, &next);
#pragma unroll
            for (int i = 0; i < stage; i++) {
                const uint32_t v = (s * stage + i) * threads + threadIdx.x;
                if (v < block.count)
                    __stcs(to + v, results.of(vectors[i]));
            }
            place = place + 1 < rows.places ? place + 1 : 0;
        }
    }
}

template <class Row> static cudaError_t short_rows_start(const struct softmax_axis_work *work, uint64_t vectors, bool aligned, cudaStream_t stream)
{
    constexpr uint32_t threads = ROW_SHAPE.threads;
    uint32_t members_bits = 0;
    while ((uint64_t)ROW_SHAPE.vectors << members_bits < vectors)
        members_bits++;
    const uint64_t rows = threads >> members_bits, blocks = (work->box.outer + rows - 1) / rows;
    cudaLaunchConfig_t config = launch_config(blocks, threads, stream);
    config.dynamicSmemBytes = Row::in_shared ? threads * ROW_SHAPE.vectors * sizeof(struct eight_terms) : 0;
    return blocks > INT32_MAX ? cudaErrorInvalidValue : cudaLaunchKernelEx(&config, softmax_short_rows<Row>, *work, members_bits, aligned);
}

constexpr size_t LONG_STAGE_BYTES = (size_t)LONG_SHAPE.threads * LONG_SHAPE.stage * sizeof(uint4);

/* How long rows are cut among blocks that run at the same time: as many rows at a time as possible, then as many blocks a row as have
   at least a stage each. blocks: 0 if a row does not fit, or if blocks would wait for each other and may not. */
static struct long_rows long_rows_cut(const struct row_softmax_call *call, uint64_t vectors, uint64_t blocks, uint32_t places)
{
    constexpr uint64_t stage = LONG_SHAPE.threads * LONG_SHAPE.stage;
    struct long_rows rows = {};
    const bool together = call->capacity.shared_bytes > 0;
    const uint64_t least = (vectors + places * stage - 1) / (places * stage);
    if (blocks == 0 || least > (together ? blocks : 1))
        return rows;
    const uint64_t groups = u64_min(call->work.box.outer, blocks / least);
    rows.work = call->work;
    rows.vectors = vectors;
    rows.groups = (uint32_t)groups;
    rows.blocks = together ? (uint32_t)u64_min(blocks / groups, (vectors + stage - 1) / stage) : 1;
    rows.places = places;
    rows.stages = (uint32_t)(((vectors + rows.blocks - 1) / rows.blocks + stage - 1) / stage);
    rows.scratch = (uint64_t *)call->space->scratch;
    return rows;
}

template <class Row>
static cudaError_t long_rows_start(const struct row_softmax_call *call, uint64_t vectors, cudaStream_t stream, bool *launched)
{
    const auto kernel = softmax_long_rows<Row>;
    const uint32_t places = (uint32_t)u64_min(call->capacity.block_bytes / LONG_STAGE_BYTES, (uint64_t)long_shape_of(Row::heavy).places);
    const size_t bytes = places * LONG_STAGE_BYTES;
    int resident = 0;
    if (places == 0)
        return cudaSuccess;
    cudaError_t code = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (code == cudaSuccess)
        code = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    if (code == cudaSuccess)
        code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, (const void *)kernel, LONG_SHAPE.threads, bytes);
    const uint64_t blocks = (uint64_t)resident * (uint64_t)call->space->multiprocessors;
    struct long_rows rows = long_rows_cut(call, vectors, blocks, places);
    if (code != cudaSuccess || rows.blocks == 0)
        return code;
    const uint64_t turns = (call->work.box.outer + rows.groups - 1) / rows.groups;
    if (rows.blocks > 1)
        code = turns > INT32_MAX ? cudaErrorInvalidValue : (cudaError_t)fold_launch_ids_next(call->space, (uint32_t)turns, stream);
    rows.first_id = call->space->launch_id - (uint32_t)turns + 1;
    cudaLaunchAttribute together = {};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t config = launch_config((uint64_t)rows.groups * rows.blocks, LONG_SHAPE.threads, stream);
    config.dynamicSmemBytes = bytes;
    config.attrs = &together;
    config.numAttrs = rows.blocks > 1; /* blocks wait for each other */
    *launched = true;
    return code == cudaSuccess ? cudaLaunchKernelEx(&config, kernel, rows) : code;
}

template <class Element, bool logarithm, bool exact>
static cudaError_t rows_start(const struct row_softmax_call *call, cudaStream_t stream, bool *launched)
{
    const struct softmax_axis_work *const work = &call->work;
    const struct box *const box = &work->box;
    const uint64_t per_vector = Element::per_vector, vectors = (box->length + per_vector - 1) / per_vector;
    const bool aligned = ((uintptr_t)work->x | (uintptr_t)work->y) % 16 == 0
                         && (box->outer == 1 || (box->outer_stride % per_vector == 0 && work->y_outer_stride % per_vector == 0));
    if (vectors <= (uint64_t)ROW_SHAPE.threads * ROW_SHAPE.vectors) {
        *launched = true;
        return short_rows_start<row_of<Element, logarithm, exact, true>>(work, vectors, aligned && box->length % per_vector == 0, stream);
    }
    if (!aligned || box->length % per_vector != 0)
        return cudaSuccess;
    return long_rows_start<row_of<Element, logarithm, exact, false>>(call, vectors, stream, launched);
}

template <bool logarithm, bool exact> static cudaError_t type_start(const struct row_softmax_call *call, cudaStream_t stream, bool *launched)
{
    return with_element(call->work.x_type, [=](auto element) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (Element::is_floating)
            return rows_start<Element, logarithm, exact>(call, stream, launched);
        return cudaSuccess;
    });
}

int row_softmax_launch(const struct row_softmax_call *call, void *stream, bool *launched)
{
    const struct softmax_axis_work *const work = &call->work;
    const struct box *const box = &work->box;
    *launched = false;
    if (box->inner != 1 || box->axis_stride != 1 || work->y_axis_stride != 1 || work->x_type != work->y_type
        || box->outer * box->length == 0)
        return cudaSuccess;
    const bool exact = work->level == ALLFOLD_LEVEL_EXACT;
    if (work->logarithm)
        return exact ? type_start<true, true>(call, (cudaStream_t)stream, launched) : type_start<true, false>(call, (cudaStream_t)stream, launched);
    return exact ? type_start<false, true>(call, (cudaStream_t)stream, launched) : type_start<false, false>(call, (cudaStream_t)stream, launched);
}
