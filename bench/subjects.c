/* Lists what is measured, one line each, and of which element types. */
#include "bench/bench.h"
#include "bench/data.h"
#include "bench/run.h"

const struct bench_subject bench_subjects[] = {
    {"sum", BENCH_FOLD, ALLFOLD_SUM, false, ALLFOLD_LEVEL_FAST, "the sum"},
    {"sum-exact", BENCH_FOLD, ALLFOLD_SUM, false, ALLFOLD_LEVEL_EXACT, "the sum at level exact"},
    {"max", BENCH_FOLD, ALLFOLD_MAX, false, ALLFOLD_LEVEL_FAST, "the largest element"},
    {"argmax", BENCH_FOLD, ALLFOLD_ARGMAX, false, ALLFOLD_LEVEL_FAST, "the index of the largest element"},
    {"norm2", BENCH_FOLD, ALLFOLD_NORM2, false, ALLFOLD_LEVEL_FAST, "the square root of the sum of squares"},
    {"norm2-exact", BENCH_FOLD, ALLFOLD_NORM2, false, ALLFOLD_LEVEL_EXACT, "the same at level exact"},
    {"stats", BENCH_FOLD, ALLFOLD_STATS, false, ALLFOLD_LEVEL_FAST, "all statistics in one pass"},
    {"stats-exact", BENCH_FOLD, ALLFOLD_STATS, false, ALLFOLD_LEVEL_EXACT, "the same at level exact"},
    {"dot", BENCH_FOLD, FOLD_DOT, false, ALLFOLD_LEVEL_FAST, "the dot product of two arrays"},
    {"dot-exact", BENCH_FOLD, FOLD_DOT, false, ALLFOLD_LEVEL_EXACT, "the same at level exact"},
    {"compare", BENCH_FOLD, FOLD_COMPARE, false, ALLFOLD_LEVEL_EXACT, "how two arrays differ, which are equal"},
    {"sumexp", BENCH_PASS, FOLD_COUNT, true, ALLFOLD_LEVEL_FAST, "(max, sum of exponentials), softmax's first pass"},
    {"softmax", BENCH_SOFTMAX, FOLD_COUNT, true, ALLFOLD_LEVEL_FAST, "softmax, into other memory of the same type"},
    {"softmax-exact", BENCH_SOFTMAX, FOLD_COUNT, true, ALLFOLD_LEVEL_EXACT, "softmax at level exact"},
    {"logsumexp", BENCH_FOLD, ALLFOLD_LOGSUMEXP, true, ALLFOLD_LEVEL_FAST, "the logarithm of the sum of exponentials"},
    {"logsumexp-exact", BENCH_FOLD, ALLFOLD_LOGSUMEXP, true, ALLFOLD_LEVEL_EXACT, "the same at level exact"},
    {"median", BENCH_ORDER, BENCH_MEDIAN, false, ALLFOLD_LEVEL_EXACT, "the median"},
    {"quantile", BENCH_ORDER, BENCH_QUANTILE, false, ALLFOLD_LEVEL_EXACT, "the quantile 0.99"},
    {"quantile-7", BENCH_ORDER, BENCH_QUANTILES, false, ALLFOLD_LEVEL_EXACT, "seven quantiles, from 0.01 to 0.99"},
    {"topk", BENCH_ORDER, BENCH_TOP, false, ALLFOLD_LEVEL_EXACT, "the 50 largest elements and their indices"},
    {"histogram", BENCH_ORDER, BENCH_BINS, false, ALLFOLD_LEVEL_EXACT, "a histogram of 256 even bins"},
    {"histogram-65536", BENCH_ORDER, BENCH_BINS_MANY, false, ALLFOLD_LEVEL_EXACT, "a histogram of 65,536 even bins"},
};
const int bench_subject_count = sizeof bench_subjects / sizeof *bench_subjects;

const allfold_type bench_types[] = {
#define ROW(ID, name, bits) ALLFOLD_##ID,
    BENCH_TYPES(ROW)
#undef ROW
};
const int bench_type_count = sizeof bench_types / sizeof *bench_types;

const char *const bench_place_names[] = {"device", "host", "file"};
const char *const bench_timing_point_names[] = {"kernel", "partial", "exchange", "host"};

bool bench_takes_type(const struct bench_subject *subject, allfold_type type)
{
    return !subject->floating || type_kind(type) == 'f';
}

bool bench_takes_two(const struct bench_subject *subject)
{
    return subject->kind == BENCH_FOLD && (subject->fold == FOLD_DOT || subject->fold == FOLD_COMPARE);
}

bool bench_takes_place(const struct bench_subject *subject, int place)
{
    return place == BENCH_ON_DEVICE || (place == BENCH_IN_HOST && (subject->kind == BENCH_FOLD || subject->kind == BENCH_ORDER))
           || (place == BENCH_IN_FILE && subject->kind != BENCH_PASS && subject->kind != BENCH_ORDER && !bench_takes_two(subject) && subject->fold != ALLFOLD_STATS);
}

bool bench_takes_axis(const struct bench_subject *subject)
{
    return subject->kind != BENCH_PASS && subject->kind != BENCH_ORDER && !bench_takes_two(subject);
}

allfold_type bench_result_type(const struct bench_case *task)
{
    if (type_kind(task->type) != 'f') /* the products of integers do not fit their type */
        return task->subject->kind == BENCH_FOLD && task->subject->fold == FOLD_DOT ? ALLFOLD_F64 : ALLFOLD_TYPE_NONE;
    return task->type == ALLFOLD_F64 || task->shape.length == 0 ? ALLFOLD_F64 : ALLFOLD_F32;
}

uint64_t bench_input_bytes(const struct bench_case *task)
{
    return task->count * allfold_type_bytes(task->type) * (bench_takes_two(task->subject) ? 2 : 1);
}

uint64_t bench_output_bytes(const struct bench_case *task)
{
    const allfold_fold fold = (allfold_fold)task->subject->fold;
    uint64_t bytes = 0;
    if (task->subject->kind == BENCH_SOFTMAX)
        return bench_input_bytes(task);
    for (size_t i = 0; task->shape.length > 0 && i < allfold_result_count(fold); i++)
        bytes += fold == ALLFOLD_ARGMAX ? sizeof(int64_t) : allfold_type_bytes(allfold_result_type(fold, i, task->type, bench_result_type(task)));
    return bytes * task->shape.outer * task->shape.inner;
}
