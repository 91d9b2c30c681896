/* Benchmarks folds and softmax along an axis: the library's calls, with results in the machine's memory, and CUB's segments.
   Results lie in machine->y. Some rows, spread over all, are compared with what is known of them. */
#include "bench/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS_CHECKED = 16 };

static const struct bench_shape *shape_of(const struct bench *b) { return &b->task->shape; }
static uint64_t row_count(const struct bench *b) { return shape_of(b)->outer * shape_of(b)->inner; }
static bool is_softmax(const struct bench *b) { return b->task->subject->kind == BENCH_SOFTMAX; }
static allfold_fold fold_of(const struct bench *b) { return (allfold_fold)b->task->subject->fold; }

bool bench_axis_fits(const struct bench *b) { return bench_is_axis(b); }

/* The library's arguments. A rank gets the results of its own rows, or of all if the rows are spread over the ranks. */
static allfold_view view_of(const struct bench *b)
{
    const struct bench_shape *const shape = shape_of(b);
    return (allfold_view){.data = b->machine->x, .outer = shape->outer, .length = shape->length, .inner = shape->inner, .type = b->task->type,
                          .cut = shape->cut_axis ? ALLFOLD_CUT_AXIS : ALLFOLD_CUT_OUTER};
}

static allfold_call call_of(const struct bench *b)
{
    allfold_call call = ALLFOLD_CALL_INIT;
    call.stream = b->machine->stream;
    call.result_type = is_softmax(b) || fold_of(b) == ALLFOLD_ARGMAX ? ALLFOLD_TYPE_NONE : bench_result_type(b->task);
    call.own_results = !is_softmax(b) && !shape_of(b)->cut_axis;
    return call;
}

static allfold_type type_of(const struct bench *b, size_t i)
{
    return allfold_result_type(fold_of(b), i, b->task->type, bench_result_type(b->task));
}

/* The array of result number i: those of all rows, behind those of the result before. Arrays are aligned, as those of 8 bytes come first.
   Of argmax it holds the indices. */
static char *array_of(const struct bench *b, size_t i)
{
    char *array = b->machine->y;
    for (size_t before = 0; before < i; before++)
        array += row_count(b) * allfold_type_bytes(type_of(b, before));
    return array;
}

allfold_status bench_axis_run(struct bench *b, struct error *error)
{
    const allfold_view view = view_of(b);
    const allfold_call call = call_of(b);
    allfold_output outputs[FOLD_RESULTS_MAX] = {{0}};
    allfold_status status;
    if (is_softmax(b)) {
        status = allfold_softmax_axis(b->context, &view, b->machine->y, b->task->type, &call);
    } else {
        const allfold_outputs all = {outputs, allfold_result_count(fold_of(b))};
        for (size_t i = 0; i < all.count; i++)
            outputs[i] = fold_of(b) == ALLFOLD_ARGMAX ? (allfold_output){.indices = (int64_t *)array_of(b, i)}
                                                      : (allfold_output){.values = array_of(b, i)};
        status = allfold_reduce_axis(b->context, fold_of(b), &view, &call, &all);
    }
    return status == ALLFOLD_OK ? status : error_set(error, status, "%s", allfold_message(b->context));
}

/* The place of a row's first element among the rank's. */
static uint64_t place_of(const struct bench *b, uint64_t row)
{
    const struct bench_shape *const shape = shape_of(b);
    return row / shape->inner * shape->length * shape->inner + row % shape->inner;
}

/* The number of element l of a row, among those of the whole axis. */
static double element_at(const struct bench *b, uint64_t row, uint64_t l)
{
    const struct bench_shape *const shape = shape_of(b);
    const uint64_t rank = shape->cut_axis ? l / shape->length : (uint64_t)b->rank;
    const uint64_t number = rank * b->task->count + place_of(b, row) + l % shape->length * shape->inner;
    return (double)bench_number(number, bench_bits(b->task->type)) * bench_unit_of(b->task->type, b->task->range);
}

static allfold_status fetch(struct bench *b, const void *from, void *to, size_t bytes, struct error *error)
{
    return error->status != ALLFOLD_OK ? error->status : b->machine->ops->fetch(b->machine, from, to, bytes, error);
}

static double number_of(const void *value, allfold_type type)
{
    switch (type) {
    case ALLFOLD_F32: return *(const float *)value;
    case ALLFOLD_F64: return *(const double *)value;
    case ALLFOLD_INT64: return (double)*(const int64_t *)value;
    default: return (double)*(const uint64_t *)value;
    }
}

/* What the library found of a row. */
static void check_row(struct bench *b, uint64_t row, const struct bench_expected *expected, char wrong[96], struct error *error)
{
    const bool is_index = fold_of(b) == ALLFOLD_ARGMAX;
    const size_t count = allfold_result_count(fold_of(b));
    for (size_t i = 0; i < count && wrong[0] == '\0'; i++) {
        const allfold_type type = is_index ? ALLFOLD_INT64 : type_of(b, i);
        const size_t bytes = allfold_type_bytes(type);
        uint64_t value = 0;
        if (fetch(b, array_of(b, i) + row * bytes, &value, bytes, error) != ALLFOLD_OK)
            return;
        const double found = !is_index ? number_of(&value, type) : value < expected->count ? element_at(b, row, value) : NAN;
        bench_check(expected, count == 1 ? allfold_fold_name(fold_of(b)) : allfold_result_name(fold_of(b), i), found,
                    bench_precision(b->task) + (type == ALLFOLD_F32 ? 0x1p-24 : 0.0), wrong);
    }
}

static void check_softmax_row(struct bench *b, uint64_t row, const struct bench_expected *expected, char wrong[96], struct error *error)
{
    const size_t offset = place_of(b, row) * allfold_type_bytes(b->task->type);
    const struct softmax_found given = {b->task->type, (char *)b->machine->x + offset, (char *)b->machine->y + offset,
                                        shape_of(b)->length, shape_of(b)->inner, expected->sumexp};
    double found = NAN;
    if (error->status == ALLFOLD_OK && b->machine->ops->softmax_error(b->machine, &given, &found, error) == ALLFOLD_OK
        && !(found <= bench_softmax_tolerance(b->task->type, 1e-5)))
        snprintf(wrong, 96, "an element of row %llu is wrong by a part of %.3g", (unsigned long long)row, found);
}

typedef void compare_function(struct bench *b, uint64_t row, const struct bench_expected *expected, char wrong[96], struct error *error);

/* Compares some rows. All ranks take the same, as they may have parts of one row. */
static allfold_status check_rows(struct bench *b, compare_function *compare, char wrong[96], struct error *error)
{
    const struct bench_shape *const shape = shape_of(b);
    const uint64_t rows = row_count(b), checked = u64_min(rows, ROWS_CHECKED);
    for (uint64_t i = 0; i < checked; i++) {
        const uint64_t row = checked == 1 ? 0 : i * (rows - 1) / (checked - 1);
        const struct bench_row_of data = {b->task->type, b->task->range, (uint64_t)b->rank * b->task->count + place_of(b, row), shape->inner,
                                          shape->length, 0};
        struct bench_expected mine, all;
        if (bench_expect(b, &data, &mine, &all, error) != ALLFOLD_OK)
            return error->status;
        if (wrong[0] == '\0')
            compare(b, row, shape->cut_axis ? &all : &mine, wrong, error);
    }
    return error->status;
}

allfold_status bench_axis_check(struct bench *b, char wrong[96], struct error *error)
{
    return check_rows(b, is_softmax(b) ? check_softmax_row : check_row, wrong, error);
}

/* ---- CUB */

bool bench_axis_fits_cub(const struct bench *b)
{
    const struct bench_shape *const shape = shape_of(b);
    return bench_is_axis(b) && shape->inner == 1 && !(shape->cut_axis && b->size > 1) && shape->length <= INT32_MAX && b->machine->ops->cub != NULL
           && b->machine->ops->cub_has_rows() && (b->task->subject->fold == ALLFOLD_SUM || b->task->subject->fold == ALLFOLD_MAX)
           && b->task->subject->kind == BENCH_FOLD;
}

static struct cub_call cub_call_of(const struct bench *b)
{
    return (struct cub_call){.work = fold_of(b) == ALLFOLD_SUM ? CUB_SUM : CUB_MAX, .type = b->task->type, .count = b->task->count,
                             .length = shape_of(b)->length};
}

allfold_status bench_axis_cub_prepare(struct bench *b, struct error *error)
{
    const struct cub_call call = cub_call_of(b);
    return b->machine->ops->cub_prepare(b->machine, &call, error);
}

allfold_status bench_axis_cub_run(struct bench *b, struct error *error)
{
    const struct cub_call call = cub_call_of(b);
    return b->machine->ops->cub(b->machine, &call, error);
}

allfold_status bench_axis_cub_whole(struct bench *b, struct error *error)
{
    return bench_axis_cub_run(b, error) == ALLFOLD_OK ? b->machine->ops->wait(b->machine, error) : error->status;
}

/* Sums of 32 bits and less have 32 bits; maxima are elements. */
static void check_cub_row(struct bench *b, uint64_t row, const struct bench_expected *expected, char wrong[96], struct error *error)
{
    const enum cub_work work = cub_call_of(b).work;
    const size_t element = allfold_type_bytes(b->task->type), bytes = work == CUB_SUM && element < 4 ? 4 : element;
    uint64_t value = 0;
    if (fetch(b, (char *)b->machine->y + row * bytes, &value, bytes, error) == ALLFOLD_OK)
        bench_check_cub(b->task->type, work, expected, b->machine->ops->cub_value(work, b->task->type, &value), wrong);
}

allfold_status bench_axis_cub_check(struct bench *b, char wrong[96], struct error *error)
{
    return check_rows(b, check_cub_row, wrong, error);
}
