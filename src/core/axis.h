/* Folds and softmax along an axis, of arrays in memory. The calls are axis_reduce.c and axis_softmax.c. What they share: axis.c, the ranks'
   parts, and batches of results and their partials; axis_window.c, the exchange of partials by devices. Elements that the device cannot use
   in place come to it piece by piece (pieces.h). */
#pragma once

#include "core/pieces.h"

/* A rank's part of an array of three dimensions, in memory. */
struct axis_input {
    const void *x;
    struct box box;
    allfold_type type;
    allfold_cut cut;
    void *stream;  /* as in allfold_call */
    uint64_t call; /* what must be the same on all ranks, besides type, cut and two of the dimensions */
    bool own_results; /* as in allfold_call */
    uint64_t outputs; /* a bit for each array that this rank has for results: the same on all ranks that get results */
};

/* The bits of the arrays for the values of result number i and for its indices. */
static inline uint64_t axis_values_bit(size_t i) { return UINT64_C(1) << 2 * i; }
static inline uint64_t axis_indices_bit(size_t i) { return UINT64_C(2) << 2 * i; }

/* Collective: outputs are as allfold_reduce_axis says. */
struct axis_reduce {
    struct fold_call fold;
    const struct rows_output *outputs; /* allfold_result_count of them */
};
allfold_status core_reduce_axis(struct allfold_context *ctx, const struct axis_reduce *reduce, const struct axis_input *input,
                                struct error *error);

/* Collective: y has the strides of x. */
struct axis_softmax {
    void *y;
    allfold_type y_type;
    bool logarithm;
};
allfold_status core_softmax_axis(struct allfold_context *ctx, const struct axis_softmax *softmax, const struct axis_input *input,
                                 struct error *error);

/* ---- what the two share */

/* The work of one rank. */
struct axis {
    struct allfold_context *ctx;
    const struct axis_input *input;
    enum monoid monoid;
    void *y;                /* of softmax, with the strides of x */
    size_t stride;          /* of partials */
    bool in_place, y_in_place; /* the device uses x, or y, where it lies */
    bool all_in_place;      /* it uses both, on all ranks that exchange anything */
    uint64_t batch;         /* results at a time; with a cut axis the same on all ranks */
    void *partials;         /* device memory of the context: partials and scratch, then constants of softmax */
    struct range *parts;    /* of the cut dimension, of each rank */
    struct range *shares;   /* of a batch's results, of each rank that computes them; else NULL, as is what follows */
    unsigned char *exchanged; /* host memory: axis_combine's result */
    unsigned char *folded;    /* host memory: the partials of a batch that is folded piece by piece, and exchanged; else NULL */
    bool by_host;           /* set before axis_begin: devices cannot finish the results */
    bool through_window;    /* partials are exchanged by axis_publish and axis_collect */
    uint64_t length, first; /* of the whole axis; where this rank's part of it begins */
    uint64_t outer, inner;  /* of the whole array */
    uint64_t outputs;       /* axis_input's, of the ranks that get results; 0 if none does */
};

/* Fewer results are finished without waking threads. */
enum { AXIS_ALONE = 256 };

/* Results first to first + count of this rank's box: either whole planes, or a run within one plane. */
struct axis_batch {
    uint64_t first, count;
    uint64_t o, outer, i, inner;
};

/* Begins with all dimensions known, or fails on all ranks. most: a batch has at most so many results, 0 if that does not matter.
   Collective. axis_end, which waits for all that is under way, is right in any case. */
allfold_status axis_begin(struct axis *axis, uint64_t most, struct error *error);
void axis_end(struct axis *axis, struct error *error); /* local */
uint64_t axis_results(const struct axis *axis); /* of this rank's box */
uint64_t axis_results_of(const struct axis *axis, int rank); /* that the rank gets */
bool axis_is_exchanged(const struct axis *axis); /* partials of several ranks belong together */
struct axis_batch axis_batch_at(const struct axis *axis, uint64_t first);

/* The queue of what is worked on in place, and of results. */
struct queue *axis_queue(const struct axis *axis);

/* Where a batch's elements begin in x or y, of so many bytes each. */
size_t axis_batch_offset(const struct axis *axis, const struct axis_batch *batch, size_t element_bytes);

/* What is wanted of partials: as in axis_work. All zero: these. */
struct axis_wanted {
    const struct axis_finish *finish;
    struct softmax_constants *constants;
};

/* Folds a batch in place. What is wanted is there after wait; partials at axis->partials. Local. */
allfold_status axis_fold_there(const struct axis *axis, const struct axis_batch *batch, const struct axis_wanted *wanted, struct error *error);

/* Folds a batch, in place or piece by piece. *partials is host memory, until the next fold. Local. */
allfold_status axis_fold(const struct axis *axis, const struct axis_batch *batch, const unsigned char **partials, struct error *error);

/* Pieces of this rank's box, or of a batch, and the array of which they are. */
struct axis_pieces {
    struct axis_array array;
    struct pieces pieces;
};
void axis_pieces_of(const struct axis *axis, const struct axis_batch *batch, struct axis_pieces *pieces);

/* Combines the partials of a batch, where the ranks have some of each result: axis->shares become even shares of the batch, and
   axis->exchanged holds the partials of this rank's share. Agrees on *error first. Collective. */
allfold_status axis_combine(const struct axis *axis, const struct axis_batch *batch, const unsigned char *partials,
                            struct error *error);

/* ---- axis_window.c: partials of ranks that cut the axis, which the devices of one host combine. They go through memory that the ranks
   share, of which each batch takes a half, in turn. */

/* Opens the memory, if the ranks and their devices can use it, and sets axis->through_window then. Collective. */
allfold_status axis_window_open(struct axis *axis, struct error *error);

/* Folds a batch and gives the ranks its partials. Agrees on *error. Collective. */
allfold_status axis_publish(const struct axis *axis, const struct axis_batch *batch, struct error *error);

/* Combines all ranks' partials of results [mine) of the batch that was published last, as axis_fold_there folds. Local. */
struct axis_collect {
    const struct axis_batch *batch;
    struct range mine;
    struct axis_wanted wanted;
    bool again; /* the batch's partials have been combined before */
};
allfold_status axis_collect(const struct axis *axis, const struct axis_collect *collect, struct error *error);

/* ---- all local */

enum {
    AXIS_BUFFER_BYTES = 8 << 20, /* of a queue, where the device has memory of its own; of a batch's partials, and of its constants */
    AXIS_CONSTANTS_AT = 2 * AXIS_BUFFER_BYTES, /* in the context's memory: behind partials and scratch */
    AXIS_MEMORY_BYTES = 3 * AXIS_BUFFER_BYTES,
    AXIS_WINDOW_BYTES = 2 * AXIS_BUFFER_BYTES  /* of all ranks */
};

/* Where download puts what it brings from device memory: the queue's staging buffer, or where it lies. */
static inline void *axis_host(const struct axis *axis, void *from)
{
    return axis->ctx->device->backend->own_memory ? axis_queue(axis)->staging : from;
}

/* Memory to the device, of any length, through the queue's staging buffer. */
allfold_status axis_upload(const struct axis *axis, const void *from, void *to, size_t bytes, struct error *error);
