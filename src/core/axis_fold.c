/* Folds a batch of results along an axis, piece by piece if its elements come to the device through a buffer: see axis.h. */
#include "core/axis.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Combines the partials of a further piece of the batch's rows. */
static void combine(const struct axis *axis, uint64_t count, unsigned char *all, const unsigned char *next)
{
    for (uint64_t r = 0; r < count; r++)
        monoid_combine(axis->monoid, axis->input->type, (struct partial *)(all + r * axis->stride),
                       (const struct partial *)(next + r * axis->stride));
}

allfold_status axis_fold_piece(const struct axis *axis, struct axis_piece *piece, const struct axis_finish *finish, struct error *error)
{
    const struct backend *const backend = axis->ctx->device->backend;
    if (progress_check(axis->ctx->comm.progress, error) != ALLFOLD_OK || axis_piece_load(axis, piece, error) != ALLFOLD_OK)
        return error->status;
    const size_t before = (size_t)((char *)axis->partials - (char *)axis->ctx->axis_memory);
    const struct axis_work work = {axis->monoid, axis->input->type, piece->x, piece->box, axis->first + piece->l, axis->partials,
                                   AXIS_CONSTANTS_AT - before, finish};
    phase_enter(axis->ctx->comm.progress, PHASE_FOLD);
    if (backend->fold_axis(axis->queue, &work, error) == ALLFOLD_OK)
        atomic_fetch_add(&axis->ctx->comm.progress->done,
                         piece->box.outer * piece->box.inner * piece->box.length * allfold_type_bytes(axis->input->type));
    return error->status;
}

/* The same, and the partials come to host memory. */
static allfold_status fold_piece(const struct axis *axis, struct axis_piece *piece, const void **partials, struct error *error)
{
    const struct backend *const backend = axis->ctx->device->backend;
    if (axis_fold_piece(axis, piece, NULL, error) == ALLFOLD_OK
        && backend->download(axis->queue, axis->partials, piece->box.outer * piece->box.inner * axis->stride, partials, error) == ALLFOLD_OK)
        backend->wait(axis->queue, error);
    return error->status;
}

allfold_status axis_fold(const struct axis *axis, const struct axis_batch *batch, const unsigned char **partials, struct error *error)
{
    const size_t bytes = batch->count * axis->stride;
    const void *found = NULL;
    struct axis_piece piece = axis_piece_at(axis, batch, 0, allfold_type_bytes(axis->input->type));
    if (fold_piece(axis, &piece, &found, error) != ALLFOLD_OK)
        return error->status;
    *partials = found;
    if (piece.box.length == axis->input->box.length)
        return ALLFOLD_OK;
    /* long rows of the host's memory: the staging buffer is needed for their next piece */
    unsigned char *const all = malloc(bytes);
    if (all == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " partials", batch->count);
    memcpy(all, found, bytes);
    while (error->status == ALLFOLD_OK && piece.l + piece.box.length < axis->input->box.length) {
        piece = axis_piece_at(axis, batch, piece.l + piece.box.length, allfold_type_bytes(axis->input->type));
        if (fold_piece(axis, &piece, &found, error) == ALLFOLD_OK)
            combine(axis, batch->count, all, found);
    }
    if (error->status == ALLFOLD_OK)
        memcpy((void *)(uintptr_t)found, all, bytes); /* the staging buffer's */
    *partials = found;
    free(all);
    return error->status;
}
