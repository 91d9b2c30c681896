/* Softmax along rows whose elements lie side by side: each row is read once and written once.

     softmax_short_rows   a group of threads of one block keeps its row in registers
         each thread: loads its vectors; the row's maximum, by the warp and shared memory
         terms of its elements; their sum over the group
         stores the results
     softmax_block_rows   a block keeps its row in registers
         each thread: loads its vectors; the maximum of the block; terms; their sum over the block
         stores the results
     softmax_long_rows    blocks that are a cluster, or, at level fast, exchange messages, keep a row in registers
         each thread, for every row: reads its vectors from shared memory; the maximum of the block
         one thread starts the copy of the next row's part
         terms; their sum over the block, then over all blocks of the row, brought to one maximum
         stores the results
     softmax_heavy_rows   else a block, or several that exchange messages, keep a row in shared memory
         each thread, for every row: waits for the copies of its elements; the maximum of the block
         terms; their sum over the block, then over all blocks of the row, brought to one maximum
         stores the results, and starts copies of the next row to the places that become free

   At level exact a thread also keeps what the second pass would compute again, in shared memory.

   Rows that fit none are left to the two passes of axis.cu. Columns: axis_softmax_columns.cu. */
#include "kernels/axis_softmax_exact.cuh"

/* A group's row in registers: thread `member` has vectors member, member + members, ... */
template <class Element> struct row_kept {
    typedef typename Element::stored stored;
    const stored *x;
    stored *y;
    uint32_t length;
    bool aligned; /* the row is whole vectors, on their boundaries */
};

/* Loads a thread's vectors; what is missing is -inf. full: of aligned rows no vector is. */
template <class Element, int vectors, bool full>
static __device__ __forceinline__ void row_load(const row_kept<Element> &row, uint32_t member, uint32_t members, uint4 kept[vectors])
{
    typedef typename Element::stored stored;
    constexpr int count = Element::per_vector;
    if (row.aligned && (full ? row.length > 0 : (member + (vectors - 1) * members) * count < row.length)) { /* all */
#pragma unroll
        for (int i = 0; i < vectors; i++)
            kept[i] = load_read_only(row.x + (member + i * members) * count);
        return;
    }
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

template <class Element, int vectors, bool full, class Kept, class Results>
static __device__ __forceinline__ void row_store(const row_kept<Element> &row, uint32_t member, uint32_t members, const Kept &kept,
                                                 const Results &results)
{
    constexpr int count = Element::per_vector;
    if (full && row.length == 0)
        return;
#pragma unroll
    for (int i = 0; i < vectors; i++) {
        const uint32_t at = (member + i * members) * count;
        if (!full && at >= row.length)
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

/* some: not all threads of a row have all their vectors. */
template <class Row, bool some> static __global__ void __launch_bounds__(ROW_SHAPE.threads, Row::short_blocks)
softmax_short_rows(const __grid_constant__ struct softmax_work work, const __grid_constant__ struct row_members members, bool aligned)
{
    typedef typename Row::element Element;
    typedef typename Element::stored stored;
    constexpr int vectors = ROW_SHAPE.vectors, threads = ROW_SHAPE.threads;
    constexpr bool full = Row::missing_costs && !some;
    const uint32_t member = threadIdx.x - members.first();
    const uint64_t r = (uint64_t)blockIdx.x * members.rows + members.row();
    const bool is_row = r < work.box.outer; /* the threads of no row take part in barriers and shuffles */
    const row_kept<Element> row = {(const stored *)work.x + (is_row ? r * work.box.outer_stride : 0),
                                   (stored *)work.y + (is_row ? r * work.y_outer_stride : 0), is_row ? (uint32_t)work.box.length : 0, aligned};
    uint4 x[vectors];
    row_load<Element, vectors, full>(row, member, members.count, x);
    typename Row::real max = -INFINITY;
    Row::template take_max<vectors>(&max, x);
    group_share<threads>(&max, members.first(), members.count, take_larger());
    typename Row::terms terms(max);
    const auto end = [&](auto kept) {
        if constexpr (some)
            terms.template take_part<vectors, false>(x, kept, (int32_t)(row.length - member * Element::per_vector), (int32_t)(members.count * Element::per_vector));
        else
            terms.template take<vectors>(x, kept);
        const auto results = terms.template results_of_group<threads>(members);
        if constexpr (Row::keeps_low)
            if (!terms.keeps_well) {
                row_store<Element, vectors, full>(row, member, members.count, &x[0], results);
                return;
            }
        row_store<Element, vectors, full>(row, member, members.count, kept, results);
    };
    if constexpr (Row::in_shared) {
        extern __shared__ __align__(16) unsigned char bytes[];
        end(typename Row::template shared_kept<vectors>(bytes, x));
    } else {
        typename Row::kept kept[vectors];
        end(&kept[0]);
    }
}

/* Blocks that work on rows, in vectors: `blocks` of them, a group, have one row, and share it evenly. */
struct long_rows {
    const uint4 *x;
    uint4 *y;
    uint64_t x_stride, y_stride, rows;
    uint64_t each, longer; /* vectors of a block in a row; blocks that have one more */
    uint32_t blocks, groups;
    uint64_t *scratch; /* row_messages; or the number of rows that are claimed */
    uint32_t first_id; /* of two launches */
    bool claims;       /* of heavy rows: a block's rows are those that it claims, so that quick multiprocessors take more; else every groups-th is a group's */
    uint32_t places;   /* of heavy rows: stages that a block has room for */
    uint32_t stages;   /* of a block's part of a row */
};
static __device__ __forceinline__ void claims_begin(const struct long_rows &rows)
{
    atomicMax((unsigned long long *)rows.scratch, (unsigned long long)rows.first_id << 32); /* it is of an earlier launch, with a smaller id, or of this one */
}
static __device__ __forceinline__ uint32_t claim_one(const struct long_rows &rows) { return (uint32_t)atomicAdd((unsigned long long *)rows.scratch, 1ull); }

/* A block's part of each row. */
struct row_part {
    uint32_t rank, group, first; /* vector of a row */
    int32_t count;               /* of vectors */
    explicit __device__ __forceinline__ row_part(const struct long_rows &rows)
    {
        rank = blockIdx.x % rows.blocks, group = blockIdx.x / rows.blocks;
        first = (uint32_t)(rank * rows.each + (rank < rows.longer ? rank : rows.longer));
        count = (int32_t)(rows.each + (rank < rows.longer ? 1 : 0));
    }
};
static __device__ __forceinline__ struct row_messages messages_of(const struct long_rows &rows, const struct row_part &part)
{
    return {rows.scratch, rows.first_id, part.rank, rows.blocks, 0};
}

/* A part of a row on its way to shared memory, in the background. Since compute capability 9.0 one thread starts the copy, so that none waits until the
   memory has taken the addresses of all vectors. */
template <int vectors> struct part_copy {
    uint4 *place;
    uint32_t count;
#ifdef HAVE_CLUSTERS
    byte_barrier *arrived;
#endif
    /* Whether this thread is to start it. */
    static __device__ __forceinline__ bool starts()
    {
#ifdef HAVE_CLUSTERS
        return threadIdx.x == 0;
#else
        return true;
#endif
    }
    /* Behind a barrier behind which no thread reads what was there. */
    __device__ __forceinline__ void start(const uint4 *from) const
    {
#ifdef HAVE_CLUSTERS
        barrier_expect(arrived, count * (uint32_t)sizeof *from);
        copy_bulk(place, from, count * (uint32_t)sizeof *from, arrived);
#else
#pragma unroll
        for (uint32_t i = threadIdx.x; i < LONG_THREADS * vectors; i += LONG_THREADS)
            if (i < count)
                copy_async(place + i, from + i);
        copy_commit();
#endif
    }
    __device__ __forceinline__ void wait(uint32_t turn) const
    {
#ifdef HAVE_CLUSTERS
        barrier_wait(arrived, turn);
#else
        (void)turn;
        copy_wait(0);
#endif
    }
};

/* What is kept of a thread's vectors x: in the block's shared memory, or they themselves. */
template <class Row, int vectors> static __device__ __forceinline__ auto kept_of(unsigned char *bytes, uint4 *x)
{
    if constexpr (Row::in_shared)
        return typename Row::template shared_kept<vectors>(bytes, x);
    else
        return x;
}
/* to: of this thread's first vector; left: vectors from there on. */
template <int vectors, class Kept, class Results>
static __device__ __forceinline__ void part_store(uint4 *to, int32_t left, int32_t threads, const Kept &kept, const Results &results)
{
#pragma unroll
    for (int i = 0; i < vectors; i++)
        if (i * threads < left)
            __stcs(to + i * threads, results.of(kept[i]));
}

/* A row of a block, in registers. small: also of fewer than LONG_THREADS threads. */
template <class Row, int vectors, bool small> static __global__ void __launch_bounds__(LONG_THREADS, long_blocks(vectors))
softmax_block_rows(const __grid_constant__ struct long_rows rows)
{
    constexpr int32_t per_vector = Row::element::per_vector;
    const int32_t left = (int32_t)rows.each - (int32_t)threadIdx.x, threads = small ? (int32_t)blockDim.x : LONG_THREADS;
    const uint4 *const from = rows.x + blockIdx.x * rows.x_stride + threadIdx.x;
    uint4 *const to = rows.y + blockIdx.x * rows.y_stride + threadIdx.x;
    uint4 x[vectors];
#pragma unroll
    for (int i = 0; i < vectors; i++)
        x[i] = i * threads < left ? load_read_only(from + i * threads) : least_vector<typename Row::element>();
    const uint32_t warps = (uint32_t)threads / 32;
    typename Row::real max = -INFINITY;
    Row::template take_max<vectors>(&max, x);
    block_share<LONG_THREADS>(&max, take_larger(), warps);
    typename Row::terms terms(max);
    extern __shared__ __align__(16) unsigned char bytes[];
    const auto kept = kept_of<Row, vectors>(bytes, x);
    terms.template take_part<vectors, true>(x, kept, left * per_vector, threads * per_vector);
    const typename Row::results results = Row::results_of_block(terms.template of_block<LONG_THREADS>(warps));
    if constexpr (Row::keeps_low)
        if (!terms.keeps_well) {
            part_store<vectors>(to, left, threads, &x[0], results);
            return;
        }
    part_store<vectors>(to, left, threads, kept, results);
}

/* A row of a group of blocks, in registers while the next one is copied. small: as above. */
template <class Row, int vectors, bool cluster, bool small> static __global__ void __launch_bounds__(LONG_THREADS, Row::any_size ? 2 : long_blocks(vectors))
softmax_long_rows(const __grid_constant__ struct long_rows rows)
{
    extern __shared__ __align__(16) unsigned char bytes[];
    constexpr int32_t per_vector = Row::element::per_vector;
    const int32_t threads = small ? (int32_t)blockDim.x : LONG_THREADS;
    const row_part part(rows);
    const bool claims = cluster && part.rank == 0 && threadIdx.x == 0;
    const int32_t left = part.count - (int32_t)threadIdx.x;
    const uint4 *const from = rows.x + part.first, *const place = (const uint4 *)bytes + threadIdx.x;
    uint4 *const to = rows.y + part.first + threadIdx.x;
    uint64_t row = part.group, next = row + rows.groups;
    std::conditional_t<cluster, struct row_cluster<typename Row::part>, struct row_messages> others;
    part_copy<vectors> copy;
    copy.place = (uint4 *)bytes;
    copy.count = (uint32_t)part.count;
#ifdef HAVE_CLUSTERS
    __shared__ byte_barrier arrived;
    copy.arrived = &arrived;
    if (threadIdx.x == 0)
        barrier_begin(&arrived);
#endif
    if constexpr (cluster) {
        __shared__ struct cluster_mail<typename Row::part> mail;
        others = {&mail, 0, part.rank, rows.blocks, 0};
#ifdef HAVE_CLUSTERS
        if (threadIdx.x < 2)
            barrier_begin(&mail.arrived[threadIdx.x]);
        cluster_barrier();
#endif
        if (claims)
            claims_begin(rows);
    } else {
        others = messages_of(rows, part);
        __syncthreads();
    }
    if (copy.starts())
        copy.start(from + row * rows.x_stride);
#pragma unroll 1
    for (; row < rows.rows; others.turn++) {
        if constexpr (cluster)
            others.row = claims ? 2 * rows.groups + claim_one(rows) : 0;
        uint4 x[vectors];
        copy.wait(others.turn);
#pragma unroll
        for (int i = 0; i < vectors; i++)
            x[i] = i * threads < left ? place[i * threads] : least_vector<typename Row::element>();
        typename Row::real max = -INFINITY;
        Row::template take_max<vectors>(&max, x);
        block_share<LONG_THREADS>(&max, take_larger(), (uint32_t)threads / 32);
        if (cluster && copy.starts()) {
            others.expect();
            if (next < rows.rows)
                copy.start(from + next * rows.x_stride);
        }
        typename Row::terms terms(max);
        const auto kept = kept_of<Row, vectors>(bytes + (uint32_t)threads * vectors * sizeof(uint4), x);
        terms.template take_part<vectors, true>(x, kept, left * per_vector, threads * per_vector);
        const typename Row::part sum = terms.template of_block<LONG_THREADS>((uint32_t)threads / 32);
        if (!cluster && copy.starts() && next < rows.rows) /* later, as messages would wait behind it */
            copy.start(from + next * rows.x_stride);
        typename Row::results results = Row::template results_of_part<LONG_THREADS>(sum, others);
        uint4 *const here = to + row * rows.y_stride;
        row = next;
        if constexpr (cluster)
            next = others.told_row();
        else
            next += rows.groups;
        if constexpr (Row::in_shared)
            if (!terms.keeps_for(&results)) {
                part_store<vectors>(here, left, threads, &x[0], results);
                continue;
            }
        part_store<vectors>(here, left, threads, kept, results);
    }
#ifdef HAVE_CLUSTERS
    if constexpr (cluster)
        cluster_barrier(); /* no block leaves while others tell it something */
#endif
}

/* A thread of a block that takes its part of one row after the other, stage by stage. A turn is a row of a group. */
constexpr uint32_t TURNS_KNOWN = 16;
template <class Row> struct row_thread {
    typedef typename Row::element Element;
    static constexpr int threads = HEAVY_SHAPE.threads, stage = HEAVY_SHAPE.stage, stage_vectors = threads * stage;
    const struct long_rows &rows;
    const row_part part;
    uint4 *places;   /* shared memory, from this thread's first vector on */
    uint32_t *known; /* shared memory: rows of the next turns, where they are claimed */
    int32_t count;   /* of vectors of the part from this thread's first one on */
    /* The stage that is copied next: of which turn's row, into which place. */
    uint32_t turn, number, place;
    const uint4 *from;
    int32_t left;

    __device__ __forceinline__ row_thread(const struct long_rows &rows, unsigned char *bytes, uint32_t *known)
        : rows(rows), part(rows), places((uint4 *)bytes + threadIdx.x), known(known), turn(0), place(0)
    {
        count = part.count - (int32_t)threadIdx.x;
        if (rows.claims) {
            if (threadIdx.x < ahead())
                known[threadIdx.x] = part.group + threadIdx.x * rows.groups;
            if (threadIdx.x == 0)
                claims_begin(rows);
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
        return rows.claims ? known[of % TURNS_KNOWN] : part.group + (uint64_t)of * rows.groups;
    }
    /* The first thread of a block claims a row early, and tells it before the barrier behind which it is copied. */
    __device__ __forceinline__ uint32_t claim() const
    {
        return rows.claims && threadIdx.x == 0 ? ahead() * rows.groups + claim_one(rows) : 0;
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
        from = rows.x + r * rows.x_stride + part.first + threadIdx.x;
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
};

/* A row stays in the places, from which it is read three times. */
template <class Row> static __global__ void __launch_bounds__(HEAVY_SHAPE.threads, HEAVY_SHAPE.blocks)
softmax_heavy_rows(const __grid_constant__ struct long_rows rows)
{
    typedef row_thread<Row> thread;
    constexpr int threads = thread::threads, stage = thread::stage, per_vector = Row::element::per_vector;
    extern __shared__ __align__(16) unsigned char bytes[];
    __shared__ uint32_t known[TURNS_KNOWN];
    thread own(rows, bytes, known);
    struct row_messages others = messages_of(rows, own.part);
    uint32_t place = 0; /* of the row's first stage */
#pragma unroll 1
    for (;; others.turn++) {
        const uint32_t turn = others.turn;
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
            left -= thread::stage_vectors;
        }
        block_share<threads>(&max, take_larger());
        typename Row::terms terms(max);
        at = place;
        left = own.count;
#pragma unroll 1
        for (uint32_t s = 0; s < rows.stages; s++) {
            uint4 vectors[stage];
            own.read(left, at, vectors);
            terms.template take_part<stage, true>(vectors, vectors, left * per_vector, threads * per_vector);
            at = own.after(at);
            left -= thread::stage_vectors;
        }
        own.claimed(turn, claim);
        const typename Row::results results = terms.template results_of_blocks<threads>(others);
        uint4 *to = rows.y + r * rows.y_stride + own.part.first + threadIdx.x;
        left = own.count;
#pragma unroll 1
        for (uint32_t s = 0; s < rows.stages; s++) {
            uint4 vectors[stage];
            own.read(left, place, vectors);
            own.copy();
#pragma unroll
            for (int i = 0; i < stage; i++)
                if (thread::is_left(i, left))
                    __stcs(to + i * threads, results.of(vectors[i]));
            place = own.after(place);
            to += thread::stage_vectors;
            left -= thread::stage_vectors;
        }
    }
}

/* Of shared memory, for what is kept of a thread's vectors. */
template <class Row, int vectors> static constexpr size_t shared_bytes()
{
    if constexpr (Row::in_shared)
        return Row::template shared_kept<vectors>::places * sizeof(uint4);
    return 0;
}
template <class Row> static cudaError_t short_rows_start(const struct softmax_work *work, uint64_t vectors, bool aligned, cudaStream_t stream)
{
    constexpr uint32_t threads = ROW_SHAPE.threads;
    const uint32_t least = (uint32_t)(vectors + ROW_SHAPE.vectors - 1) / ROW_SHAPE.vectors;
    uint32_t count = least > 32 ? (least + 31) / 32 * 32 : 1;
    while (count < least)
        count *= 2;
    const struct row_members members = row_members_of(count, threads);
    const uint64_t blocks = (work->box.outer + members.rows - 1) / members.rows;
    cudaLaunchConfig_t config = launch_config(blocks, (int)(members.rows * count), stream);
    config.dynamicSmemBytes = members.rows * count * shared_bytes<Row, ROW_SHAPE.vectors>();
    if (blocks > INT32_MAX)
        return cudaErrorInvalidValue;
    if constexpr (Row::missing_costs)
        if (work->box.length < (uint64_t)count * ROW_SHAPE.vectors * Row::element::per_vector)
            return cudaLaunchKernelEx(&config, softmax_short_rows<Row, true>, *work, members, aligned);
    return cudaLaunchKernelEx(&config, softmax_short_rows<Row, false>, *work, members, aligned);
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

/* What is said is the same in every call, as other threads may launch the kernel. */
static cudaError_t shared_memory_set(const void *kernel, size_t bytes)
{
    const cudaError_t code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    return code == cudaSuccess ? cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared) : code;
}

/* What a kernel of long rows needs. */
struct blocks_need {
    int threads;
    uint64_t most, stage; /* vectors of a row that a block has, at most; at least, where messages are sent */
    size_t bytes, most_bytes; /* of shared memory; of any launch of the kernel */
    uint32_t places;
    bool cluster;
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
    const bool cluster = need->cluster, together = call->capacity.shared_bytes > 0;
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
    const uint64_t each = !cluster && together ? u64_min(blocks / groups, (vectors + need->stage - 1) / need->stage) : least;
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
    void (*const kernel)(struct long_rows) = threads < LONG_THREADS ? softmax_block_rows<Row, vectors, vectors == 8> : softmax_block_rows<Row, vectors, Row::any_size>;
    *launched = true;
    if (work->box.outer > INT32_MAX)
        return cudaErrorInvalidValue;
    config.dynamicSmemBytes = config.blockDim.x * shared_bytes<Row, vectors>();
    const cudaError_t code = Row::in_shared ? shared_memory_set((const void *)kernel, LONG_THREADS * shared_bytes<Row, vectors>()) : cudaSuccess;
    return code == cudaSuccess ? cudaLaunchKernelEx(&config, kernel, rows) : code;
}

/* Rows in registers: of one block; of a cluster; else, and of few rows, of as many blocks that send messages as a device has room for. */
template <class Row, int vectors, bool cluster>
static cudaError_t shared_rows_start(const struct row_softmax_call *call, cudaStream_t stream, bool *launched)
{
    constexpr uint64_t most = LONG_THREADS * vectors;
    const uint64_t all = call->work.box.length / Row::element::per_vector, least = (all + most - 1) / most;
    const int threads = Row::in_shared ? threads_for<vectors>((all + least - 1) / least) : LONG_THREADS;
    constexpr size_t of_thread = vectors * sizeof(uint4) + shared_bytes<Row, vectors>();
    const struct blocks_need need = {threads, most, LONG_THREADS * 4, (size_t)threads * of_thread, LONG_THREADS * of_thread, 1, cluster};
    void (*const kernel)(struct long_rows)
        = threads < LONG_THREADS ? softmax_long_rows<Row, vectors, cluster, Row::in_shared> : softmax_long_rows<Row, vectors, cluster, Row::any_size>;
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
        code = shared_rows_start<Row, 8, true>(call, stream, launched);
    if constexpr (!Row::counts) /* for which there are no registers */
        if (call->capacity.is_hopper && !few && vectors > half * CLUSTER_BLOCKS && vectors <= full * CLUSTER_BLOCKS)
            code = shared_rows_start<Row, 16, true>(call, stream, launched);
    const bool cramped = Row::counts && sizeof(typename Row::element::stored) == 2; /* with 16 vectors registers would be spilled */
    if (code == cudaSuccess && !*launched && together && (cramped || rows * ((vectors + half - 1) / half) <= room))
        code = shared_rows_start<Row, 8, false>(call, stream, launched);
    return code == cudaSuccess && !*launched ? shared_rows_start<Row, 16, false>(call, stream, launched) : code;
}

/* Rows in shared memory: of one block, or of blocks that send messages. */
template <class Row> static cudaError_t heavy_rows_start(const struct row_softmax_call *call, uint64_t vectors, cudaStream_t stream, bool *launched)
{
    typedef row_thread<Row> thread;
    constexpr uint64_t stage = thread::stage_vectors;
    const uint32_t places = (uint32_t)u64_min(call->capacity.block_bytes / (stage * sizeof(uint4)), HEAVY_SHAPE.places);
    const size_t bytes = places * stage * sizeof(uint4);
    const struct blocks_need need = {thread::threads, places * stage, stage, bytes, bytes, places, false};
    const uint64_t room = (uint64_t)HEAVY_SHAPE.blocks * (uint64_t)call->space->multiprocessors * places * stage;
    if (vectors > long_rows_most(true, sizeof(typename Row::element::stored)) && call->work.box.outer * vectors > room)
        return cudaSuccess; /* two passes */
    return places == 0 ? cudaSuccess : long_rows_start(call, softmax_heavy_rows<Row>, &need, stream, launched);
}

/* Rows at level exact: many in registers, of a block of 16 bits or of a cluster; few, and longer ones, in shared memory. */
template <class Element> static cudaError_t exact_rows_start(const struct row_softmax_call *call, uint64_t vectors, cudaStream_t stream, bool *launched)
{
    constexpr uint64_t half = LONG_THREADS * 8;
    typedef bins_row<Element, false, true> Kept;
    typedef bins_row<Element, false, false> Plain;
    const bool many = call->work.box.outer * ((vectors + half - 1) / half) >= 2 * (uint64_t)call->space->multiprocessors;
    cudaError_t code = cudaSuccess;
    if constexpr (Kept::is_short)
        if (many && vectors <= half && LONG_THREADS * shared_bytes<Kept, 8>() <= call->capacity.block_bytes)
            return block_rows_start<Kept, 8>(&call->work, stream, launched);
    if (many && call->capacity.is_hopper && vectors <= half * CLUSTER_BLOCKS)
        code = shared_rows_start<Kept, 8, true>(call, stream, launched);
    if constexpr (!Kept::is_short)
        if (many && call->capacity.is_hopper && vectors > half * CLUSTER_BLOCKS && vectors <= 2 * half * CLUSTER_BLOCKS)
            code = shared_rows_start<Plain, 16, true>(call, stream, launched);
    return code == cudaSuccess && !*launched ? heavy_rows_start<Plain>(call, vectors, stream, launched) : code;
}

template <class Element, bool logarithm, bool exact>
static cudaError_t rows_start(const struct row_softmax_call *call, cudaStream_t stream, bool *launched)
{
    const struct softmax_work *const work = &call->work;
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
