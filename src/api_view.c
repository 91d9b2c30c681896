/* Views of arrays as callers describe them: of three dimensions, or of any, some of which are folded. api_axis.c calls it. */
#include "api.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- three dimensions */

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

/* In place of a view that is refused. */
static const struct axis_input nothing = {.type = ALLFOLD_F32, .box = {0, 0, 0, 1, 1}};

static struct axis_input input_of(const allfold_view *view, struct error *error)
{
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

void api_view_prepare(const allfold_view *view, struct api_view *prepared, struct error *error)
{
    prepared->weights.values = NULL;
    prepared->operand.of = NULL;
    prepared->input = input_of(view, error);
}

void api_view_release(struct api_view *prepared)
{
    free((void *)(uintptr_t)prepared->weights.values);
}

/* ---- any dimensions */

static bool is_folded(const allfold_view_nd *view, int dimension) { return (view->axes >> dimension & 1) != 0; }

/* The product of the dimensions [from, cut) that are folded, or not, as the cut one is. 1: the ranks' parts follow one another along these. */
static uint64_t product_before(const allfold_view_nd *view, int from)
{
    uint64_t product = 1;
    for (int d = from; d < view->cut; d++)
        product *= is_folded(view, d) == is_folded(view, view->cut) ? view->shape[d] : 1;
    return product;
}

static allfold_status check_dimensions(const allfold_view_nd *view, struct error *error)
{
    const allfold_array part = {view->data, 0, view->type};
    api_check_part(&part, error);
    if (error->status != ALLFOLD_OK)
        return error->status;
    if (view->rank < 1 || view->rank > STRIDED_DIMENSIONS_MAX)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "rank: expected 1 to %d dimensions, found %d", STRIDED_DIMENSIONS_MAX, view->rank);
    if (view->shape == NULL)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "shape is NULL: expected %d extents", view->rank);
    if (view->axes == 0 || (view->rank < 64 && view->axes >> view->rank != 0))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "axes: expected bits of dimensions 0 to %d, at least one, found %#" PRIx64, view->rank - 1,
                         view->axes);
    if (view->cut < 0 || view->cut >= view->rank)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "cut: expected a dimension, 0 to %d, found %d", view->rank - 1, view->cut);
    return ALLFOLD_OK;
}

/* From where on dimensions that are not folded are the coordinate i: behind the last that is folded, as neighbours in memory are there as a
   rule. What ranks cut of these is the slowest dimension of its coordinate, so if they cut another, from there on. All ranks find the same,
   and of an allfold_view what that says. */
static int first_inner(const allfold_view_nd *view, bool alone)
{
    const int inner = 64 - __builtin_clzll(view->axes);
    if (alone || is_folded(view, view->cut) || product_before(view, view->cut < inner ? 0 : inner) == 1)
        return inner;
    return view->cut;
}

/* Each dimension with its coordinate and stride; the products of the coordinates' extents; the reach of all in memory, 0 if there is no
   element. */
struct laid {
    struct dimension dimensions[STRIDED_DIMENSIONS_MAX];
    uint64_t products[3], reach;
};

static void multiply(uint64_t *product, uint64_t factor, bool *beyond)
{
    *beyond = __builtin_mul_overflow(*product, factor, product) || *beyond;
}

static allfold_status lay_out(const allfold_view_nd *view, int inner, struct laid *laid, struct error *error)
{
    uint64_t elements = 1, rows;
    bool beyond = false, empty = false;
    *laid = (struct laid){.products = {1, 1, 1}, .reach = 1};
    for (int d = view->rank; d-- > 0;) {
        const enum coordinate of = is_folded(view, d) ? COORDINATE_AXIS : d < inner ? COORDINATE_OUTER : COORDINATE_INNER;
        const uint64_t extent = view->shape[d];
        const int64_t stride = view->strides != NULL ? view->strides[d] : (int64_t)elements;
        uint64_t distance = stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
        laid->dimensions[d] = (struct dimension){extent, stride, of};
        empty = empty || extent == 0;
        multiply(&laid->products[of], extent, &beyond);
        multiply(&elements, extent, &beyond);
        multiply(&distance, extent - (extent > 0), &beyond);
        beyond = __builtin_add_overflow(laid->reach, distance, &laid->reach) || beyond;
    }
    if (__builtin_mul_overflow(laid->products[COORDINATE_OUTER], laid->products[COORDINATE_INNER], &rows))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "the extents that are not folded make more than 2^64 results");
    if (empty)
        laid->reach = 0;
    else if (beyond || laid->reach > (uint64_t)PTRDIFF_MAX / allfold_type_bytes(view->type))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the view reaches further than any memory");
    return error->status;
}

/* The box with the same places; false: its two strides do not suffice. One rank alone may take outer, of which there is one, for inner, and the
   other way round. */
static bool as_box(const struct laid *laid, const struct layout *layout, bool alone, struct box *box)
{
    const struct dimension *of[3] = {NULL};
    uint64_t outer = laid->products[COORDINATE_OUTER], inner = laid->products[COORDINATE_INNER];
    const uint64_t length = laid->products[COORDINATE_AXIS];
    for (uint32_t d = 0; d < layout->count; d++) {
        const struct dimension *const dimension = &layout->dimensions[d];
        if (of[dimension->of] != NULL || dimension->stride <= 0)
            return false;
        of[dimension->of] = dimension;
    }
    const struct dimension *above = of[COORDINATE_OUTER], *behind = of[COORDINATE_INNER];
    if (alone && ((above == NULL && behind != NULL && behind->stride != 1) || (behind == NULL && above != NULL && above->stride == 1))) {
        const struct dimension *const other = above;
        above = behind;
        behind = other;
        const uint64_t count = outer;
        outer = inner;
        inner = count;
    }
    const uint64_t axis_stride = of[COORDINATE_AXIS] != NULL ? (uint64_t)of[COORDINATE_AXIS]->stride : u64_max(inner, 1);
    *box = (struct box){outer, length, inner, above != NULL ? (uint64_t)above->stride : u64_max(length, 1) * axis_stride, axis_stride};
    return behind == NULL || behind->stride == 1;
}

static void take_nd(const allfold_context *context, const allfold_view_nd *view, struct api_view *prepared, struct error *error)
{
    const bool alone = context->comm.size == 1;
    const int inner = first_inner(view, alone);
    const bool folded = is_folded(view, view->cut);
    struct axis_input *const input = &prepared->input;
    struct layout *const layout = &prepared->layout;
    struct laid laid;
    if (lay_out(view, inner, &laid, error) != ALLFOLD_OK)
        return;
    const allfold_array whole = {view->data, laid.reach, view->type};
    api_check_part(&whole, error);
    *input = (struct axis_input){.x = view->data, .type = view->type, .cut_behind = 1,
                                 .cut = folded ? ALLFOLD_CUT_AXIS : view->cut < inner ? ALLFOLD_CUT_OUTER : ALLFOLD_CUT_INNER,
                                 .shape = {prepared->extents, (uint32_t)view->rank, view->axes, false}};
    layout->count = 0;
    layout->scattered = false;
    for (int d = 0; d < view->rank; d++) {
        prepared->extents[d] = view->shape[d];
        input->cut_behind *= d > view->cut && laid.dimensions[d].of == laid.dimensions[view->cut].of ? view->shape[d] : 1;
        if (laid.reach > 0)
            layout_add(layout, laid.dimensions[d]);
    }
    input->cut_extent = alone || folded ? NULL : &prepared->extents[view->cut];
    input->turns = !alone && folded ? product_before(view, 0) : 1;
    if (view->weights != NULL)
        api_weights_take(context, view, laid.dimensions, prepared, error);
    if (view->weights != NULL || input->turns > 1 || !as_box(&laid, layout, alone && laid.reach > 0, &input->box)) {
        input->box = (struct box){laid.products[0], laid.products[1], laid.products[2], 0, 0};
        input->layout = layout;
    }
}

/* A source; what the view does not say is the source's. */
static void take_source(const allfold_context *context, allfold_view_nd *view, struct api_view *prepared, struct error *error)
{
    struct axis_input *const input = &prepared->input;
    api_operand_take(&(allfold_array){view->data, 0, ALLFOLD_SOURCE}, &prepared->operand, error);
    if (error->status != ALLFOLD_OK)
        return;
    const struct array_info *const info = &prepared->operand.of->info;
    view->type = info->type;
    view->rank = (int)info->dimensions;
    view->shape = info->shape;
    view->strides = NULL;
    view->cut = 0;
    if (check_dimensions(view, error) != ALLFOLD_OK)
        return;
    input->type = info->type;
    input->shape = (struct rows_shape){info->shape, info->dimensions, view->axes, info->fortran_order != 0};
    if (view->weights != NULL)
        api_weights_take(context, view, NULL, prepared, error);
}

void api_view_prepare_nd(const allfold_context *context, const allfold_view_nd *view, struct api_view *prepared, struct error *error)
{
    allfold_view_nd known = {.size = sizeof known};
    prepared->input = nothing;
    prepared->operand.of = NULL;
    prepared->weights.values = NULL;
    api_take_view(view, &known, error);
    if (error->status == ALLFOLD_OK && known.type == ALLFOLD_SOURCE)
        take_source(context, &known, prepared, error);
    else if (error->status == ALLFOLD_OK && check_dimensions(&known, error) == ALLFOLD_OK)
        take_nd(context, &known, prepared, error);
    if (error->status != ALLFOLD_OK) {
        prepared->input = nothing;
        prepared->operand.of = NULL;
    }
}

/* ---- elements that softmax writes */

/* A dimension of a view, apart from the last: `count` runs of `inner` elements begin `stride` elements apart. */
struct steps {
    uint64_t count, stride;
};

/* Whether a run of the one dimension meets a run of the other, apart from the first of both. Runs of each are distinct by themselves.
   All distances are within the view's extent. */
static bool runs_meet(struct steps few, struct steps many, uint64_t inner)
{
    if ((few.count - 1) * few.stride + inner <= many.stride)
        return false; /* all are before the second run */
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
static void check_box(const struct box *box, struct error *error)
{
    if (box->outer > 0 && box->length > 0 && box->inner > 0 && elements_meet(box))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the view's elements overlap (outer stride %" PRIu64 ", axis stride %" PRIu64
                  "): softmax cannot write all of them", box->outer_stride, box->axis_stride);
}

/* Whether each stride is beyond all that the shorter ones reach. */
static bool strides_nest(const struct layout *layout)
{
    uint64_t reach = 0;
    for (uint32_t k = 0, found = layout->count; k < layout->count; k++, found = layout->count) {
        uint64_t shortest = UINT64_MAX, stride;
        for (uint32_t d = 0; d < layout->count; d++) {
            stride = (uint64_t)llabs(layout->dimensions[d].stride);
            if (stride > reach && stride < shortest) {
                shortest = stride;
                found = d;
            }
        }
        if (found == layout->count)
            return false;
        reach += (layout->dimensions[found].extent - 1) * shortest;
    }
    return true;
}

void api_view_check_distinct(const struct axis_input *input, struct error *error)
{
    if (input->layout == NULL)
        check_box(&input->box, error);
    else if (!strides_nest(input->layout))
        error_set(error, ALLFOLD_BAD_ARGUMENT, "the view's elements overlap, or its strides are not such that each is beyond what the shorter ones "
                  "reach: softmax cannot write all of them");
}
