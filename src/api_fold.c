/* Makes a job of the pipeline from the arguments of a fold, of one array or of two, begun or at once. */
#include "api.h"

#include <inttypes.h>

allfold_fold api_check_fold(allfold_fold fold, const allfold_call *call, size_t capacity, struct error *error)
{
    if (fold >= ALLFOLD_FOLD_COUNT) {
        error_set(error, ALLFOLD_BAD_ARGUMENT, "fold %d does not exist", (int)fold);
        return ALLFOLD_SUM;
    }
    if (allfold_result_count(fold) > capacity)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s has up to %zu results, found room for %zu: call allfold_reduce_all with that "
                  "capacity", allfold_fold_name(fold), allfold_result_count(fold), capacity);
    api_check_call(allfold_fold_name(fold), fold_has_nan_choice(fold), call, error);
    if (call->ddof != 0 && !fold_has_variance(fold))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s has no variance: allfold_call.ddof is for stats, variance and std", allfold_fold_name(fold));
    return fold;
}

void api_check_own_results(const allfold_call *call, struct error *error)
{
    if (call->own_results != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "allfold_call.own_results is for folds along an axis");
}

/* What makes two arrays no pair. */
static void check_pair(const struct api_operand *x, const struct api_operand *y, struct error *error)
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

static void check_dot_call(const allfold_call *call, struct error *error)
{
    api_check_call("dot", false, call, error);
    if (call->ddof != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "dot has no variance: allfold_call.ddof is for stats, variance and std");
}

void api_fold_prepare(struct allfold_context *context, const struct api_fold *given, struct api_job *prepared, struct error *error)
{
    allfold_call call = ALLFOLD_CALL_INIT;
    allfold_fold fold = (allfold_fold)FOLD_DOT;
    struct api_operand *const x = &prepared->x, *const y = &prepared->y;
    api_operand_take(given->x, x, error);
    api_operand_take(given->is_dot ? given->y : given->x, y, error);
    if (given->is_dot) {
        api_operands_check(x, y, error);
        check_pair(x, y, error);
    }
    api_take_call(given->call, &call, error);
    if (given->is_dot)
        check_dot_call(&call, error);
    else
        fold = api_check_fold(given->fold, &call, given->capacity, error);
    api_check_own_results(&call, error);
    api_operand_open(context, given->is_dot ? API_WRITE : fold == ALLFOLD_SUM || fold == ALLFOLD_MEAN ? API_SUM : API_READ, x, error);
    prepared->call = api_operand_call(x, fold, &call);
    prepared->job = api_operand_job(x, call.stream);
    if (!given->is_dot)
        return;
    api_operand_open(context, API_WRITE, y, error);
    prepared->pair = api_operand_pair(x, y, call.stream);
    compare_open(context, &prepared->pair, false, &prepared->alike, error);
    prepared->job.source = prepared->alike.a;
    prepared->job.second = prepared->alike.b;
    prepared->job.range = prepared->alike.range;
    prepared->job.key = prepared->pair.key;
}

void api_fold_close(struct api_job *prepared)
{
    if (prepared->job.second != NULL) {
        compare_close(&prepared->pair, &prepared->alike);
        api_operand_close(&prepared->y);
    }
    api_operand_close(&prepared->x);
}

void api_results_take(const struct fold_results *found, allfold_results *results)
{
    for (int i = 0; i < found->field_count; i++)
        results->results[i] = (allfold_result){found->fields[i].name, found->fields[i].value, found->fields[i].index, found->count,
                                               found->level};
    results->count = (size_t)found->field_count;
}
