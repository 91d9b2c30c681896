/* Folds and softmax along an axis. The calls are axis_reduce.c and axis_softmax.c. What they share: axis.c, the ranks' parts and batches of
   results; axis_fold.c, the partials of a batch; axis_window.c, their exchange by devices; axis_pieces.c, which brings elements to the
   device, piece by piece. */
#pragma once

#include "core/core.h"
#include "fold/rows.h"

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
    size_t stride;          /* of partials */
    struct queue *queue;
    bool in_place;          /* the device uses x where it lies */
    uint64_t batch;         /* results at a time; with a cut axis the same on all ranks */
    void *partials;         /* device memory of the context: partials and scratch, then constants of softmax */
    struct range *parts;    /* of the cut dimension, of each rank */
    struct range *shares;   /* of a batch's results, of each rank that computes them; else NULL, as is what follows */
    unsigned char *exchanged; /* host memory: axis_combine's result */
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

/* A part of a box, and where the device finds it. */
struct axis_piece {
    struct box box;     /* with the strides that it has there */
    uint64_t o, l, i;   /* its first element in the whole box */
    const void *x;
};

/* Begins with all dimensions known, or fails on all ranks. most: a batch has at most so many results, 0 if that does not matter.
   Collective. axis_end, which waits for all that is under way, is right in any case. */
allfold_status axis_begin(struct axis *axis, uint64_t most, struct error *error);
void axis_end(struct axis *axis, struct error *error); /* local */
uint64_t axis_results(const struct axis *axis); /* of this rank's box */
uint64_t axis_results_of(const struct axis *axis, int rank); /* that the rank gets */
bool axis_is_exchanged(const struct axis *axis); /* partials of several ranks belong together */
struct axis_batch axis_batch_at(const struct axis *axis, uint64_t first);

/* Folds a piece, whose partials come to axis->partials, unless `finish` says what becomes of them. After wait. Local. */
allfold_status axis_fold_piece(const struct axis *axis, struct axis_piece *piece, const struct axis_finish *finish, struct error *error);

/* Folds a batch. *partials is host memory, until the queue is used again. Local. */
allfold_status axis_fold(const struct axis *axis, const struct axis_batch *batch, const unsigned char **partials, struct error *error);

/* Combines the partials of a batch, where the ranks have some of each result: axis->shares become even shares of the batch, and
   axis->exchanged holds the partials of this rank's share. Agrees on *error first. Collective. */
allfold_status axis_combine(const struct axis *axis, const struct axis_batch *batch, const unsigned char *partials,
                            struct error *error);

/* ---- axis_window.c: partials of ranks that cut the axis, which the devices of one host combine. They go through memory that the ranks
   share, of which each batch takes a half, in turn. */

/* Opens the memory, if the ranks and their devices can use it, and sets axis->through_window then. Collective. */
allfold_status axis_window_open(struct axis *axis, struct error *error);
void axis_window_close(struct allfold_context *ctx); /* local */

/* Folds a batch and gives the ranks its partials. Agrees on *error. Collective. */
allfold_status axis_publish(const struct axis *axis, const struct axis_batch *batch, struct error *error);

/* Combines all ranks' partials of results [mine) of the batch that was published last: they come to axis->partials, or `finish` says
   what becomes of them (NULL: nothing). After wait. Local. */
struct axis_collect {
    const struct axis_batch *batch;
    struct range mine;
    const struct axis_finish *finish;
    bool again; /* the batch's partials have been combined before */
};
allfold_status axis_collect(const struct axis *axis, const struct axis_collect *collect, struct error *error);

/* ---- axis_pieces.c: all local */

enum {
    AXIS_BUFFER_BYTES = 8 << 20, /* of a queue, where the device has memory of its own; of a batch's partials, and of its constants */
    AXIS_CONSTANTS_AT = 2 * AXIS_BUFFER_BYTES, /* in the context's memory: behind partials and scratch */
    AXIS_MEMORY_BYTES = 3 * AXIS_BUFFER_BYTES,
    AXIS_WINDOW_BYTES = 2 * AXIS_BUFFER_BYTES  /* of all ranks */
};

/* The next piece of a batch, which begins at l = from and of which the device has room for elements of `bytes` bytes, x included:
   whole rows if possible. */
struct axis_piece axis_piece_at(const struct axis *axis, const struct axis_batch *batch, uint64_t from, size_t bytes);
/* Brings its elements to the device, unless they are used in place. */
allfold_status axis_piece_load(const struct axis *axis, struct axis_piece *piece, struct error *error);

/* Memory to and from the device, of any length, through the queue's staging buffer. */
allfold_status axis_upload(const struct axis *axis, const void *from, void *to, size_t bytes, struct error *error);

/* Copies a box of elements of `bytes` bytes. */
struct box_copy {
    void *to;
    const void *from;
    uint64_t to_outer_stride, to_axis_stride;
    struct box box; /* with the strides of from */
    size_t bytes;
};
void box_copy(const struct box_copy *copy);
