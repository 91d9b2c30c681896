/* Elements for the kernels along an axis. These have one instance for each value type; which element type it is, is known when they
   run: every thread takes the same branch. */
#pragma once

#include "kernels/element.cuh"
#include "kernels/tuning.h"

/* What Value is the value type of element type number `type`. */
#define AXIS_CASE(ID, name, numpy, bytes, kind, value_name)                        \
    case ALLFOLD_##ID:                                                             \
        if constexpr (std::is_same<value_##value_name, Value>::value)              \
            return axis_load_as<element<ALLFOLD_##ID>>(AXIS_ARGUMENTS);            \
        break;

template <class Element, class Value> static __device__ __forceinline__ void axis_load_as(Value *value, const void *x, uint64_t at)
{
    *value = Element::load(((const typename Element::stored *)x)[at]);
}

/* Element x[at]. */
template <class Value> static __device__ __forceinline__ Value axis_load(const void *x, uint64_t at, allfold_type type)
{
    Value value = 0;
    const auto load = [&] {
        switch (type) {
#define AXIS_ARGUMENTS &value, x, at
            ALLFOLD_TYPES(AXIS_CASE)
#undef AXIS_ARGUMENTS
        default:
            break;
        }
    };
    load();
    return value;
}

template <class Element, class Value>
static __device__ __forceinline__ void axis_load_as(Value *values, const void *x, uint64_t at, uint64_t stride, bool aligned)
{
    typedef typename Element::stored stored;
    const stored *const from = (const stored *)x + at;
    if (aligned) {
        constexpr int vectors = AXIS_SHAPE.tile / Element::per_vector;
        uint4 loaded[vectors];
#pragma unroll
        for (int i = 0; i < vectors; i++)
            loaded[i] = load_read_only(from + i * Element::per_vector);
#pragma unroll
        for (int i = 0; i < AXIS_SHAPE.tile; i++)
            values[i] = Element::load(vector_element<stored>(loaded[i / Element::per_vector], i % Element::per_vector));
    } else {
#pragma unroll
        for (int i = 0; i < AXIS_SHAPE.tile; i++)
            values[i] = Element::load(from[i * stride]);
    }
}

/* AXIS_SHAPE.tile elements from x[at] on, stride apart; aligned: they are neighbours, at a multiple of 16 bytes. */
template <class Value>
static __device__ __forceinline__ void axis_load_tile(Value *values, const void *x, uint64_t at, uint64_t stride, allfold_type type,
                                                      bool aligned)
{
    switch (type) {
#define AXIS_ARGUMENTS values, x, at, stride, aligned
        ALLFOLD_TYPES(AXIS_CASE)
#undef AXIS_ARGUMENTS
    default:
        break;
    }
}
#undef AXIS_CASE
