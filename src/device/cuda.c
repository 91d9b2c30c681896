/* The CUDA backend. A queue is a stream of its own with a pinned staging buffer, a device buffer, the scratch memory of
   the fold kernels, and a message in mapped host memory into which they write and which wait watches: that tells the host
   sooner than the driver would.

   Every call makes its device the thread's current one, since the caller's program may have chosen another, and leaves
   it so. Messages keep CUDA's own text. */
#include "device/cuda_links.h"
#include "device/device.h"
#include "fold/exponential.h"
#include "kernels/kernels.h"

#include <cuda_runtime_api.h>

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUEUES = 3,               /* one filling, one copying, one folding */
    STAGING_BYTES = 16 << 20, /* long enough to hide what starting a copy costs */
    STAGING_BYTES_LEAST = 64 << 10,
    LOOKS = 64, /* at a message between two looks at the clock */
    THREADS_MOST = 8 /* of the host, for one rank: more do not fill staging faster */
};

struct cuda_device {
    struct device device;
    int index;
    int visible;
    int multiprocessors;
    struct softmax_room room; /* softmax_resident_prepare */
    bool early;               /* softmax_chained_prepare */
    size_t free_bytes;        /* when it was opened */
};

/* Softmax begun in one piece: it folds, holds while its kernel waits for orders, and writes. Alone it only writes. */
enum resident { RESIDENT_NONE, RESIDENT_FOLDS, RESIDENT_HOLDS, RESIDENT_WRITES };

struct cuda_queue {
    struct queue queue;
    cudaStream_t own;
    cudaStream_t stream;          /* where work goes: own, or the caller's, from enter to wait */
    cudaEvent_t followed;         /* what the caller's stream held when follow was called */
    struct fold_space space;
    struct fold_mailbox *mailbox; /* space.mailbox, as the host sees it */
    size_t awaited;               /* bytes of the partial that the last fold will leave there; 0: wait has taken it */
    bool fold_last;               /* nothing was started after it */
    enum resident resident;
    cudaStream_t resident_stream;
    struct softmax_resident resident_call;
    struct softmax_constants constants; /* of the orders: should they come too late */
};

/* How long wait watches a message before it asks the driver, who knows of failures, to wait. */
static const double WATCH_SECONDS = 1e-3;

static struct cuda_device *cuda_of(const struct queue *queue) { return (struct cuda_device *)queue->device; }

/* ALLFOLD_OK, or the error of what `format` describes. */
__attribute__((format(printf, 4, 5))) static allfold_status check(const struct cuda_device *cuda, cudaError_t code,
                                                                  struct error *error, const char *format, ...)
{
    char what[160];
    va_list arguments;
    if (code == cudaSuccess)
        return ALLFOLD_OK;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    cudaGetLastError(); /* reported here: the next call must not find it */
    return error_set(error, code == cudaErrorMemoryAllocation ? ALLFOLD_NO_MEMORY : ALLFOLD_DEVICE_ERROR,
                     "CUDA device %d: %s: %s (%s)", cuda->index, what, cudaGetErrorString(code), cudaGetErrorName(code));
}

static allfold_status use(const struct cuda_device *cuda, struct error *error)
{
    return check(cuda, cudaSetDevice(cuda->index), error, "cudaSetDevice");
}

static int cuda_visible(struct error *why)
{
    int count = 0, driver = 0;
    cudaError_t code = cudaGetDeviceCount(&count);
    const char *const limit = getenv("CUDA_VISIBLE_DEVICES");
    if (code == cudaSuccess && count > 0)
        return count;
    code = code == cudaSuccess ? cudaErrorNoDevice : code;
    cudaGetLastError();
    cudaDriverGetVersion(&driver);
    error_set(why, ALLFOLD_UNSUPPORTED, "%s (%s)%s%s%.80s", cudaGetErrorString(code), cudaGetErrorName(code),
              driver == 0 ? "; there is no NVIDIA driver here" : "", limit != NULL ? "; CUDA_VISIBLE_DEVICES=" : "",
              limit != NULL ? limit : "");
    return 0;
}

/* How much device memory and staging this rank takes: its part of what was free before any rank took some. */
static void cuda_budget(struct device *device, const allfold_options *options)
{
    struct cuda_device *const cuda = (struct cuda_device *)device;
    if (device->sharers > 1)
        cuda->room.shared_bytes = 0; /* no rank may hold it */
    const uint64_t mine = cuda->free_bytes / 4 * 3 / (uint64_t)device->sharers;
    const uint64_t budget = options->device_memory > 0 ? options->device_memory : mine;
    uint64_t staging = options->staging_bytes;
    if (staging == 0)
        staging = u64_max(u64_min(STAGING_BYTES, budget / (2 * QUEUES)), STAGING_BYTES_LEAST);
    device->staging_bytes = (size_t)staging;
    device->queue_count = QUEUES;
    device->memory = budget > QUEUES * staging ? budget - QUEUES * staging : 0;
}

/* That the kernels in this build run on the device. */
static allfold_status check_kernels(const struct cuda_device *cuda, struct error *error)
{
    const cudaError_t code = (cudaError_t)kernels_check();
    int major = 0, minor = 0;
    if (code != cudaErrorNoKernelImageForDevice)
        return check(cuda, code, error, "loading the kernels");
    cudaGetLastError();
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, cuda->index);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, cuda->index);
    return error_set(error, ALLFOLD_UNSUPPORTED,
                     "CUDA device %d: its compute capability is %d.%d, for which this build has no kernels "
                     "(%s): configure --with-cuda-arch=%d%d",
                     cuda->index, major, minor, cudaGetErrorName(code), major, minor);
}

static allfold_status cuda_open(int local_rank, int local_size, const allfold_options *options, struct device **device,
                                struct error *error)
{
    size_t total_bytes = 0;
    struct error why = {0};
    const int visible = cuda_visible(&why);
    if (visible == 0)
        return error_set(error, ALLFOLD_UNSUPPORTED, "no CUDA device to use: %s", why.text);
    struct cuda_device *const cuda = calloc(1, sizeof *cuda);
    if (cuda == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the CUDA backend");
    cuda->device.backend = &backend_cuda;
    cuda->index = local_rank % visible;
    cuda->visible = visible;
    snprintf(cuda->device.label, sizeof cuda->device.label, "CUDA device %d", cuda->index);
    if (use(cuda, error) != ALLFOLD_OK
        || check(cuda, cudaMemGetInfo(&cuda->free_bytes, &total_bytes), error, "cudaMemGetInfo") != ALLFOLD_OK
        || check(cuda, cudaDeviceGetAttribute(&cuda->multiprocessors, cudaDevAttrMultiProcessorCount, cuda->index), error,
                 "cudaDeviceGetAttribute") != ALLFOLD_OK
        || check_kernels(cuda, error) != ALLFOLD_OK
        || check(cuda, (cudaError_t)softmax_resident_prepare(cuda->index, &cuda->room), error,
                 "preparing the softmax kernels")
               != ALLFOLD_OK
        || check(cuda, (cudaError_t)softmax_chained_prepare(&cuda->early), error, "loading the softmax kernels") != ALLFOLD_OK) {
        free(cuda);
        return error->status;
    }
    const int threads = host_threads(local_size);
    cuda->device.threads = options->threads > 0 ? options->threads : threads < THREADS_MOST ? threads : THREADS_MOST;
    *device = &cuda->device;
    return ALLFOLD_OK;
}

static void cuda_close(struct device *device) { free(device); }

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

static void cuda_describe(const struct device *device, struct device_info *info)
{
    const struct cuda_device *const cuda = (const struct cuda_device *)device;
    struct cudaDeviceProp properties;
    size_t free_bytes = 0, total_bytes = 0;
    memset(info, 0, sizeof *info);
    info->index = cuda->index;
    info->visible = cuda->visible;
    info->numa_node = -1;
    info->threads = device->threads;
    if (cudaSetDevice(cuda->index) == cudaSuccess && cudaGetDeviceProperties(&properties, cuda->index) == cudaSuccess) {
        const unsigned char *const id = (const unsigned char *)properties.uuid.bytes;
        snprintf(info->name, sizeof info->name, "%.127s", properties.name);
        snprintf(info->uuid, sizeof info->uuid,
                 "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", id[0], id[1], id[2], id[3],
                 id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11], id[12], id[13], id[14], id[15]);
    }
    if (cudaDeviceGetPCIBusId(info->pci, sizeof info->pci, cuda->index) == cudaSuccess) {
        for (char *c = info->pci; *c != '\0'; c++)
            *c = (char)tolower((unsigned char)*c);
        info->numa_node = numa_node(info->pci);
    }
    if (cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) {
        info->memory_free = free_bytes;
        info->memory_total = total_bytes;
    }
    cudaGetLastError();
}

static void cuda_link(const struct device *device, const char *pci, char text[LINK_BYTES])
{
    char own[sizeof((struct device_info *)NULL)->pci] = "";
    text[0] = '\0';
    if (cudaDeviceGetPCIBusId(own, sizeof own, ((const struct cuda_device *)device)->index) == cudaSuccess)
        cuda_link_text(own, pci, text);
    cudaGetLastError();
}

static allfold_status cuda_locate(struct device *device, const void *memory, enum place *place, struct error *error)
{
    const struct cuda_device *const cuda = (const struct cuda_device *)device;
    struct cudaPointerAttributes attributes = {.type = cudaMemoryTypeUnregistered};
    if (use(cuda, error) != ALLFOLD_OK)
        return error->status;
    const cudaError_t code = memory == NULL ? cudaSuccess : cudaPointerGetAttributes(&attributes, memory);
    if (code == cudaErrorInvalidValue) { /* memory that CUDA knows nothing of, before CUDA 11 */
        cudaGetLastError();
        attributes.type = cudaMemoryTypeUnregistered;
    } else if (check(cuda, code, error, "cudaPointerGetAttributes") != ALLFOLD_OK) {
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
    if (use(cuda, error) != ALLFOLD_OK
        || check(cuda, cudaMalloc(&allocated, bytes), error, "cudaMalloc of %zu bytes", bytes) != ALLFOLD_OK)
        return error->status;
    *memory = allocated;
    return ALLFOLD_OK;
}

static void cuda_release(struct device *device, void *memory)
{
    cudaSetDevice(((const struct cuda_device *)device)->index);
    cudaFree(memory);
}

/* Takes a queue that is open in part, too. */
static void cuda_queue_close(struct queue *queue)
{
    if (queue == NULL)
        return;
    struct cuda_queue *const closed = (struct cuda_queue *)queue;
    cudaSetDevice(cuda_of(queue)->index);
    if (closed->own != NULL)
        cudaStreamSynchronize(closed->own);
    cudaFree(queue->buffer);
    cudaFreeHost(queue->staging);
    cudaFreeHost(closed->mailbox);
    cudaFree(closed->space.scratch);
    if (closed->followed != NULL)
        cudaEventDestroy(closed->followed);
    if (closed->own != NULL)
        cudaStreamDestroy(closed->own);
    cudaGetLastError();
    free(queue->partial);
    free(closed);
}

/* What the fold kernels need. */
static allfold_status open_space(struct cuda_queue *queue, const struct cuda_device *cuda, struct error *error)
{
    struct fold_space *const space = &queue->space;
    const size_t scratch_bytes = fold_scratch_bytes(cuda->multiprocessors);
    space->multiprocessors = cuda->multiprocessors;
    if (check(cuda, cudaMalloc(&space->scratch, scratch_bytes), error, "cudaMalloc of %zu bytes", scratch_bytes)
            != ALLFOLD_OK
        || check(cuda, cudaMemsetAsync(space->scratch, 0, scratch_bytes, queue->own), error, "cudaMemsetAsync")
               != ALLFOLD_OK
        || check(cuda, cudaStreamSynchronize(queue->own), error, "cudaMemsetAsync") != ALLFOLD_OK
        || check(cuda, cudaHostAlloc((void **)&queue->mailbox, sizeof *queue->mailbox, cudaHostAllocMapped), error,
                 "cudaHostAlloc of %zu bytes", sizeof *queue->mailbox) != ALLFOLD_OK
        || check(cuda, cudaHostGetDevicePointer((void **)&space->mailbox, queue->mailbox, 0), error,
                 "cudaHostGetDevicePointer") != ALLFOLD_OK)
        return error->status;
    memset(queue->mailbox, 0, sizeof *queue->mailbox);
    queue->queue.partial = malloc(sizeof *queue->queue.partial);
    return queue->queue.partial != NULL ? ALLFOLD_OK : error_set(error, ALLFOLD_NO_MEMORY, "no memory for a partial");
}

static allfold_status open_buffers(struct queue *queue, size_t bytes, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    if (bytes > 0
        && (check(cuda, cudaHostAlloc(&queue->staging, bytes, cudaHostAllocDefault), error,
                  "cudaHostAlloc of a staging buffer of %zu bytes", bytes) != ALLFOLD_OK
            || check(cuda, cudaMalloc(&queue->buffer, bytes), error, "cudaMalloc of %zu bytes", bytes) != ALLFOLD_OK))
        return error->status;
    queue->bytes = bytes;
    return ALLFOLD_OK;
}

static allfold_status cuda_queue_open(struct device *device, size_t bytes, struct queue **queue, struct error *error)
{
    const struct cuda_device *const cuda = (const struct cuda_device *)device;
    struct cuda_queue *const opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for a queue");
    opened->queue.device = device;
    if (use(cuda, error) != ALLFOLD_OK
        || check(cuda, cudaStreamCreateWithFlags(&opened->own, cudaStreamNonBlocking), error, "cudaStreamCreate")
               != ALLFOLD_OK
        || check(cuda, cudaEventCreateWithFlags(&opened->followed, cudaEventDisableTiming), error, "cudaEventCreate")
               != ALLFOLD_OK
        || open_space(opened, cuda, error) != ALLFOLD_OK || open_buffers(&opened->queue, bytes, error) != ALLFOLD_OK) {
        cuda_queue_close(&opened->queue);
        return error->status;
    }
    opened->stream = opened->own;
    *queue = &opened->queue;
    return ALLFOLD_OK;
}

static cudaStream_t stream_of_caller(void *stream) { return stream != NULL ? (cudaStream_t)stream : cudaStreamLegacy; }

static allfold_status cuda_enter(struct queue *queue, void *stream, struct error *error)
{
    (void)error;
    ((struct cuda_queue *)queue)->stream = stream_of_caller(stream);
    return ALLFOLD_OK;
}

static allfold_status cuda_follow(struct queue *queue, void *stream, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    const struct cuda_queue *const follower = (const struct cuda_queue *)queue;
    const cudaStream_t leader = stream_of_caller(stream);
    if (use(cuda, error) != ALLFOLD_OK
        || check(cuda, cudaEventRecord(follower->followed, leader), error, "cudaEventRecord in the caller's stream")
               != ALLFOLD_OK
        || check(cuda, cudaStreamWaitEvent(follower->stream, follower->followed, 0), error, "cudaStreamWaitEvent")
               != ALLFOLD_OK)
        return error->status;
    return ALLFOLD_OK;
}

static allfold_status copy(struct queue *queue, void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                           struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const copying = (struct cuda_queue *)queue;
    if (bytes > queue->bytes)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "a copy of %zu bytes through a queue of %zu", bytes, queue->bytes);
    if (use(cuda, error) != ALLFOLD_OK
        || check(cuda, cudaMemcpyAsync(to, from, bytes, kind, copying->stream), error,
                 "cudaMemcpyAsync of %zu bytes %s the device", bytes, kind == cudaMemcpyHostToDevice ? "to" : "from")
               != ALLFOLD_OK)
        return error->status;
    copying->fold_last = false;
    return ALLFOLD_OK;
}

static allfold_status cuda_upload(struct queue *queue, const void *from, void *to, size_t bytes, struct error *error)
{
    return bytes == 0 ? ALLFOLD_OK : copy(queue, to, from, bytes, cudaMemcpyHostToDevice, error);
}

static allfold_status cuda_download(struct queue *queue, const void *from, size_t bytes, const void **host,
                                    struct error *error)
{
    if (bytes > 0 && copy(queue, queue->staging, from, bytes, cudaMemcpyDeviceToHost, error) != ALLFOLD_OK)
        return error->status;
    *host = queue->staging;
    return ALLFOLD_OK;
}

static allfold_status cuda_fold(struct queue *queue, enum monoid monoid, allfold_type type, const void *x, uint64_t n,
                                uint64_t first, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const folding = (struct cuda_queue *)queue;
    if (use(cuda, error) != ALLFOLD_OK)
        return error->status;
    const int code = fold_launch(monoid, type, x, n, first, &folding->space, folding->stream);
    folding->awaited = code == cudaSuccess ? monoid_bytes(monoid, type) : 0;
    folding->fold_last = true;
    return check(cuda, (cudaError_t)code, error, "launching the fold kernel for %s", allfold_type_name(type));
}

static allfold_status cuda_softmax_begin(struct queue *queue, bool alone, bool logarithm, allfold_level level,
                                         allfold_type x_type, const void *x, allfold_type y_type, void *y, uint64_t n,
                                         bool *begun, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const begins = (struct cuda_queue *)queue;
    const struct softmax_resident call = {
        &begins->space, cuda->room, alone, logarithm, level == ALLFOLD_LEVEL_EXACT, x_type, x, y, n,
        cuda->early};
    bool resident = softmax_resident_fits(&call);
    *begun = false;
    if (x_type != y_type || !(resident || softmax_chained_fits(&call)))
        return ALLFOLD_OK;
    if (use(cuda, error) != ALLFOLD_OK)
        return error->status;
    cudaError_t code = resident ? (cudaError_t)softmax_resident_launch(&call, begins->stream) : cudaSuccess;
    if (code == cudaErrorCooperativeLaunchTooLarge || code == cudaErrorNotSupported) {
        cudaGetLastError(); /* a part of a device, or one that cannot run all blocks together: the usual kernels do */
        resident = false;
        code = cudaSuccess;
    }
    if (!resident && !softmax_chained_fits(&call))
        return ALLFOLD_OK;
    if (!resident)
        code = (cudaError_t)softmax_chained_launch(&call, begins->stream);
    if (check(cuda, code, error, "launching the softmax kernel for %s", allfold_type_name(x_type)) != ALLFOLD_OK)
        return error->status;
    *begun = true;
    begins->resident = alone ? RESIDENT_WRITES : RESIDENT_FOLDS;
    begins->resident_stream = begins->stream;
    begins->resident_call = call;
    begins->awaited = alone ? 0 : monoid_bytes(softmax_monoid(x_type, y_type, logarithm, level), x_type);
    begins->fold_last = true;
    return ALLFOLD_OK;
}

static allfold_status softmax_start(struct cuda_queue *queue, const struct softmax_constants *constants,
                                    const struct softmax_resident *call, allfold_type y_type, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(&queue->queue);
    const int code = softmax_launch(constants, call->logarithm, call->type, call->x, y_type, call->y, call->n,
                                    cuda->multiprocessors, queue->stream);
    queue->fold_last = false;
    return check(cuda, (cudaError_t)code, error, "launching the softmax kernel from %s to %s", allfold_type_name(call->type),
                 allfold_type_name(y_type));
}

static allfold_status cuda_softmax(struct queue *queue, const struct softmax_constants *constants, bool logarithm,
                                   allfold_type x_type, const void *x, allfold_type y_type, void *y, uint64_t n,
                                   struct error *error)
{
    struct cuda_queue *const working = (struct cuda_queue *)queue;
    const struct softmax_resident call = {.logarithm = logarithm, .type = x_type, .x = x, .y = y, .n = n};
    if (working->resident == RESIDENT_HOLDS) {
        softmax_order(working->mailbox, working->space.number, constants);
        working->constants = *constants;
        working->resident = RESIDENT_WRITES;
        return ALLFOLD_OK;
    }
    if (use(cuda_of(queue), error) != ALLFOLD_OK)
        return error->status;
    return softmax_start(working, constants, &call, y_type, error);
}

/* Takes what the last fold has left, if all of it is there. */
static bool take_partial(struct cuda_queue *queue)
{
    if (!fold_result(queue->mailbox, queue->space.number, queue->awaited, queue->queue.partial))
        return false;
    queue->awaited = 0;
    return true;
}

/* Takes how a resident softmax has ended: whether y is written. */
static bool take_outcome(struct cuda_queue *queue)
{
    bool written;
    if (!softmax_outcome(queue->mailbox, queue->space.number, &written))
        return false;
    queue->resident = written ? RESIDENT_NONE : RESIDENT_HOLDS;
    return true;
}

/* Whether the stream has work left; an error that it met is not told here. */
static bool is_busy(cudaStream_t stream)
{
    const bool busy = cudaStreamQuery(stream) == cudaErrorNotReady;
    if (busy)
        cudaGetLastError(); /* the caller's program must not find it */
    return busy;
}

static bool look(struct cuda_queue *queue, bool (*take)(struct cuda_queue *queue))
{
    for (int i = 0; i < LOOKS; i++)
        if (take(queue))
            return true;
    return false;
}

/* Looks for a message for a while, then has the driver wait for the stream, and looks again. Where the kernels behind the one that
   sends the message wait for orders, the driver cannot wait: it is asked, again and again. */
static allfold_status watch(struct cuda_queue *queue, bool (*take)(struct cuda_queue *queue), cudaStream_t stream,
                            struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(&queue->queue);
    const double start = clock_seconds();
    do
        if (look(queue, take))
            return ALLFOLD_OK;
    while (clock_seconds() - start < WATCH_SECONDS);
    if (use(cuda, error) != ALLFOLD_OK)
        return error->status;
    while (queue->resident == RESIDENT_FOLDS && is_busy(stream))
        if (look(queue, take))
            return ALLFOLD_OK;
    if (check(cuda, cudaStreamSynchronize(stream), error, "cudaStreamSynchronize") != ALLFOLD_OK)
        return error->status;
    return take(queue) ? ALLFOLD_OK
                       : error_set(error, ALLFOLD_DEVICE_ERROR, "CUDA device %d: a kernel left no result", cuda->index);
}

/* What wait does for a resident softmax. One whose orders come too late has left y as it was: the usual kernel writes it. */
static allfold_status wait_resident(struct cuda_queue *queue, struct error *error)
{
    const enum resident was = queue->resident;
    if (was == RESIDENT_FOLDS) {
        watch(queue, take_partial, queue->resident_stream, error);
        queue->resident = error->status == ALLFOLD_OK ? RESIDENT_HOLDS : RESIDENT_NONE;
        return error->status;
    }
    queue->resident = RESIDENT_NONE;
    if (was == RESIDENT_HOLDS) /* nobody goes on with it */
        softmax_order(queue->mailbox, queue->space.number, NULL);
    if (watch(queue, take_outcome, queue->resident_stream, error) != ALLFOLD_OK || was == RESIDENT_HOLDS
        || queue->resident == RESIDENT_NONE) {
        queue->resident = RESIDENT_NONE;
        return error->status;
    }
    queue->resident = RESIDENT_NONE;
    if (softmax_start(queue, &queue->constants, &queue->resident_call, queue->resident_call.type, error) != ALLFOLD_OK)
        return error->status;
    return check(cuda_of(&queue->queue), cudaStreamSynchronize(queue->stream), error, "cudaStreamSynchronize");
}

static allfold_status cuda_wait(struct queue *queue, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const waiting = (struct cuda_queue *)queue;
    const cudaStream_t stream = waiting->stream;
    waiting->stream = waiting->own;
    if (waiting->resident != RESIDENT_NONE)
        return wait_resident(waiting, error);
    if (waiting->awaited > 0 && waiting->fold_last) {
        watch(waiting, take_partial, stream, error);
        waiting->awaited = 0;
        return error->status;
    }
    if (use(cuda, error) != ALLFOLD_OK)
        return error->status;
    return check(cuda, cudaStreamSynchronize(stream), error, "cudaStreamSynchronize");
}

const struct backend backend_cuda = {
    .name = "cuda",
    .visible = cuda_visible,
    .open = cuda_open,
    .budget = cuda_budget,
    .close = cuda_close,
    .describe = cuda_describe,
    .link = cuda_link,
    .locate = cuda_locate,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .queue_open = cuda_queue_open,
    .queue_close = cuda_queue_close,
    .enter = cuda_enter,
    .follow = cuda_follow,
    .upload = cuda_upload,
    .download = cuda_download,
    .fold = cuda_fold,
    .softmax = cuda_softmax,
    .softmax_begin = cuda_softmax_begin,
    .wait = cuda_wait,
};
