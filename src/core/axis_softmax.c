/* Softmax along an axis, of an array in memory. Where a rank has whole rows that its device reads and writes in place, a device may do both
   passes itself. Else batches of partials are folded, exchanged if the ranks cut the axis, and become constants, on the device if it has
   the whole partials; then the batch's elements are normalised. Elements that are not used in place on all ranks that exchange anything
   pass through the queues of a team (softmax_pieces.c). See axis.h. */
#include "core/axis.h"
#include "core/pipeline.h"

#include "comm/vectors.h"
#include "fold/exponential.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct normalisation {
    struct axis axis;
    const struct axis_softmax *softmax;
    struct softmax_constants *constants; /* host memory, of a batch, unless they stay on the device */
    struct softmax_constants *device_constants;
};

/* The work of a batch; NULL: of all. */
static struct softmax_axis_work work_of(const struct normalisation *n, const struct axis_batch *batch)
{
    const struct axis *const axis = &n->axis;
    const struct axis_input *const input = axis->input;
    struct softmax_axis_work work = {.x = input->x, .y = axis->y, .x_type = input->type, .y_type = n->softmax->y_type, .box = input->box,
                                     .y_outer_stride = input->box.outer_stride, .y_axis_stride = input->box.axis_stride,
                                     .logarithm = n->softmax->logarithm, .level = axis->ctx->level};
    if (batch != NULL) {
        work.x = (const char *)work.x + axis_batch_offset(axis, batch, allfold_type_bytes(work.x_type));
        work.y = (char *)work.y + axis_batch_offset(axis, batch, allfold_type_bytes(work.y_type));
        work.box.outer = batch->outer;
        work.box.inner = batch->inner;
    }
    return work;
}

static size_t constants_bytes(const struct normalisation *n)
{
    return u64_max(1, u64_min(n->axis.batch, axis_results(&n->axis))) * sizeof *n->constants;
}

/* Whether the constants never leave the device. */
static bool constants_stay(const struct normalisation *n) { return n->axis.through_window || !axis_is_exchanged(&n->axis); }

/* Memory for the constants. The ranks agree on the outcome if they exchange anything. */
static allfold_status open_memory(struct normalisation *n, struct error *error)
{
    if (!constants_stay(n) && (n->constants = malloc(constants_bytes(n))) == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the constants of %" PRIu64 " rows", n->axis.batch);
    n->device_constants = (void *)((char *)n->axis.partials + AXIS_CONSTANTS_AT);
    return axis_is_exchanged(&n->axis) ? comm_agree(&n->axis.ctx->comm, error) : error->status;
}

static void set_constants(struct normalisation *n, struct range range, const unsigned char *partials)
{
    const int threads = range.count < AXIS_ALONE ? 1 : n->axis.ctx->device->threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (uint64_t r = 0; r < range.count; r++)
        softmax_constants_set(n->axis.monoid, (const struct partial *)(partials + r * n->axis.stride), &n->constants[range.first + r]);
}

/* The constants of a batch, on the device. Collective if ranks cut the axis. */
static allfold_status make_constants(const struct normalisation *n, const struct axis_batch *batch, struct error *error)
{
    const struct axis *const axis = &n->axis;
    const struct axis_wanted wanted = {NULL, n->device_constants};
    if (!axis->through_window)
        return axis_fold_there(axis, batch, &wanted, error);
    if (axis_publish(axis, batch, error) != ALLFOLD_OK)
        return error->status;
    return axis_collect(axis, &(struct axis_collect){batch, {0, batch->count}, wanted, false}, error);
}

/* The same by the host: each rank computes a part of them, and all get all. Collective. */
static void find_constants(struct normalisation *n, const struct axis_batch *batch, struct error *error)
{
    struct axis *const axis = &n->axis;
    struct comm *const comm = &axis->ctx->comm;
    const unsigned char *partials = NULL;
    if (error->status == ALLFOLD_OK)
        axis_fold(axis, batch, &partials, error);
    if (axis_combine(axis, batch, partials, error) != ALLFOLD_OK)
        return;
    set_constants(n, axis->shares[comm->rank], axis->exchanged);
    const struct comm_rows gather = {n->constants, 1, batch->count, sizeof *n->constants, axis->shares};
    if (comm_gather_rows(comm, &gather, error) == ALLFOLD_OK)
        axis_upload(axis, n->constants, n->device_constants, batch->count * sizeof *n->constants, error);
}

/* The second pass over a batch. */
static void normalise_batch(const struct normalisation *n, const struct axis_batch *batch, struct error *error)
{
    const struct axis *const axis = &n->axis;
    const struct backend *const backend = axis->ctx->device->backend;
    const struct softmax_axis_work work = work_of(n, batch);
    phase_enter(axis->ctx->comm.progress, PHASE_NORMALISE);
    if (axis->input->box.length > 0)
        backend->normalise_axis(axis_queue(axis), &work, n->device_constants, error);
    backend->wait(axis_queue(axis), error); /* the constants are made again */
}

static void normalise_batches(struct normalisation *n, struct error *error)
{
    const uint64_t results = axis_results(&n->axis);
    const bool exchanged = axis_is_exchanged(&n->axis);
    uint64_t count;
    for (uint64_t first = 0; first < results && (exchanged || error->status == ALLFOLD_OK); first += count) {
        const struct axis_batch batch = axis_batch_at(&n->axis, first);
        count = batch.count;
        if (constants_stay(n))
            make_constants(n, &batch, error);
        else
            find_constants(n, &batch, error);
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
    const struct softmax_axis_work work = work_of(n, NULL);
    if (axis_is_exchanged(axis))
        return false;
    phase_enter(axis->ctx->comm.progress, PHASE_NORMALISE);
    if (!backend->softmax_axis(axis_queue(axis), &work, error))
        return false;
    if (error->status == ALLFOLD_OK)
        backend->wait(axis_queue(axis), error);
    return true;
}

/* Elements, or results, that are not used in place. */
struct strided_sink {
    struct sink sink;
    char *y;
};

static allfold_status write_memory(struct sink *sink, uint64_t first, uint64_t count, const void *elements, struct error *error)
{
    const size_t bytes = allfold_type_bytes(sink->type);
    (void)error;
    memcpy(((const struct strided_sink *)sink)->y + first * bytes, elements, count * bytes);
    return ALLFOLD_OK;
}

static void normalise_pieces(const struct normalisation *n, struct error *error)
{
    const struct axis *const axis = &n->axis;
    struct strided_sink sink = {{.write = write_memory, .type = n->softmax->y_type}, axis->y};
    const struct softmax_output output = {n->softmax->logarithm, &sink.sink, axis->y_in_place ? axis->y : NULL, sink.sink.type};
    struct axis_pieces pieces;
    axis_pieces_of(axis, NULL, &pieces);
    pieces.array.cut = axis->input->cut;
    if (axis_is_exchanged(axis))
        for (int rank = 0; rank < axis->ctx->comm.size; rank++)
            pieces.pieces.longest = u64_max(pieces.pieces.longest, axis->parts[rank].count);
    const struct axis_room room = softmax_room(&pieces.array, &output);
    pieces_cut_part(&pieces.pieces, &room);
    if (axis->outer > 0 && axis->length > 0 && axis->inner > 0)
        pieces_softmax(&pieces.pieces, &output, error);
}

allfold_status core_softmax_axis(struct allfold_context *ctx, const struct axis_softmax *softmax, const struct axis_input *input,
                                 struct error *error)
{
    const struct box *const box = &input->box;
    struct normalisation n = {.axis = {.ctx = ctx, .input = input, .y = softmax->y}, .softmax = softmax};
    n.axis.monoid = softmax_monoid(input->type, softmax->y_type, softmax->logarithm, ctx->level);
    progress_expect(ctx->comm.progress, box->outer * box->length * box->inner * allfold_type_bytes(input->type));
    if (axis_begin(&n.axis, AXIS_BUFFER_BYTES / sizeof(struct softmax_constants), error) == ALLFOLD_OK) {
        if (!n.axis.all_in_place)
            normalise_pieces(&n, error);
        else if (open_memory(&n, error) == ALLFOLD_OK && !normalise_whole(&n, error))
            normalise_batches(&n, error);
    }
    axis_end(&n.axis, error);
    free(n.constants);
    return ctx->comm.size > 1 && !error->shared ? comm_agree(&ctx->comm, error) : error->status;
}
