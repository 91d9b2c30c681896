/* Pieces that several rungs have in common; the first rung that uses one explains it. */
#pragma once

#include "kernels/ladder/rung.cuh"

/* x[i], or the identity beyond the end of the array, so that a block's tail needs no separate code. */
template <class Op>
static __device__ __forceinline__ typename Op::value element_at(const typename Op::value *x, uint64_t n, uint64_t i)
{
    return i < n ? x[i] : Op::identity();
}

/* last_warp.cu: shared[0 .. 64) becomes shared[0]. Called by all of the threads 0 to 31 of a block. Each step reads what
   other lanes wrote in the step before, so each ends with a warp-level barrier: lanes need not run in step. */
template <class Op> static __device__ __forceinline__ void last_warp_tree(typename Op::value *shared, unsigned int lane)
{
#pragma unroll
    for (unsigned int stride = 32; stride > 0; stride /= 2) {
        if (lane < stride)
            shared[lane] = Op::combine(shared[lane], shared[lane + stride]);
        __syncwarp();
    }
}

/* unrolled.cu: shared[0 .. block) becomes shared[0]. All threads of the block call it, after a barrier. block is a constant, so the compiler
   unrolls the loop, and leaves out the steps that a block of this size does not need. */
template <class Op, int block>
static __device__ __forceinline__ void block_tree(typename Op::value *shared, unsigned int t)
{
#pragma unroll
    for (unsigned int stride = block / 2; stride > 32; stride /= 2) {
        if (t < stride)
            shared[t] = Op::combine(shared[t], shared[t + stride]);
        __syncthreads();
    }
    if (t < 32)
        last_warp_tree<Op>(shared, t);
}

/* four_blocks.cu: x[i], x[i + step], x[i + 2 step] and x[i + 3 step], all four in flight before the first is used. */
template <class Op>
static __device__ __forceinline__ typename Op::value four_elements(const typename Op::value *x, uint64_t n, uint64_t i,
                                                                   unsigned int step)
{
    typedef typename Op::value T;
    if (i + 3 * step < n) {
        const T a = x[i], b = x[i + step], c = x[i + 2 * step], d = x[i + 3 * step];
        return Op::combine(Op::combine(a, b), Op::combine(c, d));
    }
    const T a = element_at<Op>(x, n, i), b = element_at<Op>(x, n, i + step), c = element_at<Op>(x, n, i + 2 * step);
    return Op::combine(Op::combine(a, b), c);
}

/* many_elements.cu: this thread's share of x, four elements a round, a grid's width from round to round. */
template <class Op, int block>
static __device__ __forceinline__ typename Op::value grid_stride(const typename Op::value *x, uint64_t n)
{
    typedef typename Op::value T;
    const uint64_t stride = (uint64_t)gridDim.x * (4 * block);
    uint64_t i = (uint64_t)blockIdx.x * (4 * block) + threadIdx.x;
    T value = Op::identity();
    for (; i + 3 * block < n; i += stride) {
        const T a = x[i], b = x[i + block], c = x[i + 2 * block], d = x[i + 3 * block];
        value = Op::combine(value, Op::combine(Op::combine(a, b), Op::combine(c, d)));
    }
    for (; i < n; i += block) /* of the last round up to three are left */
        value = Op::combine(value, x[i]);
    return value;
}

/* shuffles.cu: the values of a warp's 32 lanes, combined in lane 0. For whole warps. */
template <class T> static __device__ __forceinline__ T shuffle_down(T value, int lanes)
{
    return __shfl_down_sync(0xffffffffu, value, lanes);
}
template <class Op>
static __device__ __forceinline__ typename Op::value warp_shuffles(typename Op::value value)
{
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        value = Op::combine(value, shuffle_down(value, lanes));
    return value;
}

/* The same for a block: thread 0 has the result. All threads of the block call it; between two calls a __syncthreads. */
template <class Op, int block>
static __device__ __forceinline__ typename Op::value block_shuffles(typename Op::value value)
{
    __shared__ typename Op::value shared[block / 32];
    const unsigned int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    value = warp_shuffles<Op>(value);
    if (lane == 0)
        shared[warp] = value;
    __syncthreads();
    if (warp == 0)
        value = warp_shuffles<Op>(lane < block / 32 ? shared[lane] : Op::identity());
    return value;
}
