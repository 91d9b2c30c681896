/* Brings pieces of a box to the device: see axis.h. Elements that the device can use in place are one piece. */
#include "core/axis.h"

#include <string.h>

void box_copy(const struct box_copy *copy)
{
    const struct box *const box = &copy->box;
    const size_t bytes = copy->bytes;
    const bool whole = box->axis_stride == box->inner && copy->to_axis_stride == box->inner;
    const uint64_t runs = whole ? 1 : box->length, run = whole ? box->length * box->inner : box->inner;
    for (uint64_t o = 0; o < box->outer; o++)
        for (uint64_t l = 0; l < runs; l++)
            memcpy((char *)copy->to + (o * copy->to_outer_stride + l * copy->to_axis_stride) * bytes,
                   (const char *)copy->from + (o * box->outer_stride + l * box->axis_stride) * bytes, run * bytes);
}

struct axis_piece axis_piece_at(const struct axis *axis, const struct axis_batch *batch, uint64_t from, size_t bytes)
{
    const struct box *const box = &axis->input->box;
    struct axis_piece piece = {.box = *box, .o = batch->o, .l = from, .i = batch->i};
    piece.box.outer = batch->outer;
    piece.box.inner = batch->inner;
    piece.box.length = box->length - from;
    if (!axis->in_place) /* half of the buffer, so that what is computed fits beside it */
        piece.box.length = u64_min(piece.box.length, u64_max(1, AXIS_BUFFER_BYTES / 2 / bytes / batch->count));
    return piece;
}

allfold_status axis_piece_load(const struct axis *axis, struct axis_piece *piece, struct error *error)
{
    const struct backend *const backend = axis->ctx->device->backend;
    const size_t bytes = allfold_type_bytes(axis->input->type);
    struct box *const box = &piece->box;
    const uint64_t at = piece->o * box->outer_stride + piece->l * box->axis_stride + piece->i;
    if (box->outer * box->length * box->inner == 0) {
        piece->x = NULL;
        return ALLFOLD_OK;
    }
    const void *const x = (const char *)axis->input->x + at * bytes;
    if (axis->in_place) {
        piece->x = x;
        return ALLFOLD_OK;
    }
    const struct box_copy copy = {axis->queue->staging, x, box->length * box->inner, box->inner, *box, bytes};
    phase_enter(axis->ctx->comm.progress, PHASE_UPLOAD);
    box_copy(&copy);
    box->outer_stride = copy.to_outer_stride;
    box->axis_stride = copy.to_axis_stride;
    piece->x = axis->queue->buffer;
    if (backend->upload(axis->queue, axis->queue->staging, axis->queue->buffer, box->outer * box->outer_stride * bytes, error)
        == ALLFOLD_OK)
        backend->wait(axis->queue, error); /* the staging buffer gets results next */
    return error->status;
}

allfold_status axis_upload(const struct axis *axis, const void *from, void *to, size_t bytes, struct error *error)
{
    const struct backend *const backend = axis->ctx->device->backend;
    if (!backend->own_memory) {
        memcpy(to, from, bytes);
        return ALLFOLD_OK;
    }
    for (size_t start = 0; start < bytes && error->status == ALLFOLD_OK; start += AXIS_BUFFER_BYTES) {
        const size_t piece = (size_t)u64_min(bytes - start, AXIS_BUFFER_BYTES);
        memcpy(axis->queue->staging, (const char *)from + start, piece);
        if (backend->upload(axis->queue, axis->queue->staging, (char *)to + start, piece, error) == ALLFOLD_OK)
            backend->wait(axis->queue, error);
    }
    return error->status;
}
