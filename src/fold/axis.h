/* The work of folds and softmax along an axis: what backends and kernels are given. */
#pragma once

#include "base/elements.h"
#include "fold/table.h"

#include <math.h>

/* Elements of three dimensions: element (o, l, i) is x[o * outer_stride + l * axis_stride + i]. Folds run along l. */
struct box {
    uint64_t outer, length, inner, outer_stride, axis_stride;
};

/* Elements that are copied from one layout to another. In dimension d they lie from_step[d], and are to lie to_step[d], elements apart. */
enum { STRIDED_DIMENSIONS_MAX = 64 };
struct strided_copy {
    const void *from; /* the first element's */
    void *to;
    size_t bytes;     /* of an element */
    uint32_t dimensions;
    uint64_t extent[STRIDED_DIMENSIONS_MAX];
    int64_t from_step[STRIDED_DIMENSIONS_MAX], to_step[STRIDED_DIMENSIONS_MAX];
};

/* Arrays for one of a fold's results. */
struct axis_output {
    void *values;      /* NULL: not wanted */
    int64_t *indices;  /* the same */
    allfold_type type; /* of values: rows_type */
};

/* Where result r is among those of runs of neighbours that are `step` apart. */
HOST_DEVICE uint64_t result_place(uint64_t r, uint64_t run, uint64_t step) { return run == step ? r : r / run * step + r % run; }

/* Result `which` of a row, or NULL: of stats a row of NaN or of nothing has not all. They ascend, so it is at its own place if all are there. */
HOST_DEVICE const struct fold_field *result_field(const struct fold_results *found, int which)
{
    for (int i = which < found->field_count ? which : found->field_count - 1; i >= 0; i--)
        if (found->fields[i].which == which)
            return &found->fields[i];
    return NULL;
}

/* Stores a result of a row, which is rounded to the output's type already or can be rounded now: NaN and no index if the row has none.
   False: the output's type is an integer type, and the row has none, or of stats one that is too large. */
HOST_DEVICE bool result_store(const struct fold_field *field, const struct axis_output *output, uint64_t place)
{
    if (output->indices != NULL)
        output->indices[place] = field != NULL ? (int64_t)field->index : -1;
    if (output->values == NULL || real_store(output->values, place, output->type, field != NULL ? field->value.f64 : (double)NAN))
        return true;
    if (field == NULL || field->value.kind == ALLFOLD_VALUE_F64)
        return false;
    ((uint64_t *)output->values)[place] = field->value.u64; /* or an int64's bits */
    return true;
}

/* How a device finishes results of a fold along an axis, in memory that it can write. Result r goes to place first + r / run * step +
   r % run of each array. */
struct axis_finish {
    allfold_fold fold;
    allfold_level level;
    allfold_nan nan;
    uint64_t ddof;  /* as in fold_call */
    uint64_t count; /* elements along the whole axis */
    allfold_type format; /* to which floating-point results are rounded */
    size_t outputs; /* allfold_result_count */
    struct axis_output of[FOLD_RESULTS_MAX];
    uint64_t first, run, step;
    uint32_t *refused; /* set to 1 if a result has no value; the host then finishes them again, and says why */
    uint32_t *uncertain; /* NULL; or set to 1 if some exact sums are not there, as they need words. The host then makes the same call again, but for by_words */
    bool by_words;       /* finishes those that the call before did not. Its scratch, and the results that it wrote, must be as it left them */
    uint64_t *done;    /* set by the backend. NULL, or where the end of each result is told, in two words (kernels/message.cuh) */
    uint32_t launch_id; /* of these words */
};

/* Elements of rows that a caller names (targets.h): of result r the one with index of[r] along the axis, which has `whole` elements. */
struct axis_targets {
    const int64_t *of; /* device memory; NULL: none */
    int64_t ignore;    /* the number that names none */
    uint64_t whole;
};

struct softmax_constants;

/* Weights of a box's elements: that of element (o, l, i) is at[o * outer + l * axis + i * inner]. */
struct box_weights {
    const double *at;
    uint64_t outer, axis, inner;
};

/* Partials in host memory that the backend has pinned. */
struct axis_window {
    void *memory; /* NULL: none */
    /* Of `parts`: partial p of result r lies step * p bytes behind memory, at place r there. Those of part `own` are read at their place in `partials`;
       UINT64_MAX: there is no such part. Without parts: the partials, step bytes, go to memory, too */
    uint64_t step, own;
};

/* A fold along an axis, with outer * inner results. What becomes of their partials: they stay where they are, or results are finished of
   them, or constants of softmax made. */
struct axis_work {
    enum monoid monoid;
    allfold_type type;
    const void *x;   /* device memory */
    struct box box;
    struct box_weights weights; /* of monoids with weights: device memory */
    uint64_t first;  /* the index along the axis of x[0] */
    void *partials;  /* device memory: the results' partials in order, partial_stride bytes each; behind them scratch. If results are
                        finished, scratch alone */
    size_t bytes;    /* of partials and scratch */
    const struct axis_finish *finish; /* NULL: not here */
    struct softmax_constants *constants; /* device memory, of each result in order; NULL: none are wanted */
    struct axis_targets targets; /* of a monoid that has marks, which partials get before results are made of them */
    uint64_t parts;  /* not 0: in place of elements this number of partials of each result are combined, in their order: partial p of result r lies at
                        partials, at place p * outer * inner + r, or in the window. Of a backend that `combines` */
    struct axis_window window;
};

/* Softmax along an axis, or its logarithm, of x in the box, to y with strides of its own. */
struct softmax_work {
    const void *x;
    void *y; /* in memory of the device, as x; may be x, if types and strides are equal */
    allfold_type x_type, y_type; /* the latter: floating-point */
    struct box box;
    uint64_t y_outer_stride, y_axis_stride;
    bool logarithm;
    allfold_level level; /* of the sum of exponentials */
};
/* A row of n neighbours. */
static inline struct box box_of_row(uint64_t n)
{
    const struct box box = {1, n, 1, n, 1};
    return box;
}

/* The gradient of log-probabilities: scale * (softmax - 1 at the target), 0 if the target is ignored. Softmax follows from the logsumexp. */
struct gradient_work {
    struct softmax_work softmax;    /* x and y */
    uint64_t first;                      /* the index along the axis of x[0] */
    struct axis_targets targets;
    const double *logsumexp, *scale;     /* of each result in order, device memory; scale NULL: 1 */
    struct softmax_constants *constants; /* device memory, for those of each result */
    uint32_t *refused;                   /* memory that the device can write: set to 1 if a target is out of range */
};
