/* Folds rows that do not fit a piece, or of which several ranks have parts, batch by batch: the pieces' partials wait in slots, are
   combined in order, and then exchanged; see axis_stream.h. */
#include "core/axis_stream.h"

#include "comm/vectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS_BYTES = 64 << 20, /* of partials that wait */
    TASKS = 128             /* if there are fewer units, these are cut for so many threads */
};

struct batches {
    struct axis_stream *s;
    struct axis_rows batch;
    uint64_t most;            /* units of a batch */
    uint64_t groups;          /* of a unit's segments: each is a task, whose partials have slots of their own */
    unsigned char *slots;     /* [group][result] */
    unsigned char *exchanged; /* what this rank gets of all */
    struct range *shares;
};

static unsigned char *slot(const struct batches *b, uint64_t group, uint64_t result)
{
    return b->slots + (group * b->batch.results.count + result) * b->s->stride;
}

static void combine(const struct axis_stream *s, uint64_t results, unsigned char *a, const unsigned char *b)
{
    for (uint64_t r = 0; r < results; r++)
        monoid_combine(s->monoid, s->array->type, (struct partial *)(a + r * s->stride), (const struct partial *)(b + r * s->stride));
}

/* Folds a group of a unit's segments, one after the other. */
static allfold_status start_group(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct batches *const b = worker->team->user;
    const struct axis_stream *const s = b->s;
    const uint64_t number = lane->window.elements.first, unit = b->batch.unit + number / b->groups, group = number % b->groups;
    const struct range segments = range_part(s->segments, group, b->groups);
    unsigned char *const mine = slot(b, group, axis_stream_first(s, unit) - b->batch.results.first);
    for (uint64_t k = segments.first; k < segments.first + segments.count; k++) {
        struct axis_task task = {worker, lane->queue, axis_stream_piece(s, unit, k), 0, NULL};
        const uint64_t results = task.piece.outer * task.piece.inner, left = segments.first + segments.count - 1 - k;
        const unsigned char *found;
        task.ahead = s->stripes == 1 ? left * s->length * s->inner : 0;
        if (axis_stream_load(s, &task, error) != ALLFOLD_OK || axis_stream_fold(s, &task, &found, error) != ALLFOLD_OK)
            break;
        if (k == segments.first)
            memcpy(mine, found, results * s->stride);
        else
            combine(s, results, mine, found);
    }
    return error->status;
}

static allfold_status finish_group(struct worker *worker, struct lane *lane, struct error *error)
{
    (void)worker;
    (void)lane;
    return error->status;
}

/* Combines the groups' partials in order, in the first group's slots. */
static void combine_groups(const struct batches *b)
{
    const struct axis_stream *const s = b->s;
#pragma omp parallel for schedule(static) num_threads(s->ctx->device->threads) if (b->groups > 1 && b->batch.results.count > 64)
    for (uint64_t r = 0; r < b->batch.results.count; r++)
        for (uint64_t group = 1; group < b->groups; group++)
            monoid_combine(s->monoid, s->array->type, (struct partial *)slot(b, 0, r), (const struct partial *)slot(b, group, r));
}

/* Gives each rank the partials of its share of the batch. Agrees on *error. Collective. */
static allfold_status exchange(struct batches *b, struct error *error)
{
    struct comm *const comm = &b->s->ctx->comm;
    for (int rank = 0; rank < comm->size; rank++)
        b->shares[rank] = range_part(b->batch.results.count, (uint64_t)rank, (uint64_t)comm->size);
    const struct comm_partials partials = {b->s->monoid, b->s->array->type, b->slots, b->shares};
    b->batch.mine = b->shares[comm->rank];
    b->batch.partials = b->exchanged;
    return comm_combine_partials(comm, &partials, b->exchanged, error);
}

/* Sizes that are the same on all ranks, if they exchange anything, and memory. */
static allfold_status open_batches(struct batches *b, struct error *error)
{
    const struct axis_stream *const s = b->s;
    const uint64_t unit_bytes = s->outer * s->inner * s->stride, size = (uint64_t)s->ctx->comm.size;
    const uint64_t wanted = s->units < TASKS ? TASKS / u64_max(s->units, 1) : 1;
    b->groups = u64_max(1, u64_min(u64_min(wanted, s->least / s->length), SLOTS_BYTES / unit_bytes));
    b->most = u64_max(1, u64_min(s->units, SLOTS_BYTES / (unit_bytes * b->groups)));
    b->slots = aligned_alloc(64, (b->most * b->groups * unit_bytes + 63) / 64 * 64);
    if (axis_stream_is_exchanged(s)) {
        b->shares = malloc(size * sizeof *b->shares);
        b->exchanged = aligned_alloc(64, (size * range_part(b->most * s->outer * s->inner, 0, size).count * s->stride + 63) / 64 * 64);
        b->batch.shares = b->shares;
    }
    if (b->slots == NULL || (axis_stream_is_exchanged(s) && (b->shares == NULL || b->exchanged == NULL)))
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the partials of %" PRIu64 " rows", b->most * s->outer * s->inner);
    return axis_stream_is_exchanged(s) ? comm_agree(&s->ctx->comm, error) : error->status;
}

static void fold_batch(struct batches *b, struct error *error)
{
    static const struct team_work work = {start_group, finish_group};
    const struct axis_tasks tasks = {&work, b, b->batch.units * b->groups, 1};
    const uint64_t first = axis_stream_first(b->s, b->batch.unit);
    b->batch.results = (struct range){first, axis_stream_first(b->s, b->batch.unit + b->batch.units) - first};
    b->batch.mine = (struct range){0, b->batch.results.count};
    b->batch.partials = b->slots;
    if (error->status == ALLFOLD_OK && axis_stream_run(b->s, &tasks, error) == ALLFOLD_OK)
        combine_groups(b);
}

void axis_stream_batches(struct axis_stream *s, axis_take *take, void *user, struct error *error)
{
    struct batches b = {.s = s};
    const bool exchanged = axis_stream_is_exchanged(s);
    open_batches(&b, error);
    while (b.batch.unit < s->units && !error->shared && (exchanged || error->status == ALLFOLD_OK)) {
        b.batch.units = u64_min(b.most, s->units - b.batch.unit);
        fold_batch(&b, error);
        if ((exchanged ? exchange(&b, error) : error->status) == ALLFOLD_OK)
            take(user, &b.batch, error);
        b.batch.unit += b.batch.units;
    }
    free(b.slots);
    free(b.exchanged);
    free(b.shares);
}
