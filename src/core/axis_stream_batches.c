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
    unsigned char *memory;    /* of what follows: progress that is kept */
    uint64_t *folded;         /* segments of each task that are in its slots */
    uint64_t *counts;         /* [group][result]: elements, if some are left out; else NULL */
    unsigned char *slots;     /* [group][result] */
    unsigned char *exchanged; /* what this rank gets of all */
    uint64_t *exchanged_counts;
    struct range *shares;
};

static struct partial *slot(const struct batches *b, uint64_t group, uint64_t result)
{
    return (struct partial *)(b->slots + (group * b->batch.results.count + result) * b->s->stride);
}

/* Takes what was found of a segment of a task, into the slots from `at` on. */
static void take(const struct batches *b, const struct axis_task *task, const unsigned char *found, bool first, uint64_t at)
{
    const struct axis_stream *const s = b->s;
    const uint64_t results = task->piece.outer * task->piece.inner;
    unsigned char *const mine = b->slots + at * s->stride;
    if (first)
        memcpy(mine, found, results * s->stride);
    for (uint64_t r = 0; !first && r < results; r++)
        monoid_combine(s->monoid, s->array->type, (struct partial *)(mine + r * s->stride), (const struct partial *)(found + r * s->stride));
    for (uint64_t r = 0; b->counts != NULL && r < results; r++)
        b->counts[at + r] = (first ? 0 : b->counts[at + r]) + task->counts[r];
}

/* The segments of a task. */
static struct range segments_of(const struct batches *b, uint64_t task) { return range_part(b->s->segments, task % b->groups, b->groups); }

/* Folds a group of a unit's segments, one after the other, from where it was left. */
static allfold_status start_group(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct batches *const b = worker->team->user;
    const struct axis_stream *const s = b->s;
    const uint64_t number = lane->window.elements.first, unit = b->batch.unit + number / b->groups, group = number % b->groups;
    const struct range segments = segments_of(b, number);
    const uint64_t at = group * b->batch.results.count + axis_stream_first(s, unit) - b->batch.results.first, before = b->folded[number];
    for (uint64_t k = before; k < segments.count && !axis_stream_pauses(s, k > before); k++) {
        struct axis_task task = {.worker = worker, .queue = lane->queue, .piece = axis_stream_piece(s, unit, segments.first + k)};
        const unsigned char *found;
        task.ahead = s->stripes == 1 ? (segments.count - 1 - k) * s->length * s->inner : 0;
        if (axis_stream_load(s, &task, error) != ALLFOLD_OK || axis_stream_fold(s, &task, &found, error) != ALLFOLD_OK)
            break;
        take(b, &task, found, k == 0, at);
        b->folded[number] = k + 1;
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
            monoid_combine(s->monoid, s->array->type, slot(b, 0, r), slot(b, group, r));
    for (uint64_t i = b->batch.results.count; b->counts != NULL && i < b->groups * b->batch.results.count; i++)
        b->counts[i % b->batch.results.count] += b->counts[i];
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
    b->batch.counts = b->exchanged_counts;
    if (comm_combine_partials(comm, &partials, b->exchanged, error) == ALLFOLD_OK && b->counts != NULL)
        comm_add_counts(comm, b->counts, b->shares, b->exchanged_counts, error);
    return error->status;
}

static size_t round_up(uint64_t bytes) { return (size_t)((bytes + 63) / 64 * 64); }

/* Sizes that are the same on all ranks, if they exchange anything, and memory. */
static allfold_status open_batches(struct batches *b, struct error *error)
{
    const struct axis_stream *const s = b->s;
    const uint64_t unit_bytes = s->outer * s->inner * s->stride, size = (uint64_t)s->ctx->comm.size;
    const uint64_t wanted = s->units < TASKS ? TASKS / u64_max(s->units, 1) : 1;
    b->groups = u64_max(1, u64_min(u64_min(wanted, s->least / s->length), SLOTS_BYTES / unit_bytes));
    b->most = u64_max(1, u64_min(s->units, SLOTS_BYTES / (unit_bytes * b->groups)));
    const uint64_t tasks = b->most * b->groups, share = range_part(b->most * s->outer * s->inner, 0, size).count;
    const size_t folded_bytes = round_up(tasks * sizeof *b->folded);
    const size_t counts_bytes = s->array->omits ? round_up(tasks * s->outer * s->inner * sizeof *b->counts) : 0;
    b->memory = aligned_alloc(64, folded_bytes + counts_bytes + round_up(tasks * unit_bytes));
    b->folded = (uint64_t *)(void *)b->memory;
    b->counts = s->array->omits ? (uint64_t *)(void *)(b->memory + folded_bytes) : NULL;
    b->slots = b->memory + folded_bytes + counts_bytes;
    if (axis_stream_is_exchanged(s)) {
        b->shares = malloc(size * sizeof *b->shares);
        b->exchanged = aligned_alloc(64, round_up(size * share * s->stride));
        b->exchanged_counts = s->array->omits ? malloc(u64_max(share, 1) * sizeof *b->exchanged_counts) : NULL;
        b->batch.shares = b->shares;
    }
    if (b->memory == NULL || (axis_stream_is_exchanged(s) && (b->shares == NULL || b->exchanged == NULL
                                                              || (s->array->omits && b->exchanged_counts == NULL))))
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for the partials of %" PRIu64 " rows", b->most * s->outer * s->inner);
    return axis_stream_is_exchanged(s) ? comm_agree(&s->ctx->comm, error) : error->status;
}

/* ---- progress that is kept */

/* Bytes of it while this batch is folded. */
static size_t state_bytes(const struct batches *b)
{
    return (size_t)(b->slots - b->memory) + b->groups * b->batch.results.count * b->s->stride;
}

static void save_groups(struct axis_stream *s, struct axis_tasks *tasks, struct error *error)
{
    const struct batches *const b = tasks->user;
    struct stream *const stream = &s->array->checkpoint->stream;
    for (tasks->first = 0; tasks->first < tasks->count && b->folded[tasks->first] == segments_of(b, tasks->first).count; tasks->first++)
        ;
    stream->done = b->batch.unit;
    stream->state = b->memory;
    stream->state_bytes = state_bytes(b);
    axis_stream_save(s, error);
}

/* Says that all units before this one are finished. */
static void state_end(struct batches *b, uint64_t unit)
{
    struct stream *const stream = &b->s->array->checkpoint->stream;
    if (stream->state != b->memory)
        free(stream->state);
    stream->state = NULL;
    stream->state_bytes = 0;
    stream->done = unit;
}

/* Begins a batch with what the checkpoint has of it, or with nothing. */
static allfold_status state_begin(struct batches *b, struct error *error)
{
    struct axis_checkpoint *const checkpoint = b->s->array->checkpoint;
    const uint64_t tasks = b->batch.units * b->groups;
    const size_t segment_bytes = b->s->outer * b->s->length * b->s->inner * allfold_type_bytes(b->s->array->type);
    uint64_t folded = 0;
    bool fits = true;
    memset(b->memory, 0, checkpoint != NULL ? state_bytes(b) : (size_t)(b->slots - b->memory));
    if (checkpoint == NULL || checkpoint->stream.state_bytes == 0)
        return error->status;
    if ((fits = checkpoint->stream.state_bytes == state_bytes(b))) {
        memcpy(b->memory, checkpoint->stream.state, state_bytes(b));
        free(checkpoint->stream.state);
        checkpoint->stream.state = b->memory;
    }
    for (uint64_t task = 0; fits && task < tasks; task++) {
        fits = b->folded[task] <= segments_of(b, task).count;
        folded += b->folded[task];
    }
    if (!fits)
        return error_set(error, ALLFOLD_BAD_INPUT, "the checkpoint is not of this work: remove it to begin anew");
    axis_stream_tell(b->s, folded * segment_bytes);
    return error->status;
}

/* The unit from which this rank goes on. A rank that has not saved that others went on from a batch has finished it as they have: see
   end_batch. */
static uint64_t first_unit(struct batches *b)
{
    const struct axis_checkpoint *const checkpoint = b->s->array->checkpoint;
    if (checkpoint == NULL)
        return 0;
    const uint64_t done = axis_stream_is_exchanged(b->s) ? checkpoint->furthest : checkpoint->stream.done;
    if (done > checkpoint->stream.done)
        state_end(b, done);
    axis_stream_tell(b->s, axis_stream_first(b->s, u64_min(done, b->s->units)) * b->s->part.length * allfold_type_bytes(b->s->array->type));
    return done;
}

/* If ranks have parts of the same rows, all make their results durable before any saves that it has gone on. */
static void end_batch(struct batches *b, struct error *error)
{
    b->batch.unit += b->batch.units;
    if (b->s->array->checkpoint == NULL)
        return;
    state_end(b, b->batch.unit);
    if (axis_stream_is_exchanged(b->s) && !error->shared) {
        axis_stream_sync(b->s, error);
        comm_agree(&b->s->ctx->comm, error);
    }
    if (b->batch.unit >= b->s->units && error->status == ALLFOLD_OK)
        axis_stream_save(b->s, error);
}

static void fold_batch(struct batches *b, struct error *error)
{
    static const struct team_work work = {start_group, finish_group};
    struct axis_tasks tasks = {&work, b, b->batch.units * b->groups, 1, 0, b->s->array->checkpoint != NULL ? save_groups : NULL};
    const uint64_t first = axis_stream_first(b->s, b->batch.unit);
    b->batch.results = (struct range){first, axis_stream_first(b->s, b->batch.unit + b->batch.units) - first};
    b->batch.mine = (struct range){0, b->batch.results.count};
    b->batch.partials = b->slots;
    b->batch.counts = b->counts;
    if (error->status == ALLFOLD_OK && state_begin(b, error) == ALLFOLD_OK && axis_stream_run(b->s, &tasks, error) == ALLFOLD_OK)
        combine_groups(b);
}

void axis_stream_batches(struct axis_stream *s, axis_take *take_rows, void *user, struct error *error)
{
    struct batches b = {.s = s};
    const bool exchanged = axis_stream_is_exchanged(s);
    open_batches(&b, error);
    b.batch.unit = first_unit(&b);
    while (b.batch.unit < s->units && !error->shared && (exchanged || error->status == ALLFOLD_OK)) {
        b.batch.units = u64_min(b.most, s->units - b.batch.unit);
        fold_batch(&b, error);
        if ((exchanged ? exchange(&b, error) : error->status) == ALLFOLD_OK)
            take_rows(user, &b.batch, error);
        end_batch(&b, error);
    }
    if (s->array->checkpoint != NULL && s->array->checkpoint->stream.state == b.memory)
        s->array->checkpoint->stream.state = NULL;
    free(b.memory);
    free(b.exchanged);
    free(b.exchanged_counts);
    free(b.shares);
}
