/* cub::DeviceReduce of the CUDA Toolkit, the yardstick of the ladder and of the benchmark: called as its documentation
   says, the temporary storage allocated beforehand. No part of the library. */
#ifndef ALLFOLD_CUB_REDUCE_CUH
#define ALLFOLD_CUB_REDUCE_CUH

#include <cub/device/device_reduce.cuh>
#include <cuda/functional>

#include <stdint.h>

/* *out, of type Out, in which it also adds up, becomes identity op x[0] op x[1] ...; only *scratch_bytes is written
   where scratch is NULL. Lengths are int where they fit, as everybody has it, else 64 bits. */
template <class Iterator, class Out, class Op>
static cudaError_t cub_reduce(Iterator x, uint64_t n, Op op, Out identity, Out *out, void *scratch,
                              size_t *scratch_bytes, cudaStream_t stream)
{
    if (n <= INT32_MAX)
        return cub::DeviceReduce::Reduce(scratch, *scratch_bytes, x, out, (int32_t)n, op, identity, stream);
    return cub::DeviceReduce::Reduce(scratch, *scratch_bytes, x, out, (int64_t)n, op, identity, stream);
}

#endif
