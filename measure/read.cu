/* Reads memory and does nothing else: to find ceilings (ceiling.cu), and to clear caches between runs. */
#include "measure/gpu.cuh"

/* Each thread starts `loads` loads of 16 bytes before it uses the first. rounds: how many adjacent rounds a block takes before it
   ends; 0: blocks stay and go through x interleaved. The compiler must not drop the loads, so the threads combine what they read,
   and store it if it equals `never`, a value that 128 bits of data do not hit. */
template <int loads>
static __global__ void read_kernel(const uint4 *x, uint64_t all_vectors, uint64_t rounds, uint4 *sink, uint32_t never)
{
    const uint64_t each = (uint64_t)loads * blockDim.x, stride = rounds > 0 ? each : each * gridDim.x;
    const uint64_t first = blockIdx.x * (rounds > 0 ? rounds * each : each), last = first + rounds * each;
    const uint64_t vectors = rounds > 0 && last < all_vectors ? last : all_vectors;
    uint4 all = make_uint4(0, 0, 0, 0);
    uint64_t i = first + threadIdx.x;
    for (; i + (loads - 1) * (uint64_t)blockDim.x < vectors; i += stride) {
        uint4 some[loads];
#pragma unroll
        for (int k = 0; k < loads; k++)
            some[k] = __ldg(x + i + k * (uint64_t)blockDim.x);
#pragma unroll
        for (int k = 0; k < loads; k++) {
            all.x ^= some[k].x;
            all.y ^= some[k].y;
            all.z ^= some[k].z;
            all.w ^= some[k].w;
        }
    }
    for (; i < vectors; i += blockDim.x) { /* this thread's part of the last round, as far as it goes */
        const uint4 one = __ldg(x + i);
        all.x ^= one.x;
        all.y ^= one.y;
        all.z ^= one.z;
        all.w ^= one.w;
    }
    if (all.x == never && all.y == never && all.z == never && all.w == never)
        *sink = all;
}

cudaError_t gpu_read_start(void *argument, cudaStream_t stream)
{
    const struct gpu_read *const read = (const struct gpu_read *)argument;
    return gpu_launch(read->loads == 8 ? read_kernel<8> : read_kernel<4>, read->blocks, read->threads, 0, stream,
                         (const uint4 *)read->x, read->bytes / 16, (uint64_t)read->rounds, (uint4 *)read->sink, 0x5eed5eedu);
}

cudaError_t gpu_clear(struct gpu *gpu)
{
    void *const clear = gpu->buffers[GPU_CLEAR];
    const unsigned int blocks = 4 * (unsigned int)gpu->device.multiprocessors;
    struct gpu_read read = {clear, gpu->buffer_bytes[GPU_CLEAR], clear, 4, 512, 0, blocks};
    return gpu_read_start(&read, gpu->stream);
}
