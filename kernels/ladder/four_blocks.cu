/* Four blocks a block: four loads in flight a thread.

   Idea: a block takes four blocks' worth of elements. Each thread starts four loads that do not depend on each other
   and then adds (four_elements in parts.cuh). A load takes hundreds of cycles. The memory can serve many at a time, and four
   from each thread keep it busier.

   What it fixes: memory parallelism: more bytes in flight, so more bandwidth. Also half as many trees as with two
   elements a thread, and half as many partials to store and to reduce.
   What it leaves: the number of elements a thread takes is fixed, so the number of blocks grows with the array. Each block
   is started for one short piece of work, and ends.

   If fewer than four of a thread's elements exist, those that exist are taken. The tutorial that this rung comes from
   tests only whether the fourth one exists, and drops the whole tail. */
#include "kernels/ladder/parts.cuh"

template <class Op, int block>
static __global__ void four_blocks_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials)
{
    __shared__ typename Op::value shared[block];
    const unsigned int t = threadIdx.x;

    shared[t] = four_elements<Op>(x, n, (uint64_t)blockIdx.x * (4 * block) + t, block);
    __syncthreads();
    block_tree<Op, block>(shared, t);
    if (t == 0)
        partials[blockIdx.x] = shared[0];
}

LADDER_RUNG(four_blocks, 4, 0)
