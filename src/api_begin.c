/* Begins folds that are ended later, alone or several together: calls of allfold.h. */
#include "api.h"
#include "fold/rows.h"

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
    if (given->x != NULL && given->x->type == ALLFOLD_SOURCE)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "a source is read at once, so that there is nothing to begin: expected elements in memory, or the call that "
                  "folds at once");
    api_fold_prepare(context, given, &prepared, error);
    core_begin(context, &prepared.call, &prepared.job, begun, error);
    api_fold_close(&prepared);
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
    if (begun != NULL)
        core_delivered(context, begun);
    if (core_end(context, begun, &found, error) != ALLFOLD_OK)
        return error->status;
    api_results_take(&found, results);
    return ALLFOLD_OK;
}

/* Memory that the device can write. */
static void check_output(const allfold_context *context, const void *memory, struct error *error)
{
    enum place place = PLACE_DEVICE;
    if (memory != NULL && error->status == ALLFOLD_OK && context->device->backend->locate(context->device, memory, &place, error) == ALLFOLD_OK
        && place == PLACE_HOST && context->device->backend->own_memory)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the output is memory of the host: expected memory that %s can write", context->device->label);
}

static void take_outputs(const allfold_context *context, const struct begun *begun, const allfold_outputs *outputs, struct delivery *delivery,
                         struct error *error)
{
    const size_t most = fold_result_count(begun->call.fold);
    if (outputs == NULL || outputs->outputs == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the outputs are NULL");
    else if (outputs->count > most)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the fold has %zu results, found %zu outputs", most, outputs->count);
    for (size_t i = 0; error->status == ALLFOLD_OK && i < outputs->count; i++) {
        const allfold_output *const given = &outputs->outputs[i];
        check_output(context, given->values, error);
        check_output(context, given->indices, error);
        if (given->indices != NULL && !rows_indexed(begun->call.fold, i))
            error_set(error, ALLFOLD_BAD_ARGUMENT, "result %zu of the fold has no index: expected NULL", i);
        delivery->outputs[i] = (struct delivery_output){
            given->values, given->indices,
            (int)allfold_type_bytes(rows_type(begun->call.fold, i, begun->type, begun->call.result_type))};
    }
    delivery->count = error->status == ALLFOLD_OK ? (int)outputs->count : 0;
}

allfold_status allfold_reduce_deliver(allfold_context *context, allfold_request request, const allfold_outputs *outputs, void *stream)
{
    struct error *const error = api_enter(context);
    struct begun *begun = begun_find(context, request);
    struct delivery delivery = {.stream = stream};
    struct error refused = {0}, own = {0};
    if (begun == NULL || begun->delivered)
        error_set(&refused, ALLFOLD_BAD_ARGUMENT, "request %" PRIu64 " is not open, or was delivered before", request);
    else
        take_outputs(context, begun, outputs, &delivery, &refused);
    if (stream != NULL && !context->device->backend->own_memory)
        error_set(&refused, ALLFOLD_BAD_ARGUMENT, "a stream for the CPU backend: expected NULL");
    if (begun == NULL || begun->delivered) { /* the others' fold must fail, or they wait for this rank */
        struct api_job nothing;
        begun = begun_open(context);
        own = refused;
        if (begun == NULL) {
            *error = refused;
            return error->status;
        }
        api_fold_prepare(context, &(struct api_fold){.fold = ALLFOLD_SUM}, &nothing, &own);
        core_begin(context, &nothing.call, &nothing.job, begun, &own);
        core_deliver(context, begun, &delivery, error);
        core_delivered(context, begun);
        core_end(context, begun, &(struct fold_results){0}, error);
    } else {
        if (refused.status != ALLFOLD_OK && begun->error.status == ALLFOLD_OK)
            begun->error = refused;
        core_deliver(context, begun, &delivery, error);
    }
    if (refused.status != ALLFOLD_OK)
        *error = refused;
    return error->status;
}
