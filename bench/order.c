/* Order statistics: the library's calls, and what their results must be. They have no partial, and no peers here; tools/bench-peers has. */
#include "bench/data.h"
#include "bench/run.h"

#include <math.h>
#include <string.h>

enum { TOP = 50, BINS_MOST = 1 << 16 };

static const double q[] = {0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99};
static int64_t counts[BINS_MOST], indices[TOP];

static int subject_of(const struct bench *b) { return b->task->subject->fold; }
static uint64_t top_of(const struct bench *b) { return u64_min(TOP, b->task->count); }
static uint64_t bins_of(const struct bench *b) { return subject_of(b) == BENCH_BINS_MANY ? BINS_MOST : 256; }
static double unit_of(const struct bench *b) { return bench_unit_of(b->task->type); }
/* The elements are from -limit on and below limit. */
static double limit_of(const struct bench *b) { return ldexp(unit_of(b), bench_bits(b->task->type) - 1); }

bool bench_order_fits(const struct bench *b) { return b->task->subject->kind == BENCH_ORDER; }

allfold_status bench_order_run(struct bench *b, struct error *error)
{
    const allfold_array x = {b->task->place == BENCH_IN_HOST ? b->machine->host_x : b->machine->x, b->task->count, b->task->type};
    const bool several = subject_of(b) == BENCH_QUANTILES;
    const allfold_quantiles quantiles = {.size = sizeof quantiles, .q = several ? q : subject_of(b) == BENCH_MEDIAN ? &q[3] : &q[6],
                                         .count = several ? sizeof q / sizeof *q : 1};
    const allfold_top top = {.size = sizeof top, .k = top_of(b)};
    const allfold_bins bins = {.size = sizeof bins, .count = bins_of(b), .has_range = 1, .low = -limit_of(b), .high = limit_of(b)};
    const allfold_status status = subject_of(b) == BENCH_TOP                                                 ? allfold_topk(b->context, &x, &top, NULL, indices)
                                  : subject_of(b) == BENCH_BINS || subject_of(b) == BENCH_BINS_MANY ? allfold_histogram(b->context, &x, &bins, counts, NULL, NULL)
                                                                                                    : allfold_quantile(b->context, &x, &quantiles, b->results);
    b->result_count = quantiles.count;
    return status == ALLFOLD_OK ? status : error_set(error, status, "%s", allfold_message(b->context));
}

/* Of even elements, to within six deviations. */
static void check_quantile(const struct bench *b, double at, double found, char wrong[96])
{
    const double limit = limit_of(b);
    bench_near(found, (2 * at - 1) * limit, 12 * limit * sqrt(at * (1 - at) / (double)b->all.count) + 2 * limit / (double)b->all.count + 2 * unit_of(b), wrong);
}

/* The largest is known, and no element is larger than the one before. */
static void check_top(const struct bench *b, char wrong[96])
{
    int64_t before = INT64_MAX;
    for (uint64_t i = 0; i < top_of(b); i++) {
        const int64_t number = bench_number((uint64_t)indices[i], bench_bits(b->task->type));
        bench_near((double)(number > before), 0.0L, 0.0, wrong);
        before = number;
    }
    if (wrong[0] == '\0')
        bench_near((double)bench_number((uint64_t)indices[0], bench_bits(b->task->type)) * unit_of(b), b->all.max, 0.0, wrong);
}

/* All are in a bin, and the sum of the bins' middles is that of the elements, but for half a bin each. */
static void check_bins(const struct bench *b, char wrong[96])
{
    const uint64_t bins = bins_of(b);
    const double width = 2 * limit_of(b) / (double)bins;
    long double sum = 0;
    int64_t all = 0;
    for (uint64_t i = 0; i < bins; i++) {
        all += counts[i];
        sum += (long double)counts[i] * (((double)i + 0.5) * width - limit_of(b));
    }
    if (bench_near((double)all, b->all.count, 0.0, wrong))
        bench_near((double)sum, b->all.sum, (width / 2 + 0x1p-38) * (double)b->all.count, wrong);
}

allfold_status bench_order_check(struct bench *b, char wrong[96], struct error *error)
{
    if (subject_of(b) == BENCH_TOP)
        check_top(b, wrong);
    else if (subject_of(b) == BENCH_BINS || subject_of(b) == BENCH_BINS_MANY)
        check_bins(b, wrong);
    else
        for (size_t i = 0; i < b->result_count; i++)
            check_quantile(b, b->result_count > 1 ? q[i] : subject_of(b) == BENCH_MEDIAN ? q[3] : q[6], allfold_number(b->results[i].value), wrong);
    return error->status;
}
