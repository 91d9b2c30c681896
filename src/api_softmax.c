/* Takes softmax of the caller's memory, into the caller's memory: a call of allfold.h. */
#include "api.h"

/* Elements that are written over before they are read, or that cannot be written. */
static void check_output(const struct api_output *output, struct error *error)
{
    if (output->x == NULL || error->status != ALLFOLD_OK)
        return;
    if (output->y == output->x && output->y_type != output->x_type)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the output is the array itself, which holds %s, and y_type is %s: expected one type, or "
                  "another array", allfold_type_name(output->x_type), allfold_type_name(output->y_type));
    else if (output->y == NULL || (uintptr_t)output->y % allfold_type_bytes(output->y_type) != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the output is NULL or not aligned to its element size");
}

void api_check_softmax(const struct api_output *output, const allfold_call *call, struct error *error)
{
    const allfold_type y_type = output->y_type;
    if (!type_exists(y_type) || type_kind(y_type) != 'f')
        error_set(error, ALLFOLD_BAD_ARGUMENT, "softmax gives f16, bf16, f32 or f64, not %s: expected one of these as y_type",
                  allfold_type_name(y_type));
    if (call->nan != ALLFOLD_NAN_PROPAGATE)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "softmax always propagates NaN: expected no allfold_call.nan");
    if (call->result_type != ALLFOLD_TYPE_NONE)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "allfold_call.result_type is for folds: softmax takes y_type");
    if (call->ddof != 0 || call->own_results != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "allfold_call.ddof and own_results are for folds: expected 0");
    check_output(output, error);
}

allfold_status allfold_softmax(allfold_context *context, const allfold_array *part, void *y, allfold_type y_type,
                               const allfold_call *options)
{
    struct error *const error = api_enter(context);
    allfold_call call = ALLFOLD_CALL_INIT;
    struct api_operand x;
    api_operand_take(part, &x, error);
    api_take_call(options, &call, error);
    if (y_type == ALLFOLD_TYPE_NONE && error->status == ALLFOLD_OK)
        y_type = x.type;
    struct api_output output = {.y = y, .y_type = y_type};
    if (error->status == ALLFOLD_OK && x.count > 0) {
        output.x = part->data;
        output.x_type = x.type;
    }
    api_check_softmax(&output, &call, error);
    if (x.of != NULL)
        api_refuse_device(context, y, ALLFOLD_UNSUPPORTED, "the output of a source", error);
    api_operand_open(context, API_WRITE, &x, error);
    struct memory_sink sink = x.of == NULL ? core_part_sink(y, y_type)
                                           : core_memory_sink(context, error->status == ALLFOLD_OK ? y : NULL, x.count, y_type);
    const struct job job = api_operand_job(&x, call.stream);
    api_checked(context);
    core_softmax(context, call.logarithm != 0, &job, &sink.sink, error);
    if (x.of != NULL && error->status == ALLFOLD_OK)
        core_unite(context, &sink, error);
    api_operand_close(&x);
    return error->status;
}
