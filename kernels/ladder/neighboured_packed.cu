/* Neighboured, packed: the same additions, done by other threads.

   Idea: in every step the first threads of the block do the work: thread t takes the pair at 2 * stride * t. Which
   elements meet is as in neighboured.cu; only the thread that combines them changes.

       step 1    0+1     2+3     4+5     6+7     threads 0, 1, 2, 3 work
       step 2    0+2             4+6             threads 0, 1
       step 3    0+4                             thread 0

   What it fixes: divergence. Working threads fill whole warps, and a warp without work skips the step; only when fewer
   than 32 pairs are left does a warp diverge. `%` is gone.
   What it leaves: neighbouring threads touch elements 2 * stride apart, so a warp's one load is spread over more and
   more lines of memory, most bytes of which are not used (uncoalesced). */
#include "kernels/ladder/rung.cuh"

template <class Op, int block>
static __global__ void neighboured_packed_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials,
                                                 typename Op::value *work)
{
    const unsigned int t = threadIdx.x;
    const uint64_t first = (uint64_t)blockIdx.x * blockDim.x, pair = first + 2 * t;

    if (2 * t < blockDim.x && pair < n)
        work[pair] = pair + 1 < n ? Op::combine(x[pair], x[pair + 1]) : x[pair];
    __syncthreads();
    for (unsigned int stride = 2; stride < blockDim.x; stride *= 2) {
        const unsigned int index = 2 * stride * t;
        if (index < blockDim.x && first + index + stride < n)
            work[first + index] = Op::combine(work[first + index], work[first + index + stride]);
        __syncthreads();
    }
    if (t == 0)
        partials[blockIdx.x] = first < n ? work[first] : Op::identity();
}

LADDER_RUNG(neighboured_packed, 1, RUNG_IN_GLOBAL)
