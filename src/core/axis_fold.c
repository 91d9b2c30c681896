/* Folds a batch of results along an axis, where its elements lie or piece by piece: see axis.h. */
#include "core/axis.h"

#include <string.h>

struct queue *axis_queue(const struct axis *axis)
{
    const struct allfold_context *const ctx = axis->ctx;
    return ctx->device->backend->own_memory ? ctx->queues[0] : ctx->queue;
}

size_t axis_batch_offset(const struct axis *axis, const struct axis_batch *batch, size_t element_bytes)
{
    return (batch->o * axis->input->box.outer_stride + batch->i) * element_bytes;
}

allfold_status axis_fold_there(const struct axis *axis, const struct axis_batch *batch, const struct axis_wanted *wanted, struct error *error)
{
    struct allfold_context *const ctx = axis->ctx;
    const struct axis_input *const input = axis->input;
    const size_t bytes = allfold_type_bytes(input->type), before = (size_t)((char *)axis->partials - (char *)ctx->axis_memory);
    const struct box box = {batch->outer, input->box.length, batch->inner, input->box.outer_stride, input->box.axis_stride};
    const uint64_t elements = box.outer * box.length * box.inner;
    const char *const x = elements > 0 ? (const char *)input->x + axis_batch_offset(axis, batch, bytes) : NULL;
    const struct axis_work work = {axis->monoid, input->type, x, box, axis->first, axis->partials, AXIS_CONSTANTS_AT - before, wanted->finish,
                                   wanted->constants, 0};
    if (progress_check(ctx->comm.progress, error) != ALLFOLD_OK)
        return error->status;
    phase_enter(ctx->comm.progress, PHASE_FOLD);
    if (ctx->device->backend->fold_axis(axis_queue(axis), &work, error) == ALLFOLD_OK)
        atomic_fetch_add(&ctx->comm.progress->done, elements * bytes);
    return error->status;
}

void axis_pieces_of(const struct axis *axis, const struct axis_batch *batch, struct axis_pieces *pieces)
{
    const struct axis_input *const input = axis->input;
    const struct box *const box = &input->box;
    pieces->array = (struct axis_array){.memory = input->x, .outer_stride = box->outer_stride, .axis_stride = box->axis_stride,
                                        .in_place = axis->in_place, .type = input->type, .outer = box->outer, .length = box->length,
                                        .inner = box->inner};
    pieces->pieces = (struct pieces){.ctx = axis->ctx, .array = &pieces->array, .monoid = axis->monoid, .longest = box->length,
                                     .part = {0, box->outer, 0, box->length, 0, box->inner}, .origin = 0 - axis->first,
                                     .follows = axis->in_place || axis->y_in_place, .stream = input->stream};
    if (batch != NULL)
        pieces->pieces.part = (struct part){batch->o, batch->outer, 0, box->length, batch->i, batch->inner};
}

static void take_folded(void *user, const struct batch *batch, struct error *error)
{
    const struct axis *const axis = user;
    (void)error;
    memcpy(axis->folded + batch->results.first * axis->stride, batch->partials, batch->results.count * axis->stride);
}

allfold_status axis_fold(const struct axis *axis, const struct axis_batch *batch, const unsigned char **partials, struct error *error)
{
    const struct backend *const backend = axis->ctx->device->backend;
    struct axis_pieces pieces;
    if (!axis->in_place) {
        axis_pieces_of(axis, batch, &pieces);
        pieces_cut_part(&pieces.pieces, &(struct axis_room){.widest = allfold_type_bytes(axis->input->type)});
        *partials = axis->folded;
        pieces_fold(&pieces.pieces, take_folded, (void *)(uintptr_t)axis, error);
        return error->status;
    }
    *partials = axis_host(axis, axis->partials);
    if (axis_fold_there(axis, batch, &(struct axis_wanted){NULL, NULL}, error) == ALLFOLD_OK
        && backend->download(axis_queue(axis), axis->partials, batch->count * axis->stride, axis_host(axis, axis->partials), error) == ALLFOLD_OK)
        backend->wait(axis_queue(axis), error);
    return error->status;
}

allfold_status axis_upload(const struct axis *axis, const void *from, void *to, size_t bytes, struct error *error)
{
    const struct backend *const backend = axis->ctx->device->backend;
    struct queue *const queue = axis_queue(axis);
    if (!backend->own_memory) {
        memcpy(to, from, bytes);
        return ALLFOLD_OK;
    }
    for (size_t start = 0; start < bytes && error->status == ALLFOLD_OK; start += AXIS_BUFFER_BYTES) {
        const size_t piece = (size_t)u64_min(bytes - start, AXIS_BUFFER_BYTES);
        memcpy(queue->staging, (const char *)from + start, piece);
        if (backend->upload(queue, queue->staging, (char *)to + start, piece, error) == ALLFOLD_OK)
            backend->wait(queue, error);
    }
    return error->status;
}
