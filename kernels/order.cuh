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

/* Calls take(element, first, its index less first, is there) for all elements, and round(first) when each thread has had some: all threads call both
   equally often. */
template <class Stored, int threads, int loads, class Take, class Round>
static __device__ __forceinline__ void each_element(const Stored *x, const cut_array<Stored> &cut, Take take, Round round)
{
    constexpr int per = 16 / sizeof(Stored);
    constexpr uint64_t tile = (uint64_t)threads * loads;
    const Stored *const middle = x + cut.head;
    for (uint64_t first = blockIdx.x * tile; first < cut.vectors; first += gridDim.x * tile) {
        const uint64_t start = cut.head + first * per;
        uint4 vectors[loads];
        if (first + tile <= cut.vectors) {
#pragma unroll
            for (int v = 0; v < loads; v++)
                vectors[v] = load_read_only(middle + (first + (uint64_t)v * threads + threadIdx.x) * per);
#pragma unroll
            for (int v = 0; v < loads; v++)
#pragma unroll
                for (int e = 0; e < per; e++)
                    take(vector_element<Stored>(vectors[v], e), start, (v * threads + threadIdx.x) * per + e, true);
        } else {
            for (int v = 0; v < loads; v++) {
                const uint64_t at = first + (uint64_t)v * threads + threadIdx.x;
                const bool there = at < cut.vectors;
                const uint4 vector = there ? load_read_only(middle + at * per) : make_uint4(0, 0, 0, 0);
#pragma unroll
                for (int e = 0; e < per; e++)
                    take(vector_element<Stored>(vector, e), start, (v * threads + threadIdx.x) * per + e, there);
            }
        }
        round(start);
    }
    for (int end = 0; end < 2 && blockIdx.x == gridDim.x - 1; end++) { /* what lies before the first vector; behind the last */
        const uint64_t start = end == 0 ? 0 : cut.head + cut.vectors * per, at = start + threadIdx.x;
        const bool there = at < (end == 0 ? cut.head : cut.n);
        take(there ? x[at] : Stored(), start, threadIdx.x, there);
        round(start);
    }
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
