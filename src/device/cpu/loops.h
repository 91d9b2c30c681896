/* The CPU backend's inner loops. loops.c is compiled once for each instruction set, cpu.c picks the best table that
   the processor can run. The bits are the same in all. */
#pragma once

#include "fold/axis.h"
#include "fold/columns.h"
#include "fold/exponential.h"
#include "fold/table.h"

#include <assert.h>

/* Columns of elements: element l of column c is x[l * stride + c]. Or rows: element l of row c is x[c * stride + l]. */
struct columns {
    allfold_type type;
    const void *x;
    uint64_t length, stride; /* elements of each, and from one run of neighbours to the next */
    uint32_t columns;        /* of columns at most COLUMNS_MAX, or COLUMNS_ACROSS */
};
enum { COLUMNS_MAX = FOLD_COLUMNS, COLUMNS_ACROSS = 64 };

/* Elements of a column at a time, and from one column to the next in a buffer: not a power of two, for columns would then share the
   same few lines of the first-level cache. */
enum { COLUMN_RUN = FOLD_RUN, COLUMN_STEP = COLUMN_RUN + 16 };

/* In `values` columns are brought to rows, COLUMNS_ACROSS at a time, or a few rows to values; `results` has the lanes: some 350 KB. */
struct column_buffers {
    __attribute__((aligned(64))) unsigned char values[COLUMNS_ACROSS * COLUMN_STEP * sizeof(uint64_t)];
    __attribute__((aligned(64))) unsigned char lanes[FOLD_LANES_BYTES];
};
static_assert(FOLD_ROWS * FOLD_COLUMNS <= COLUMNS_ACROSS * COLUMN_STEP, "room for rows");

/* Folds of columns, or of rows, side by side. */
struct side_by_side {
    enum monoid monoid;
    struct columns x;
    uint64_t all;            /* columns, or rows, of the whole box */
    uint64_t first;          /* the index of the first elements */
    unsigned char *partials; /* that of c: partials + c * partial_stride */
    struct box_weights weights; /* of monoids with weights: `axis` apart along a column or row, `inner` from one to the next */
    double *results;         /* NULL: partials are wanted of all */
    unsigned char *finished;     /* finished[c]: results[c] is what a fold of column c alone gives, and there is no partial. Else there is one */
    struct column_buffers *buffers;
};

/* Which of the constants are needed: for softmax, for log-softmax, or for both. */
enum softmax_needs { SOFTMAX_NEEDS_INVERSE, SOFTMAX_NEEDS_LOG, SOFTMAX_NEEDS_ALL };

struct partials {
    const unsigned char *at;
    size_t stride;
    uint32_t count;
};

struct cpu_loops {
    const char *name;
    /* Takes the work, of less than 2^32 elements, into *partial. */
    void (*fold)(const struct work *work, struct partial *partial);
    /* Fold columns, or rows of less than 2^32 elements. */
    void (*fold_columns)(const struct side_by_side *fold);
    void (*fold_rows)(const struct side_by_side *fold);
    /* Rounds results to elements of a floating-point type. */
    void (*round)(allfold_type type, void *elements, const double *results, uint32_t n);
    /* The constants of softmax's second pass. */
    void (*constants)(enum monoid monoid, enum softmax_needs needs, const struct partials *partials, struct softmax_constants *constants);
    /* The second pass of softmax, or of log-softmax, of each row or column of x, from its constants, to those of y. Results may be stored past the
       caches: cpu_fence_stores follows the last pass of a thread. */
    void (*normalise_rows)(bool logarithm, const struct columns *x, const struct columns *y, const struct softmax_constants *constants);
    void (*normalise_columns)(bool logarithm, const struct columns *x, const struct columns *y, const struct softmax_constants *constants);
};

extern const struct cpu_loops cpu_loops_base;
#ifdef ALLFOLD_HAVE_X86_ISA
extern const struct cpu_loops cpu_loops_avx2, cpu_loops_avx512;
#endif
