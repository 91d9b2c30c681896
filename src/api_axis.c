/* Folds, and takes softmax of, an array along an axis, or several: calls of allfold.h. What they take: api_view.c. */
#include "api.h"

/* The arrays of results: taken[2 i] are values of result i, taken[2 i + 1] its indices. */
static void take_outputs(const allfold_outputs *outputs, allfold_fold fold, void *taken[RESULT_ARRAYS_MAX], struct error *error)
{
    if (outputs == NULL || (outputs->outputs == NULL && outputs->count > 0)) {
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the outputs are NULL");
        return;
    }
    if (outputs->count > allfold_result_count(fold)) {
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s has %zu results, found %zu outputs", allfold_fold_name(fold), allfold_result_count(fold),
                  outputs->count);
        return;
    }
    for (size_t i = 0; i < outputs->count; i++) {
        const char *const name = allfold_result_name(fold, i);
        taken[2 * i] = outputs->outputs[i].values;
        taken[2 * i + 1] = outputs->outputs[i].indices;
        if (taken[2 * i + 1] != NULL && !rows_indexed(fold, i))
            error_set(error, ALLFOLD_BAD_ARGUMENT, "result %s of %s has no indices: expected NULL", name, allfold_fold_name(fold));
    }
}

const char *allfold_result_name(allfold_fold fold, size_t i)
{
    return i < allfold_result_count(fold) ? fold_result_name(fold, i) : NULL;
}

allfold_type allfold_result_type(allfold_fold fold, size_t i, allfold_type type, allfold_type result_type)
{
    const bool known = result_type == ALLFOLD_TYPE_NONE || (type_exists(result_type) && type_kind(result_type) == 'f');
    return known && i < allfold_result_count(fold) && type_exists(type) ? rows_type(fold, i, type, result_type) : ALLFOLD_TYPE_NONE;
}

static allfold_status reduce(allfold_context *context, allfold_fold fold, struct api_view *prepared, const allfold_call *options,
                             const allfold_outputs *outputs)
{
    struct axis_input input = prepared->input;
    struct error *const error = &context->error;
    allfold_call call = ALLFOLD_CALL_INIT;
    void *taken[RESULT_ARRAYS_MAX] = {NULL};
    api_take_call(options, &call, error);
    fold = api_check_fold(fold, &call, SIZE_MAX, error);
    take_outputs(outputs, fold, taken, error);
    fold = api_weights_fold(prepared, fold, &call, error);
    const struct fold_call folding = {.fold = fold, .nan = call.nan, .result_type = call.result_type, .ddof = call.ddof};
    input.stream = call.stream;
    input.own_results = call.own_results != 0;
    input.call = api_mix(api_mix(api_mix(api_mix(api_mix(api_mix(1, fold), call.nan), call.result_type), call.ddof), input.own_results), input.type * 4 + input.cut);
    for (size_t k = 0; k < RESULT_ARRAYS_MAX; k++)
        input.outputs |= (uint64_t)(taken[k] != NULL) << k;
    api_checked(context);
    core_reduce_axis(context, &folding, &input, taken, error);
    api_view_release(prepared);
    return error->status;
}

allfold_status allfold_reduce_axis(allfold_context *context, allfold_fold fold, const allfold_view *view, const allfold_call *call,
                                   const allfold_outputs *outputs)
{
    struct api_view prepared;
    api_view_prepare(view, &prepared, api_enter(context));
    return reduce(context, fold, &prepared, call, outputs);
}

allfold_status allfold_reduce_nd(allfold_context *context, allfold_fold fold, const allfold_view_nd *view, const allfold_call *call,
                                 const allfold_outputs *outputs)
{
    struct api_view prepared;
    api_view_prepare_nd(context, view, &prepared, api_enter(context));
    return reduce(context, fold, &prepared, call, outputs);
}

static allfold_status softmax(allfold_context *context, struct api_view *prepared, void *y, allfold_type y_type, const allfold_call *options)
{
    struct error *const error = &context->error;
    struct axis_input input = prepared->input;
    allfold_call call = ALLFOLD_CALL_INIT;
    if (input.weights != NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "weights: softmax has none");
    input.weights = NULL;
    api_view_check_distinct(&input, error);
    api_take_call(options, &call, error);
    if (y_type == ALLFOLD_TYPE_NONE && error->status == ALLFOLD_OK)
        y_type = input.type;
    const bool empty = input.box.outer == 0 || input.box.length == 0 || input.box.inner == 0;
    api_check_softmax(&(struct api_output){y, y_type, empty ? NULL : input.x, input.type}, &call, error);
    struct sink sink = api_memory_sink(y, error->status == ALLFOLD_OK ? y_type : ALLFOLD_F32);
    input.stream = call.stream;
    input.call = api_mix(api_mix(api_mix(2, y_type), call.logarithm != 0), input.type * 4 + input.cut);
    api_checked(context);
    core_softmax_axis(context, call.logarithm != 0, &input, &sink, error);
    api_view_release(prepared);
    return error->status;
}

allfold_status allfold_softmax_axis(allfold_context *context, const allfold_view *view, void *y, allfold_type y_type, const allfold_call *call)
{
    struct api_view prepared;
    api_view_prepare(view, &prepared, api_enter(context));
    return softmax(context, &prepared, y, y_type, call);
}

allfold_status allfold_softmax_nd(allfold_context *context, const allfold_view_nd *view, void *y, allfold_type y_type, const allfold_call *call)
{
    struct api_view prepared;
    api_view_prepare_nd(context, view, &prepared, api_enter(context));
    return softmax(context, &prepared, y, y_type, call);
}
