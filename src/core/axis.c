/* What folds and softmax along an axis share: see axis.h. Results are computed batch by batch, so that memory is bounded for any
   number of results. */
#include "core/axis.h"

#include "comm/vectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What the ranks tell each other before any work. */
struct extents {
    uint64_t outer, length, inner, batch, call, outputs, in_place;
};

uint64_t axis_results(const struct axis *axis) { return axis->input->box.outer * axis->input->box.inner; }

bool axis_is_exchanged(const struct axis *axis) { return axis->input->cut == ALLFOLD_CUT_AXIS && axis->ctx->comm.size > 1; }

static uint64_t cut_extent(allfold_cut cut, const struct extents *extents)
{
    return cut == ALLFOLD_CUT_OUTER ? extents->outer : cut == ALLFOLD_CUT_AXIS ? extents->length : extents->inner;
}

/* Whether a rank's extents go with this rank's: all but that of the cut dimension are equal. */
static bool goes_with(allfold_cut cut, const struct extents *mine, const struct extents *other)
{
    return mine->call == other->call && (cut == ALLFOLD_CUT_OUTER || mine->outer == other->outer)
           && (cut == ALLFOLD_CUT_AXIS || mine->length == other->length) && (cut == ALLFOLD_CUT_INNER || mine->inner == other->inner);
}

static allfold_status refuse_extents(int rank, const struct extents *first, const struct extents *other, struct error *error)
{
    if (first->call != other->call)
        return error_set(error, ALLFOLD_BAD_ARGUMENT,
                         "the ranks made different calls: fold or softmax, element types, cut and options must be the same on all");
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "rank 0 has outer %" PRIu64 ", length %" PRIu64 ", inner %" PRIu64 " and rank %d has %" PRIu64 ", %" PRIu64
                     ", %" PRIu64 ": ranks may differ only in the dimension that they cut", first->outer, first->length, first->inner,
                     rank, other->outer, other->length, other->inner);
}

uint64_t axis_results_of(const struct axis *axis, int rank)
{
    const uint64_t results = axis->outer * axis->inner, mine = axis->parts[rank].count;
    if (!axis->input->own_results)
        return results;
    switch (axis->input->cut) {
    case ALLFOLD_CUT_OUTER: return mine * axis->inner;
    case ALLFOLD_CUT_INNER: return axis->outer * mine;
    default: return range_part(results, (uint64_t)rank, (uint64_t)axis->ctx->comm.size).count;
    }
}

/* The arrays that the ranks have for results. A rank that gets none may have others, or none. */
static allfold_status take_outputs(struct axis *axis, const struct extents *all, struct error *error)
{
    int first = -1;
    for (int rank = 0; rank < axis->ctx->comm.size; rank++) {
        if (axis_results_of(axis, rank) == 0)
            continue;
        if (first < 0)
            first = rank;
        if (all[rank].outputs != all[first].outputs)
            return error_set(error, ALLFOLD_BAD_ARGUMENT, "the ranks made different calls: ranks %d and %d get results, and want different "
                             "ones: the arrays that are NULL must be the same on all ranks that get results", first, rank);
    }
    axis->outputs = first < 0 ? 0 : all[first].outputs;
    return ALLFOLD_OK;
}

/* The parts of all ranks, the whole array's dimensions, and one size of batches. Every rank finds the same. */
static allfold_status take_extents(struct axis *axis, const struct extents *all, struct error *error)
{
    const allfold_cut cut = axis->input->cut;
    const int size = axis->ctx->comm.size;
    uint64_t total = 0, results;
    axis->parts = malloc((size_t)size * sizeof *axis->parts);
    if (axis->parts == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the parts of %d ranks", size);
    error->shared = true; /* if there is one, it is every rank's */
    for (int rank = 0; rank < size; rank++) {
        const uint64_t extent = cut_extent(cut, &all[rank]);
        if (!goes_with(cut, &all[0], &all[rank]))
            return refuse_extents(rank, &all[0], &all[rank], error);
        axis->parts[rank] = (struct range){total, extent};
        if (__builtin_add_overflow(total, extent, &total))
            return error_set(error, ALLFOLD_BAD_ARGUMENT, "the ranks' parts are together more than 2^64");
        axis->batch = u64_min(axis->batch, all[rank].batch);
        axis->all_in_place = axis->all_in_place && (all[rank].in_place || !axis_is_exchanged(axis));
    }
    axis->outer = cut == ALLFOLD_CUT_OUTER ? total : all[0].outer;
    axis->length = cut == ALLFOLD_CUT_AXIS ? total : all[0].length;
    axis->inner = cut == ALLFOLD_CUT_INNER ? total : all[0].inner;
    axis->first = cut == ALLFOLD_CUT_AXIS ? axis->parts[axis->ctx->comm.rank].first : 0;
    if (__builtin_mul_overflow(axis->outer, axis->inner, &results) || results > (uint64_t)PTRDIFF_MAX / sizeof(uint64_t))
        return error_set(error, ALLFOLD_NO_MEMORY, "%" PRIu64 " times %" PRIu64 " results are more than any memory", axis->outer,
                         axis->inner);
    if (take_outputs(axis, all, error) != ALLFOLD_OK || monoid_has_room(axis->monoid, axis->length, error) != ALLFOLD_OK)
        return error->status;
    error->shared = false;
    return ALLFOLD_OK;
}

/* Memory for the partials that one rank gets of all: its share of a batch from each. */
static uint64_t exchanged_bytes(const struct axis *axis, uint64_t batch)
{
    const uint64_t size = (uint64_t)axis->ctx->comm.size;
    return size * range_part(batch, 0, size).count * axis->stride;
}

/* Results of a batch: their partials fit the queue's buffer, and so does what a rank gets of all ranks, if it is more than one result. */
static uint64_t batch_of(const struct axis *axis, uint64_t most)
{
    uint64_t batch = AXIS_BUFFER_BYTES / axis->stride;
    if (most > 0)
        batch = u64_min(batch, most);
    if (axis_is_exchanged(axis) && exchanged_bytes(axis, batch) > AXIS_BUFFER_BYTES)
        batch = u64_min(batch, (uint64_t)axis->ctx->comm.size * u64_max(1, AXIS_BUFFER_BYTES / exchanged_bytes(axis, 1)));
    return u64_max(batch, 1);
}

/* Host memory for what the ranks exchange. */
static allfold_status open_exchange(struct axis *axis, struct error *error)
{
    axis->shares = malloc((size_t)axis->ctx->comm.size * sizeof *axis->shares);
    axis->exchanged = malloc(exchanged_bytes(axis, axis->batch));
    if (axis->shares == NULL || axis->exchanged == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the partials of %d ranks", axis->ctx->comm.size);
    return error->status;
}

static bool is_in_place(const struct axis *axis, const void *memory, struct error *error)
{
    struct device *const device = axis->ctx->device;
    enum place place = PLACE_DEVICE;
    return memory == NULL || (device->backend->locate(device, memory, &place, error) == ALLFOLD_OK && place == PLACE_DEVICE);
}

/* The queue, the places of x and y, and memory. */
static allfold_status prepare(struct axis *axis, struct error *error)
{
    struct allfold_context *const ctx = axis->ctx;
    const struct backend *const backend = ctx->device->backend;
    const struct axis_input *const input = axis->input;
    axis->stride = partial_stride(axis->monoid, input->type);
    axis->in_place = is_in_place(axis, input->x, error);
    axis->y_in_place = is_in_place(axis, axis->y, error);
    axis->all_in_place = axis->in_place && axis->y_in_place;
    if (error->status != ALLFOLD_OK || (backend->own_memory && core_queues(ctx, 1, AXIS_BUFFER_BYTES, error) != ALLFOLD_OK)
        || backend->enter(axis_queue(axis), input->stream, error) != ALLFOLD_OK)
        return error->status;
    if (ctx->axis_memory == NULL)
        backend->allocate(ctx->device, AXIS_MEMORY_BYTES, &ctx->axis_memory, error);
    axis->partials = ctx->axis_memory;
    if (!axis->in_place && axis_is_exchanged(axis) && (axis->folded = malloc(AXIS_BUFFER_BYTES)) == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for a batch of partials");
    return error->status;
}

allfold_status axis_begin(struct axis *axis, uint64_t most, struct error *error)
{
    const struct axis_input *const input = axis->input;
    struct comm *const comm = &axis->ctx->comm;
    const struct box *const box = &input->box;
    if (error->status == ALLFOLD_OK)
        prepare(axis, error);
    axis->batch = error->status == ALLFOLD_OK ? batch_of(axis, most) : 1;
    const struct extents mine = {box->outer, box->length, box->inner, axis->batch, input->call, input->outputs, axis->all_in_place};
    struct extents *const all = comm_gather_all(comm, &mine, sizeof mine, error);
    if (all == NULL)
        return error->status;
    if (take_extents(axis, all, error) == ALLFOLD_OK && axis_is_exchanged(axis) && axis_window_open(axis, error) == ALLFOLD_OK
        && !axis->through_window)
        open_exchange(axis, error);
    free(all);
    return comm->size > 1 && !error->shared ? comm_agree(comm, error) : error->status;
}

void axis_end(struct axis *axis, struct error *error)
{
    struct device *const device = axis->ctx->device;
    struct error ignored = {0};
    if (axis->partials != NULL)
        device->backend->wait(axis_queue(axis), error->status == ALLFOLD_OK ? error : &ignored);
    free(axis->parts);
    free(axis->folded);
    free(axis->shares);
    free(axis->exchanged);
}

struct axis_batch axis_batch_at(const struct axis *axis, uint64_t first)
{
    const uint64_t inner = axis->input->box.inner, o = first / inner, i = first % inner;
    struct axis_batch batch = {.first = first, .o = o, .i = i};
    if (axis->batch >= inner) {
        batch.outer = u64_min(axis->batch / inner, axis->input->box.outer - o);
        batch.inner = inner;
    } else {
        batch.outer = 1;
        batch.inner = u64_min(axis->batch, inner - i);
    }
    batch.count = batch.outer * batch.inner;
    return batch;
}

allfold_status axis_combine(const struct axis *axis, const struct axis_batch *batch, const unsigned char *partials,
                            struct error *error)
{
    struct comm *const comm = &axis->ctx->comm;
    for (int rank = 0; rank < comm->size; rank++)
        axis->shares[rank] = range_part(batch->count, (uint64_t)rank, (uint64_t)comm->size);
    const struct comm_partials exchange = {axis->monoid, axis->input->type, partials, axis->shares};
    return comm_combine_partials(comm, &exchange, axis->exchanged, error);
}
