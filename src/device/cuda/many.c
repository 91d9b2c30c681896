/* Folds of several arrays: two launches for all that have one monoid and one value type. */
#include "device/cuda/cuda.h"

#include <string.h>

enum { PARTIALS_BYTES = 16 << 20 }; /* of the splits of one launch, or those of one array */

/* The arrays of a launch. Tables lie first in the queue's memory for them, in host memory and on the device; behind them lie the results
   in host memory, which the kernel writes, and the partials of splits on the device. */
struct many_launch {
    struct many_work work;
    uint64_t next; /* item: those before it are done, or of another kind */
    size_t stride, tables, host_bytes, device_bytes;
};

static bool is_of_kind(const struct work *work, const struct many_work *kind)
{
    return work->monoid == kind->monoid && type_value(work->type) == kind->value;
}

static struct many_array cut_of(const struct work *work)
{
    struct many_array array = {.x = work->x, .n = work->n, .type = work->type};
    many_cut(&array);
    return array;
}

/* As many items as there is room for, from launch->next on. Returns the item behind them. */
static uint64_t measure(struct many_launch *launch, const struct fold_item *items, uint64_t count)
{
    struct many_work *const work = &launch->work;
    uint64_t i = launch->next;
    work->count = work->splits = 0;
    for (; i < count; i++) {
        if (!is_of_kind(&items[i].work, &launch->work))
            continue;
        const uint32_t splits = cut_of(&items[i].work).splits;
        if (work->count > 0 && (work->splits + splits) * launch->stride > PARTIALS_BYTES)
            break;
        work->count++;
        work->splits += splits;
    }
    launch->tables = (work->count * sizeof(struct many_array) + work->splits * sizeof(uint32_t) + 15) / 16 * 16;
    launch->host_bytes = launch->tables + work->count * launch->stride;
    launch->device_bytes = launch->tables + work->splits * launch->stride;
    return i;
}

/* Makes room, which is kept. */
static allfold_status reserve(struct cuda_queue *queue, const struct many_launch *launch, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(&queue->queue);
    if (launch->host_bytes > queue->many.host_bytes) {
        const size_t bytes = launch->host_bytes * 2;
        cudaFreeHost(queue->many.host);
        queue->many.host = NULL;
        queue->many.host_bytes = 0;
        if (cuda_check(cuda, cudaHostAlloc(&queue->many.host, bytes, cudaHostAllocMapped), error, "cudaHostAlloc of %zu bytes", bytes) != ALLFOLD_OK)
            return error->status;
        queue->many.host_bytes = bytes;
    }
    if (launch->device_bytes > queue->many.device_bytes) {
        const size_t bytes = launch->device_bytes * 2;
        cudaFree(queue->many.device);
        queue->many.device = NULL;
        queue->many.device_bytes = 0;
        if (cuda_check(cuda, cudaMalloc(&queue->many.device, bytes), error, "cudaMalloc of %zu bytes", bytes) != ALLFOLD_OK)
            return error->status;
        queue->many.device_bytes = bytes;
    }
    return ALLFOLD_OK;
}

static void write_tables(struct many_launch *launch, char *host, char *device, const struct fold_item *items)
{
    struct many_work *const work = &launch->work;
    struct many_array *const arrays = (struct many_array *)host;
    uint32_t *const owners = (uint32_t *)(arrays + work->count);
    uint32_t done = 0, first = 0;
    for (uint64_t i = launch->next; done < work->count; i++) {
        if (!is_of_kind(&items[i].work, work))
            continue;
        arrays[done] = cut_of(&items[i].work);
        arrays[done].first = first;
        for (uint32_t split = 0; split < arrays[done].splits; split++)
            owners[first++] = done;
        done++;
    }
    work->arrays = (const struct many_array *)device;
    work->owners = (const uint32_t *)(work->arrays + work->count);
    work->partials = device + launch->tables;
}

static allfold_status run(struct cuda_queue *queue, struct many_launch *launch, const struct fold_item *items, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(&queue->queue);
    void *results = NULL;
    if (reserve(queue, launch, error) != ALLFOLD_OK
        || cuda_check(cuda, cudaHostGetDevicePointer(&results, queue->many.host, 0), error, "cudaHostGetDevicePointer") != ALLFOLD_OK)
        return error->status;
    char *const host = queue->many.host;
    launch->work.results = (char *)results + launch->tables;
    write_tables(launch, host, queue->many.device, items);
    queue->last = QUEUE_OTHER;
    if (cuda_check(cuda, cudaMemcpyAsync(queue->many.device, host, launch->tables, cudaMemcpyHostToDevice, queue->stream), error,
                   "cudaMemcpyAsync of %zu bytes to the device", launch->tables) == ALLFOLD_OK
        && cuda_check(cuda, (cudaError_t)many_launch(&launch->work, queue->stream), error, "launching the kernels that fold %u arrays of %s",
                      launch->work.count, allfold_type_name(items[launch->next].work.type)) == ALLFOLD_OK)
        cuda_check(cuda, cudaStreamSynchronize(queue->stream), error, "cudaStreamSynchronize");
    return error->status;
}

static void take_results(const struct many_launch *launch, const char *host, const struct fold_item *items)
{
    const char *result = host + launch->tables;
    for (uint64_t i = launch->next, done = 0; done < launch->work.count; i++)
        if (is_of_kind(&items[i].work, &launch->work)) {
            memcpy(items[i].partial, result, monoid_bytes(items[i].work.monoid, items[i].work.type));
            result += launch->stride;
            done++;
        }
}

/* All items of the kind of items[first]. */
static allfold_status fold_kind(struct cuda_queue *queue, const struct fold_item *items, uint64_t first, uint64_t count, struct error *error)
{
    const struct work *const work = &items[first].work;
    struct many_launch launch = {.work = {.monoid = work->monoid, .value = type_value(work->type)}, .next = first,
                                 .stride = partial_stride(work->monoid, work->type)};
    for (uint64_t end; launch.next < count && error->status == ALLFOLD_OK; launch.next = end) {
        end = measure(&launch, items, count);
        if (launch.work.count > 0 && run(queue, &launch, items, error) == ALLFOLD_OK)
            take_results(&launch, queue->many.host, items);
    }
    return error->status;
}

allfold_status cuda_fold_many(struct queue *queue, const struct fold_item *items, uint64_t count, struct error *error)
{
    uint32_t seen = 0; /* bit t: type t */
    if (cuda_use(cuda_of(queue), error) != ALLFOLD_OK)
        return error->status;
    for (uint64_t i = 0; i < count && error->status == ALLFOLD_OK; i++) {
        const struct work *const work = &items[i].work;
        if ((seen >> work->type & 1) != 0)
            continue;
        const struct many_work kind = {.monoid = work->monoid, .value = type_value(work->type)};
        for (uint64_t j = i; j < count; j++)
            if (is_of_kind(&items[j].work, &kind))
                seen |= UINT32_C(1) << items[j].work.type;
        fold_kind((struct cuda_queue *)queue, items, i, count, error);
    }
    return error->status == ALLFOLD_OK ? cuda_wait(queue, error) : error->status;
}
