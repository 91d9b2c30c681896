/* Last warp unrolled: no barrier of the block below 64 values.

   Idea: when 64 values are left, 32 threads have work, and they are one warp. The other warps are done. The first one
   goes on alone, in six unrolled steps, with warp-level barriers (last_warp_tree in parts.cuh).

   What it fixes: six of the loop's rounds, each with a barrier at which all warps of the block waited for one.
   What it leaves: the loop above 64 values, whose length the compiler does not know.

   In the tutorials these six steps have no barrier at all: the pointer is `volatile`, and the lanes of the warp are assumed
   to run in step. Since Volta (2017) each lane has its own program counter, and one may read before another has written.
   __syncwarp() costs next to nothing and makes it correct. The condition is `stride > 32`, not 16: 32 threads add 64
   values. */
#include "kernels/ladder/parts.cuh"

template <class Op, int block>
static __global__ void last_warp_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials)
{
    __shared__ typename Op::value shared[block];
    const unsigned int t = threadIdx.x;
    const uint64_t i = (uint64_t)blockIdx.x * (2 * blockDim.x) + t;

    shared[t] = Op::combine(element_at<Op>(x, n, i), element_at<Op>(x, n, i + blockDim.x));
    __syncthreads();
    for (unsigned int stride = blockDim.x / 2; stride > 32; stride /= 2) {
        if (t < stride)
            shared[t] = Op::combine(shared[t], shared[t + stride]);
        __syncthreads();
    }
    if (t < 32)
        last_warp_tree<Op>(shared, t);
    if (t == 0)
        partials[blockIdx.x] = shared[0];
}

LADDER_RUNG(last_warp, 2, 0)
