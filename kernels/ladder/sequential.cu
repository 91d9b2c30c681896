/* Sequential addressing, in shared memory: no divergence and no bank conflicts.

   Idea: as in interleaved.cu, the distance begins at half the block and shrinks: thread t adds element t + stride to
   element t. A warp's lanes touch 32 words in a row, each in a bank of its own.

   What it fixes: bank conflicts.
   What it leaves: half of the threads load an element and never add one: in the very first step they are idle, but they hold
   registers and warp slots of the multiprocessor to the end. */
#include "kernels/ladder/parts.cuh"

template <class Op, int block>
static __global__ void sequential_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials)
{
    __shared__ typename Op::value shared[block];
    const unsigned int t = threadIdx.x;

    shared[t] = element_at<Op>(x, n, (uint64_t)blockIdx.x * blockDim.x + t);
    __syncthreads();
    for (unsigned int stride = blockDim.x / 2; stride > 0; stride /= 2) {
        if (t < stride)
            shared[t] = Op::combine(shared[t], shared[t + stride]);
        __syncthreads();
    }
    if (t == 0)
        partials[blockIdx.x] = shared[0];
}

LADDER_RUNG(sequential, 1, 0)
