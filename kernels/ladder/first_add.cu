/* First add on load: two elements a thread.

   Idea: a block takes twice as many elements as it has threads, and each thread adds two of them as it loads: the step that
   left half of the threads idle is done before the tree begins. The two elements are a block apart, so both loads are
   coalesced.

   What it fixes: idle threads. There are also half as many blocks, so half as many trees, for the same array.
   What it leaves: most of the time for an element is overhead: the loop, its tests and its barriers. */
#include "kernels/ladder/parts.cuh"

template <class Op, int block>
static __global__ void first_add_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials)
{
    __shared__ typename Op::value shared[block];
    const unsigned int t = threadIdx.x;
    const uint64_t i = (uint64_t)blockIdx.x * (2 * blockDim.x) + t;

    shared[t] = Op::combine(element_at<Op>(x, n, i), element_at<Op>(x, n, i + blockDim.x));
    __syncthreads();
    for (unsigned int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride)
            shared[t] = Op::combine(shared[t], shared[t + stride]);
        __syncthreads();
    }
    if (t == 0)
        partials[blockIdx.x] = shared[0];
}

LADDER_RUNG(first_add, 2, 0)
