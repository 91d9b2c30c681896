/* Opens the GPU that is measured, and keeps its memory: see gpu.cuh. */
#include "measure/gpu.cuh"

#include "kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

allfold_status gpu_check(cudaError_t code, const char *what, struct error *error)
{
    if (code == cudaSuccess)
        return ALLFOLD_OK;
    cudaGetLastError(); /* the runtime keeps it, and would return it to the next call that asks */
    return error_set(error, code == cudaErrorMemoryAllocation ? ALLFOLD_NO_MEMORY : ALLFOLD_DEVICE_ERROR, "%s: %s (%s)",
                     what, cudaGetErrorString(code), cudaGetErrorName(code));
}

allfold_status gpu_wait(struct gpu *gpu, const char *what, struct error *error)
{
    return gpu_check(cudaStreamSynchronize(gpu->stream), what, error);
}

/* Device local_rank modulo visible becomes this thread's. */
static allfold_status choose_device(int local_rank, struct gpu_device *device, struct error *error)
{
    const cudaError_t code = cudaGetDeviceCount(&device->visible);
    if (code != cudaSuccess || device->visible == 0) {
        cudaGetLastError();
        return error_set(error, ALLFOLD_UNSUPPORTED, "measuring a GPU needs a CUDA device, and there is none: %s",
                         code != cudaSuccess ? cudaGetErrorString(code) : "none is visible");
    }
    device->index = local_rank % device->visible;
    if (gpu_check(cudaSetDevice(device->index), "choosing the CUDA device", error) != ALLFOLD_OK)
        return error->status;
    return gpu_check((cudaError_t)kernels_check(), "running a kernel of this build", error);
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

static allfold_status describe_device(struct gpu_device *device, struct error *error)
{
    static const char what[] = "asking what the CUDA device is";
    cudaDeviceProp properties;
    int kilohertz = 0, bits = 0;
    if (gpu_check(cudaGetDeviceProperties(&properties, device->index), what, error) != ALLFOLD_OK
        || gpu_check(cudaDriverGetVersion(&device->driver), what, error) != ALLFOLD_OK
        || gpu_check(cudaRuntimeGetVersion(&device->runtime), what, error) != ALLFOLD_OK)
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

static allfold_status open_queue(struct gpu *gpu, struct error *error)
{
    static const char what[] = "preparing to measure";
    void *clear;
    gpu->events = (cudaEvent_t *)calloc(2 * GPU_RUNS_MOST, sizeof *gpu->events);
    if (gpu->events == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %d events", 2 * GPU_RUNS_MOST);
    if (gpu_check(cudaStreamCreateWithFlags(&gpu->stream, cudaStreamNonBlocking), what, error) != ALLFOLD_OK)
        return error->status;
    for (int i = 0; i < 2 * GPU_RUNS_MOST; i++)
        if (gpu_check(cudaEventCreate(&gpu->events[i]), what, error) != ALLFOLD_OK)
            return error->status;
    const size_t bytes = (size_t)u64_max(4 * gpu->device.l2, (uint64_t)64 << 20);
    if (gpu_buffer(gpu, GPU_CLEAR, bytes, &clear, error) != ALLFOLD_OK
        || gpu_check(cudaMemsetAsync(clear, 1, bytes, gpu->stream), what, error) != ALLFOLD_OK)
        return error->status;
    return gpu_wait(gpu, what, error);
}

allfold_status gpu_open(int local_rank, struct gpu **gpu, struct error *error)
{
    struct gpu *const opened = (struct gpu *)calloc(1, sizeof *opened);
    *gpu = NULL;
    if (opened == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory to measure a GPU");
    if (choose_device(local_rank, &opened->device, error) == ALLFOLD_OK
        && describe_device(&opened->device, error) == ALLFOLD_OK && open_queue(opened, error) == ALLFOLD_OK)
        *gpu = opened;
    else
        gpu_close(opened);
    return error->status;
}

void gpu_close(struct gpu *gpu)
{
    if (gpu == NULL)
        return;
    for (int i = 0; i < GPU_BUFFERS; i++)
        cudaFree(gpu->buffers[i]);
    cudaFreeHost(gpu->pinned);
    for (int i = 0; gpu->events != NULL && i < 2 * GPU_RUNS_MOST; i++)
        if (gpu->events[i] != NULL)
            cudaEventDestroy(gpu->events[i]);
    if (gpu->stream != NULL)
        cudaStreamDestroy(gpu->stream);
    cudaGetLastError();
    free(gpu->events);
    free(gpu->host[0]);
    free(gpu->host[1]);
    free(gpu);
}

const struct gpu_device *gpu_device_of(const struct gpu *gpu) { return &gpu->device; }

allfold_status gpu_buffer(struct gpu *gpu, enum gpu_buffers which, size_t bytes, void **memory,
                           struct error *error)
{
    if (bytes > gpu->buffer_bytes[which]) {
        char what[96];
        snprintf(what, sizeof what, "%zu bytes of device memory (a smaller --count needs less)", bytes);
        gpu->buffer_bytes[which] = 0;
        if (gpu_wait(gpu, "waiting before memory is freed", error) != ALLFOLD_OK
            || gpu_check(cudaFree(gpu->buffers[which]), "freeing device memory", error) != ALLFOLD_OK)
            return error->status;
        gpu->buffers[which] = NULL;
        if (gpu_check(cudaMalloc(&gpu->buffers[which], bytes), what, error) != ALLFOLD_OK)
            return error->status;
        gpu->buffer_bytes[which] = bytes;
    }
    *memory = gpu->buffers[which];
    return ALLFOLD_OK;
}

allfold_status gpu_host_buffer(struct gpu *gpu, int which, size_t bytes, void **memory, struct error *error)
{
    if (bytes > gpu->host_bytes[which]) {
        free(gpu->host[which]);
        gpu->host[which] = malloc(bytes);
        gpu->host_bytes[which] = gpu->host[which] != NULL ? bytes : 0;
        if (gpu->host[which] == NULL)
            return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %zu bytes on the host: ask for a smaller --count",
                             bytes);
    }
    *memory = gpu->host[which];
    return ALLFOLD_OK;
}

allfold_status gpu_pinned(struct gpu *gpu, size_t bytes, void **memory, struct error *error)
{
    if (bytes > gpu->pinned_bytes) {
        gpu->pinned_bytes = 0;
        if (gpu_wait(gpu, "waiting before memory is freed", error) != ALLFOLD_OK
            || gpu_check(cudaFreeHost(gpu->pinned), "freeing pinned memory", error) != ALLFOLD_OK)
            return error->status;
        gpu->pinned = NULL;
        if (gpu_check(cudaMallocHost(&gpu->pinned, bytes), "pinned memory", error) != ALLFOLD_OK)
            return error->status;
        gpu->pinned_bytes = bytes;
    }
    *memory = gpu->pinned;
    return ALLFOLD_OK;
}
