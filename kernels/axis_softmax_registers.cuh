/* Softmax of rows that stay in registers: each is read once and written once.

     softmax_short_rows   a group of threads of one block keeps its row in registers
         together: the block copies its rows to shared memory, from which they are loaded; results go back the same way
         each thread: loads its vectors; the row's maximum, by the warp and shared memory
         terms of its elements; their sum over the group
         stores the results
     softmax_block_rows   a block keeps its row in registers
         each thread: loads its vectors; the maximum of the block; terms; their sum over the block
         stores the results
     softmax_long_rows    a block, or blocks that are a cluster or, at level fast, exchange messages, keep a row in registers
         each thread, for every row: reads its vectors from shared memory; the maximum of the block
         one thread starts the copy of the next row's part
         terms; their sum over the block, then over all blocks of the row, brought to one maximum
         stores the results

   At level exact a thread also keeps what the second pass would compute again, in shared memory. */
#pragma once

#include "kernels/axis_softmax_exact.cuh"

/* A group's row: thread `member` has vectors member, member + members, ... of it. */
template <class Element> struct row_alone {
    typedef typename Element::stored stored;
    static constexpr uint32_t count = Element::per_vector, before = 0;
    const stored *x;
    stored *y;
    uint32_t end; /* its length */
    bool aligned; /* the row is whole vectors, on their boundaries */
    /* Loads a thread's vectors; what is missing is -inf. full: of aligned rows no vector is. */
    template <int vectors, bool full> __device__ __forceinline__ void load(uint32_t member, uint32_t members, uint4 kept[vectors]) const
    {
        if (aligned && (full ? end > 0 : (member + (vectors - 1) * members) * count < end)) { /* all */
#pragma unroll
            for (int i = 0; i < vectors; i++)
                kept[i] = load_read_only(x + (member + i * members) * count);
            return;
        }
        if (aligned) {
#pragma unroll
            for (int i = 0; i < vectors; i++) {
                const uint32_t at = (member + i * members) * count;
                kept[i] = at < end ? load_read_only(x + at) : least_vector<Element>();
            }
            return;
        }
#pragma unroll
        for (int i = 0; i < vectors; i++) {
            const uint32_t at = (member + i * members) * count;
            kept[i] = least_vector<Element>();
            stored elements[count];
#pragma unroll
            for (uint32_t j = 0; j < count; j++)
                elements[j] = at + j < end ? x[at + j] : vector_element<stored>(kept[i], j);
            kept[i] = vector_of(elements);
        }
    }
    template <int vectors, bool full, class Kept, class Results>
    __device__ __forceinline__ void store(uint32_t member, uint32_t members, const Kept &kept, const Results &results) const
    {
        if (full && end == 0)
            return;
#pragma unroll
        for (int i = 0; i < vectors; i++) {
            const uint32_t at = (member + i * members) * count;
            if (!full && at >= end)
                continue;
            const uint4 results_here = results.of(kept[i]);
            if (aligned) {
                __stcs((uint4 *)(y + at), results_here);
                continue;
            }
#pragma unroll
            for (uint32_t j = 0; j < count; j++)
                if (at + j < end)
                    y[at + j] = vector_element<stored>(results_here, j);
        }
    }
};

/* A block's rows, which lie one behind the other, pass through shared memory, in the vectors of memory: the first and the last may be other blocks' too. */
template <class Element> struct rows_together {
    typedef typename Element::stored stored;
    static constexpr uint32_t count = Element::per_vector;
    uint4 *places;
    uint32_t first, end; /* elements of these vectors */
    /* Neighbouring threads whose rows have 4, 8, 16, ... vectors use different banks. */
    static __device__ __forceinline__ uint32_t place(uint32_t vector) { return vector ^ ((vector >> 3 ^ (vector >> 2 & 6)) & 7); }
    __device__ __forceinline__ stored *element(uint32_t i) const { return (stored *)&places[place(i / count)] + i % count; }
    /* Calls whole(vector) and one(element) for what of them is this thread's. */
    template <class Whole, class One> __device__ __forceinline__ void each(const Whole &whole, const One &one) const
    {
#pragma unroll 1
        for (uint32_t vector = threadIdx.x; vector * count < end; vector += blockDim.x) {
            const uint32_t from = vector * count;
            if (from >= first && from + count <= end)
                whole(vector);
            else
#pragma unroll
                for (uint32_t i = from; i < from + count; i++)
                    if (i >= first && i < end)
                        one(i);
        }
    }
    /* x, y: of the first vector. All threads of the block call both. */
    __device__ __forceinline__ void load(const stored *x) const
    {
        each([&](uint32_t vector) { copy_async(&places[place(vector)], (const uint4 *)x + vector); }, [&](uint32_t i) { *element(i) = x[i]; });
        copy_commit();
        copy_wait(0);
        __syncthreads();
    }
    __device__ __forceinline__ void store(stored *y) const
    {
        __syncthreads();
        each([&](uint32_t vector) { __stcs((uint4 *)y + vector, places[place(vector)]); }, [&](uint32_t i) { y[i] = *element(i); });
    }
};
/* One of them, in the vectors in which it has elements: the first `before` elements of these are not the row's, nor those from `end` on. */
template <class Element> struct row_together {
    typedef typename Element::stored stored;
    static constexpr uint32_t count = Element::per_vector;
    const rows_together<Element> &block;
    uint32_t first, before, end; /* first: vector */
    /* All threads of the block call it. */
    template <int vectors, bool> __device__ __forceinline__ void load(uint32_t member, uint32_t members, uint4 kept[vectors]) const
    {
        const stored least = vector_element<stored>(least_vector<Element>(), 0);
#pragma unroll
        for (int i = 0; i < vectors; i++) {
            const uint32_t vector = member + i * members, at = vector * count;
            kept[i] = at < end ? block.places[block.place(first + vector)] : least_vector<Element>();
            if (at >= before && (at >= end || end - at >= count))
                continue;
            stored elements[count];
#pragma unroll
            for (uint32_t j = 0; j < count; j++)
                elements[j] = at + j >= before && at + j < end ? vector_element<stored>(kept[i], j) : least;
            kept[i] = vector_of(elements);
        }
        __syncthreads(); /* rows share vectors, of which all is read before anything is written */
    }
    template <int vectors, bool, class Kept, class Results>
    __device__ __forceinline__ void store(uint32_t member, uint32_t members, const Kept &kept, const Results &results) const
    {
#pragma unroll
        for (int i = 0; i < vectors; i++) {
            const uint32_t vector = member + i * members, at = vector * count;
            if (at >= end)
                continue;
            const uint4 y = results.of(kept[i]);
            if (at >= before && end - at >= count) {
                block.places[block.place(first + vector)] = y;
                continue;
            }
#pragma unroll
            for (uint32_t j = 0; j < count; j++)
                if (at + j >= before && at + j < end)
                    *block.element(first * count + at + j) = vector_element<stored>(y, j);
        }
    }
};

/* What is kept of a thread's vectors in shared memory, in places of 16 bytes. */
template <class Row, int vectors> static inline __host__ __device__ constexpr uint32_t shared_places()
{
    if constexpr (Row::in_shared)
        return Row::template shared_kept<vectors>::places;
    return 0;
}

/* A group's row. some: not all threads of it have all their vectors. */
template <class Row, bool some, class Elements>
static __device__ __forceinline__ void group_softmax(const Elements &row, const struct row_members &members, unsigned char *bytes)
{
    constexpr int vectors = ROW_SHAPE.vectors, threads = ROW_SHAPE.threads, per_vector = Row::element::per_vector;
    constexpr bool full = Row::missing_costs && !some;
    const uint32_t member = threadIdx.x - members.first();
    uint4 x[vectors];
    row.template load<vectors, full>(member, members.count, x);
    typename Row::real max = -INFINITY;
    Row::template take_max<vectors>(&max, x);
    group_share<threads>(&max, members.first(), members.count, take_larger());
    typename Row::terms terms(max);
    const auto finish = [&](auto kept) {
        if constexpr (some) {
            const int32_t from = (int32_t)member * per_vector;
            terms.template take_part<vectors, false>(x, kept, (int32_t)row.before - from, (int32_t)row.end - from, (int32_t)members.count * per_vector);
        } else if constexpr (Row::heavy)
            terms.template take<vectors>(x, kept);
        else
            terms.template take<vectors>(x, kept, members.vectors);
        const auto results = terms.template results_of_group<threads>(members);
        if constexpr (Row::keeps_low)
            if (terms.most_above < 0) {
                row.template store<vectors, full>(member, members.count, &x[0], results);
                return;
            }
        row.template store<vectors, full>(member, members.count, kept, results);
    };
    if constexpr (Row::in_shared) {
        finish(typename Row::template shared_kept<vectors>(bytes, x));
    } else {
        typename Row::kept kept[vectors];
        finish(&kept[0]);
    }
}

template <class Row, bool some, bool together> static __global__ void __launch_bounds__(ROW_SHAPE.threads, Row::short_blocks)
softmax_short_rows(const __grid_constant__ struct softmax_work work, const __grid_constant__ struct row_members members, bool aligned)
{
    typedef typename Row::element Element;
    typedef typename Element::stored stored;
    extern __shared__ __align__(16) unsigned char bytes[];
    const uint32_t length = (uint32_t)work.box.length;
    const uint64_t first = (uint64_t)blockIdx.x * members.rows, r = first + members.row();
    const bool is_row = r < work.box.outer; /* the threads of no row take part in barriers and shuffles */
    if constexpr (together) {
        constexpr uint32_t count = Element::per_vector;
        const uint64_t start = first * length;
        const uint32_t before = elements_before((const stored *)work.x + start);
        const uint32_t rows = work.box.outer - first < members.rows ? (uint32_t)(work.box.outer - first) : members.rows;
        const rows_together<Element> block = {(uint4 *)bytes + blockDim.x * shared_places<Row, ROW_SHAPE.vectors>(), before, before + rows * length};
        const uint32_t from = before + members.row() * length;
        block.load((const stored *)work.x + start - before);
        const row_together<Element> row = {block, from / count, from % count, is_row ? from % count + length : 0};
        group_softmax<Row, some>(row, members, bytes);
        block.store((stored *)work.y + start - before);
    } else {
        const row_alone<Element> row = {(const stored *)work.x + (is_row ? r * work.box.outer_stride : 0), (stored *)work.y + (is_row ? r * work.y_outer_stride : 0),
                                        is_row ? length : 0, aligned};
        group_softmax<Row, some>(row, members, bytes);
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
struct part_copy {
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
        for (uint32_t i = threadIdx.x; i < count; i += blockDim.x)
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

/* A row of a block, in registers. fixed: its threads, or 0: any number up to LONG_THREADS. */
template <class Row, int vectors, int fixed> static __global__ void __launch_bounds__(threads_most(fixed), long_blocks(vectors) * (LONG_THREADS / threads_most(fixed)))
softmax_block_rows(const __grid_constant__ struct long_rows rows)
{
    constexpr int32_t per_vector = Row::element::per_vector;
    const int32_t left = (int32_t)rows.each - (int32_t)threadIdx.x, threads = fixed > 0 ? fixed : (int32_t)blockDim.x;
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
    terms.template take_part<vectors, true>(x, kept, 0, left * per_vector, threads * per_vector);
    const typename Row::results results = Row::results_of_block(terms.template of_block<LONG_THREADS>(warps));
    if constexpr (Row::keeps_low)
        if (terms.most_above < 0) {
            part_store<vectors>(to, left, threads, &x[0], results);
            return;
        }
    part_store<vectors>(to, left, threads, kept, results);
}

/* Who has a row. */
enum row_holders { ONE_BLOCK, CLUSTER, MESSENGERS };

/* A row of a block or a group of blocks, in registers while the next one is copied. fixed: as above. */
template <class Row, int vectors, enum row_holders holders, int fixed> static __global__ void
__launch_bounds__(threads_most(fixed), Row::two_blocks ? 2 : long_blocks(vectors) * (LONG_THREADS / threads_most(fixed)))
softmax_long_rows(const __grid_constant__ struct long_rows rows)
{
    extern __shared__ __align__(16) unsigned char bytes[];
    constexpr int32_t per_vector = Row::element::per_vector;
    const int32_t threads = fixed > 0 ? fixed : (int32_t)blockDim.x;
    const row_part part(rows);
    const bool claims = holders != MESSENGERS && part.rank == 0 && threadIdx.x == 0;
    const int32_t left = part.count - (int32_t)threadIdx.x;
    const uint4 *const from = rows.x + part.first, *const place = (const uint4 *)bytes + threadIdx.x;
    uint4 *const to = rows.y + part.first + threadIdx.x;
    uint32_t row = part.group, next = row + rows.groups; /* there are fewer than 2^31 */
    typedef typename Row::part part_sum;
    std::conditional_t<holders == ONE_BLOCK, struct row_claims, std::conditional_t<holders == CLUSTER, struct row_cluster<part_sum>, struct row_messages>> others;
    part_copy copy;
    copy.place = (uint4 *)bytes;
    copy.count = (uint32_t)part.count;
#ifdef HAVE_CLUSTERS
    __shared__ byte_barrier arrived;
    copy.arrived = &arrived;
    if (threadIdx.x == 0)
        barrier_begin(&arrived);
#endif
    if constexpr (holders == CLUSTER) {
        __shared__ struct cluster_mail<part_sum> mail;
        others = {&mail, 0, part.rank, rows.blocks, 0};
#ifdef HAVE_CLUSTERS
        if (threadIdx.x < 2)
            barrier_begin(&mail.arrived[threadIdx.x]);
        cluster_barrier();
#endif
    } else if constexpr (holders == ONE_BLOCK) {
        [[maybe_unused]] __shared__ uint32_t claimed[2];
        others = {claimed, 0, 0};
        __syncthreads();
    } else {
        others = messages_of(rows, part);
        __syncthreads();
    }
    const auto claim = [&] { return claims ? 2 * rows.groups + claim_one(rows) : 0; };
    if (claims)
        claims_begin(rows);
    if constexpr (holders == ONE_BLOCK)
        others.row = claim();
    if (copy.starts())
        copy.start(from + row * rows.x_stride);
#pragma unroll 1
    for (; row < rows.rows; others.turn++) {
        if constexpr (holders == ONE_BLOCK)
            others.tell();
        if constexpr (holders == CLUSTER)
            others.row = claim();
        uint4 x[vectors];
        copy.wait(others.turn);
#pragma unroll
        for (int i = 0; i < vectors; i++)
            x[i] = i * threads < left ? place[i * threads] : least_vector<typename Row::element>();
        typename Row::real max = -INFINITY;
        Row::template take_max<vectors>(&max, x);
        block_share<LONG_THREADS>(&max, take_larger(), (uint32_t)threads / 32);
        if constexpr (holders == CLUSTER)
            if (copy.starts())
                others.expect();
        if (holders != MESSENGERS && copy.starts() && next < rows.rows)
            copy.start(from + next * rows.x_stride);
        typename Row::terms terms(max);
        const auto kept = kept_of<Row, vectors>(bytes + (uint32_t)threads * vectors * sizeof(uint4), x);
        terms.template take_part<vectors, true>(x, kept, 0, left * per_vector, threads * per_vector);
        const typename Row::part sum = terms.template of_block<LONG_THREADS>((uint32_t)threads / 32);
        if (holders == MESSENGERS && copy.starts() && next < rows.rows) /* later, as messages would wait behind it */
            copy.start(from + next * rows.x_stride);
        typename Row::results results = Row::template results_of_part<LONG_THREADS>(sum, others);
        uint4 *const here = to + row * rows.y_stride;
        row = next;
        if constexpr (holders != MESSENGERS)
            next = others.told_row();
        else
            next += rows.groups;
        if constexpr (holders == ONE_BLOCK)
            others.row = claim(); /* early: the first thread, whose registers are full below, would wait for it there */
        if constexpr (Row::in_shared)
            if (!terms.keeps_for(&results)) {
                part_store<vectors>(here, left, threads, &x[0], results);
                continue;
            }
        part_store<vectors>(here, left, threads, kept, results);
    }
#ifdef HAVE_CLUSTERS
    if constexpr (holders == CLUSTER)
        cluster_barrier(); /* no block leaves while others tell it something */
#endif
}
