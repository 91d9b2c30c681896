/* Memory, time and errors: what all of the ladder's experiments stand on. */
#include "kernels/ladder/measure.h"

#include "kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_LEAST = 20, RUNS_MOST = 200, QUICK_RUNS_LEAST = 5, HOST_RUNS_LEAST = 3, HOST_RUNS_MOST = 20 };
#define BUDGET_SECONDS 0.2 /* of one measurement, where the least number of runs allows */
#define QUICK_SECONDS 0.01
#define HOST_BUDGET_SECONDS 0.5

allfold_status ladder_cuda(cudaError_t code, const char *what, struct error *error)
{
    if (code == cudaSuccess)
        return ALLFOLD_OK;
    cudaGetLastError(); /* the runtime keeps it, and would give it to the next who asks */
    return error_set(error, code == cudaErrorMemoryAllocation ? ALLFOLD_NO_MEMORY : ALLFOLD_DEVICE_ERROR, "%s: %s (%s)",
                     what, cudaGetErrorString(code), cudaGetErrorName(code));
}

allfold_status ladder_wait(struct ladder *ladder, const char *what, struct error *error)
{
    return ladder_cuda(cudaStreamSynchronize(ladder->stream), what, error);
}

/* Device local_rank modulo visible becomes this thread's. */
static allfold_status choose_device(int local_rank, struct ladder_device *device, struct error *error)
{
    const cudaError_t code = cudaGetDeviceCount(&device->visible);
    if (code != cudaSuccess || device->visible == 0) {
        cudaGetLastError();
        return error_set(error, ALLFOLD_UNSUPPORTED, "the ladder runs on a CUDA device, and there is none: %s",
                         code != cudaSuccess ? cudaGetErrorString(code) : "none is visible");
    }
    device->index = local_rank % device->visible;
    if (ladder_cuda(cudaSetDevice(device->index), "choosing the CUDA device", error) != ALLFOLD_OK)
        return error->status;
    return ladder_cuda((cudaError_t)kernels_check(), "running a kernel of this build", error);
}

static void describe_uuid(const cudaUUID_t *uuid, char text[64])
{
    int length = snprintf(text, 64, "GPU-");
    for (int i = 0; i < 16; i++) {
        const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        length +=
            snprintf(text + length, (size_t)(64 - length), dash ? "-%02x" : "%02x", (unsigned char)uuid->bytes[i]);
    }
}

static allfold_status describe_device(struct ladder_device *device, struct error *error)
{
    static const char what[] = "asking what the CUDA device is";
    cudaDeviceProp properties;
    int kilohertz = 0, bits = 0;
    if (ladder_cuda(cudaGetDeviceProperties(&properties, device->index), what, error) != ALLFOLD_OK
        || ladder_cuda(cudaDriverGetVersion(&device->driver), what, error) != ALLFOLD_OK
        || ladder_cuda(cudaRuntimeGetVersion(&device->runtime), what, error) != ALLFOLD_OK)
        return error->status;
    if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrMemoryClockRate, device->index) != cudaSuccess
        || cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, device->index) != cudaSuccess) {
        cudaGetLastError(); /* a device that does not tell has no datasheet peak here */
        kilohertz = 0;
    }
    snprintf(device->name, sizeof device->name, "%.127s", properties.name);
    describe_uuid(&properties.uuid, device->uuid);
    device->multiprocessors = properties.multiProcessorCount;
    device->threads_per_multiprocessor = properties.maxThreadsPerMultiProcessor;
    device->memory = properties.totalGlobalMem;
    device->l2 = (uint64_t)properties.l2CacheSize;
    /* two transfers a clock */
    device->datasheet = kilohertz > 0 && bits > 0 ? 1e3 * kilohertz * (bits / 8.0) * 2.0 : NAN;
    return ALLFOLD_OK;
}

static allfold_status open_queue(struct ladder *ladder, struct error *error)
{
    static const char what[] = "preparing to measure";
    void *clear;
    ladder->events = (cudaEvent_t *)calloc(2 * RUNS_MOST, sizeof *ladder->events);
    if (ladder->events == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %d events", 2 * RUNS_MOST);
    if (ladder_cuda(cudaStreamCreateWithFlags(&ladder->stream, cudaStreamNonBlocking), what, error) != ALLFOLD_OK)
        return error->status;
    for (int i = 0; i < 2 * RUNS_MOST; i++)
        if (ladder_cuda(cudaEventCreate(&ladder->events[i]), what, error) != ALLFOLD_OK)
            return error->status;
    const size_t bytes = (size_t)u64_max(4 * ladder->device.l2, (uint64_t)64 << 20);
    if (ladder_room(ladder, LADDER_CLEAR, bytes, &clear, error) != ALLFOLD_OK
        || ladder_cuda(cudaMemsetAsync(clear, 1, bytes, ladder->stream), what, error) != ALLFOLD_OK)
        return error->status;
    return ladder_wait(ladder, what, error);
}

allfold_status ladder_open(int local_rank, struct ladder **ladder, struct error *error)
{
    struct ladder *const opened = (struct ladder *)calloc(1, sizeof *opened);
    *ladder = NULL;
    if (opened == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the ladder");
    if (choose_device(local_rank, &opened->device, error) == ALLFOLD_OK
        && describe_device(&opened->device, error) == ALLFOLD_OK && open_queue(opened, error) == ALLFOLD_OK)
        *ladder = opened;
    else
        ladder_close(opened);
    return error->status;
}

void ladder_close(struct ladder *ladder)
{
    if (ladder == NULL)
        return;
    for (int i = 0; i < LADDER_PLACES; i++)
        cudaFree(ladder->places[i]);
    for (int i = 0; ladder->events != NULL && i < 2 * RUNS_MOST; i++)
        if (ladder->events[i] != NULL)
            cudaEventDestroy(ladder->events[i]);
    if (ladder->stream != NULL)
        cudaStreamDestroy(ladder->stream);
    cudaGetLastError();
    free(ladder->events);
    free(ladder->host[0]);
    free(ladder->host[1]);
    free(ladder);
}

const struct ladder_device *ladder_device_of(const struct ladder *ladder) { return &ladder->device; }

allfold_status ladder_room(struct ladder *ladder, enum ladder_place place, size_t bytes, void **memory,
                           struct error *error)
{
    if (bytes > ladder->place_bytes[place]) {
        char what[96];
        snprintf(what, sizeof what, "%zu bytes of device memory (a smaller --count needs less)", bytes);
        ladder->place_bytes[place] = 0;
        if (ladder_wait(ladder, "waiting before memory is freed", error) != ALLFOLD_OK
            || ladder_cuda(cudaFree(ladder->places[place]), "freeing device memory", error) != ALLFOLD_OK)
            return error->status;
        ladder->places[place] = NULL;
        if (ladder_cuda(cudaMalloc(&ladder->places[place], bytes), what, error) != ALLFOLD_OK)
            return error->status;
        ladder->place_bytes[place] = bytes;
    }
    *memory = ladder->places[place];
    return ALLFOLD_OK;
}

allfold_status ladder_host_room(struct ladder *ladder, int which, size_t bytes, void **memory, struct error *error)
{
    if (bytes > ladder->host_bytes[which]) {
        free(ladder->host[which]);
        ladder->host[which] = malloc(bytes);
        ladder->host_bytes[which] = ladder->host[which] != NULL ? bytes : 0;
        if (ladder->host[which] == NULL)
            return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %zu bytes on the host: ask for a smaller --count",
                             bytes);
    }
    *memory = ladder->host[which];
    return ALLFOLD_OK;
}

/* One timed run: events 2 run and 2 run + 1. */
static cudaError_t run_once(struct ladder *ladder, ladder_work *work, void *argument, int run)
{
    cudaError_t code = ladder_clear(ladder);
    if (code == cudaSuccess)
        code = cudaEventRecord(ladder->events[2 * run], ladder->stream);
    if (code == cudaSuccess)
        code = work(argument, ladder->stream);
    if (code == cudaSuccess)
        code = cudaEventRecord(ladder->events[2 * run + 1], ladder->stream);
    return code;
}

/* Runs so many times, all queued before the first is waited for. */
static allfold_status run_all(struct ladder *ladder, ladder_work *work, void *argument, int runs, double *seconds,
                              struct error *error)
{
    for (int run = 0; run < runs; run++)
        if (ladder_cuda(run_once(ladder, work, argument, run), "starting what is measured", error) != ALLFOLD_OK)
            return error->status;
    if (ladder_wait(ladder, "running what is measured", error) != ALLFOLD_OK)
        return error->status;
    for (int run = 0; run < runs; run++) {
        float milliseconds = 0.0f;
        if (ladder_cuda(cudaEventElapsedTime(&milliseconds, ladder->events[2 * run], ladder->events[2 * run + 1]),
                        "reading the time", error) != ALLFOLD_OK)
            return error->status;
        seconds[run] = 1e-3 * (double)milliseconds;
    }
    return ALLFOLD_OK;
}

/* Warm-up, then as many runs as there is time for. */
static allfold_status time_within(struct ladder *ladder, ladder_work *work, void *argument, double budget, int least,
                                  int most, struct ladder_times *times, struct error *error)
{
    double seconds[RUNS_MOST];
    if (run_all(ladder, work, argument, 3, seconds, error) != ALLFOLD_OK)
        return error->status;
    const int runs = ladder_runs_for(budget, seconds[2], least, most);
    if (run_all(ladder, work, argument, runs, seconds, error) == ALLFOLD_OK)
        *times = ladder_times_of(seconds, runs);
    return error->status;
}

allfold_status ladder_time(struct ladder *ladder, ladder_work *work, void *argument, struct ladder_times *times,
                           struct error *error)
{
    return time_within(ladder, work, argument, BUDGET_SECONDS, RUNS_LEAST, RUNS_MOST, times, error);
}

allfold_status ladder_time_quickly(struct ladder *ladder, ladder_work *work, void *argument, struct ladder_times *times,
                                   struct error *error)
{
    return time_within(ladder, work, argument, QUICK_SECONDS, QUICK_RUNS_LEAST, RUNS_LEAST, times, error);
}

allfold_status ladder_time_host(ladder_work *work, void *argument, struct ladder_times *times, struct error *error)
{
    double seconds[HOST_RUNS_MOST];
    int runs = 1;
    for (int run = -1; run < runs; run++) { /* run -1 warms up */
        const double start = clock_seconds();
        if (ladder_cuda(work(argument, NULL), "running what is measured", error) != ALLFOLD_OK)
            return error->status;
        const double taken = clock_seconds() - start;
        if (run < 0)
            runs = ladder_runs_for(HOST_BUDGET_SECONDS, taken, HOST_RUNS_LEAST, HOST_RUNS_MOST);
        else
            seconds[run] = taken;
    }
    *times = ladder_times_of(seconds, runs);
    return ALLFOLD_OK;
}

void ladder_facts(const struct ladder *ladder, double read_ceiling, struct ladder_table *table)
{
    ladder_table_fact(table, "read_ceiling", "read ceiling, measured", LADDER_BANDWIDTH)->number = read_ceiling;
    ladder_table_fact(table, "datasheet", "datasheet peak", LADDER_BANDWIDTH)->number = ladder->device.datasheet;
}
