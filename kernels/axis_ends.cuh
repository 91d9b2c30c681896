/* The extremes of exact stats along an axis, with their indices. Included by axis_quick.cuh and axis_monoid.cuh. */
#pragma once

#include "kernels/axis_element.cuh"
#include "kernels/exact.cuh"

/* Indices of a tile that was taken as if its elements were neighbours, from AXIS_MARK on. */
constexpr uint64_t AXIS_MARK = (uint64_t)1 << 63;
template <class Fold>
static __device__ __forceinline__ void indices_place(typename Fold::partial *partial, const struct axis_tile &tile, uint64_t first)
{
    uint64_t *places[MONOID_INDICES_MAX];
    const int count = partial_indices(partial, places, Fold());
#pragma unroll
    for (int i = 0; i < count; i++)
        if (*places[i] - AXIS_MARK < (uint64_t)AXIS_SHAPE.tile)
            *places[i] = first + tile_place(tile, (uint32_t)(*places[i] - AXIS_MARK));
}

template <class Value> struct axis_ends {
    typedef fold_of<MONOID_argmin, Value> least;
    typedef fold_of<MONOID_argmax, Value> largest;
    typename least::partial min;
    typename largest::partial max;
    __device__ __forceinline__ void start()
    {
        min = least::identity();
        max = largest::identity();
    }
    __device__ __forceinline__ void take(const Value *x, uint32_t n, uint64_t first)
    {
        least::tile(&min, x, n, first);
        largest::tile(&max, x, n, first);
    }
    __device__ __forceinline__ void place(const struct axis_tile &tile, uint64_t first)
    {
        indices_place<least>(&min, tile, first);
        indices_place<largest>(&max, tile, first);
    }
    __device__ __forceinline__ void combine(const axis_ends &other)
    {
        least::combine(&min, &other.min);
        largest::combine(&max, &other.max);
    }
};
