/* What passes of order statistics over elements in device memory share (fold/order.h): blocks stay, and go through the array in tiles. Counters of
   blocks are added to the caller's at their ends: integers, so the order does not matter. */
#pragma once

#include "fold/order.h"
#include "kernels/element.cuh"
#include "kernels/kernels.h"
#include "kernels/message.cuh"
#include "kernels/tuning.h"

typedef unsigned long long device_count;

static __device__ __forceinline__ void add_count(uint64_t *count, uint64_t more)
{
    if (more != 0)
        atomicAdd((device_count *)count, (device_count)more);
}
static __device__ __forceinline__ void add_count(uint32_t *count, uint32_t more)
{
    if (more != 0)
        atomicAdd(count, more);
}

/* A number in memory, to which other blocks may add now. */
template <class Count> static __device__ __forceinline__ Count count_now(const Count *count) { return *(const volatile Count *)count; }

/* The key functions by type. */
#define DEFINE(bytes, bits, type, signed_type)                                                                    \
    static __device__ __forceinline__ type key_of(type x, struct order_map map) { return order_key_##bits(x, map); } \
    static __host__ __device__ __forceinline__ type element_of_key(type key, struct order_map map)                \
    {                                                                                                             \
        const type x = (type)(key - map.add);                                                                     \
        return (type)(x ^ ((type)((signed_type)x >> ((bits) - 1)) & (type)map.flip));                             \
    }                                                                                                             \
    static __device__ __forceinline__ uint32_t interval_of(const type *keys, uint32_t first, uint32_t end, type key) \
    {                                                                                                             \
        return order_interval_##bits(keys, first, end, key);                                                      \
    }                                                                                                             \
    static __device__ __forceinline__ struct order_odd_##bits odd_of(const struct order_table &table, uint32_t cell, type) \
    {                                                                                                             \
        return order_odd_in_##bits(&table, cell);                                                                 \
    }                                                                                                             \
    static __device__ __forceinline__ uint32_t cell_of_key(type key, const struct order_guess &guess, const struct order_split *splits) \
    {                                                                                                             \
        return order_cell_##bits(key, &guess, splits);                                                            \
    }
ORDER_WIDTHS(DEFINE)
#undef DEFINE

/* The unsigned integer of as many bytes. */
template <size_t bytes> struct key_type;
#define DEFINE(size, bits, unsigned_type, signed_type) \
    template <> struct key_type<size> {                \
        typedef unsigned_type type;                    \
    };
ORDER_WIDTHS(DEFINE)
#undef DEFINE

/* Calls launch(a key) for the keys of a type. */
template <class Launch> static cudaError_t with_key(allfold_type type, Launch launch)
{
    switch (allfold_type_bytes(type)) {
#define CASE(bytes, bits, type, signed_type) \
    case bytes: return launch(type());
        ORDER_WIDTHS(CASE)
#undef CASE
    default: return cudaErrorInvalidValue;
    }
}

/* The value of an element of these bits. */
template <class Element, class Key> static __device__ __forceinline__ typename Element::value element_value(Key bits)
{
    typename Element::stored stored;
    memcpy(&stored, &bits, sizeof stored);
    return Element::load(stored);
}

/* An array whose middle can be loaded in vectors: [head, head + vectors * per) of n elements. */
template <class Stored> struct cut_array {
    uint64_t n, head, vectors;
    __host__ __device__ cut_array(const void *x, uint64_t n) : n(n)
    {
        constexpr uint64_t per = 16 / sizeof(Stored);
        const uint64_t off = (uint64_t)(uintptr_t)x % 16 / sizeof(Stored);
        head = off == 0 ? 0 : per - off < n ? per - off : n;
        vectors = (n - head) / per;
    }
};

/* Where element e of a thread is in a tile: threads have vectors in turn. */
template <class Stored, int threads> static __device__ __forceinline__ uint32_t tile_place(int e)
{
    constexpr int per = 16 / (int)sizeof(Stored);
    return ((uint32_t)(e / per) * threads + threadIdx.x) * per + (uint32_t)(e % per);
}

/* How many elements of a tile a thread has. */
template <class Stored, int loads> constexpr int elements_of = loads * (16 / (int)sizeof(Stored));

/* Which elements of a tile there are. */
struct all_there {
    __device__ constexpr bool operator()(int) const { return true; }
};
struct some_there {
    uint32_t mask;
    __device__ bool operator()(int e) const { return (mask >> e & 1) != 0; }
};

template <class Stored, int threads, int loads>
static __device__ __forceinline__ void load_tile(const Stored *x, uint4 (&vectors)[loads])
{
#pragma unroll
    for (int v = 0; v < loads; v++)
        vectors[v] = load_read_only(x + ((uint32_t)v * threads + threadIdx.x) * (16 / sizeof(Stored)));
}

template <class Stored, int threads, int loads> static __device__ __forceinline__ uint32_t tiles_of(const cut_array<Stored> &cut)
{
    return (uint32_t)(cut.vectors / (threads * loads));
}

/* Which tiles a block has: blocks take turns. */
struct tiles_in_turn {
    __device__ __forceinline__ uint32_t after(uint32_t tile) { return tile + gridDim.x; }
    __device__ __forceinline__ uint32_t agree(uint32_t next) { return next; }
};
/* Most are taken in turn; then each block takes one that is left, as some are faster. */
struct tiles_left {
    uint64_t *taken;  /* device memory, 0 at first: how many were taken so; NULL: all are taken in turn */
    uint32_t *shared; /* two numbers of the block, */
    uint32_t told;    /* which have been told so often */
    uint32_t in_turn;
    bool is_left; /* the tile that after() told */
    __device__ tiles_left(uint64_t *taken, uint32_t *shared, uint32_t tiles) : taken(taken), shared(shared), told(0), in_turn(UINT32_MAX), is_left(false)
    {
        const uint32_t rows = tiles / gridDim.x, most = rows - rows / 8;
        if (taken != NULL)
            in_turn = (most > 2 ? most : 2) * gridDim.x;
    }
    /* The tile that follows this one, which the first thread knows. It takes time, so it is called before a tile is looked at, */
    __device__ __forceinline__ uint32_t after(uint32_t tile)
    {
        is_left = tile + gridDim.x >= in_turn;
        return !is_left ? tile + gridDim.x : threadIdx.x == 0 ? in_turn + (uint32_t)atomicAdd((device_count *)taken, (device_count)1) : 0;
    }
    /* and this afterwards, by all threads, which know it then. */
    __device__ __forceinline__ uint32_t agree(uint32_t next)
    {
        if (!is_left)
            return next;
        uint32_t *const own = &shared[told++ % 2];
        if (threadIdx.x == 0)
            *own = next;
        __syncthreads();
        return *own;
    }
};

/* Calls take(elements, there, first) for all elements, tile by tile: element e of the thread is number first + tile_place(e), where there(e). All threads
   of a block call it equally often. ahead: a tile is loaded while the one before is taken. */
template <class Stored, int threads, int loads, bool ahead, class Take, class Tiles = tiles_in_turn>
static __device__ __forceinline__ void each_tile(const Stored *x, const cut_array<Stored> &cut, Take take, Tiles tiles = Tiles())
{
    constexpr int per = 16 / (int)sizeof(Stored), count = elements_of<Stored, loads>;
    constexpr uint64_t tile = (uint64_t)threads * count;
    static_assert(count <= 32, "a bit each");
    const uint32_t whole = tiles_of<Stored, threads, loads>(cut);
    Stored elements[count];
    uint4 vectors[loads];
    if (ahead && blockIdx.x < whole)
        load_tile<Stored, threads, loads>(x + cut.head + blockIdx.x * tile, vectors);
    for (uint32_t t = blockIdx.x, next = t + gridDim.x; t < whole;) {
        const uint32_t after = tiles.after(next);
        if (!ahead)
            load_tile<Stored, threads, loads>(x + cut.head + t * tile, vectors);
#pragma unroll
        for (int e = 0; e < count; e++)
            elements[e] = vector_element<Stored>(vectors[e / per], e % per);
        if (ahead && next < whole)
            load_tile<Stored, threads, loads>(x + cut.head + next * tile, vectors);
        take(elements, all_there(), cut.head + t * tile);
        t = next;
        next = tiles.agree(after);
    }
    for (int end = 0; end < 2 && blockIdx.x == whole % gridDim.x; end++) { /* what lies before the first vector; behind the last tile */
        const uint64_t last = end == 0 ? cut.head : cut.n;
        for (uint64_t first = end == 0 ? 0 : cut.head + whole * tile; first < last; first += tile) {
            some_there there = {0};
#pragma unroll
            for (int e = 0; e < count; e++) {
                const uint64_t at = first + tile_place<Stored, threads>(e);
                there.mask |= (uint32_t)(at < last) << e;
                elements[e] = at < last ? x[at] : Stored();
            }
            take(elements, there, first);
        }
    }
}

/* Element e, which is not known to the compiler, of those in registers. */
template <int count, class Stored> static __device__ __forceinline__ Stored pick(const Stored (&elements)[count], int e)
{
    if constexpr (count == 1) {
        return elements[0];
    } else {
        Stored half[count / 2];
#pragma unroll
        for (int i = 0; i < count / 2; i++)
            half[i] = (e & (count / 2)) != 0 ? elements[i + count / 2] : elements[i];
        return pick(half, e);
    }
}

/* x * scale + offset, bounded to 0 and 1; 0 of NaN. It never falls as x rises. */
static __device__ __forceinline__ float bounded(float x, float scale, float offset)
{
#ifdef __NVCC__
    return __saturatef(fmaf(x, scale, offset));
#else
    return fminf(fmaxf(fmaf(x, scale, offset), 0.0f), 1.0f);
#endif
}

/* How a pass ends: the host learns what it has counted. */
struct order_end {
    uint64_t *answer; /* host memory, or a chain's; NULL: it does not */
    uint32_t count;   /* of numbers: all counters. The last one counts blocks that have ended, the one before tiles (tiles_left) */
    struct fold_mailbox *mailbox; /* NULL: nobody waits */
    uint32_t launch_id;
};

/* Called by all threads of all blocks when what the block has counted, and else written, is in memory. The last block calls write(), by which the host's
   memory gets the answer, and tells the host. */
template <class Write> static __device__ __forceinline__ void end_pass(const struct order_end &end, uint64_t *counts, Write write)
{
    __shared__ bool is_last;
    struct {
        uint32_t halves[ORDER_ANSWER_BYTES / 4];
    } done = {};
    if (end.answer == NULL)
        return;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicAdd((device_count *)&counts[end.count - 1], (device_count)1) == gridDim.x - 1;
    __syncthreads();
    if (!is_last)
        return;
    __threadfence();
    write();
    if (end.mailbox == NULL)
        return;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0)
        message_send(end.mailbox->partial.words, done, end.launch_id);
}

/* The answer is the counters, which then are 0. Both begin at 16 bytes. Called by all threads of a block. */
static __device__ __forceinline__ void take_answer(uint64_t *answer, uint64_t *counts, uint32_t count)
{
    constexpr uint32_t together = 8; /* pairs that a thread loads, and then stores */
    for (uint32_t first = 2 * threadIdx.x; first < count; first += 2 * together * blockDim.x) {
        uint64_t words[together][2];
#pragma unroll
        for (uint32_t s = 0; s < together; s++)
            if (first + 2 * s * blockDim.x + 1 < count)
                load_words(&counts[first + 2 * s * blockDim.x], words[s]);
#pragma unroll
        for (uint32_t s = 0; s < together; s++) {
            const uint32_t at = first + 2 * s * blockDim.x;
            if (at + 1 < count) {
                uint4 pair;
                memcpy(&pair, words[s], sizeof pair);
                *(uint4 *)&answer[at] = pair;
                *(uint4 *)&counts[at] = uint4();
            } else if (at < count) {
                answer[at] = count_now(&counts[at]);
                counts[at] = 0;
            }
        }
    }
}
static __device__ __forceinline__ void end_pass(const struct order_end &end, uint64_t *counts)
{
    end_pass(end, counts, [&]() { take_answer(end.answer, counts, end.count); });
}

static inline uint64_t blocks_for(uint64_t vectors, int threads, int loads, uint64_t most)
{
    const uint64_t tile = (uint64_t)threads * loads, tiles = (vectors + tile - 1) / tile;
    return tiles == 0 ? 1 : tiles < most ? tiles : most;
}

/* The passes that have files of their own. shared_bytes: what a block may have of shared memory. */
cudaError_t order_brackets_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream);
cudaError_t order_digits_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream);
cudaError_t order_search_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream);
cudaError_t order_sample_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream);
cudaError_t order_table_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream);
cudaError_t order_even_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream);
