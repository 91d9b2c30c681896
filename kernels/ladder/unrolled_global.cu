/* Unrolled, in global memory: no loop, and the last warp apart.

   Idea: the same steps as in interleaved.cu, but the block size is a constant, so that the compiler can write out the
   steps one behind the other; and from 32 pairs on only the first warp has work, so its barriers are warp-level.

   What it fixes: the loop's counting and testing, and six barriers of the whole block.
   What it leaves: the traffic. For n elements 2 n are read and n written in global memory, although reading n would
   do. The caches serve much of it, which only hides the cost.

   The tutorials let the last warp run without any barrier, through `volatile`, assuming that its lanes run in step. Since
   Volta they need not, and that is a race. __syncwarp() waits for the lanes and makes what they wrote visible. */
#include "kernels/ladder/rung.cuh"

template <class Op, int block>
static __global__ void unrolled_global_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials,
                                              typename Op::value *work)
{
    const unsigned int t = threadIdx.x;
    const uint64_t i = (uint64_t)blockIdx.x * block + t;

    if (t < block / 2 && i < n)
        work[i] = i + block / 2 < n ? Op::combine(x[i], x[i + block / 2]) : x[i];
    __syncthreads();
#pragma unroll
    for (unsigned int stride = block / 4; stride > 32; stride /= 2) {
        if (t < stride && i + stride < n)
            work[i] = Op::combine(work[i], work[i + stride]);
        __syncthreads();
    }
    if (t < 32) {
        /* a block of 64 threads has done the step of 32 above */
#pragma unroll
        for (unsigned int stride = block / 4 < 32 ? block / 4 : 32; stride > 0; stride /= 2) {
            if (t < stride && i + stride < n)
                work[i] = Op::combine(work[i], work[i + stride]);
            __syncwarp();
        }
    }
    if (t == 0)
        partials[blockIdx.x] = i < n ? work[i] : Op::identity();
}

LADDER_RUNG(unrolled_global, 1, RUNG_IN_GLOBAL)
