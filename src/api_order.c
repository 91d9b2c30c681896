/* Order statistics: calls of allfold.h. */
#include "api.h"
#include "core/order.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUANTILES_MOST = 1 << 16, TOP_MOST = 1 << 20, BINS_MOST = 1 << 20 };

static struct order_input open_input(const allfold_context *context, struct api_operand *operand, void *stream, allfold_nan nan, struct error *error)
{
    if (!context->device->backend->own_memory)
        context->device->backend->enter(NULL, stream, error); /* refuses a stream */
    api_operand_open(context, API_READ, operand, error);
    return (struct order_input){.source = operand->source, .type = operand->type, .range = operand->range, .has_part = operand->of == NULL,
                                .key = operand->key, .stream = stream, .nan = nan};
}

static void check_nan(allfold_nan nan, struct error *error)
{
    if ((unsigned)nan > ALLFOLD_NAN_ERROR)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "NaN policy %d does not exist", (int)nan);
}

static void check_quantiles(const allfold_quantiles *call, struct error *error)
{
    check_nan(call->nan, error);
    if ((unsigned)call->method > ALLFOLD_QUANTILE_MIDPOINT)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "quantile method %d does not exist", (int)call->method);
    if (call->count == 0 || call->count > QUANTILES_MOST || call->q == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "expected 1 to %d quantiles, found %zu%s", QUANTILES_MOST, call->count,
                  call->q == NULL ? ", and q is NULL" : "");
    for (size_t i = 0; error->status == ALLFOLD_OK && i < call->count; i++)
        if (!(call->q[i] >= 0 && call->q[i] <= 1))
            error_set(error, ALLFOLD_BAD_ARGUMENT, "q is %g: expected numbers from 0 to 1", call->q[i]);
}

allfold_status allfold_quantile(allfold_context *context, const allfold_array *part, const allfold_quantiles *quantiles, allfold_result *results)
{
    struct error *const error = api_enter(context);
    allfold_quantiles known = ALLFOLD_QUANTILES_INIT;
    struct api_operand operand;
    api_operand_take(part, &operand, error);
    api_take_order("allfold_quantiles", quantiles, &known, sizeof known, error);
    if (error->status == ALLFOLD_OK)
        check_quantiles(&known, error);
    if (results == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the results are NULL");
    const struct order_input input = open_input(context, &operand, known.stream, known.nan, error);
    api_checked(context);
    core_quantile(context, &input, &known, results, error);
    api_operand_close(&operand);
    return error->status;
}

allfold_status allfold_topk(allfold_context *context, const allfold_array *part, const allfold_top *top, void *values, int64_t *indices)
{
    struct error *const error = api_enter(context);
    allfold_top known = ALLFOLD_TOP_INIT;
    struct api_operand operand;
    api_operand_take(part, &operand, error);
    api_take_order("allfold_top", top, &known, sizeof known, error);
    check_nan(known.nan, error);
    if (known.k > TOP_MOST)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "k is %" PRIu64 ": expected at most %d, as every rank holds that many", known.k, TOP_MOST);
    const uint64_t k = error->status == ALLFOLD_OK ? known.k : 0;
    struct order_top *const found = malloc((k + 1) * sizeof *found);
    if (found == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " elements", k);
    const struct order_input input = open_input(context, &operand, known.stream, known.nan, error);
    api_checked(context);
    if (core_topk(context, &input, k, known.smallest != 0, found, error) == ALLFOLD_OK)
        for (uint64_t i = 0; i < k; i++) {
            const size_t bytes = allfold_type_bytes(input.type);
            if (values != NULL)
                memcpy((char *)values + i * bytes, &found[i].bits, bytes);
            if (indices != NULL)
                indices[i] = (int64_t)found[i].index;
        }
    api_operand_close(&operand);
    free(found);
    return error->status;
}

static void check_bins(const allfold_bins *call, struct error *error)
{
    if (call->count == 0 || call->count > BINS_MOST)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "expected 1 to %d bins, found %" PRIu64, BINS_MOST, call->count);
    if (call->edges != NULL && call->has_range)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "expected edges or a range, found both");
    for (uint64_t i = 0; error->status == ALLFOLD_OK && call->edges != NULL && i <= call->count; i++)
        if (isnan(call->edges[i]) || (i > 0 && call->edges[i] < call->edges[i - 1]))
            error_set(error, ALLFOLD_BAD_ARGUMENT, "edge %" PRIu64 " is %g: expected numbers of which none is below the one before", i, call->edges[i]);
    if (call->has_range && !(isfinite(call->low) && isfinite(call->high) && call->low <= call->high))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the range is %g to %g: expected finite numbers, the lesser one first", call->low, call->high);
}

allfold_status allfold_histogram(allfold_context *context, const allfold_array *part, const allfold_bins *bins, int64_t *counts, double *edges,
                                 allfold_outside *outside)
{
    struct error *const error = api_enter(context);
    allfold_bins known = ALLFOLD_BINS_INIT;
    struct api_operand operand;
    allfold_outside beside;
    api_operand_take(part, &operand, error);
    api_take_order("allfold_bins", bins, &known, sizeof known, error);
    if (error->status == ALLFOLD_OK)
        check_bins(&known, error);
    if (counts == NULL)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "counts is NULL");
    if (error->status != ALLFOLD_OK)
        known = (allfold_bins){.count = 1};
    const struct order_input input = open_input(context, &operand, known.stream, ALLFOLD_NAN_PROPAGATE, error);
    api_checked(context);
    core_histogram(context, &input, &known, edges, counts, &beside, error);
    if (error->status == ALLFOLD_OK && outside != NULL)
        *outside = beside;
    api_operand_close(&operand);
    return error->status;
}
