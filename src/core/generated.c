/* Folds elements that the device makes itself. One thread and one queue keep it busy. */
#include "core/pipeline.h"

#include <inttypes.h>

/* Makes the next shard at x and folds it there. */
static allfold_status fold_shard(struct allfold_context *ctx, const struct job *job, struct stream *stream, void *x,
                                 struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    const uint64_t first = stream->done * stream->shard_elements;
    const uint64_t count = u64_min(stream->shard_elements, job->range.count - first);
    const struct work work = {stream->monoid, stream->type, x, count, first, NULL};
    phase_enter(ctx->comm.progress, PHASE_READ);
    if (backend->generate(ctx->queue, job->source->draw, (struct range){job->range.first + first, count}, x, error) != ALLFOLD_OK)
        return error->status;
    phase_enter(ctx->comm.progress, PHASE_FOLD);
    if (backend->fold(ctx->queue, &work, error) != ALLFOLD_OK || backend->wait(ctx->queue, error) != ALLFOLD_OK)
        return error->status;
    stream->count += count;
    return stream_take(ctx, job, stream, ctx->queue->partial, error);
}

allfold_status fold_generated(struct allfold_context *ctx, const struct job *job, struct stream *stream,
                              const struct device_data *device_data, struct error *error)
{
    struct device *const device = ctx->device;
    const size_t bytes = allfold_type_bytes(stream->type), shard_bytes = (size_t)stream->shard_elements * bytes;
    const bool keep = device_data->capacity >= job->range.count;
    struct error ignored = {0};
    void *buffer = NULL;
    core_log(ctx, "%" PRIu64 " elements are made on the device, in %" PRIu64 " shards", job->range.count, stream->shards);
    if (!keep
        && device->backend->allocate(device, u64_min(stream->shard_elements, job->range.count) * bytes, &buffer, error) != ALLFOLD_OK)
        return error->status;
    while (error->status == ALLFOLD_OK && stream->done < stream->shards
           && atomic_load_explicit(&ctx->comm.progress->stop, memory_order_relaxed) == 0)
        fold_shard(ctx, job, stream, keep ? device_data->memory + stream->done * shard_bytes : buffer, error);
    if (error->status != ALLFOLD_OK)
        device->backend->wait(ctx->queue, &ignored); /* nothing may still be running */
    if (!keep)
        device->backend->release(device, buffer);
    return stream_end(ctx, job, stream, error);
}
