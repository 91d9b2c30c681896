/* Folds one array, two, or many, at once: calls of allfold.h. */
#include "api.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Any of them, for results that have been looked at; context->error may hold what is wrong with them. */
static allfold_status reduce(allfold_context *context, const struct api_fold *given, allfold_results *results)
{
    struct error *const error = &context->error;
    struct fold_results found;
    struct api_job prepared;
    api_fold_prepare(context, given, &prepared, error);
    api_checked(context);
    if (core_reduce(context, &prepared.call, &prepared.job, &found, error) == ALLFOLD_OK)
        api_results_take(&found, results);
    api_fold_close(&prepared);
    return error->status;
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

/* Refuses the arrays that are not valid, and those that have no total. */
static void check_arrays(const allfold_array *arrays, size_t count, bool total, bool *sources, struct error *error)
{
    allfold_type first = ALLFOLD_TYPE_NONE;
    *sources = false;
    if (count > 0 && arrays == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the arrays are NULL");
    else if (count > INT32_MAX)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "expected at most %d arrays, found %zu", INT32_MAX, count);
    else if (count == 0 && total)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "a total of no arrays has no element type: expected at least one array, which may be empty");
    for (size_t i = 0; i < count && error->status == ALLFOLD_OK; i++) {
        struct error own = {0};
        struct api_operand operand;
        api_operand_take(&arrays[i], &operand, &own);
        *sources = *sources || operand.of != NULL;
        first = i == 0 ? operand.type : first;
        if (total && own.status == ALLFOLD_OK && operand.type != first)
            error_set(&own, ALLFOLD_BAD_ARGUMENT, "expected %s, the type of array 0, for a total, found %s", allfold_type_name(first),
                      allfold_type_name(operand.type));
        error_within(error, &own, "array %zu of %zu", i, count);
    }
}

/* ---- several arrays, of which some are sources: one after the other */

/* Adds an array to the total. Every rank holds the same. Collective. */
static allfold_status add_to_total(allfold_context *context, const struct api_fold *given, struct total *total)
{
    struct error *const error = &context->error;
    struct api_job prepared;
    struct total next;
    struct error own = {0};
    api_fold_prepare(context, given, &prepared, error);
    prepared.job.total = &next;
    if (core_reduce(context, &prepared.call, &prepared.job, NULL, error) == ALLFOLD_OK) {
        next.length = prepared.x.of != NULL ? prepared.x.count : next.count;
        if (total_append(total, &next, &own) != ALLFOLD_OK)
            error->shared = error_set(error, ALLFOLD_BAD_ARGUMENT, "expected arrays of one type for a total, at level fast all packed or none")
                            != ALLFOLD_OK;
    }
    api_fold_close(&prepared);
    return error->status;
}

static allfold_status reduce_one_by_one(allfold_context *context, allfold_fold fold, const allfold_array *arrays, size_t count,
                                        const allfold_call *options, allfold_result *results)
{
    struct error *const error = &context->error;
    const bool joined = options->total != 0;
    allfold_call call = *options;
    const struct fold_call finishing = {.nan = options->nan, .result_type = options->result_type, .ddof = options->ddof};
    struct total total = {.type = ALLFOLD_TYPE_NONE};
    allfold_result *const found = calloc(count, sizeof *found);
    call.total = 0;
    if (found == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %zu results", count);
    comm_agree(&context->comm, error);
    for (size_t i = 0; i < count && error->status == ALLFOLD_OK; i++) {
        const struct api_fold given = {.fold = fold, .x = &arrays[i], .call = &call, .capacity = 1};
        allfold_results one = {.results = &found[i], .capacity = 1};
        if ((joined ? add_to_total(context, &given, &total) : reduce(context, &given, &one)) != ALLFOLD_OK) {
            const struct error own = *error;
            *error = (struct error){.shared = true};
            error_within(error, &own, "array %zu of %zu", i, count);
        }
    }
    struct fold_results all;
    allfold_results one = {.results = results, .capacity = 1};
    if (error->status == ALLFOLD_OK && !joined)
        memcpy(results, found, count * sizeof *found);
    else if (error->status == ALLFOLD_OK && total_finish(&total, &finishing, &all, error) == ALLFOLD_OK)
        api_results_take(&all, &one);
    free(found);
    return error->status;
}

allfold_status allfold_reduce_many(allfold_context *context, allfold_fold fold, const allfold_array *arrays, size_t count,
                                   const allfold_call *options, allfold_result *results)
{
    struct error *const error = api_enter(context);
    allfold_call call = ALLFOLD_CALL_INIT;
    bool sources;
    api_take_call_of_many(options, &call, error);
    if (results == NULL && count > 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the results are NULL");
    if (fold < ALLFOLD_FOLD_COUNT && allfold_result_count(fold) > 1)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s has several results: expected a fold with one, or allfold_reduce_all for each array",
                  allfold_fold_name(fold));
    check_arrays(arrays, count, call.total != 0, &sources, error);
    fold = api_check_fold(fold, &call, SIZE_MAX, error);
    api_check_own_results(&call, error);
    if (sources)
        return reduce_one_by_one(context, fold, arrays, count, &call, results);
    const struct fold_call folding = {.fold = fold, .nan = call.nan, .result_type = call.result_type, .ddof = call.ddof};
    const struct many_job job = {arrays, count, call.stream, call.total != 0, api_part_source, results};
    api_checked(context);
    return core_reduce_many(context, &folding, &job, error);
}
