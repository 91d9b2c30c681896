/* What passes of order statistics over elements in device memory share (fold/order.h): blocks stay, and go through the array in tiles. Counters of
   blocks are added to the caller's at their ends: integers, so the order does not matter. */
#pragma once

#include "fold/order.h"
#include "kernels/element.cuh"
#include "kernels/kernels.h"
#include "kernels/tuning.h"

typedef unsigned long long device_count;

static __device__ __forceinline__ void add_count(uint64_t *count, uint64_t more)
{
    if (more != 0)
        atomicAdd((device_count *)count, (device_count)more);
}

/* The key functions by type. */
#define DEFINE(bytes, bits, type, signed_type)                                                                    \
    static __device__ __forceinline__ type key_of(type x, struct order_map map) { return order_key_##bits(x, map); } \
    static __device__ __forceinline__ uint32_t interval_of(const type *keys, uint32_t first, uint32_t end, type key) \
    {                                                                                                             \
        return order_interval_##bits(keys, first, end, key);                                                      \
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

/* An array whose middle can be loaded in vectors: [head, head + vectors * per) of n elements. */
template <class Stored> struct cut_array {
    uint64_t n, head, vectors;
    cut_array(const void *x, uint64_t n) : n(n)
    {
        constexpr uint64_t per = 16 / sizeof(Stored);
        const uint64_t off = (uint64_t)(uintptr_t)x % 16 / sizeof(Stored);
        head = off == 0 ? 0 : per - off < n ? per - off : n;
        vectors = (n - head) / per;
    }
};

/* Number i of a thread's elements of a tile: its index less that of the tile's first. */
template <class Stored, int threads> static __device__ __forceinline__ uint32_t place_of(int i)
{
    constexpr int per = 16 / sizeof(Stored);
    return (uint32_t)((i / per * threads + (int)threadIdx.x) * per + i % per);
}

/* Calls take(element i of a thread's, whether it is there, the index of the tile's first) for all tiles, the former two functions of i: all threads call
   it equally often. What is not whole vectors of a whole tile the last block does. */
template <class Stored, int threads, int loads, class Take>
static __device__ __forceinline__ void each_tile(const Stored *x, const cut_array<Stored> &cut, Take take)
{
    constexpr int per = 16 / sizeof(Stored);
    constexpr uint64_t tile = (uint64_t)threads * loads;
    const Stored *const middle = x + cut.head;
    const uint64_t whole = cut.vectors / tile;
    for (uint64_t number = blockIdx.x; number < whole; number += gridDim.x) {
        uint4 vectors[loads];
#pragma unroll
        for (int v = 0; v < loads; v++)
            vectors[v] = load_read_only(middle + (number * tile + (uint64_t)v * threads + threadIdx.x) * per);
        take([&](int i) { return vector_element<Stored>(vectors[i / per], i % per); }, [](int) { return true; }, cut.head + number * tile * per);
    }
    for (int end = 0; end < 2 && blockIdx.x == gridDim.x - 1; end++) { /* what lies before the first vector; behind the last tile */
        const uint64_t to = end == 0 ? cut.head : cut.n;
        for (uint64_t start = end == 0 ? 0 : cut.head + whole * tile * per; start < to; start += tile * per)
            take([&](int i) { return start + place_of<Stored, threads>(i) < to ? x[start + place_of<Stored, threads>(i)] : Stored(); },
                 [&](int i) { return start + place_of<Stored, threads>(i) < to; }, start);
    }
}

/* Calls take(element, is there) for all elements, and round() when each thread has had some. */
template <class Stored, int threads, int loads, class Take, class Round>
static __device__ __forceinline__ void each_element(const Stored *x, const cut_array<Stored> &cut, Take take, Round round)
{
    each_tile<Stored, threads, loads>(x, cut, [&](auto element, auto there, uint64_t) {
#pragma unroll
        for (int i = 0; i < (int)(loads * 16 / sizeof(Stored)); i++)
            take(element(i), there(i));
        round();
    });
}

static inline uint64_t blocks_for(uint64_t vectors, int threads, int loads, uint64_t most)
{
    const uint64_t tile = (uint64_t)threads * loads, tiles = (vectors + tile - 1) / tile;
    return tiles == 0 ? 1 : tiles < most ? tiles : most;
}

/* The passes that have files of their own. shared_bytes: what a block may have of shared memory. */
cudaError_t order_digits_launch(const struct order_work *work, int multiprocessors, void *stream);
cudaError_t order_table_launch(const struct order_work *work, int multiprocessors, size_t shared_bytes, void *stream);
cudaError_t order_even_launch(const struct order_work *work, int multiprocessors, size_t shared_bytes, void *stream);
