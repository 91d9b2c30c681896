/* Softmax of columns of a few elements, which stay in registers: each is read once and written once.

     softmax_few   a thread keeps the columns that share a vector, or as many that lie apart
         loads all; for each column: its maximum, terms, their sum, results
         stores all */
#pragma once

#include "kernels/axis_softmax_exact.cuh"
#include "kernels/columns.cuh"
#include "kernels/kernels.h"

/* A thread has the columns of a vector, or, where vectors are not aligned, as many, of which each is the next thread's neighbour. */
struct few_cut {
    struct softmax_work work;
    uint64_t columns;
    bool vectors;
};

/* Without the first element, and with another one at the end. */
template <class Stored> static __device__ __forceinline__ uint4 vector_shifted(const uint4 &x, const Stored &last)
{
    uint64_t bits = 0;
    memcpy(&bits, &last, sizeof last);
    if constexpr (sizeof last == 8)
        return make_uint4(x.z, x.w, (uint32_t)bits, (uint32_t)(bits >> 32));
    else if constexpr (sizeof last == 4)
        return make_uint4(x.y, x.z, x.w, (uint32_t)bits);
    else
        return make_uint4(x.x >> 16 | x.y << 16, x.y >> 16 | x.z << 16, x.z >> 16 | x.w << 16, x.w >> 16 | (uint32_t)bits << 16);
}

/* x: the first element of every vector is one of a column, whose results become their last ones. */
template <class Row> static __device__ __forceinline__ void few_column(uint4 x[FEW_SHAPE.most], uint32_t length)
{
    typedef typename Row::element Element;
    typedef typename Element::stored stored;
    constexpr uint32_t per_vector = Element::per_vector, vectors = FEW_SHAPE.most / per_vector;
    const stored fill = vector_element<stored>(Row::missing_costs ? x[0] : least_vector<Element>(), 0);
    stored elements[FEW_SHAPE.most];
#pragma unroll
    for (uint32_t i = 0; i < FEW_SHAPE.most; i++)
        elements[i] = i < length ? vector_element<stored>(x[i], 0) : fill;
    uint4 of[vectors];
#pragma unroll
    for (uint32_t v = 0; v < vectors; v++)
        of[v] = vector_of(elements + v * per_vector);
    typename Row::real max = -INFINITY;
    Row::template take_max<vectors>(&max, of);
    typename Row::terms terms(max);
    typename Row::kept kept[vectors] = {};
    const auto results_of = [&] {
        if constexpr (!Row::heavy) {
            terms.template take<vectors>(of, kept, (length + per_vector - 1) / per_vector);
            return Row::results_of_block(terms.sum_by([](auto *, const auto &) {}));
        } else {
            if constexpr (Row::missing_costs)
                terms.template take<vectors>(of, kept, length);
            else
                terms.template take<vectors>(of, kept);
            return results_of_row<Row>(terms.own());
        }
    };
    const typename Row::results results = results_of();
#pragma unroll
    for (uint32_t v = 0; v < vectors; v++) {
        if (v * per_vector >= length)
            break;
        const uint4 y = results.of(kept[v]);
#pragma unroll
        for (uint32_t i = 0; i < per_vector; i++)
            x[v * per_vector + i] = vector_shifted(x[v * per_vector + i], vector_element<stored>(y, (int)i));
    }
}

template <class Row> static __global__ void __launch_bounds__(FEW_SHAPE.threads, FEW_SHAPE.blocks(Row::heavy))
softmax_few(const __grid_constant__ struct few_cut cut)
{
    typedef typename Row::element Element;
    typedef typename Element::stored stored;
    constexpr uint32_t side = Element::per_vector, most = FEW_SHAPE.most;
    const struct softmax_work &work = cut.work;
    const uint32_t length = (uint32_t)work.box.length;
    /* Calls with_column(s, plane, i) for those of the thread's columns that there are, of which each is column i of a plane. */
    const auto each_column = [&](const auto &with_column) {
        const uint64_t first = (uint64_t)blockIdx.x * (side * FEW_SHAPE.threads) + threadIdx.x, inner = work.box.inner, plane = first < inner ? 0 : first / inner;
#pragma unroll
        for (uint32_t s = 0; s < side; s++) {
            const uint64_t at = first - plane * inner + s * FEW_SHAPE.threads, over = at < inner ? 0 : at - inner < inner ? 1 : (uint32_t)at / (uint32_t)inner; /* inner is small */
            if (first + s * FEW_SHAPE.threads < cut.columns)
                with_column(s, plane + over, at - over * inner);
        }
    };
    const uint64_t vector = (uint64_t)blockIdx.x * FEW_SHAPE.threads + threadIdx.x;
    const bool is_here = vector < cut.columns / side;
    uint4 x[most];
    if (cut.vectors) {
        const uint64_t stride = work.box.axis_stride / side;
        const uint4 *const from = (const uint4 *)work.x + (is_here ? column_at(work.box, work.box.outer_stride, vector, side) : 0);
#pragma unroll
        for (uint32_t i = 0; i < most; i++)
            x[i] = is_here && i < length ? load_read_only(from + i * stride) : least_vector<Element>();
    } else {
        stored elements[most][side];
#pragma unroll
        for (uint32_t i = 0; i < most * side; i++)
            elements[i / side][i % side] = vector_element<stored>(least_vector<Element>(), 0);
        each_column([&](uint32_t s, uint64_t plane, uint64_t column) {
            const stored *const from = (const stored *)work.x + plane * work.box.outer_stride + column;
#pragma unroll
            for (uint32_t i = 0; i < most; i++)
                if (i < length)
                    elements[i][s] = from[i * work.box.axis_stride];
        });
#pragma unroll
        for (uint32_t i = 0; i < most; i++)
            x[i] = vector_of(elements[i]);
    }
#pragma unroll (Row::heavy ? 1 : (int)side)
    for (uint32_t s = 0; s < side; s++)
        few_column<Row>(x, length);
    if (cut.vectors) {
        const uint64_t stride = work.y_axis_stride / side;
        uint4 *const to = (uint4 *)work.y + (is_here ? column_at(work.box, work.y_outer_stride, vector, side) : 0);
#pragma unroll
        for (uint32_t i = 0; i < most; i++)
            if (is_here && i < length)
                __stcs(to + i * stride, x[i]);
    } else
        each_column([&](uint32_t s, uint64_t plane, uint64_t column) {
            stored *const to = (stored *)work.y + plane * work.y_outer_stride + column;
#pragma unroll
            for (uint32_t i = 0; i < most; i++)
                if (i < length)
                    to[i * work.y_axis_stride] = vector_element<stored>(x[i], (int)s);
        });
}

template <class Element, bool logarithm, bool exact> static cudaError_t few_start(const struct softmax_work *work, cudaStream_t stream)
{
    const struct few_cut cut = {*work, work->box.outer * work->box.inner, columns_come_in(work, Element::per_vector)};
    constexpr uint64_t of_block = FEW_SHAPE.threads * Element::per_vector;
    const uint64_t blocks = (cut.columns + of_block - 1) / of_block;
    const cudaLaunchConfig_t config = launch_config(blocks, FEW_SHAPE.threads, stream);
    return blocks > INT32_MAX ? cudaErrorInvalidValue : cudaLaunchKernelEx(&config, softmax_few<row_of<Element, logarithm, exact, !exact>>, cut);
}
