/* A fold that takes its elements in shards: its beginning, each shard, and its end. For reduce.c, begin.c, generated.c and softmax.c. */
#include "core/pipeline.h"
#include "core/team.h"

#include <inttypes.h>
#include <stdio.h>

void stream_device(const struct allfold_context *ctx, char words[64])
{
    const struct backend *const backend = ctx->device->backend;
    struct device_info info;
    snprintf(info.name, sizeof info.name, "%s", backend->name);
    if (backend->bits_by_model)
        backend->describe(ctx->device, &info);
    snprintf(words, 64, "%.63s", info.name);
}

/* Elements of a shard: whole numbers of those that a queue has room for. */
static uint64_t shard_elements(const struct allfold_context *ctx, const struct job *job)
{
    const struct device *const device = ctx->device;
    const uint64_t usual = team_elements(job, device->shard_bytes);
    if (!job_is_generated(ctx, job))
        return usual;
    return usual * u64_max(device->generated_bytes / device->shard_bytes, 1);
}

bool stream_begin(struct allfold_context *ctx, const struct job *job, struct stream *stream, struct error *error)
{
    const size_t element_bytes = allfold_type_bytes(stream->type);
    const uint64_t shard = shard_elements(ctx, job);
    stream->shard_elements = shard;
    stream->shards = job->range.count / shard + (job->range.count % shard != 0);
    stream->done = stream->count = 0;
    monoid_identity(stream->monoid, stream->type, stream->partial);
    monoid_has_room(stream->monoid, job->range.count, error); /* of this part: known before the work */
    if (job->hook == NULL)
        return true;
    stream_device(ctx, stream->device);
    if (error->status == ALLFOLD_OK && job->hook->before(job->hook->user, stream, error) == ALLFOLD_OK && stream->done > 0) {
        core_log(ctx, "the checkpoint has %" PRIu64 " of %" PRIu64 " shards", stream->done, stream->shards);
        atomic_fetch_add(&ctx->comm.progress->done, u64_min(stream->done * shard, job->range.count) * element_bytes);
    }
    return comm_agree(&ctx->comm, error) == ALLFOLD_OK;
}

allfold_status stream_take(struct allfold_context *ctx, const struct job *job, struct stream *stream, const struct partial *partial,
                           struct error *error)
{
    const uint64_t elements = u64_min(stream->shard_elements, job->range.count - stream->done * stream->shard_elements);
    monoid_combine(stream->monoid, stream->type, stream->partial, partial);
    stream->done++;
    atomic_fetch_add(&ctx->comm.progress->done, elements * allfold_type_bytes(stream->type));
    return job->hook == NULL ? ALLFOLD_OK : job->hook->after_shard(job->hook->user, stream, false, error);
}

allfold_status stream_end(struct allfold_context *ctx, const struct job *job, const struct stream *stream, struct error *error)
{
    if (error->status != ALLFOLD_OK || stream->done == stream->shards)
        return error->status;
    if (job->hook != NULL && job->hook->after_shard(job->hook->user, stream, true, error) != ALLFOLD_OK)
        return error->status;
    return progress_check(ctx->comm.progress, error);
}
