/* Softmax along an axis, and the second pass of that of a flat array. Rows that fit a piece are read once; of others a batch is folded, exchanged
   if the ranks have parts of its rows, and read again. Of what lies in place the device may do both passes of whole rows itself; else a batch's
   partials become constants on the device, if it gets them whole. */
#include "core/view.h"

#include "comm/vectors.h"
#include "fold/exponential.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { CONSTANTS_ALONE = 256 }; /* fewer are made without waking threads */

struct softmax_passes {
    struct pieces *p;
    const struct softmax_output *output;
    const struct batch *batch;           /* NULL: pieces have whole rows */
    struct softmax_constants *constants; /* of the batch, in host memory */
};

/* Where y lies in a queue's buffers, behind the constants of a piece. */
static size_t y_at(const struct softmax_passes *n)
{
    return n->p->more_at + pages(n->p->outer * n->p->inner * sizeof(struct softmax_constants));
}

static struct softmax_work work_of(const struct softmax_passes *n, const struct lane *lane)
{
    const struct softmax_output *const output = n->output;
    const struct part *const part = &lane->part;
    struct softmax_work work = {.x = lane->x, .y = lane_device(lane, y_at(n)), .x_type = n->p->array->type, .y_type = output->type,
                                .box = lane->box, .y_outer_stride = part->length * part->inner, .y_axis_stride = part->inner,
                                .logarithm = output->logarithm, .level = output->scaled ? ALLFOLD_LEVEL_EXACT : n->p->ctx->level};
    if (output->y != NULL) {
        work.y = (char *)output->y + (pieces_position(n->p, part, 0, 0) - (n->p->flat ? n->p->part.l : 0)) * allfold_type_bytes(output->type);
        work.y_outer_stride = n->p->array->outer_stride;
        work.y_axis_stride = n->p->array->axis_stride;
    }
    return work;
}

/* Starts the second pass over a piece, from constants on the device; of a flat array, which may have fewer elements than positions, from the
   host's. */
static allfold_status normalise(const struct softmax_passes *n, struct lane *lane, struct error *error)
{
    const struct backend *const backend = lane->queue->device->backend;
    struct softmax_work work = work_of(n, lane);
    phase_enter(n->p->ctx->comm.progress, PHASE_NORMALISE);
    if (n->p->flat) {
        work.box.length = lane->count;
        backend->softmax_axis(lane->queue, &work, n->constants, PLACE_HOST, error);
    } else {
        backend->softmax_axis(lane->queue, &work, n->p->in_place ? in_place_constants(n->p) : lane_device(lane, n->p->more_at), PLACE_DEVICE, error);
    }
    return error->status;
}

/* Starts y's way to host memory, or to its places in the device's. */
static allfold_status download(const struct softmax_passes *n, struct lane *lane, struct error *error)
{
    const size_t bytes = (size_t)(n->p->flat ? lane->count : part_elements(&lane->part)) * allfold_type_bytes(n->output->type);
    if (n->output->y != NULL)
        return ALLFOLD_OK;
    if (n->output->apart != NULL)
        return piece_scatter(n->p, lane, lane_device(lane, y_at(n)), allfold_type_bytes(n->output->type), n->output->apart, error);
    return lane->queue->device->backend->copy(lane->queue, lane_device(lane, y_at(n)), lane_host(lane, y_at(n)), bytes, error);
}

static allfold_status finish_piece(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct softmax_passes *const n = worker->team->user;
    phase_enter(n->p->ctx->comm.progress, PHASE_NORMALISE);
    if (lane->queue->device->backend->wait(lane->queue, error) != ALLFOLD_OK || n->output->y != NULL || n->output->apart != NULL)
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
    const struct softmax_work work = work_of(n, lane);
    phase_enter(n->p->ctx->comm.progress, PHASE_NORMALISE);
    if (!lane->queue->device->backend->softmax_axis(lane->queue, &work, NULL, PLACE_DEVICE, error))
        normalise_rows(n, lane, error);
    return error->status == ALLFOLD_OK ? download(n, lane, error) : error->status;
}

/* ---- rows that come in batches */

static allfold_status start_segment(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct softmax_passes *const n = worker->team->user;
    const struct pieces *const p = n->p;
    if (piece_load(p, worker, lane, error) != ALLFOLD_OK)
        return error->status;
    if (!p->flat) {
        const uint64_t first = pieces_first_result(p, lane->number / p->segments) - n->batch->results.first;
        const size_t bytes = part_results(&lane->part) * sizeof *n->constants;
        void *const constants = lane_host(lane, p->more_at);
        memcpy(constants, n->constants + first, bytes);
        p->ctx->device->backend->copy(lane->queue, constants, lane_device(lane, p->more_at), bytes, error);
    }
    if (error->status != ALLFOLD_OK || normalise(n, lane, error) != ALLFOLD_OK)
        return error->status;
    return download(n, lane, error);
}

/* The constants of a batch. Where the ranks have parts of the rows each computes a share, and all get all; collective then. */
static allfold_status find_constants(struct softmax_passes *n, const struct batch *batch, struct error *error)
{
    struct comm *const comm = &n->p->ctx->comm;
    const int threads = batch->mine.count < CONSTANTS_ALONE ? 1 : n->p->ctx->device->threads;
    free(n->constants);
    n->constants = malloc(batch->results.count * sizeof *n->constants);
    if (n->constants == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the constants of %" PRIu64 " rows", batch->results.count);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (uint64_t r = 0; r < (n->constants != NULL ? batch->mine.count : 0); r++)
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
    n->batch = batch;
    find_constants(n, batch, error);
    for (uint64_t round = pieces_rounds(n->p); error->status == ALLFOLD_OK && round-- > 0;) { /* the last slab is in memory */
        struct team team = pieces_team(n->p, (struct range){batch->unit, batch->units}, round, &work, n);
        if (slab_fill(n->p, round, error) == ALLFOLD_OK && team_run(&team, error) == ALLFOLD_OK)
            progress_check(n->p->ctx->comm.progress, error);
    }
}

/* ---- what lies in place */

/* The piece of a unit. */
static struct lane lane_of(const struct softmax_passes *n, uint64_t unit, struct error *error)
{
    struct lane lane = {.queue = in_place_queue(n->p->ctx), .number = unit};
    piece_load(n->p, NULL, &lane, error);
    return lane;
}

/* The second pass over a batch. Waits, as the constants are made again. */
static void normalise_unit(const struct softmax_passes *n, uint64_t unit, struct error *error)
{
    struct lane lane = lane_of(n, unit, error);
    if (lane.part.length > 0)
        normalise(n, &lane, error);
    lane.queue->device->backend->wait(lane.queue, error);
}

/* Constants that the host makes. */
static void take_in_place(void *user, const struct batch *batch, struct error *error)
{
    struct softmax_passes *const n = user;
    if (find_constants(n, batch, error) == ALLFOLD_OK
        && in_place_upload(n->p->ctx, n->constants, in_place_constants(n->p), batch->results.count * sizeof *n->constants, error) == ALLFOLD_OK)
        normalise_unit(n, batch->unit, error);
}

/* Both passes by the device, if it can. */
static bool normalise_whole(const struct softmax_passes *n, struct error *error)
{
    struct pieces *const p = n->p;
    const struct backend *const backend = p->ctx->device->backend;
    if (pieces_are_exchanged(p))
        return false;
    pieces_cut_in_place(p, UINT64_MAX);
    if (p->units == 0)
        return true;
    const struct lane lane = lane_of(n, 0, error);
    const struct softmax_work work = work_of(n, &lane);
    phase_enter(p->ctx->comm.progress, PHASE_NORMALISE);
    if (!backend->softmax_axis(lane.queue, &work, NULL, PLACE_DEVICE, error))
        return false;
    if (error->status == ALLFOLD_OK)
        backend->wait(lane.queue, error);
    return true;
}

static void normalise_in_place(struct softmax_passes *n, struct error *error)
{
    struct pieces *const p = n->p;
    const bool exchanged = pieces_are_exchanged(p);
    if (normalise_whole(n, error))
        return;
    pieces_cut_in_place(p, u64_min(in_place_results(p), IN_PLACE_BYTES / sizeof *n->constants));
    if (exchanged && !p->in_window) {
        pieces_fold(p, take_in_place, n, error);
        return;
    }
    for (uint64_t unit = 0; unit < p->units && !error->shared && (exchanged || error->status == ALLFOLD_OK); unit++) {
        const struct batch batch = in_place_batch(p, unit);
        if (in_place_start(p, &batch, &(struct wanted){.constants = in_place_constants(p)}, error) == ALLFOLD_OK)
            normalise_unit(n, unit, error);
    }
}

/* ---- rows whose constants are known */

/* Bytes that it needs in a queue. */
static struct axis_needs needs_of(const struct axis_array *array, const struct softmax_output *output)
{
    const size_t x_bytes = allfold_type_bytes(array->type), y_bytes = allfold_type_bytes(output->type);
    return (struct axis_needs){.widest = x_bytes > y_bytes ? x_bytes : y_bytes, .result = sizeof(struct softmax_constants), .element = y_bytes};
}

allfold_status pieces_normalise(struct pieces *p, const struct softmax_output *output, struct softmax_constants *constants, struct error *error)
{
    static const struct team_work work = {start_segment, finish_piece, NULL};
    const struct axis_needs needs = needs_of(p->array, output);
    const struct batch all = {.results = {0, part_results(&p->part)}};
    struct softmax_passes n = {.p = p, .output = output, .batch = &all, .constants = constants};
    if (!p->flat)
        pieces_cut_part(p, &needs);
    struct team team = pieces_team(p, (struct range){0, p->units}, 0, &work, &n);
    team.backwards = p->flat;
    return team_run(&team, error) == ALLFOLD_OK ? progress_check(p->ctx->comm.progress, error) : error->status;
}

/* ---- the calls */

static void normalise_group(struct pieces *p, void *user, struct error *error)
{
    static const struct team_work work = {start_rows, finish_piece, NULL};
    if (p->in_place)
        normalise_in_place(user, error);
    else if (pieces_are_whole(p))
        pieces_run_rows(p, &work, user, error);
    else
        pieces_fold(p, take_batch, user, error);
}

/* Writes softmax of the part. If the array has no elements, nothing is to be written, however many rows there are. */
static void normalise_part(struct pieces *p, const struct softmax_output *output, struct error *error)
{
    struct softmax_passes n = {.p = p, .output = output};
    const struct axis_array *const array = p->array;
    const bool once = p->in_place || pieces_are_whole(p);
    if (array->outer == 0 || array->length == 0 || array->inner == 0)
        return;
    progress_expect(p->ctx->comm.progress, (once ? 1 : 2) * part_elements(&p->part) * allfold_type_bytes(array->type));
    pieces_each_group(p, normalise_group, &n, error);
    free(n.constants);
}

allfold_status core_softmax_stream(struct allfold_context *ctx, bool logarithm, struct axis_array *array, struct sink *sink,
                                   struct error *error)
{
    const struct softmax_output output = {.logarithm = logarithm, .sink = sink, .type = sink != NULL ? sink->type : ALLFOLD_F32};
    struct layout layout;
    struct pieces p = {.ctx = ctx, .array = array, .monoid = softmax_monoid(array->type, output.type, logarithm, ctx->level)};
    const struct axis_needs needs = needs_of(array, &output);
    array->layout = &layout;
    monoid_has_room(p.monoid, array->length, error);
    if (pieces_cut(&p, array, &needs, error) != ALLFOLD_OK)
        return error->status;
    normalise_part(&p, &output, error);
    if (error->shared)
        return error->status;
    source_check(array->source, error);
    return comm_agree(&ctx->comm, error);
}

allfold_status core_softmax_axis(struct allfold_context *ctx, bool logarithm, const struct axis_input *input, struct sink *sink,
                                 struct error *error)
{
    struct view view = {.input = input, .p = {.ctx = ctx, .monoid = softmax_monoid(input->type, sink->type, logarithm, ctx->level)}, .y = sink->memory};
    if (view_begin(&view, error) == ALLFOLD_OK) {
        const struct softmax_output output = {logarithm, sink, view.y_in_place ? view.y : NULL, view.y_apart ? view.y : NULL, sink->type, false};
        const struct axis_needs needs = needs_of(&view.array, &output);
        if (!view.p.in_place)
            pieces_cut_part(&view.p, &needs);
        normalise_part(&view.p, &output, error);
    }
    view_end(&view, error);
    return ctx->comm.size > 1 && !error->shared ? comm_agree(&ctx->comm, error) : error->status;
}
