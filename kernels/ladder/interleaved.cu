/* Interleaved, in global memory: the distances in reverse order.

   Idea: let the distance begin at half the block and shrink: thread t adds the element half a block on, then a quarter,
   down to 1. Sum and maximum are the same in this order.

       step 1    0+4  1+5  2+6  3+7     threads 0, 1, 2, 3 work
       step 2    0+2  1+3               threads 0, 1
       step 3    0+1                    thread 0

   What it fixes: in every step neighbouring threads touch neighbouring elements, so one load of a warp is one run of
   128 bytes: coalesced. There is no divergence, as in neighboured_packed.cu.
   What it leaves: every step still goes to global memory and back; half the threads never add anything, and each step
   has its loop, its test and its barrier. */
#include "kernels/ladder/rung.cuh"

template <class Op, int block>
static __global__ void interleaved_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials,
                                          typename Op::value *work)
{
    const unsigned int t = threadIdx.x, half = blockDim.x / 2;
    const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + t;

    if (t < half && i < n)
        work[i] = i + half < n ? Op::combine(x[i], x[i + half]) : x[i];
    __syncthreads();
    for (unsigned int stride = half / 2; stride > 0; stride /= 2) {
        if (t < stride && i + stride < n)
            work[i] = Op::combine(work[i], work[i + stride]);
        __syncthreads();
    }
    if (t == 0)
        partials[blockIdx.x] = i < n ? work[i] : Op::identity();
}

LADDER_RUNG(interleaved, 1, RUNG_IN_GLOBAL)
