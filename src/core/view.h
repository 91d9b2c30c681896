/* Folds and softmax along an axis of an array in memory, of which each rank has a part. The calls are reduce_axis.c and softmax_axis.c; what
   they share, view.c: the ranks' parts, of which each rank knows all. */
#pragma once

#include "core/pieces.h"

/* A rank's part of an array of three dimensions, in memory. */
struct axis_input {
    const void *x;
    struct box box;
    struct layout *layout; /* not NULL: in place of the box's strides */
    uint64_t turns;        /* as axis_array's; with a layout, and the same on all ranks */
    struct rows_shape shape; /* of the rank's part, for messages: without dimensions, the box names results; */
    uint64_t *cut_extent;    /* there, if a dimension is cut that is not folded: becomes the whole array's, by which of the coordinate's */
    uint64_t cut_behind;     /* steps these are one each */
    struct weights *weights; /* as axis_array's, of the rank's part; with a layout. NULL: none, on all ranks */
    allfold_type type;
    allfold_cut cut;
    void *stream;  /* as in allfold_call */
    uint64_t call; /* what must be the same on all ranks, besides type, cut and two of the dimensions */
    bool own_results; /* as in allfold_call */
    uint64_t outputs; /* bit k: this rank has array k of results; the same on all ranks that get results */
    struct row_targets targets; /* of log-probabilities */
};

/* Collective: outputs are as allfold_reduce_axis says, of each array of results the caller's memory or NULL. */
allfold_status core_reduce_axis(struct allfold_context *ctx, const struct fold_call *call, const struct axis_input *input,
                                void *const outputs[RESULT_ARRAYS_MAX], struct error *error);

/* Collective: the sink has memory, with the strides of x, and takes results at their places there. */
allfold_status core_softmax_axis(struct allfold_context *ctx, bool logarithm, const struct axis_input *input, struct sink *sink,
                                 struct error *error);

/* Collective: the gradient of log-probabilities (allfold_log_probs_gradient). The sink is as that of softmax. */
struct gradient_input {
    const double *logsumexp, *scale; /* of each row of the part */
    struct sink *sink;
};
allfold_status core_log_probs_gradient(struct allfold_context *ctx, const struct axis_input *input, const struct gradient_input *gradient,
                                       struct error *error);

/* ---- what they share */

struct view {
    const struct axis_input *input;
    struct axis_array array; /* in memory: in_place says whether the device uses x where it lies */
    struct pieces p;         /* of the array, without the cut: ctx and monoid are set by the caller */
    void *y;                 /* of softmax, with the strides of x; set by the caller */
    bool y_in_place, y_apart; /* the device writes it, or copies pieces to it */
    bool opened;             /* what is in place has its queue and memory */
    bool by_host;            /* devices cannot finish the results; set by the caller */
    struct range *parts;     /* of the cut dimension, of each rank */
    uint64_t outputs;        /* axis_input's, of the ranks that get results; 0 if none does */
};

/* Begins with all parts known, or fails on all ranks. Collective. view_end, which waits for all that is under way, is right in any case. */
allfold_status view_begin(struct view *view, struct error *error);
void view_end(struct view *view, struct error *error); /* local */

/* Which results the rank keeps: a range of all; and of each plane's, `width`, some columns. */
struct kept_rows {
    struct range all;
    uint64_t width;
    struct range columns;
};
struct kept_rows view_kept(const struct view *view, int rank);
static inline uint64_t kept_count(const struct kept_rows *kept)
{
    return kept->columns.count == kept->width ? kept->all.count : kept->all.count / kept->width * kept->columns.count;
}
/* The place of a result, which has one among all, among those that are kept. */
static inline uint64_t kept_place(const struct kept_rows *kept, uint64_t place)
{
    const uint64_t at = place - kept->all.first;
    return at / kept->width * kept->columns.count + at % kept->width - kept->columns.first;
}
