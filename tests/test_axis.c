/* What folds and softmax along an axis refuse: on all ranks, with the same status, whichever rank is wrong, and before any work. The
   numbers are tests/test_axes.py's. */
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
    expect("elements that overlap", allfold_softmax_axis(ctx, &view, values, ALLFOLD_F32, NULL), ALLFOLD_BAD_ARGUMENT, "overlap");
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
    view.length = last ? 2 : 3;
    expect("another length", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_BAD_ARGUMENT,
           "only in the dimension that they cut");
    view.cut = ALLFOLD_CUT_AXIS;
    expect("another length where the axis is cut", allfold_reduce_axis(ctx, ALLFOLD_SUM, &view, NULL, &outputs), ALLFOLD_OK, "");
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
        refuse_options(x, values);
        refuse_differences(x, values);
        allfold_close(ctx);
    }
    const int status = tap_done();
    MPI_Finalize();
    return status;
}
