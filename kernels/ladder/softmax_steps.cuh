/* The kernels that the first two rungs of the softmax ladder are made of. Any number of blocks; grid_stride and
   block_shuffles are in parts.cuh. */
#pragma once

#include "kernels/ladder/parts.cuh"
#include "kernels/ladder/softmax.h"

/* A partial for each block: of one block, the maximum, or the sum, of all. */
template <class Op> static __global__ void softmax_reduce_kernel(const float *x, uint64_t n, float *partials)
{
    const float value = block_shuffles<Op, SOFTMAX_BLOCK>(grid_stride<Op, SOFTMAX_BLOCK>(x, n));
    if (threadIdx.x == 0)
        partials[blockIdx.x] = value;
}

/* y = exp(x - max), and each block's part of their sum. */
static __global__ void softmax_exponentials_kernel(const float *x, uint64_t n, const float *max, float *y,
                                                   float *partials)
{
    const uint64_t stride = (uint64_t)gridDim.x * SOFTMAX_BLOCK;
    const float largest = *max;
    float sum = 0.0f;
    for (uint64_t i = (uint64_t)blockIdx.x * SOFTMAX_BLOCK + threadIdx.x; i < n; i += stride) {
        const float exponential = expf(x[i] - largest);
        y[i] = exponential;
        sum += exponential;
    }
    sum = block_shuffles<sum_of<float>, SOFTMAX_BLOCK>(sum);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

static __global__ void softmax_divide_kernel(float *y, uint64_t n, const float *sum)
{
    const uint64_t stride = (uint64_t)gridDim.x * SOFTMAX_BLOCK;
    const float total = *sum;
    for (uint64_t i = (uint64_t)blockIdx.x * SOFTMAX_BLOCK + threadIdx.x; i < n; i += stride)
        y[i] /= total;
}
