/* Neighboured, in global memory: the first kernel that everyone writes.

   Idea: a block reduces as many elements as it has threads. In step one every second thread adds its right neighbour to
   its own element; in step two every fourth thread adds the element two places on; and so on, the distance doubling,
   until thread 0 holds the block's sum: log2(block) steps instead of block - 1 additions in a row.

       step 1    0+1     2+3     4+5     6+7     threads 0, 2, 4, 6 work
       step 2    0+2             4+6             threads 0, 4
       step 3    0+4                             thread 0

   What it fixes: thousands of threads work where one did (host_recursion.cu).
   What it leaves: a warp's 32 threads share one instruction stream, so threads that do not work wait for those that do.
   In step one half of each warp waits, in step five 31 of 32 threads, and every warp goes through every step:
   divergence. All intermediate values go through global memory, and `%` is a slow instruction.

   The tutorials add in place and destroy the input. Here the first step writes its sums to a work space, where the
   others go on: as many bytes as in place. And they drop elements beyond the last whole block; here a thread whose
   neighbour does not exist keeps what it has, and every thread reaches every barrier. */
#include "kernels/ladder/rung.cuh"

template <class Op, int block>
static __global__ void neighboured_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials,
                                          typename Op::value *work)
{
    const unsigned int t = threadIdx.x;
    const uint64_t i = (uint64_t)blockIdx.x * blockDim.x + t;

    if (t % 2 == 0 && i < n)
        work[i] = i + 1 < n ? Op::combine(x[i], x[i + 1]) : x[i];
    __syncthreads();
    for (unsigned int stride = 2; stride < blockDim.x; stride *= 2) {
        if (t % (2 * stride) == 0 && i + stride < n)
            work[i] = Op::combine(work[i], work[i + stride]);
        __syncthreads();
    }
    if (t == 0)
        partials[blockIdx.x] = i < n ? work[i] : Op::identity();
}

LADDER_RUNG(neighboured, 1, RUNG_IN_GLOBAL)
