/* Folds and softmax along an axis, on the CPU. The array is cut into units: a row whose elements are neighbours, or some columns.
   Where there are many, each thread takes whole units; else all threads work on one unit after the other. A unit is cut by its
   length alone, and its pieces are combined in order, so the bits do not depend on the threads. */
#include "device/cpu/cpu.h"

#include <stdlib.h>

enum {
    CHUNKS_MAX = 64,         /* of some columns: their partials fit where those of BLOCKS_MAX blocks do */
    CHUNK_LEAST = 8192,      /* elements of a column in a chunk */
    UNITS_A_THREAD = 4       /* with fewer, threads share units */
};
_Static_assert(CHUNKS_MAX * COLUMNS_MAX <= BLOCKS_MAX, "room for the partials of chunks");

/* The units of a box. */
struct units {
    struct box box;
    bool rows; /* a unit is one row of neighbours; else up to COLUMNS_MAX columns of one o */
    uint64_t stripes, count; /* units of one o, and of all */
};

static struct units units_of(const struct box *given)
{
    struct units units = {.box = *given};
    struct box *const box = &units.box;
    if (box->inner == 1 && box->outer_stride == 1 && box->axis_stride != 1) { /* results that are neighbours are columns */
        box->inner = box->outer;
        box->outer = 1;
    }
    units.rows = box->inner == 1 && (box->axis_stride == 1 || box->length <= 1);
    units.stripes = (box->inner + COLUMNS_MAX - 1) / COLUMNS_MAX;
    units.count = box->outer * units.stripes;
    return units;
}

/* One unit: where its elements begin, and its results. */
struct unit {
    uint64_t at, y_at; /* in elements */
    uint64_t first;    /* result */
    uint32_t columns;
};

static struct unit unit_at(const struct units *units, uint64_t number, uint64_t y_outer_stride)
{
    const uint64_t o = number / units->stripes, i = number % units->stripes * COLUMNS_MAX;
    return (struct unit){o * units->box.outer_stride + i, o * y_outer_stride + i, o * units->box.inner + i,
                         (uint32_t)u64_min(units->box.inner - i, COLUMNS_MAX)};
}

static struct work row_work(const struct axis_work *work, const struct units *units, const struct unit *unit)
{
    return (struct work){work->monoid, work->type, (const char *)work->x + unit->at * allfold_type_bytes(work->type), units->box.length,
                         work->first, NULL};
}

/* Elements of a column in a chunk. */
static uint64_t chunk_length(uint64_t length)
{
    return u64_max(CHUNK_LEAST, ((length + CHUNKS_MAX - 1) / CHUNKS_MAX + CHUNK_LEAST - 1) / CHUNK_LEAST * CHUNK_LEAST);
}

struct chunk {
    const struct axis_work *work;
    const struct units *units;
    const struct unit *unit;
    struct range range;
};

/* Folds a chunk of the unit's columns. */
static void fold_chunk(const struct cpu_loops *loops, const struct chunk *chunk, unsigned char *partials)
{
    const struct axis_work *const work = chunk->work;
    const struct box *const box = &chunk->units->box;
    const uint64_t at = chunk->unit->at + chunk->range.first * box->axis_stride;
    const struct columns columns = {work->type, (const char *)work->x + at * allfold_type_bytes(work->type), chunk->range.count,
                                    box->axis_stride, chunk->unit->columns};
    const size_t stride = partial_stride(work->monoid, work->type);
    for (uint32_t c = 0; c < columns.columns; c++)
        monoid_identity(work->monoid, work->type, (struct partial *)(partials + c * stride));
    loops->fold_columns(work->monoid, &columns, work->first + chunk->range.first, partials);
}

static void combine_columns(const struct axis_work *work, uint32_t columns, unsigned char *a, const unsigned char *b)
{
    const size_t stride = partial_stride(work->monoid, work->type);
    for (uint32_t c = 0; c < columns; c++)
        monoid_combine(work->monoid, work->type, (struct partial *)(a + c * stride), (const struct partial *)(b + c * stride));
}

static struct chunk chunk_at(const struct axis_work *work, const struct units *units, const struct unit *unit, uint64_t number)
{
    const uint64_t length = chunk_length(units->box.length), first = number * length;
    return (struct chunk){work, units, unit, {first, u64_min(length, units->box.length - first)}};
}

static uint64_t chunks_of(uint64_t length) { return u64_max(1, (length + chunk_length(length) - 1) / chunk_length(length)); }

/* Folds a unit by the thread that calls. */
static void fold_unit(const struct cpu_loops *loops, const struct axis_work *work, const struct units *units, const struct unit *unit,
                      unsigned char *partials)
{
    if (units->rows) {
        const struct work row = row_work(work, units, unit);
        cpu_fold_alone(loops, &row, (struct partial *)partials);
        return;
    }
    const uint64_t chunks = chunks_of(units->box.length);
    struct chunk chunk = chunk_at(work, units, unit, 0);
    fold_chunk(loops, &chunk, partials);
    for (uint64_t i = 1; i < chunks; i++) {
        struct partial next[COLUMNS_MAX];
        chunk = chunk_at(work, units, unit, i);
        fold_chunk(loops, &chunk, next[0].bytes);
        combine_columns(work, unit->columns, partials, next[0].bytes);
    }
}

/* The same by all threads. */
static void fold_unit_by_all(const struct cpu_queue *cpu, const struct axis_work *work, const struct units *units,
                             const struct unit *unit, unsigned char *partials)
{
    const struct cpu_loops *const loops = cpu_loops_of(&cpu->queue);
    if (units->rows) {
        const struct work row = row_work(work, units, unit);
        cpu_fold_by_all(cpu, &row, (struct partial *)partials);
        return;
    }
    const uint64_t chunks = chunks_of(units->box.length);
    const size_t bytes = partial_stride(work->monoid, work->type) * unit->columns;
#pragma omp parallel for schedule(static) num_threads(cpu->queue.device->threads)
    for (uint64_t i = 0; i < chunks; i++) {
        const struct chunk chunk = chunk_at(work, units, unit, i);
        fold_chunk(loops, &chunk, cpu->blocks + i * bytes);
    }
    memcpy(partials, cpu->blocks, bytes);
    for (uint64_t i = 1; i < chunks; i++)
        combine_columns(work, unit->columns, partials, cpu->blocks + i * bytes);
}

/* Whether a unit is cut, and there are too few of them for the threads. */
static bool threads_share(const struct queue *queue, const struct units *units)
{
    const uint64_t pieces = units->rows ? units->box.length / BLOCK : chunks_of(units->box.length);
    return pieces > 1 && units->count < (uint64_t)queue->device->threads * UNITS_A_THREAD;
}

allfold_status cpu_fold_axis(struct queue *queue, const struct axis_work *work, struct error *error)
{
    const struct cpu_queue *const cpu = (const struct cpu_queue *)queue;
    const struct units units = units_of(&work->box);
    const size_t stride = partial_stride(work->monoid, work->type);
    const bool share = threads_share(queue, &units);
    (void)error;
    for (uint64_t number = 0; share && number < units.count; number++) {
        const struct unit unit = unit_at(&units, number, 0);
        fold_unit_by_all(cpu, work, &units, &unit, (unsigned char *)work->partials + unit.first * stride);
    }
#pragma omp parallel for schedule(static) num_threads(queue->device->threads) if (units.count > 1)
    for (uint64_t number = 0; number < (share ? 0 : units.count); number++) {
        const struct unit unit = unit_at(&units, number, 0);
        fold_unit(cpu_loops_of(queue), work, &units, &unit, (unsigned char *)work->partials + unit.first * stride);
    }
    return ALLFOLD_OK;
}

static struct softmax_work softmax_of(const struct softmax_axis_work *work, const struct unit *unit, uint64_t n)
{
    return (struct softmax_work){.x = (const char *)work->x + unit->at * allfold_type_bytes(work->x_type),
                                 .y = (char *)work->y + unit->y_at * allfold_type_bytes(work->y_type),
                                 .x_type = work->x_type, .y_type = work->y_type, .n = n, .logarithm = work->logarithm,
                                 .level = work->level};
}

/* The second pass of a range of a unit's elements along the axis. */
static void normalise_unit(const struct cpu_loops *loops, const struct softmax_axis_work *work, const struct units *units,
                           const struct unit *unit, const struct softmax_constants *constants)
{
    const struct softmax_work whole = softmax_of(work, unit, units->box.length);
    const struct columns x = {work->x_type, whole.x, units->box.length, units->box.axis_stride, unit->columns};
    const struct columns y = {work->y_type, whole.y, units->box.length, work->y_axis_stride, unit->columns};
    if (units->rows && (work->y_axis_stride == 1 || units->box.length <= 1))
        loops->normalise(&whole, constants);
    else
        loops->normalise_columns(&whole, &x, &y, constants);
}

/* The units of x, where y has the same. */
static struct units softmax_units(const struct softmax_axis_work *work)
{
    struct units units = units_of(&work->box);
    if (units.box.inner != work->box.inner && work->y_outer_stride != 1) { /* results are columns of x, but not of y */
        units.box = work->box;
        units.stripes = 1;
        units.count = units.box.outer;
    }
    return units;
}

allfold_status cpu_normalise_axis(struct queue *queue, const struct softmax_axis_work *work, const struct softmax_constants *constants,
                                  struct error *error)
{
    const struct units units = softmax_units(work);
    (void)error;
    if (units.rows && work->y_axis_stride == 1 && threads_share(queue, &units)) {
        for (uint64_t number = 0; number < units.count; number++) {
            const struct unit unit = unit_at(&units, number, work->y_outer_stride);
            const struct softmax_work row = softmax_of(work, &unit, units.box.length);
            cpu_normalise_by_all(queue, &row, &constants[unit.first]);
        }
        return ALLFOLD_OK;
    }
#pragma omp parallel for schedule(static) num_threads(queue->device->threads) if (units.count > 1)
    for (uint64_t number = 0; number < units.count; number++) {
        const struct unit unit = unit_at(&units, number, work->y_outer_stride);
        normalise_unit(cpu_loops_of(queue), work, &units, &unit, &constants[unit.first]);
    }
    return ALLFOLD_OK;
}

allfold_status cpu_softmax_axis(struct queue *queue, const struct softmax_axis_work *work, struct error *error)
{
    const struct cpu_queue *const cpu = (const struct cpu_queue *)queue;
    const struct units units = softmax_units(work);
    const enum monoid monoid = softmax_monoid(work->x_type, work->y_type, work->logarithm, work->level);
    const struct axis_work fold = {.monoid = monoid, .type = work->x_type, .x = work->x, .box = units.box};
    const bool share = threads_share(queue, &units);
    const size_t stride = partial_stride(monoid, work->x_type);
    (void)error;
#pragma omp parallel for schedule(static) num_threads(queue->device->threads) if (units.count > 1 && !share)
    for (uint64_t number = 0; number < units.count; number++) {
        const struct unit unit = unit_at(&units, number, work->y_outer_stride);
        struct partial partials[COLUMNS_MAX];
        struct softmax_constants constants[COLUMNS_MAX];
        if (share)
            fold_unit_by_all(cpu, &fold, &units, &unit, partials[0].bytes);
        else
            fold_unit(cpu_loops_of(queue), &fold, &units, &unit, partials[0].bytes);
        for (uint32_t c = 0; c < unit.columns; c++)
            softmax_constants_set(monoid, (const struct partial *)(partials[0].bytes + c * stride), &constants[c]);
        const struct softmax_work row = softmax_of(work, &unit, units.box.length);
        if (share && units.rows && work->y_axis_stride == 1)
            cpu_normalise_by_all(queue, &row, constants);
        else
            normalise_unit(cpu_loops_of(queue), work, &units, &unit, constants);
    }
    return ALLFOLD_OK;
}
