/* Strided index, in shared memory: divergence out, bank conflicts in.

   Idea: as in neighboured_packed.cu, thread t takes the pair at 2 * stride * t, so that the working threads are the
   first ones and fill whole warps.

   What it fixes: divergence, until the last warp, and `%`.
   What it leaves: shared memory has 32 banks, and serves a warp at once if each lane accesses another bank. Word w lies in
   bank w % 32, so lanes 2 * stride words apart meet in the same banks: two of them in the first step, then four, up to
   all 32 of them one after the other. The pattern that cost coalescing in global memory costs bank conflicts here. */
#include "kernels/ladder/parts.cuh"

template <class Op, int block>
static __global__ void strided_index_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials)
{
    __shared__ typename Op::value shared[block];
    const unsigned int t = threadIdx.x;

    shared[t] = element_at<Op>(x, n, (uint64_t)blockIdx.x * blockDim.x + t);
    __syncthreads();
    for (unsigned int stride = 1; stride < blockDim.x; stride *= 2) {
        const unsigned int index = 2 * stride * t;
        if (index < blockDim.x)
            shared[index] = Op::combine(shared[index], shared[index + stride]);
        __syncthreads();
    }
    if (t == 0)
        partials[blockIdx.x] = shared[0];
}

LADDER_RUNG(strided_index, 1, 0)
