/* The benchmark on the CPU: the backend's own loops beside loops that only read or copy, with the same threads. */
#include "bench/machine.h"
#include "base/host.h"
#include "device/device.h"
#include "fold/exponential.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16 }; /* a thread's piece of work */

struct cpu_machine {
    struct machine machine;
    struct device *device;
    struct queue *queue;
    unsigned char *clear;
    uint64_t clear_bytes;
    volatile uint64_t sink; /* what was read, so that it must be read */
    double began, ended;
};

static struct cpu_machine *cpu_of(struct machine *machine) { return (struct cpu_machine *)machine; }

static void cpu_close(struct machine *machine)
{
    struct cpu_machine *const cpu = cpu_of(machine);
    if (cpu->device != NULL) {
        backend_cpu.release(cpu->device, cpu->clear);
        backend_cpu.release(cpu->device, machine->x);
        backend_cpu.release(cpu->device, machine->y);
        backend_cpu.queue_close(cpu->queue);
        backend_cpu.close(cpu->device);
    }
    free(cpu);
}

static allfold_status cpu_describe(struct machine *machine, struct bench_facts *facts, struct error *error)
{
    const struct device *const device = cpu_of(machine)->device;
    snprintf(facts->device, sizeof facts->device, "%s", device->info.name);
    facts->threads = device->threads;
    facts->memory = device->info.memory_total;
    facts->datasheet = NAN; /* memory does not tell a process how fast it is */
    facts->launch = facts->link_in = facts->link_out = NAN;
    return error->status;
}

/* Loops of each type. */
#define DEFINE_FILL(ID, name, bits)                                                                                    \
    static void fill_##name(element_##name *x, const struct bench_data *data, int threads)                            \
    {                                                                                                                  \
        const double unit = bench_unit_of(ALLFOLD_##ID, data->range);                                                  \
        _Pragma("omp parallel for num_threads(threads)")                                                               \
        for (uint64_t i = 0; i < data->count; i++)                                                                     \
            x[i] = bench_make_##name((double)bench_number(data->first + i, bits) * unit);                              \
    }                                                                                                                  \
    static double error_##name(const struct softmax_found *given, int threads)                                         \
    {                                                                                                                  \
        const element_##name *const x = given->x, *const y = given->y;                                                 \
        const double least = ALLFOLD_##ID == ALLFOLD_F16 ? 0x1p-14 : 0x1p-120;                                         \
        double most = 0.0;                                                                                             \
        _Pragma("omp parallel for num_threads(threads) reduction(max : most)")                                         \
        for (uint64_t k = 0; k < given->count; k++) {                                                                  \
            const uint64_t i = k * given->stride;                                                                      \
            const double expected = exp((double)load_##name(x[i])) / given->sumexp, found = (double)load_##name(y[i]); \
            const double error = fabs(found - expected) / (expected > least ? expected : least);                       \
            most = error <= most ? most : error == error ? error : INFINITY;                                           \
        }                                                                                                              \
        return most;                                                                                                   \
    }
BENCH_TYPES(DEFINE_FILL)
#undef DEFINE_FILL

static allfold_status cpu_fill(struct machine *machine, const struct bench_data *data, struct error *error)
{
    const int threads = cpu_of(machine)->device->threads;
    switch (data->type) {
#define CASE(ID, name, bits)                                                         \
    case ALLFOLD_##ID:                                                               \
        fill_##name((element_##name *)machine->x + data->place, data, threads);      \
        return ALLFOLD_OK;
        BENCH_TYPES(CASE)
#undef CASE
    default:
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "no data of type %d", (int)data->type);
    }
}

static allfold_status cpu_known(struct machine *machine, const struct bench_row_of *row, struct bench_known *known,
                                struct error *error)
{
    *known = bench_known_of_none();
#pragma omp parallel num_threads(cpu_of(machine)->device->threads)
    {
        struct bench_known own = bench_known_of_none();
#pragma omp for nowait
        for (uint64_t i = 0; i < row->count; i++)
            bench_know(&own, row, i);
#pragma omp critical(allfold_bench_known)
        bench_known_add(known, &own);
    }
    return error->status;
}

static allfold_status cpu_fetch(struct machine *machine, const void *from, void *to, size_t bytes, struct error *error)
{
    (void)machine;
    memcpy(to, from, bytes);
    return error->status;
}

double machine_cpu_softmax_error(const struct softmax_found *found, int threads)
{
    switch (found->type) {
#define CASE(ID, name, bits) \
    case ALLFOLD_##ID: return error_##name(found, threads);
        BENCH_TYPES(CASE)
#undef CASE
    default: return INFINITY;
    }
}

static allfold_status cpu_softmax_error(struct machine *machine, const struct softmax_found *found, double *worst, struct error *error)
{
    *worst = machine_cpu_softmax_error(found, cpu_of(machine)->device->threads);
    return error->status;
}

static allfold_status cpu_poison(struct machine *machine, uint64_t bytes, struct error *error)
{
    memset(machine->y, 0xff, bytes);
    return error->status;
}

/* Reads 8-byte words and ORs them in vectors: far less work than the memory allows. */
static uint64_t read_piece(const uint64_t *words, uint64_t count)
{
    uint64_t lanes[32] = {0}, all = 0, i = 0;
    for (; i + 32 <= count; i += 32)
        for (int lane = 0; lane < 32; lane++)
            lanes[lane] |= words[i + (uint64_t)lane];
    for (; i < count; i++)
        all |= words[i];
    for (int lane = 0; lane < 32; lane++)
        all |= lanes[lane];
    return all;
}

static uint64_t read_words(const uint64_t *words, uint64_t count, int threads)
{
    uint64_t all = 0;
    if (count <= PIECE / 8) /* without waking threads */
        return read_piece(words, count);
#pragma omp parallel for reduction(| : all) schedule(static) num_threads(threads)
    for (uint64_t piece = 0; piece < count; piece += PIECE / 8)
        all |= read_piece(words + piece, u64_min(PIECE / 8, count - piece));
    return all;
}

static allfold_status cpu_read(struct machine *machine, uint64_t bytes, struct error *error)
{
    struct cpu_machine *const cpu = cpu_of(machine);
    cpu->sink = read_words(machine->x, bytes / 8, cpu->device->threads);
    return error->status;
}

static allfold_status cpu_copy(struct machine *machine, uint64_t bytes, struct error *error)
{
    const int threads = cpu_of(machine)->device->threads;
    if (bytes <= PIECE) {
        memcpy(machine->y, machine->x, bytes);
        return error->status;
    }
#pragma omp parallel for schedule(static) num_threads(threads)
    for (uint64_t piece = 0; piece < bytes; piece += PIECE)
        memcpy((char *)machine->y + piece, (const char *)machine->x + piece, u64_min(PIECE, bytes - piece));
    return error->status;
}

/* Writes other memory on every thread, so that its caches hold that. */
static allfold_status cpu_clear(struct machine *machine, struct error *error)
{
    struct cpu_machine *const cpu = cpu_of(machine);
#pragma omp parallel for schedule(static) num_threads(cpu->device->threads)
    for (uint64_t i = 0; i < cpu->clear_bytes; i += 64)
        cpu->clear[i]++;
    return error->status;
}

static allfold_status cpu_nothing_to_do(struct machine *machine, uint64_t bytes, struct error *error)
{
    (void)machine;
    (void)bytes;
    return error->status;
}

static allfold_status cpu_wait(struct machine *machine, struct error *error)
{
    (void)machine;
    return error->status;
}

static allfold_status cpu_begin(struct machine *machine, struct error *error)
{
    cpu_of(machine)->began = clock_seconds();
    return error->status;
}

static allfold_status cpu_end(struct machine *machine, struct error *error)
{
    cpu_of(machine)->ended = clock_seconds();
    return error->status;
}

static allfold_status cpu_elapsed(struct machine *machine, double *seconds, struct error *error)
{
    *seconds = cpu_of(machine)->ended - cpu_of(machine)->began;
    return error->status;
}

static allfold_status cpu_fold(struct machine *machine, const struct work *work, struct error *error)
{
    return backend_cpu.fold(cpu_of(machine)->queue, work, error);
}

static allfold_status cpu_fold_taken(struct machine *machine, const struct work *work, struct partial *partial, struct error *error)
{
    (void)work;
    *partial = *cpu_of(machine)->queue->partial;
    return error->status;
}

static allfold_status cpu_softmax(struct machine *machine, const struct softmax_work *work, const struct partial *partial,
                                  struct error *error)
{
    struct queue *const queue = cpu_of(machine)->queue;
    (void)partial;
    if (backend_cpu.softmax_begin(queue, work, true, error) == ALLFOLD_OK)
        backend_cpu.softmax_finish(queue, NULL, error);
    return error->status;
}

static const struct machine_ops cpu_ops = {
    .name = "cpu",
    .close = cpu_close,
    .describe = cpu_describe,
    .fill = cpu_fill,
    .known = cpu_known,
    .fetch = cpu_fetch,
    .poison = cpu_poison,
    .softmax_error = cpu_softmax_error,
    .clear = cpu_clear,
    .wait = cpu_wait,
    .begin = cpu_begin,
    .end = cpu_end,
    .elapsed = cpu_elapsed,
    .read_prepare = cpu_nothing_to_do,
    .read = cpu_read,
    .copy_prepare = cpu_nothing_to_do,
    .copy = cpu_copy,
    .fold = cpu_fold,
    .fold_taken = cpu_fold_taken,
    .softmax = cpu_softmax,
};

/* Memory of whole cache lines, touched by the threads that will read it. */
static allfold_status allocate(struct cpu_machine *cpu, uint64_t bytes, int threads, void **memory, struct error *error)
{
    const uint64_t rounded = (bytes + 4095) / 4096 * 4096;
    struct error without = {0};
    if (backend_cpu.allocate(cpu->device, rounded, memory, &without) != ALLFOLD_OK)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " bytes of data (a smaller --count needs less)",
                         bytes);
    char *const allocated = *memory;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (uint64_t i = 0; i < rounded; i += 4096)
        memset(allocated + i, 0x7f, 4096);
    return ALLFOLD_OK;
}

uint64_t machine_cpu_cache_bytes(int threads)
{
    return u64_max((uint64_t)64 << 20, (uint64_t)threads << 23);
}

allfold_status machine_open_cpu(int threads, const struct bench_bytes *bytes, struct machine **machine, struct error *error)
{
    const allfold_options options = {.threads = threads};
    struct cpu_machine *const cpu = calloc(1, sizeof *cpu);
    if (cpu == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the benchmark");
    cpu->machine.ops = &cpu_ops;
    cpu->clear_bytes = machine_cpu_cache_bytes(threads);
    if (backend_cpu.open(0, 1, &options, &cpu->device, error) == ALLFOLD_OK
        && backend_cpu.queues_open(cpu->device, 0, 1, &cpu->queue, error) == ALLFOLD_OK
        && allocate(cpu, cpu->clear_bytes, threads, (void **)&cpu->clear, error) == ALLFOLD_OK
        && allocate(cpu, bytes->x, threads, &cpu->machine.x, error) == ALLFOLD_OK
        && (bytes->y == 0 || allocate(cpu, bytes->y, threads, &cpu->machine.y, error) == ALLFOLD_OK))
        *machine = &cpu->machine;
    else
        cpu_close(&cpu->machine);
    return error->status;
}
