/* Opens and describes the devices of the CUDA backend, and allocates their memory. */
#include "base/host.h"
#include "device/cuda/cuda.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    QUEUES = 2,               /* of a thread: it fills one while the other copies and folds */
    STAGING_BYTES = 4 << 20,  /* long enough to hide what starting a copy costs */
    STAGING_BYTES_LEAST = 64 << 10,
    THREADS_MOST = 16 /* of the host, for one rank: enough to fill the link */
};

static struct visible cuda_visible(struct error *why)
{
    struct visible visible = {0};
    int driver = 0;
    cudaError_t code = cudaGetDeviceCount(&visible.count);
    const char *const limit = getenv("CUDA_VISIBLE_DEVICES");
    if (code == cudaSuccess && visible.count > 0) {
        if (cudaGetDevice(&visible.current) != cudaSuccess)
            cudaGetLastError();
        return visible;
    }
    code = code == cudaSuccess ? cudaErrorNoDevice : code;
    cudaGetLastError();
    cudaDriverGetVersion(&driver);
    error_set(why, ALLFOLD_UNSUPPORTED, "%s (%s)%s%s%.80s", cudaGetErrorString(code), cudaGetErrorName(code),
              driver == 0 ? "; there is no NVIDIA driver here" : "", limit != NULL ? "; CUDA_VISIBLE_DEVICES=" : "",
              limit != NULL ? limit : "");
    return (struct visible){0};
}

/* The device whose context cuda_prepare has opened; -1: none. */
static int prepared_index = -1;

static void cuda_prepare(int local_rank)
{
    struct error ignored = {0};
    const int visible = cuda_visible(&ignored).count;
    if (visible > 0 && cudaSetDevice(local_rank % visible) == cudaSuccess) {
        prepared_index = local_rank % visible;
        cudaFree(NULL); /* opens the context in every version of CUDA */
        kernels_check();
    }
    cudaGetLastError();
}

/* A launcher's local rank was not MPI's: leaves nothing on that device. */
static void undo_prepare(int index)
{
    if (prepared_index >= 0 && prepared_index != index && cudaSetDevice(prepared_index) == cudaSuccess)
        cudaDeviceReset();
    prepared_index = -1;
    cudaGetLastError();
}

/* Enough to hide the start of two kernels and their end. */
#define GENERATED_BYTES (UINT64_C(256) << 20)

/* How much device memory and staging this rank takes: its part of what was free before any rank took some. */
static void cuda_budget(struct device *device, const allfold_options *options)
{
    struct cuda_device *const cuda = (struct cuda_device *)device;
    if (device->sharers > 1)
        cuda->capacity.shared_bytes = 0; /* no rank may hold it */
    const uint64_t mine = device->info.memory_free / 4 * 3 / (uint64_t)device->sharers;
    const uint64_t budget = options->device_memory > 0 ? options->device_memory : mine;
    uint64_t staging = u64_min(options->staging_bytes, UINT64_MAX / 4); /* what is too much is refused after this */
    if (staging == 0)
        staging = u64_max(u64_min(STAGING_BYTES, budget / (2 * QUEUES)), STAGING_BYTES_LEAST);
    /* a buffer has room for a window as a reader needs it (team_queue_bytes); scratch memory lies beside it */
    const uint64_t buffer = staging + staging / 8 + 5 * 4096, each = buffer + fold_scratch_bytes(cuda->multiprocessors) + 4096;
    const uint64_t workers = u64_max(u64_min((uint64_t)device->threads, budget / 2 / QUEUES / each), 1), queues = workers * QUEUES;
    device->shard_bytes = device->window_bytes = (size_t)staging;
    device->worker_queues = QUEUES;
    device->workers = (int)workers;
    device->queue_memory = queues * buffer;
    device->generated_bytes = u64_min(GENERATED_BYTES, budget / 4);
    device->memory = budget / queues > each ? budget - queues * each : 0;
}

/* That the kernels in this build run on the device. */
static allfold_status check_kernels(const struct cuda_device *cuda, struct error *error)
{
    const cudaError_t code = (cudaError_t)kernels_check();
    int major = 0, minor = 0;
    if (code != cudaErrorNoKernelImageForDevice)
        return cuda_check(cuda, code, error, "loading the kernels");
    cudaGetLastError();
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, cuda->index);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, cuda->index);
    return error_set(error, ALLFOLD_UNSUPPORTED,
                     "CUDA device %d: its compute capability is %d.%d, for which this build has no kernels "
                     "(%s): configure --with-cuda-arch=%d%d",
                     cuda->index, major, minor, cudaGetErrorName(code), major, minor);
}

/* -1 where the system does not say. */
static int numa_node(const char *pci)
{
    char path[96];
    int node = -1;
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", pci);
    FILE *const file = fopen(path, "r");
    if (file == NULL)
        return -1;
    if (fscanf(file, "%d", &node) != 1)
        node = -1;
    fclose(file);
    return node;
}

/* Adds what CUDA tells of the device that has this index. */
static void describe(struct device_info *info)
{
    struct cudaDeviceProp properties;
    info->numa_node = -1;
    if (cudaGetDeviceProperties(&properties, info->index) == cudaSuccess) {
        const unsigned char *const id = (const unsigned char *)properties.uuid.bytes;
        snprintf(info->name, sizeof info->name, "%.127s", properties.name);
        snprintf(info->uuid, sizeof info->uuid,
                 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", id[0], id[1], id[2], id[3],
                 id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15]);
    }
    if (cudaDeviceGetPCIBusId(info->pci, sizeof info->pci, info->index) == cudaSuccess) {
        for (char *c = info->pci; *c != '\0'; c++)
            *c = (char)tolower((unsigned char)*c);
        info->numa_node = numa_node(info->pci);
    }
    cudaGetLastError();
}

static allfold_status cuda_open(int number, int local_size, const allfold_options *options, struct device **device,
                                struct error *error)
{
    size_t free_bytes = 0, total_bytes = 0;
    struct error why = {0};
    const int visible = cuda_visible(&why).count;
    if (visible == 0)
        return error_set(error, ALLFOLD_UNSUPPORTED, "no CUDA device to use: %s", why.text);
    struct cuda_device *const cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the CUDA backend");
    cuda->device.backend = &backend_cuda;
    cuda->index = number % visible;
    undo_prepare(cuda->index);
    snprintf(cuda->device.label, sizeof cuda->device.label, "CUDA device %d", cuda->index);
    if (cuda_use(cuda, error) != ALLFOLD_OK
        || cuda_check(cuda, cudaMemGetInfo(&free_bytes, &total_bytes), error, "cudaMemGetInfo") != ALLFOLD_OK
        || cuda_check(cuda, cudaDeviceGetAttribute(&cuda->multiprocessors, cudaDevAttrMultiProcessorCount, cuda->index), error,
                 "cudaDeviceGetAttribute") != ALLFOLD_OK
        || check_kernels(cuda, error) != ALLFOLD_OK
        || cuda_check(cuda, (cudaError_t)softmax_capacity_of(cuda->index, &cuda->capacity), error,
                      "asking for the device's memories")
               != ALLFOLD_OK
        || (local_size > 1 && cuda_softmax_load(cuda, error) != ALLFOLD_OK)) { /* else ranks would wait for each other's kernels in the first one */
        free(cuda);
        return error->status;
    }
    cuda->device.info = (struct device_info){.index = cuda->index, .visible = visible, .memory_total = total_bytes, .memory_free = free_bytes};
    describe(&cuda->device.info);
    const int threads = host_threads(local_size);
    cuda->device.threads = options->threads > 0 ? options->threads : threads < THREADS_MOST ? threads : THREADS_MOST;
    *device = &cuda->device;
    return ALLFOLD_OK;
}

static void cuda_close(struct device *device)
{
    struct cuda_device *const cuda = (struct cuda_device *)device;
    if (cuda->pinned != NULL && cudaSetDevice(cuda->index) == cudaSuccess)
        cudaHostUnregister(cuda->pinned);
    cudaGetLastError();
    free(cuda);
}

static allfold_status cuda_locate(struct device *device, const void *memory, enum place *place, struct error *error)
{
    const struct cuda_device *const cuda = (const struct cuda_device *)device;
    struct cudaPointerAttributes attributes = {.type = cudaMemoryTypeUnregistered};
    if (cuda_use(cuda, error) != ALLFOLD_OK)
        return error->status;
    const cudaError_t code = memory == NULL ? cudaSuccess : cudaPointerGetAttributes(&attributes, memory);
    if (code == cudaErrorInvalidValue) { /* memory that CUDA knows nothing of, before CUDA 11 */
        cudaGetLastError();
        attributes.type = cudaMemoryTypeUnregistered;
    } else if (cuda_check(cuda, code, error, "cudaPointerGetAttributes") != ALLFOLD_OK) {
        return error->status;
    }
    const bool on_device = attributes.type == cudaMemoryTypeDevice || attributes.type == cudaMemoryTypeManaged;
    if (on_device && attributes.device != cuda->index)
        return error_set(error, ALLFOLD_BAD_ARGUMENT,
                         "the memory at %p is of CUDA device %d, but this rank works on device %d: put its data there",
                         memory, attributes.device, cuda->index);
    *place = on_device ? PLACE_DEVICE : attributes.type == cudaMemoryTypeHost ? PLACE_PINNED : PLACE_HOST;
    return ALLFOLD_OK;
}

static allfold_status cuda_allocate(struct device *device, size_t bytes, void **memory, struct error *error)
{
    const struct cuda_device *const cuda = (const struct cuda_device *)device;
    void *allocated = NULL;
    if (cuda_use(cuda, error) != ALLFOLD_OK
        || cuda_check(cuda, cudaMalloc(&allocated, bytes), error, "cudaMalloc of %zu bytes", bytes) != ALLFOLD_OK)
        return error->status;
    *memory = allocated;
    return ALLFOLD_OK;
}

static void cuda_release(struct device *device, void *memory)
{
    cudaSetDevice(((const struct cuda_device *)device)->index);
    cudaFree(memory);
}

static bool cuda_pin(struct device *device, void *memory, size_t bytes)
{
    struct cuda_device *const cuda = (struct cuda_device *)device;
    void *there = NULL;
    if (cudaSetDevice(cuda->index) == cudaSuccess && cudaHostRegister(memory, bytes, cudaHostRegisterDefault) == cudaSuccess) {
        cuda->pinned = memory;
        cudaHostGetDevicePointer(&there, memory, 0);
    }
    cudaGetLastError();
    return there != NULL;
}

const struct backend backend_cuda = {
    .id = ALLFOLD_BACKEND_CUDA,
    .name = "cuda",
    .devices = "CUDA",
    .own_memory = true,
    .combines = true,
    .bits_by_model = true,
    .visible = cuda_visible,
    .prepare = cuda_prepare,
    .open = cuda_open,
    .budget = cuda_budget,
    .close = cuda_close,
    .locate = cuda_locate,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .queues_open = cuda_queues_open,
    .queue_close = cuda_queue_close,
    .enter = cuda_enter,
    .follow = cuda_follow,
    .copy = cuda_copy,
    .copy_strided = cuda_copy_strided,
    .generate = cuda_generate,
    .fold = cuda_fold,
    .fold_many = cuda_fold_many,
    .order = cuda_order,
    .softmax_begin = cuda_softmax_begin,
    .softmax_finish = cuda_softmax_finish,
    .deliverer = &cuda_deliverer,
    .fold_axis = cuda_fold_axis,
    .pin = cuda_pin,
    .gradient_axis = cuda_gradient_axis,
    .softmax_axis = cuda_softmax_axis,
    .wait = cuda_wait,
};
