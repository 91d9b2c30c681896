/* The work of folds and softmax along an axis: what backends and kernels are given. */
#pragma once

#include "fold/table.h"

/* Elements of three dimensions: element (o, l, i) is x[o * outer_stride + l * axis_stride + i]. Folds run along l. */
struct box {
    uint64_t outer, length, inner, outer_stride, axis_stride;
};

/* A fold along an axis, with outer * inner results. */
struct axis_work {
    enum monoid monoid;
    allfold_type type;
    const void *x;   /* device memory */
    struct box box;
    uint64_t first;  /* the index along the axis of x[0] */
    void *partials;  /* device memory: the results' partials in order, partial_stride bytes each; behind them scratch */
    size_t bytes;    /* of partials and scratch */
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
