/* Folds of several arrays: two launches for all that have one monoid and one value type. Launches go on until all items are known, or until
   memory for their tables is used up. */
#include "device/cuda/cuda.h"

#include <string.h>

enum { PARTIALS_BYTES = 16 << 20 }; /* of the splits of one launch, or those of one array */

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

/* As many items as one launch takes, from launch->first on. Returns the item behind them. */
static uint64_t measure(struct cuda_many_launch *launch, const struct fold_item *items, uint64_t count)
{
    struct many_work *const work = &launch->work;
    uint64_t i = launch->first;
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
    launch->items = items;
    return i;
}

static size_t host_bytes(const struct cuda_many_launch *launch) { return launch->tables + launch->work.count * launch->stride; }
static size_t device_bytes(const struct cuda_many_launch *launch) { return launch->tables + launch->work.splits * launch->stride; }

static void take_results(const struct cuda_many_launch *launch)
{
    const char *result = launch->host + launch->tables;
    for (uint64_t i = launch->first, done = 0; done < launch->work.count; i++) {
        const struct fold_item *const item = &launch->items[i];
        if (!is_of_kind(&item->work, &launch->work))
            continue;
        memcpy(item->partial, result, monoid_bytes(item->work.monoid, item->work.type));
        result += launch->stride;
        done++;
    }
}

/* Waits for the launches under way, and takes what they found. All memory is free then. */
static allfold_status take_launches(struct cuda_queue *queue, struct error *error)
{
    struct cuda_many *const many = &queue->many;
    if (many->launches > 0
        && cuda_check(cuda_of(&queue->queue), cudaStreamSynchronize(queue->stream), error, "cudaStreamSynchronize") == ALLFOLD_OK)
        for (int i = 0; i < many->launches; i++)
            take_results(&many->launch[i]);
    many->launches = 0;
    many->host_used = many->device_used = 0;
    return error->status;
}

/* Makes room for a launch. Memory is kept, and grows when nothing is under way. */
static allfold_status reserve(struct cuda_queue *queue, const struct cuda_many_launch *launch, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(&queue->queue);
    struct cuda_many *const many = &queue->many;
    const size_t host = host_bytes(launch), device = device_bytes(launch);
    if ((many->launches == CUDA_MANY_LAUNCHES || host > many->host_bytes - many->host_used || device > many->device_bytes - many->device_used)
        && take_launches(queue, error) != ALLFOLD_OK)
        return error->status;
    if (host > many->host_bytes) {
        cudaFreeHost(many->host);
        many->host = NULL;
        many->host_bytes = 0;
        if (cuda_check(cuda, cudaHostAlloc((void **)&many->host, 4 * host, cudaHostAllocMapped), error, "cudaHostAlloc of %zu bytes", 4 * host) != ALLFOLD_OK)
            return error->status;
        many->host_bytes = 4 * host;
    }
    if (device > many->device_bytes) {
        cudaFree(many->device);
        many->device = NULL;
        many->device_bytes = 0;
        if (cuda_check(cuda, cudaMalloc((void **)&many->device, 4 * device), error, "cudaMalloc of %zu bytes", 4 * device) != ALLFOLD_OK)
            return error->status;
        many->device_bytes = 4 * device;
    }
    return ALLFOLD_OK;
}

/* Tables lie first in the launch's memory, in host memory and on the device; behind them the results in host memory, which the kernel writes, and
   the partials of splits on the device. */
static void write_tables(struct cuda_many_launch *launch, char *device)
{
    struct many_work *const work = &launch->work;
    struct many_array *const arrays = (struct many_array *)launch->host;
    uint32_t *const owners = (uint32_t *)(arrays + work->count);
    uint32_t done = 0, first = 0;
    for (uint64_t i = launch->first; done < work->count; i++) {
        if (!is_of_kind(&launch->items[i].work, work))
            continue;
        arrays[done] = cut_of(&launch->items[i].work);
        arrays[done].first = first;
        for (uint32_t split = 0; split < arrays[done].splits; split++)
            owners[first++] = done;
        done++;
    }
    work->arrays = (const struct many_array *)device;
    work->owners = (const uint32_t *)(work->arrays + work->count);
    work->partials = device + launch->tables;
}

static allfold_status start(struct cuda_queue *queue, struct cuda_many_launch *launch, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(&queue->queue);
    struct cuda_many *const many = &queue->many;
    void *results = NULL;
    if (reserve(queue, launch, error) != ALLFOLD_OK)
        return error->status;
    char *const device = many->device + many->device_used;
    launch->host = many->host + many->host_used;
    if (cuda_check(cuda, cudaHostGetDevicePointer(&results, launch->host, 0), error, "cudaHostGetDevicePointer") != ALLFOLD_OK)
        return error->status;
    launch->work.results = (char *)results + launch->tables;
    write_tables(launch, device);
    many->host_used += (host_bytes(launch) + 255) / 256 * 256;
    many->device_used += (device_bytes(launch) + 255) / 256 * 256;
    many->host_used = many->host_used < many->host_bytes ? many->host_used : many->host_bytes;
    many->device_used = many->device_used < many->device_bytes ? many->device_used : many->device_bytes;
    if (cuda_check(cuda, cudaMemcpyAsync(device, launch->host, launch->tables, cudaMemcpyHostToDevice, queue->stream), error,
                   "cudaMemcpyAsync of %zu bytes to the device", launch->tables) == ALLFOLD_OK
        && cuda_check(cuda, (cudaError_t)many_launch(&launch->work, queue->stream), error, "launching the kernels that fold %u arrays of %s",
                      launch->work.count, allfold_type_name(launch->items[launch->first].work.type)) == ALLFOLD_OK)
        many->launch[many->launches++] = *launch;
    return error->status;
}

/* All items of the kind of items[first]. */
static allfold_status fold_kind(struct cuda_queue *queue, const struct fold_item *items, uint64_t first, uint64_t count, struct error *error)
{
    const struct work *const work = &items[first].work;
    struct cuda_many_launch launch = {.work = {.monoid = work->monoid, .value = type_value(work->type)}, .first = first,
                                      .stride = partial_stride(work->monoid, work->type)};
    for (uint64_t end; launch.first < count && error->status == ALLFOLD_OK; launch.first = end) {
        end = measure(&launch, items, count);
        if (launch.work.count > 0)
            start(queue, &launch, error);
    }
    return error->status;
}

allfold_status cuda_fold_many(struct queue *queue, const struct fold_item *items, uint64_t count, bool last, struct error *error)
{
    uint32_t seen = 0; /* bit t: type t */
    if (cuda_ready(queue, error) != ALLFOLD_OK)
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
    if (error->status == ALLFOLD_OK && last && take_launches((struct cuda_queue *)queue, error) == ALLFOLD_OK)
        cuda_wait(queue, error);
    return error->status;
}
