/* The CPU backend: the host's memory is the device's, OpenMP threads its multiprocessors. An array is cut into blocks
   by its length alone and the blocks' partials are combined in order, so the bits do not depend on the threads. */
#include "base/host.h"
#include "device/cpu/loops.h"
#include "device/device.h"
#include "fold/exponential.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    BLOCK = 1 << 16,       /* least elements of a block: shorter arrays are one, folded without waking threads */
    BLOCKS_MAX = 4096,     /* so partials need little memory, whatever the length */
    SHARD_BYTES = 4 << 20,  /* of a file that is not in the system's cache: one request to the disk */
    WINDOW_BYTES = 512 << 10 /* stays in the second-level cache of the thread that reads and folds it */
};

struct cpu_device {
    struct device device;
    const struct cpu_loops *loops;
};

struct cpu_queue {
    struct queue queue;
    struct partial partial;
    struct softmax_work softmax; /* begun, and where x is the whole array */
    bool single_rank;
    unsigned char *blocks; /* of a queue without staging: partials of blocks, as close as their size allows, for all threads */
    void *shared;          /* of the first of some queues: the staging buffers of all */
};

static int cpu_visible(struct error *why)
{
    (void)why;
    return 1;
}

static const struct cpu_loops *const loops_of[] = {
    [ISA_BASE] = &cpu_loops_base,
#ifdef ALLFOLD_HAVE_X86_ISA
    [ISA_AVX2] = &cpu_loops_avx2,
    [ISA_AVX512] = &cpu_loops_avx512,
#endif
};

static allfold_status cpu_open(int local_rank, int local_size, const allfold_options *options, struct device **device,
                               struct error *error)
{
    (void)local_rank;
    struct cpu_device *cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the CPU backend");
    cpu->loops = loops_of[host_isa()];
    cpu->device.backend = &backend_cpu;
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

static void cpu_describe(const struct device *device, struct device_info *info)
{
    memset(info, 0, sizeof *info);
    snprintf(info->name, sizeof info->name, "CPU (%s)", ((const struct cpu_device *)device)->loops->name);
    info->visible = 1;
    info->numa_node = host_numa_node();
    info->threads = device->threads;
    info->memory_total = host_memory();
    info->memory_free = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void cpu_link(const struct device *device, const char *pci, char text[LINK_BYTES])
{
    (void)device;
    (void)pci;
    text[0] = '\0';
}

static allfold_status cpu_locate(struct device *device, const void *memory, enum place *place, struct error *error)
{
    (void)device;
    (void)memory;
    (void)error;
    *place = PLACE_DEVICE;
    return ALLFOLD_OK;
}

/* Large memory in huge pages, where the system gives them to who asks: fewer misses of the address cache. */
static allfold_status cpu_allocate(struct device *device, size_t bytes, void **memory, struct error *error)
{
    (void)device;
    const size_t huge = (size_t)2 << 20, unit = bytes >= 2 * huge ? huge : 4096;
    void *allocated = bytes <= PTRDIFF_MAX ? aligned_alloc(unit, (bytes + unit - 1) / unit * unit) : NULL;
    if (allocated == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %zu bytes", bytes);
#ifdef MADV_HUGEPAGE
    if (unit == huge)
        madvise(allocated, (bytes + unit - 1) / unit * unit, MADV_HUGEPAGE); /* a wish, no more */
#endif
    *memory = allocated;
    return ALLFOLD_OK;
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

static allfold_status cpu_upload(struct queue *queue, const void *from, void *to, size_t bytes, struct error *error)
{
    (void)queue;
    (void)error;
    if (to != from)
        memcpy(to, from, bytes);
    return ALLFOLD_OK;
}

static allfold_status cpu_download(struct queue *queue, const void *from, size_t bytes, const void **host,
                                   struct error *error)
{
    (void)queue;
    (void)bytes;
    (void)error;
    *host = from;
    return ALLFOLD_OK;
}

/* Elements of a block of an array of n: a multiple of BLOCK. */
static uint64_t block_elements(uint64_t n)
{
    const uint64_t blocks = (n + BLOCK - 1) / BLOCK;
    return (blocks + BLOCKS_MAX - 1) / BLOCKS_MAX * BLOCK;
}

/* Folds a block of the work's elements. One of an array beyond 2^44 elements is taken in steps. */
static void fold_block(const struct cpu_loops *loops, const struct work *work, struct range block, struct partial *partial)
{
    const uint64_t end = block.first + block.count;
    monoid_identity(work->monoid, work->type, partial);
    for (uint64_t start = block.first; start < end; start += 1u << 31) {
        struct work step = *work;
        step.x = (const char *)work->x + start * allfold_type_bytes(work->type);
        step.y = work->y == NULL ? NULL : (const char *)work->y + start * allfold_type_bytes(work->type);
        step.n = u64_min(end - start, 1u << 31);
        step.first = work->first + start;
        loops->fold(&step, partial);
    }
}

static struct range block_range(const struct work *work, uint64_t block, uint64_t length)
{
    return (struct range){block * length, u64_min(length, work->n - block * length)};
}

/* All of the device's threads fold blocks. */
static void fold_by_all(struct cpu_queue *cpu, const struct work *work, uint64_t blocks, uint64_t length)
{
    const struct cpu_loops *const loops = ((struct cpu_device *)cpu->queue.device)->loops;
    const size_t stride = (monoid_bytes(work->monoid, work->type) + 63) / 64 * 64;
#pragma omp parallel for schedule(static) num_threads(cpu->queue.device->threads)
    for (uint64_t block = 0; block < blocks; block++)
        fold_block(loops, work, block_range(work, block, length), (struct partial *)(cpu->blocks + block * stride));
    for (uint64_t block = 0; block < blocks; block++)
        monoid_combine(work->monoid, work->type, &cpu->partial, (const struct partial *)(cpu->blocks + block * stride));
}

/* The same blocks in the same order, so the same bits, by the thread that calls. */
static void fold_alone(struct cpu_queue *cpu, const struct work *work, uint64_t blocks, uint64_t length)
{
    const struct cpu_loops *const loops = ((struct cpu_device *)cpu->queue.device)->loops;
    struct partial partial;
    for (uint64_t block = 0; block < blocks; block++) {
        fold_block(loops, work, block_range(work, block, length), &partial);
        monoid_combine(work->monoid, work->type, &cpu->partial, &partial);
    }
}

static allfold_status cpu_fold(struct queue *queue, const struct work *work, struct error *error)
{
    (void)error;
    struct cpu_queue *const cpu = (struct cpu_queue *)queue;
    const uint64_t length = work->n <= BLOCK ? BLOCK : block_elements(work->n), blocks = (work->n + length - 1) / length;
    monoid_identity(work->monoid, work->type, &cpu->partial);
    if (blocks <= 1)
        fold_block(((struct cpu_device *)queue->device)->loops, work, (struct range){0, work->n}, &cpu->partial);
    else if (cpu->blocks != NULL)
        fold_by_all(cpu, work, blocks, length);
    else
        fold_alone(cpu, work, blocks, length);
    return ALLFOLD_OK;
}

static allfold_status cpu_normalise(struct queue *queue, const struct softmax_work *work,
                                    const struct softmax_constants *constants, struct error *error)
{
    (void)error;
    const struct cpu_loops *const loops = ((struct cpu_device *)queue->device)->loops;
    const uint64_t blocks = (work->n + BLOCK - 1) / BLOCK;
#pragma omp parallel for schedule(static) num_threads(queue->device->threads) if (blocks > 1 && queue->bytes == 0)
    for (uint64_t block = 0; block < blocks; block++) {
        const uint64_t start = block * BLOCK;
        struct softmax_work step = *work;
        step.x = (const char *)work->x + start * allfold_type_bytes(work->x_type);
        step.y = (char *)work->y + start * allfold_type_bytes(work->y_type);
        step.n = u64_min(work->n - start, BLOCK);
        loops->normalise(&step, constants);
    }
    return ALLFOLD_OK;
}

static enum monoid cpu_softmax_monoid(const struct softmax_work *work)
{
    return softmax_monoid(work->x_type, work->y_type, work->logarithm, work->level);
}

static allfold_status cpu_softmax_begin(struct queue *queue, const struct softmax_work *work, bool single_rank, struct error *error)
{
    struct cpu_queue *const cpu = (struct cpu_queue *)queue;
    cpu->softmax = *work;
    cpu->single_rank = single_rank;
    return cpu_fold(queue, &(struct work){cpu_softmax_monoid(work), work->x_type, work->x, work->n, 0, NULL}, error);
}

static allfold_status cpu_softmax_finish(struct queue *queue, const struct softmax_constants *constants, struct error *error)
{
    struct cpu_queue *const cpu = (struct cpu_queue *)queue;
    struct softmax_constants own;
    if (cpu->single_rank)
        softmax_constants_set(cpu_softmax_monoid(&cpu->softmax), queue->partial, &own);
    return cpu_normalise(queue, &cpu->softmax, cpu->single_rank ? &own : constants, error);
}

static void cpu_softmax_cancel(struct queue *queue) { (void)queue; }

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
    .describe = cpu_describe,
    .link = cpu_link,
    .locate = cpu_locate,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .queues_open = cpu_queues_open,
    .queue_close = cpu_queue_close,
    .enter = cpu_follow,
    .follow = cpu_follow,
    .upload = cpu_upload,
    .download = cpu_download,
    .fold = cpu_fold,
    .normalise = cpu_normalise,
    .softmax_begin = cpu_softmax_begin,
    .softmax_partial = cpu_wait,
    .softmax_finish = cpu_softmax_finish,
    .softmax_cancel = cpu_softmax_cancel,
    .wait = cpu_wait,
};
