/* What folds and softmax along an axis refuse: on all ranks, with the same status, whichever rank is wrong, and before any work; and
   results in several batches. The other numbers are tests/test_axes.py's. */
#include "comm/vectors.h"
#include "core/core.h"
#include "tests/support.h"

static allfold_context *ctx;

static allfold_view view_of(const void *data)
{
    return (allfold_view){.data = data, .outer = 2, .length = 3, .inner = 2, .type = ALLFOLD_F32, .cut = ALLFOLD_CUT_OUTER};
}

static void expect(const char *what, allfold_status status, allfold_status expected, const char *text)
{
    tap_ok(status == expected && (status == ALLFOLD_OK || strstr(allfold_message(ctx), text) != NULL), "%s: %s", what,
           status == ALLFOLD_OK ? "done" : allfold_message(ctx));
}

/* last: this rank alone passes what is wrong. */
static void refuse_views(const float *x, double *values, bool last)
{
    const allfold_output output = {.values = values};
    const allfold_outputs outputs = {&output, 1};
    allfold_view view = view_of(x);
    expect("a view that is NULL", allfold_reduce_axis(ctx, ALLFOLD_SUM, last ? NULL : &view, NULL, &outputs), ALLFOLD_BAD_ARGUMENT,
           "the view is NULL");
    expect("outputs that are NULL", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, NULL, last ? NULL : &outputs), ALLFOLD_BAD_ARGUMENT,
           "the outputs are NULL");
    view.data = last ? (const char *)x + 1 : (const char *)x;
    expect("data that is not aligned", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_BAD_ARGUMENT, "aligned");
    view = view_of(x);
    view.cut = (allfold_cut)(last ? 3 : 0);
    expect("a cut that does not exist", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_BAD_ARGUMENT, "cut 3");
    view = view_of(x);
    view.axis_stride = last ? UINT64_MAX / 4 : 0;
    expect("a stride beyond memory", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_BAD_ARGUMENT, "any memory");
    view = view_of(x);
    view.axis_stride = last ? 1 : 0;
    expect("an output of another type in the same place", allfold_softmax_axis(ctx, &(allfold_view){.data = values, .outer = 2, .length = 3,
           .inner = 2, .type = ALLFOLD_F32}, last ? (void *)values : (void *)(values + 32), ALLFOLD_F64, NULL), ALLFOLD_BAD_ARGUMENT,
           "which holds f32, and y_type is f64");
    expect("elements that overlap", allfold_softmax_axis(ctx, &view, values, ALLFOLD_F32, NULL), ALLFOLD_BAD_ARGUMENT, "overlap");
}

/* The same of a view of any dimensions. */
static void refuse_dimensions(const float *x, double *values, bool last)
{
    static const uint64_t shape[] = {2, 3, 2}, long_shape[] = {2, UINT64_C(1) << 62, 2}, many[] = {UINT64_C(1) << 40, 1, UINT64_C(1) << 40};
    static const int64_t far[] = {1, INT64_MAX / 2, 1}, meet[] = {3, 1, 2}, repeat[] = {0, 1, 3}, back[] = {-6, 2, 1};
    const allfold_view_nd right = {.size = sizeof right, .data = x, .rank = 3, .shape = shape, .axes = 1 << 0 | 1 << 2, .type = ALLFOLD_F32};
    const allfold_output output = {.values = values};
    const allfold_outputs outputs = {&output, 1};
    enum { CASES = 12 };
    struct {
        const char *what, *text;
        allfold_view_nd view;
    } cases[CASES];
    for (int i = 0; i < CASES; i++)
        cases[i].view = right;
    int i = 0;
#define CASE(WHAT, FIELD, VALUE, TEXT) \
    cases[i].what = WHAT; \
    cases[i].text = TEXT; \
    cases[i++].view.FIELD = VALUE;
    CASE("a size that is not set", size, 0, "allfold_view_nd.size is 0")
    CASE("no dimension", rank, 0, "rank: expected 1 to 64 dimensions, found 0")
    CASE("too many dimensions", rank, 65, "found 65")
    CASE("no shape", shape, NULL, "shape is NULL")
    CASE("no axis", axes, 0, "bits of dimensions 0 to 2, at least one, found 0")
    CASE("an axis that does not exist", axes, 1 << 3 | 1, "found 0x9")
    CASE("a cut below 0", cut, -1, "cut: expected a dimension, 0 to 2, found -1")
    CASE("a cut that does not exist", cut, 3, "found 3")
    CASE("no type", type, ALLFOLD_TYPE_NONE, "no element type")
    CASE("data that is not aligned", data, (const char *)x + 1, "aligned")
    CASE("strides beyond memory", strides, far, "any memory")
    CASE("extents beyond memory", shape, long_shape, "any memory")
#undef CASE
    for (i = 0; i < CASES; i++)
        expect(cases[i].what, allfold_reduce_nd(ctx, ALLFOLD_SUM, last ? &cases[i].view : &right, NULL, &outputs), ALLFOLD_BAD_ARGUMENT, cases[i].text);
    expect("a view that is NULL", allfold_reduce_nd(ctx, ALLFOLD_SUM, last ? NULL : &right, NULL, &outputs), ALLFOLD_BAD_ARGUMENT, "the view is NULL");
    allfold_view_nd view = right;
    view.weights = values;
    view.weights_type = ALLFOLD_F64;
    view.weights_strides = last ? far : meet;
    expect("weights beyond memory", allfold_reduce_nd(ctx, ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_BAD_ARGUMENT, "the weights reach further");
    view = right;
    view.shape = many;
    view.axes = 1 << 1;
    expect("too many results", allfold_reduce_nd(ctx, ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_BAD_ARGUMENT, "2^64 results");
    view = right;
    view.cut = 2;
    expect("a cut behind the first that is folded", allfold_reduce_nd(ctx, ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_OK, "");
    for (i = 0; i < 2; i++) {
        view = right;
        view.strides = i == 0 ? meet : repeat;
        expect("elements that softmax cannot write", allfold_softmax_nd(ctx, last ? &view : &right, values, ALLFOLD_F32, NULL), ALLFOLD_BAD_ARGUMENT, "overlap");
        expect("but a fold reads", allfold_reduce_nd(ctx, ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_OK, "");
    }
    view.strides = back;
    view.data = x + 6;
    const double n = world_size();
    expect("dimensions that go back", allfold_reduce_nd(ctx, ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_OK, "");
    tap_ok(values[0] == 14.0 * n && values[1] == 22.0 * n && values[2] == 30.0 * n, "their sums"); /* 0 + 1 + 6 + 7 ... */
}

/* Runs of 1 or 2 elements that lie between each other, and runs that meet. */
static void interleaved_views(const float *x, float *y)
{
    static const struct {
        uint64_t outer, length, inner, outer_stride, axis_stride;
        bool meet;
    } cases[] = {{3, 2, 1, 2, 3, false}, {2, 3, 1, 3, 2, false}, {4, 2, 1, 2, 3, false}, {4, 3, 1, 2, 3, true}, {3, 4, 1, 3, 2, true},
                 {2, 2, 2, 3, 6, false}, {3, 2, 2, 5, 8, false}, {3, 2, 2, 5, 9, true}, {3, 2, 2, 5, 11, true}, {3, 2, 2, 5, 12, false},
                 {5, 5, 1, 1, 1, true}, {5, 5, 1, 6, 6, true}, {1, 5, 2, 1, 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const allfold_view view = {.data = x, .outer = cases[i].outer, .length = cases[i].length, .inner = cases[i].inner,
                                   .outer_stride = cases[i].outer_stride, .axis_stride = cases[i].axis_stride, .type = ALLFOLD_F32};
        expect("interleaved runs", allfold_softmax_axis(ctx, &view, y, ALLFOLD_F32, NULL),
               cases[i].meet ? ALLFOLD_BAD_ARGUMENT : ALLFOLD_OK, "overlap");
    }
}

static void refuse_options(const float *x, double *values)
{
    int64_t indices[64];
    const allfold_output output = {.values = values}, indexed = {values, indices};
    const allfold_outputs outputs = {&output, 1};
    const allfold_view view = view_of(x);
    allfold_call call = ALLFOLD_CALL_INIT;
    call.ddof = 1;
    expect("ddof of a sum", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, &call, &outputs), ALLFOLD_BAD_ARGUMENT, "no variance");
    expect("ddof of softmax", allfold_softmax_axis(ctx, &view, values, ALLFOLD_F32, &call), ALLFOLD_BAD_ARGUMENT, "ddof");
    expect("indices of a sum", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, NULL, &(allfold_outputs){&indexed, 1}),
           ALLFOLD_BAD_ARGUMENT, "no indices");
    expect("more outputs than results", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, NULL, &(allfold_outputs){&output, 2}),
           ALLFOLD_BAD_ARGUMENT, "1 results, found 2");
    call = (allfold_call)ALLFOLD_CALL_INIT;
    call.own_results = 1;
    allfold_result sum;
    expect("own results of one number", allfold_reduce(ctx, ALLFOLD_SUM, &(allfold_array){x, 12, ALLFOLD_F32}, &call, &sum),
           ALLFOLD_BAD_ARGUMENT, "own_results");
    call = (allfold_call)ALLFOLD_CALL_INIT;
    call.ddof = 1;
    allfold_result found[FOLD_RESULTS_MAX];
    allfold_results stats = {found, FOLD_RESULTS_MAX, 0};
    expect("ddof of one array", allfold_reduce_all(ctx, ALLFOLD_STATS, &(allfold_array){x, 12, ALLFOLD_F32}, &call, &stats), ALLFOLD_OK, "");
    const double n = 12.0 * world_size(), variance = 143.0 / 12.0 * n / (n - 1.0); /* of 0 to 11, on every rank */
    tap_ok(fabs(allfold_number(allfold_result_find(&stats, "variance")->value) - variance) < 1e-12, "it is divided by n - 1");
}

/* Ranks that do not make one call. */
static void refuse_differences(const float *x, double *values)
{
    const bool last = world_rank() == world_size() - 1;
    const allfold_output output = {.values = values};
    const allfold_outputs outputs = {&output, 1};
    allfold_view view = view_of(x);
    if (world_size() == 1)
        return;
    expect("different folds", allfold_reduce_axis(ctx, last ? ALLFOLD_MAX : ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_BAD_ARGUMENT,
           "different calls");
    expect("a fold and softmax",
           last ? allfold_softmax_axis(ctx, &view, values, ALLFOLD_F32, NULL) : allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, NULL, &outputs),
           ALLFOLD_BAD_ARGUMENT, "different calls");
    allfold_call own = ALLFOLD_CALL_INIT;
    own.own_results = last;
    expect("own results of one rank", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, &own, &outputs), ALLFOLD_BAD_ARGUMENT, "different calls");
    view.length = last ? 2 : 3;
    expect("another length", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_BAD_ARGUMENT,
           "only in the dimension that they cut");
    view.cut = ALLFOLD_CUT_AXIS;
    expect("another length where the axis is cut", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_OK, "");
}

/* Partials that are more bytes than MPI counts, which the sizes of batches do not let happen. No partial is read. */
static void refuse_long_exchange(void)
{
    struct comm *const comm = &ctx->comm;
    const uint64_t each = UINT64_C(1) << 28;
    struct range *const parts = malloc((size_t)comm->size * sizeof *parts);
    struct error error = {0};
    must(parts != NULL, "memory");
    for (int rank = 0; rank < comm->size; rank++)
        parts[rank] = (struct range){(uint64_t)rank * each, each};
    const struct comm_partials partials = {fold_monoid(ALLFOLD_SUM, ALLFOLD_LEVEL_EXACT, ALLFOLD_F32), ALLFOLD_F32, NULL, parts};
    tap_ok(comm_combine_partials(comm, &partials, NULL, &error) == ALLFOLD_UNSUPPORTED, "partials beyond what MPI counts: %s", error.text);
    free(parts);
}

/* Each ddof is compared as it is: any two differ, of one array too. */
static void refuse_other_ddof(const float *x)
{
    allfold_result found[FOLD_RESULTS_MAX];
    allfold_results stats = {found, FOLD_RESULTS_MAX, 0};
    allfold_call call = ALLFOLD_CALL_INIT;
    int unseen = 0;
    if (world_size() == 1) {
        tap_skip("different ddof: there is no other rank");
        return;
    }
    for (uint64_t ddof = 1; ddof <= 2000; ddof++) {
        call.ddof = world_rank() == 0 ? 0 : ddof;
        unseen += allfold_reduce_all(ctx, ALLFOLD_STATS, &(allfold_array){x, 2, ALLFOLD_F32}, &call, &stats) != ALLFOLD_BAD_ARGUMENT;
    }
    tap_ok(unseen == 0, "different ddof: %d of 2000 not seen", unseen);
}

/* Found by the lengths alone: no element is read. */
static void refuse_long_rows(const double *x, double *values)
{
    const allfold_output output = {.values = values};
    const allfold_view view = {.data = x, .outer = 1, .length = UINT64_C(1) << 50, .inner = 1, .type = ALLFOLD_F64, .cut = ALLFOLD_CUT_AXIS};
    expect("a row too long for softmax", allfold_softmax_axis(ctx, &view, values, ALLFOLD_F64, NULL), ALLFOLD_UNSUPPORTED, "at most 2^41");
    expect("a row too long for logsumexp", allfold_reduce_axis(ctx, ALLFOLD_LOGSUMEXP, &view, NULL, &(allfold_outputs){&output, 1}),
           ALLFOLD_UNSUPPORTED, "at most 2^41");
}

/* Ranks without results may have no arrays for them; others want the same. */
static void ranks_without_results(const float *x, double *values)
{
    const bool first = world_rank() == 0, last = world_rank() == world_size() - 1;
    allfold_output output = {.values = last ? values : NULL};
    allfold_view view = view_of(x);
    allfold_call call = ALLFOLD_CALL_INIT;
    call.own_results = 1;
    view.outer = last ? 2 : 0;
    values[3] = 0.0;
    expect("no arrays for no results", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, &call, &(allfold_outputs){&output, 1}), ALLFOLD_OK, "");
    tap_ok(!last || values[3] == 27.0, "the results of the others are right"); /* 7 + 9 + 11 */
    output.values = first ? values : NULL;
    view = (allfold_view){.data = x, .outer = 1, .length = 3, .inner = 1, .type = ALLFOLD_F32, .cut = ALLFOLD_CUT_AXIS};
    expect("one result, of rank 0", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, &call, &(allfold_outputs){&output, 1}), ALLFOLD_OK, "");
    tap_ok(!first || values[0] == 3.0 * world_size(), "it is right");
    if (world_size() > 1)
        expect("no array for a result", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, NULL, &(allfold_outputs){&output, 1}),
               ALLFOLD_BAD_ARGUMENT, "arrays that are NULL must be the same");
}

/* More results than one batch of partials and one message of results hold: 8 MiB each. Row r, in the order of the results, has
   r % 251 - 125 as its largest element. */
static void many_results(allfold_cut cut, bool own)
{
    const uint64_t extents[] = {3, 1, 400003}, count = extents[0] * extents[2], size = (uint64_t)world_size();
    uint64_t mine[] = {extents[0], extents[1], extents[2]};
    const struct range part = range_part(extents[cut], (uint64_t)world_rank(), size), all = {0, count};
    if (cut != ALLFOLD_CUT_AXIS)
        mine[cut] = part.count;
    int8_t *const x = malloc(mine[0] * mine[2] + 1), *const device = own ? device_block(ctx, mine[0] * mine[2] + 1, 1) : x;
    int64_t *const values = calloc(count, sizeof *values), *const indices = calloc(count, sizeof *indices);
    must(x != NULL && values != NULL && indices != NULL, "memory");
    const uint64_t o_first = cut == ALLFOLD_CUT_OUTER ? part.first : 0, i_first = cut == ALLFOLD_CUT_INNER ? part.first : 0;
    for (uint64_t e = 0; e < mine[0] * mine[2]; e++)
        x[e] = (int8_t)(((o_first + e / mine[2]) * extents[2] + i_first + e % mine[2]) % 251 - 125
                        - (cut == ALLFOLD_CUT_AXIS && world_rank() < world_size() - 1)); /* the last rank has the largest */
    if (own)
        device_write(ctx, device, x, mine[0] * mine[2]);
    const allfold_view view = {.data = device, .outer = mine[0], .length = 1, .inner = mine[2], .type = ALLFOLD_INT8, .cut = cut};
    const allfold_output output = {values, indices};
    allfold_call call = ALLFOLD_CALL_INIT;
    call.own_results = own;
    expect("many results", allfold_reduce_axis(ctx, ALLFOLD_ARGMAX, &view, &call, &(allfold_outputs){&output, 1}), ALLFOLD_OK, "");
    const struct range got = !own ? all : cut == ALLFOLD_CUT_AXIS ? range_part(count, (uint64_t)world_rank(), size)
                                                                  : (struct range){0, mine[0] * mine[2]};
    const uint64_t width = !own || cut == ALLFOLD_CUT_AXIS ? extents[2] : mine[2];
    uint64_t wrong = 0;
    for (uint64_t r = 0; r < got.count; r++) {
        const uint64_t at = got.first + r, row = !own || cut == ALLFOLD_CUT_AXIS
                                                     ? at : (o_first + at / width) * extents[2] + i_first + at % width;
        wrong += values[r] != (int64_t)(row % 251) - 125 || indices[r] != (cut == ALLFOLD_CUT_AXIS ? world_size() - 1 : 0);
    }
    tap_ok(wrong == 0, "cut %d, %s results: in several batches", (int)cut, own ? "own" : "all");
    if (own)
        device_block_free(ctx, device, 1);
    free(x);
    free(values);
    free(indices);
}

/* Rows of which one has a sum that int64 cannot hold: that refuses the sum alone. */
static void stats_of_large_integers(allfold_cut cut, bool on_device)
{
    enum { SUM = 2, MEAN = 3, MIN = 5, ROWS = 4, LENGTH = 5 };
    int64_t x[ROWS * LENGTH], sums[ROWS], least[ROWS];
    double means[ROWS];
    allfold_output outputs[FOLD_RESULTS_MAX] = {[MEAN] = {.values = means}, [MIN] = {.values = least}};
    allfold_call call = ALLFOLD_CALL_INIT;
    allfold_result found[FOLD_RESULTS_MAX];
    allfold_results stats = {found, FOLD_RESULTS_MAX, 0};
    for (int i = 0; i < ROWS * LENGTH; i++)
        x[i] = i / LENGTH == 2 ? INT64_C(1) << 62 : i % LENGTH;
    int64_t *const memory = on_device ? device_block(ctx, sizeof x, 8) : x;
    if (on_device)
        device_write(ctx, memory, x, sizeof x);
    const allfold_view view = {.data = memory, .outer = ROWS, .length = LENGTH, .inner = 1, .type = ALLFOLD_INT64, .cut = cut};
    const allfold_outputs wanted = {outputs, allfold_result_count(ALLFOLD_STATS)};
    call.own_results = cut != ALLFOLD_CUT_AXIS;
    expect("statistics beside a sum that does not fit", allfold_reduce_axis(ctx, ALLFOLD_STATS, &view, &call, &wanted), ALLFOLD_OK, "");
    tap_ok(means[1] == 2.0 && means[2] == 0x1p62 && least[2] == INT64_C(1) << 62 && least[3] == 0, "they are right, cut %d%s", (int)cut,
           on_device ? ", in device memory" : "");
    outputs[SUM].values = sums;
    expect("a sum that does not fit", allfold_reduce_axis(ctx, ALLFOLD_STATS, &view, &call, &wanted), ALLFOLD_OVERFLOW, "which int64 cannot hold");
    expect("its array", allfold_reduce_all(ctx, ALLFOLD_STATS, &(allfold_array){memory, ROWS * LENGTH, ALLFOLD_INT64}, NULL, &stats), ALLFOLD_OK, "");
    const double sum = world_size() * (LENGTH * 0x1p62 + (ROWS - 1) * LENGTH * (LENGTH - 1) / 2);
    tap_ok(found[SUM].value.kind == ALLFOLD_VALUE_F64 && found[SUM].value.f64 == sum && found[MIN].value.i64 == 0, "of which the sum is f64, rounded");
    if (on_device)
        device_block_free(ctx, memory, 8);
}

/* Rows, or columns, of so many elements that GPUs have kernels of their own for places of extremes, and for logsumexp at level fast. Of each three one is near 0, one 20 below, one
   20 above, so that a trial of logsumexp suffices in some of them; one is infinite alone, one has NaNs, one begins with zeros of both signs, which are its extremes. */
static void found_in_many(allfold_type type, uint64_t rows, uint64_t length, bool columns, allfold_context *fast)
{
    const uint64_t count = rows * length, row_step = columns ? 1 : length, step = columns ? rows : 1;
    const size_t bytes = allfold_type_bytes(type);
    unsigned char *const x = malloc(count * bytes), *const device = device_block(ctx, count * bytes, bytes);
    int64_t *const indices = malloc(rows * sizeof *indices);
    double *const sums = malloc(rows * sizeof *sums), *const extremes = malloc(rows * sizeof *extremes);
    const allfold_view view = {.data = device, .outer = columns ? 1 : rows, .length = length, .inner = columns ? rows : 1, .type = type, .cut = columns ? ALLFOLD_CUT_INNER : ALLFOLD_CUT_OUTER};
    must(x != NULL && indices != NULL && sums != NULL && extremes != NULL, "memory");
    for (int largest = 0; largest < 2; largest++) {
        const double sign = largest ? 1 : -1;
        uint64_t wrong = 0, bits = 1;
        allfold_call call = ALLFOLD_CALL_INIT;
        call.own_results = 1;
        for (uint64_t row = 0; row < rows; row++)
            for (uint64_t at = 0; at < length; at++) {
                bits = bits * UINT64_C(6364136223846793005) + 1442695040888963407;
                const double number = row == 3 ? (at < 40 ? (at % 2 == 0 ? -0.0 : 0.0) : -sign) : ((double)(bits >> 56) - 128) / 64 + 20 * ((double)(row % 3) - 1);
                element_put(type, x, row * row_step + at * step, row == 1 ? -sign * INFINITY : row == 2 && at % 200 == 177 ? NAN : number);
            }
        device_write(ctx, device, x, count * bytes);
        const allfold_output places = {NULL, indices}, values = {sums, NULL};
        const allfold_fold fold = largest ? ALLFOLD_ARGMAX : ALLFOLD_ARGMIN;
        expect("extremes without their places", allfold_reduce_axis(ctx, fold, &view, &call, &(allfold_outputs){&values, 1}), ALLFOLD_OK, "");
        memcpy(extremes, sums, rows * sizeof *sums);
        expect("places of extremes", allfold_reduce_axis(ctx, fold, &view, &call, &(allfold_outputs){&places, 1}), ALLFOLD_OK, "");
        expect("logsumexp", allfold_reduce_axis(fast, ALLFOLD_LOGSUMEXP, &view, &call, &(allfold_outputs){&values, 1}), ALLFOLD_OK, "");
        double worst = 0;
        for (uint64_t row = 0; row < rows; row++) {
            uint64_t best = 0;
            double max = -INFINITY, sum = 0;
            for (uint64_t at = 0; at < length; at++) {
                const double element = element_get(type, x, row * row_step + at * step);
                if (row != 2 && sign * element > sign * element_get(type, x, row * row_step + best * step))
                    best = at;
                max = element > max ? element : max;
            }
            for (uint64_t at = 0; at < length && row > 2; at++)
                sum += exp(element_get(type, x, row * row_step + at * step) - max);
            const double extreme = element_get(type, x, row * row_step + best * step);
            wrong += indices[row] != (int64_t)(row == 2 ? 177 : best) || (row == 2 ? extremes[row] == extremes[row] : extremes[row] != extreme);
            const double expected = max + log(sum);
            if (row == 2 ? sums[row] == sums[row] : row == 1 ? sums[row] != -sign * INFINITY : !(fabs(sums[row] - expected) <= 0x1p-23 * fmax(1, fabs(expected))))
                worst = INFINITY;
            else if (row > 2)
                worst = fmax(worst, fabs(sums[row] - expected) / fmax(1, fabs(expected)));
        }
        tap_ok(wrong == 0 && worst <= 0x1p-23, "%s and logsumexp of many %s: %d %s of %d, within %.2f of 2^-24", largest ? "argmax" : "argmin", allfold_type_name(type), (int)rows,
               columns ? "columns" : "rows", (int)length, worst * 0x1p24);
    }
    device_block_free(ctx, device, bytes);
    free(x);
    free(indices);
    free(sums);
    free(extremes);
}

int main(int argc, char **argv)
{
    static float x[64];
    static double values[64 * 8];
    (void)argc;
    MPI_Init(NULL, NULL);
    for (int i = 0; i < 64; i++)
        x[i] = (float)i;
    ctx = open_or_skip(argv[1], (allfold_options)ALLFOLD_OPTIONS_INIT);
    if (ctx != NULL) {
        refuse_views(x, values, world_rank() == world_size() - 1);
        refuse_dimensions(x, values, world_rank() == world_size() - 1);
        interleaved_views(x, (float *)values);
        tap_ok(allfold_result_type(ALLFOLD_SUM, 0, ALLFOLD_F32, (allfold_type)999) == ALLFOLD_TYPE_NONE
               && allfold_result_type(ALLFOLD_SUM, 0, ALLFOLD_F32, ALLFOLD_INT8) == ALLFOLD_TYPE_NONE
               && allfold_result_type(ALLFOLD_STATS, 0, ALLFOLD_F32, ALLFOLD_F16) == ALLFOLD_UINT64
               && allfold_result_type(ALLFOLD_SUM, 0, ALLFOLD_F32, ALLFOLD_F16) == ALLFOLD_F16, "types of results");
        refuse_options(x, values);
        refuse_differences(x, values);
        refuse_long_exchange();
        refuse_other_ddof(x);
        refuse_long_rows(values, values);
        ranks_without_results(x, values);
        for (int i = 0; i < 4; i++)
            stats_of_large_integers(i < 2 ? ALLFOLD_CUT_OUTER : ALLFOLD_CUT_AXIS, i % 2 == 1);
        for (int i = 0; i < 6; i++)
            many_results((allfold_cut)(i / 2), i % 2 == 1);
        if (strcmp(argv[1], "cuda") == 0) {
            static const allfold_type types[] = {ALLFOLD_F16, ALLFOLD_BF16, ALLFOLD_F32};
            allfold_context *const fast = open_or_skip(argv[1], (allfold_options){.level = ALLFOLD_LEVEL_FAST});
            for (int i = 0; i < 9; i++)
                found_in_many(types[i / 3], i % 3 == 0 ? 1500 : 12000, i % 3 == 0 ? 4104 : 520, i % 3 == 2, fast);
            allfold_close(fast);
        }
        allfold_close(ctx);
    }
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
