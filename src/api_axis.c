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

/* The array that a view's source is, opened. Its results, and softmax, go to host memory. */
static struct axis_array open_source(allfold_context *context, enum api_use use, struct api_view *prepared, struct error *error)
{
    struct api_operand *const operand = &prepared->operand;
    api_operand_open(context, use, operand, error);
    struct axis_array array = axis_array_of(operand->info != NULL ? operand->info : &operand->of->info, prepared->input.shape.folded);
    array.source = operand->source;
    array.weights = prepared->input.weights;
    return array;
}

static allfold_status reduce_source(allfold_context *context, allfold_fold fold, const allfold_call *call, struct api_view *prepared,
                                    void *const taken[RESULT_ARRAYS_MAX], uint64_t number)
{
    struct error *const error = &context->error;
    if (call->own_results != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "own_results: results of a source are those of all ranks, on every rank: expected 0");
    for (size_t k = 0; k < RESULT_ARRAYS_MAX; k++)
        api_refuse_device(context, taken[k], ALLFOLD_UNSUPPORTED, "results of a source", error);
    struct axis_array array = open_source(context, fold == ALLFOLD_SUM || fold == ALLFOLD_MEAN ? API_SUM : API_READ, prepared, error);
    const struct fold_call folding = api_operand_call(&prepared->operand, fold, call);
    api_checked(context);
    core_reduce_source(context, &folding, &array, number ^ prepared->operand.of->key, taken, error);
    api_operand_close(&prepared->operand);
    return error->status;
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
    if (prepared->operand.of != NULL) {
        reduce_source(context, fold, &call, prepared, taken, api_mix(api_mix(input.call, input.outputs), input.shape.folded));
    } else {
        api_checked(context);
        core_reduce_axis(context, &folding, &input, taken, error);
    }
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

static allfold_status softmax_source(allfold_context *context, const allfold_call *call, struct api_view *prepared, void *y, allfold_type y_type,
                                     uint64_t number)
{
    struct error *const error = &context->error;
    api_refuse_device(context, y, ALLFOLD_UNSUPPORTED, "the output of a source", error);
    struct axis_array array = open_source(context, API_WRITE, prepared, error);
    struct memory_sink whole = core_memory_sink(context, error->status == ALLFOLD_OK ? y : NULL, prepared->operand.count, y_type);
    api_checked(context);
    if (comm_agree_call(&context->comm, number ^ prepared->operand.of->key, error) == ALLFOLD_OK
        && core_softmax_stream(context, call->logarithm != 0, &array, &whole.sink, error) == ALLFOLD_OK)
        core_unite(context, &whole, error);
    api_operand_close(&prepared->operand);
    return error->status;
}

static allfold_status softmax(allfold_context *context, struct api_view *prepared, void *y, allfold_type y_type, const allfold_call *options)
{
    struct error *const error = &context->error;
    struct axis_input input = prepared->input;
    allfold_call call = ALLFOLD_CALL_INIT;
    if (input.weights != NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "weights: softmax has none");
    input.weights = NULL;
    if (prepared->operand.of == NULL)
        api_view_check_distinct(&input, error);
    api_take_call(options, &call, error);
    if (y_type == ALLFOLD_TYPE_NONE && error->status == ALLFOLD_OK)
        y_type = input.type;
    const bool empty = input.box.outer == 0 || input.box.length == 0 || input.box.inner == 0;
    const void *const elements = prepared->operand.of != NULL ? prepared->operand.count > 0 ? prepared->operand.of : NULL : empty ? NULL : input.x;
    api_check_softmax(&(struct api_output){y, y_type, elements, input.type}, &call, error);
    struct memory_sink sink = core_part_sink(y, error->status == ALLFOLD_OK ? y_type : ALLFOLD_F32);
    input.stream = call.stream;
    input.call = api_mix(api_mix(api_mix(2, y_type), call.logarithm != 0), input.type * 4 + input.cut);
    if (prepared->operand.of != NULL) {
        softmax_source(context, &call, prepared, y, y_type, api_mix(input.call, input.shape.folded));
    } else {
        api_checked(context);
        core_softmax_axis(context, call.logarithm != 0, &input, &sink.sink, error);
    }
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
