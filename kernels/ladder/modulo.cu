/* Modulo, in shared memory: the first kernel of the classic ladder (Harris).

   Idea: each thread loads one element into the block's shared memory, a small memory on the multiprocessor itself; then
   the tree of neighboured.cu runs there, and only the block's one result goes back to global memory.

   What it fixes: global traffic. Every element is read once, in coalesced order, and each block writes one number.
   What it leaves: the tree itself is the worst one: every warp diverges in every step, and `%` by a number that the
   compiler does not know takes dozens of instructions.

   Threads beyond the end of the array put in what adds nothing (0, or the smallest number for a maximum): they must not
   `return`, for the others would wait for them at the barrier. */
#include "kernels/ladder/parts.cuh"

template <class Op, int block>
static __global__ void modulo_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials)
{
    __shared__ typename Op::value shared[block];
    const unsigned int t = threadIdx.x;

    shared[t] = element_at<Op>(x, n, (uint64_t)blockIdx.x * blockDim.x + t);
    __syncthreads();
    for (unsigned int stride = 1; stride < blockDim.x; stride *= 2) {
        if (t % (2 * stride) == 0)
            shared[t] = Op::combine(shared[t], shared[t + stride]);
        __syncthreads();
    }
    if (t == 0)
        partials[blockIdx.x] = shared[0];
}

LADDER_RUNG(modulo, 1, 0)
