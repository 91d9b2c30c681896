/* Softmax along rows whose elements lie side by side: each row is read once and written once.

     softmax_short_rows   a group of threads of one block keeps its row in registers; or, of 16 bits at level exact, its terms in shared memory
         each thread: loads its vectors; the row's maximum, by the warp and shared memory
         terms of its elements; their sum over the group
         stores the results
     softmax_long_rows    at level fast: a block, or several that exchange messages, keep a row in registers
         each thread, for every row: reads its vectors from shared memory, and starts copies of the next rows to the places that become free
         the maximum of the block; terms; their sum over the block, then over all blocks of the row, brought to one maximum
         stores the results
     softmax_heavy_rows   else a block, or several that exchange messages, keep a row in shared memory
         each thread, for every row: waits for the copies of its elements; the maximum of the block
         terms; their sum over the block, then over all blocks of the row, brought to one maximum
         stores the results, and starts copies of the next row to the places that become free

   Rows that fit none are left to the two passes of axis.cu. */
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

/* Blocks that work on rows, in vectors: `blocks` of them have one row, and share it evenly. */
struct long_rows {
    const uint4 *x;
    uint4 *y;
    uint64_t x_stride, y_stride, rows;
    uint64_t each, longer; /* vectors of a block in a row; blocks that have one more */
    uint32_t blocks, groups;
    uint32_t places;   /* stages that a block has room for */
    uint32_t stages;   /* of a block's part of a row */
    uint64_t *scratch; /* two messages for each block, in turns, PART_WORDS each; or the number of rows that are claimed */
    uint32_t first_id; /* of the messages of each group's first row */
    bool claims;       /* a block's rows are those that it claims, so that quick multiprocessors take more; else every groups-th is a group's */
};

/* A thread of a block that takes its part of one row after the other, stage by stage. A turn is a row of a group. */
constexpr uint32_t TURNS_KNOWN = 16;
template <class Row, bool half> struct row_thread {
    typedef typename Row::element Element;
    static constexpr int threads = long_shape_of(Row::heavy, half).threads, blocks = long_shape_of(Row::heavy, half).blocks;
    static constexpr int stage = long_shape_of(Row::heavy, half).stage, stage_vectors = threads * stage;
    static constexpr int vectors = long_shape_of(Row::heavy, half).vectors, places_most = long_shape_of(Row::heavy, half).places;
    const struct long_rows &rows;
    uint4 *places;   /* shared memory, from this thread's first vector on */
    uint32_t *known; /* shared memory: rows of the next turns, where they are claimed */
    uint32_t first;  /* vector of a row */
    int32_t count;   /* of vectors of the part from its first one on */
    /* The stage that is copied next: of which turn's row, into which place. */
    uint32_t turn, number, place;
    const uint4 *from;
    int32_t left;

    __device__ __forceinline__ row_thread(const struct long_rows &rows, unsigned char *bytes, uint32_t *known)
        : rows(rows), places((uint4 *)bytes + threadIdx.x), known(known), turn(0), place(0)
    {
        const uint32_t rank = blockIdx.x % rows.blocks;
        first = (uint32_t)(rank * rows.each + (rank < rows.longer ? rank : rows.longer)) + threadIdx.x;
        count = (int32_t)(rows.each + (rank < rows.longer ? 1 : 0)) - (int32_t)threadIdx.x;
        if (rows.claims) {
            if (threadIdx.x < ahead())
                known[threadIdx.x] = blockIdx.x / rows.blocks + threadIdx.x * rows.groups;
            if (threadIdx.x == 0)
                atomicMax((unsigned long long *)rows.scratch, (unsigned long long)rows.first_id << 32); /* no word there has this id */
            __syncthreads();
        }
        begin();
#pragma unroll 1
        for (uint32_t i = 0; i < rows.places; i++)
            copy();
    }
    static __device__ __forceinline__ bool is_left(int i, int32_t left) { return i * threads < left; }
    __device__ __forceinline__ uint32_t after(uint32_t at) const { return at + 1 < rows.places ? at + 1 : 0; }
    __device__ __forceinline__ uint32_t ahead() const { return 1 + rows.places / rows.stages; }
    __device__ __forceinline__ uint64_t row(uint32_t of) const
    {
        return rows.claims ? known[of % TURNS_KNOWN] : blockIdx.x / rows.blocks + (uint64_t)of * rows.groups;
    }
    /* The first thread of a block claims a row early, and tells it before the barrier behind which it is copied. */
    __device__ __forceinline__ uint32_t claim() const
    {
        return rows.claims && threadIdx.x == 0 ? ahead() * rows.groups + (uint32_t)atomicAdd((unsigned long long *)rows.scratch, 1ull) : 0;
    }
    __device__ __forceinline__ void claimed(uint32_t of, uint32_t row) const
    {
        if (rows.claims && threadIdx.x == 0)
            known[(of + ahead()) % TURNS_KNOWN] = row;
    }
    __device__ __forceinline__ void begin()
    {
        const uint64_t r = row(turn);
        number = 0;
        from = rows.x + r * rows.x_stride + first;
        left = r < rows.rows ? count : 0;
    }
    /* Starts copies, and moves on. Copies are counted by stages, so there is a group for each. */
    __device__ __forceinline__ void copy()
    {
        uint4 *const to = places + place * stage_vectors;
#pragma unroll
        for (int i = 0; i < stage; i++)
            if (is_left(i, left))
                copy_async(to + i * threads, from + i * threads);
        copy_commit();
        place = after(place);
        from += stage_vectors;
        left -= stage_vectors;
        if (++number == rows.stages) {
            turn++;
            begin();
        }
    }
    /* A stage, which lies in that place. */
    __device__ __forceinline__ void read(int32_t left, uint32_t place, uint4 *x) const
    {
#pragma unroll
        for (int i = 0; i < stage; i++)
            x[i] = is_left(i, left) ? places[place * stage_vectors + i * threads] : least_vector<Element>();
    }
    /* A block sends no message before it has those of the turn before: then all have read what it sent two turns before. */
    __device__ __forceinline__ struct row_parts parts(uint32_t of) const
    {
        static_assert(sizeof(struct fold_message) >= PART_WORDS * 2048 / threads * sizeof(uint64_t), "room for those of all blocks");
        const uint32_t begin = blockIdx.x / rows.blocks * rows.blocks;
        return {rows.scratch + (uint64_t)(of % 2 * gridDim.x + begin) * PART_WORDS, rows.first_id + of, blockIdx.x - begin, rows.blocks};
    }
};

/* A row is in registers while the places are filled with the next ones. */
template <class Row, bool messages, bool half>
static __global__ void __launch_bounds__(row_thread<Row, half>::threads, row_thread<Row, half>::blocks)
softmax_long_rows(const __grid_constant__ struct long_rows rows)
{
    typedef row_thread<Row, half> part;
    constexpr int threads = part::threads, stage = part::stage, vectors = part::vectors;
    extern __shared__ __align__(16) unsigned char bytes[];
    part own(rows, bytes, NULL);
    uint32_t place = 0;
#pragma unroll 1
    for (uint32_t turn = 0;; turn++) {
        const uint64_t r = own.row(turn);
        if (r >= rows.rows)
            break;
        uint4 x[vectors];
#pragma unroll
        for (int s = 0; s < vectors / stage; s++) {
            if (s < (int)rows.stages)
                copy_wait((int)rows.places - 1);
            own.read(own.count - s * part::stage_vectors, place, x + s * stage); /* nothing is left of stages beyond the last one */
            if (s < (int)rows.stages) {
                own.copy();
                place = own.after(place);
            }
        }
        float max = -INFINITY;
        Row::template take_max<vectors>(&max, x);
        block_share<threads>(&max, take_larger());
        typename Row::terms terms(max);
        terms.template take<vectors>(x, x);
        const struct row_sum sum = terms.sum_by([](auto *value, const auto &take) { block_share<threads>(value, take); });
        const typename Row::results results = Row::template results_of_parts<threads, messages>(sum, own.parts(turn));
        uint4 *const to = rows.y + r * rows.y_stride + own.first;
#pragma unroll
        for (int i = 0; i < vectors; i++)
            if (part::is_left(i, own.count))
                __stcs(to + i * threads, results.of(x[i]));
    }
}

/* A row stays in the places, from which it is read three times. */
template <class Row> static __global__ void __launch_bounds__(row_thread<Row, false>::threads, row_thread<Row, false>::blocks)
softmax_heavy_rows(const __grid_constant__ struct long_rows rows)
{
    typedef row_thread<Row, false> part;
    constexpr int threads = part::threads, stage = part::stage;
    extern __shared__ __align__(16) unsigned char bytes[];
    __shared__ uint32_t known[TURNS_KNOWN];
    part own(rows, bytes, known);
    uint32_t place = 0; /* of the row's first stage */
#pragma unroll 1
    for (uint32_t turn = 0;; turn++) {
        const uint64_t r = own.row(turn);
        if (r >= rows.rows)
            break;
        const uint32_t claim = own.claim();
        typename Row::real max = -INFINITY;
        uint32_t at = place;
        int32_t left = own.count;
#pragma unroll 1
        for (uint32_t s = 0; s < rows.stages; s++) {
            uint4 vectors[stage];
            copy_wait((int)(rows.places - 1 - s)); /* all copies but those of the places behind it */
            own.read(left, at, vectors);
            Row::template take_max<stage>(&max, vectors);
            at = own.after(at);
            left -= part::stage_vectors;
        }
        block_share<threads>(&max, take_larger());
        typename Row::terms terms(max);
        at = place;
        left = own.count;
#pragma unroll 1
        for (uint32_t s = 0; s < rows.stages; s++) {
            uint4 vectors[stage];
            own.read(left, at, vectors);
            terms.template take<stage>(vectors, vectors);
            at = own.after(at);
            left -= part::stage_vectors;
        }
        own.claimed(turn, claim);
        const typename Row::results results = terms.template results_of_blocks<threads>(own.parts(turn));
        uint4 *to = rows.y + r * rows.y_stride + own.first;
        left = own.count;
#pragma unroll 1
        for (uint32_t s = 0; s < rows.stages; s++) {
            uint4 vectors[stage];
            own.read(left, place, vectors);
            own.copy();
#pragma unroll
            for (int i = 0; i < stage; i++)
                if (part::is_left(i, left))
                    __stcs(to + i * threads, results.of(vectors[i]));
            place = own.after(place);
            to += part::stage_vectors;
            left -= part::stage_vectors;
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

/* Rows of a block each; or, with messages, as many rows at a time as possible, and then as many blocks a row as have at least a stage each. */
template <class Row, bool messages, bool half>
static cudaError_t long_rows_start(const struct row_softmax_call *call, uint64_t vectors, cudaStream_t stream, bool *launched)
{
    typedef row_thread<Row, half> part;
    const struct softmax_axis_work *const work = &call->work;
    const uint64_t per_vector = Row::element::per_vector, stage = part::stage_vectors;
    struct long_rows rows = {};
    void (*kernel)(struct long_rows);
    int resident = 0;
    if constexpr (Row::heavy)
        kernel = softmax_heavy_rows<Row>;
    else
        kernel = softmax_long_rows<Row, messages, half>;
    rows.places = (uint32_t)u64_min(call->capacity.block_bytes / (stage * sizeof(uint4)), (uint64_t)part::places_most);
    const size_t bytes = rows.places * stage * sizeof(uint4);
    if (rows.places == 0)
        return cudaSuccess;
    cudaError_t code = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (code == cudaSuccess)
        code = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    if (code == cudaSuccess)
        code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, (const void *)kernel, part::threads, bytes);
    const bool together = messages && call->capacity.shared_bytes > 0;
    const uint64_t blocks = (uint64_t)resident * (uint64_t)call->space->multiprocessors;
    const uint64_t most = part::vectors > 0 ? (uint64_t)(part::threads * part::vectors) : rows.places * stage, least = (vectors + most - 1) / most;
    if (code != cudaSuccess || blocks == 0 || least > (together ? blocks : 1))
        return code;
    const uint64_t groups = u64_min(work->box.outer, blocks / least), each = together ? u64_min(blocks / groups, (vectors + stage - 1) / stage) : 1;
    rows.x = (const uint4 *)work->x;
    rows.y = (uint4 *)work->y;
    rows.x_stride = work->box.outer_stride / per_vector;
    rows.y_stride = work->y_outer_stride / per_vector;
    rows.rows = work->box.outer;
    rows.each = vectors / each;
    rows.longer = vectors % each;
    rows.blocks = (uint32_t)each;
    rows.groups = (uint32_t)groups;
    rows.stages = (uint32_t)(((vectors + each - 1) / each + stage - 1) / stage);
    rows.scratch = (uint64_t *)call->space->scratch;
    rows.claims = Row::heavy && each == 1;
    const uint64_t turns = (work->box.outer + groups - 1) / groups, ids = rows.claims || !messages ? 1 : turns;
    code = turns > INT32_MAX ? cudaErrorInvalidValue : (cudaError_t)fold_launch_ids_next(call->space, (uint32_t)ids, stream);
    rows.first_id = call->space->launch_id - (uint32_t)ids + 1;
    cudaLaunchAttribute together_attribute = {};
    together_attribute.id = cudaLaunchAttributeCooperative;
    together_attribute.val.cooperative = 1;
    cudaLaunchConfig_t config = launch_config(groups * each, part::threads, stream);
    config.dynamicSmemBytes = bytes;
    config.attrs = &together_attribute;
    config.numAttrs = each > 1; /* blocks wait for each other */
    *launched = true;
    return code == cudaSuccess ? cudaLaunchKernelEx(&config, kernel, rows) : code;
}

/* Rows in registers, of one block each. Of few rows each has as many blocks as a device has room for. */
template <class Row> static cudaError_t light_rows_start(const struct row_softmax_call *call, uint64_t vectors, cudaStream_t stream, bool *launched)
{
    typedef row_thread<Row, false> full;
    typedef row_thread<Row, true> half;
    const uint64_t most = (uint64_t)(full::threads * full::vectors), half_most = (uint64_t)(half::threads * half::vectors), rows = call->work.box.outer;
    const uint64_t room = (uint64_t)full::blocks * (uint64_t)call->space->multiprocessors, least = (vectors + most - 1) / most;
    const bool together = call->capacity.shared_bytes > 0;
    if (least > 1 || (together && rows <= room / 2)) {
        cudaError_t code = cudaSuccess;
        if (together && rows * ((vectors + half_most - 1) / half_most) <= room)
            code = long_rows_start<Row, true, true>(call, vectors, stream, launched);
        return code != cudaSuccess || *launched ? code : long_rows_start<Row, true, false>(call, vectors, stream, launched);
    }
    return vectors <= half_most ? long_rows_start<Row, false, true>(call, vectors, stream, launched)
                                : long_rows_start<Row, false, false>(call, vectors, stream, launched);
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
    typedef row_of<Element, logarithm, exact, false> Row;
    if constexpr (Row::heavy)
        return long_rows_start<Row, true, false>(call, vectors, stream, launched);
    else
        return light_rows_start<Row>(call, vectors, stream, launched);
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
