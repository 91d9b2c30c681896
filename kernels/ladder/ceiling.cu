/* Kernels that only read: the ceiling that rungs are measured against, and how caches are cleared between runs. */
#include "kernels/ladder/measure.h"

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

cudaError_t ladder_read_start(void *argument, cudaStream_t stream)
{
    const struct ladder_read *const read = (const struct ladder_read *)argument;
    return ladder_launch(read->loads == 8 ? read_kernel<8> : read_kernel<4>, read->blocks, read->threads, 0, stream,
                         (const uint4 *)read->x, read->bytes / 16, (uint64_t)read->rounds, (uint4 *)read->sink, 0x5eed5eedu);
}

cudaError_t ladder_clear(struct ladder *ladder)
{
    void *const clear = ladder->places[LADDER_CLEAR];
    const unsigned int blocks = 4 * (unsigned int)ladder->device.multiprocessors;
    struct ladder_read read = {clear, ladder->place_bytes[LADDER_CLEAR], clear, 4, 512, 0, blocks};
    return ladder_read_start(&read, ladder->stream);
}

allfold_status ladder_read_fastest(struct ladder *ladder, const void *x, uint64_t bytes, struct ladder_read *read,
                                   struct error *error)
{
    static const int loads[] = {4, 8}, threads[] = {256, 512, 1024}, blocks[] = {1, 2, 3, 4, 6, 8}, rounds[] = {1, 3};
    struct ladder_read tried = {x, bytes, NULL, 0, 0, 0, 0};
    struct ladder_times times;
    double least = 0.0;
    if (ladder_room(ladder, LADDER_COUNTER, 16, &tried.sink, error) != ALLFOLD_OK)
        return error->status;
    const auto try_one = [&] {
        if (error->status == ALLFOLD_OK && ladder_time_quickly(ladder, ladder_read_start, &tried, &times, error) == ALLFOLD_OK
            && (least == 0.0 || times.median < least)) {
            least = times.median;
            *read = tried;
        }
    };
    for (int l : loads)
        for (int t : threads) {
            const uint64_t useful = bytes / 16 / (uint64_t)t / (uint64_t)l + 1;
            tried.loads = l;
            tried.threads = t;
            tried.rounds = 0;
            for (int b : blocks) {
                tried.blocks = (unsigned int)u64_min((uint64_t)(b * ladder->device.multiprocessors), useful);
                if (b * t <= ladder->device.threads_per_multiprocessor)
                    try_one();
            }
            for (int r : rounds) {
                tried.rounds = r;
                tried.blocks = (unsigned int)((useful + r - 1) / r);
                try_one();
            }
        }
    return error->status;
}

allfold_status ladder_read_ceiling(struct ladder *ladder, const void *x, uint64_t bytes, double *bytes_per_second,
                                   struct error *error)
{
    struct ladder_read read;
    struct ladder_times times;
    *bytes_per_second = 0.0;
    /* timed once more: the least of many medians is a little lucky */
    if (bytes >= 16 && ladder_read_fastest(ladder, x, bytes, &read, error) == ALLFOLD_OK
        && ladder_time(ladder, ladder_read_start, &read, &times, error) == ALLFOLD_OK && times.median > 0.0)
        *bytes_per_second = (double)bytes / times.median;
    return error->status;
}
