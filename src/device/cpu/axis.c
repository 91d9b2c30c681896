/* Folds and softmax along an axis, on the CPU. The array is cut into units: a row whose elements are neighbours, or some columns. A
   unit is cut into pieces by its length alone, and their partials are combined in order, so the bits do not depend on the threads.
   If there are many units, each thread takes whole ones; else threads take pieces. */
#include "device/cpu/cpu.h"

#include "base/host.h"
#include "fold/exponential.h"
#include "fold/rows.h"
#include "fold/targets.h"

#include <stdlib.h>
#include <string.h>

enum {
    CHUNKS_MAX = 64,       /* of some columns: their partials fit where those of BLOCKS_MAX blocks do */
    STRIPE_BYTES = COLUMNS_ACROSS * sizeof(struct partial), /* of the partials of some columns */
    CHUNK_LEAST = 8192,    /* elements of a column in a chunk */
    SOFTMAX_COLUMNS = 256, /* of a unit of softmax, and rows that it folds together, at most */
    SOFTMAX_ROWS_BYTES = 1 << 16, /* of these rows, so that they are in a cache in the second pass */
    COLUMN_PIECE = 2048,   /* elements of a column that softmax's second pass takes at a time */
    UNITS_A_THREAD = 4,    /* with fewer, threads take pieces */
    ROWS_MAX = 1024,       /* that are folded and finished at a time */
    CONSTANTS_ALONE = 256, /* fewer are made without waking threads */
    RESULT_COST = 64       /* a result costs no less than this number of elements */
};
_Static_assert(CHUNKS_MAX * COLUMNS_ACROSS <= BLOCKS_MAX, "room for the partials of chunks");

/* What a thread needs for columns: too much for its stack. */
struct cpu_scratch {
    struct column_buffers buffers;
    struct partial partials[COLUMNS_ACROSS], next[COLUMNS_ACROSS]; /* of more columns, if they are short */
    struct softmax_constants constants[SOFTMAX_COLUMNS];
    double results[COLUMNS_MAX];
    unsigned char finished[COLUMNS_MAX]; /* as in side_by_side */
};

/* The most threads that a queue has: one that elements stream through is worked on by the thread that calls. */
static int threads_most(const struct queue *queue) { return queue->bytes > 0 ? 1 : queue->device->threads; }

/* The queue's scratch of all threads, of which each is the first to touch its own. */
static allfold_status open_scratch(struct queue *queue, struct error *error)
{
    struct cpu_queue *const cpu = (struct cpu_queue *)queue;
    const size_t threads = (size_t)threads_most(queue);
    if (cpu->scratch == NULL && (cpu->scratch = aligned_alloc(64, threads * ((sizeof *cpu->scratch + 63) / 64 * 64))) == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the columns of %zu threads", threads);
    return ALLFOLD_OK;
}

/* The units of a box. */
struct units {
    struct box box;
    bool rows; /* a unit is one row of neighbours; else up to `width` columns of one o */
    uint64_t width, stripes, count; /* units of one o, and of all */
    uint64_t piece, pieces;  /* elements of a piece along the axis; pieces of a unit, at least one */
};

/* Elements of a column in a chunk. */
static uint64_t chunk_length(uint64_t length)
{
    return u64_max(CHUNK_LEAST, ((length + CHUNKS_MAX - 1) / CHUNKS_MAX + CHUNK_LEAST - 1) / CHUNK_LEAST * CHUNK_LEAST);
}

static void cut(struct units *units, uint64_t piece)
{
    units->piece = piece;
    units->pieces = u64_max(1, (units->box.length + piece - 1) / piece);
}

static void widen(struct units *units, uint64_t width)
{
    units->width = width;
    units->stripes = (units->box.inner + width - 1) / width;
    units->count = units->box.outer * units->stripes;
}

static struct units units_of(const struct box *given)
{
    struct units units = {.box = *given};
    struct box *const box = &units.box;
    if (box->inner == 1 && box->outer_stride == 1 && box->axis_stride != 1) { /* results that are neighbours are columns */
        box->inner = box->outer;
        box->outer = 1;
    }
    units.rows = box->inner == 1 && (box->axis_stride == 1 || box->length <= 1);
    widen(&units, COLUMNS_ACROSS);
    cut(&units, units.rows ? cpu_block_elements(box->length) : chunk_length(box->length));
    return units;
}

static struct range piece_range(const struct units *units, uint64_t piece)
{
    const uint64_t first = piece * units->piece;
    return (struct range){first, u64_min(units->piece, units->box.length - first)};
}

/* Threads for the work: for little of it one, as in a fold of a short array. */
static int threads_of(const struct queue *queue, const struct units *units)
{
    const uint64_t results = units->box.outer * units->box.inner;
    return results * u64_max(units->box.length, RESULT_COST) > BLOCK ? threads_most(queue) : 1;
}

/* Whether threads take pieces. */
static bool is_shared(const struct units *units, int threads)
{
    return threads > 1 && units->pieces > 1 && units->count < (uint64_t)threads * UNITS_A_THREAD;
}

/* One unit: where its elements begin, and its results. */
struct unit {
    uint64_t at, y_at; /* in elements */
    uint64_t first;    /* result */
    uint32_t columns;
};

static struct unit unit_at(const struct units *units, uint64_t number, uint64_t y_outer_stride)
{
    const uint64_t o = number / units->stripes, i = number % units->stripes * units->width;
    return (struct unit){o * units->box.outer_stride + i, o * y_outer_stride + i, o * units->box.inner + i,
                         (uint32_t)u64_min(units->box.inner - i, units->width)};
}

/* ---- folds */

struct folding {
    const struct queue *queue;
    const struct axis_work *work;
    struct units units;
    size_t stride;   /* of partials */
    bool alone;      /* there is no team: the thread that calls may be any of another one */
    bool is_direct;  /* results are finished here, and may be what loops give as such */
    struct box_weights weights; /* of the box of the units */
};

static struct cpu_scratch *own_scratch(const struct folding *f)
{
    return &((const struct cpu_queue *)f->queue)->scratch[f->alone ? 0 : host_thread()];
}

/* The partials of the results from `first` on, if they are not finished here. */
static unsigned char *partials_at(const struct folding *f, uint64_t first)
{
    return (unsigned char *)f->work->partials + first * f->stride;
}

static void combine(const struct folding *f, uint32_t columns, unsigned char *a, const unsigned char *b)
{
    for (uint32_t c = 0; c < columns; c++)
        monoid_combine(f->work->monoid, f->work->type, (struct partial *)(a + c * f->stride),
                       (const struct partial *)(b + c * f->stride));
}

/* Weights from element `l` of a result on: their `inner` leads to the next of the results that are folded together. */
static struct box_weights weights_from(const struct folding *f, uint64_t result, uint64_t l)
{
    struct box_weights weights = f->weights;
    if (weights.at == NULL)
        return weights;
    weights.at += result / f->units.box.inner * weights.outer + result % f->units.box.inner * weights.inner + l * weights.axis;
    weights.inner = f->units.rows ? weights.outer : weights.inner;
    return weights;
}

/* Folds a piece of a unit. */
static void fold_piece(const struct folding *f, const struct unit *unit, uint64_t piece, unsigned char *partials)
{
    const struct cpu_loops *const loops = cpu_loops_of(f->queue);
    const struct axis_work *const work = f->work;
    const struct box *const box = &f->units.box;
    const struct range range = piece_range(&f->units, piece);
    const size_t bytes = allfold_type_bytes(work->type);
    if (f->units.rows && f->weights.at != NULL) {
        const struct side_by_side row = {
            .monoid = work->monoid, .all = box->outer, .first = work->first + range.first, .partials = partials, .buffers = &own_scratch(f)->buffers,
            .x = {work->type, (const char *)work->x + (unit->at + range.first) * bytes, range.count, box->length, 1},
            .weights = weights_from(f, unit->first, range.first)};
        loops->fold_rows(&row);
        return;
    }
    if (f->units.rows) {
        const struct work row = {work->monoid, work->type, (const char *)work->x + unit->at * bytes, box->length, work->first, NULL, NULL};
        cpu_fold_block(loops, &row, range, (struct partial *)partials);
        return;
    }
    struct cpu_scratch *const scratch = own_scratch(f);
    const struct side_by_side columns = {
        .monoid = work->monoid, .all = box->inner, .first = work->first + range.first, .partials = partials, .buffers = &scratch->buffers,
        .x = {work->type, (const char *)work->x + (unit->at + range.first * box->axis_stride) * bytes, range.count, box->axis_stride,
              unit->columns},
        .weights = weights_from(f, unit->first, range.first), .results = f->is_direct ? scratch->results : NULL, .finished = f->is_direct ? scratch->finished : NULL};
    loops->fold_columns(&columns);
}

/* Folds a unit, by the thread that calls. */
static void fold_unit(const struct folding *f, const struct unit *unit, unsigned char *partials)
{
    unsigned char *const next = own_scratch(f)->next[0].bytes;
    fold_piece(f, unit, 0, partials);
    for (uint64_t piece = 1; piece < f->units.pieces; piece++) {
        fold_piece(f, unit, piece, next);
        combine(f, unit->columns, partials, next);
    }
}

/* Stores results that the loops gave, whose places are neighbours. */
static void store_run(const struct folding *f, const struct rows *rows, double *results, struct range range)
{
    const struct rows_output *const to = &rows->outputs[0];
    const uint64_t place = rows->first + range.first;
    results += range.first;
    if (to->values == NULL) {
        for (uint64_t r = 0; r < range.count; r++)
            to->indices[place + r] = (int64_t)(f->work->first + (uint64_t)results[r]);
        return;
    }
    for (uint64_t r = 0; r < range.count && rows->call->fold == ALLFOLD_MEAN; r++)
        results[r] /= (double)rows->count;
    cpu_loops_of(f->queue)->round(rows->call->result_type, (char *)to->values + place * allfold_type_bytes(rows->call->result_type), results,
                                  (uint32_t)range.count);
}

/* Finishes some results, whose places are neighbours, as rows_finish does. finished: NULL, or of which the loops gave the result. */
static void finish_run(const struct folding *f, const struct rows *rows, double *results, const unsigned char *finished)
{
    struct error ignored = {0};
    for (uint64_t r = 0, end; r < rows->run; r = end) {
        const bool given = finished != NULL && finished[r];
        for (end = r + 1; end < rows->run && given == (finished != NULL && finished[end]);)
            end++;
        if (given)
            store_run(f, rows, results, (struct range){r, end - r});
        else if (rows_finish(rows, (struct range){r, end - r}, &ignored) != ALLFOLD_OK)
            __atomic_store_n(f->work->finish->refused, 1, __ATOMIC_RELAXED);
    }
}

/* Finishes the results [first, first + count) that were folded last, if that is asked for. */
static void finish(const struct folding *f, uint64_t first, uint64_t count, const unsigned char *partials)
{
    const struct axis_finish *const to = f->work->finish;
    if (to == NULL)
        return;
    struct cpu_scratch *const scratch = own_scratch(f);
    const bool floating = type_kind(f->work->type) == 'f';
    const struct fold_call call = {.fold = to->fold, .level = to->level, .nan = to->nan, .ddof = to->ddof,
                                   .result_type = floating ? to->format : ALLFOLD_TYPE_NONE};
    struct rows_output outputs[FOLD_RESULTS_MAX] = {{NULL, NULL}};
    for (size_t i = 0; i < to->outputs; i++)
        outputs[i] = (struct rows_output){to->of[i].values, to->of[i].indices};
    struct rows rows = {.call = &call, .type = f->work->type, .count = to->count, .outputs = outputs, .inner = 1};
    for (uint64_t done = 0; done < count; done += rows.run) {
        const uint64_t r = first + done;
        rows.first = to->first + result_place(r, to->run, to->step);
        rows.run = rows.step = to->step == to->run ? count - done : u64_min(count - done, to->run - r % to->run);
        rows.partials = partials + done * f->stride;
        finish_run(f, &rows, scratch->results + done, f->is_direct ? scratch->finished + done : NULL);
    }
}

/* Gives the partials of the results [first, first + count) the marks of their targets. */
static void mark(const struct folding *f, uint64_t first, uint64_t count, unsigned char *partials)
{
    const struct axis_work *const work = f->work;
    for (uint64_t r = 0; work->targets.of != NULL && r < count; r++)
        partial_take_mark(work->monoid, partials + r * f->stride,
                          target_mark(&work->targets, first + r, work->x, work->type, &f->units.box, work->first));
}

/* Folds rows that are one piece each, and finishes them. */
static void fold_rows(const struct folding *f, struct range numbers)
{
    const struct axis_work *const work = f->work;
    const struct box *const box = &f->units.box;
    struct cpu_scratch *const scratch = own_scratch(f);
    const uint64_t most = work->finish == NULL ? UINT32_MAX : u64_min(ROWS_MAX, STRIPE_BYTES / f->stride);
    struct side_by_side rows = {.monoid = work->monoid, .all = box->outer, .first = work->first, .buffers = &scratch->buffers,
                                .results = f->is_direct ? scratch->results : NULL, .finished = f->is_direct ? scratch->finished : NULL};
    for (uint64_t done = 0, count; done < numbers.count; done += count) {
        const uint64_t first = numbers.first + done;
        count = u64_min(most, numbers.count - done);
        rows.x = (struct columns){work->type, (const char *)work->x + first * box->outer_stride * allfold_type_bytes(work->type),
                                  box->length, box->outer_stride, (uint32_t)count};
        rows.partials = work->finish == NULL ? partials_at(f, first) : scratch->partials[0].bytes;
        rows.weights = weights_from(f, first, 0);
        cpu_loops_of(f->queue)->fold_rows(&rows);
        mark(f, first, count, rows.partials);
        finish(f, first, count, rows.partials);
    }
}

/* Folds the units of the range, by the thread that calls. */
static void fold_units(const struct folding *f, struct range numbers)
{
    if (f->units.rows && f->units.pieces == 1) {
        fold_rows(f, numbers);
        return;
    }
    for (uint64_t number = numbers.first; number < numbers.first + numbers.count; number++) {
        const struct unit unit = unit_at(&f->units, number, 0);
        unsigned char *const partials
            = f->work->finish == NULL ? partials_at(f, unit.first) : own_scratch(f)->partials[0].bytes;
        fold_unit(f, &unit, partials);
        mark(f, unit.first, unit.columns, partials);
        finish(f, unit.first, unit.columns, partials);
    }
}

/* Folds the units of the range: threads take pieces. A piece's partials take piece_bytes of the queue's blocks. The results of a unit,
   too, are cut, into parts of COLUMNS_ACROSS: they are combined, and finished. */
static void fold_shared(const struct folding *f, struct range numbers, size_t piece_bytes)
{
    unsigned char *const blocks = ((const struct cpu_queue *)f->queue)->blocks;
    const uint64_t pieces = f->units.pieces, parts = (f->units.width + COLUMNS_ACROSS - 1) / COLUMNS_ACROSS;
#pragma omp parallel num_threads(f->queue->device->threads)
    {
#pragma omp for schedule(static)
        for (uint64_t i = 0; i < numbers.count * pieces; i++) {
            const struct unit unit = unit_at(&f->units, numbers.first + i / pieces, 0);
            fold_piece(f, &unit, i % pieces, blocks + i * piece_bytes);
        }
#pragma omp for schedule(static)
        for (uint64_t i = 0; i < numbers.count * parts; i++) {
            const struct unit unit = unit_at(&f->units, numbers.first + i / parts, 0);
            const uint64_t from = i % parts * COLUMNS_ACROSS;
            if (from >= unit.columns)
                continue;
            const uint32_t columns = (uint32_t)u64_min(unit.columns - from, COLUMNS_ACROSS);
            unsigned char *const own = blocks + i / parts * pieces * piece_bytes + from * f->stride;
            for (uint64_t piece = 1; piece < pieces; piece++)
                combine(f, columns, own, own + piece * piece_bytes);
            mark(f, unit.first + from, columns, own);
            if (f->work->finish == NULL)
                memcpy(partials_at(f, unit.first + from), own, columns * f->stride);
            finish(f, unit.first + from, columns, own);
        }
    }
}

/* Columns for a unit, at most `most`: many, so that long runs of each row are read; fewer, if that gives all threads as many units. */
static uint64_t width_of(const struct units *units, uint64_t most, int threads)
{
    const uint64_t stripes = (units->box.inner + most - 1) / most, t = (uint64_t)threads;
    if (threads == 1 || units->pieces > 1 || units->box.outer >= t * UNITS_A_THREAD)
        return most;
    const uint64_t even = (units->box.inner + (stripes + t - 1) / t * t - 1) / ((stripes + t - 1) / t * t);
    return u64_max(COLUMNS_ACROSS, (even + COLUMNS_ACROSS - 1) / COLUMNS_ACROSS * COLUMNS_ACROSS);
}

/* As many columns as there is room for the partials of. */
static uint64_t columns_most(size_t stride, uint64_t most) { return u64_min(most, STRIPE_BYTES / stride / COLUMNS_ACROSS * COLUMNS_ACROSS); }

/* Whether the loops may give the results, as f64: places, of sums, extremes and logarithms values. At level exact a result is rounded once, so a
   sum that is divided or stored in fewer bits must be exact in f64; those of f32 values are. */
static bool is_direct(const struct folding *f)
{
    const struct axis_finish *const to = f->work->finish;
    if (to == NULL || f->units.pieces > 1 || to->nan != ALLFOLD_NAN_PROPAGATE)
        return false;
    if (rows_indexed(to->fold, 0))
        return to->of[0].values == NULL && to->of[0].indices != NULL;
    if (type_kind(f->work->type) != 'f' || to->of[0].values == NULL)
        return false;
    const bool whole = to->format == ALLFOLD_F64, fast = to->level == ALLFOLD_LEVEL_FAST, once = fast || type_value(f->work->type) == VALUE_f32;
    switch (to->fold) {
    case ALLFOLD_NORMINF:
    case ALLFOLD_MIN:
    case ALLFOLD_MAX: return true;
    case ALLFOLD_LOGSUMEXP: return fast;
    case ALLFOLD_SUM:
    case ALLFOLD_NORM1: return whole || once;
    case ALLFOLD_MEAN: return fast || (whole && once);
    default: return false;
    }
}

static allfold_status fold(struct queue *queue, const struct axis_work *work, struct error *error)
{
    struct folding f = {.queue = queue, .work = work, .units = units_of(&work->box), .stride = partial_stride(work->monoid, work->type),
                        .weights = work->weights};
    struct units *const units = &f.units;
    const int threads = threads_of(queue, units);
    if (units->box.inner != work->box.inner) /* results of other rows are columns */
        f.weights.inner = f.weights.outer;
    widen(units, width_of(units, columns_most(f.stride, COLUMNS_MAX), threads));
    f.is_direct = is_direct(&f);
    if (open_scratch(queue, error) != ALLFOLD_OK)
        return error->status;
    if (is_shared(units, threads)) {
        const size_t piece_bytes = (f.stride * u64_min(units->box.inner, units->width) + 63) / 64 * 64;
        const uint64_t most = BLOCKS_MAX * sizeof(struct partial) / (piece_bytes * units->pieces);
        for (uint64_t first = 0; first < units->count; first += most)
            fold_shared(&f, (struct range){first, u64_min(most, units->count - first)}, piece_bytes);
        return ALLFOLD_OK;
    }
    if (threads == 1) { /* a team of one thread costs more than a short fold */
        f.alone = true;
        fold_units(&f, (struct range){0, units->count});
        return ALLFOLD_OK;
    }
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int thread = 0; thread < threads; thread++)
        fold_units(&f, range_part(units->count, (uint64_t)thread, (uint64_t)threads));
    return ALLFOLD_OK;
}

static void make_constants(const struct queue *queue, const struct axis_work *work)
{
    const size_t stride = partial_stride(work->monoid, work->type);
    const uint64_t count = work->box.outer * work->box.inner, parts = (count + CONSTANTS_ALONE - 1) / CONSTANTS_ALONE;
    const int threads = parts == 1 ? 1 : threads_most(queue);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (uint64_t part = 0; part < parts; part++) {
        const uint64_t first = part * CONSTANTS_ALONE;
        const struct partials partials = {(const unsigned char *)work->partials + first * stride, stride, (uint32_t)u64_min(count - first, CONSTANTS_ALONE)};
        cpu_loops_of(queue)->constants(work->monoid, SOFTMAX_NEEDS_ALL, &partials, &work->constants[first]);
    }
}

allfold_status cpu_fold_axis(struct queue *queue, const struct axis_work *work, struct error *error)
{
    if (fold(queue, work, error) == ALLFOLD_OK && work->constants != NULL)
        make_constants(queue, work);
    return error->status;
}

/* ---- softmax */

/* The units of x, if y has the same. */
static struct units softmax_units(const struct softmax_work *work)
{
    struct units units = units_of(&work->box);
    if (units.box.inner != work->box.inner && work->y_outer_stride != 1) { /* results are columns of x, but not of y */
        units.box = work->box;
        widen(&units, 1);
    }
    return units;
}

/* Columns, or rows, of an array that begin at element `at`. */
static struct columns elements_of(allfold_type type, const void *x, uint64_t at, uint64_t length, uint64_t stride, uint64_t columns)
{
    return (struct columns){type, (const char *)x + at * allfold_type_bytes(type), length, stride, (uint32_t)columns};
}

/* Whether x and y both have rows of neighbours. */
static bool are_rows(const struct units *units, const struct softmax_work *work)
{
    return units->rows && (work->y_axis_stride == 1 || units->box.length <= 1);
}

/* The second pass of a range of a unit's elements along the axis; if x and y have rows, of `rows` of them. */
static void normalise_range(const struct folding *f, const struct softmax_work *work, const struct unit *unit, struct range range, uint64_t rows,
                            const struct softmax_constants *constants)
{
    const struct cpu_loops *const loops = cpu_loops_of(f->queue);
    const struct box *const box = &f->units.box;
    const uint64_t at = unit->at + range.first * box->axis_stride, y_at = unit->y_at + range.first * work->y_axis_stride;
    const bool are = are_rows(&f->units, work);
    const struct columns x = elements_of(work->x_type, work->x, at, range.count, are ? box->outer_stride : box->axis_stride, are ? rows : unit->columns);
    const struct columns y = elements_of(work->y_type, work->y, y_at, range.count, are ? work->y_outer_stride : work->y_axis_stride, x.columns);
    (are ? loops->normalise_rows : loops->normalise_columns)(work->logarithm, &x, &y, constants);
}

static void normalise(struct queue *queue, const struct softmax_work *work, const struct softmax_constants *constants)
{
    struct folding f = {.queue = queue, .units = softmax_units(work)};
    const struct units *const units = &f.units;
    const int threads = threads_of(queue, units);
    if (units->width > 1)
        widen(&f.units, width_of(units, SOFTMAX_COLUMNS, threads));
    cut(&f.units, units->rows ? BLOCK : COLUMN_PIECE);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static) nowait
        for (uint64_t i = 0; i < units->count * units->pieces; i++) {
            const struct unit unit = unit_at(units, i / units->pieces, work->y_outer_stride);
            normalise_range(&f, work, &unit, piece_range(units, i % units->pieces), 1, &constants[unit.first]);
        }
        cpu_fence_stores();
    }
}

allfold_status cpu_gradient_axis(struct queue *queue, const struct gradient_work *work, struct error *error)
{
    const uint64_t results = work->softmax.box.outer * work->softmax.box.inner;
    for (uint64_t r = 0; r < results; r++)
        gradient_begin(work, r);
    normalise(queue, &work->softmax, work->constants);
    for (uint64_t r = 0; work->targets.of != NULL && r < results; r++)
        gradient_end(work, r, 0, 1);
    return error->status;
}

static enum softmax_needs needs_of(const struct softmax_work *work) { return work->logarithm ? SOFTMAX_NEEDS_LOG : SOFTMAX_NEEDS_INVERSE; }

/* Both passes of rows that are one piece each: some are folded together. */
static void softmax_rows(const struct folding *f, const struct softmax_work *work, struct range numbers)
{
    struct cpu_scratch *const scratch = own_scratch(f);
    const struct cpu_loops *const loops = cpu_loops_of(f->queue);
    const uint64_t bytes = u64_max(1, f->units.box.length * allfold_type_bytes(work->x_type));
    const uint64_t most = u64_max(1, u64_min(u64_min(SOFTMAX_COLUMNS, STRIPE_BYTES / f->stride), SOFTMAX_ROWS_BYTES / bytes));
    struct side_by_side rows = {.monoid = f->work->monoid, .all = f->units.box.outer, .buffers = &scratch->buffers, .partials = scratch->partials[0].bytes};
    for (uint64_t done = 0, count; done < numbers.count; done += count) {
        count = u64_min(most, numbers.count - done);
        const struct unit first = unit_at(&f->units, numbers.first + done, work->y_outer_stride);
        rows.x = elements_of(work->x_type, work->x, first.at, f->units.box.length, f->units.box.outer_stride, count);
        loops->fold_rows(&rows);
        loops->constants(rows.monoid, needs_of(work), &(struct partials){rows.partials, f->stride, (uint32_t)count}, scratch->constants);
        normalise_range(f, work, &first, (struct range){0, f->units.box.length}, count, scratch->constants);
    }
}

/* Both passes of the units of the range, by the thread that calls. */
static void softmax_units_whole(const struct folding *f, const struct softmax_work *work, struct range numbers)
{
    struct cpu_scratch *const scratch = own_scratch(f);
    if (are_rows(&f->units, work) && f->units.pieces == 1) {
        softmax_rows(f, work, numbers);
        return;
    }
    for (uint64_t number = numbers.first; number < numbers.first + numbers.count; number++) {
        const struct unit unit = unit_at(&f->units, number, work->y_outer_stride);
        fold_unit(f, &unit, scratch->partials[0].bytes);
        const struct partials partials = {scratch->partials[0].bytes, f->stride, unit.columns};
        cpu_loops_of(f->queue)->constants(f->work->monoid, needs_of(work), &partials, scratch->constants);
        normalise_range(f, work, &unit, (struct range){0, f->units.box.length}, 1, scratch->constants);
    }
}

static bool softmax_whole(struct queue *queue, const struct softmax_work *work, struct error *error)
{
    const enum monoid monoid = softmax_monoid(work->x_type, work->y_type, work->logarithm, work->level);
    const struct axis_work fold = {.monoid = monoid, .type = work->x_type, .x = work->x, .box = work->box};
    struct folding f = {.queue = queue, .work = &fold, .units = softmax_units(work), .stride = partial_stride(monoid, work->x_type)};
    const int threads = threads_of(queue, &f.units);
    if (is_shared(&f.units, threads))
        return false;
    if (f.units.width > 1)
        widen(&f.units, width_of(&f.units, columns_most(f.stride, SOFTMAX_COLUMNS), threads));
    if (open_scratch(queue, error) != ALLFOLD_OK)
        return true;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int thread = 0; thread < threads; thread++) {
        softmax_units_whole(&f, work, range_part(f.units.count, (uint64_t)thread, (uint64_t)threads));
        cpu_fence_stores();
    }
    return true;
}

bool cpu_softmax_axis(struct queue *queue, const struct softmax_work *work, const struct softmax_constants *constants, enum place place,
                      struct error *error)
{
    (void)place;
    if (constants == NULL)
        return softmax_whole(queue, work, error);
    normalise(queue, work, constants);
    return true;
}
