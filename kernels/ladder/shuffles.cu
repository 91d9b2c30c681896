/* Warp shuffles: lanes hand each other registers. After the tutorials: shuffles came with Kepler (2012).

   Idea: __shfl_down_sync gives a lane what another lane of its warp has in a register. Five of them reduce a warp,
   without shared memory and without a barrier, because the instruction itself waits for the lanes that it names. Each
   warp's result then goes to shared memory, one number a warp, and the first warp reduces those the same way
   (block_shuffles in parts.cuh): one barrier in all, for any block size.

   What it fixes: the shared tree: a block of 256 threads keeps 8 numbers in shared memory, not 256, and has one
   barrier, not three.
   What it leaves: loads one element wide, and the second launch. The engine's kernel, the next rung, loads 16 bytes at
   a time, several of them in flight, and
   lets one block combine the partials of all: one launch. */
#include "kernels/ladder/parts.cuh"

template <class Op, int block>
static __global__ void shuffles_kernel(const typename Op::value *x, uint64_t n, typename Op::value *partials)
{
    const typename Op::value value = block_shuffles<Op, block>(grid_stride<Op, block>(x, n));
    if (threadIdx.x == 0)
        partials[blockIdx.x] = value;
}

LADDER_RUNG(shuffles, 16, RUNG_ONE_WAVE)
