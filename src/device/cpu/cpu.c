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
    STAGING_BYTES = 4 << 20 /* shared by the threads: stays in the second-level caches */
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
    _Alignas(64) unsigned char blocks[BLOCKS_MAX * sizeof(struct partial)]; /* partials of blocks, as close as their size allows */
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
    device->staging_bytes = options->staging_bytes > 0 ? options->staging_bytes : STAGING_BYTES;
    device->queue_count = 1;
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

static allfold_status cpu_queue_open(struct device *device, size_t bytes, struct queue **queue, struct error *error)
{
    struct cpu_queue *opened = aligned_alloc(64, (sizeof *opened + 63) / 64 * 64);
    if (opened == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for a queue");
    memset(&opened->queue, 0, sizeof opened->queue);
    if (bytes > 0 && cpu_allocate(device, bytes, &opened->queue.staging, error) != ALLFOLD_OK) {
        free(opened);
        return error->status;
    }
    opened->queue.device = device;
    opened->queue.bytes = bytes;
    opened->queue.buffer = opened->queue.staging;
    opened->queue.partial = &opened->partial;
    *queue = &opened->queue;
    return ALLFOLD_OK;
}

static void cpu_queue_close(struct queue *queue)
{
    if (queue == NULL)
        return;
    free(queue->staging);
    free(queue);
}

static allfold_status cpu_follow(struct queue *queue, void *stream, struct error *error)
{
    (void)queue;
    if (stream != NULL)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "a CUDA stream was passed to the CPU backend: pass NULL");
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

static allfold_status cpu_fold(struct queue *queue, const struct work *work, struct error *error)
{
    (void)error;
    struct cpu_queue *const cpu = (struct cpu_queue *)queue;
    const struct cpu_loops *const loops = ((struct cpu_device *)queue->device)->loops;
    const enum monoid monoid = work->monoid;
    const allfold_type type = work->type;
    monoid_identity(monoid, type, &cpu->partial);
    if (work->n <= BLOCK) {
        loops->fold(work, &cpu->partial);
        return ALLFOLD_OK;
    }
    const uint64_t length = block_elements(work->n), blocks = (work->n + length - 1) / length;
    const size_t stride = (monoid_bytes(monoid, type) + 63) / 64 * 64;
#pragma omp parallel for schedule(static) num_threads(queue->device->threads)
    for (uint64_t block = 0; block < blocks; block++) {
        /* a block of an array beyond 2^44 elements is taken in steps */
        struct partial *const partial = (struct partial *)(cpu->blocks + block * stride);
        monoid_identity(monoid, type, partial);
        const uint64_t end = u64_min((block + 1) * length, work->n);
        for (uint64_t start = block * length; start < end; start += 1u << 31) {
            struct work step = *work;
            step.x = (const char *)work->x + start * allfold_type_bytes(type);
            step.n = u64_min(end - start, 1u << 31);
            step.first = work->first + start;
            loops->fold(&step, partial);
        }
    }
    for (uint64_t block = 0; block < blocks; block++)
        monoid_combine(monoid, type, &cpu->partial, (const struct partial *)(cpu->blocks + block * stride));
    return ALLFOLD_OK;
}

static allfold_status cpu_normalise(struct queue *queue, const struct softmax_work *work,
                                    const struct softmax_constants *constants, struct error *error)
{
    (void)error;
    const struct cpu_loops *const loops = ((struct cpu_device *)queue->device)->loops;
    const uint64_t blocks = (work->n + BLOCK - 1) / BLOCK;
#pragma omp parallel for schedule(static) num_threads(queue->device->threads) if (blocks > 1)
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
    return cpu_fold(queue, &(struct work){cpu_softmax_monoid(work), work->x_type, work->x, work->n, 0}, error);
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
    .queue_open = cpu_queue_open,
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
