/* Finds the ceiling that kernels are measured against: the fastest way of only reading. */
#include "measure/gpu.cuh"

allfold_status gpu_read_fastest(struct gpu *gpu, const void *x, uint64_t bytes, struct gpu_read *read,
                                   struct error *error)
{
    static const int loads[] = {4, 8}, threads[] = {256, 512, 1024}, blocks[] = {1, 2, 3, 4, 6, 8}, rounds[] = {1, 3};
    struct gpu_read tried = {x, bytes, NULL, 0, 0, 0, 0};
    const struct gpu_work work = {gpu_read_start, &tried};
    struct timing times;
    double least = 0.0;
    if (gpu_buffer(gpu, GPU_COUNTER, 16, &tried.sink, error) != ALLFOLD_OK)
        return error->status;
    const auto try_one = [&] {
        if (error->status == ALLFOLD_OK && gpu_time_quickly(gpu, &work, &times, error) == ALLFOLD_OK
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
                tried.blocks = (unsigned int)u64_min((uint64_t)(b * gpu->device.multiprocessors), useful);
                if (b * t <= gpu->device.threads_per_multiprocessor)
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

allfold_status gpu_read_ceiling(struct gpu *gpu, const void *x, uint64_t bytes, double *bytes_per_second,
                                   struct error *error)
{
    struct gpu_read read;
    const struct gpu_work work = {gpu_read_start, &read};
    struct timing times;
    *bytes_per_second = 0.0;
    /* timed once more: the least of many medians is a little lucky */
    if (bytes >= 16 && gpu_read_fastest(gpu, x, bytes, &read, error) == ALLFOLD_OK
        && gpu_time(gpu, &work, &times, error) == ALLFOLD_OK && times.median > 0.0)
        *bytes_per_second = (double)bytes / times.median;
    return error->status;
}
