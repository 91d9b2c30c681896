/* Parts that the device uses where they lie, and the window through which the devices of one host combine partials: see pieces.h.

   The device of each rank writes its partials of a batch to its slot of the window. When all have agreed that theirs are there, each device combines
   all ranks', in rank order. A half of the window is written again two batches later. By then each rank has agreed on the batch
   between, and before that it waited for its queue, so it has read all of the half. Passes of order statistics take halves in the same turns (order_passes.c). */
#include "core/pieces.h"

#include "comm/vectors.h"

#include <string.h>

allfold_status in_place_open(struct allfold_context *ctx, void *stream, struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    if ((backend->own_memory && core_queues(ctx, 1, IN_PLACE_BYTES, error) != ALLFOLD_OK)
        || backend->enter(in_place_queue(ctx), stream, error) != ALLFOLD_OK || ctx->axis_memory != NULL)
        return error->status;
    return backend->allocate(ctx->device, IN_PLACE_MEMORY_BYTES + IN_PLACE_COUNTERS_BYTES, &ctx->axis_memory, error);
}

uint64_t in_place_results(const struct pieces *p)
{
    return IN_PLACE_BYTES / p->stride / (p->in_window ? (uint64_t)p->ctx->comm.size : 1);
}

struct batch in_place_batch(const struct pieces *p, uint64_t unit)
{
    const struct part part = pieces_at(p, unit);
    const uint64_t first = (part.o - p->part.o) * p->part.inner + part.i - p->part.i, count = part_results(&part);
    return (struct batch){.unit = unit, .units = 1, .part = part, .results = {first, count}, .mine = {0, count}};
}

const void *row_array_there(const struct pieces *p, const struct row_array *rows, struct range range, size_t at, struct error *error)
{
    const char *const mine = rows->memory != NULL ? (const char *)rows->memory + range.first * sizeof(uint64_t) : NULL;
    char *const to = (char *)p->ctx->axis_memory + at;
    if (mine == NULL || rows->there || error->status != ALLFOLD_OK)
        return mine;
    in_place_upload(p->ctx, mine, to, range.count * sizeof(uint64_t), error);
    return to;
}

static struct axis_targets targets_there(const struct pieces *p, struct range results, struct error *error)
{
    const int64_t *const of = row_array_there(p, &p->targets.of, results, IN_PLACE_CONSTANTS_AT, error);
    return (struct axis_targets){of, p->targets.ignore, p->array->length};
}

/* Sets where this rank's elements of a batch lie: where they are, or together. */
static allfold_status find_elements(const struct pieces *p, const struct part *part, struct axis_work *work, struct error *error)
{
    struct allfold_context *const ctx = p->ctx;
    work->box = (struct box){part->outer, part->length, part->inner, p->array->outer_stride, p->array->axis_stride};
    if (part_elements(part) == 0)
        return error->status;
    if (!p->array->gathered) {
        work->x = piece_memory(p, part);
        return error->status;
    }
    work->box.outer_stride = part->length * part->inner;
    work->box.axis_stride = part->inner;
    if (core_keep(ctx, &ctx->gathered, part_elements(part) * allfold_type_bytes(p->array->type), error) == ALLFOLD_OK)
        piece_gather(p, part, in_place_queue(ctx), ctx->gathered.memory, error);
    work->x = ctx->gathered.memory;
    return error->status;
}

/* Folds this rank's elements of a batch. Partials go to the context's memory, that many bytes behind its beginning. */
static allfold_status fold(const struct pieces *p, const struct batch *batch, const struct wanted *wanted, size_t at, struct error *error)
{
    struct allfold_context *const ctx = p->ctx;
    const struct axis_array *const array = p->array;
    const struct part part = batch->part;
    struct axis_work work = {.monoid = p->monoid, .type = array->type, .first = part.l,
                             .partials = (char *)ctx->axis_memory + at, .bytes = IN_PLACE_CONSTANTS_AT - at,
                             .finish = wanted->finish, .constants = wanted->constants, .window = {wanted->sent, batch->results.count * p->stride, UINT64_MAX}, .targets = targets_there(p, batch->results, error)};
    if (progress_check(ctx->comm.progress, error) != ALLFOLD_OK || error->status != ALLFOLD_OK || find_elements(p, &part, &work, error) != ALLFOLD_OK)
        return error->status;
    phase_enter(ctx->comm.progress, PHASE_FOLD);
    if (ctx->device->backend->fold_axis(in_place_queue(ctx), &work, error) == ALLFOLD_OK && (work.finish == NULL || !work.finish->by_words))
        atomic_fetch_add(&ctx->comm.progress->done, part_elements(&part) * allfold_type_bytes(array->type));
    return error->status;
}

/* ---- the window */

allfold_status window_open(struct allfold_context *ctx, struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    int able = 0, pinned = 0;
    if (ctx->window.tried || comm_count(&ctx->comm, backend->combines, &able, error) != ALLFOLD_OK)
        return error->status;
    if (able == ctx->comm.size && comm_window_open(&ctx->comm, WINDOW_BYTES, &ctx->window.memory, error) != ALLFOLD_OK)
        return error->status;
    ctx->window.tried = true;
    if (ctx->window.memory != NULL)
        comm_count(&ctx->comm, backend->pin(ctx->device, ctx->window.memory, WINDOW_BYTES), &pinned, error);
    ctx->window.pinned = pinned == ctx->comm.size;
    return error->status;
}

/* A rank's slot in the half of the batch that was begun last. */
static unsigned char *slot_of(const struct pieces *p, const struct batch *batch, int rank)
{
    const struct allfold_context *const ctx = p->ctx;
    return (unsigned char *)ctx->window.memory + ctx->window.turns % 2 * IN_PLACE_BYTES + (uint64_t)rank * batch->results.count * p->stride;
}

/* Folds a batch and gives the ranks its partials, which stay on the device, too, at their place among all ranks'. Agrees on *error. */
static allfold_status publish(const struct pieces *p, const struct batch *batch, struct error *error)
{
    struct allfold_context *const ctx = p->ctx;
    const size_t at = (uint64_t)ctx->comm.rank * batch->results.count * p->stride;
    ctx->window.turns++;
    if (error->status == ALLFOLD_OK && fold(p, batch, &(struct wanted){.sent = slot_of(p, batch, ctx->comm.rank)}, at, error) == ALLFOLD_OK)
        ctx->device->backend->wait(in_place_queue(ctx), error);
    return comm_agree(&ctx->comm, error);
}

/* Combines all ranks' partials of results [mine) of the batch that was published last. again: that was done before. */
static allfold_status collect(const struct pieces *p, const struct batch *batch, const struct wanted *wanted, bool again, struct error *error)
{
    struct allfold_context *const ctx = p->ctx;
    const struct comm *const comm = &ctx->comm;
    const bool own_is_there = batch->mine.count == batch->results.count && !again;
    const struct axis_window window = {slot_of(p, batch, 0) + batch->mine.first * p->stride, batch->results.count * p->stride,
                                       own_is_there ? (uint64_t)comm->rank : UINT64_MAX};
    const struct axis_work work = {.monoid = p->monoid, .type = p->array->type, .box = {.outer = batch->mine.count, .inner = 1},
                                   .partials = ctx->axis_memory, .bytes = IN_PLACE_CONSTANTS_AT, .finish = wanted->finish,
                                   .constants = wanted->constants, .parts = (uint64_t)comm->size, .window = window};
    phase_enter(comm->progress, PHASE_FOLD);
    return ctx->device->backend->fold_axis(in_place_queue(ctx), &work, error);
}

/* ---- either way */

allfold_status in_place_start(const struct pieces *p, const struct batch *batch, const struct wanted *wanted, struct error *error)
{
    if (!p->in_window)
        return fold(p, batch, wanted, 0, error);
    return publish(p, batch, error) == ALLFOLD_OK ? collect(p, batch, wanted, false, error) : error->status;
}

allfold_status in_place_partials(const struct pieces *p, struct batch *batch, struct error *error)
{
    const struct backend *const backend = p->ctx->device->backend;
    struct queue *const queue = in_place_queue(p->ctx);
    void *const device = p->ctx->axis_memory;
    const struct wanted partials = {0};
    batch->partials = backend->own_memory ? queue->staging : device;
    if ((p->in_window ? collect(p, batch, &partials, true, error) : fold(p, batch, &partials, 0, error)) == ALLFOLD_OK
        && backend->copy(queue, device, batch->partials, batch->mine.count * p->stride, error) == ALLFOLD_OK)
        backend->wait(queue, error);
    return error->status;
}

allfold_status in_place_upload(struct allfold_context *ctx, const void *from, void *to, size_t bytes, struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    struct queue *const queue = in_place_queue(ctx);
    if (!backend->own_memory) {
        memcpy(to, from, bytes);
        return ALLFOLD_OK;
    }
    for (size_t start = 0; start < bytes && error->status == ALLFOLD_OK; start += IN_PLACE_BYTES) {
        const size_t piece = (size_t)u64_min(bytes - start, IN_PLACE_BYTES);
        memcpy(queue->staging, (const char *)from + start, piece);
        if (backend->copy(queue, queue->staging, (char *)to + start, piece, error) == ALLFOLD_OK)
            backend->wait(queue, error);
    }
    return error->status;
}

allfold_status in_place_download(struct allfold_context *ctx, void *stream, const void *from, void *to, size_t bytes, struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    struct queue *const queue = in_place_queue(ctx);
    for (size_t start = 0; start < bytes && error->status == ALLFOLD_OK; start += IN_PLACE_BYTES) {
        const size_t piece = (size_t)u64_min(bytes - start, IN_PLACE_BYTES);
        if (backend->enter(queue, stream, error) == ALLFOLD_OK
            && backend->copy(queue, (const char *)from + start, queue->staging, piece, error) == ALLFOLD_OK && backend->wait(queue, error) == ALLFOLD_OK)
            memcpy((char *)to + start, queue->staging, piece);
    }
    return error->status;
}
