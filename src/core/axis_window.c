/* Partials of ranks that cut the axis, combined by the devices of one host: see axis.h. Each rank copies its partials of a batch to its slot
   of memory that the ranks share. When all have agreed that theirs are there, each copies all ranks' to its device and combines them, in
   rank order.

   A half is written again two batches later. By then each rank has agreed on the batch between, and before that it waited for its queue, so it
   has read all of the half. */
#include "core/axis.h"

#include "comm/vectors.h"

#include <string.h>

allfold_status axis_window_open(struct axis *axis, struct error *error)
{
    struct allfold_context *const ctx = axis->ctx;
    const struct backend *const backend = ctx->device->backend;
    int able = 0;
    if (!ctx->window.tried && comm_count(&ctx->comm, backend->combines, &able, error) == ALLFOLD_OK) {
        if (able == ctx->comm.size && comm_window_open(&ctx->comm, AXIS_WINDOW_BYTES, &ctx->window.memory, error) != ALLFOLD_OK)
            return error->status;
        ctx->window.tried = true;
        if (ctx->window.memory != NULL)
            backend->pin(ctx->device, ctx->window.memory, AXIS_WINDOW_BYTES);
    }
    axis->through_window = ctx->window.memory != NULL && !axis->by_host && axis->length > 0;
    if (axis->through_window)
        axis->batch = u64_min(axis->batch, AXIS_BUFFER_BYTES / axis->stride / (uint64_t)ctx->comm.size);
    return error->status;
}

/* A rank's slot in the half of the batch that was begun last. */
static unsigned char *slot_of(const struct axis *axis, const struct axis_batch *batch, int rank)
{
    const struct allfold_context *const ctx = axis->ctx;
    return (unsigned char *)ctx->window.memory + ctx->window.turns % 2 * AXIS_BUFFER_BYTES + (uint64_t)rank * batch->count * axis->stride;
}

/* Folds a batch, and copies its partials to the slot. If x is on the device, they stay there, too, at their place among all ranks'. */
static allfold_status fill(const struct axis *axis, const struct axis_batch *batch, unsigned char *slot, struct error *error)
{
    const struct backend *const backend = axis->ctx->device->backend;
    const size_t bytes = batch->count * axis->stride;
    struct axis own = *axis;
    const unsigned char *partials;
    own.partials = (char *)axis->partials + (uint64_t)axis->ctx->comm.rank * bytes;
    if (!axis->in_place) {
        if (axis_fold(axis, batch, &partials, error) == ALLFOLD_OK)
            memcpy(slot, partials, bytes);
    } else if (axis_fold_there(&own, batch, &(struct axis_wanted){NULL, NULL}, error) == ALLFOLD_OK
               && backend->download(axis_queue(axis), own.partials, bytes, slot, error) == ALLFOLD_OK)
        backend->wait(axis_queue(axis), error);
    return error->status;
}

allfold_status axis_publish(const struct axis *axis, const struct axis_batch *batch, struct error *error)
{
    struct comm *const comm = &axis->ctx->comm;
    axis->ctx->window.turns++;
    if (error->status == ALLFOLD_OK)
        fill(axis, batch, slot_of(axis, batch, comm->rank), error);
    return comm_agree(comm, error);
}

allfold_status axis_collect(const struct axis *axis, const struct axis_collect *collect, struct error *error)
{
    const struct comm *const comm = &axis->ctx->comm;
    const struct backend *const backend = axis->ctx->device->backend;
    const size_t bytes = collect->mine.count * axis->stride, from = collect->mine.first * axis->stride;
    const struct axis_work work = {.monoid = axis->monoid, .type = axis->input->type, .box = {.outer = collect->mine.count, .inner = 1},
                                   .partials = axis->partials, .bytes = AXIS_CONSTANTS_AT, .finish = collect->wanted.finish,
                                   .constants = collect->wanted.constants, .parts = (uint64_t)comm->size};
    const bool own_is_there = axis->in_place && collect->mine.count == collect->batch->count && !collect->again;
    phase_enter(comm->progress, PHASE_UPLOAD);
    for (int rank = 0; rank < comm->size; rank++)
        if ((rank != comm->rank || !own_is_there)
            && backend->upload(axis_queue(axis), slot_of(axis, collect->batch, rank) + from, (char *)axis->partials + (uint64_t)rank * bytes, bytes,
                               error) != ALLFOLD_OK)
            return error->status;
    phase_enter(comm->progress, PHASE_FOLD);
    return backend->fold_axis(axis_queue(axis), &work, error);
}
