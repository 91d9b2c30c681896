/* Stands in for measure/'s .cu files where the ladder's kernels are emulated: memory is the host's, and nothing has a time. */
#include "emulation.h"

#include "kernels/ladder/input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

allfold_status gpu_check(cudaError_t code, const char *what, struct error *error)
{
    if (code == cudaSuccess)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_DEVICE_ERROR, "%s: %d: %.300s", what, (int)code, emulation_fault());
}
allfold_status gpu_wait(struct gpu *, const char *, struct error *) { return ALLFOLD_OK; }

static allfold_status room(void **place, size_t *place_bytes, size_t bytes, void **memory, struct error *error)
{
    if (bytes > *place_bytes) { /* to the byte, for AddressSanitizer */
        free(*place);
        *place = malloc(bytes);
        *place_bytes = *place != NULL ? bytes : 0;
        if (*place == NULL)
            return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %zu bytes: ask for a smaller --count", bytes);
        memset(*place, LADDER_POISON, bytes);
    }
    *memory = *place;
    return ALLFOLD_OK;
}
allfold_status gpu_buffer(struct gpu *gpu, enum gpu_buffers which, size_t bytes, void **memory, struct error *error)
{
    return room(&gpu->buffers[which], &gpu->buffer_bytes[which], bytes, memory, error);
}
allfold_status gpu_host_buffer(struct gpu *gpu, int which, size_t bytes, void **memory, struct error *error)
{
    return room(&gpu->host[which], &gpu->host_bytes[which], bytes, memory, error);
}
allfold_status gpu_pinned(struct gpu *gpu, size_t bytes, void **memory, struct error *error)
{
    return room(&gpu->pinned, &gpu->pinned_bytes, bytes, memory, error);
}

/* One run, which is compared with the oracle once more, and has no time. Its barriers are counted. */
allfold_status gpu_time(struct gpu *gpu, const struct gpu_work *work, struct timing *timing, struct error *error)
{
    const emulation_counts before = emulation_counted;
    *timing = {NAN, NAN, NAN, 1};
    gpu_check(work->start(work->argument, gpu->stream), "starting what would be measured", error);
    const double threads = (double)(emulation_counted.threads - before.threads);
    gpu->barriers = (double)(emulation_counted.barriers - before.barriers) / threads;
    gpu->exchanges = (double)(emulation_counted.exchanges - before.exchanges) / threads;
    return error->status;
}
allfold_status host_time(const struct gpu_work *work, struct timing *timing, struct error *error)
{
    *timing = {NAN, NAN, NAN, 1};
    return gpu_check(work->start(work->argument, nullptr), "starting what would be measured", error);
}
allfold_status gpu_read_ceiling(struct gpu *, const void *, uint64_t, double *bytes_per_second, struct error *)
{
    *bytes_per_second = NAN;
    return ALLFOLD_OK;
}
