/* Many elements a thread: a grid of fixed size walks over the array. The end of the classic ladder (Harris's seventh
   kernel).

   Idea: start as many blocks as the GPU holds at one time and no more, and let each thread go on: four elements, and
   the next four a grid's width further on (grid_stride in parts.cuh), before the block's tree runs once. With p threads
   for n elements each thread adds n / p numbers in a row, and the tree's steps are paid once a thread, not once for
   every few elements: the work is O(n) again (cost-optimal: Brent's theorem), where one element a thread makes it O(n
   log n).

   What it fixes: the tree's cost vanishes for large arrays; blocks are not replaced all the time; and there are so few
   partials that what is left for the second level is next to nothing.
   What it leaves: the tree still goes through shared memory; loads are one element wide; a second launch is needed. */
#include "kernels/ladder/parts.cuh"

template <class Op, int block>
static __global__ void many_elements_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials)
{
    __shared__ typename Op::value shared[block];
    const unsigned int t = threadIdx.x;

    shared[t] = grid_stride<Op, block>(x, n);
    __syncthreads();
    block_tree<Op, block>(shared, t);
    if (t == 0)
        partials[blockIdx.x] = shared[0];
}

/* a small array gets fewer blocks, with 16 elements a thread */
LADDER_RUNG(many_elements, 16, RUNG_ONE_WAVE)
