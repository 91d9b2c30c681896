/* Folds one array, or two, at once: calls of allfold.h. */
#include "api.h"

/* Any of them, for results that have been looked at; context->error may hold what is wrong with them. */
static allfold_status reduce(allfold_context *context, const struct api_fold *given, allfold_results *results)
{
    struct error *const error = &context->error;
    struct fold_results found;
    struct api_job prepared;
    api_fold_prepare(given, &prepared, error);
    api_checked(context);
    if (core_reduce(context, &prepared.call, &prepared.job, &found, error) != ALLFOLD_OK)
        return error->status;
    api_results_take(&found, results);
    return ALLFOLD_OK;
}

static allfold_status reduce_to_one(allfold_context *context, const struct api_fold *given, allfold_result *result)
{
    allfold_results results = {.results = result, .capacity = 1};
    struct error *const error = api_enter(context);
    if (result == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the result is NULL");
    return reduce(context, given, &results);
}

allfold_status allfold_reduce(allfold_context *context, allfold_fold fold, const allfold_array *part,
                              const allfold_call *call, allfold_result *result)
{
    return reduce_to_one(context, &(struct api_fold){.fold = fold, .x = part, .call = call, .capacity = 1}, result);
}

allfold_status allfold_dot(allfold_context *context, const allfold_array *x, const allfold_array *y, const allfold_call *call,
                           allfold_result *result)
{
    return reduce_to_one(context, &(struct api_fold){.is_dot = true, .x = x, .y = y, .call = call}, result);
}

allfold_status allfold_reduce_all(allfold_context *context, allfold_fold fold, const allfold_array *part,
                                  const allfold_call *call, allfold_results *results)
{
    struct error *const error = api_enter(context);
    if (results == NULL || (results->results == NULL && results->capacity > 0))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the results are NULL");
    const size_t capacity = results != NULL ? results->capacity : SIZE_MAX;
    return reduce(context, &(struct api_fold){.fold = fold, .x = part, .call = call, .capacity = capacity}, results);
}
