/* Folds: each rank its part, on its device, in one piece where the data lies there and in shards that stream through
   the queues where it does not; then one exchange. */
#include "core/pipeline.h"

#include <inttypes.h>
#include <stdio.h>

allfold_status place_resident(struct allfold_context *ctx, const void *resident, uint64_t count, struct placed *placed,
                              struct error *error)
{
    enum place place = PLACE_HOST;
    *placed = (struct placed){0};
    if (resident == NULL || count == 0)
        return ALLFOLD_OK;
    if (ctx->device->backend->locate(ctx->device, resident, &place, error) != ALLFOLD_OK)
        return error->status;
    if (place == PLACE_DEVICE)
        *placed = (struct placed){(char *)(uintptr_t)resident, count, false};
    return ALLFOLD_OK;
}

/* Whether the source's elements lie in host memory from which the device can copy; if so *from is where. */
static bool find_pinned(struct allfold_context *ctx, const struct job *job, struct range elements, size_t element_bytes,
                        const char **from, struct error *error)
{
    enum place first = PLACE_HOST, last = PLACE_HOST;
    if (job->source->resident == NULL || elements.count == 0)
        return false;
    *from = (const char *)job->source->resident + (elements.first - job->range.first) * element_bytes;
    return ctx->device->backend->locate(ctx->device, *from, &first, error) == ALLFOLD_OK && first == PLACE_PINNED
           && ctx->device->backend->locate(ctx->device, *from + elements.count * element_bytes - 1, &last, error) == ALLFOLD_OK
           && last == PLACE_PINNED;
}

allfold_status elements_upload(struct allfold_context *ctx, struct queue *queue, const struct job *job, struct range elements,
                               size_t element_bytes, void *memory, struct error *error)
{
    struct progress *const progress = ctx->comm.progress;
    const char *from = queue->staging;
    phase_enter(progress, PHASE_READ);
    if (!find_pinned(ctx, job, elements, element_bytes, &from, error)) {
        from = queue->staging;
        if (error->status != ALLFOLD_OK
            || job->source->read(job->source, elements.first, elements.count, queue->staging, ctx->device->threads, error)
                   != ALLFOLD_OK)
            return error->status;
    }
    phase_enter(progress, PHASE_UPLOAD);
    return ctx->device->backend->upload(queue, from, memory, (size_t)elements.count * element_bytes, error);
}

void placed_release(struct allfold_context *ctx, struct placed *placed)
{
    if (placed->owned)
        ctx->device->backend->release(ctx->device, placed->memory);
    *placed = (struct placed){0};
}

void drain(struct allfold_context *ctx)
{
    struct error ignored = {0};
    for (int i = 0; i < ctx->queue_count; i++)
        ctx->device->backend->wait(ctx->queues[i], &ignored);
}

/* Elements already on the device: one fold, in the caller's stream. */
static allfold_status fold_placed(struct allfold_context *ctx, enum monoid monoid, allfold_type type,
                                  const struct job *job, const struct placed *placed, struct partial *partial,
                                  struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    struct queue *const queue = ctx->queues[0];
    phase_enter(ctx->comm.progress, PHASE_FOLD);
    if (backend->enter(queue, job->stream, error) != ALLFOLD_OK
        || backend->fold(queue, monoid, type, placed->memory, placed->elements, 0, error) != ALLFOLD_OK
        || backend->wait(queue, error) != ALLFOLD_OK)
        return error->status;
    monoid_combine(monoid, type, partial, queue->partial);
    atomic_fetch_add(&ctx->comm.progress->done, placed->elements * allfold_type_bytes(type));
    return ALLFOLD_OK;
}

/* Sets a shard going. */
static allfold_status start_shard(struct allfold_context *ctx, struct queue *queue, enum monoid monoid,
                                  allfold_type type, const struct job *job, struct range shard, void *memory,
                                  struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    if (elements_upload(ctx, queue, job, shard, allfold_type_bytes(type), memory, error) != ALLFOLD_OK)
        return error->status;
    phase_enter(ctx->comm.progress, PHASE_FOLD);
    return backend->fold(queue, monoid, type, memory, shard.count, shard.first - job->range.first, error);
}

/* What folds of this rank's device depend on, in words. Which CPU it is changes no bits. */
static void device_words(const struct allfold_context *ctx, char words[64])
{
    struct device_info info = {.name = "cpu"};
    if (ctx->device->backend != &backend_cpu)
        ctx->device->backend->describe(ctx->device, &info);
    snprintf(words, 64, "%.63s", info.name);
}

/* Where the fold may begin: at shard 0, or where a checkpoint says. */
static allfold_status find_start(struct allfold_context *ctx, enum monoid monoid, allfold_type type,
                                 const struct job *job, uint64_t shard_elements, uint64_t shards,
                                 struct partial *partial, uint64_t *start, struct error *error)
{
    char device[64];
    *start = 0;
    if (job->checkpoint == NULL)
        return ALLFOLD_OK;
    phase_enter(ctx->comm.progress, PHASE_CHECKPOINT);
    device_words(ctx, device);
    if (checkpoint_load(job->checkpoint, device, monoid, type, shard_elements, partial, start, error) != ALLFOLD_OK)
        return error->status;
    if (*start > shards)
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: the checkpoint is beyond the input", job->checkpoint->path);
    core_log(ctx, "the checkpoint has %" PRIu64 " of %" PRIu64 " shards", *start, shards);
    atomic_fetch_add(&ctx->comm.progress->done,
                     u64_min(*start * shard_elements, job->range.count) * allfold_type_bytes(type));
    return ALLFOLD_OK;
}

/* Takes the next partial, which is that of shard number `shard`. */
static allfold_status take_shard(struct allfold_context *ctx, struct queue *queue, enum monoid monoid, allfold_type type,
                                 const struct job *job, uint64_t shard, uint64_t elements, struct partial *partial,
                                 struct error *error)
{
    phase_enter(ctx->comm.progress, PHASE_FOLD);
    if (ctx->device->backend->wait(queue, error) != ALLFOLD_OK)
        return error->status;
    monoid_combine(monoid, type, partial, queue->partial);
    atomic_fetch_add(&ctx->comm.progress->done, elements * allfold_type_bytes(type));
    if (job->checkpoint == NULL || !checkpoint_due(job->checkpoint))
        return ALLFOLD_OK;
    phase_enter(ctx->comm.progress, PHASE_CHECKPOINT);
    return checkpoint_save(job->checkpoint, type, partial, shard + 1, error);
}

static allfold_status fold_streamed(struct allfold_context *ctx, enum monoid monoid, allfold_type type,
                                    const struct job *job, const struct placed *placed, uint64_t keep,
                                    struct partial *partial, struct error *error)
{
    const size_t element_bytes = allfold_type_bytes(type);
    const uint64_t shard_elements = ctx->queues[0]->bytes / element_bytes;
    const uint64_t shards = (job->range.count + shard_elements - 1) / shard_elements;
    const uint64_t queues = (uint64_t)ctx->queue_count;
    uint64_t start, end = shards;
    core_log(ctx, "%" PRIu64 " elements stream in %" PRIu64 " shards", job->range.count, shards);
    if (find_start(ctx, monoid, type, job, shard_elements, shards, partial, &start, error) != ALLFOLD_OK)
        return error->status;

    /* Shard i runs in queue i mod queues. Its partial is taken just before the queue's next shard: in order. A run that is
       asked to stop starts no further shard, and takes those that are under way. */
    for (uint64_t i = start; i < end + queues; i++) {
        struct queue *const queue = ctx->queues[i % queues];
        if (i >= start + queues
            && take_shard(ctx, queue, monoid, type, job, i - queues,
                          u64_min(shard_elements, job->range.count - (i - queues) * shard_elements), partial, error)
                   != ALLFOLD_OK)
            return error->status;
        if (i < end && atomic_load_explicit(&ctx->comm.progress->stop, memory_order_relaxed) != 0)
            end = i;
        if (i < end) {
            const uint64_t first = i * shard_elements;
            const struct range shard = {job->range.first + first, u64_min(shard_elements, job->range.count - first)};
            void *const memory = first + shard.count <= keep ? placed->memory + first * element_bytes : queue->buffer;
            if (start_shard(ctx, queue, monoid, type, job, shard, memory, error) != ALLFOLD_OK)
                return error->status;
        }
    }
    if (end == shards)
        return ALLFOLD_OK;
    if (job->checkpoint != NULL) {
        phase_enter(ctx->comm.progress, PHASE_CHECKPOINT);
        if (checkpoint_save(job->checkpoint, type, partial, end, error) != ALLFOLD_OK)
            return error->status;
        phase_enter(ctx->comm.progress, PHASE_FOLD);
    }
    return progress_check(ctx->comm.progress, error);
}

allfold_status fold_part(struct allfold_context *ctx, enum monoid monoid, allfold_type type, const struct job *job,
                         const struct placed *placed, uint64_t keep, struct partial *partial, struct error *error)
{
    monoid_identity(monoid, type, partial);
    if (job->range.count == 0 || error->status != ALLFOLD_OK)
        return error->status;
    const allfold_status status = placed->elements == job->range.count
                                      ? fold_placed(ctx, monoid, type, job, placed, partial, error)
                                      : fold_streamed(ctx, monoid, type, job, placed, keep, partial, error);
    if (status != ALLFOLD_OK)
        drain(ctx);
    return status;
}

allfold_status core_reduce(struct allfold_context *ctx, allfold_fold fold, allfold_nan nan, allfold_type type,
                           const struct job *job, allfold_result *result, struct error *error)
{
    const enum monoid monoid = fold_monoid(fold, ctx->level);
    const struct fold_call call = {fold, ctx->level, nan, job->result_type};
    struct partial partial;
    struct placed placed = {0};
    uint64_t count = job->range.count;
    progress_expect(ctx->comm.progress, count * allfold_type_bytes(type));
    if (error->status == ALLFOLD_OK)
        place_resident(ctx, job->source->resident, count, &placed, error);
    fold_part(ctx, monoid, type, job, &placed, 0, &partial, error);
    if (comm_combine(&ctx->comm, CALL_REDUCE | (uint32_t)fold << 8 | (uint32_t)nan, monoid, type, &partial, &count, error)
        != ALLFOLD_OK)
        return error->status;
    if (job->partial != NULL)
        *job->partial = partial;
    /* every rank holds the same partial: the same result, or the same error */
    error->shared = fold_finish(&call, type, &partial, count, result, error) != ALLFOLD_OK;
    return error->status;
}
