/* Folds: each rank folds its part on its device, then there is one exchange. Data on the device is folded in one piece. Other
   data streams through the queues of a team (team.h), in shards. */
#include "core/pipeline.h"
#include "core/team.h"
#include "fold/packed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

allfold_status locate_memory(struct allfold_context *ctx, const void *memory, uint64_t count, struct device_data *device_data,
                              struct error *error)
{
    enum place place = PLACE_HOST;
    *device_data = (struct device_data){0};
    if (memory == NULL || count == 0)
        return ALLFOLD_OK;
    if (ctx->device->backend->locate(ctx->device, memory, &place, error) != ALLFOLD_OK)
        return error->status;
    if (place == PLACE_DEVICE)
        *device_data = (struct device_data){.memory = (char *)(uintptr_t)memory, .elements = count};
    return ALLFOLD_OK;
}

void device_data_release(struct allfold_context *ctx, struct device_data *device_data)
{
    if (device_data->owned)
        ctx->device->backend->release(ctx->device, device_data->memory);
    *device_data = (struct device_data){0};
}

void drain(struct allfold_context *ctx)
{
    struct error ignored = {0};
    ctx->device->backend->softmax_cancel(ctx->queue);
    ctx->device->backend->wait(ctx->queue, &ignored);
}

/* A fold of a rank's part. If shards of it stream, several threads work on them. Their partials are combined in order, by the thread
   that hands over the next one. */
struct folding {
    struct stream *stream;
    const struct device_data *device_data;
    struct device_data second; /* of the second operand */
    bool whole_indices; /* see has_whole_indices */
    struct slot {
        struct partial partial;
        uint64_t count; /* elements in it */
        bool full;
    } *slots; /* shard i has slot i modulo their number */
    bool combining; /* a thread is */
};

/* Elements already on the device: one fold, in the caller's stream. */
static allfold_status fold_in_place(struct allfold_context *ctx, const struct job *job, const struct folding *folding,
                                    struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    struct queue *const queue = ctx->queue;
    struct stream *const stream = folding->stream;
    const struct device_data *const device_data = folding->device_data;
    const struct work work = {stream->monoid, stream->type, device_data->memory, device_data->elements, 0, folding->second.memory};
    phase_enter(ctx->comm.progress, PHASE_FOLD);
    if (backend->enter(queue, job->stream, error) != ALLFOLD_OK || backend->fold(queue, &work, error) != ALLFOLD_OK
        || backend->wait(queue, error) != ALLFOLD_OK) {
        drain(ctx);
        return error->status;
    }
    monoid_combine(stream->monoid, stream->type, stream->partial, queue->partial);
    stream->count = device_data->elements;
    atomic_fetch_add(&ctx->comm.progress->done, device_data->elements * allfold_type_bytes(stream->type));
    return ALLFOLD_OK;
}

/* Whether partials get the indices of the whole array at once, because the source's order is not that of the array, or because it
   leaves out elements. */
static bool has_whole_indices(const struct job *job, enum monoid monoid)
{
    return job->source != NULL && monoid_facts[monoid].indexed && (job->source->index != NULL || job->source->leaves_out);
}

/* The indices in the partial of a window, which count the elements that were read, become those of the whole array. */
static void place_indices(const struct job *job, const struct lane *lane, const struct stream *stream, struct partial *partial)
{
    uint64_t *indices[MONOID_INDICES_MAX], run;
    const int count = monoid_indices(stream->monoid, stream->type, partial, indices);
    for (int i = 0; i < count; i++) {
        if (*indices[i] == ALLFOLD_NO_INDEX)
            continue;
        const uint64_t place = lane->piece.kept != NULL ? encoding_select(lane->piece.kept, *indices[i]) : *indices[i];
        const uint64_t position = lane->window.elements.first + place;
        *indices[i] = job->source->index != NULL ? job->source->index(job->source, position, &run) : position;
    }
}

/* Brings the operands of the lane's window to the device, if they are not there. */
static allfold_status load_window(struct worker *worker, struct lane *lane, struct work *work, struct error *error)
{
    const struct folding *const folding = worker->team->user;
    const struct job *const job = worker->team->job;
    const struct device_data *const first = folding->device_data, *const second = &folding->second;
    const uint64_t place = lane->window.elements.first - job->range.first, count = lane->window.elements.count;
    const size_t offset = place * allfold_type_bytes(job->type);
    if (first->elements == job->range.count) {
        lane->piece = (struct piece){.count = count};
        work->x = first->memory + offset;
    } else if (lane_load(worker, lane, place + count <= first->capacity ? first->memory + offset : NULL, &work->x, error) != ALLFOLD_OK) {
        return error->status;
    }
    if (second->elements > 0)
        work->y = second->memory + offset;
    else if (job->second != NULL)
        lane_load_second(worker, lane, &work->y, error);
    return error->status;
}

static allfold_status start_window(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct team *const team = worker->team;
    const struct folding *const folding = team->user;
    const uint64_t first = lane->window.elements.first - team->job->range.first;
    struct work work = {folding->stream->monoid, folding->stream->type, NULL, 0, folding->whole_indices ? 0 : first, NULL};
    if (load_window(worker, lane, &work, error) != ALLFOLD_OK)
        return error->status;
    work.n = lane->piece.count;
    phase_enter(team->ctx->comm.progress, PHASE_FOLD);
    return work.n == 0 ? ALLFOLD_OK : lane->queue->device->backend->fold(lane->queue, &work, error);
}

/* Puts the worker's partial, of a whole shard, into its slot. If no thread is combining, this one does, as long as the next shard is
   there. After an error none does any more. */
static allfold_status hand_over(struct worker *worker, uint64_t shard, struct error *error)
{
    struct team *const team = worker->team;
    struct folding *const folding = team->user;
    pthread_mutex_lock(&team->lock);
    struct slot *slot = &folding->slots[shard % team->slots];
    memcpy(&slot->partial, worker->partial, monoid_bytes(folding->stream->monoid, folding->stream->type));
    slot->count = worker->count;
    slot->full = true;
    const bool combine = !folding->combining;
    while (combine && error->status == ALLFOLD_OK && (slot = &folding->slots[team->done % team->slots])->full) {
        folding->combining = true;
        pthread_mutex_unlock(&team->lock);
        folding->stream->count += slot->count;
        stream_take(team->ctx, team->job, folding->stream, &slot->partial, error);
        pthread_mutex_lock(&team->lock);
        slot->full = false;
        team_shards_done(team, folding->stream->done);
    }
    if (combine && error->status == ALLFOLD_OK)
        folding->combining = false;
    pthread_mutex_unlock(&team->lock);
    return error->status;
}

static allfold_status finish_window(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct folding *const folding = worker->team->user;
    const struct stream *const stream = folding->stream;
    const uint64_t first = lane->window.elements.first - worker->team->job->range.first;
    struct partial *const found = lane->queue->partial;
    phase_enter(worker->team->ctx->comm.progress, PHASE_FOLD);
    if (lane->piece.count == 0)
        monoid_identity(stream->monoid, stream->type, found);
    else if (lane->queue->device->backend->wait(lane->queue, error) != ALLFOLD_OK)
        return error->status;
    if (folding->whole_indices)
        place_indices(worker->team->job, lane, stream, found);
    if (first % stream->shard_elements == 0) {
        memcpy(worker->partial, found, monoid_bytes(stream->monoid, stream->type));
        worker->count = 0;
    } else {
        monoid_combine(stream->monoid, stream->type, worker->partial, found);
    }
    worker->count += lane->piece.count;
    return lane->window.ahead == 0 ? hand_over(worker, lane->window.shard, error) : ALLFOLD_OK;
}

static const struct team_work fold_windows = {start_window, finish_window};

/* Bytes for a window's second operand. Each of the two has half of a queue's buffers. */
static uint64_t room_for_second(uint64_t window, allfold_type type) { return reader_room(window, allfold_type_bytes(type)) + 2 * 4096; }

/* A run that is asked to stop starts no further shard, and finishes those that have started. */
static allfold_status fold_streamed(struct allfold_context *ctx, const struct job *job, struct folding *folding, struct error *error)
{
    struct stream *const stream = folding->stream;
    const bool two = job->second != NULL, in_place = folding->device_data->elements > 0 || folding->second.elements > 0;
    const bool by_granule = job->source->index != NULL && (folding->whole_indices || job->source->by_granule);
    const size_t window_bytes = by_granule ? 1 : ctx->device->window_bytes / (two ? 2 : 1); /* 1: one granule */
    const uint64_t window = team_window(job, stream->shard_elements, window_bytes);
    struct team team = {.ctx = ctx, .job = job, .work = &fold_windows, .user = folding,
                        .shard_elements = stream->shard_elements, .window_elements = window,
                        .queue_bytes = team_queue_bytes(ctx, job, window, two ? room_for_second(window, job->type) : 0),
                        .next = stream->done, .end = stream->shards};
    core_log(ctx, "%" PRIu64 " elements stream in %" PRIu64 " shards", job->range.count, stream->shards);
    team.slots = 4 * (uint64_t)ctx->device->worker_queues * (uint64_t)team_workers(ctx, team.end - team.next, team.queue_bytes);
    folding->slots = calloc(team.slots, sizeof *folding->slots);
    if (folding->slots == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the partials of %" PRIu64 " shards", team.slots);
    if (!in_place || team_follow(&team, error) == ALLFOLD_OK)
        team_run(&team, error);
    free(folding->slots);
    return stream_end(ctx, job, stream, error);
}

/* A rank without elements has read nothing, so its source needs no check. No other rank waits for a check: its outcome travels with the
   exchange, as any error does. */
allfold_status fold_part(struct allfold_context *ctx, const struct job *job, struct stream *stream, const struct device_data *device_data,
                         struct error *error)
{
    struct folding folding = {.stream = stream, .device_data = device_data, .whole_indices = has_whole_indices(job, stream->monoid)};
    if (job->range.count == 0 || error->status != ALLFOLD_OK)
        return error->status;
    if (job->second != NULL && locate_memory(ctx, job->second->memory, job->range.count, &folding.second, error) != ALLFOLD_OK)
        return error->status;
    if (device_data->elements == job->range.count && (job->second == NULL || folding.second.elements > 0))
        return fold_in_place(ctx, job, &folding, error);
    if (job_is_generated(ctx, job) && (device_data->capacity == 0 || device_data->capacity >= job->range.count))
        return fold_generated(ctx, job, stream, device_data, error);
    return fold_streamed(ctx, job, &folding, error) == ALLFOLD_OK ? source_check(job->source, error) : error->status;
}

allfold_status core_reduce(struct allfold_context *ctx, const struct fold_call *given, const struct job *job,
                           struct fold_results *result, struct error *error)
{
    struct fold_call call = *given;
    call.level = call.packing != NULL ? ALLFOLD_LEVEL_EXACT : ctx->level;
    const allfold_type type = job->type;
    const enum monoid monoid = fold_monoid(call.fold, call.level);
    struct partial partial;
    struct stream stream = {.monoid = monoid, .type = type, .partial = &partial};
    struct device_data device_data = {0};
    struct comm_part part = {.call = fold_call_number(CALL_REDUCE, &call),
                             .monoid = monoid, .type = type, .partial = &partial};
    progress_expect(ctx->comm.progress, job->range.count * allfold_type_bytes(type));
    part.call |= has_whole_indices(job, monoid) ? COMM_WHOLE_INDICES : 0;
    if (!stream_begin(ctx, job, &stream, error))
        return error->status;
    if (error->status == ALLFOLD_OK)
        locate_memory(ctx, job->source->memory, job->range.count, &device_data, error);
    fold_part(ctx, job, &stream, &device_data, error);
    part.count = stream.count;
    if (comm_combine(&ctx->comm, &part, error) != ALLFOLD_OK)
        return error->status;
    if (call.packing != NULL)
        packed_sum_unpack(call.packing, part.count, &partial);
    if (job->partial != NULL)
        *job->partial = partial;
    /* every rank holds the same partial: the same result, or the same error */
    const struct folded whole = {call.packing != NULL ? ALLFOLD_F64 : type, part.count, &partial};
    error->shared = fold_finish(&call, &whole, result, error) != ALLFOLD_OK;
    return error->status;
}
