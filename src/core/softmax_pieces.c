/* Softmax along an axis, piece by piece: rows that fit a piece are read once; of others a batch is folded, exchanged if the ranks have parts
   of its rows, and read again. See pieces.h. */
#include "core/pieces.h"

#include "comm/vectors.h"
#include "fold/exponential.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct softmax_passes {
    struct pieces *p;
    const struct softmax_output *output;
    const struct batch *batch;           /* NULL: pieces have whole rows */
    struct softmax_constants *constants; /* of the batch, in host memory */
};

static size_t pages(uint64_t bytes) { return (size_t)((bytes + 4095) / 4096 * 4096); }

/* Where y lies in a queue's buffers, behind the constants of a piece. */
static size_t y_at(const struct softmax_passes *n)
{
    return n->p->more_at + pages(n->p->outer * n->p->inner * sizeof(struct softmax_constants));
}

static struct softmax_axis_work work_of(const struct softmax_passes *n, const struct lane *lane)
{
    const struct softmax_output *const output = n->output;
    const struct part *const part = &lane->part;
    struct softmax_axis_work work = {.x = lane->x, .y = lane_device(lane, y_at(n)), .x_type = n->p->array->type, .y_type = output->type,
                                     .box = lane->box, .y_outer_stride = part->length * part->inner, .y_axis_stride = part->inner,
                                     .logarithm = output->logarithm, .level = n->p->ctx->level};
    if (output->y != NULL) {
        work.y = (char *)output->y + (pieces_position(n->p, part, 0, 0) - (n->p->flat ? n->p->part.l : 0)) * allfold_type_bytes(output->type);
        work.y_outer_stride = n->p->array->outer_stride;
        work.y_axis_stride = n->p->array->axis_stride;
    }
    return work;
}

/* Starts the second pass over a piece, from constants on the device; of a flat array from the host's. */
static allfold_status normalise(const struct softmax_passes *n, struct lane *lane, struct error *error)
{
    const struct backend *const backend = lane->queue->device->backend;
    const struct softmax_axis_work work = work_of(n, lane);
    phase_enter(n->p->ctx->comm.progress, PHASE_NORMALISE);
    if (!n->p->flat)
        return backend->normalise_axis(lane->queue, &work, lane_device(lane, n->p->more_at), error);
    const struct softmax_work row = {work.x, work.y, work.x_type, work.y_type, lane->count, work.logarithm, work.level, false};
    return backend->normalise(lane->queue, &row, n->constants, error);
}

/* Starts y's way to host memory. */
static allfold_status download(const struct softmax_passes *n, struct lane *lane, struct error *error)
{
    const size_t bytes = (size_t)(n->p->flat ? lane->count : part_elements(&lane->part)) * allfold_type_bytes(n->output->type);
    if (n->output->y != NULL)
        return ALLFOLD_OK;
    return lane->queue->device->backend->download(lane->queue, lane_device(lane, y_at(n)), bytes, lane_host(lane, y_at(n)), error);
}

static allfold_status finish_piece(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct softmax_passes *const n = worker->team->user;
    phase_enter(n->p->ctx->comm.progress, PHASE_NORMALISE);
    if (lane->queue->device->backend->wait(lane->queue, error) != ALLFOLD_OK || n->output->y != NULL)
        return error->status;
    return piece_store(n->p, lane, n->output->sink, lane_host(lane, y_at(n)), error);
}

/* ---- rows that fit a piece */

/* Both passes, one after the other. */
static allfold_status normalise_rows(const struct softmax_passes *n, struct lane *lane, struct error *error)
{
    const struct pieces *const p = n->p;
    const struct axis_work work = {.monoid = p->monoid, .type = p->array->type, .x = lane->x, .box = lane->box,
                                   .partials = lane_device(lane, p->partials_at), .bytes = p->more_at - p->partials_at,
                                   .constants = lane_device(lane, p->more_at)};
    phase_enter(p->ctx->comm.progress, PHASE_FOLD);
    return lane->queue->device->backend->fold_axis(lane->queue, &work, error) == ALLFOLD_OK ? normalise(n, lane, error) : error->status;
}

static allfold_status start_rows(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct softmax_passes *const n = worker->team->user;
    if (piece_load(n->p, worker, lane, error) != ALLFOLD_OK)
        return error->status;
    const struct softmax_axis_work work = work_of(n, lane);
    phase_enter(n->p->ctx->comm.progress, PHASE_NORMALISE);
    if (!lane->queue->device->backend->softmax_axis(lane->queue, &work, error))
        normalise_rows(n, lane, error);
    return error->status == ALLFOLD_OK ? download(n, lane, error) : error->status;
}

/* ---- rows that come in batches */

static allfold_status start_segment(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct softmax_passes *const n = worker->team->user;
    const struct pieces *const p = n->p;
    const struct queue *const queue = lane->queue;
    if (piece_load(p, worker, lane, error) != ALLFOLD_OK)
        return error->status;
    const uint64_t first = pieces_first_result(p, lane->number / p->segments) - n->batch->results.first;
    const size_t bytes = part_results(&lane->part) * sizeof *n->constants;
    void *const constants = lane_host(lane, p->more_at);
    memcpy(constants, n->constants + first, bytes);
    if (queue->device->backend->upload(lane->queue, constants, lane_device(lane, p->more_at), bytes, error) != ALLFOLD_OK
        || normalise(n, lane, error) != ALLFOLD_OK)
        return error->status;
    return download(n, lane, error);
}

/* The constants of a batch. Where the ranks have parts of the rows each computes a share, and all get all; collective then. */
static allfold_status find_constants(struct softmax_passes *n, const struct batch *batch, struct error *error)
{
    struct comm *const comm = &n->p->ctx->comm;
    free(n->constants);
    n->constants = malloc(batch->results.count * sizeof *n->constants);
    if (n->constants == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the constants of %" PRIu64 " rows", batch->results.count);
    for (uint64_t r = 0; n->constants != NULL && r < batch->mine.count; r++)
        softmax_constants_set(n->p->monoid, (const struct partial *)(batch->partials + r * n->p->stride), &n->constants[batch->mine.first + r]);
    if (batch->shares == NULL)
        return error->status;
    const struct comm_rows gather = {n->constants, 1, batch->results.count, sizeof *n->constants, batch->shares};
    return comm_gather_rows(comm, &gather, error);
}

static void take_batch(void *user, const struct batch *batch, struct error *error)
{
    static const struct team_work work = {start_segment, finish_piece, NULL};
    struct softmax_passes *const n = user;
    struct team team = pieces_team(n->p, (struct range){batch->unit, batch->units}, &work, n);
    n->batch = batch;
    if (find_constants(n, batch, error) == ALLFOLD_OK && team_run(&team, error) == ALLFOLD_OK)
        progress_check(n->p->ctx->comm.progress, error);
}

/* ---- flat arrays */

static allfold_status start_flat(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct softmax_passes *const n = worker->team->user;
    if (piece_load(n->p, worker, lane, error) != ALLFOLD_OK || normalise(n, lane, error) != ALLFOLD_OK)
        return error->status;
    return download(n, lane, error);
}

allfold_status pieces_normalise(struct pieces *p, const struct softmax_output *output, struct softmax_constants *constants,
                                struct error *error)
{
    static const struct team_work work = {start_flat, finish_piece, NULL};
    struct softmax_passes n = {.p = p, .output = output, .constants = constants};
    struct team team = pieces_team(p, (struct range){0, 1}, &work, &n);
    team.backwards = true;
    return team_run(&team, error) == ALLFOLD_OK ? progress_check(p->ctx->comm.progress, error) : error->status;
}

/* ---- the calls */

struct axis_room softmax_room(const struct axis_array *array, const struct softmax_output *output)
{
    const size_t x_bytes = allfold_type_bytes(array->type), y_bytes = allfold_type_bytes(output->type);
    return (struct axis_room){.widest = x_bytes > y_bytes ? x_bytes : y_bytes, .result = sizeof(struct softmax_constants), .element = y_bytes};
}

void pieces_softmax(struct pieces *p, const struct softmax_output *output, struct error *error)
{
    static const struct team_work work = {start_rows, finish_piece, NULL};
    struct softmax_passes n = {.p = p, .output = output};
    const bool whole = pieces_are_whole(p);
    progress_expect(p->ctx->comm.progress, (whole ? 1 : 2) * part_elements(&p->part) * allfold_type_bytes(p->array->type));
    if (whole)
        pieces_run_rows(p, &work, &n, error);
    else
        pieces_fold(p, take_batch, &n, error);
    free(n.constants);
}

allfold_status core_softmax_stream(struct allfold_context *ctx, bool logarithm, struct axis_array *array, struct sink *sink,
                                   struct error *error)
{
    const struct softmax_output output = {logarithm, sink, NULL, sink != NULL ? sink->type : ALLFOLD_F32};
    struct pieces p = {.ctx = ctx, .array = array, .monoid = softmax_monoid(array->type, output.type, logarithm, ctx->level)};
    monoid_has_room(p.monoid, array->length, error);
    if (comm_agree(&ctx->comm, error) != ALLFOLD_OK)
        return error->status;
    const struct axis_room room = softmax_room(array, &output);
    pieces_cut(&p, array, &room);
    if (array->outer > 0 && array->length > 0 && array->inner > 0) /* else nothing is to be written, however many rows there are */
        pieces_softmax(&p, &output, error);
    if (error->shared)
        return error->status;
    source_check(array->source, error);
    return comm_agree(&ctx->comm, error);
}
