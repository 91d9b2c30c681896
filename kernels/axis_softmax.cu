/* Softmax along rows whose elements lie side by side: which kernel a row has. Rows stay in registers (axis_softmax_registers.cuh) of a group of threads, a block, a cluster,
   or blocks that exchange messages; or in shared memory (axis_softmax_heavy.cuh). Rows that fit none are left to the two passes of axis.cu. Columns: axis_softmax_columns.cu. */
#include "kernels/axis_softmax_heavy.cuh"

template <class Row, int vectors> static constexpr size_t shared_bytes() { return shared_places<Row, vectors>() * sizeof(uint4); }

/* What is said is the same in every call, as other threads may launch the kernel. */
static cudaError_t shared_memory_set(const void *kernel, size_t bytes)
{
    const cudaError_t code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    return code == cudaSuccess ? cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared) : code;
}

/* vectors: of a row; aligned: they are whole, on their boundaries. */
template <class Element, bool logarithm, bool exact>
static cudaError_t short_rows_start(const struct softmax_work *work, uint64_t vectors, bool aligned, cudaStream_t stream)
{
    typedef row_of<Element, logarithm, exact, true> Row;
    constexpr uint32_t threads = ROW_SHAPE.threads;
    constexpr size_t of_thread = shared_bytes<Row, ROW_SHAPE.vectors>(), bytes = sizeof(typename Element::stored);
    constexpr bool has_together = has_rows_together(exact, bytes);
    const struct box *const box = &work->box;
    const uint64_t touched = row_vectors_most(work);
    const bool dense = box->outer == 1 || (box->outer_stride == box->length && work->y_outer_stride == box->length);
    const bool together = has_together && dense && touched > 0 && touched <= SHORT_VECTORS && rows_pass_together(logarithm, exact, bytes, aligned, vectors);
    if (together)
        vectors = touched;
    const uint32_t least = (uint32_t)(vectors + ROW_SHAPE.vectors - 1) / ROW_SHAPE.vectors;
    uint32_t count = least > 32 ? (least + 31) / 32 * 32 : 1;
    while (count < least)
        count *= 2;
    const uint32_t of_block = row_threads(logarithm, exact, bytes, aligned);
    const struct row_members members = row_members_of(count, count > of_block ? count : of_block, (uint32_t)vectors);
    const uint64_t blocks = (box->outer + members.rows - 1) / members.rows;
    cudaLaunchConfig_t config = launch_config(blocks, (int)(members.rows * count), stream);
    config.dynamicSmemBytes = members.rows * count * of_thread;
    const bool some = Row::missing_costs && box->length < (uint64_t)count * ROW_SHAPE.vectors * Element::per_vector;
    void (*kernel)(struct softmax_work, struct row_members, bool) = some ? softmax_short_rows<Row, Row::missing_costs, false> : softmax_short_rows<Row, false, false>;
    cudaError_t code = blocks > INT32_MAX ? cudaErrorInvalidValue : cudaSuccess;
    if constexpr (has_together)
        if (together) {
            constexpr size_t with_vectors = of_thread + ROW_SHAPE.vectors * sizeof(uint4);
            kernel = softmax_short_rows<Row, Row::missing_costs, true>;
            config.dynamicSmemBytes = members.rows * count * with_vectors;
            if (of_thread > 0 && code == cudaSuccess)
                code = shared_memory_set((const void *)kernel, threads * with_vectors);
        }
    return code == cudaSuccess ? cudaLaunchKernelEx(&config, kernel, *work, members, aligned) : code;
}

static struct long_rows long_rows_of(const struct softmax_work *work, uint64_t per_vector)
{
    struct long_rows rows = {};
    rows.x = (const uint4 *)work->x;
    rows.y = (uint4 *)work->y;
    rows.x_stride = work->box.outer_stride / per_vector;
    rows.y_stride = work->y_outer_stride / per_vector;
    rows.rows = work->box.outer;
    return rows;
}

/* What a kernel of long rows needs. */
struct blocks_need {
    int threads;
    uint64_t most, stage; /* vectors of a row that a block has, at most; at least, where messages are sent */
    size_t bytes, most_bytes; /* of shared memory; of any launch of the kernel */
    uint32_t places;
    enum row_holders holders;
};
/* Starts a kernel of long rows. Of clusters each row has as few blocks as possible. Else rows of a block each; or, with messages, as many rows at a time as
   possible, and then as many blocks a row as have at least a stage each. */
static cudaError_t long_rows_start(const struct row_softmax_call *call, void (*kernel)(struct long_rows), const struct blocks_need *need, cudaStream_t stream,
                                   bool *launched)
{
    const struct softmax_work *const work = &call->work;
    const uint64_t per_vector = 16 / allfold_type_bytes(work->x_type), vectors = work->box.length / per_vector;
    const uint64_t least = (vectors + need->most - 1) / need->most;
    const void *const any = (const void *)kernel;
    const bool cluster = need->holders == CLUSTER, together = need->holders == MESSENGERS && call->capacity.shared_bytes > 0;
    cudaLaunchConfig_t config = launch_config(least, need->threads, stream);
    cudaLaunchAttribute attribute = {};
    int resident = 0;
    if (need->most_bytes + (cluster ? sizeof(struct cluster_mail<struct bin_sums>) : 0) > call->capacity.block_bytes)
        return cudaSuccess;
    config.dynamicSmemBytes = need->bytes;
    config.attrs = &attribute;
    config.numAttrs = 1;
    cudaError_t code = shared_memory_set(any, need->most_bytes);
    if (cluster) {
        attribute.id = cudaLaunchAttributeClusterDimension;
        attribute.val.clusterDim.x = (unsigned int)least;
        attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
        if (code == cudaSuccess)
            code = cudaFuncSetAttribute(any, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
        if (code == cudaSuccess && cudaOccupancyMaxActiveClusters(&resident, any, &config) != cudaSuccess) {
            cudaGetLastError(); /* a device that has no clusters of that size */
            resident = 0;
        }
    } else {
        attribute.id = cudaLaunchAttributeCooperative; /* blocks wait for each other */
        attribute.val.cooperative = 1;
        if (code == cudaSuccess)
            code = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, any, need->threads, need->bytes);
    }
    const uint64_t blocks = (uint64_t)resident * (cluster ? least : (uint64_t)call->space->multiprocessors);
    if (code != cudaSuccess || blocks == 0 || least > (cluster || together ? blocks : 1))
        return code;
    const uint64_t groups = u64_min(work->box.outer, blocks / least);
    const uint64_t each = together ? u64_min(blocks / groups, (vectors + need->stage - 1) / need->stage) : least;
    struct long_rows rows = long_rows_of(work, per_vector);
    rows.each = vectors / each;
    rows.longer = vectors % each;
    rows.blocks = (uint32_t)each;
    rows.groups = (uint32_t)groups;
    rows.places = need->places;
    rows.stages = (uint32_t)(((vectors + each - 1) / each + need->stage - 1) / need->stage);
    rows.claims = each == 1;
    rows.scratch = (uint64_t *)call->space->scratch;
    code = work->box.outer > INT32_MAX ? cudaErrorInvalidValue : (cudaError_t)fold_launch_ids_next(call->space, 2, stream);
    rows.first_id = call->space->launch_id - 1;
    config.gridDim = dim3((unsigned int)(groups * each));
    config.numAttrs = cluster || each > 1;
    *launched = true;
    return code == cudaSuccess ? cudaLaunchKernelEx(&config, kernel, rows) : code;
}

/* Of a block of which each thread has so many vectors: whole warps, or all, where these are quicker. */
template <int vectors> static int threads_for(uint64_t all)
{
    const int threads = (int)((all + 32 * vectors - 1) / (32 * vectors) * 32);
    return threads <= LONG_THREADS * 3 / 4 ? threads : LONG_THREADS;
}

template <class Row, int vectors> static cudaError_t block_rows_start(const struct softmax_work *work, cudaStream_t stream, bool *launched)
{
    struct long_rows rows = long_rows_of(work, Row::element::per_vector);
    rows.each = work->box.length / Row::element::per_vector;
    const int threads = vectors == 8 ? threads_for<vectors>(rows.each) : LONG_THREADS;
    cudaLaunchConfig_t config = launch_config(work->box.outer, threads, stream);
    void (*kernel)(struct long_rows) = softmax_block_rows<Row, vectors, LONG_THREADS>;
    if constexpr (vectors == 8)
        if (threads < LONG_THREADS)
            kernel = softmax_block_rows<Row, vectors, 0>;
    if constexpr (Row::in_shared)
        if (threads == HALF_THREADS)
            kernel = softmax_block_rows<Row, vectors, HALF_THREADS>;
    *launched = true;
    if (work->box.outer > INT32_MAX)
        return cudaErrorInvalidValue;
    config.dynamicSmemBytes = config.blockDim.x * shared_bytes<Row, vectors>();
    const cudaError_t code = Row::in_shared ? shared_memory_set((const void *)kernel, LONG_THREADS * shared_bytes<Row, vectors>()) : cudaSuccess;
    return code == cudaSuccess ? cudaLaunchKernelEx(&config, kernel, rows) : code;
}

/* Rows in registers: of one block; of a cluster; else, and of few rows, of as many blocks that send messages as a device has room for. */
template <class Row, int vectors, enum row_holders holders>
static cudaError_t shared_rows_start(const struct row_softmax_call *call, cudaStream_t stream, bool *launched)
{
    constexpr uint64_t most = LONG_THREADS * vectors;
    const uint64_t all = call->work.box.length / Row::element::per_vector, least = (all + most - 1) / most;
    const int threads = Row::in_shared ? threads_for<vectors>((all + least - 1) / least) : LONG_THREADS;
    constexpr size_t of_thread = vectors * sizeof(uint4) + shared_bytes<Row, vectors>();
    const struct blocks_need need = {threads, most, LONG_THREADS * 4, (size_t)threads * of_thread, LONG_THREADS * of_thread, 1, holders};
    void (*kernel)(struct long_rows) = softmax_long_rows<Row, vectors, holders, LONG_THREADS>;
    if constexpr (Row::in_shared)
        if (threads < LONG_THREADS)
            kernel = softmax_long_rows<Row, vectors, holders, 0>;
    if constexpr (holders == ONE_BLOCK)
        if (threads == HALF_THREADS)
            kernel = softmax_long_rows<Row, vectors, holders, HALF_THREADS>;
    return long_rows_start(call, kernel, &need, stream, launched);
}
template <class Row> static cudaError_t light_rows_start(const struct row_softmax_call *call, uint64_t vectors, cudaStream_t stream, bool *launched)
{
    constexpr uint64_t half = LONG_THREADS * 8, full = LONG_THREADS * 16;
    const uint64_t rows = call->work.box.outer, room = (uint64_t)long_blocks(16) * (uint64_t)call->space->multiprocessors, least = (vectors + full - 1) / full;
    const bool together = call->capacity.shared_bytes > 0, few = together && rows * least <= (least == 1 ? room / 2 : room);
    if (least == 1 && !few)
        return vectors <= half ? block_rows_start<Row, 8>(&call->work, stream, launched) : block_rows_start<Row, 16>(&call->work, stream, launched);
    cudaError_t code = cudaSuccess;
    if (!few && !Row::counts && vectors > long_rows_most(false, sizeof(typename Row::element::stored)))
        return cudaSuccess; /* two passes */
    if (call->capacity.is_hopper && !few && vectors <= half * CLUSTER_BLOCKS)
        code = shared_rows_start<Row, 8, CLUSTER>(call, stream, launched);
    if constexpr (!Row::counts) /* for which there are no registers */
        if (call->capacity.is_hopper && !few && vectors > half * CLUSTER_BLOCKS && vectors <= full * CLUSTER_BLOCKS)
            code = shared_rows_start<Row, 16, CLUSTER>(call, stream, launched);
    const bool cramped = Row::counts && sizeof(typename Row::element::stored) == 2; /* with 16 vectors registers would be spilled */
    if (code == cudaSuccess && !*launched && together && (cramped || rows * ((vectors + half - 1) / half) <= room))
        code = shared_rows_start<Row, 8, MESSENGERS>(call, stream, launched);
    return code == cudaSuccess && !*launched ? shared_rows_start<Row, 16, MESSENGERS>(call, stream, launched) : code;
}

/* Rows in shared memory: of one block, or of blocks that send messages. */
template <class Row> static cudaError_t heavy_rows_start(const struct row_softmax_call *call, uint64_t vectors, cudaStream_t stream, bool *launched)
{
    typedef row_thread<Row> thread;
    constexpr uint64_t stage = thread::stage_vectors;
    const uint32_t places = (uint32_t)u64_min(call->capacity.block_bytes / (stage * sizeof(uint4)), HEAVY_SHAPE.places);
    const size_t bytes = places * stage * sizeof(uint4);
    const struct blocks_need need = {thread::threads, places * stage, stage, bytes, bytes, places, MESSENGERS};
    const uint64_t room = (uint64_t)HEAVY_SHAPE.blocks * (uint64_t)call->space->multiprocessors * places * stage;
    if (vectors > long_rows_most(true, sizeof(typename Row::element::stored)) && call->work.box.outer * vectors > room)
        return cudaSuccess; /* two passes */
    return places == 0 ? cudaSuccess : long_rows_start(call, softmax_heavy_rows<Row>, &need, stream, launched);
}

/* Many rows at level exact, of a block each: of 16 bits, or, f32, of one that copies its next row meanwhile. */
template <class Element> static cudaError_t exact_block_rows_start(const struct row_softmax_call *call, cudaStream_t stream, bool *launched)
{
    typedef bins_row<Element, false, true> Row;
    if (call->work.box.outer < 2 * (uint64_t)call->space->multiprocessors || LONG_THREADS * shared_bytes<Row, 8>() > call->capacity.block_bytes)
        return cudaSuccess;
    if constexpr (Row::is_short)
        return block_rows_start<Row, 8>(&call->work, stream, launched);
    else
        return shared_rows_start<Row, 8, ONE_BLOCK>(call, stream, launched);
}

/* Rows at level exact: many in registers, of a block or, longer than 32 KiB, of a cluster; few, and longer ones, in shared memory. */
template <class Element> static cudaError_t exact_rows_start(const struct row_softmax_call *call, uint64_t vectors, cudaStream_t stream, bool *launched)
{
    constexpr uint64_t half = LONG_THREADS * 8;
    typedef bins_row<Element, false, true> Kept;
    typedef bins_row<Element, false, false> Plain;
    const bool many = call->work.box.outer * ((vectors + half - 1) / half) >= 2 * (uint64_t)call->space->multiprocessors;
    cudaError_t code = cudaSuccess;
    if (vectors <= half)
        code = exact_block_rows_start<Element>(call, stream, launched);
    else if (many && call->capacity.is_hopper && vectors <= half * CLUSTER_BLOCKS)
        code = shared_rows_start<Kept, 8, CLUSTER>(call, stream, launched);
    if constexpr (!Kept::is_short)
        if (many && call->capacity.is_hopper && vectors > half * CLUSTER_BLOCKS && vectors <= 2 * half * CLUSTER_BLOCKS)
            code = shared_rows_start<Plain, 16, CLUSTER>(call, stream, launched);
    return code == cudaSuccess && !*launched ? heavy_rows_start<Plain>(call, vectors, stream, launched) : code;
}

template <class Element, bool logarithm, bool exact>
static cudaError_t rows_start(const struct row_softmax_call *call, cudaStream_t stream, bool *launched)
{
    const struct softmax_work *const work = &call->work;
    const struct box *const box = &work->box;
    const uint64_t per_vector = Element::per_vector, vectors = (box->length + per_vector - 1) / per_vector;
    const bool aligned = ((uintptr_t)work->x | (uintptr_t)work->y) % 16 == 0 && box->length % per_vector == 0
                         && (box->outer == 1 || (box->outer_stride % per_vector == 0 && work->y_outer_stride % per_vector == 0));
    if constexpr (exact && !logarithm && sizeof(typename Element::value) == 4)
        if (aligned && vectors >= HALF_LEAST && vectors <= SHORT_VECTORS) {
            const cudaError_t code = exact_block_rows_start<Element>(call, stream, launched);
            if (code != cudaSuccess || *launched)
                return code;
        }
    if (vectors <= SHORT_VECTORS) {
        *launched = true;
        return short_rows_start<Element, logarithm, exact>(work, vectors, aligned, stream);
    }
    if (!aligned)
        return cudaSuccess;
    typedef row_of<Element, logarithm, exact, false> Row;
    if constexpr (exact && !logarithm && sizeof(typename Element::value) == 4)
        return exact_rows_start<Element>(call, vectors, stream, launched);
    else if constexpr (Row::heavy)
        return heavy_rows_start<Row>(call, vectors, stream, launched);
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
    const struct softmax_work *const work = &call->work;
    const struct box *const box = &work->box;
    *launched = false;
    if (work->x_type != work->y_type || box->outer * box->length * box->inner == 0)
        return cudaSuccess;
    if (box->inner != 1 || box->axis_stride != 1 || work->y_axis_stride != 1)
        return column_softmax_launch(call, stream, launched);
    const bool exact = work->level == ALLFOLD_LEVEL_EXACT;
    if (work->logarithm)
        return exact ? type_start<true, true>(call, (cudaStream_t)stream, launched) : type_start<true, false>(call, (cudaStream_t)stream, launched);
    return exact ? type_start<false, true>(call, (cudaStream_t)stream, launched) : type_start<false, false>(call, (cudaStream_t)stream, launched);
}
