/* A rank's part of an array, cut into pieces that a team brings to the device, folds and normalises. A flat array is one row. cut.c cuts;
   load.c, chunks.c and missing.c bring elements to the device; fold_pieces.c folds; in_place.c folds what the device uses where it lies. The
   calls are reduce.c and softmax.c, along an axis reduce_axis.c and softmax_axis.c. */
#pragma once

#include "core/layout.h"
#include "core/resumable.h"

/* Weights of an array's elements, or of a part in memory: `values` has those of NumPy's broadcasting, in host memory, and element (o, l, i) has
   the one where the layout says. */
struct weights {
    const double *values;
    struct layout layout;
    const int64_t *strides; /* of a source: in values, along each dimension of the shape, of which the call makes the layout */
};

/* The whole array, the same on all ranks: its elements in row-major order are those of the source. Of an array in memory each rank has its
   part there (view.h). */
struct axis_array {
    struct source *source; /* NULL on a rank that failed before; *error then says why */
    const void *memory;    /* not NULL: in place of a source; element (o, l, i) of the part is number o * outer_stride + l * axis_stride + i */
    uint64_t outer_stride, axis_stride;
    /* NULL: element (o, l, i) is where these strides say. Of memory the rank's part, whose first element is (0, 0, 0) there. */
    struct layout *layout;
    bool in_place;         /* of memory: the device uses it where it lies */
    bool gathered;         /* of memory with a layout: the device copies parts of it together */
    uint64_t turns;        /* of memory with a layout: runs of the axis that each rank has, in turn; 0 and 1: one */
    allfold_type type;
    uint64_t outer, length, inner;
    allfold_cut cut;       /* set by the call: what the ranks share out */
    struct rows_shape shape; /* for messages, and sources in chunks */
    bool omits;              /* missing elements are left out; else they are an error */
    struct weights *weights; /* of folds with weights; else NULL */
    uint64_t *missing;       /* NULL, or to which the elements are added that results of this rank are without */
    struct resumable *progress; /* NULL: none is kept, on all ranks */
};

/* A fold's results along an axis come in several arrays, of which any may be absent: values of result i, of rows_type, in array 2 i; its
   indices (int64) in array 2 i + 1. Result (o, i) has place o * inner + i in each. */
enum { RESULT_ARRAYS_MAX = 2 * FOLD_RESULTS_MAX };

/* A described array of which the dimensions with these bits are folded: without its source and weights. */
struct axis_array axis_array_of(const struct array_info *info, uint64_t folded);

/* Folds the array along its length. sinks: of each array of results, or NULL. On success all results are written, each by one rank.
   Collective. */
allfold_status core_reduce_stream(struct allfold_context *ctx, const struct fold_call *call, struct axis_array *array,
                                  struct sink *const sinks[RESULT_ARRAYS_MAX], struct error *error);

/* The same, to arrays in host memory, or NULL, of every rank. number: as axis_input's call. */
allfold_status core_reduce_source(struct allfold_context *ctx, const struct fold_call *call, struct axis_array *array, uint64_t number,
                                  void *const outputs[RESULT_ARRAYS_MAX], struct error *error);

/* Writes softmax (or its logarithm) along the length to sink, in the sink's type, element i to place i; sink is NULL on a rank that
   failed before. Elements are read once if a piece has room for whole rows, else twice. Collective. */
allfold_status core_softmax_stream(struct allfold_context *ctx, bool logarithm, struct axis_array *array, struct sink *sink,
                                   struct error *error);

/* ---- what they share */

static inline size_t pages(uint64_t bytes) { return (size_t)((bytes + 4095) / 4096 * 4096); }

/* Elements, or the first of them, in memory that the device uses in place. */
struct device_data {
    char *memory;      /* NULL: nowhere */
    uint64_t elements; /* how many of the part's first elements are there */
    uint64_t capacity; /* for how many there is room: elements that a fold reads are kept there */
    bool owned;        /* allocated here: device_data_release frees it */
};

/* Numbers of 8 bytes, one for each row of the part, in host memory or where the device uses them. */
struct row_array {
    const void *memory; /* NULL: none */
    bool there;         /* the device uses them where they lie */
    void *copy;         /* in host memory, of what lies on the device; NULL: none */
};
struct row_targets {
    struct row_array of; /* int64 */
    int64_t ignore;
};

/* Of an array in chunks that have more results than pieces have room for: some of the part's rows, in groups, and of these in turn all that
   lies in a range along the axis. Its chunks are decoded into host memory, once, and pieces are copied from there: a unit has one in each
   slab of its group. */
struct slab {
    uint64_t outer, length, inner; /* its extents, at most. A length of 0: there are none */
    struct part all;               /* the rank's part, and */
    struct part group;             /* a group of it: the part of the pieces, or, if ranks share the memory, the parts of all ranks */
    struct part loaded;            /* what is in memory */
    size_t shared;                 /* bytes of memory that the ranks share: each decodes some of a group's chunks. 0: the rank's own */
    char *elements;
    unsigned char *there;          /* which of them are there, if the array omits, and */
    bool holes;                    /* some are not */
};

/* A rank's part, and how it is cut: into units (planes, or some columns of one) and these, if they do not fit a piece, into
   segments. A piece is a unit, or a segment of one. All follows from shape, types and the size of shards alone. */
struct pieces {
    struct allfold_context *ctx;
    const struct axis_array *array;
    enum monoid monoid;
    size_t stride;          /* of partials */
    struct part part;
    uint64_t longest;       /* of the lengths of the ranks' parts */
    uint64_t outer, length, inner;  /* of a piece, at most */
    uint64_t stripes, units, segments;
    uint64_t shard;         /* pieces of a shard */
    struct slab slab;
    uint64_t before;        /* units of the groups before this one, */
    bool last;              /* behind which there is none */
    uint64_t origin;        /* the index along the axis from which the folds' indices count */
    uint64_t base;          /* the place of the element that is the first in memory */
    size_t bounce_at, partials_at, more_at, queue_bytes; /* places in a queue's buffers, behind a piece's elements */
    /* the same, if the array omits and pieces have more rows than one: bytes that say which elements of the piece are there, and which of
       a chunk; counts of each result; the elements of one row */
    size_t there_at, chunk_there_at, counts_at, row_at;
    size_t weights_at;      /* the place in a queue's buffers of the weights of a piece */
    /* a flat array, in the order of its source's positions */
    bool flat;
    struct source *second;  /* operand: NULL, or of the same type and range; only comparisons take one with elements left out */
    size_t second_at;       /* its place in a queue's buffers */
    size_t joint_at;        /* of a comparison: the place of a bitmap of a piece's elements */
    const struct compare_rule *rule; /* as in struct work */
    const struct device_data *x, *y; /* what lies in device memory of the operands; NULL: nothing */
    bool follows;           /* the device uses memory of the caller's in place, after the work in this stream of the caller's: see allfold_call */
    void *stream;
    struct queue *queue;    /* not NULL: the only one, for elements that the device makes itself, in long pieces; */
    char *made;             /* and device memory for those of a piece, if nothing keeps them */
    /* in_place.c */
    bool in_place;          /* the device uses the part where it lies, or copies that of a unit together in its memory, on all ranks that exchange
                               anything: a unit is one piece, and one batch */
    bool in_window;         /* and ranks exchange partials through the window that their devices share */
    struct row_targets targets; /* of log-probabilities: of an array in memory without a layout */
};

/* What the cut depends on besides the array. */
struct axis_needs {
    size_t widest;          /* bytes of an element of input or output, whichever is longer */
    size_t result, element; /* bytes that the caller needs at more_at for each result and each element of a piece, */
    size_t fixed;           /* and beside these */
};

/* Agrees on *error; chooses what the ranks share out, and the cut. Sets all but ctx, array and monoid. Collective. */
allfold_status pieces_cut(struct pieces *p, struct axis_array *array, const struct axis_needs *needs, struct error *error);

/* Makes group `number` of the part's rows the part, after those before it; false: there is none. Without slabs all rows are one group. */
bool pieces_take_group(struct pieces *p, uint64_t number);

/* Of the three numbers, which are one for each dimension, that of the dimension that the ranks cut. */
static inline uint64_t cut_one_of(allfold_cut cut, uint64_t outer, uint64_t length, uint64_t inner)
{
    return cut == ALLFOLD_CUT_OUTER ? outer : cut == ALLFOLD_CUT_AXIS ? length : inner;
}
/* This rank's part of the array, of whose cut dimension it has `mine`; the longest of any rank. */
void pieces_take_part(struct pieces *p, struct range mine, uint64_t longest);

/* Only the cut, of a part in memory, of which the longest of a rank is known. */
void pieces_cut_part(struct pieces *p, const struct axis_needs *needs);
/* Cuts a part that is used in place: units of at most `results` results. */
void pieces_cut_in_place(struct pieces *p, uint64_t results);

/* Of a flat array: this rank's part of it. x, y and second are set. window: bytes of a piece's elements, at most. y_bytes: of an element
   of softmax; 0: there is none. */
void pieces_cut_row(struct pieces *p, struct range range, size_t window, size_t y_bytes);

/* The elements of that number of bytes, in whole granules of the source, at least one. */
uint64_t pieces_elements(const struct source *source, allfold_type type, size_t bytes);

/* A team for the pieces of some units, in rounds: one for each slab, or one. */
static inline uint64_t pieces_rounds(const struct pieces *p) { return p->slab.length > 0 ? p->segments : 1; }
struct team pieces_team(const struct pieces *p, struct range units, uint64_t round, const struct team_work *work, void *user);

struct part pieces_at(const struct pieces *p, uint64_t number);
static inline uint64_t part_results(const struct part *part) { return part->outer * part->inner; }
static inline uint64_t part_elements(const struct part *part) { return part->outer * part->length * part->inner; }

/* Results of the part are counted unit by unit, inside of a unit row-major. The number of a unit's first result; for units: of all. */
uint64_t pieces_first_result(const struct pieces *p, uint64_t unit);
/* The place of a result among those of the array, and how many results from there on have places that follow. */
uint64_t pieces_place(const struct pieces *p, uint64_t result, uint64_t *run);
/* Whether elements are read in chunks: those of the source, which has an order of its own, or, if what is folded is not adjacent, runs. */
static inline bool pieces_are_chunked(const struct pieces *p)
{
    const struct axis_array *const array = p->array;
    return array->source != NULL && (array->source->chunking != NULL || (array->layout != NULL && array->layout->scattered));
}
/* Whether the ranks have parts of the same rows, and exchange partials. */
static inline bool pieces_are_exchanged(const struct pieces *p)
{
    return !p->flat && p->array->cut == ALLFOLD_CUT_AXIS && p->ctx->comm.size > 1;
}
/* Whether pieces have all elements along the axis of the whole array: on all ranks, or on none if they exchange partials. */
static inline bool pieces_are_whole(const struct pieces *p) { return !p->flat && p->segments == 1 && !pieces_are_exchanged(p); }

/* The runs of elements of a piece in the array: some lines of each of some planes. */
struct runs {
    uint64_t planes, lines, elements;
};
struct runs pieces_runs(const struct pieces *p, const struct part *part);
/* The place in the array, or in memory, of the first element of one of these lines. */
uint64_t pieces_position(const struct pieces *p, const struct part *part, uint64_t plane, uint64_t line);
/* The same for an array with a layout. */
void pieces_visit(const struct pieces *p, const struct part *part, layout_visit *visit, void *user);

/* Whether elements that are left out leave no gaps: of a flat array, and of a row that is one run. */
static inline bool piece_closes_gaps(const struct pieces *p, const struct part *part)
{
    return p->flat || (part->outer * part->inner == 1 && p->array->inner == 1 && !pieces_are_chunked(p) && p->array->weights == NULL);
}

/* ---- load.c: called by workers */

/* Brings the elements of the lane's piece to the device, or starts that: sets lane->part and what follows it. */
allfold_status piece_load(const struct pieces *p, struct worker *worker, struct lane *lane, struct error *error);
/* Where the first element of a part lies in the caller's memory. */
static inline const char *piece_memory(const struct pieces *p, const struct part *part)
{
    return (const char *)p->array->memory + pieces_position(p, part, 0, 0) * allfold_type_bytes(p->array->type);
}
/* Reads them into host memory. */
allfold_status piece_read(const struct pieces *p, struct worker *worker, struct lane *lane, struct error *error);
/* Writes the piece's results, dense elements in host memory. */
allfold_status piece_store(const struct pieces *p, const struct lane *lane, struct sink *sink, const void *y, struct error *error);
/* Starts the device's copy of a part of an array with a layout to its memory, dense. */
allfold_status piece_gather(const struct pieces *p, const struct part *part, struct queue *queue, void *dense, struct error *error);
/* Starts the device's copy of them, dense in its memory, to their places in an array with a layout. */
allfold_status piece_scatter(const struct pieces *p, const struct lane *lane, const void *y, size_t bytes, void *array, struct error *error);
/* Where in host memory the lane finds what the device has at a place of the queue's buffer, after download. */
static inline void *lane_host(const struct lane *lane, size_t at) { return (char *)lane->queue->staging + at; }
static inline void *lane_device(const struct lane *lane, size_t at) { return (char *)lane->queue->buffer + at; }

/* ---- chunks.c: sources in chunks */

/* Reads the piece into the queue's staging buffer, dense. */
allfold_status chunks_read(const struct pieces *p, struct worker *worker, struct lane *lane, struct error *error);
/* Brings what pieces of the round need into the slab, if there is one. Local, unless ranks share it: then *error is agreed upon, before and
   behind. */
allfold_status slab_fill(struct pieces *p, uint64_t round, struct error *error);
uint64_t slab_bytes(const struct pieces *p);
void slab_close(struct slab *slab);
/* Whether the device folds the lane's piece where it lies in the slab; sets lane->x and the strides of the box then. */
bool slab_serves(const struct pieces *p, struct lane *lane);

/* ---- weights.c */

/* Refuses elements that are not exact in f64. */
allfold_status weights_check_type(allfold_type type, struct error *error);
/* The fold with weights in place of one without; ALLFOLD_FOLD_COUNT: there is none. */
allfold_fold weights_fold(allfold_fold fold);
/* The first that a fold refuses; count: there is none. */
uint64_t weights_refused(allfold_fold fold, const double *values, uint64_t count);
#define WEIGHTS_EXPECTED "expected finite weights that are not negative (sum takes any)"
/* Makes the layout of a source's weights. */
void weights_lay_out(struct weights *weights, const struct layout *layout, const struct rows_shape *shape);
/* Bytes of the weights of a piece, at most. */
size_t weights_bytes(const struct pieces *p);
/* Brings the weights of the lane's piece to the device, after the elements; missing ones have 0. */
allfold_status weights_load(const struct pieces *p, struct lane *lane, struct error *error);

/* ---- linear.c */

/* A source of the inner one's elements in the order of their indices, as elements of a type to which they are converted exactly (of uint64 to
   int64: their bits). Any range may be read, best whole granules. The inner one, of which no other part is read meanwhile, is closed by the
   caller, after it. */
allfold_status linear_open(struct source *inner, allfold_type type, uint64_t granule, struct source **source, struct error *error);
/* The granule in which two arrays are best read, as elements of that type. */
uint64_t linear_granule(const struct source *a, const struct source *b, allfold_type type);

/* ---- missing.c: of pieces of several rows of an array that omits; and of comparisons */

/* Before a piece is read; and behind it, when the lane says whether it has holes. */
void missing_begin(const struct pieces *p, struct lane *lane);
void missing_count(const struct pieces *p, struct lane *lane);
/* Brings elements, read into a buffer, to their places among n, and sets a byte for each. */
void missing_spread(const struct pieces *p, const struct piece *piece, uint64_t n, unsigned char *there);
/* Folds rows again that the device cannot fold with holes, and replaces their partials. Waits. */
allfold_status missing_mend(const struct pieces *p, struct lane *lane, unsigned char *partials, struct error *error);
/* Whether the element at place i of n is in what was read. */
static inline bool piece_has(const struct piece *piece, uint64_t n, uint64_t i)
{
    return piece->kept == NULL ? i < piece->count : i < n && (piece->kept[i / 64] >> i % 64 & 1) != 0;
}
/* Leaves the elements that both operands have of the lane's piece, if one lacks some; `second` is what was read of that one. */
void missing_join(const struct pieces *p, struct lane *lane, const struct piece *second);
/* Counts those that only one has, in the piece's partial. */
void missing_count_alone(const struct pieces *p, const struct lane *lane, struct partial *partial);

/* ---- fold_pieces.c */

/* Results of the part, whose partials are complete. */
struct batch {
    uint64_t unit, units;       /* whose results they are */
    struct part part;           /* of a part in place: the unit */
    struct range results;       /* of the part */
    struct range mine;          /* those of them that this rank finishes: all, or a share, counted from the batch's first */
    const struct range *shares; /* of each rank; NULL: each rank has results of its own */
    unsigned char *partials;    /* of mine, in host memory */
    uint64_t *counts;           /* the same, as a lane's */
};
/* Called for each batch in order: if the ranks have parts of the same rows, by all of them, and it is collective. */
typedef void batch_take(void *user, const struct batch *batch, struct error *error);

/* Starts the fold of the lane's piece: one row leaves *queue->partial, several leave partials at partials_at. lane->found is where they are
   after wait, and piece_partials. */
allfold_status piece_fold(const struct pieces *p, struct lane *lane, struct error *error);
/* Brings the lane's piece to the device and starts its fold: team_work's start. */
allfold_status piece_start(struct worker *worker, struct lane *lane, struct error *error);
/* Waits for them, and mends what missing elements need. */
allfold_status piece_partials(const struct pieces *p, struct lane *lane, struct error *error);

/* Calls fold for each group, as the part. Collective if fold is. */
void pieces_each_group(struct pieces *p, void (*fold)(struct pieces *p, void *user, struct error *error), void *user, struct error *error);

/* Folds the part batch by batch, from where its progress begins. Collective if the ranks have parts of the same rows; then an error is
   agreed upon. */
void pieces_fold(struct pieces *p, batch_take *take, void *user, struct error *error);

/* Runs a team over pieces with whole rows, from where its progress begins. */
allfold_status pieces_run_rows(struct pieces *p, const struct team_work *work, void *user, struct error *error);

/* Of a flat array: folds this rank's part into *partial, and sets *count to the elements in it. */
allfold_status pieces_fold_row(struct pieces *p, struct partial *partial, uint64_t *count, struct error *error);

/* ---- in_place.c: parts that the device uses where they lie. One call of the backend folds a batch. Partials that ranks exchange go through
   a window, memory that the ranks share, if the devices of one host can combine them; else through host memory, as all others do. */

enum {
    IN_PLACE_BYTES = 8 << 20, /* of the queue, where the device has memory of its own; of a batch's partials, and of its constants */
    IN_PLACE_CONSTANTS_AT = 2 * IN_PLACE_BYTES, /* in the context's memory: behind partials and scratch */
    IN_PLACE_MEMORY_BYTES = 3 * IN_PLACE_BYTES, /* behind it, counters of order statistics: */
    IN_PLACE_COUNTERS_BYTES = 5 << 18,
    GATHERED_BYTES = 256 << 20, /* of elements that are copied together at a time; more if a row has more */
    WINDOW_BYTES = 2 * IN_PLACE_BYTES /* of all ranks: each batch, or pass of order statistics, takes a half, in turn */
};

/* What becomes of partials: as in axis_work. All zero: they are left at axis_memory. */
struct wanted {
    const struct axis_finish *finish;
    struct softmax_constants *constants;
    void *sent; /* NULL; or where in the window they go, too */
};

/* The queue of what is worked on in place, and of results. */
static inline struct queue *in_place_queue(const struct allfold_context *ctx)
{
    return ctx->device->backend->own_memory ? ctx->queues[0] : ctx->queue;
}
/* The queue, in the caller's stream, and memory of the context. Local. */
allfold_status in_place_open(struct allfold_context *ctx, void *stream, struct error *error);
/* Opens the window, ctx->window, if the ranks and their devices can use it. Collective. */
allfold_status window_open(struct allfold_context *ctx, struct error *error);
/* Results of a batch: their partials fit the context's memory, and the window. */
uint64_t in_place_results(const struct pieces *p);
/* The batch of a unit. Local. */
struct batch in_place_batch(const struct pieces *p, uint64_t unit);
/* Starts the fold of a batch. What is wanted of its results [mine) is there after wait. If ranks exchange partials, it is collective, and
   *error is agreed upon before they are combined. */
allfold_status in_place_start(const struct pieces *p, const struct batch *batch, const struct wanted *wanted, struct error *error);
/* Brings the partials to host memory, until the next fold: those of this rank's part, or the combined ones of a batch that was started.
   Local. */
allfold_status in_place_partials(const struct pieces *p, struct batch *batch, struct error *error);
static inline struct softmax_constants *in_place_constants(const struct pieces *p)
{
    return (struct softmax_constants *)(void *)((char *)p->ctx->axis_memory + IN_PLACE_CONSTANTS_AT);
}
/* Some of a row array for the device: where they lie, or copied to axis_memory, `at` bytes behind its beginning. Local. */
const void *row_array_there(const struct pieces *p, const struct row_array *rows, struct range range, size_t at, struct error *error);
/* Host memory to the device, or back after the work in the caller's stream, of any length, through the queue's staging buffer. Local. */
allfold_status in_place_upload(struct allfold_context *ctx, const void *from, void *to, size_t bytes, struct error *error);
allfold_status in_place_download(struct allfold_context *ctx, void *stream, const void *from, void *to, size_t bytes, struct error *error);

/* ---- log_probs.c: what a caller has of each row. All local */

/* Finds out where the numbers lie. Those that lie on the device get a copy in host memory, if the host needs them: the part is not in place. */
allfold_status row_array_open(const struct pieces *p, struct row_array *rows, struct error *error);
void row_array_close(struct row_array *rows);
static inline const void *row_array_here(const struct row_array *rows) { return rows->copy != NULL ? rows->copy : rows->memory; }
/* The targets of p, if it has any. */
allfold_status targets_open(struct pieces *p, struct error *error);
void targets_close(struct pieces *p);

/* ---- softmax_axis.c */

struct softmax_output {
    bool logarithm;
    struct sink *sink; /* NULL on a rank that failed before; of an array in memory it takes results at the places of x */
    void *y;           /* NULL, or where the device writes this rank's part in place, with the strides of x */
    void *apart;       /* NULL, or where the device copies it, with the layout of x */
    allfold_type type;
    bool scaled; /* by constants: in the arithmetic of level exact */
};
/* The second pass with the constants of each row: over a flat part, of which pieces_cut_row made pieces, or one in memory that is not in
   place. Local. */
allfold_status pieces_normalise(struct pieces *p, const struct softmax_output *output, struct softmax_constants *constants, struct error *error);

/* ---- progress.c: all local */

/* Loads progress that is kept, if that was not done before; says of which device it is. */
allfold_status progress_load(struct allfold_context *ctx, struct resumable *progress, struct error *error);
/* Makes results durable that were written; the same, and then saves what is done of them. */
allfold_status progress_sync(struct allfold_context *ctx, struct resumable *progress, struct error *error);
allfold_status progress_save(struct allfold_context *ctx, struct resumable *progress, struct error *error);
bool progress_is_due(const struct resumable *progress);
/* Says what it has, such as 3 of 5 "shards", and counts the bytes of the input. */
void progress_tell(const struct allfold_context *ctx, const char *what, uint64_t done, uint64_t of, uint64_t bytes);
allfold_status progress_refuse(struct error *error);
