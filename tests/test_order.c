/* Quantiles, top-k and histograms beside a sorted copy of the whole array: every element type, memory and split, orders that are hard for a sample
   or a bracket, sizes around those at which the way changes; device memory, too, which test_python.py has not. */
#include "core/order.h"
#include "tests/support.h"

#include <stdio.h>

enum order { RANDOM, ALL_EQUAL, TWO_VALUES, SORTED, REVERSED, ORGAN_PIPE, ONE_APART, HALF_EQUAL, WITH_NAN, ORDERS };
static const char *const order_names[] = {"random", "all equal", "two values", "sorted", "reversed", "organ pipe", "one bit apart", "half equal", "with NaN"};

enum { LONGEST = (1 << 21) - 1 }; /* twice as many as a sample may have, all but one */

/* An element of the sorted array. */
struct sorted {
    long double value;
    uint64_t index;
};

/* NaN is the largest. */
static int compare_values(long double x, long double y)
{
    const bool x_nan = x != x, y_nan = y != y;
    return x_nan || y_nan ? x_nan - y_nan : (x > y) - (x < y);
}

/* Equal ones in the order of their indices. */
static int compare_rising(const void *a, const void *b)
{
    const struct sorted *const x = a, *const y = b;
    const int values = compare_values(x->value, y->value);
    return values != 0 ? values : (x->index > y->index) - (x->index < y->index);
}

static bool is_real(allfold_type type) { return type_kind(type) == 'f'; }

static uint64_t element_bits(allfold_type type, const void *elements, uint64_t i)
{
    uint64_t bits = 0;
    memcpy(&bits, (const char *)elements + i * allfold_type_bytes(type), allfold_type_bytes(type));
    return type_kind(type) == 'b' ? bits != 0 : bits;
}

static void put(allfold_type type, void *elements, uint64_t i, uint64_t place, enum order order, uint64_t n)
{
    const uint64_t behind = n - 1 - place;
    const double at = (double)(order == REVERSED ? behind : order != ORGAN_PIPE ? place : place < behind ? 2 * place : 2 * behind + 1);
    switch (order) {
    case SORTED:
    case REVERSED:
    case ORGAN_PIPE: element_put(type, elements, i, is_real(type) ? (at - (double)n / 3) / 64 : floor(at * 100 / (double)n)); break;
    case ALL_EQUAL: element_put(type, elements, i, 3); break;
    case TWO_VALUES: element_put(type, elements, i, hash_of(place, 5) % 3 == 0 ? 2 : 7); break;
    case ONE_APART: element_put_bits(type, elements, i, 64 + hash_of(place, 6) % 2); break;
    case HALF_EQUAL:
    default:
        if (order == HALF_EQUAL && place % 2 == 0)
            element_put(type, elements, i, 1);
        else if (order == WITH_NAN && place % 7 == 3)
            element_put(type, elements, i, place % 2 == 0 ? (double)NAN : -(double)NAN);
        else if (is_real(type))
            element_put(type, elements, i, tan(3 * (unit_of(place, 8) - 0.5)) * (place % 100 == 9 ? 0.0 : 1.0));
        else
            element_put_bits(type, elements, i, hash_of(place, 9));
    }
}

struct whole {
    allfold_type type;
    uint64_t n, nans;
    void *elements;
    struct sorted *sorted, *falling;
};

static struct whole make_whole(allfold_type type, uint64_t n, enum order order)
{
    struct whole whole = {type, n, 0, host_block(n * allfold_type_bytes(type), allfold_type_bytes(type)), malloc((n + 1) * sizeof(struct sorted)),
                          malloc((n + 1) * sizeof(struct sorted))};
    must(whole.sorted != NULL && whole.falling != NULL, "memory");
    for (uint64_t i = 0; i < n; i++) {
        put(type, whole.elements, i, i, order, n);
        whole.sorted[i] = (struct sorted){element_get(type, whole.elements, i), i};
        whole.nans += whole.sorted[i].value != whole.sorted[i].value;
    }
    if (world_rank() == 0) /* ranks share cores */
        qsort(whole.sorted, n, sizeof *whole.sorted, compare_rising);
    MPI_Bcast(whole.sorted, (int)(n * sizeof *whole.sorted), MPI_BYTE, 0, MPI_COMM_WORLD);
    for (uint64_t end = n, at = 0; end > 0;) { /* from the largest down, equal ones in the order of their indices */
        uint64_t first = end;
        while (first > 0 && compare_values(whole.sorted[first - 1].value, whole.sorted[end - 1].value) == 0)
            first--;
        memcpy(whole.falling + at, whole.sorted + first, (end - first) * sizeof *whole.falling);
        at += end - first;
        end = first;
    }
    return whole;
}

static long double value_of(allfold_value value)
{
    return value.kind == ALLFOLD_VALUE_F64 ? value.f64 : value.kind == ALLFOLD_VALUE_I64 ? (long double)value.i64 : (long double)value.u64;
}

/* ---- the calls, of parts and of sources */

struct calls {
    allfold_context *ctx;
    const struct whole *whole;
    allfold_array part;
    struct test_source source;
    struct order_input input; /* of the source; else without one */
    struct error error;
};

/* The elements of q = i / parts, from the last one down to the first. A GPU counts by other means around few of them than around many, or if the least or largest
   element is among them; if they are close together, it looks for all at once. Many are counted first, and kept then. */
static bool quantiles_are_right(struct calls *c, uint64_t parts, uint64_t first, uint64_t last)
{
    const struct whole *const w = c->whole;
    double q[129];
    allfold_result results[129];
    allfold_quantiles call = {.size = sizeof call, .q = q, .count = last - first + 1, .method = ALLFOLD_QUANTILE_LOWER};
    call.nan = w->nans > 0 ? ALLFOLD_NAN_OMIT : ALLFOLD_NAN_PROPAGATE;
    for (uint64_t i = 0; i < call.count; i++)
        q[i] = (double)(last - i) / (double)parts;
    c->input.nan = call.nan;
    c->error = (struct error){0};
    bool right = (c->input.source != NULL ? core_quantile(c->ctx, &c->input, &call, results, &c->error)
                                          : allfold_quantile(c->ctx, &c->part, &call, results)) == ALLFOLD_OK;
    for (uint64_t i = 0; i < call.count && right; i++)
        right = results[i].count == w->n && compare_values(value_of(results[i].value), w->sorted[(last - i) * (w->n - w->nans - 1) / parts].value) == 0;
    return right;
}

/* Each method at the quantiles of i / 16, whose parts of the way are so many 16ths: the means of short elements are exact in long double. */
static bool methods_are_right(struct calls *c)
{
    const struct whole *const w = c->whole;
    const uint64_t last = w->n - w->nans - 1;
    bool right = true;
    for (int method = ALLFOLD_QUANTILE_LINEAR; method <= ALLFOLD_QUANTILE_MIDPOINT; method++)
        for (uint64_t i = 1; i < 16 && right && allfold_type_bytes(w->type) <= 4; i++) {
            const double q = (double)i / 16;
            const uint64_t below = i * last / 16, part = i * last % 16;
            const long double a = w->sorted[below].value, b = w->sorted[below + (part > 0)].value;
            const bool up = method == ALLFOLD_QUANTILE_HIGHER || (method == ALLFOLD_QUANTILE_NEAREST && (part > 8 || (part == 8 && below % 2 == 1)));
            const long double t = method == ALLFOLD_QUANTILE_LINEAR ? (long double)part / 16 : method == ALLFOLD_QUANTILE_MIDPOINT ? (part > 0) / 2.0L : up;
            const allfold_quantiles call = {.size = sizeof call, .q = &q, .count = 1, .method = method, .nan = w->nans > 0 ? ALLFOLD_NAN_OMIT : ALLFOLD_NAN_PROPAGATE};
            allfold_result result;
            c->input.nan = call.nan;
            c->error = (struct error){0};
            right = (c->input.source != NULL ? core_quantile(c->ctx, &c->input, &call, &result, &c->error) : allfold_quantile(c->ctx, &c->part, &call, &result))
                    == ALLFOLD_OK && compare_values(value_of(result.value), t == 0 ? a : t == 1 ? b : (double)((1 - t) * a + t * b)) == 0;
        }
    return right;
}

static bool topk_is_right(struct calls *c, uint64_t k, bool smallest)
{
    const struct whole *const w = c->whole;
    const struct sorted *const due = smallest ? w->sorted : w->falling;
    const allfold_top top = {.size = sizeof top, .k = k, .smallest = smallest};
    struct order_top *const found = calloc(k + 1, sizeof *found);
    uint64_t *const values = calloc(k + 1, sizeof *values);
    int64_t *const indices = calloc(k + 1, sizeof *indices);
    must(found != NULL && values != NULL && indices != NULL, "memory");
    c->input.nan = ALLFOLD_NAN_PROPAGATE;
    c->error = (struct error){0};
    bool right = (c->input.source != NULL ? core_topk(c->ctx, &c->input, k, smallest, found, &c->error)
                                          : allfold_topk(c->ctx, &c->part, &top, values, indices)) == ALLFOLD_OK;
    for (uint64_t i = 0; i < k && right; i++) {
        const uint64_t index = c->input.source != NULL ? found[i].index : (uint64_t)indices[i];
        const uint64_t bits = c->input.source != NULL ? found[i].bits : element_bits(w->type, values, i);
        right = index == due[i].index && bits == element_bits(w->type, w->elements, index);
    }
    free(found);
    free(values);
    free(indices);
    return right;
}

/* Counts of elements below each edge tell those of the bins. */
static bool histogram_is_right(struct calls *c, uint64_t bins, bool given)
{
    const struct whole *const w = c->whole;
    allfold_bins call = {.size = sizeof call, .count = bins, .has_range = !given, .low = -1.5, .high = 70};
    double *const edges = calloc(2 * (bins + 1), sizeof *edges), *const got = edges + bins + 1;
    int64_t *const counts = calloc(bins + 1, sizeof *counts);
    allfold_outside outside;
    must(edges != NULL && counts != NULL, "memory");
    for (uint64_t i = 0; given && i <= bins; i++)
        edges[i] = (double)i * (double)i / 3 - 4;
    call.edges = given ? edges : NULL;
    c->error = (struct error){0};
    bool right = (c->input.source != NULL ? core_histogram(c->ctx, &c->input, &call, got, counts, &outside, &c->error)
                                          : allfold_histogram(c->ctx, &c->part, &call, counts, got, &outside)) == ALLFOLD_OK;
    uint64_t at = 0;
    while (at < w->n && w->sorted[at].value < got[0])
        at++;
    right = right && outside.below == at && outside.nan == w->nans && outside.count == w->n;
    for (uint64_t i = 0; i < bins && right; i++) {
        const uint64_t begin = at;
        while (at < w->n && (w->sorted[at].value < got[i + 1] || (i + 1 == bins && w->sorted[at].value == got[bins])))
            at++;
        right = (uint64_t)counts[i] == at - begin;
    }
    right = right && outside.above == w->n - w->nans - at;
    free(edges);
    free(counts);
    return right;
}

/* ---- cases */

static void check_calls(struct calls *c, const char *what)
{
    const uint64_t n = c->whole->n;
    const char *wrong = NULL;
    if (!quantiles_are_right(c, 128, 0, 128) || !quantiles_are_right(c, 16, 0, 16) || !quantiles_are_right(c, 4, 0, 4) || !quantiles_are_right(c, 16, 1, 15) || !quantiles_are_right(c, 4096, 2040, 2053))
        wrong = "quantiles";
    else if (n < 400 && !methods_are_right(c))
        wrong = "a method";
    else if (!topk_is_right(c, n < 20 ? n : 20, false) || !topk_is_right(c, n < 20 ? n : 20, true) || (n < LONGEST && !topk_is_right(c, n / 2, false)))
        wrong = "topk";
    else if (n < LONGEST /* a histogram takes no sample */
             && (!histogram_is_right(c, 65, false) || !histogram_is_right(c, 143, false) || !histogram_is_right(c, 3000, false)
                 || (n > 2000 && !histogram_is_right(c, 1 << 16, false)) || !histogram_is_right(c, 9, true)))
        wrong = "histogram";
    const char *const message = c->input.source != NULL ? c->error.text : allfold_message(c->ctx);
    tap_ok(wrong == NULL, "%s%s%s %s", what, wrong != NULL ? ": " : "", wrong != NULL ? wrong : "", wrong != NULL ? message : "");
}

static void check_case(allfold_context *ctx, allfold_type type, uint64_t n, enum order order, enum memory memory, enum split split)
{
    const size_t bytes = allfold_type_bytes(type);
    const struct whole whole = make_whole(type, n, order);
    const struct range range = split_part(split, n, world_rank(), world_size());
    char *const mine = (char *)whole.elements + range.first * bytes, what[200];
    struct calls c = {.ctx = ctx, .whole = &whole, .part = {mine, range.count, type}, .source = source_of(mine, range, type)};
    void *device = NULL;
    struct queue *pinned = NULL;
    if (memory == MEMORY_DEVICE) {
        c.part.data = device = device_block(ctx, range.count * bytes, bytes);
        device_write(ctx, device, mine, range.count * bytes);
    } else if (memory == MEMORY_PINNED) {
        pinned = pinned_block(ctx, range.count * bytes, bytes);
        c.part.data = memcpy(pinned_memory(pinned, bytes), mine, range.count * bytes);
    } else if (memory == MEMORY_SOURCE) {
        c.input = (struct order_input){.source = &c.source.filled.source, .type = type, .range = range};
    }
    snprintf(what, sizeof what, "%llu %s, %s, in %s, %s", (unsigned long long)n, allfold_type_name(type), order_names[order], memory_names[memory],
             split_names[split]);
    if (tap_wanted("%s", what))
        check_calls(&c, what);
    if (device != NULL)
        device_block_free(ctx, device, bytes);
    if (pinned != NULL)
        ctx->device->backend->queue_close(pinned);
    host_block_free(whole.elements, bytes);
    free(whole.sorted);
    free(whole.falling);
}

/* Bins from the least number to the largest take three passes, over elements that are read once. */
static void check_reads(allfold_context *ctx)
{
    const struct range range = split_part(SPLIT_EVEN, 100003, world_rank(), world_size());
    float *const mine = malloc((range.count + 1) * sizeof *mine);
    int reads[2] = {0};
    bool right = mine != NULL;
    must(right, "memory");
    for (uint64_t i = 0; i < range.count; i++)
        mine[i] = (float)(range.first + i);
    for (int ranged = 0; ranged < 2; ranged++) {
        struct test_source source = source_of(mine, range, ALLFOLD_F32);
        const struct order_input input = {.source = &source.filled.source, .type = ALLFOLD_F32, .range = range};
        const allfold_bins bins = {.size = sizeof bins, .count = 2, .has_range = ranged, .high = 100002};
        double edges[3];
        int64_t counts[2];
        allfold_outside outside;
        struct error error = {0};
        right = core_histogram(ctx, &input, &bins, edges, counts, &outside, &error) == ALLFOLD_OK && counts[0] == 50001 && counts[1] == 50002 && right;
        reads[ranged] = source.calls;
    }
    tap_ok(right && reads[0] == reads[1], "a source is read once: %d calls, %d with a range", reads[0], reads[1]);
    free(mine);
}

/* The CPU backend would read device memory, which a stream tells of, as its own. */
static void check_one(allfold_context *ctx)
{
    static const double q = 0.5;
    int place;
    void *const stream = &place;
    const allfold_array part = {&q, 1, ALLFOLD_F64};
    allfold_result result;
    int64_t count;
    const bool own = ctx->device->backend->own_memory;
    bool right = own || allfold_quantile(ctx, &part, &(allfold_quantiles){sizeof(allfold_quantiles), stream, &q, 1, 0, 0}, &result) == ALLFOLD_BAD_ARGUMENT;
    right = right && (own || allfold_topk(ctx, &part, &(allfold_top){sizeof(allfold_top), stream, 1, 0, 0}, NULL, NULL) == ALLFOLD_BAD_ARGUMENT);
    right = right && (own || allfold_histogram(ctx, &part, &(allfold_bins){sizeof(allfold_bins), stream, 1, NULL, 1, 0, 1}, &count, NULL, NULL)
                                 == ALLFOLD_BAD_ARGUMENT);
    tap_ok(right && (own || strstr(allfold_message(ctx), "a CUDA stream was passed to the CPU backend") != NULL), "the CPU backend refuses a stream");
    right = allfold_histogram(ctx, &part, &(allfold_bins){.size = sizeof(allfold_bins), .count = 1}, &count, NULL, NULL) == ALLFOLD_OK;
    tap_ok(right && atomic_load(&ctx->comm.progress->done) == atomic_load(&ctx->comm.progress->total), "the passes of a histogram are no more than all of the work");
}

/* As many edges as there may be, which lie so far apart that they are looked for by key: the table has room, and what is counted next begins from 0. */
static void check_edges(allfold_context *ctx)
{
    enum { COUNT = (1 << 17) + 1, BINS = 1 << 20 };
    static const double q = 0.5;
    double *const x = malloc(COUNT * sizeof *x), *const edges = malloc((BINS + 1) * sizeof *edges);
    int64_t *const counts = malloc(BINS * sizeof *counts);
    const allfold_array part = {x, COUNT, ALLFOLD_F64};
    const allfold_quantiles median = {.size = sizeof median, .q = &q, .count = 1};
    const allfold_bins bins = {.size = sizeof bins, .count = BINS, .edges = edges};
    allfold_result before, after;
    allfold_outside outside;
    must(x != NULL && edges != NULL && counts != NULL, "memory");
    for (int i = 0; i < COUNT; i++)
        x[i] = ldexp(1 + i % 7 / 8.0, i % 577);
    for (int i = 0; i <= BINS; i++)
        edges[i] = exp2(576.0 * i / BINS);
    bool right = allfold_quantile(ctx, &part, &median, &before) == ALLFOLD_OK && allfold_histogram(ctx, &part, &bins, counts, NULL, &outside) == ALLFOLD_OK
                 && allfold_quantile(ctx, &part, &median, &after) == ALLFOLD_OK && compare_values(value_of(before.value), value_of(after.value)) == 0;
    uint64_t all = right ? outside.below + outside.above + outside.nan : 0;
    for (int i = 0; i < BINS && right; i++)
        all += (uint64_t)counts[i];
    tap_ok(right && all == outside.count && outside.count == (uint64_t)COUNT * (uint64_t)ctx->comm.size, "a median before and after a table of 2^20 edges");
    free(x);
    free(edges);
    free(counts);
}

int main(int argc, char **argv)
{
    static const allfold_type long_types[] = {ALLFOLD_F32, ALLFOLD_INT8, ALLFOLD_UINT64, ALLFOLD_BF16, ALLFOLD_F16, ALLFOLD_F64};
    MPI_Init(&argc, &argv);
    allfold_context *const ctx = open_or_skip(argc > 1 ? argv[1] : "cpu", (allfold_options){.staging_bytes = 64 << 10, .threads = 2});
    const bool few = world_size() > 3; /* long arrays: 1, 2 and 3 ranks have all, others those of one type, each another */
    const uint64_t long_count = sizeof long_types / sizeof *long_types, first_long = few ? (uint64_t)world_size() % long_count : 0;
    int number = 0;
    for (allfold_type type = ALLFOLD_F16; ctx != NULL && type < ALLFOLD_TYPE_COUNT; type++)
        for (enum order order = RANDOM; order < (is_real(type) ? ORDERS : WITH_NAN); order++, number++)
            check_case(ctx, type, (const uint64_t[]){2001, 1, 300, 40}[number % 4], order, (enum memory)(number % MEMORY_COUNT),
                       (enum split)(number / 3 % SPLIT_COUNT));
    for (uint64_t i = first_long; ctx != NULL && i < (few ? first_long + 1 : long_count); i++) /* of which a sample is taken */
        for (enum order order = RANDOM; order < (is_real(long_types[i]) ? ORDERS : WITH_NAN); order += i == 0 && !few ? 1 : 3)
            check_case(ctx, long_types[i], (1 << 17) + 3001, order, (enum memory)(order % MEMORY_COUNT), (enum split)((order + i) % SPLIT_COUNT));
    if (ctx != NULL && !few)
        check_case(ctx, ALLFOLD_UINT64, LONGEST, RANDOM, MEMORY_DEVICE, SPLIT_LAST);
    if (ctx != NULL && tap_wanted("a source is read once"))
        check_reads(ctx);
    if (ctx != NULL && tap_wanted("the CPU backend refuses a stream"))
        check_one(ctx);
    if (ctx != NULL && !few && tap_wanted("a median before and after a table of 2^20 edges"))
        check_edges(ctx);
    allfold_close(ctx);
    const int failures = tap_done();
    MPI_Finalize();
    return failures;
}
