/* Log-probabilities along an axis, and their gradient: calls of allfold.h. */
#include "api.h"

/* What both calls take besides. */
struct given {
    const int64_t *targets, *ignore_index;
    const allfold_call *call;
};

/* A view with targets. */
static struct axis_input take_input(const allfold_view *view, const struct given *given, allfold_call *call, struct error *error)
{
    struct api_view prepared;
    api_view_prepare(view, &prepared, error);
    api_take_call(given->call, call, error);
    struct axis_input input = prepared.input;
    if (error->status == ALLFOLD_OK && type_kind(input.type) != 'f')
        error_set(error, ALLFOLD_BAD_ARGUMENT, "logits are f16, bf16, f32 or f64, not %s", allfold_type_name(input.type));
    if ((uintptr_t)given->targets % sizeof *given->targets != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "targets are not aligned to 8 bytes");
    if (call->nan != ALLFOLD_NAN_PROPAGATE || call->logarithm != 0 || call->ddof != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "allfold_call.nan, logarithm and ddof are for other calls: expected 0");
    input.targets = (struct row_targets){.of = {.memory = given->targets}, .ignore = given->ignore_index != NULL ? *given->ignore_index : -100};
    input.stream = call->stream;
    input.call = api_mix(api_mix(api_mix(3, (uint64_t)input.targets.ignore), call->own_results != 0), input.type * 4 + input.cut);
    return input;
}

allfold_status allfold_log_probs(allfold_context *context, const allfold_view *view, const int64_t *targets, const int64_t *ignore_index,
                                 const allfold_call *options, const allfold_log_probs_output *output)
{
    struct error *const error = api_enter(context);
    const struct given given = {targets, ignore_index, options};
    allfold_call call = ALLFOLD_CALL_INIT;
    void *taken[RESULT_ARRAYS_MAX] = {NULL};
    struct axis_input input = take_input(view, &given, &call, error);
    const struct fold_call folding = {.fold = (allfold_fold)FOLD_LOG_PROBS};
    if (call.result_type != ALLFOLD_TYPE_NONE && call.result_type != ALLFOLD_F64)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "log-probabilities are f64: expected no other allfold_call.result_type");
    if (output == NULL) {
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the output is NULL");
    } else {
        void *const arrays[] = {output->log_prob, output->logsumexp, output->entropy, output->argmax};
        for (size_t i = 0; i < 4; i++)
            taken[2 * i + (i == 3)] = arrays[i];
        if (targets == NULL && output->log_prob != NULL && input.box.outer * input.box.inner > 0)
            error_set(error, ALLFOLD_BAD_ARGUMENT, "targets are NULL: log_prob needs one of each row");
    }
    input.own_results = call.own_results != 0;
    for (size_t k = 0; k < RESULT_ARRAYS_MAX; k++)
        input.outputs |= (uint64_t)(taken[k] != NULL) << k;
    api_checked(context);
    return core_reduce_axis(context, &folding, &input, taken, error);
}

allfold_status allfold_log_probs_gradient(allfold_context *context, const allfold_view *view, const int64_t *targets, const int64_t *ignore_index,
                                          const double *logsumexp, const double *scale, void *y, allfold_type y_type, const allfold_call *options)
{
    struct error *const error = api_enter(context);
    const struct given given = {targets, ignore_index, options};
    allfold_call call = ALLFOLD_CALL_INIT;
    struct axis_input input = take_input(view, &given, &call, error);
    const bool empty = input.box.outer == 0 || input.box.length == 0 || input.box.inner == 0;
    api_view_check_distinct(&input, error);
    if (y_type == ALLFOLD_TYPE_NONE && error->status == ALLFOLD_OK)
        y_type = input.type;
    api_check_softmax(&(struct api_output){y, y_type, empty ? NULL : input.x, input.type}, &call, error);
    if (!empty && (logsumexp == NULL || (uintptr_t)logsumexp % sizeof *logsumexp != 0 || (uintptr_t)scale % sizeof *scale != 0))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "logsumexp is NULL, or it or scale is not aligned to 8 bytes");
    struct memory_sink sink = core_part_sink(y, error->status == ALLFOLD_OK ? y_type : ALLFOLD_F32);
    input.call = api_mix(input.call, 1 + (uint64_t)y_type);
    api_checked(context);
    return core_log_probs_gradient(context, &input, &(struct gradient_input){logsumexp, scale, &sink.sink}, error);
}
