/* Copies elements from one layout to another, of which any dimension may have any stride:

     each thread, for every (threads of the grid)-th element:
         its number, the last dimension the fastest, is taken apart to a place in each dimension
         to[sum of place * to_step] = from[sum of place * from_step]

   Pieces of an array whose dimensions or strides no other kernel takes become dense so, and the other way round (core/load.c). */
#include "kernels/kernels.h"
#include "kernels/element.cuh"
#include "kernels/tuning.h"

/* Number: counts the elements; divisions of 32 bits are several times as quick as those of 64. */
template <class Stored, class Number>
__global__ void __launch_bounds__(STRIDED_SHAPE.threads, STRIDED_SHAPE.blocks)
    strided_kernel(const __grid_constant__ struct strided_copy copy, Number count)
{
    const Stored *const from = (const Stored *)copy.from;
    Stored *const to = (Stored *)copy.to;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        Number rest = (Number)i;
        int64_t from_at = 0, to_at = 0;
        for (uint32_t d = copy.dimensions; d-- > 0;) {
            const Number extent = (Number)copy.extent[d], place = rest % extent;
            rest /= extent;
            from_at += (int64_t)place * copy.from_step[d];
            to_at += (int64_t)place * copy.to_step[d];
        }
        to[to_at] = from[from_at];
    }
}

template <class Stored> static cudaError_t strided_start(const struct strided_copy &copy, uint64_t count, int multiprocessors, void *stream)
{
    const uint64_t blocks = (count + STRIDED_SHAPE.threads - 1) / STRIDED_SHAPE.threads, most = (uint64_t)multiprocessors * STRIDED_SHAPE.blocks;
    const cudaLaunchConfig_t config = launch_config(blocks < most ? blocks : most, STRIDED_SHAPE.threads, stream);
    if (count <= UINT32_MAX)
        return cudaLaunchKernelEx(&config, strided_kernel<Stored, uint32_t>, copy, (uint32_t)count);
    return cudaLaunchKernelEx(&config, strided_kernel<Stored, uint64_t>, copy, count);
}

int strided_launch(const struct strided_copy *copy, int multiprocessors, void *stream)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < copy->dimensions; d++)
        count *= copy->extent[d];
    switch (copy->bytes) {
    case 1: return strided_start<uint8_t>(*copy, count, multiprocessors, stream);
    case 2: return strided_start<uint16_t>(*copy, count, multiprocessors, stream);
    case 4: return strided_start<uint32_t>(*copy, count, multiprocessors, stream);
    case 8: return strided_start<uint64_t>(*copy, count, multiprocessors, stream);
    default: return cudaErrorInvalidValue;
    }
}
