/* The extremes of exact stats along an axis, with their indices. Included by axis_quick.cuh and axis_monoid.cuh. */
#pragma once

#include "kernels/axis_element.cuh"
#include "kernels/exact_monoid.cuh"

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

/* The extremes of the tiles of f32 that a thread takes. Shared memory keeps the tile of each extreme; which of its elements it is, is found once,
   at the end. What lies behind the end of a run is NaN. */
struct tiles_ends {
    enum { MIN, MAX };
    static constexpr uint32_t size = AXIS_SHAPE.tile;
    static constexpr size_t bytes = 4 * size * sizeof(float); /* for a thread: two tiles that are kept, and two that are loaded */
    float value[2];    /* NaN: there is none yet */
    uint64_t first[2]; /* of the tile */
    uint64_t nan_index;
    uint32_t nans;
    struct axis_tile tile; /* the last one, in the run that begins with element `begin` */
    uint64_t begin;
    uint4 *kept;
    __device__ __forceinline__ void start(void *room)
    {
        value[MIN] = value[MAX] = NAN;
        first[MIN] = first[MAX] = 0;
        nan_index = ALLFOLD_NO_INDEX;
        nans = 0;
        kept = (uint4 *)room + threadIdx.x;
    }
    __device__ __forceinline__ uint4 *keeps(int which, uint32_t quad) const { return kept + (which * (size / 4) + quad) * TILES_THREADS; }
    __device__ __forceinline__ uint4 *ahead(uint32_t turn) const { return keeps(2 + (int)turn, 0); }
    __device__ __forceinline__ void keep(int which, float extreme, const float *x)
    {
        value[which] = extreme;
        first[which] = tile.first;
#pragma unroll
        for (uint32_t i = 0; i < size; i += 4)
            *keeps(which, i / 4) = vector_of(x + i);
    }
    /* The largest of those that are numbers, of which there are less than `size`. */
    __device__ __forceinline__ float without_nan(const float *x, uint64_t length, uint32_t *numbers)
    {
        float largest = x[0];
#pragma unroll
        for (uint32_t i = size; i-- > 0;) {
            const bool is_nan = x[i] != x[i], is_element = is_nan && tile_place(tile, i) < length;
            largest = fmaxf(x[i], largest);
            *numbers -= is_nan ? 1 : 0;
            nans += is_element ? 1 : 0;
            if (is_element && begin + tile_place(tile, i) < nan_index)
                nan_index = begin + tile_place(tile, i);
        }
        return largest;
    }
    /* Gives how many elements of the tile are numbers. */
    __device__ __forceinline__ uint32_t take(const float *x, const struct axis_tile &next, uint64_t length, uint64_t run_begin)
    {
        float least = x[0], largest = x[0], least_of_rest = x[1], largest_of_rest = x[1];
        uint32_t numbers = size;
        tile = next;
        begin = run_begin;
#pragma unroll
        for (uint32_t i = 2; i < size; i += 2) { /* each waits for half as many before it */
            least = smaller_f32(x[i], least);
            least_of_rest = smaller_f32(x[i + 1], least_of_rest);
            largest = larger_f32(x[i], largest); /* passes NaN on */
            largest_of_rest = larger_f32(x[i + 1], largest_of_rest);
        }
        least = smaller_f32(least_of_rest, least);
        largest = larger_f32(largest_of_rest, largest);
        if (largest != largest)
            largest = without_nan(x, length, &numbers);
        if (!(value[MIN] <= least) && numbers > 0)
            keep(MIN, least, x);
        if (!(value[MAX] >= largest) && numbers > 0)
            keep(MAX, largest, x);
        return numbers;
    }
    template <class Partial> __device__ __forceinline__ void find(int which, Partial *extreme) const
    {
        uint32_t place = size;
        float found = value[which]; /* -0.0 and 0.0 tie */
#pragma unroll
        for (uint32_t quad = size / 4; quad-- > 0;) {
            const uint4 x = *keeps(which, quad);
#pragma unroll
            for (int i = 4; i-- > 0;) {
                place = vector_element<float>(x, i) == value[which] ? quad * 4 + i : place;
                found = vector_element<float>(x, i) == value[which] ? vector_element<float>(x, i) : found;
            }
        }
        if (value[which] == value[which]) {
            extreme->value = found;
            extreme->index = begin + tile_place({first[which], tile.jump, tile.run_bits}, place);
        }
        extreme->nans = nans;
        extreme->nan_index = nan_index;
    }
};
