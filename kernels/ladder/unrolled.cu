/* Completely unrolled: the block size is known to the compiler.

   Idea: make the block size a template parameter. For each size the compiler makes a kernel of its own, in which the
   tree is a straight run of steps (block_tree in parts.cuh) and a test such as `is the block larger than 256` costs
   nothing: it was answered when the kernel was compiled. The host chooses the kernel for the block size it launches.

   What it fixes: the loop: its counter, its tests, its jumps.
   What it leaves: the tree is as short as it gets, but each thread brings only two elements to it. Most of a block's
   life is waiting: for its two loads, at its barriers, and to be replaced by the next block. */
#include "kernels/ladder/parts.cuh"

template <class Op, int block>
static __global__ void unrolled_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials)
{
    __shared__ typename Op::value shared[block];
    const unsigned int t = threadIdx.x;
    const uint64_t i = (uint64_t)blockIdx.x * (2 * block) + t;

    shared[t] = Op::combine(element_at<Op>(x, n, i), element_at<Op>(x, n, i + block));
    __syncthreads();
    block_tree<Op, block>(shared, t);
    if (t == 0)
        partials[blockIdx.x] = shared[0];
}

LADDER_RUNG(unrolled, 2, 0)
