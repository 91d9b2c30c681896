/* Columns: elements that lie side by side, and are folded or normalised along an axis across them. A thread has one column, or two of 16 bits, which share a word, or those of a vector. */
#pragma once

#include "kernels/element.cuh"

#include "fold/axis.h"

template <class Element> struct column_words {
    typedef typename Element::stored stored;
    typedef std::conditional_t<sizeof(stored) == 8, uint64_t, uint32_t> word;
    static constexpr int side = sizeof(stored) < 4 ? 4 / sizeof(stored) : 1; /* columns that share a word */
    static constexpr int vectors = 4 / side;                                 /* of each column, in a tile of 64 bytes */
    static constexpr int rows = vectors * Element::per_vector;               /* words of a tile */
    static_assert(side <= 2, "pairs");
    word of[rows];

    static __device__ __forceinline__ word of_two(const stored &low, const stored &high)
    {
        uint16_t bits[2];
        static_assert(sizeof bits[0] == sizeof low, "of 16 bits");
        memcpy(&bits[0], &low, sizeof low);
        memcpy(&bits[1], &high, sizeof high);
        return (word)bits[1] << 16 | bits[0];
    }
    static __device__ __forceinline__ word least() { return vector_element<word>(least_vector<Element>(), 0); }
    /* Words of two elements that lie side by side, to words of two that lie along the axis, and back. */
    __device__ __forceinline__ void turn()
    {
        if constexpr (side == 2)
#pragma unroll
            for (int i = 0; i < rows; i += 2) {
                const word low = (of[i] & 0xffff) | of[i + 1] << 16, high = of[i] >> 16 | (of[i + 1] & 0xffff0000);
                of[i] = low, of[i + 1] = high;
            }
    }
    /* Vector v of column s, of words that are turned. */
    __device__ __forceinline__ uint4 vector(int s, int v) const
    {
        constexpr int count = sizeof(uint4) / sizeof(word);
        word found[count];
#pragma unroll
        for (int i = 0; i < count; i++)
            found[i] = of[side * (v * count + i) + s];
        return vector_of(found);
    }
    __device__ __forceinline__ void set(int s, int v, const uint4 &x)
    {
        constexpr int count = sizeof(uint4) / sizeof(word);
#pragma unroll
        for (int i = 0; i < count; i++)
            of[side * (v * count + i) + s] = vector_element<word>(x, i);
    }
    __device__ __forceinline__ void vectors_of(int s, uint4 *x) const
    {
#pragma unroll
        for (int v = 0; v < vectors; v++)
            x[v] = vector(s, v);
    }
};

/* Where a column of words, or vectors, begins, of `elements` elements each. */
static __device__ __forceinline__ uint64_t column_at(const struct box &box, uint64_t outer_stride, uint64_t column, uint64_t elements)
{
    const uint64_t inner = box.inner / elements, o = column < inner ? 0 : column / inner;
    return o * (outer_stride / elements) + (column - o * inner);
}

/* Strided rows that lie side by side are columns of one plane. */
static inline void columns_turn(struct box *box)
{
    if (box->inner == 1 && box->outer_stride == 1 && box->axis_stride != 1) {
        box->inner = box->outer;
        box->outer = 1;
    }
}
/* Whether columns come in groups of `count` elements, which are aligned. */
static inline bool columns_come_in(const void *x, allfold_type type, const struct box *box, uint64_t count)
{
    return (uintptr_t)x % (count * allfold_type_bytes(type)) == 0 && (box->axis_stride | box->inner) % count == 0
           && (box->outer == 1 || box->outer_stride % count == 0);
}
/* The same of columns of x and y, which are of one type. */
static inline void columns_turn(struct softmax_work *work)
{
    if (work->y_outer_stride == 1)
        columns_turn(&work->box);
}
static inline bool columns_come_in(const struct softmax_work *work, uint64_t count)
{
    struct box of_y = work->box;
    of_y.outer_stride = work->y_outer_stride;
    of_y.axis_stride = work->y_axis_stride;
    return columns_come_in(work->x, work->x_type, &work->box, count) && columns_come_in(work->y, work->y_type, &of_y, count);
}
