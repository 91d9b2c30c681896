/* Reading, and nothing else: the ceiling that rungs are measured against, and how caches are cleared between runs. */
#include "kernels/ladder/measure.h"

/* Each thread starts `loads` loads of 16 bytes before it looks at the first. What it reads must seem to matter: the
   threads combine it, and would store what equals `never`, a number that 128 bits of data do not hit. */
template <int loads>
static __global__ void read_kernel(const uint4 *x, uint64_t vectors, uint4 *sink, uint32_t never)
{
    const uint64_t each = (uint64_t)loads * blockDim.x, stride = each * gridDim.x;
    uint4 all = make_uint4(0, 0, 0, 0);
    uint64_t i = blockIdx.x * each + threadIdx.x;
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

struct read_job {
    const void *x;
    uint64_t bytes;
    void *sink;
    int loads, threads;
    unsigned int blocks;
};

static cudaError_t read_start(void *argument, cudaStream_t stream)
{
    const struct read_job *const job = (const struct read_job *)argument;
    return ladder_launch(job->loads == 8 ? read_kernel<8> : read_kernel<4>, job->blocks, job->threads, 0, stream,
                         (const uint4 *)job->x, job->bytes / 16, (uint4 *)job->sink, 0x5eed5eedu);
}

cudaError_t ladder_clear(struct ladder *ladder)
{
    void *const clear = ladder->places[LADDER_CLEAR];
    const unsigned int blocks = 4 * (unsigned int)ladder->device.multiprocessors;
    struct read_job job = {clear, ladder->place_bytes[LADDER_CLEAR], clear, 4, 512, blocks};
    return read_start(&job, ladder->stream);
}

allfold_status ladder_read_ceiling(struct ladder *ladder, const void *x, uint64_t bytes, double *bytes_per_second,
                                   struct error *error)
{
    static const int loads[] = {4, 8}, threads[] = {256, 512, 1024}, blocks[] = {1, 2, 3, 4, 6, 8};
    struct read_job job = {x, bytes, NULL, 0, 0, 0}, best = job;
    struct ladder_times times;
    double least = 0.0;
    *bytes_per_second = 0.0;
    if (bytes < 16)
        return ALLFOLD_OK;
    if (ladder_room(ladder, LADDER_COUNTER, 16, &job.sink, error) != ALLFOLD_OK)
        return error->status;
    for (int l : loads)
        for (int t : threads)
            for (int b : blocks) {
                if (b * t > ladder->device.threads_per_multiprocessor)
                    continue;
                const uint64_t useful = bytes / 16 / (uint64_t)t / (uint64_t)l + 1;
                job.loads = l;
                job.threads = t;
                job.blocks = (unsigned int)u64_min((uint64_t)(b * ladder->device.multiprocessors), useful);
                if (ladder_time(ladder, read_start, &job, &times, error) != ALLFOLD_OK)
                    return error->status;
                if (least == 0.0 || times.median < least) {
                    least = times.median;
                    best = job;
                }
            }
    /* once more: the least of many medians is a little lucky */
    if (ladder_time(ladder, read_start, &best, &times, error) == ALLFOLD_OK && times.median > 0.0)
        *bytes_per_second = (double)bytes / times.median;
    return error->status;
}
