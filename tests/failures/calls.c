/* Calls that one rank gets wrong, or in which the ranks differ. */
#include "tests/failures/failures.h"

/* A call that one rank gets wrong. */
struct wrong {
    const char *text;
    allfold_fold fold;
    allfold_array part;
    allfold_call call;
    bool null_part, null_result, softmax, dot, null_y, no_size;
    bool fails; /* the rank calls allfold_fail instead */
    size_t capacity; /* not 0: through allfold_reduce_all, with room for so many results */
    allfold_type y_type;
    size_t y_offset;
    allfold_array second; /* of a dot product, or a comparison */
    bool compare, weighted; /* weighted: a fold of a view, with `second` as weights */
    double atol;
    allfold_status status;
};

static allfold_status compare(const struct wrong *w, const allfold_array *a, const allfold_array *b)
{
    const bool wrong = test.rank == test.failing;
    allfold_tolerance tolerance = ALLFOLD_TOLERANCE_INIT;
    allfold_comparison found = ALLFOLD_COMPARISON_INIT;
    tolerance.atol = wrong ? w->atol : 0;
    return allfold_compare(test.ctx, a, b, &tolerance, wrong && w->null_result ? NULL : &found);
}

/* The fold of a part with weights, to one result. */
static allfold_status weigh(const struct wrong *w, const allfold_array *part, const allfold_call *call)
{
    static const float ones[COUNT];
    const bool wrong = test.rank == test.failing;
    double value;
    allfold_view_nd view = ALLFOLD_VIEW_ND_INIT;
    view.data = part->data;
    view.rank = 1;
    view.shape = &part->count;
    view.axes = 1;
    view.type = part->type;
    view.weights = wrong ? w->second.data : ones;
    view.weights_type = wrong ? w->second.type : ALLFOLD_F32;
    return allfold_reduce_nd(test.ctx, wrong ? w->fold : ALLFOLD_MEAN, &view, call, &(allfold_outputs){&(allfold_output){.values = &value}, 1});
}

static void run_wrong(const struct wrong *w)
{
    static const allfold_array right = {test.x, COUNT, ALLFOLD_F32};
    const bool wrong = test.rank == test.failing;
    const allfold_array *const part = !wrong ? &right : w->null_part ? NULL : &w->part;
    allfold_call call = wrong ? w->call : (allfold_call){0};
    allfold_result results[FOLD_RESULTS_MAX];
    allfold_results all = {.results = results, .capacity = wrong ? w->capacity : FOLD_RESULTS_MAX};
    allfold_status status;
    call.size = wrong && w->call.size != 0 ? w->call.size : sizeof call;
    if (wrong && w->no_size)
        call.size = 0;
    void *const y = !wrong ? test.y : w->null_y ? NULL : (void *)((char *)test.y + w->y_offset);
    if (wrong && w->fails)
        status = allfold_fail(test.ctx, w->status, w->text);
    else if (w->compare)
        status = compare(w, part, !wrong ? &right : &w->second);
    else if (w->weighted)
        status = weigh(w, part, &call);
    else if (w->dot)
        status = allfold_dot(test.ctx, part, !wrong ? &right : w->null_y ? NULL : &w->second, &call, wrong && w->null_result ? NULL : results);
    else if (w->softmax)
        status = allfold_softmax(test.ctx, part, y, wrong ? w->y_type : ALLFOLD_F32, &call);
    else if (w->capacity > 0)
        status = allfold_reduce_all(test.ctx, ALLFOLD_STATS, part, &call, wrong && w->null_result ? NULL : &all);
    else
        status = allfold_reduce(test.ctx, wrong ? w->fold : ALLFOLD_SUM, part, &call,
                                wrong && w->null_result ? NULL : results);
    if (w->status == ALLFOLD_OK && status != ALLFOLD_OK)
        found("%s: %s", w->text, allfold_message(test.ctx));
    else if (w->status != ALLFOLD_OK)
        must_fail("a wrong argument", status, allfold_message(test.ctx), &(struct due){w->status, w->text, true});
    const char *const phase = strstr(allfold_message(test.ctx), " in phase "); /* one rank alone tells none */
    if (w->status == ALLFOLD_BAD_ARGUMENT && w->call.stream == NULL && phase != NULL && strncmp(phase, " in phase start: ", 17) != 0)
        found("%s: found before any work, and told as %s", w->text, allfold_message(test.ctx));
    must_work(w->text);
}

static void fail_with_own_message(void)
{
    allfold_fail(test.ctx, ALLFOLD_NO_MEMORY, "the first reason");
    const allfold_status status = allfold_fail(test.ctx, ALLFOLD_NO_MEMORY, allfold_message(test.ctx));
    must_fail("the message of the call before", status, allfold_message(test.ctx),
              &(struct due){ALLFOLD_NO_MEMORY, "the first reason", false});
}

void test_arguments(void)
{
    static const float negative[COUNT + 2] = {0, -1};
    const void *const odd = (const char *)test.x + 1;
    const allfold_array right = {test.x, COUNT, ALLFOLD_F32};
    const allfold_status bad = ALLFOLD_BAD_ARGUMENT;
    const struct wrong wrongs[] = {
        {.text = "the array is NULL", .null_part = true, .status = bad},
        {.text = "data is NULL", .part = {NULL, 3, ALLFOLD_F32}, .status = bad},
        {.text = "no element type: expected .type", .part = {.data = test.x, .count = 3}, .status = bad},
        {.text = "no element type: expected .type", .part = {0}, .status = bad},
        {.text = "element type 99", .part = {test.x, 3, (allfold_type)99}, .status = bad},
        {.text = "element type -1", .part = {test.x, 3, (allfold_type)-1}, .status = bad},
        {.text = "not aligned", .part = {odd, 3, ALLFOLD_F32}, .status = bad},
        {.text = "an empty part's data is not looked at", .part = {odd, COUNT, ALLFOLD_F32}, .status = ALLFOLD_OK},
        {.text = "larger than any memory", .part = {test.x, UINT64_MAX / 2, ALLFOLD_F32}, .status = bad},
        {.text = "fold 99", .part = right, .fold = (allfold_fold)99, .status = bad},
        {.text = "fold -1", .part = right, .fold = (allfold_fold)-1, .status = bad},
        {.text = "always propagates NaN", .part = right, .call = {.nan = ALLFOLD_NAN_OMIT}, .status = bad},
        {.text = "NaN policy 7", .part = right, .fold = ALLFOLD_MIN, .call = {.nan = (allfold_nan)7}, .status = bad},
        {.text = "result is NULL", .part = right, .null_result = true, .status = bad},
        {.text = "results are f16, bf16, f32 or f64, not int32", .part = right, .call = {.result_type = ALLFOLD_INT32}, .status = bad},
        {.text = "logarithm is for softmax", .part = right, .call = {.logarithm = 1}, .status = bad},
        {.text = "allfold_call.size is 0", .part = right, .no_size = true, .status = bad},
        {.text = "allfold_call.size is 7", .part = right, .call = {.size = 7}, .status = bad},
        {.text = "allfold_call.size is 99999", .part = right, .call = {.size = 99999}, .status = bad},
        {.text = "stats has up to 10 results, found room for 1", .part = right, .fold = ALLFOLD_STATS, .status = bad},
        {.text = "stats has up to 10 results, found room for 9", .part = right, .capacity = 9, .status = bad},
        {.text = "the results are NULL", .part = right, .capacity = 10, .null_result = true, .status = bad},
        {.text = "an empty part, and all statistics", .part = right, .capacity = 12, .status = ALLFOLD_OK},
        {.text = "the array is NULL", .softmax = true, .null_part = true, .y_type = ALLFOLD_F32, .status = bad},
        {.text = "output is NULL", .softmax = true, .part = right, .null_y = true, .y_type = ALLFOLD_F32, .status = bad},
        {.text = "not aligned", .softmax = true, .part = right, .y_type = ALLFOLD_F32, .y_offset = 2, .status = bad},
        {.text = "not int32", .softmax = true, .part = right, .y_type = ALLFOLD_INT32, .status = bad},
        {.text = "not no type", .softmax = true, .part = right, .y_type = (allfold_type)99, .status = bad},
        {.text = "expected no allfold_call.nan", .softmax = true, .part = right, .call = {.nan = ALLFOLD_NAN_OMIT}, .status = bad},
        {.text = "softmax takes y_type", .softmax = true, .part = right, .call = {.result_type = ALLFOLD_F32}, .status = bad},
        {.text = "not int32", .softmax = true, .part = {test.x, 3, ALLFOLD_INT32}, .status = bad},
        {.text = "y_type is that of the part", .softmax = true, .part = right, .status = ALLFOLD_OK},
        {.text = "which holds f32, and y_type is f64", .softmax = true, .part = {test.y, 3, ALLFOLD_F32}, .y_type = ALLFOLD_F64, .status = bad},
        {.text = "the reason of one rank's program", .fails = true, .status = ALLFOLD_NO_MEMORY},
        {.text = "no time for softmax", .fails = true, .softmax = true, .status = ALLFOLD_STOPPED},
        {.text = "nor for statistics", .fails = true, .capacity = 12, .status = bad},
        {.text = "at most 2^41 exponentials", .softmax = true, .part = {test.x, (UINT64_C(1) << 41) + 1, ALLFOLD_INT8},
         .call = {.logarithm = 1}, .y_type = ALLFOLD_F32, .status = ALLFOLD_UNSUPPORTED},
        {.text = "the array is NULL", .dot = true, .null_part = true, .second = right, .status = bad},
        {.text = "the array is NULL", .dot = true, .part = right, .null_y = true, .status = bad},
        {.text = "one element type, found f32 and f64", .dot = true, .part = right, .second = {test.x, COUNT / 2, ALLFOLD_F64}, .status = bad},
        {.text = "found 3 and 4", .dot = true, .part = {test.x, 3, ALLFOLD_F32}, .second = {test.x, 4, ALLFOLD_F32}, .status = bad},
        {.text = "not aligned", .dot = true, .part = right, .second = {odd, COUNT, ALLFOLD_F32}, .status = bad},
        {.text = "result is NULL", .dot = true, .part = right, .second = right, .null_result = true, .status = bad},
        {.text = "dot always propagates NaN", .dot = true, .part = right, .second = right, .call = {.nan = ALLFOLD_NAN_OMIT}, .status = bad},
        {.text = "an empty dot product", .dot = true, .part = right, .second = {NULL, 0, ALLFOLD_F32}, .status = ALLFOLD_OK},
        {.text = "the array is NULL", .compare = true, .null_part = true, .second = right, .status = bad},
        {.text = "not aligned", .compare = true, .part = right, .second = {odd, COUNT, ALLFOLD_F32}, .status = bad},
        {.text = "two of integers, found f32 and int32", .compare = true, .part = right, .second = {test.x, COUNT, ALLFOLD_INT32}, .status = bad},
        {.text = "found 3 in a and 4 in b", .compare = true, .part = {test.x, 3, ALLFOLD_F32}, .second = {test.x, 4, ALLFOLD_F32}, .status = bad},
        {.text = "expected numbers that are not negative", .compare = true, .part = right, .second = right, .atol = -1, .status = bad},
        {.text = "the comparison is NULL", .compare = true, .part = right, .second = right, .null_result = true, .status = bad},
        {.text = "expected sum, mean, variance or std, found max", .weighted = true, .part = right, .second = right, .fold = ALLFOLD_MAX, .status = bad},
        {.text = "expected f32 or f64, found int32", .weighted = true, .part = right, .second = {test.x, COUNT, ALLFOLD_INT32}, .fold = ALLFOLD_MEAN,
         .status = bad},
        {.text = "weight [1] is -1", .weighted = true, .part = right, .second = {negative, COUNT, ALLFOLD_F32}, .fold = ALLFOLD_MEAN, .status = bad},
        {.text = "expected ddof 0", .weighted = true, .part = right, .second = {negative + 2, COUNT, ALLFOLD_F32}, .fold = ALLFOLD_STD, .call = {.ddof = 1},
         .status = bad},
        {.text = "a CUDA stream", .part = right, .call = {.stream = test.x}, .status = bad},
    };
    const size_t count = sizeof wrongs / sizeof *wrongs - (test.backend == ALLFOLD_BACKEND_CPU ? 0 : 1);
    for (size_t i = 0; i < count; i++) {
        struct wrong w = wrongs[i];
        if (w.status == ALLFOLD_OK)
            w.part.count = 0;
        run_wrong(&w);
    }
    fail_with_own_message();
}

/* What a rank may do while the others do something else. */
enum activity {
    SUM, SUM_TO_F32, MEAN, MAX, MIN, MIN_OMIT, SUM_F64, SUM_EMPTY_F64, LOGSUMEXP, SOFTMAX, LOG_SOFTMAX, SOFTMAX_F16, SOFTMAX_F64
};

static allfold_status act(enum activity activity)
{
    static double wide[COUNT], wide_y[COUNT];
    static const allfold_fold folds[] = {
        [SUM] = ALLFOLD_SUM, [SUM_TO_F32] = ALLFOLD_SUM, [MEAN] = ALLFOLD_MEAN, [MAX] = ALLFOLD_MAX, [MIN] = ALLFOLD_MIN, [MIN_OMIT] = ALLFOLD_MIN,
        [SUM_F64] = ALLFOLD_SUM, [SUM_EMPTY_F64] = ALLFOLD_SUM, [LOGSUMEXP] = ALLFOLD_LOGSUMEXP};
    const allfold_array x = {test.x, COUNT, ALLFOLD_F32}, x_f64 = {wide, COUNT, ALLFOLD_F64};
    const allfold_array empty = {NULL, 0, ALLFOLD_F64};
    const allfold_call call = {.size = sizeof call, .nan = activity == MIN_OMIT ? ALLFOLD_NAN_OMIT : ALLFOLD_NAN_PROPAGATE,
                               .logarithm = activity == LOG_SOFTMAX,
                               .result_type = activity == SUM_TO_F32 ? ALLFOLD_F32 : ALLFOLD_TYPE_NONE};
    allfold_result result;
    if (activity < SOFTMAX)
        return allfold_reduce(test.ctx, folds[activity],
                              activity == SUM_F64 ? &x_f64 : activity == SUM_EMPTY_F64 ? &empty : &x, &call, &result);
    const allfold_type y_type = activity == SOFTMAX_F16   ? ALLFOLD_F16
                                : activity == SOFTMAX_F64 ? ALLFOLD_F64
                                                          : ALLFOLD_F32;
    return allfold_softmax(test.ctx, &x, wide_y, y_type, &call);
}

void test_disagreement(void)
{
    static const struct {
        enum activity one, others;
    } pairs[] = {{SUM, MAX}, {SUM, SUM_TO_F32}, {SUM, MEAN}, {MIN, MIN_OMIT}, {SUM, SUM_F64}, {SUM_EMPTY_F64, SUM}, {LOGSUMEXP, SOFTMAX},
                 {SOFTMAX, LOGSUMEXP}, {SOFTMAX, LOG_SOFTMAX}, {SOFTMAX_F16, SOFTMAX}, {SOFTMAX, SOFTMAX_F64},
                 {SOFTMAX, SUM}, {MEAN, SOFTMAX_F64}, {SOFTMAX_F64, LOGSUMEXP}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const allfold_status status = act(test.rank == test.failing ? pairs[i].one : pairs[i].others);
        must_fail("different calls", status, allfold_message(test.ctx),
                  &(struct due){ALLFOLD_BAD_ARGUMENT, "different calls", false});
        must_work("different calls");
    }
}
