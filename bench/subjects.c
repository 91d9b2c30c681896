/* What is measured, one line each, and of which element types. */
#include "bench/bench.h"
#include "bench/data.h"

const struct bench_subject bench_subjects[] = {
    {"sum", BENCH_FOLD, ALLFOLD_SUM, false, ALLFOLD_LEVEL_FAST, "the sum"},
    {"sum-exact", BENCH_FOLD, ALLFOLD_SUM, false, ALLFOLD_LEVEL_EXACT, "the sum at level exact"},
    {"max", BENCH_FOLD, ALLFOLD_MAX, false, ALLFOLD_LEVEL_FAST, "the largest element"},
    {"sumexp", BENCH_PASS, ALLFOLD_FOLD_COUNT, true, ALLFOLD_LEVEL_FAST, "(max, sum of exponentials), softmax's first pass"},
    {"softmax", BENCH_SOFTMAX, ALLFOLD_FOLD_COUNT, true, ALLFOLD_LEVEL_FAST, "softmax, into other memory of the same type"},
    {"softmax-exact", BENCH_SOFTMAX, ALLFOLD_FOLD_COUNT, true, ALLFOLD_LEVEL_EXACT, "softmax at level exact"},
    {"logsumexp", BENCH_FOLD, ALLFOLD_LOGSUMEXP, true, ALLFOLD_LEVEL_FAST, "the logarithm of the sum of exponentials"},
    {"logsumexp-exact", BENCH_FOLD, ALLFOLD_LOGSUMEXP, true, ALLFOLD_LEVEL_EXACT, "the same at level exact"},
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
