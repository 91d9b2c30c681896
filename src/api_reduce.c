/* The folds of allfold.h: the caller's memory as a source. */
#include "api.h"

allfold_fold api_check_fold(allfold_fold fold, const allfold_call *call, size_t capacity, struct error *error)
{
    if (fold >= ALLFOLD_FOLD_COUNT) {
        error_set(error, ALLFOLD_BAD_ARGUMENT, "fold %d does not exist", (int)fold);
        return ALLFOLD_SUM;
    }
    const char *const name = allfold_fold_name(fold);
    if (allfold_result_count(fold) > capacity)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s has up to %zu results, found room for %zu: call allfold_reduce_all with that "
                  "capacity", name, allfold_result_count(fold), capacity);
    api_check_call(name, fold_has_nan_choice(fold), call, error);
    if (call->ddof != 0 && fold != ALLFOLD_STATS)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s has no variance: allfold_call.ddof is for stats", name);
    return fold;
}

/* allfold_reduce_all, for results that have been looked at; error may hold what is wrong with them. */
static allfold_status reduce(allfold_context *context, allfold_fold fold, const allfold_array *part, const allfold_call *options,
                             allfold_results *results)
{
    struct error *const error = &context->error;
    struct fold_results found;
    allfold_call call = ALLFOLD_CALL_INIT;
    api_check_part(part, error);
    api_take_call(options, &call, error);
    fold = api_check_fold(fold, &call, results != NULL ? results->capacity : SIZE_MAX, error);
    if (call.own_results != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "allfold_call.own_results is for folds along an axis");
    struct source source = api_part_source(part, error);
    const struct fold_call folding = {.fold = fold, .nan = call.nan, .result_type = call.result_type, .ddof = call.ddof};
    const struct job job = {.type = source.type,
                            .source = &source,
                            .range = {0, error->status == ALLFOLD_OK ? part->count : 0},
                            .stream = call.stream};
    if (core_reduce(context, &folding, &job, &found, error) != ALLFOLD_OK)
        return error->status;
    for (int i = 0; i < found.field_count; i++)
        results->results[i] = (allfold_result){found.fields[i].name, found.fields[i].value, found.fields[i].index, found.count,
                                               found.level};
    results->count = (size_t)found.field_count;
    return ALLFOLD_OK;
}

allfold_status allfold_reduce(allfold_context *context, allfold_fold fold, const allfold_array *part,
                              const allfold_call *call, allfold_result *result)
{
    allfold_results results = {.results = result, .capacity = 1};
    context->error = (struct error){0};
    if (result == NULL)
        error_set(&context->error, ALLFOLD_BAD_ARGUMENT, "the result is NULL");
    return reduce(context, fold, part, call, &results);
}

allfold_status allfold_reduce_all(allfold_context *context, allfold_fold fold, const allfold_array *part,
                                  const allfold_call *call, allfold_results *results)
{
    context->error = (struct error){0};
    if (results == NULL || (results->results == NULL && results->capacity > 0))
        error_set(&context->error, ALLFOLD_BAD_ARGUMENT, "the results are NULL");
    return reduce(context, fold, part, call, results);
}
