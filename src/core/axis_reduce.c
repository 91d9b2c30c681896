/* Folds along an axis: batches of partials are folded, exchanged if the ranks cut the axis, and finished; see axis.h. */
#include "core/axis_reduce.h"
#include "core/pipeline.h"

#include "comm/vectors.h"

#include <stdlib.h>
#include <string.h>

/* Whether the ranks that get results want these. */
static bool wants_values(const struct reduction *r, size_t i) { return (r->axis.outputs & axis_values_bit(i)) != 0; }
static bool wants_indices(const struct reduction *r, size_t i) { return (r->axis.outputs & axis_indices_bit(i)) != 0; }

/* Host memory for an array of the caller's that lies on the device. */
static void *host_array(const struct reduction *r, void *array, size_t bytes, bool *copied, struct error *error)
{
    const struct backend *const backend = r->axis.ctx->device->backend;
    enum place place = PLACE_HOST;
    if (array == NULL || r->count == 0 || !backend->own_memory || error->status != ALLFOLD_OK
        || backend->locate(r->axis.ctx->device, array, &place, error) != ALLFOLD_OK || place != PLACE_DEVICE)
        return array;
    void *const host = malloc(r->count * bytes);
    if (host == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %zu bytes of results", (size_t)r->count * bytes);
    *copied = host != NULL;
    return host;
}

static void *batch_memory(const struct reduction *r, size_t bytes, struct error *error)
{
    void *const memory = malloc(r->axis.batch * bytes);
    if (memory == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for a batch of %zu bytes of results", (size_t)r->axis.batch * bytes);
    return memory;
}

/* The arrays in host memory. The ranks agree on the outcome if they exchange partials. */
static allfold_status open_outputs(struct reduction *r, struct error *error)
{
    struct comm *const comm = &r->axis.ctx->comm;
    const bool exchanged = axis_is_exchanged(&r->axis);
    r->count = axis_results_of(&r->axis, comm->rank);
    for (size_t i = 0; i < output_count(r); i++) {
        const struct rows_output *const given = &r->reduce->outputs[i];
        r->outputs[i].values = host_array(r, given->values, value_bytes(r, i), &r->values_copied[i], error);
        r->outputs[i].indices = host_array(r, given->indices, sizeof(int64_t), &r->indices_copied[i], error);
        if (exchanged && r->axis.input->own_results && wants_values(r, i))
            r->finished[i].values = batch_memory(r, value_bytes(r, i), error);
        if (exchanged && r->axis.input->own_results && wants_indices(r, i))
            r->finished[i].indices = batch_memory(r, sizeof(int64_t), error);
    }
    return exchanged ? comm_agree(comm, error) : error->status;
}

/* Copies what was finished in host memory to where the caller wants it, and frees it. */
static void close_outputs(struct reduction *r, struct error *error)
{
    for (size_t i = 0; i < output_count(r); i++) {
        const struct rows_output *const given = &r->reduce->outputs[i];
        if (r->values_copied[i] && !r->direct && error->status == ALLFOLD_OK)
            axis_upload(&r->axis, r->outputs[i].values, given->values, r->count * value_bytes(r, i), error);
        if (r->indices_copied[i] && !r->direct && error->status == ALLFOLD_OK)
            axis_upload(&r->axis, r->outputs[i].indices, given->indices, r->count * sizeof(int64_t), error);
        if (r->values_copied[i])
            free(r->outputs[i].values);
        if (r->indices_copied[i])
            free(r->outputs[i].indices);
        free(r->finished[i].values);
        free(r->finished[i].indices);
    }
}

/* Finishes partials by all threads of the device's host side. The error is that of the first place. */
static void finish(const struct reduction *r, const struct rows *rows, uint64_t count, struct error *error)
{
    const int threads = count < AXIS_ALONE ? 1 : r->axis.ctx->device->threads;
    int first = threads;
    if (threads == 1) {
        rows_finish(rows, (struct range){0, count}, error);
        return;
    }
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int thread = 0; thread < threads; thread++) {
        struct error own = {0};
        if (rows_finish(rows, range_part(count, (uint64_t)thread, (uint64_t)threads), &own) != ALLFOLD_OK) {
#pragma omp critical(allfold_axis_finish)
            if (thread < first) {
                first = thread;
                *error = own;
            }
        }
    }
}

static void finish_own(const struct reduction *r, const struct axis_batch *batch, const unsigned char *partials, struct error *error)
{
    const struct rows rows = rows_own(r, batch, partials);
    finish(r, &rows, batch->count, error);
}

/* Where a batch's results are put together: among those of all, or by themselves. */
static void place_batch(const struct reduction *r, const struct axis_batch *batch, struct rows_output *places)
{
    for (size_t i = 0; i < output_count(r); i++) {
        const struct rows_output *const all = &r->outputs[i];
        places[i] = r->finished[i];
        if (!r->axis.input->own_results && wants_values(r, i))
            places[i].values = (char *)all->values + batch->first * value_bytes(r, i);
        if (!r->axis.input->own_results && wants_indices(r, i))
            places[i].indices = all->indices + batch->first;
    }
}

/* An array of a batch's results, of which each rank has finished its share, and the array that gets this rank's own. */
struct batch_array {
    void *batch, *own;
    size_t bytes;
};

/* Gives all ranks the array, and each its own of it if it gets no others. Collective. */
static allfold_status gather_array(const struct reduction *r, const struct axis_batch *batch, const struct batch_array *array,
                                   struct error *error)
{
    struct comm *const comm = &r->axis.ctx->comm;
    const struct comm_rows gather = {array->batch, 1, batch->count, array->bytes, r->axis.shares};
    if (comm_gather_rows(comm, &gather, error) != ALLFOLD_OK || !r->axis.input->own_results)
        return error->status;
    const struct range own = range_part(axis_results(&r->axis), (uint64_t)comm->rank, (uint64_t)comm->size);
    const uint64_t from = u64_max(own.first, batch->first), to = u64_min(own.first + own.count, batch->first + batch->count);
    if (from < to)
        memcpy((char *)array->own + (from - own.first) * array->bytes, (char *)array->batch + (from - batch->first) * array->bytes,
               (to - from) * array->bytes);
    return ALLFOLD_OK;
}

/* The same where ranks cut the axis: each finishes a share of the batch, then all get all, and keep what they want. Collective. */
static void finish_exchanged(const struct reduction *r, const struct axis_batch *batch, const unsigned char *partials,
                             struct error *error)
{
    const struct axis *const axis = &r->axis;
    struct rows_output places[FOLD_RESULTS_MAX];
    if (axis_combine(axis, batch, partials, error) != ALLFOLD_OK)
        return;
    const struct range *const mine = &axis->shares[axis->ctx->comm.rank];
    struct rows rows = rows_of(r, axis->exchanged);
    place_batch(r, batch, places);
    rows.outputs = places;
    rows.first = mine->first;
    rows.whole_first = batch->first + mine->first;
    rows.run = u64_max(mine->count, 1);
    finish(r, &rows, mine->count, error);
    for (size_t i = 0; i < output_count(r); i++) {
        const struct batch_array values = {places[i].values, r->outputs[i].values, value_bytes(r, i)};
        const struct batch_array indices = {places[i].indices, r->outputs[i].indices, sizeof(int64_t)};
        if ((wants_values(r, i) && gather_array(r, batch, &values, error) != ALLFOLD_OK)
            || (wants_indices(r, i) && gather_array(r, batch, &indices, error) != ALLFOLD_OK))
            return;
    }
}

/* Gives all ranks the results of all, where each has some of its own. Collective. */
static void share_results(const struct reduction *r, struct error *error)
{
    const struct axis *const axis = &r->axis;
    struct comm *const comm = &axis->ctx->comm;
    const bool by_row = axis->input->cut == ALLFOLD_CUT_INNER;
    struct range *const parts = malloc((size_t)comm->size * sizeof *parts);
    if (parts == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the parts of %d ranks", comm->size);
    for (int rank = 0; parts != NULL && rank < comm->size; rank++) {
        const uint64_t each = by_row ? 1 : axis->inner;
        parts[rank] = (struct range){axis->parts[rank].first * each, axis->parts[rank].count * each};
    }
    for (size_t i = 0; i < output_count(r); i++) {
        struct comm_rows rows = {r->outputs[i].values, by_row ? axis->outer : 1, by_row ? axis->inner : r->count, value_bytes(r, i), parts};
        if (wants_values(r, i) && comm_gather_rows(comm, &rows, error) != ALLFOLD_OK)
            break;
        rows.memory = r->outputs[i].indices;
        rows.bytes = sizeof(int64_t);
        if (wants_indices(r, i) && comm_gather_rows(comm, &rows, error) != ALLFOLD_OK)
            break;
    }
    free(parts);
}

/* Finishes results of this rank alone that were folded piece by piece: some of a plane, whole planes, and some of another. */
static void take_pieces(void *user, const struct batch *folded, struct error *error)
{
    const struct reduction *const r = user;
    const uint64_t inner = r->axis.input->box.inner;
    struct axis axis = r->axis;
    for (uint64_t done = 0; done < folded->results.count && error->status == ALLFOLD_OK;) {
        const uint64_t first = folded->results.first + done, rest = folded->results.count - done;
        axis.batch = first % inner > 0 ? u64_min(inner - first % inner, rest) : rest;
        const struct axis_batch batch = axis_batch_at(&axis, first);
        finish_own(r, &batch, folded->partials + done * axis.stride, error);
        done += batch.count;
    }
}

/* Folds, exchanges and finishes results from `first` on. */
static void fold_batches(struct reduction *r, uint64_t first, struct error *error)
{
    const struct axis *const axis = &r->axis;
    const uint64_t results = axis_results(axis);
    const bool exchanged = axis_is_exchanged(axis);
    uint64_t count;
    for (; first < results && (exchanged || error->status == ALLFOLD_OK); first += count) {
        const struct axis_batch batch = axis_batch_at(axis, first);
        const unsigned char *partials = NULL;
        count = batch.count;
        if (error->status == ALLFOLD_OK)
            axis_fold(axis, &batch, &partials, error);
        if (exchanged)
            finish_exchanged(r, &batch, partials, error);
        else if (error->status == ALLFOLD_OK)
            finish_own(r, &batch, partials, error);
        if (error->shared)
            return;
    }
}

/* Results of which all elements come to the device piece by piece. */
static void fold_pieces(struct reduction *r, struct error *error)
{
    struct axis_pieces pieces;
    axis_pieces_of(&r->axis, NULL, &pieces);
    pieces_cut_part(&pieces.pieces, &(struct axis_room){.widest = allfold_type_bytes(r->axis.input->type)});
    pieces_fold(&pieces.pieces, take_pieces, r, error);
}

/* On the device as far as it can, and the rest by the host. */
static void reduce_batches(struct reduction *r, struct error *error)
{
    const bool on_device = device_finishes(r);
    const uint64_t results = axis_results(&r->axis), first = on_device ? device_reduce(r, error) : 0;
    r->direct = on_device && device_writes(r) && first == results;
    if (error->status == ALLFOLD_OK && first < results && !r->axis.in_place && !axis_is_exchanged(&r->axis))
        fold_pieces(r, error);
    else if (error->status == ALLFOLD_OK && first < results)
        fold_batches(r, first, error);
}

allfold_status core_reduce_axis(struct allfold_context *ctx, const struct axis_reduce *reduce, const struct axis_input *input,
                                struct error *error)
{
    const struct box *const box = &input->box;
    struct reduction r = {.axis = {.ctx = ctx, .input = input}, .reduce = reduce, .fold = reduce->fold};
    r.fold.level = ctx->level;
    r.axis.monoid = fold_monoid(r.fold.fold, ctx->level);
    r.axis.by_host = r.fold.packing != NULL || (type_kind(input->type) != 'f' && r.fold.result_type != ALLFOLD_TYPE_NONE); /* rounded integers */
    progress_expect(ctx->comm.progress, box->outer * box->length * box->inner * allfold_type_bytes(input->type));
    if (axis_begin(&r.axis, 0, error) == ALLFOLD_OK) {
        if (open_outputs(&r, error) == ALLFOLD_OK)
            reduce_batches(&r, error);
        if (!error->shared && ctx->comm.size > 1 && !input->own_results && input->cut != ALLFOLD_CUT_AXIS && comm_agree(&ctx->comm, error) == ALLFOLD_OK)
            share_results(&r, error);
    }
    close_outputs(&r, error);
    axis_end(&r.axis, error);
    return ctx->comm.size > 1 && !error->shared ? comm_agree(&ctx->comm, error) : error->status;
}
