/* Queues of the CUDA backend. A queue is a stream of its own with a pinned staging buffer, a device buffer, the scratch memory of
   the fold kernels, and a message in mapped host memory into which they write and which wait watches: that tells the host
   sooner than the driver would. */
#include "device/cuda/cuda.h"

#include "base/host.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKS = 64 }; /* at a message between two looks at the clock */
/* How long wait watches a message before it falls back to the driver, which also reports failures. */
static const double WATCH_SECONDS = 1e-3;

/* Takes a queue that is open in part, too. */
void cuda_queue_close(struct queue *queue)
{
    if (queue == NULL)
        return;
    struct cuda_queue *const closed = (struct cuda_queue *)queue;
    cudaSetDevice(cuda_of(queue)->index);
    if (closed->own != NULL)
        cudaStreamSynchronize(closed->own);
    if (closed->registered) {
        cudaHostUnregister(closed->shared_host);
        free(closed->shared_host);
    } else {
        cudaFreeHost(closed->shared_host);
    }
    if (closed->shared_device != NULL && closed->uploads != NULL)
        cudaStreamDestroy(closed->uploads);
    if (closed->shared_device != NULL && closed->folds != NULL)
        cudaStreamDestroy(closed->folds);
    cudaFree(closed->shared_device);
    cudaFreeHost(closed->many.host);
    cudaFree(closed->many.device);
    if (closed->followed != NULL)
        cudaEventDestroy(closed->followed);
    if (closed->uploaded != NULL)
        cudaEventDestroy(closed->uploaded);
    if (closed->own != NULL)
        cudaStreamDestroy(closed->own);
    cudaGetLastError();
    free(queue->partial);
    free(closed);
}

static size_t round_up(size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

/* What each of `count` queues has: bytes of a mailbox and of staging in host memory, of scratch memory and a buffer on the device. */
struct shares {
    size_t count, mailbox, staging, scratch, buffer;
};

/* Pins much memory of the host, whose pages all threads have made: in a tenth of the time that cudaHostAlloc takes. For little, threads are not
   woken. False: it has left nothing behind. */
static bool pin_much(struct cuda_queue *owner, size_t bytes)
{
    enum { LEAST = 16 << 20, SHARE = 1 << 20, PAGE = 4096 };
    char *const memory = bytes >= LEAST ? host_allocate(bytes) : NULL;
    void *seen = NULL;
    const int threads = copying_threads(owner->queue.device->threads);
    if (memory == NULL)
        return false;
#pragma omp parallel for num_threads(threads)
    for (size_t share = 0; share < bytes; share += SHARE)
        for (size_t at = share; at < bytes && at < share + SHARE; at += PAGE)
            memory[at] = 0;
    owner->registered = cudaHostRegister(memory, bytes, cudaHostRegisterMapped) == cudaSuccess;
    if (owner->registered && cudaHostGetDevicePointer(&seen, memory, 0) == cudaSuccess && seen == memory) {
        owner->shared_host = memory;
        return true;
    }
    if (owner->registered)
        cudaHostUnregister(memory);
    owner->registered = false;
    cudaGetLastError();
    free(memory);
    return false;
}

/* Host memory and device memory of all queues, one allocation each, and the streams of their uploads and folds, of which the first queue becomes the owner. */
static allfold_status allocate_shared(struct cuda_queue *owner, const struct shares *each, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(&owner->queue);
    const size_t host = each->count * (each->mailbox + each->staging), device = each->count * (each->scratch + each->buffer);
    if ((!pin_much(owner, host)
         && cuda_check(cuda, cudaHostAlloc(&owner->shared_host, host, cudaHostAllocMapped), error,
                       "cudaHostAlloc of %zu staging buffers, %zu bytes", each->count, host) != ALLFOLD_OK)
        || cuda_check(cuda, cudaMalloc(&owner->shared_device, device), error, "cudaMalloc of %zu buffers, %zu bytes", each->count, device)
               != ALLFOLD_OK
        || (each->staging > 0
            && (cuda_check(cuda, cudaStreamCreateWithFlags(&owner->uploads, cudaStreamNonBlocking), error, "cudaStreamCreate") != ALLFOLD_OK
                || cuda_check(cuda, cudaStreamCreateWithFlags(&owner->folds, cudaStreamNonBlocking), error, "cudaStreamCreate") != ALLFOLD_OK))
        || cuda_check(cuda, cudaMemsetAsync(owner->shared_device, 0, each->count * each->scratch, owner->own), error,
                      "cudaMemsetAsync") != ALLFOLD_OK
        || cuda_check(cuda, cudaStreamSynchronize(owner->own), error, "cudaMemsetAsync") != ALLFOLD_OK)
        return error->status;
    memset(owner->shared_host, 0, each->count * each->mailbox);
    return ALLFOLD_OK;
}

/* Gives queue number i its parts. The mailboxes lie first, then the staging buffers; so do scratch memory and buffers. */
static allfold_status take_share(struct cuda_queue *queue, const struct cuda_queue *owner, const struct shares *each, size_t i,
                                 struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(&queue->queue);
    char *const host = owner->shared_host, *const device = owner->shared_device;
    queue->mailbox = (struct fold_mailbox *)(host + i * each->mailbox);
    queue->uploads = owner->uploads;
    queue->folds = owner->folds;
    queue->space.multiprocessors = cuda->multiprocessors;
    queue->space.scratch = device + i * each->scratch;
    queue->queue.staging = each->staging > 0 ? host + each->count * each->mailbox + i * each->staging : NULL;
    queue->queue.buffer = each->buffer > 0 ? device + each->count * each->scratch + i * each->buffer : NULL;
    queue->queue.bytes = each->buffer;
    return cuda_check(cuda, cudaHostGetDevicePointer((void **)&queue->space.mailbox, queue->mailbox, 0), error,
                      "cudaHostGetDevicePointer");
}

/* A queue without memory. */
static allfold_status open_queue(struct device *device, struct queue **queue, struct error *error)
{
    const struct cuda_device *const cuda = (const struct cuda_device *)device;
    struct cuda_queue *const opened = calloc(1, sizeof *opened);
    if (opened == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for a queue");
    opened->queue.device = device;
    opened->queue.partial = malloc(sizeof *opened->queue.partial);
    if (opened->queue.partial == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for a partial");
    else if (cuda_use(cuda, error) == ALLFOLD_OK
             && cuda_check(cuda, cudaStreamCreateWithFlags(&opened->own, cudaStreamNonBlocking), error, "cudaStreamCreate")
                    == ALLFOLD_OK
             && cuda_check(cuda, cudaEventCreateWithFlags(&opened->followed, cudaEventDisableTiming), error, "cudaEventCreate")
                    == ALLFOLD_OK
             && cuda_check(cuda, cudaEventCreateWithFlags(&opened->uploaded, cudaEventDisableTiming), error, "cudaEventCreate")
                    == ALLFOLD_OK) {
        opened->stream = opened->own;
        *queue = &opened->queue;
        return ALLFOLD_OK;
    }
    cuda_queue_close(&opened->queue);
    return error->status;
}

allfold_status cuda_queues_open(struct device *device, size_t bytes, int count, struct queue **queues, struct error *error)
{
    const struct cuda_device *const cuda = (const struct cuda_device *)device;
    const struct shares each = {(size_t)count, round_up(sizeof(struct fold_mailbox)), bytes, round_up(fold_scratch_bytes(cuda->multiprocessors)), bytes};
    int opened = 0;
    while (opened < count && open_queue(device, &queues[opened], error) == ALLFOLD_OK)
        opened++;
    struct cuda_queue *const owner = opened > 0 ? (struct cuda_queue *)queues[0] : NULL;
    if (error->status == ALLFOLD_OK)
        allocate_shared(owner, &each, error);
    for (int i = 0; i < count && error->status == ALLFOLD_OK; i++)
        take_share((struct cuda_queue *)queues[i], owner, &each, (size_t)i, error);
    while (error->status != ALLFOLD_OK && opened > 0)
        cuda_queue_close(queues[--opened]);
    return error->status;
}

static cudaStream_t stream_of_caller(void *stream) { return stream != NULL ? (cudaStream_t)stream : cudaStreamLegacy; }

allfold_status cuda_enter(struct queue *queue, void *stream, struct error *error)
{
    (void)error;
    ((struct cuda_queue *)queue)->stream = stream_of_caller(stream);
    return ALLFOLD_OK;
}

allfold_status cuda_follow(struct queue *queue, void *stream, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    const struct cuda_queue *const follower = (const struct cuda_queue *)queue;
    const cudaStream_t leader = stream_of_caller(stream);
    if (cuda_use(cuda, error) != ALLFOLD_OK
        || cuda_check(cuda, cudaEventRecord(follower->followed, leader), error, "cudaEventRecord in the caller's stream")
               != ALLFOLD_OK
        || cuda_check(cuda, cudaStreamWaitEvent(follower->stream, follower->followed, 0), error, "cudaStreamWaitEvent") != ALLFOLD_OK
        || follower->folds == NULL)
        return error->status;
    return cuda_check(cuda, cudaStreamWaitEvent(follower->folds, follower->followed, 0), error, "cudaStreamWaitEvent");
}

/* Whether a copy goes through the stream of uploads: nothing but others like it may have been started since the last wait. */
static bool is_upload(const struct cuda_queue *queue, const void *from)
{
    const char *const staging = queue->queue.staging;
    return queue->last <= QUEUE_UPLOADS && (const char *)from >= staging && (const char *)from < staging + queue->queue.bytes;
}

allfold_status cuda_ready(struct queue *queue, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const ready = (struct cuda_queue *)queue;
    if (cuda_use(cuda, error) == ALLFOLD_OK && ready->last == QUEUE_UPLOADS)
        cuda_check(cuda, cudaStreamWaitEvent(ready->stream, ready->uploaded, 0), error, "cudaStreamWaitEvent");
    ready->last = QUEUE_OTHER;
    return error->status;
}

static allfold_status copied(struct cuda_queue *queue, bool uploads, cudaError_t code, size_t bytes, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(&queue->queue);
    queue->last = uploads ? QUEUE_UPLOADS : QUEUE_OTHER;
    if (cuda_check(cuda, code, error, "cudaMemcpyAsync of %zu bytes", bytes) == ALLFOLD_OK && uploads)
        cuda_check(cuda, cudaEventRecord(queue->uploaded, queue->uploads), error, "cudaEventRecord");
    return error->status;
}

allfold_status cuda_copy(struct queue *queue, const void *from, void *to, size_t bytes, struct error *error)
{
    struct cuda_queue *const copying = (struct cuda_queue *)queue;
    if (bytes > queue->bytes)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "a copy of %zu bytes through a queue of %zu", bytes, queue->bytes);
    const bool uploads = is_upload(copying, from);
    if (bytes == 0 || (uploads ? cuda_use(cuda_of(queue), error) : cuda_ready(queue, error)) != ALLFOLD_OK)
        return error->status;
    return copied(copying, uploads, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, uploads ? copying->uploads : copying->stream), bytes, error);
}

/* Whether cudaMemcpy2DAsync copies them, which takes no rows that are further apart. */
static bool are_rows(const struct strided_copy *copy)
{
    const int64_t most = INT32_MAX / (int64_t)copy->bytes;
    return copy->dimensions == 2 && copy->from_step[1] == 1 && copy->to_step[1] == 1 && copy->from_step[0] > 0 && copy->from_step[0] <= most
           && copy->to_step[0] > 0 && copy->to_step[0] <= most;
}

allfold_status cuda_copy_strided(struct queue *queue, const struct strided_copy *copy, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const copying = (struct cuda_queue *)queue;
    if (are_rows(copy) && is_upload(copying, copy->from) && cuda_use(cuda, error) == ALLFOLD_OK) {
        const size_t bytes = (size_t)copy->extent[1] * copy->bytes, rows = (size_t)copy->extent[0];
        return copied(copying, true,
                      cudaMemcpy2DAsync(copy->to, (size_t)copy->to_step[0] * copy->bytes, copy->from, (size_t)copy->from_step[0] * copy->bytes, bytes, rows,
                                        cudaMemcpyDefault, copying->uploads),
                      rows * bytes, error);
    }
    if (cuda_ready(queue, error) != ALLFOLD_OK)
        return error->status;
    return cuda_check(cuda, (cudaError_t)strided_launch(copy, cuda->multiprocessors, copying->stream), error,
                      "launching the kernel that copies elements that lie apart");
}

allfold_status cuda_generate(struct queue *queue, const struct draw *draw, struct range range, void *to, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const generating = (struct cuda_queue *)queue;
    if (cuda_ready(queue, error) != ALLFOLD_OK)
        return error->status;
    return cuda_check(cuda, (cudaError_t)generate_launch(draw, range, to, cuda->multiprocessors, generating->stream), error,
                      "launching the kernel that generates elements");
}

allfold_status cuda_fold(struct queue *queue, const struct work *work, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const folding = (struct cuda_queue *)queue;
    if (folding->last == QUEUE_UPLOADS && folding->stream == folding->own)
        folding->stream = folding->folds;
    if (cuda_ready(queue, error) != ALLFOLD_OK)
        return error->status;
    const int code = fold_launch(work, &folding->space, folding->stream);
    folding->awaited = code == cudaSuccess ? monoid_bytes(work->monoid, work->type) : 0;
    folding->last = QUEUE_MESSAGE;
    return cuda_check(cuda, (cudaError_t)code, error, "launching the fold kernel for %s", allfold_type_name(work->type));
}

bool cuda_take_partial(struct cuda_queue *queue)
{
    if (!fold_result(queue->mailbox, queue->space.launch_id, queue->awaited, queue->queue.partial))
        return false;
    queue->awaited = 0;
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

/* A driver synchronise would wait for more than the kernel that sends the message: for kernels behind it that wait for orders, or for the
   caller's later work. */
static bool shares_stream(const struct cuda_queue *queue)
{
    return queue->state == SOFTMAX_AWAITS_ORDERS || queue->stream != queue->own;
}

allfold_status cuda_watch(struct cuda_queue *queue, bool (*take)(struct cuda_queue *queue), struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(&queue->queue);
    const double start = clock_seconds();
    do
        if (look(queue, take))
            return ALLFOLD_OK;
    while (clock_seconds() - start < WATCH_SECONDS);
    if (cuda_use(cuda, error) != ALLFOLD_OK)
        return error->status;
    for (; shares_stream(queue) && is_busy(queue->stream); sched_yield())
        if (look(queue, take))
            return ALLFOLD_OK;
    if (cuda_check(cuda, cudaStreamSynchronize(queue->stream), error, "cudaStreamSynchronize") != ALLFOLD_OK)
        return error->status;
    return take(queue) ? ALLFOLD_OK
                       : error_set(error, ALLFOLD_DEVICE_ERROR, "CUDA device %d: a kernel left no result", cuda->index);
}

/* Kernels that wait for orders write nothing; the driver waits for all that is under way. */
static void cancel_softmax(struct cuda_queue *queue)
{
    if (queue->state == SOFTMAX_AWAITS_ORDERS)
        softmax_order(queue->mailbox, queue->space.launch_id, NULL);
    queue->state = SOFTMAX_IDLE;
    queue->last = QUEUE_OTHER;
}

allfold_status cuda_wait(struct queue *queue, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const waiting = (struct cuda_queue *)queue;
    if (waiting->state != SOFTMAX_IDLE)
        cancel_softmax(waiting);
    if (waiting->awaited > 0 && waiting->last == QUEUE_MESSAGE)
        cuda_watch(waiting, cuda_take_partial, error);
    else if (waiting->last != QUEUE_NOTHING && cuda_ready(queue, error) == ALLFOLD_OK)
        cuda_check(cuda, cudaStreamSynchronize(waiting->stream), error, "cudaStreamSynchronize");
    waiting->last = QUEUE_NOTHING;
    waiting->awaited = 0;
    waiting->many.launches = 0; /* of a call that failed */
    waiting->stream = waiting->own;
    return error->status;
}
