/* The work of folds and softmax along an axis: what backends and kernels are given. */
#pragma once

#include "fold/table.h"

/* Elements of three dimensions: element (o, l, i) is x[o * outer_stride + l * axis_stride + i]. Folds run along l. */
struct box {
    uint64_t outer, length, inner, outer_stride, axis_stride;
};

/* Arrays for one of a fold's results. */
struct axis_output {
    void *values;      /* NULL: not wanted */
    int64_t *indices;  /* the same */
    allfold_type type; /* of values: rows_type */
};

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
    uint64_t *done;    /* set by the backend. NULL, or where the end of each result is told, in two words (kernels/message.cuh) */
    uint32_t launch_id; /* of these words */
};

struct softmax_constants;

/* A fold along an axis, with outer * inner results. What becomes of their partials: they stay where they are, or results are finished of
   them, or constants of softmax made. */
struct axis_work {
    enum monoid monoid;
    allfold_type type;
    const void *x;   /* device memory */
    struct box box;
    uint64_t first;  /* the index along the axis of x[0] */
    void *partials;  /* device memory: the results' partials in order, partial_stride bytes each; behind them scratch. If results are
                        finished, scratch alone */
    size_t bytes;    /* of partials and scratch */
    const struct axis_finish *finish; /* NULL: not here */
    struct softmax_constants *constants; /* device memory, of each result in order; NULL: none are wanted */
    uint64_t parts;  /* not 0: in place of elements so many partials of each result are combined, in their order: partial p of result r lies at
                        partials, at place p * outer * inner + r. Of a backend that `combines` */
};

/* Softmax along an axis, of x in the box, to y with strides of its own. */
struct softmax_axis_work {
    const void *x;
    void *y; /* device memory, as x; may be x, if types and strides are equal */
    allfold_type x_type, y_type;
    struct box box;
    uint64_t y_outer_stride, y_axis_stride;
    bool logarithm;
    allfold_level level;
};
