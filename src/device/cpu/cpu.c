/* The CPU backend: the host's memory is the device's, OpenMP threads its multiprocessors. An array is cut into blocks
   by its length alone and the blocks' partials are combined in order, so the bits do not depend on the threads. */
#include "base/host.h"
#include "device/cpu/cpu.h"
#include "fold/exponential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    SHARD_BYTES = 4 << 20,  /* of a file that is not in the system's cache: one request to the disk */
    WINDOW_BYTES = 512 << 10 /* stays in the second-level cache of the thread that reads and folds it */
};

static struct visible cpu_visible(struct error *why)
{
    (void)why;
    return (struct visible){.count = 1};
}

static const struct cpu_loops *const loops_of[] = {
    [ISA_BASE] = &cpu_loops_base,
#ifdef ALLFOLD_HAVE_X86_ISA
    [ISA_AVX2] = &cpu_loops_avx2,
    [ISA_AVX512] = &cpu_loops_avx512,
#endif
};

static void describe(struct cpu_device *cpu)
{
    struct device_info *const info = &cpu->device.info;
    snprintf(info->name, sizeof info->name, "CPU (%s)", cpu->loops->name);
    info->visible = 1;
    info->numa_node = host_numa_node();
    info->memory_total = host_memory();
    info->memory_free = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static allfold_status cpu_open(int number, int local_size, const allfold_options *options, struct device **device,
                               struct error *error)
{
    (void)number;
    struct cpu_device *cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the CPU backend");
    cpu->loops = loops_of[host_isa()];
    cpu->device.backend = &backend_cpu;
    describe(cpu);
    snprintf(cpu->device.label, sizeof cpu->device.label, "cpu");
    cpu->device.threads = options->threads > 0 ? options->threads : host_threads(local_size);
    *device = &cpu->device;
    return ALLFOLD_OK;
}

static void cpu_budget(struct device *device, const allfold_options *options)
{
    device->memory = 0; /* streams: what a file holds stays in the file */
    device->shard_bytes = options->staging_bytes > 0 ? options->staging_bytes : SHARD_BYTES;
    device->window_bytes = (size_t)u64_min(device->shard_bytes, WINDOW_BYTES);
    device->worker_queues = 1;
    device->workers = device->threads;
}

static void cpu_close(struct device *device) { free(device); }

static allfold_status cpu_locate(struct device *device, const void *memory, enum place *place, struct error *error)
{
    (void)device;
    (void)memory;
    (void)error;
    *place = PLACE_DEVICE;
    return ALLFOLD_OK;
}

static allfold_status cpu_allocate(struct device *device, size_t bytes, void **memory, struct error *error)
{
    (void)device;
    *memory = host_allocate(bytes);
    return *memory != NULL ? ALLFOLD_OK : error_set(error, ALLFOLD_NO_MEMORY, "no memory for %zu bytes", bytes);
}

static void cpu_release(struct device *device, void *memory)
{
    (void)device;
    free(memory);
}

static void cpu_queue_close(struct queue *queue)
{
    if (queue == NULL)
        return;
    free(((struct cpu_queue *)queue)->blocks);
    free(((struct cpu_queue *)queue)->scratch);
    free(((struct cpu_queue *)queue)->shared);
    free(queue);
}

static struct cpu_queue *open_queue(struct device *device, size_t bytes)
{
    struct cpu_queue *const opened = aligned_alloc(64, (sizeof *opened + 63) / 64 * 64);
    if (opened == NULL)
        return NULL;
    memset(opened, 0, sizeof *opened);
    opened->queue = (struct queue){.device = device, .bytes = bytes, .partial = &opened->partial};
    if (bytes > 0 || (opened->blocks = aligned_alloc(64, BLOCKS_MAX * sizeof(struct partial))) != NULL)
        return opened;
    free(opened);
    return NULL;
}

/* The staging buffers are one allocation, of which each thread is the first to touch its own. */
static allfold_status cpu_queues_open(struct device *device, size_t bytes, int count, struct queue **queues, struct error *error)
{
    void *staging = NULL;
    if (bytes > 0 && cpu_allocate(device, bytes * (size_t)count, &staging, error) != ALLFOLD_OK)
        return error->status;
    for (int i = 0; i < count; i++) {
        struct cpu_queue *const opened = open_queue(device, bytes);
        if (opened == NULL) {
            while (i-- > 0)
                cpu_queue_close(queues[i]);
            free(staging);
            return error_set(error, ALLFOLD_NO_MEMORY, "no memory for a queue");
        }
        opened->queue.staging = opened->queue.buffer = bytes > 0 ? (char *)staging + (size_t)i * bytes : NULL;
        queues[i] = &opened->queue;
    }
    ((struct cpu_queue *)queues[0])->shared = staging;
    return ALLFOLD_OK;
}

static allfold_status cpu_follow(struct queue *queue, void *stream, struct error *error)
{
    (void)queue;
    if (stream != NULL)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "a CUDA stream was passed to the CPU backend, which takes host memory only: "
                         "expected none");
    return ALLFOLD_OK;
}

static allfold_status cpu_copy(struct queue *queue, const void *from, void *to, size_t bytes, struct error *error)
{
    (void)queue;
    (void)error;
    if (to != from)
        memcpy(to, from, bytes);
    return ALLFOLD_OK;
}

static allfold_status cpu_fold(struct queue *queue, const struct work *work, struct error *error)
{
    (void)error;
    struct cpu_queue *const cpu = (struct cpu_queue *)queue;
    if (work->n > BLOCK && cpu->blocks != NULL)
        cpu_fold_by_all(cpu, work, &cpu->partial);
    else
        cpu_fold_by_caller(cpu_loops_of(queue), work, &cpu->partial);
    return ALLFOLD_OK;
}

static allfold_status cpu_fold_many(struct queue *queue, const struct fold_item *items, uint64_t count, bool last, struct error *error)
{
    (void)last;
    (void)error;
    cpu_fold_many_by_all((const struct cpu_queue *)queue, items, count);
    return ALLFOLD_OK;
}

static allfold_status cpu_order(struct queue *queue, const struct order_work *work, struct error *error)
{
    return host_order(work, queue->bytes == 0 ? queue->device->threads : 1, error);
}

static allfold_status cpu_softmax_begin(struct queue *queue, const struct softmax_work *work, bool single_rank, struct error *error)
{
    const enum monoid monoid = softmax_monoid(work->x_type, work->y_type, work->logarithm, work->level);
    (void)single_rank;
    ((struct cpu_queue *)queue)->softmax = *work;
    return cpu_fold(queue, &(struct work){monoid, work->x_type, work->x, work->box.length, 0, NULL, NULL}, error);
}

static allfold_status cpu_softmax_finish(struct queue *queue, const struct softmax_constants *constants, struct error *error)
{
    const struct softmax_work *const work = &((struct cpu_queue *)queue)->softmax;
    struct softmax_constants own;
    if (constants == NULL) {
        softmax_constants_set(softmax_monoid(work->x_type, work->y_type, work->logarithm, work->level), queue->partial, &own);
        constants = &own;
    }
    cpu_softmax_axis(queue, work, constants, PLACE_HOST, error);
    return error->status;
}

static allfold_status cpu_wait(struct queue *queue, struct error *error)
{
    (void)queue;
    (void)error;
    return ALLFOLD_OK;
}

const struct backend backend_cpu = {
    .id = ALLFOLD_BACKEND_CPU,
    .name = "cpu",
    .devices = "CPU",
    .visible = cpu_visible,
    .open = cpu_open,
    .budget = cpu_budget,
    .close = cpu_close,
    .locate = cpu_locate,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .queues_open = cpu_queues_open,
    .queue_close = cpu_queue_close,
    .enter = cpu_follow,
    .follow = cpu_follow,
    .copy = cpu_copy,
    .fold = cpu_fold,
    .fold_many = cpu_fold_many,
    .order = cpu_order,
    .softmax_begin = cpu_softmax_begin,
    .softmax_finish = cpu_softmax_finish,
    .fold_axis = cpu_fold_axis,
    .gradient_axis = cpu_gradient_axis,
    .softmax_axis = cpu_softmax_axis,
    .wait = cpu_wait,
};
