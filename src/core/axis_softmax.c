/* Softmax along an axis. Where a rank has whole rows that its device reads and writes in place, a device may do both passes itself.
   Else batches of partials are folded, exchanged if the ranks cut the axis, and become constants, on a device that can make them if
   nothing is exchanged; then the batch's elements are normalised, piece by piece if they pass through a buffer. See axis.h. */
#include "core/axis.h"
#include "core/pipeline.h"

#include "comm/vectors.h"
#include "fold/exponential.h"

#include <inttypes.h>
#include <stdlib.h>

struct normalisation {
    struct axis axis;
    const struct axis_softmax *softmax;
    bool y_in_place;
    struct softmax_constants *constants; /* host memory, of a batch, unless they stay on the device */
    void *device_constants;
};

static struct softmax_axis_work work_of(const struct normalisation *n)
{
    const struct box *const box = &n->axis.input->box;
    return (struct softmax_axis_work){.x = n->axis.input->x, .y = n->softmax->y, .x_type = n->axis.input->type,
                                      .y_type = n->softmax->y_type, .box = *box, .y_outer_stride = box->outer_stride,
                                      .y_axis_stride = box->axis_stride, .logarithm = n->softmax->logarithm,
                                      .level = n->axis.ctx->level};
}

static size_t constants_bytes(const struct normalisation *n)
{
    return u64_max(1, u64_min(n->axis.batch, axis_results(&n->axis))) * sizeof *n->constants;
}

/* Whether the constants never leave the device. */
static bool constants_stay(const struct normalisation *n)
{
    const struct axis *const axis = &n->axis;
    return axis->through_window || (axis->ctx->device->backend->constants_axis != NULL && axis->in_place && !axis_is_exchanged(axis));
}

/* The place of y, and memory for the constants. The ranks agree on the outcome if they exchange anything. */
static allfold_status open_memory(struct normalisation *n, struct error *error)
{
    struct allfold_context *const ctx = n->axis.ctx;
    const struct backend *const backend = ctx->device->backend;
    enum place place = PLACE_HOST;
    if (!constants_stay(n) && (n->constants = malloc(constants_bytes(n))) == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the constants of %" PRIu64 " rows", n->axis.batch);
    n->device_constants = (char *)n->axis.partials + AXIS_CONSTANTS_AT;
    if (error->status == ALLFOLD_OK && n->softmax->y != NULL)
        backend->locate(ctx->device, n->softmax->y, &place, error);
    n->y_in_place = n->softmax->y == NULL || place == PLACE_DEVICE;
    return axis_is_exchanged(&n->axis) ? comm_agree(&ctx->comm, error) : error->status;
}

static void set_constants(struct normalisation *n, struct range range, const unsigned char *partials)
{
    const int threads = range.count < AXIS_ALONE ? 1 : n->axis.ctx->device->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (uint64_t r = 0; r < range.count; r++)
        softmax_constants_set(n->axis.monoid, (const struct partial *)(partials + r * n->axis.stride), &n->constants[range.first + r]);
}

/* The partials of a batch, combined, on the device. Collective if ranks cut the axis. */
static allfold_status fold_there(const struct normalisation *n, const struct axis_batch *batch, struct error *error)
{
    const struct axis *const axis = &n->axis;
    struct axis_piece piece = axis_piece_at(axis, batch, 0, allfold_type_bytes(axis->input->type));
    if (!axis->through_window)
        return axis_fold_piece(axis, &piece, NULL, error);
    if (axis_publish(axis, batch, error) != ALLFOLD_OK)
        return error->status;
    return axis_collect(axis, &(struct axis_collect){batch, {0, batch->count}, NULL, false}, error);
}

/* The constants of a batch, on the device. Collective if ranks cut the axis. */
static allfold_status make_constants(const struct normalisation *n, const struct axis_batch *batch, struct error *error)
{
    const struct axis *const axis = &n->axis;
    const struct axis_work work = {.monoid = axis->monoid, .type = axis->input->type, .partials = axis->partials};
    if (fold_there(n, batch, error) == ALLFOLD_OK)
        axis->ctx->device->backend->constants_axis(axis->queue, &work, batch->count, n->device_constants, error);
    return error->status;
}

/* The constants of a batch. Where the ranks cut the axis each computes a part of them, and all get all. Collective then. */
static void find_constants(struct normalisation *n, const struct axis_batch *batch, const unsigned char *partials, struct error *error)
{
    struct comm *const comm = &n->axis.ctx->comm;
    if (!axis_is_exchanged(&n->axis)) {
        if (error->status == ALLFOLD_OK)
            set_constants(n, (struct range){0, batch->count}, partials);
        return;
    }
    if (axis_combine(&n->axis, batch, partials, error) != ALLFOLD_OK)
        return;
    set_constants(n, n->axis.shares[comm->rank], n->axis.exchanged);
    const struct comm_rows gather = {n->constants, 1, batch->count, sizeof *n->constants, n->axis.shares};
    comm_gather_rows(comm, &gather, error);
}

/* Copies a piece of y from the device's buffer to the caller's memory. */
static allfold_status store_piece(const struct normalisation *n, const struct softmax_axis_work *work, const struct axis_piece *piece,
                                  struct error *error)
{
    const struct axis *const axis = &n->axis;
    const struct backend *const backend = axis->ctx->device->backend;
    const struct box *const whole = &axis->input->box;
    const size_t bytes = allfold_type_bytes(work->y_type);
    const uint64_t at = piece->o * whole->outer_stride + piece->l * whole->axis_stride + piece->i;
    struct box dense = piece->box;
    const void *host;
    dense.outer_stride = work->y_outer_stride;
    dense.axis_stride = work->y_axis_stride;
    if (backend->download(axis->queue, work->y, dense.outer * dense.outer_stride * bytes, &host, error) != ALLFOLD_OK
        || backend->wait(axis->queue, error) != ALLFOLD_OK)
        return error->status;
    phase_enter(axis->ctx->comm.progress, PHASE_WRITE);
    const struct box_copy copy = {(char *)n->softmax->y + at * bytes, host, whole->outer_stride, whole->axis_stride, dense, bytes};
    box_copy(&copy);
    return ALLFOLD_OK;
}

/* The second pass over a piece of a batch. */
static allfold_status normalise_piece(const struct normalisation *n, struct axis_piece *piece, struct error *error)
{
    const struct axis *const axis = &n->axis;
    const struct box *const whole = &axis->input->box;
    struct softmax_axis_work work = work_of(n);
    const size_t y_bytes = allfold_type_bytes(work.y_type);
    if (axis_piece_load(axis, piece, error) != ALLFOLD_OK)
        return error->status;
    work.x = piece->x;
    work.box = piece->box;
    if (n->y_in_place) {
        work.y = (char *)n->softmax->y + (piece->o * whole->outer_stride + piece->l * whole->axis_stride + piece->i) * y_bytes;
    } else {
        work.y = (char *)axis->queue->buffer + AXIS_BUFFER_BYTES / 2;
        work.y_outer_stride = piece->box.length * piece->box.inner;
        work.y_axis_stride = piece->box.inner;
    }
    phase_enter(axis->ctx->comm.progress, PHASE_NORMALISE);
    if (axis->ctx->device->backend->normalise_axis(axis->queue, &work, n->device_constants, error) != ALLFOLD_OK)
        return error->status;
    return n->y_in_place ? ALLFOLD_OK : store_piece(n, &work, piece, error);
}

/* Elements of this size, in x or y, pass through half of the buffer. */
static size_t widest(const struct normalisation *n)
{
    return (size_t)u64_max(allfold_type_bytes(n->axis.input->type), allfold_type_bytes(n->softmax->y_type));
}

/* The second pass over a batch. x in place and y not: the pieces are those of y. */
static void normalise_batch(const struct normalisation *n, const struct axis_batch *batch, struct error *error)
{
    const struct axis *const axis = &n->axis;
    struct axis pieces = *axis;
    pieces.in_place = axis->in_place && n->y_in_place;
    if (!constants_stay(n)
        && axis_upload(axis, n->constants, n->device_constants, batch->count * sizeof *n->constants, error) != ALLFOLD_OK)
        return;
    for (uint64_t l = 0; l < axis->input->box.length && error->status == ALLFOLD_OK;) {
        struct axis_piece piece = axis_piece_at(&pieces, batch, l, widest(n));
        l += piece.box.length;
        normalise_piece(n, &piece, error);
    }
    axis->ctx->device->backend->wait(axis->queue, error); /* constants and buffers are used again */
}

static void normalise_batches(struct normalisation *n, struct error *error)
{
    const uint64_t results = axis_results(&n->axis);
    const bool exchanged = axis_is_exchanged(&n->axis);
    uint64_t count;
    for (uint64_t first = 0; first < results && (exchanged || error->status == ALLFOLD_OK); first += count) {
        const struct axis_batch batch = axis_batch_at(&n->axis, first);
        const unsigned char *partials = NULL;
        count = batch.count;
        if (constants_stay(n)) {
            make_constants(n, &batch, error);
        } else {
            if (error->status == ALLFOLD_OK)
                axis_fold(&n->axis, &batch, &partials, error);
            find_constants(n, &batch, partials, error);
        }
        if (error->shared)
            return;
        if (error->status == ALLFOLD_OK)
            normalise_batch(n, &batch, error);
    }
}

/* Both passes by the device, if it can. */
static bool normalise_whole(const struct normalisation *n, struct error *error)
{
    const struct axis *const axis = &n->axis;
    const struct backend *const backend = axis->ctx->device->backend;
    const struct softmax_axis_work work = work_of(n);
    if (backend->softmax_axis == NULL || !axis->in_place || !n->y_in_place || axis_is_exchanged(axis))
        return false;
    phase_enter(axis->ctx->comm.progress, PHASE_NORMALISE);
    if (!backend->softmax_axis(axis->queue, &work, error))
        return false;
    if (error->status == ALLFOLD_OK)
        backend->wait(axis->queue, error);
    return true;
}

allfold_status core_softmax_axis(struct allfold_context *ctx, const struct axis_softmax *softmax, const struct axis_input *input,
                                 struct error *error)
{
    const struct box *const box = &input->box;
    struct normalisation n = {.axis = {.ctx = ctx, .input = input}, .softmax = softmax};
    n.axis.monoid = softmax_monoid(input->type, softmax->y_type, softmax->logarithm, ctx->level);
    progress_expect(ctx->comm.progress, box->outer * box->length * box->inner * allfold_type_bytes(input->type));
    if (axis_begin(&n.axis, AXIS_BUFFER_BYTES / sizeof(struct softmax_constants), error) == ALLFOLD_OK
        && open_memory(&n, error) == ALLFOLD_OK && !normalise_whole(&n, error))
        normalise_batches(&n, error);
    axis_end(&n.axis, error);
    free(n.constants);
    return ctx->comm.size > 1 && !error->shared ? comm_agree(&ctx->comm, error) : error->status;
}
