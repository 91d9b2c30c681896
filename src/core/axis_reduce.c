/* Folds along an axis: batches of partials are folded, exchanged if the ranks cut the axis, and finished; see axis.h. */
#include "core/axis.h"
#include "core/pipeline.h"

#include "comm/vectors.h"

#include <stdlib.h>

/* The results' arrays in host memory, this rank's places in them, and the work. */
struct reduction {
    struct axis axis;
    const struct axis_reduce *reduce;
    struct fold_call fold;
    struct rows_output outputs[FOLD_RESULTS_MAX]; /* host memory: the caller's, or copies of its device memory */
    bool values_copied[FOLD_RESULTS_MAX], indices_copied[FOLD_RESULTS_MAX];
    uint64_t count;            /* elements of each array */
    unsigned char *exchanged;  /* partials of all ranks */
    struct range *parts;       /* of a batch, of each rank */
};

static size_t output_count(const struct reduction *r) { return allfold_result_count(r->fold.fold); }

static size_t value_bytes(const struct reduction *r, size_t i)
{
    return allfold_type_bytes(rows_type(r->fold.fold, i, r->axis.input->type, r->fold.result_type));
}

/* How many results this rank gets. */
static uint64_t results_here(const struct reduction *r)
{
    const struct axis *const axis = &r->axis;
    const struct comm *const comm = &axis->ctx->comm;
    if (!r->reduce->local)
        return axis->outer * axis->inner;
    return axis->input->cut == ALLFOLD_CUT_AXIS
               ? range_part(axis_results(axis), (uint64_t)comm->rank, (uint64_t)comm->size).count
               : axis_results(axis);
}

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

static allfold_status open_outputs(struct reduction *r, struct error *error)
{
    const uint64_t most = r->axis.batch * r->axis.stride * (uint64_t)r->axis.ctx->comm.size;
    r->count = results_here(r);
    for (size_t i = 0; i < output_count(r); i++) {
        const struct rows_output *const given = &r->reduce->outputs[i];
        r->outputs[i].values = host_array(r, given->values, value_bytes(r, i), &r->values_copied[i], error);
        r->outputs[i].indices = host_array(r, given->indices, sizeof(int64_t), &r->indices_copied[i], error);
    }
    if (!axis_is_exchanged(&r->axis))
        return error->status;
    r->exchanged = malloc(most);
    r->parts = malloc((size_t)r->axis.ctx->comm.size * sizeof *r->parts);
    if (r->exchanged == NULL || r->parts == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the partials of %d ranks", r->axis.ctx->comm.size);
    return error->status;
}

/* Copies what was finished in host memory to where the caller wants it, and frees it. */
static void close_outputs(struct reduction *r, struct error *error)
{
    for (size_t i = 0; i < output_count(r); i++) {
        const struct rows_output *const given = &r->reduce->outputs[i];
        if (r->values_copied[i] && error->status == ALLFOLD_OK)
            axis_upload(&r->axis, r->outputs[i].values, given->values, r->count * value_bytes(r, i), error);
        if (r->indices_copied[i] && error->status == ALLFOLD_OK)
            axis_upload(&r->axis, r->outputs[i].indices, given->indices, r->count * sizeof(int64_t), error);
        if (r->values_copied[i])
            free(r->outputs[i].values);
        if (r->indices_copied[i])
            free(r->outputs[i].indices);
    }
    free(r->exchanged);
    free(r->parts);
}

/* Finishes partials by all threads of the device's host side. The error is that of the first place. */
static void finish(const struct reduction *r, const struct rows *rows, uint64_t count, struct error *error)
{
    const int threads = count < 64 ? 1 : r->axis.ctx->device->threads;
    int first = threads;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
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

static struct rows rows_of(const struct reduction *r, const unsigned char *partials)
{
    return (struct rows){.call = &r->fold, .type = r->axis.input->type, .count = r->axis.length, .partials = partials,
                         .outputs = r->outputs, .inner = r->axis.inner};
}

/* Finishes a batch of results that are this rank's alone, at their places among those of all, or of this rank. */
static void finish_own(const struct reduction *r, const struct axis_batch *batch, const unsigned char *partials, struct error *error)
{
    const struct axis *const axis = &r->axis;
    const struct range *const part = &axis->parts[axis->ctx->comm.rank];
    const bool own = r->reduce->local || axis->input->cut == ALLFOLD_CUT_AXIS;
    const uint64_t o = batch->o + (!own && axis->input->cut == ALLFOLD_CUT_OUTER ? part->first : 0);
    const uint64_t i = batch->i + (!own && axis->input->cut == ALLFOLD_CUT_INNER ? part->first : 0);
    struct rows rows = rows_of(r, partials);
    rows.inner = own ? axis->input->box.inner : axis->inner;
    rows.first = o * rows.inner + i;
    rows.run = batch->inner;
    rows.step = rows.inner;
    finish(r, &rows, batch->count, error);
}

/* The ranks' parts of a batch of results: all of them evenly; or, if they are not shared, of each rank those that it gets. */
static void share_batch(const struct reduction *r, const struct axis_batch *batch)
{
    const struct axis *const axis = &r->axis;
    const uint64_t end = batch->first + batch->count, size = (uint64_t)axis->ctx->comm.size;
    axis_share(axis, batch->count, r->parts);
    for (uint64_t rank = 0; r->reduce->local && rank < size; rank++) {
        const struct range whole = range_part(axis_results(axis), rank, size);
        const uint64_t from = u64_min(u64_max(whole.first, batch->first), end);
        const uint64_t to = u64_max(from, u64_min(whole.first + whole.count, end));
        r->parts[rank] = (struct range){from - batch->first, to - from};
    }
}

/* The same where ranks cut the axis: each finishes a part of the batch, then all get all, if they want. Collective. */
static void finish_exchanged(const struct reduction *r, const struct axis_batch *batch, const unsigned char *partials,
                             struct error *error)
{
    const struct axis *const axis = &r->axis;
    struct comm *const comm = &axis->ctx->comm;
    share_batch(r, batch);
    const struct comm_partials exchange = {axis->monoid, axis->input->type, partials, r->parts};
    if (comm_combine_partials(comm, &exchange, r->exchanged, error) != ALLFOLD_OK)
        return;
    const struct range *const mine = &r->parts[comm->rank];
    const uint64_t skipped = r->reduce->local ? range_part(axis_results(axis), (uint64_t)comm->rank, (uint64_t)comm->size).first : 0;
    struct rows rows = rows_of(r, r->exchanged);
    rows.first = batch->first + mine->first - skipped;
    rows.run = u64_max(mine->count, 1);
    finish(r, &rows, mine->count, error);
    for (size_t i = 0; !r->reduce->local && i < output_count(r); i++) {
        struct comm_rows gather = {NULL, 1, batch->count, value_bytes(r, i), r->parts};
        gather.memory = (char *)r->outputs[i].values + batch->first * gather.bytes;
        if (r->outputs[i].values != NULL && comm_gather_rows(comm, &gather, error) != ALLFOLD_OK)
            return;
        gather.bytes = sizeof(int64_t);
        gather.memory = r->outputs[i].indices + batch->first;
        if (r->outputs[i].indices != NULL && comm_gather_rows(comm, &gather, error) != ALLFOLD_OK)
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
        if (rows.memory != NULL && comm_gather_rows(comm, &rows, error) != ALLFOLD_OK)
            break;
        rows.memory = r->outputs[i].indices;
        rows.bytes = sizeof(int64_t);
        if (rows.memory != NULL && comm_gather_rows(comm, &rows, error) != ALLFOLD_OK)
            break;
    }
    free(parts);
}

static void fold_batches(struct reduction *r, struct error *error)
{
    const struct axis *const axis = &r->axis;
    const uint64_t results = axis_results(axis);
    const bool exchanged = axis_is_exchanged(axis);
    uint64_t count;
    for (uint64_t first = 0; first < results && (exchanged || error->status == ALLFOLD_OK); first += count) {
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

allfold_status core_reduce_axis(struct allfold_context *ctx, const struct axis_reduce *reduce, const struct axis_input *input,
                                struct error *error)
{
    const struct box *const box = &input->box;
    struct reduction r = {.axis = {.ctx = ctx, .input = input}, .reduce = reduce, .fold = reduce->fold};
    r.fold.level = ctx->level;
    r.axis.monoid = fold_monoid(r.fold.fold, ctx->level);
    progress_expect(ctx->comm.progress, box->outer * box->length * box->inner * allfold_type_bytes(input->type));
    if (axis_begin(&r.axis, 0, error) == ALLFOLD_OK) {
        open_outputs(&r, error);
        fold_batches(&r, error);
        if (!error->shared && ctx->comm.size > 1 && !reduce->local && input->cut != ALLFOLD_CUT_AXIS && comm_agree(&ctx->comm, error) == ALLFOLD_OK)
            share_results(&r, error);
    }
    close_outputs(&r, error);
    if (ctx->comm.size > 1 && !error->shared)
        comm_agree(&ctx->comm, error);
    axis_end(&r.axis);
    return error->status;
}
