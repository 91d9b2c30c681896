/* Results of a fold along an axis: many partials, each finished into an element of the caller's arrays. */
#pragma once

#include "fold/table.h"

/* The type of the values of result number i of the fold, i below allfold_result_count, for elements of a type, where the caller asked for a result type or ALLFOLD_TYPE_NONE: f64, int64 or
   uint64, or that type. */
allfold_type rows_type(allfold_fold fold, size_t i, allfold_type type, allfold_type asked);

/* Whether that result has an index, of the element that it is. */
static inline bool rows_indexed(allfold_fold fold, size_t i) { return fold_result_kind(fold, i) == RESULT_PLACED; }

/* Arrays for one of the fold's results. Either may be NULL. */
struct rows_output {
    void *values;     /* of rows_type */
    int64_t *indices; /* -1: none */
};

/* The whole array, as messages name its results. Without dimensions: no name. */
struct rows_shape {
    const uint64_t *extents;
    uint32_t dimensions;
    uint64_t folded; /* bit d: dimension d is */
    bool fortran_order;
};
static inline bool rows_fold(const struct rows_shape *shape, uint32_t dimension) { return (shape->folded >> dimension & 1) != 0; }

/* Partials that lie together, of results whose places are runs of neighbours. */
struct rows {
    const struct fold_call *call;
    allfold_type type;
    uint64_t count;              /* elements along the whole axis */
    const unsigned char *partials;
    const uint64_t *counts;  /* of each result, where some are left out as missing: what a row of none does not have is NaN then; or NULL */
    const struct rows_output *outputs; /* allfold_result_count of them */
    uint64_t first, run, step;   /* result r goes to first + r / run * step + r % run */
    uint64_t whole_first, inner; /* among all results, of which a plane has `inner`, that is whole_first + r / run * inner + r % run:
                                    messages name it */
    const struct rows_shape *shape; /* NULL: an array of three dimensions, of which the second is folded */
};

/* Finishes results [range). An error names the first that has no value. */
allfold_status rows_finish(const struct rows *rows, struct range range, struct error *error);
