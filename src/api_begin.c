/* Folds of allfold.h in two phases: begun, and ended later. */
#include "api.h"

#include <inttypes.h>

/* error: of this fold, which its end tells. */
static allfold_status begin(allfold_context *context, const struct api_fold *given, struct error *error, allfold_request *request)
{
    struct api_job prepared;
    struct error *const refused = api_enter(context);
    if (request == NULL)
        return error_set(refused, ALLFOLD_BAD_ARGUMENT, "the request is NULL");
    *request = 0;
    struct begun *const begun = begun_open(context);
    if (begun == NULL)
        return error_set(refused, ALLFOLD_BAD_ARGUMENT, "%d folds are begun and not ended: end one of them first", BEGUN_MOST);
    api_fold_prepare(given, &prepared, error);
    core_begin(context, &prepared.call, &prepared.job, begun, error);
    *request = begun->ticket;
    return ALLFOLD_OK;
}

allfold_status allfold_reduce_begin(allfold_context *context, allfold_fold fold, const allfold_array *part, const allfold_call *call,
                                    allfold_request *request)
{
    return begin(context, &(struct api_fold){.fold = fold, .x = part, .call = call, .capacity = SIZE_MAX}, &(struct error){0}, request);
}

allfold_status allfold_dot_begin(allfold_context *context, const allfold_array *x, const allfold_array *y, const allfold_call *call,
                                 allfold_request *request)
{
    return begin(context, &(struct api_fold){.is_dot = true, .x = x, .y = y, .call = call}, &(struct error){0}, request);
}

allfold_status allfold_fail_begin(allfold_context *context, allfold_status status, const char *text, allfold_request *request)
{
    struct error given = {0};
    api_take_failure(status, text, &given);
    return begin(context, &(struct api_fold){.fold = ALLFOLD_SUM}, &given, request);
}

allfold_status allfold_reduce_end(allfold_context *context, allfold_request request, allfold_results *results)
{
    struct error *const error = api_enter(context);
    struct fold_results found;
    struct begun *const begun = begun_find(context, request);
    if (begun == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "request %" PRIu64 " is not open: it was ended, or not begun on this context", request);
    else if (results == NULL || (results->results == NULL && results->capacity > 0))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the results are NULL");
    else if (fold_result_count(begun->call.fold) > results->capacity)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the fold has up to %zu results, found room for %zu", fold_result_count(begun->call.fold),
                  results->capacity);
    api_checked(context);
    if (core_end(context, begun, &found, error) != ALLFOLD_OK)
        return error->status;
    api_results_take(&found, results);
    return ALLFOLD_OK;
}
