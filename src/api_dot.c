/* The dot product of allfold.h: two arrays of the caller's memory as sources. */
#include "api.h"

#include <inttypes.h>

/* What makes two arrays no pair. */
static void check_pair(const allfold_array *x, const allfold_array *y, struct error *error)
{
    if (error->status != ALLFOLD_OK)
        return;
    if (x->type != y->type)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the arrays of a dot product have one element type, found %s and %s: convert one of them",
                  allfold_type_name(x->type), allfold_type_name(y->type));
    else if (x->count != y->count)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the arrays of a dot product have as many elements on each rank, found %" PRIu64 " and %"
                  PRIu64, x->count, y->count);
}

allfold_status allfold_dot(allfold_context *context, const allfold_array *x, const allfold_array *y, const allfold_call *options,
                           allfold_result *result)
{
    struct error *const error = &context->error;
    struct fold_results found;
    allfold_call call = ALLFOLD_CALL_INIT;
    *error = (struct error){0};
    if (result == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the result is NULL");
    api_check_part(x, error);
    api_check_part(y, error);
    check_pair(x, y, error);
    api_take_call(options, &call, error);
    api_check_call("dot", false, &call, error);
    if (call.ddof != 0 || call.own_results != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "allfold_call.ddof and own_results are not for dot: expected 0");
    struct source first = api_part_source(x, error), second = api_part_source(y, error);
    const struct fold_call folding = {.fold = (allfold_fold)FOLD_DOT, .result_type = call.result_type};
    const struct job job = {.type = first.type,
                            .source = &first,
                            .second = &second,
                            .range = {0, error->status == ALLFOLD_OK ? x->count : 0},
                            .stream = call.stream};
    if (core_reduce(context, &folding, &job, &found, error) != ALLFOLD_OK)
        return error->status;
    *result = (allfold_result){found.fields[0].name, found.fields[0].value, found.fields[0].index, found.count, found.level};
    return ALLFOLD_OK;
}
