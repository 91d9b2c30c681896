/* Results of a fold along an axis that the device finishes: see axis_reduce.h. It writes them to the caller's memory, if that is the
   device's and no other rank needs them, or if the device is the CPU; else to a buffer, in a batch's order, from which they are copied to
   the arrays in host memory. */
#include "core/axis_reduce.h"

#include <string.h>

/* Results of no element are the host's to finish. */
bool device_finishes(const struct reduction *r)
{
    const struct axis *const axis = &r->axis;
    if (axis_is_exchanged(axis))
        return axis->through_window;
    return axis->in_place && !axis->by_host && axis->length > 0;
}

/* Whether the device may write the caller's memory. */
bool device_writes(const struct reduction *r)
{
    if (!r->axis.ctx->device->backend->own_memory)
        return true;
    bool direct = r->axis.ctx->comm.size == 1 || r->axis.input->own_results || axis_is_exchanged(&r->axis);
    for (size_t i = 0; i < output_count(r); i++)
        direct = direct && (r->outputs[i].values == NULL || r->values_copied[i]) && (r->outputs[i].indices == NULL || r->indices_copied[i]);
    return direct;
}

/* Bytes of a result in all arrays. */
static size_t result_bytes(const struct reduction *r)
{
    size_t bytes = 0;
    for (size_t i = 0; i < output_count(r); i++)
        bytes += (r->outputs[i].values != NULL ? value_bytes(r, i) : 0) + (r->outputs[i].indices != NULL ? sizeof(int64_t) : 0);
    return bytes;
}

enum {
    REFUSED_BYTES = 64,      /* the end of the staging buffer, in which the device says that it refuses a result */
    STAGED_BYTES = 64 << 10, /* so few bytes of results the device writes to the staging buffer itself */
};

/* A batch of results that the device finishes: where they belong, and what it writes. */
struct finishing {
    struct axis_batch batch;
    struct range mine;  /* of the batch's results: those that this rank finishes */
    struct rows rows;   /* of these */
    char *memory;       /* to which the device writes them, before they are copied: the queue's staging or buffer; NULL: the caller's */
    size_t bytes;       /* there */
};

/* The results of an exchanged batch that this rank gets: all, or its own. */
static struct range wanted_of(const struct reduction *r, const struct axis_batch *batch)
{
    const struct comm *const comm = &r->axis.ctx->comm;
    const uint64_t end = batch->first + batch->count;
    if (!r->axis.input->own_results)
        return (struct range){0, batch->count};
    const struct range own = range_part(axis_results(&r->axis), (uint64_t)comm->rank, (uint64_t)comm->size);
    const uint64_t from = u64_min(u64_max(own.first, batch->first), end), to = u64_max(u64_min(own.first + own.count, end), from);
    return (struct range){from - batch->first, to - from};
}

/* Their places: they follow one another. */
static struct rows rows_wanted(const struct reduction *r, const struct axis_batch *batch, struct range mine)
{
    const struct comm *const comm = &r->axis.ctx->comm;
    struct rows rows = rows_of(r, NULL);
    rows.whole_first = rows.first = batch->first + mine.first;
    if (r->axis.input->own_results)
        rows.first -= range_part(axis_results(&r->axis), (uint64_t)comm->rank, (uint64_t)comm->size).first;
    rows.run = rows.step = u64_max(mine.count, 1);
    return rows;
}

static struct finishing finishing_of(const struct reduction *r, const struct axis_batch *batch, bool direct)
{
    struct finishing f = {.batch = *batch, .mine = {0, batch->count}};
    const struct queue *const queue = axis_queue(&r->axis);
    if (axis_is_exchanged(&r->axis)) {
        f.mine = wanted_of(r, batch);
        f.rows = rows_wanted(r, batch, f.mine);
    } else {
        f.rows = rows_own(r, batch, NULL);
    }
    if (direct)
        return f;
    f.bytes = f.mine.count * result_bytes(r);
    f.memory = f.bytes <= STAGED_BYTES ? queue->staging : queue->buffer;
    return f;
}

/* In memory the arrays follow one another: indices first, then values, of which those of 8 bytes are first (counts). So all are aligned. */
static struct axis_finish finish_to(const struct reduction *r, const struct finishing *f)
{
    const uint64_t count = f->mine.count;
    struct axis_finish finish = {.fold = r->fold.fold, .level = r->fold.level, .nan = r->fold.nan, .ddof = r->fold.ddof,
                                 .count = r->axis.length, .outputs = output_count(r), .run = count, .step = count,
                                 .format = r->fold.result_type != ALLFOLD_TYPE_NONE ? r->fold.result_type : ALLFOLD_F64};
    char *memory = f->memory;
    if (memory == NULL) {
        finish.first = f->rows.first;
        finish.run = f->rows.run;
        finish.step = f->rows.step;
    }
    for (size_t i = 0; i < output_count(r); i++) {
        const struct rows_output *const given = &r->reduce->outputs[i];
        finish.of[i] = (struct axis_output){given->values, given->indices,
                                            rows_type(r->fold.fold, i, r->axis.input->type, r->fold.result_type)};
        if (memory != NULL && given->indices != NULL) {
            finish.of[i].indices = (int64_t *)memory;
            memory += count * sizeof(int64_t);
        }
    }
    for (size_t i = 0; memory != NULL && i < output_count(r); i++)
        if (finish.of[i].values != NULL) {
            finish.of[i].values = memory;
            memory += count * value_bytes(r, i);
        }
    return finish;
}

/* Copies results to their places in an array. Returns the end of what was copied. */
static const char *place_array(const struct finishing *f, const char *results, void *array, size_t bytes)
{
    const struct rows *const rows = &f->rows;
    for (uint64_t o = 0; array != NULL && o * rows->run < f->mine.count; o++)
        memcpy((char *)array + (rows->first + o * rows->step) * bytes, results + o * rows->run * bytes, rows->run * bytes);
    return array != NULL ? results + f->mine.count * bytes : results;
}

static void place_results(const struct reduction *r, const struct finishing *f)
{
    const char *results = axis_queue(&r->axis)->staging;
    for (size_t i = 0; i < output_count(r); i++)
        results = place_array(f, results, r->outputs[i].indices, sizeof(int64_t));
    for (size_t i = 0; i < output_count(r); i++)
        results = place_array(f, results, r->outputs[i].values, value_bytes(r, i));
}

/* Starts what folds and finishes a batch. Collective if ranks cut the axis. */
static allfold_status start_batch(const struct reduction *r, const struct finishing *f, const struct axis_finish *finish, struct error *error)
{
    const struct axis *const axis = &r->axis;
    if (axis->through_window) {
        if (axis_publish(axis, &f->batch, error) == ALLFOLD_OK)
            axis_collect(axis, &(struct axis_collect){&f->batch, f->mine, {finish, NULL}, false}, error);
        return error->status;
    }
    return axis_fold_there(axis, &f->batch, &(struct axis_wanted){finish, NULL}, error);
}

/* A result of those that ranks exchanged has no value: the host says why. */
static void refuse_collected(const struct reduction *r, struct finishing *f, struct error *error)
{
    const struct axis *const axis = &r->axis;
    const struct backend *const backend = axis->ctx->device->backend;
    void *const partials = axis_host(axis, axis->partials);
    if (axis_collect(axis, &(struct axis_collect){&f->batch, f->mine, {NULL, NULL}, true}, error) != ALLFOLD_OK
        || backend->download(axis_queue(axis), axis->partials, f->mine.count * axis->stride, partials, error) != ALLFOLD_OK
        || backend->wait(axis_queue(axis), error) != ALLFOLD_OK)
        return;
    f->rows.partials = partials;
    if (rows_finish(&f->rows, (struct range){0, f->mine.count}, error) == ALLFOLD_OK)
        error_set(error, ALLFOLD_DEVICE_ERROR, "%s refused a result that has a value", axis->ctx->device->label);
}

/* False: the host is to finish this batch, and those behind it. Collective if ranks cut the axis. */
static bool reduce_batch(const struct reduction *r, const struct axis_batch *batch, bool direct, struct error *error)
{
    const struct axis *const axis = &r->axis;
    const struct backend *const backend = axis->ctx->device->backend;
    struct queue *const queue = axis_queue(axis);
    struct finishing f = finishing_of(r, batch, direct);
    struct axis_finish finish = finish_to(r, &f);
    uint32_t of_host, *const refused = backend->own_memory ? (uint32_t *)((char *)queue->staging + AXIS_BUFFER_BYTES - REFUSED_BYTES) : &of_host;
    *refused = 0;
    finish.refused = refused;
    if (start_batch(r, &f, &finish, error) != ALLFOLD_OK
        || (f.bytes > STAGED_BYTES && backend->download(queue, queue->buffer, f.bytes, queue->staging, error) != ALLFOLD_OK)
        || backend->wait(queue, error) != ALLFOLD_OK)
        return true;
    if (__atomic_load_n(refused, __ATOMIC_ACQUIRE) != 0) {
        if (axis->through_window)
            refuse_collected(r, &f, error);
        return axis->through_window;
    }
    if (!direct)
        place_results(r, &f);
    return true;
}

uint64_t device_reduce(const struct reduction *r, struct error *error)
{
    const bool direct = device_writes(r), exchanged = axis_is_exchanged(&r->axis);
    const uint64_t results = axis_results(&r->axis), each = result_bytes(r);
    struct axis axis = r->axis;
    struct axis_batch batch = {.first = 0};
    if (!exchanged)
        axis.batch = direct || each == 0 ? u64_max(results, 1) : (AXIS_BUFFER_BYTES - REFUSED_BYTES) / each;
    for (; batch.first < results; batch.first += batch.count) {
        batch = axis_batch_at(&axis, batch.first);
        if (!reduce_batch(r, &batch, direct, error) || (error->status != ALLFOLD_OK && (!exchanged || error->shared)))
            break;
    }
    return batch.first;
}
