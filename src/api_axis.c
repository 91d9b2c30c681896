/* Folds, and takes softmax of, an array along an axis: calls of allfold.h. */
#include "api.h"
#include "core/view.h"

#include <inttypes.h>

/* The distance from the first element to behind the last, or a refusal. */
static uint64_t extent_of(const struct box *box, size_t element_bytes, struct error *error)
{
    uint64_t outer, axis, extent;
    if (box->outer == 0 || box->length == 0 || box->inner == 0)
        return 0;
    if (__builtin_mul_overflow(box->outer - 1, box->outer_stride, &outer) || __builtin_mul_overflow(box->length - 1, box->axis_stride, &axis)
        || __builtin_add_overflow(outer, axis, &extent) || __builtin_add_overflow(extent, box->inner, &extent)
        || extent > (uint64_t)PTRDIFF_MAX / element_bytes) {
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the view reaches further than any memory");
        return 0;
    }
    return extent;
}

static struct box box_of(const allfold_view *view, struct error *error)
{
    struct box box = {view->outer, view->length, view->inner, view->outer_stride, view->axis_stride};
    uint64_t rows;
    if (box.axis_stride == 0)
        box.axis_stride = box.inner > 0 ? box.inner : 1;
    if (box.outer_stride == 0 && __builtin_mul_overflow(box.length > 0 ? box.length : 1, box.axis_stride, &box.outer_stride))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the view reaches further than any memory");
    if (__builtin_mul_overflow(box.outer, box.inner, &rows))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "outer times inner is more than 2^64");
    return box;
}

/* Refuses a view that is not valid. The input then has no elements, for a pipeline that only agrees on the error. */
static struct axis_input take_view(const allfold_view *view, struct error *error)
{
    const struct axis_input nothing = {.type = ALLFOLD_F32, .box = {0, 0, 0, 1, 1}};
    if (view == NULL) {
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the view is NULL");
        return nothing;
    }
    const allfold_array part = {view->data, 0, view->type};
    api_check_part(&part, error);
    if ((unsigned)view->cut > ALLFOLD_CUT_INNER)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "cut %d does not exist", (int)view->cut);
    if (error->status != ALLFOLD_OK)
        return nothing;
    const struct axis_input input = {.x = view->data, .box = box_of(view, error), .type = view->type, .cut = view->cut};
    const allfold_array whole = {view->data, extent_of(&input.box, allfold_type_bytes(view->type), error), view->type};
    api_check_part(&whole, error);
    return error->status == ALLFOLD_OK ? input : nothing;
}

/* A number that differs where calls differ (FNV-1a). */
static uint64_t mix(uint64_t key, uint64_t number) { return (key ^ number) * UINT64_C(0x100000001b3); }

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

allfold_status allfold_reduce_axis(allfold_context *context, allfold_fold fold, const allfold_view *view, const allfold_call *options,
                                   const allfold_outputs *outputs)
{
    struct error *const error = api_enter(context);
    allfold_call call = ALLFOLD_CALL_INIT;
    void *taken[RESULT_ARRAYS_MAX] = {NULL};
    struct axis_input input = take_view(view, error);
    api_take_call(options, &call, error);
    fold = api_check_fold(fold, &call, SIZE_MAX, error);
    take_outputs(outputs, fold, taken, error);
    const struct fold_call reduce = {.fold = fold, .nan = call.nan, .result_type = call.result_type, .ddof = call.ddof};
    input.stream = call.stream;
    input.own_results = call.own_results != 0;
    input.call = mix(mix(mix(mix(mix(mix(1, fold), call.nan), call.result_type), call.ddof), input.own_results), input.type * 4 + input.cut);
    for (size_t k = 0; k < RESULT_ARRAYS_MAX; k++)
        input.outputs |= (uint64_t)(taken[k] != NULL) << k;
    api_checked(context);
    return core_reduce_axis(context, &reduce, &input, taken, error);
}

/* A dimension of a view, apart from the last: `count` runs of `inner` elements begin `stride` elements apart. */
struct steps {
    uint64_t count, stride;
};

/* Whether a run of the one dimension meets a run of the other, apart from the first of both. Runs of each are distinct by themselves.
   All distances are within the view's extent. */
static bool runs_meet(struct steps few, struct steps many, uint64_t inner)
{
    for (uint64_t a = 1; a < few.count; a++) {
        const uint64_t at = a * few.stride, below = at / many.stride, behind = at % many.stride;
        if (below >= many.count)
            return false; /* beyond the last run, as all further ones */
        if ((below > 0 && behind < inner) || (below + 1 < many.count && many.stride - behind < inner))
            return true;
    }
    return false;
}

static bool elements_meet(const struct box *box)
{
    const struct steps outer = {box->outer, box->outer_stride}, axis = {box->length, box->axis_stride};
    const uint64_t extent = (outer.count - 1) * outer.stride + (axis.count - 1) * axis.stride + box->inner;
    uint64_t elements;
    if ((outer.count > 1 && outer.stride < box->inner) || (axis.count > 1 && axis.stride < box->inner))
        return true;
    if (__builtin_mul_overflow(box->outer * box->inner, box->length, &elements) || elements > extent)
        return true; /* so the loop's length is at most the root of the extent */
    return outer.count < axis.count ? runs_meet(outer, axis, box->inner) : runs_meet(axis, outer, box->inner);
}

/* Refuses a view of which two elements are one: they cannot both be written. */
static void check_distinct(const struct box *box, struct error *error)
{
    if (box->outer > 0 && box->length > 0 && box->inner > 0 && elements_meet(box))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the view's elements overlap (outer stride %" PRIu64 ", axis stride %" PRIu64
                  "): softmax cannot write all of them", box->outer_stride, box->axis_stride);
}

allfold_status allfold_softmax_axis(allfold_context *context, const allfold_view *view, void *y, allfold_type y_type,
                                    const allfold_call *options)
{
    struct error *const error = api_enter(context);
    allfold_call call = ALLFOLD_CALL_INIT;
    struct axis_input input = take_view(view, error);
    check_distinct(&input.box, error);
    api_take_call(options, &call, error);
    if (y_type == ALLFOLD_TYPE_NONE && error->status == ALLFOLD_OK)
        y_type = view->type;
    const bool empty = input.box.outer == 0 || input.box.length == 0 || input.box.inner == 0;
    api_check_softmax(&(struct api_output){y, y_type, empty ? NULL : input.x, input.type}, &call, error);
    struct sink sink = api_memory_sink(y, error->status == ALLFOLD_OK ? y_type : ALLFOLD_F32);
    input.stream = call.stream;
    input.call = mix(mix(mix(2, y_type), call.logarithm != 0), input.type * 4 + input.cut);
    api_checked(context);
    return core_softmax_axis(context, call.logarithm != 0, &input, &sink, error);
}
