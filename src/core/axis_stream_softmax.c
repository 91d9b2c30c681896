/* Softmax along an axis of a source: rows that fit a piece are read once; of others a batch is folded, exchanged if the ranks have parts
   of its rows, and read again. See axis_stream.h. */
#include "core/axis_stream.h"

#include "comm/vectors.h"
#include "fold/exponential.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct normalisation {
    struct axis_stream s;
    struct sink *sink;
    bool logarithm;
    const struct axis_rows *batch;       /* NULL: pieces have whole rows */
    struct softmax_constants *constants; /* of the batch, in host memory */
};

static size_t pages(uint64_t bytes) { return (size_t)((bytes + 4095) / 4096 * 4096); }

/* Where y lies in a queue's buffers, behind the constants of a piece. */
static size_t y_at(const struct normalisation *n)
{
    return n->s.more_at + pages(n->s.outer * n->s.inner * sizeof(struct softmax_constants));
}

static struct softmax_axis_work work_of(const struct normalisation *n, const struct axis_task *task)
{
    const struct axis_part *const piece = &task->piece;
    const uint64_t plane = piece->length * piece->inner;
    return (struct softmax_axis_work){.x = task->x, .y = (char *)task->queue->buffer + y_at(n), .x_type = n->s.array->type,
                                      .y_type = n->sink->type, .box = {piece->outer, piece->length, piece->inner, plane, piece->inner},
                                      .y_outer_stride = plane, .y_axis_stride = piece->inner, .logarithm = n->logarithm,
                                      .level = n->s.ctx->level};
}

/* The second pass over a piece, from constants in the queue's staging buffer. */
static allfold_status normalise(const struct normalisation *n, const struct axis_task *task, struct error *error)
{
    const struct softmax_axis_work work = work_of(n, task);
    const struct queue *const queue = task->queue;
    const struct backend *const backend = queue->device->backend;
    const size_t bytes = task->piece.outer * task->piece.inner * sizeof(struct softmax_constants);
    void *const constants = (char *)queue->buffer + n->s.more_at;
    phase_enter(n->s.ctx->comm.progress, PHASE_NORMALISE);
    if (backend->upload(task->queue, (char *)queue->staging + n->s.more_at, constants, bytes, error) != ALLFOLD_OK)
        return error->status;
    return backend->normalise_axis(task->queue, &work, constants, error);
}

/* Brings y to host memory, and writes it. */
static allfold_status store(const struct normalisation *n, const struct axis_task *task, struct error *error)
{
    const struct backend *const backend = task->queue->device->backend;
    const uint64_t elements = task->piece.outer * task->piece.length * task->piece.inner;
    const void *y;
    if (backend->download(task->queue, (char *)task->queue->buffer + y_at(n), elements * allfold_type_bytes(n->sink->type), &y, error)
            != ALLFOLD_OK
        || backend->wait(task->queue, error) != ALLFOLD_OK)
        return error->status;
    return axis_stream_store(&n->s, task, n->sink, y, error);
}

static allfold_status finish_nothing(struct worker *worker, struct lane *lane, struct error *error)
{
    (void)worker;
    (void)lane;
    return error->status;
}

/* ---- rows that fit a piece */

/* Both passes by the device at once, if it can. */
static bool normalise_at_once(const struct normalisation *n, const struct axis_task *task, struct error *error)
{
    const struct softmax_axis_work work = work_of(n, task);
    const struct backend *const backend = task->queue->device->backend;
    phase_enter(n->s.ctx->comm.progress, PHASE_NORMALISE);
    return backend->softmax_axis != NULL && backend->softmax_axis(task->queue, &work, error);
}

static void normalise_rows(const struct normalisation *n, const struct axis_task *task, struct error *error)
{
    struct softmax_constants *const constants = (void *)((char *)task->queue->staging + n->s.more_at);
    const unsigned char *partials;
    if (axis_stream_fold(&n->s, task, &partials, error) != ALLFOLD_OK)
        return;
    for (uint64_t r = 0; r < task->piece.outer * task->piece.inner; r++)
        softmax_constants_set(n->s.monoid, (const struct partial *)(partials + r * n->s.stride), &constants[r]);
    normalise(n, task, error);
}

static allfold_status start_rows(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct normalisation *const n = worker->team->user;
    const struct axis_stream *const s = &n->s;
    struct axis_task task = {.worker = worker, .queue = lane->queue, .piece = axis_stream_piece(s, lane->window.elements.first, 0)};
    task.ahead = s->stripes == 1 ? lane->window.ahead * s->outer * s->length * s->inner : 0;
    if (axis_stream_load(s, &task, error) != ALLFOLD_OK)
        return error->status;
    if (!normalise_at_once(n, &task, error))
        normalise_rows(n, &task, error);
    return error->status != ALLFOLD_OK ? error->status : store(n, &task, error);
}

/* ---- rows that come in batches */

static allfold_status start_segment(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct normalisation *const n = worker->team->user;
    const struct axis_stream *const s = &n->s;
    const uint64_t number = lane->window.elements.first, unit = n->batch->unit + number / s->segments, segment = number % s->segments;
    struct axis_task task = {.worker = worker, .queue = lane->queue, .piece = axis_stream_piece(s, unit, segment)};
    task.ahead = s->stripes == 1 ? u64_min(lane->window.ahead, s->segments - 1 - segment) * s->length * s->inner : 0;
    if (axis_stream_load(s, &task, error) != ALLFOLD_OK)
        return error->status;
    memcpy((char *)lane->queue->staging + s->more_at, n->constants + (axis_stream_first(s, unit) - n->batch->results.first),
           task.piece.outer * task.piece.inner * sizeof *n->constants);
    return normalise(n, &task, error) != ALLFOLD_OK ? error->status : store(n, &task, error);
}

/* The constants of a batch. Where the ranks have parts of the rows each computes a share, and all get all; collective then. */
static allfold_status find_constants(struct normalisation *n, const struct axis_rows *batch, struct error *error)
{
    struct comm *const comm = &n->s.ctx->comm;
    free(n->constants);
    n->constants = malloc(batch->results.count * sizeof *n->constants);
    if (n->constants == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the constants of %" PRIu64 " rows", batch->results.count);
    for (uint64_t r = 0; n->constants != NULL && r < batch->mine.count; r++)
        softmax_constants_set(n->s.monoid, (const struct partial *)(batch->partials + r * n->s.stride), &n->constants[batch->mine.first + r]);
    if (batch->shares == NULL)
        return error->status;
    const struct comm_rows gather = {n->constants, 1, batch->results.count, sizeof *n->constants, batch->shares};
    return comm_gather_rows(comm, &gather, error);
}

static void take_batch(void *user, const struct axis_rows *batch, struct error *error)
{
    static const struct team_work work = {start_segment, finish_nothing};
    struct normalisation *const n = user;
    struct axis_tasks tasks = {&work, n, batch->units * n->s.segments, axis_stream_shard(&n->s), 0, NULL};
    n->batch = batch;
    if (find_constants(n, batch, error) == ALLFOLD_OK)
        axis_stream_run(&n->s, &tasks, error);
}

allfold_status core_softmax_stream(struct allfold_context *ctx, bool logarithm, struct axis_array *array, struct sink *sink,
                                   struct error *error)
{
    static const struct team_work work = {start_rows, finish_nothing};
    const allfold_type y_type = sink != NULL ? sink->type : ALLFOLD_F32;
    const size_t x_bytes = allfold_type_bytes(array->type), y_bytes = allfold_type_bytes(y_type);
    struct normalisation n = {.s = {.ctx = ctx, .array = array, .monoid = softmax_monoid(array->type, y_type, logarithm, ctx->level)},
                              .sink = sink, .logarithm = logarithm};
    monoid_has_room(n.s.monoid, array->length, error);
    if (comm_agree(&ctx->comm, error) != ALLFOLD_OK)
        return error->status;
    axis_stream_cut(&n.s, &(struct axis_room){.widest = x_bytes > y_bytes ? x_bytes : y_bytes, .result = sizeof *n.constants,
                                              .element = y_bytes});
    const bool whole = axis_stream_is_whole(&n.s);
    progress_expect(ctx->comm.progress, (whole ? 1 : 2) * n.s.part.outer * n.s.part.length * n.s.part.inner * x_bytes);
    if (array->outer == 0 || array->length == 0 || array->inner == 0)
        ; /* nothing to write, however many rows there are */
    else if (whole)
        axis_stream_run_rows(&n.s, &work, &n, error);
    else
        axis_stream_batches(&n.s, take_batch, &n, error);
    free(n.constants);
    if (error->shared)
        return error->status;
    source_check(array->source, error);
    return comm_agree(&ctx->comm, error);
}
