/* Weights: those of a piece are brought together beside its elements. Along a coordinate in which they do not differ, one stands for all. */
#include "core/pieces.h"

#include <float.h>
#include <string.h>

allfold_status weights_check_type(allfold_type type, struct error *error)
{
    if (type_value(type) != VALUE_i64 && type_value(type) != VALUE_u64)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_UNSUPPORTED, "weights: expected elements that are exact in f64, found %s: convert them to f64 first",
                     allfold_type_name(type));
}

allfold_fold weights_fold(allfold_fold fold)
{
    switch ((int)fold) {
    case ALLFOLD_SUM: return (allfold_fold)FOLD_WEIGHTED_SUM;
    case ALLFOLD_MEAN: return (allfold_fold)FOLD_WEIGHTED_MEAN;
    case ALLFOLD_VARIANCE: return (allfold_fold)FOLD_WEIGHTED_VARIANCE;
    case ALLFOLD_STD: return (allfold_fold)FOLD_WEIGHTED_STD;
    default: return ALLFOLD_FOLD_COUNT;
    }
}

uint64_t weights_refused(allfold_fold fold, const double *values, uint64_t count)
{
    uint64_t i = fold == (allfold_fold)FOLD_WEIGHTED_SUM ? count : 0;
    while (i < count && values[i] >= 0 && values[i] <= DBL_MAX)
        i++;
    return i;
}

void weights_lay_out(struct weights *weights, const struct layout *layout, const struct rows_shape *shape)
{
    weights->layout.count = layout->count;
    for (uint32_t i = 0; i < layout->count; i++) {
        weights->layout.dimensions[i] = layout->dimensions[i];
        weights->layout.dimensions[i].stride = weights->strides[shape->fortran_order ? layout->count - 1 - i : i];
    }
}

/* Whether weights differ along a coordinate. */
static bool vary(const struct weights *weights, enum coordinate of)
{
    for (uint32_t i = 0; i < weights->layout.count; i++)
        if (weights->layout.dimensions[i].of == of && weights->layout.dimensions[i].stride != 0 && weights->layout.dimensions[i].extent > 1)
            return true;
    return false;
}

/* What is needed of a part: one of what does not differ, unless all are wanted. */
static struct part needed(const struct pieces *p, const struct part *part, bool all)
{
    const struct weights *const weights = p->array->weights;
    struct part needed = *part;
    if (!all && !vary(weights, COORDINATE_OUTER))
        needed.outer = u64_min(part->outer, 1);
    if (!all && !vary(weights, COORDINATE_AXIS))
        needed.length = u64_min(part->length, 1);
    if (!all && !vary(weights, COORDINATE_INNER))
        needed.inner = u64_min(part->inner, 1);
    if (p->array->memory != NULL) { /* a part's own */
        needed.o -= p->part.o;
        needed.l -= p->part.l;
        needed.i -= p->part.i;
    }
    return needed;
}

size_t weights_bytes(const struct pieces *p)
{
    const struct part full = {p->part.o, p->outer, p->part.l, p->length, p->part.i, p->inner}, part = needed(p, &full, p->array->omits);
    return part_elements(&part) * sizeof(double);
}

struct weights_gathering {
    const double *from;
    double *to;
};

static void gather_box(void *user, const struct strided_copy *box, int64_t from_at, int64_t to_at)
{
    const struct weights_gathering *const gathering = user;
    struct strided_copy copy = *box;
    copy.from = gathering->from + from_at;
    copy.to = gathering->to + to_at;
    copy.bytes = sizeof(double);
    strided_copy_host(&copy);
}

allfold_status weights_load(const struct pieces *p, struct lane *lane, struct error *error)
{
    const struct backend *const backend = lane->queue->device->backend;
    const struct part part = needed(p, &lane->part, lane->holes);
    const uint64_t count = part_elements(&part), inner = part.inner;
    const unsigned char *const there = lane_host(lane, p->there_at);
    double *const to = lane_host(lane, p->weights_at);
    lane->weights = (struct box_weights){lane_device(lane, p->weights_at), part.outer > 1 ? part.length * inner : 0, part.length > 1 ? inner : 0,
                                         inner > 1};
    if (count == 0 || (!lane->holes && memcmp(&part, &lane->weighted, sizeof part) == 0))
        return error->status;
    layout_visit_part(&p->array->weights->layout, &part, gather_box, &(struct weights_gathering){p->array->weights->values, to});
    for (uint64_t i = 0; lane->holes && i < count; i++)
        to[i] = there[i] ? to[i] : 0.0;
    lane->weighted = lane->holes ? (struct part){.outer = 0} : part;
    return backend->copy(lane->queue, to, lane_device(lane, p->weights_at), count * sizeof(double), error);
}
