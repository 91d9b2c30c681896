/* Elements for the kernels along an axis. These have one instance for each value type; which element type it is, is known when they
   run: every thread takes the same branch. */
#pragma once

#include "fold/folds.h"
#include "fold/table.h"
#include "kernels/element.cuh"
#include "kernels/tuning.h"

/* Calls take(element<type>()), if Value is the value type of elements of that type. */
template <class Value, class Take> static __device__ __forceinline__ void with_element_of(allfold_type type, const Take &take)
{
    switch (type) {
#define CASE(ID, name, numpy, bytes, kind, value_name)                        \
    case ALLFOLD_##ID:                                                        \
        if constexpr (std::is_same<value_##value_name, Value>::value)         \
            take(element<ALLFOLD_##ID>());                                    \
        break;
        ALLFOLD_TYPES(CASE)
#undef CASE
    default:
        break;
    }
}

/* A split of a row: `length` elements, `stride` apart. aligned: they are neighbours, and the first is aligned to 16 bytes; it and others are not the row's, if that begins with
   element `before` of this vector. */
struct axis_run {
    const void *x;
    uint64_t length, stride;
    allfold_type type;
    bool aligned;
    uint32_t before;
    const uint4 *fetched; /* the vectors of a tile in shared memory, TILES_THREADS apart; NULL: they are not there */
};

/* The elements that a thread takes at a time, AXIS_SHAPE.tile of them: runs of 2^run_bits neighbours, of which the first begins with
   element `first` and each following `jump` further. */
struct axis_tile {
    uint64_t first, jump;
    int run_bits;
};
static __device__ __forceinline__ uint64_t tile_place(const struct axis_tile &tile, uint32_t i)
{
    return tile.first + (i >> tile.run_bits) * tile.jump + (i & ((1u << tile.run_bits) - 1));
}

/* What is before the row becomes `rest`. */
template <int count, class Value> static __device__ __forceinline__ void front_fill(Value *values, const struct axis_run &run, const struct axis_tile &tile, Value rest)
{
    if (tile.first < run.before)
#pragma unroll
        for (int i = 0; i + 1 < count; i++)
            values[i] = (uint32_t)i < run.before ? rest : values[i];
}

/* Runs are vectors: they are loaded as such if all are there and aligned. What lies before the row, or behind the end, becomes `rest`. */
template <class Element, class Value>
static __device__ __forceinline__ void vectors_load(Value *values, const struct axis_run &run, const struct axis_tile &tile, Value rest)
{
    typedef typename Element::stored stored;
    constexpr int count = Element::per_vector, vectors = AXIS_SHAPE.tile / count;
    const stored *const x = (const stored *)run.x + tile.first;
    const bool is_whole = tile.first + (vectors - 1) * tile.jump + count <= run.length; /* nearly all tiles are */
    if (is_whole && run.aligned) {
        uint4 loaded[vectors];
#pragma unroll
        for (int i = 0; i < vectors; i++)
            loaded[i] = run.fetched != nullptr ? run.fetched[i * TILES_THREADS] : __ldg((const uint4 *)(x + i * tile.jump));
#pragma unroll
        for (int i = 0; i < AXIS_SHAPE.tile; i++)
            values[i] = Element::load(vector_element<stored>(loaded[i / count], i % count));
        front_fill<count>(values, run, tile, rest);
        return;
    }
    if constexpr (sizeof(stored) < 4)
        if (is_whole) { /* all loads before any is used */
            stored loaded[AXIS_SHAPE.tile];
#pragma unroll
            for (int i = 0; i < AXIS_SHAPE.tile; i++)
                loaded[i] = x[i / count * tile.jump + i % count];
#pragma unroll
            for (int i = 0; i < AXIS_SHAPE.tile; i++)
                values[i] = Element::load(loaded[i]);
            return;
        }
#pragma unroll
    for (int i = 0; i < AXIS_SHAPE.tile; i++) {
        const uint64_t at = i / count * tile.jump + i % count;
        values[i] = tile.first + at >= run.before && tile.first + at < run.length ? Element::load(x[at]) : rest;
    }
}

/* The same, one by one. */
template <class Element, class Value>
static __device__ __forceinline__ void elements_load(Value *values, const struct axis_run &run, const struct axis_tile &tile, Value rest)
{
    typedef typename Element::stored stored;
    const uint64_t step = (tile.run_bits == 0 ? tile.jump : 1) * run.stride;
    const stored *const x = (const stored *)run.x + tile.first * run.stride;
    if (tile_place(tile, AXIS_SHAPE.tile - 1) < run.length) {
#pragma unroll
        for (int i = 0; i < AXIS_SHAPE.tile; i++)
            values[i] = Element::load(x[i * step]);
        return;
    }
#pragma unroll
    for (int i = 0; i < AXIS_SHAPE.tile; i++)
        values[i] = tile_place(tile, i) < run.length ? Element::load(x[i * step]) : rest;
}

/* The elements of a tile; those behind the end of the run are `rest`. The runs of a tile are vectors if stride is 1; else a tile is one
   run, or runs of one element. */
template <class Value>
static __device__ __forceinline__ void axis_load_tile(Value *values, const struct axis_run &run, const struct axis_tile &tile, Value rest)
{
    with_element_of<Value>(run.type, [&](auto element) {
        typedef decltype(element) Element;
        if (run.stride == 1)
            vectors_load<Element>(values, run, tile, rest);
        else
            elements_load<Element>(values, run, tile, rest);
    });
}

/* A thread's tiles of aligned vectors, which it copies to shared memory in the background, one after the other. */
struct axis_copies {
    const char *next, *end; /* end: of the run */
    uint32_t jump;          /* bytes from vector to vector */
    bool four;              /* vectors a tile, or two */
    __device__ __forceinline__ void fetch(uint4 *to)
    {
        const uint32_t step = (four ? 4 : 2) * jump;
        if (next + step - jump + 16 <= end) { /* it is whole */
            copy_async(to, (const uint4 *)next);
            copy_async(to + TILES_THREADS, (const uint4 *)(next + jump));
            if (four) {
                copy_async(to + 2 * TILES_THREADS, (const uint4 *)(next + 2 * jump));
                copy_async(to + 3 * TILES_THREADS, (const uint4 *)(next + 3 * jump));
            }
        }
        next += step;
        copy_commit();
    }
};
static __device__ __forceinline__ struct axis_copies axis_copies_of(const struct axis_run &run, const struct axis_tile &tile, int bytes_bits)
{
    const char *const x = (const char *)run.x;
    return {x + (tile.first << bytes_bits), x + (run.length << bytes_bits), (uint32_t)tile.jump << bytes_bits, bytes_bits == 2};
}

/* The element that changes no partial of a monoid, if there is one. */
template <class Value> struct value_limits;
#define DEFINE_LIMITS(nothing, name)                                                                    \
    template <> struct value_limits<value_##name> {                                                     \
        static __device__ __forceinline__ value_##name largest() { return limit_largest_##name; }       \
        static __device__ __forceinline__ value_##name smallest() { return limit_smallest_##name; }     \
    };
VALUES(DEFINE_LIMITS, )
#undef DEFINE_LIMITS

template <enum monoid monoid, class Value> static __device__ __forceinline__ Value neutral_of()
{
    constexpr enum neutral neutral = monoid_facts[monoid].neutral;
    if constexpr (neutral == NEUTRAL_ONE)
        return (Value)1;
    else if constexpr (neutral == NEUTRAL_LARGEST)
        return value_limits<Value>::largest();
    else if constexpr (neutral == NEUTRAL_SMALLEST || neutral == NEUTRAL_INFINITE)
        return value_limits<Value>::smallest();
    else
        return (Value)ZERO_IDENTITY;
}
