/* Folds and softmax along an axis of a source, such as a file: elements stream through the queues of a team (team.h), and results go
   to sinks. Memory is bounded, whatever the array's shape. The calls are axis_stream_reduce.c and axis_stream_softmax.c; what they
   share is axis_stream.c: the rank's part, its pieces, and their way to the device and back. */
#pragma once

#include "core/team.h"
#include "fold/axis.h"
#include "fold/rows.h"

/* Progress that is kept, for a run that goes on with it. */
struct axis_checkpoint {
    const struct stream_hook *hook; /* whose `before` was called, on all ranks */
    struct stream stream; /* done: units that are finished, and their results durable; state: what is folded of the next ones */
    uint64_t furthest;    /* the most units that any rank has done */
    struct sink *const *sinks; /* that results go to */
    int sink_count;
};

/* The whole array, the same on all ranks: its elements in row-major order are those of the source. */
struct axis_array {
    struct source *source; /* NULL on a rank that failed before; *error then says why */
    allfold_type type;
    uint64_t outer, length, inner;
    allfold_cut cut;       /* set by the call: what the ranks share out */
    struct rows_shape shape; /* for messages, and sources in chunks */
    bool omits;              /* a row's missing elements are left out; else they are an error */
    struct axis_checkpoint *checkpoint; /* NULL: none, on all ranks */
};

/* Where one of a fold's results goes: values of rows_type, and indices (int64). Either may be NULL. Result (o, i) has place
   o * inner + i. */
struct axis_sinks {
    struct sink *values, *indices;
};

/* Folds the array along its length. sinks: allfold_result_count of them. On success all results are written, each by one rank.
   Collective. */
allfold_status core_reduce_stream(struct allfold_context *ctx, const struct fold_call *call, struct axis_array *array,
                                  const struct axis_sinks *sinks, struct error *error);

/* Writes softmax (or its logarithm) along the length to sink, in the sink's type, element i to place i; sink is NULL on a rank that
   failed before. Elements are read once if a piece has room for whole rows, else twice. Collective. */
allfold_status core_softmax_stream(struct allfold_context *ctx, bool logarithm, struct axis_array *array, struct sink *sink,
                                   struct error *error);

/* ---- what the two share */

/* Elements of the whole array. */
struct axis_part {
    uint64_t o, outer, l, length, i, inner;
};

/* A rank's part, and how it is cut: into units (planes, or some columns of one) and these, if they do not fit a piece, into
   segments. A piece is a unit, or a segment of one. All follows from shape, types and the size of shards alone. */
struct axis_stream {
    struct allfold_context *ctx;
    struct axis_array *array;
    enum monoid monoid;
    size_t stride;          /* of partials */
    struct axis_part part;
    uint64_t longest, least;        /* lengths of the ranks' parts */
    uint64_t outer, length, inner;  /* of a piece, at most */
    uint64_t stripes, units, segments; /* stripes: of a plane, and segments: of a unit, at least one; units: of the part */
    size_t bounce_at, partials_at, more_at, queue_bytes; /* places in a queue's buffers, behind a piece's elements */
    /* the same, if the array omits: bytes that say which elements of the piece are there, and which of a chunk; counts of each result; the
       elements of one row, and partials of rows */
    size_t there_at, chunk_there_at, counts_at, row_at, again_at;
    double pause_at; /* not 0: workers make a pause then (clock_seconds), so that progress can be saved */
};

/* What the cut depends on besides the part. */
struct axis_room {
    size_t widest;          /* bytes of an element of input or output, whichever is longer */
    size_t result, element; /* bytes that the caller needs at more_at for each result and each element of a piece, */
    size_t fixed;           /* and beside these */
};

/* Chooses the cut, and sets all but ctx, array and monoid. */
void axis_stream_cut(struct axis_stream *s, const struct axis_room *room);

struct axis_part axis_stream_piece(const struct axis_stream *s, uint64_t unit, uint64_t segment);
/* Results of the part are counted unit by unit, inside of a unit row-major. The number of a unit's first result; for units: of all. */
uint64_t axis_stream_first(const struct axis_stream *s, uint64_t unit);
/* The place of a result among those of the array, and how many results from there on have places that follow. */
uint64_t axis_stream_place(const struct axis_stream *s, uint64_t result, uint64_t *run);
/* Whether pieces have all elements along the axis of the whole array: on all ranks, or on none if they exchange partials. */
bool axis_stream_is_whole(const struct axis_stream *s);
/* So many pieces, whose elements follow one another where possible, are read as one shard. */
uint64_t axis_stream_shard(const struct axis_stream *s);

/* Runs pieces' work by a team: tasks [first, count), `shard` of which one worker takes after another. If the run is asked to stop it
   ends behind tasks that are done. Local. */
struct axis_tasks {
    const struct team_work *work;
    void *user;
    uint64_t count, shard;
    uint64_t first; /* set to the task behind those that are done */
    /* NULL, or called whenever progress is to be saved, and at the end: while no worker is at work. May set `first`. */
    void (*save)(struct axis_stream *s, struct axis_tasks *tasks, struct error *error);
};
allfold_status axis_stream_run(struct axis_stream *s, struct axis_tasks *tasks, struct error *error);

/* The same for pieces with whole rows, of which each is a task: from where the checkpoint ends. */
allfold_status axis_stream_run_rows(struct axis_stream *s, const struct team_work *work, void *user, struct error *error);

/* Whether a worker is to leave a long task unfinished, having done something of it or nothing. */
bool axis_stream_pauses(const struct axis_stream *s, bool done_something);

/* Counts bytes of the input that the checkpoint has. */
void axis_stream_tell(const struct axis_stream *s, uint64_t bytes);

/* Makes results that this rank has written durable. Then saves its progress, s->array->checkpoint->stream. Local. */
allfold_status axis_stream_sync(const struct axis_stream *s, struct error *error);
allfold_status axis_stream_save(const struct axis_stream *s, struct error *error);

/* ---- called by workers, for one of their queues, for which they wait */

struct axis_task {
    struct worker *worker;
    struct queue *queue;
    struct axis_part piece;
    uint64_t ahead; /* elements that the worker takes next, if they follow these in the array */
    const void *x;  /* where the device has the piece's elements, dense */
    const char *host;       /* where the host has them */
    bool holes;             /* some are missing */
    const uint64_t *counts; /* of each result: elements that are not missing, in host memory; NULL: none is left out */
};

/* Brings the piece's elements to the device, and sets task->x. */
allfold_status axis_stream_load(const struct axis_stream *s, struct axis_task *task, struct error *error);
/* Folds them. *partials is host memory until the queue is used again. */
allfold_status axis_stream_fold(const struct axis_stream *s, const struct axis_task *task, const unsigned char **partials,
                                struct error *error);
/* Writes the piece's results, dense elements in host memory. */
allfold_status axis_stream_store(const struct axis_stream *s, const struct axis_task *task, struct sink *sink, const void *y,
                                 struct error *error);

/* ---- axis_chunks.c: sources in chunks */

/* In so many indices of dimensions [first, end), and multiples of it, no chunk is cut, as a rule. */
uint64_t axis_chunks_grain(const struct source *source, uint32_t first, uint32_t end);
/* Reads the piece into the queue's staging buffer, dense. */
allfold_status axis_chunks_read(const struct axis_stream *s, struct axis_task *task, struct error *error);

/* ---- axis_stream_missing.c: of arrays that omit */

/* Before a piece is read; and behind it, when *task says whether it has holes. */
void axis_missing_begin(const struct axis_stream *s, struct axis_task *task);
void axis_missing_count(const struct axis_stream *s, struct axis_task *task);
/* Brings elements, read into a buffer, to their places among n, and sets a byte for each. */
void axis_missing_spread(const struct axis_stream *s, const struct piece *piece, uint64_t n, unsigned char *there);
/* Folds rows that the device cannot fold with holes, and then replaces their partials, in host memory. What is downloaded takes the place
   of the elements, so the former comes before. */
allfold_status axis_missing_fold(const struct axis_stream *s, const struct axis_task *task, struct error *error);
void axis_missing_take(const struct axis_stream *s, const struct axis_task *task, unsigned char *partials);

/* ---- axis_stream_batches.c: rows that do not fit a piece, or of which several ranks have parts */

/* Results of the part, whose partials are complete. */
struct axis_rows {
    uint64_t unit, units;       /* whose results they are */
    struct range results;       /* of the part */
    struct range mine;          /* those of them that this rank finishes: all, or a share, counted from the batch's first */
    const struct range *shares; /* of each rank; NULL: each rank has results of its own */
    const unsigned char *partials; /* of mine */
    const uint64_t *counts;        /* the same, as a task's */
};
/* Called for each batch in order: if the ranks have parts of the same rows, by all of them, and it is collective. */
typedef void axis_take(void *user, const struct axis_rows *batch, struct error *error);

/* Folds the part batch by batch. Collective if the ranks have parts of the same rows; then an error is agreed upon. */
void axis_stream_batches(struct axis_stream *s, axis_take *take, void *user, struct error *error);
/* Whether they have. */
static inline bool axis_stream_is_exchanged(const struct axis_stream *s)
{
    return s->array->cut == ALLFOLD_CUT_AXIS && s->ctx->comm.size > 1;
}
