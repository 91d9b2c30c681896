/* Order statistics: the library's calls, and what their results must be. They have no partial. CUB sorts, or counts bins;
   tools/bench-peers has other peers. */
#include "bench/data.h"
#include "bench/run.h"

#include <math.h>
#include <string.h>

enum { TOP = 50, BINS_MOST = 1 << 16 };

static const double q[] = {0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99};
static int64_t counts[BINS_MOST], indices[TOP];

static int subject_of(const struct bench *b) { return b->task->subject->fold; }
static bool is_histogram(const struct bench *b) { return subject_of(b) == BENCH_BINS || subject_of(b) == BENCH_BINS_MANY; }
static uint64_t top_of(const struct bench *b) { return u64_min(TOP, b->task->count); }
static uint64_t bins_of(const struct bench *b) { return subject_of(b) == BENCH_BINS_MANY ? BINS_MOST : 256; }
static double unit_of(const struct bench *b) { return bench_unit_of(b->task->type, b->task->range); }
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
    const allfold_status status = subject_of(b) == BENCH_TOP ? allfold_topk(b->context, &x, &top, NULL, indices)
                                  : is_histogram(b)          ? allfold_histogram(b->context, &x, &bins, counts, NULL, NULL)
                                                             : allfold_quantile(b->context, &x, &quantiles, b->results);
    b->result_count = quantiles.count;
    return status == ALLFOLD_OK ? status : error_set(error, status, "%s", allfold_message(b->context));
}

/* Number i of those that are asked for. */
static double q_of(const struct bench *b, size_t i) { return subject_of(b) == BENCH_QUANTILES ? q[i] : subject_of(b) == BENCH_MEDIAN ? q[3] : q[6]; }

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
    else if (is_histogram(b))
        check_bins(b, wrong);
    else
        for (size_t i = 0; i < b->result_count; i++)
            check_quantile(b, q_of(b, i), allfold_number(b->results[i].value), wrong);
    return error->status;
}

/* ---- CUB */

static struct cub_call cub_call_of(const struct bench *b)
{
    return (struct cub_call){.work = is_histogram(b) ? CUB_BINS : CUB_SORT, .type = b->task->type, .count = b->task->count, .max = limit_of(b),
                             .bins = (int)bins_of(b)};
}

bool bench_order_fits_cub(const struct bench *b)
{
    const allfold_type type = b->task->type;
    return bench_order_fits(b) && b->size == 1 && b->task->place == BENCH_ON_DEVICE && b->machine->ops->cub != NULL && b->task->count <= INT32_MAX
           && (type == ALLFOLD_F32 || type == ALLFOLD_F64 || type == ALLFOLD_INT32 || (type == ALLFOLD_BF16 && !is_histogram(b)));
}

allfold_status bench_order_cub_prepare(struct bench *b, struct error *error)
{
    const struct cub_call call = cub_call_of(b);
    return b->machine->ops->cub_prepare(b->machine, &call, error);
}

allfold_status bench_order_cub_run(struct bench *b, struct error *error)
{
    const struct cub_call call = cub_call_of(b);
    return b->machine->ops->cub(b->machine, &call, error);
}

allfold_status bench_order_cub_whole(struct bench *b, struct error *error)
{
    return bench_order_cub_run(b, error) == ALLFOLD_OK ? b->machine->ops->wait(b->machine, error) : error->status;
}

static double sorted_element(struct bench *b, uint64_t i, struct error *error)
{
    const size_t bytes = allfold_type_bytes(b->task->type);
    uint64_t bits = 0;
    return b->machine->ops->fetch(b->machine, (char *)b->machine->y + i * bytes, &bits, bytes, error) != ALLFOLD_OK
               ? (double)NAN : b->machine->ops->cub_value(CUB_MAX, b->task->type, &bits);
}

allfold_status bench_order_cub_check(struct bench *b, char wrong[96], struct error *error)
{
    static uint32_t found[BINS_MOST];
    const uint64_t last = b->task->count - 1;
    if (is_histogram(b)) {
        if (b->machine->ops->fetch(b->machine, b->machine->y, found, bins_of(b) * sizeof *found, error) != ALLFOLD_OK)
            return error->status;
        for (uint64_t i = 0; i < bins_of(b); i++)
            counts[i] = found[i];
        check_bins(b, wrong);
    } else if (subject_of(b) == BENCH_TOP) {
        bench_near(sorted_element(b, last, error), b->all.max, 0.0, wrong);
    } else {
        for (size_t i = 0; i < (subject_of(b) == BENCH_QUANTILES ? sizeof q / sizeof *q : 1); i++)
            check_quantile(b, q_of(b, i), sorted_element(b, (uint64_t)(q_of(b, i) * (double)last), error), wrong);
    }
    return error->status;
}
