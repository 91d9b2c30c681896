/* Four blocks, dynamic shared memory: its size is given at launch.

   Idea: an array declared `extern __shared__` without a size; how many bytes each block gets is an argument of the
   launch. One compiled kernel then works with any size, chosen on the machine it runs on. The size may exceed the 48
   KiB to which a declared array is limited.

   What it fixes: nothing that costs time here. Loads and tree are the same, with one element of shared memory a thread as
   before. It is on the ladder because the tutorials compare the two.
   What it leaves: the same as four_blocks.cu. */
#include "kernels/ladder/parts.cuh"

/* An `extern __shared__` array has one type in the whole program, so a template casts it to its own. */
template <class T> static __device__ __forceinline__ T *shared_memory()
{
    extern __shared__ __align__(16) unsigned char bytes[];
    return (T *)bytes;
}

template <class Op, int block>
static __global__ void four_blocks_dynamic_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials)
{
    typename Op::value *const shared = shared_memory<typename Op::value>();
    const unsigned int t = threadIdx.x;

    shared[t] = four_elements<Op>(x, n, (uint64_t)blockIdx.x * (4 * block) + t, block);
    __syncthreads();
    block_tree<Op, block>(shared, t);
    if (t == 0)
        partials[blockIdx.x] = shared[0];
}

LADDER_RUNG(four_blocks_dynamic, 4, RUNG_DYNAMIC_SHARED)
