/* Weights of a view (allfold_view_nd): taken as f64, each once, and checked. */
#include "api.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Weights that differ, dense: their extents, of dimensions in which they repeat 1, and what the caller has. */
struct taking {
    const allfold_view_nd *view;
    uint64_t extents[STRIDED_DIMENSIONS_MAX], count;
    int64_t strides[STRIDED_DIMENSIONS_MAX], dense[STRIDED_DIMENSIONS_MAX];
};

static struct taking taking_of(const allfold_view_nd *view, struct error *error)
{
    struct taking t = {.view = view, .count = 1};
    uint64_t below = 1, reach = 0;
    bool beyond = false, empty = false;
    for (int d = view->rank; d-- > 0; below *= view->shape[d]) {
        t.strides[d] = view->weights_strides != NULL ? view->weights_strides[d] : (int64_t)below;
        t.extents[d] = t.strides[d] != 0 ? view->shape[d] : u64_min(view->shape[d], 1); /* of no elements none are read */
        t.dense[d] = t.extents[d] > 1 ? (int64_t)t.count : 0;
        uint64_t distance = t.strides[d] < 0 ? -(uint64_t)t.strides[d] : (uint64_t)t.strides[d];
        empty = empty || t.extents[d] == 0;
        beyond = __builtin_mul_overflow(t.count, t.extents[d], &t.count) || beyond;
        beyond = __builtin_mul_overflow(distance, t.extents[d] - (t.extents[d] > 0), &distance) || beyond;
        beyond = __builtin_add_overflow(reach, distance, &reach) || beyond;
    }
    if (!empty && (beyond || (reach > t.count ? reach : t.count) > PTRDIFF_MAX / sizeof(double) - 1))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the weights reach further than any memory");
    return t;
}

/* The caller's place of weight i. */
static int64_t place_of(const struct taking *t, uint64_t i)
{
    int64_t place = 0;
    for (int d = t->view->rank; d-- > 0; i /= t->extents[d])
        place += (int64_t)(i % t->extents[d]) * t->strides[d];
    return place;
}

static void take_values(const struct taking *t, double *values)
{
    const bool wide = t->view->weights_type == ALLFOLD_F64;
    for (uint64_t i = 0; i < t->count; i++) {
        const int64_t place = place_of(t, i);
        values[i] = wide ? ((const double *)t->view->weights)[place] : (double)((const float *)t->view->weights)[place];
    }
}

static allfold_status check(const allfold_context *context, const allfold_view_nd *view, struct error *error)
{
    if (view->weights_type != ALLFOLD_F32 && view->weights_type != ALLFOLD_F64)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "weights_type: expected f32 or f64, found %s", allfold_type_name(view->weights_type));
    api_refuse_device(context, view->weights, ALLFOLD_BAD_ARGUMENT, "weights", error);
    return error->status;
}

void api_weights_take(const allfold_context *context, const allfold_view_nd *view, const struct dimension *dimensions, struct api_view *prepared,
                      struct error *error)
{
    struct weights *const weights = &prepared->weights;
    weights->layout.count = 0;
    prepared->input.weights = weights;
    if (error->status != ALLFOLD_OK || check(context, view, error) != ALLFOLD_OK || weights_check_type(view->type, error) != ALLFOLD_OK)
        return;
    const struct taking t = taking_of(view, error);
    double *const values = error->status == ALLFOLD_OK ? malloc((t.count + 1) * sizeof *values) : NULL;
    if (values == NULL) {
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " weights", t.count);
        return;
    }
    take_values(&t, values);
    weights->values = values;
    weights->strides = prepared->weights_strides;
    for (int d = 0; d < view->rank; d++) {
        prepared->weights_extents[d] = t.extents[d];
        prepared->weights_strides[d] = t.dense[d];
        if (dimensions != NULL)
            layout_add(&weights->layout, (struct dimension){view->shape[d], t.dense[d], dimensions[d].of});
    }
}

/* Where weight i is: "[3, :]". */
static void name_place(const struct api_view *prepared, uint64_t i, char *text, size_t bytes)
{
    const uint32_t rank = prepared->input.shape.dimensions;
    uint64_t below = 1;
    size_t used = 0;
    for (uint32_t d = 0; d < rank; d++)
        below *= prepared->weights_extents[d];
    for (uint32_t d = 0; d < rank && used < bytes; d++) {
        const uint64_t extent = prepared->weights_extents[d];
        below /= extent;
        used += (size_t)(extent > 1 ? snprintf(text + used, bytes - used, "%s%" PRIu64, d > 0 ? ", " : "", i / below % extent)
                                    : snprintf(text + used, bytes - used, "%s:", d > 0 ? ", " : ""));
    }
}

static void check_values(const struct api_view *prepared, allfold_fold fold, struct error *error)
{
    const double *const values = prepared->weights.values;
    char place[200];
    uint64_t count = 1;
    for (uint32_t d = 0; d < prepared->input.shape.dimensions; d++)
        count *= prepared->weights_extents[d];
    const uint64_t refused = weights_refused(fold, values, count);
    if (refused == count)
        return;
    name_place(prepared, refused, place, sizeof place);
    error_set(error, ALLFOLD_BAD_ARGUMENT, "weights: weight [%s] is %.17g: " WEIGHTS_EXPECTED, place, values[refused]);
}

allfold_fold api_weights_fold(const struct api_view *prepared, allfold_fold fold, const allfold_call *call, struct error *error)
{
    const allfold_fold weighted = prepared->input.weights != NULL ? weights_fold(fold) : fold;
    if (prepared->input.weights == NULL || error->status != ALLFOLD_OK)
        return weighted != ALLFOLD_FOLD_COUNT ? weighted : fold;
    if (weighted == ALLFOLD_FOLD_COUNT)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "weights: expected sum, mean, variance or std, found %s", allfold_fold_name(fold));
    else if (call->ddof != 0)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "weights: expected ddof 0 beside them, found %" PRIu64, call->ddof);
    else if (call->nan != ALLFOLD_NAN_PROPAGATE)
        error_set(error, ALLFOLD_BAD_ARGUMENT, "weights: NaN is propagated beside them: expected no other choice");
    else
        check_values(prepared, weighted, error);
    return weighted != ALLFOLD_FOLD_COUNT ? weighted : fold;
}
