/* Folds: each rank folds its part on its device, then there is one exchange. Data on the device is folded in one piece. Other
   data streams through the queues in shards. */
#include "core/pipeline.h"
#include "fold/packed.h"

#include <inttypes.h>
#include <stdio.h>
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

/* Whether the source's elements lie in host memory that the device can copy from; *from is then their address. */
static bool find_pinned(struct device *device, const struct job *job, struct range elements, const char **from,
                        struct error *error)
{
    const size_t element_bytes = allfold_type_bytes(job->type);
    enum place first = PLACE_HOST, last = PLACE_HOST;
    if (job->source->memory == NULL || elements.count == 0)
        return false;
    *from = (const char *)job->source->memory + (elements.first - job->range.first) * element_bytes;
    return device->backend->locate(device, *from, &first, error) == ALLFOLD_OK && first == PLACE_PINNED
           && device->backend->locate(device, *from + elements.count * element_bytes - 1, &last, error) == ALLFOLD_OK
           && last == PLACE_PINNED;
}

/* Reads elements to the queue's staging buffer; *from is then where they lie. */
static allfold_status read_elements(struct allfold_context *ctx, struct queue *queue, const struct job *job, struct range elements,
                                    const char **from, struct error *error)
{
    const size_t bytes = (size_t)elements.count * allfold_type_bytes(job->type);
    const struct read_request request = {elements, 0, queue->staging};
    struct piece piece;
    if ((ctx->reader == NULL && job->source->open_reader(job->source, &ctx->reader, error) != ALLFOLD_OK)
        || ctx->reader->read(ctx->reader, &request, &piece, error) != ALLFOLD_OK)
        return error->status;
    *from = piece.elements;
    if (*from < (char *)queue->staging || *from > (char *)queue->staging + queue->bytes + READER_SLACK)
        *from = memcpy(queue->staging, piece.elements, bytes);
    return ALLFOLD_OK;
}

void reader_close(struct allfold_context *ctx)
{
    if (ctx->reader != NULL)
        ctx->reader->close(ctx->reader);
    ctx->reader = NULL;
}

allfold_status elements_upload(struct allfold_context *ctx, struct queue *queue, const struct job *job, struct range elements,
                               void *memory, struct error *error)
{
    const char *from = queue->staging;
    phase_enter(ctx->comm.progress, PHASE_READ);
    if (!find_pinned(queue->device, job, elements, &from, error)
        && (error->status != ALLFOLD_OK || read_elements(ctx, queue, job, elements, &from, error) != ALLFOLD_OK))
        return error->status;
    phase_enter(ctx->comm.progress, PHASE_UPLOAD);
    return queue->device->backend->upload(queue, from, memory, (size_t)elements.count * allfold_type_bytes(job->type), error);
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
    for (int i = 0; i < ctx->queue_count; i++) {
        ctx->device->backend->softmax_cancel(ctx->queues[i]);
        ctx->device->backend->wait(ctx->queues[i], &ignored);
    }
}

/* Elements already on the device: one fold, in the caller's stream. */
static allfold_status fold_in_place(struct allfold_context *ctx, const struct job *job, struct stream *stream,
                                  const struct device_data *device_data, struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    struct queue *const queue = ctx->queues[0];
    const struct work work = {stream->monoid, stream->type, device_data->memory, device_data->elements, 0};
    phase_enter(ctx->comm.progress, PHASE_FOLD);
    if (backend->enter(queue, job->stream, error) != ALLFOLD_OK || backend->fold(queue, &work, error) != ALLFOLD_OK
        || backend->wait(queue, error) != ALLFOLD_OK)
        return error->status;
    monoid_combine(stream->monoid, stream->type, stream->partial, queue->partial);
    atomic_fetch_add(&ctx->comm.progress->done, device_data->elements * allfold_type_bytes(stream->type));
    return ALLFOLD_OK;
}

/* Names what the bits of this rank's folds depend on: its kind of device. */
static void device_words(const struct allfold_context *ctx, char words[64])
{
    const struct backend *const backend = ctx->device->backend;
    struct device_info info;
    snprintf(info.name, sizeof info.name, "%s", backend->name);
    if (backend->bits_by_model)
        backend->describe(ctx->device, &info);
    snprintf(words, 64, "%.63s", info.name);
}

bool stream_begin(struct allfold_context *ctx, const struct job *job, struct stream *stream, struct error *error)
{
    const size_t element_bytes = allfold_type_bytes(stream->type);
    const uint64_t shard = ctx->queues[0]->bytes / element_bytes;
    stream->shard_elements = shard;
    stream->shards = job->range.count / shard + (job->range.count % shard != 0);
    stream->done = 0;
    monoid_identity(stream->monoid, stream->type, stream->partial);
    monoid_has_room(stream->monoid, job->range.count, error); /* of this part: known before the work */
    if (job->hook == NULL)
        return true;
    device_words(ctx, stream->device);
    if (error->status == ALLFOLD_OK && job->hook->before(job->hook->user, stream, error) == ALLFOLD_OK && stream->done > 0) {
        core_log(ctx, "the checkpoint has %" PRIu64 " of %" PRIu64 " shards", stream->done, stream->shards);
        atomic_fetch_add(&ctx->comm.progress->done, u64_min(stream->done * shard, job->range.count) * element_bytes);
    }
    return comm_agree(&ctx->comm, error) == ALLFOLD_OK;
}

/* Shard number i of this rank's part, counted from the part's first element. */
static struct range shard_range(const struct job *job, const struct stream *stream, uint64_t i)
{
    const uint64_t first = i * stream->shard_elements;
    return (struct range){first, u64_min(stream->shard_elements, job->range.count - first)};
}

/* Starts shard number i. */
static allfold_status start_shard(struct allfold_context *ctx, const struct job *job, const struct stream *stream, uint64_t i,
                                  const struct device_data *device_data, struct error *error)
{
    struct queue *const queue = ctx->queues[i % (uint64_t)ctx->queue_count];
    const size_t element_bytes = allfold_type_bytes(stream->type);
    const struct range shard = shard_range(job, stream, i);
    const struct range elements = {job->range.first + shard.first, shard.count};
    const bool kept = shard.first + shard.count <= device_data->capacity;
    void *const memory = kept ? device_data->memory + shard.first * element_bytes : queue->buffer;
    const struct work work = {stream->monoid, stream->type, memory, shard.count, shard.first};
    if (elements_upload(ctx, queue, job, elements, memory, error) != ALLFOLD_OK)
        return error->status;
    phase_enter(ctx->comm.progress, PHASE_FOLD);
    return ctx->device->backend->fold(queue, &work, error);
}

/* Waits for the next shard and combines its partial. */
static allfold_status take_shard(struct allfold_context *ctx, const struct job *job, struct stream *stream, struct error *error)
{
    struct queue *const queue = ctx->queues[stream->done % (uint64_t)ctx->queue_count];
    const uint64_t elements = shard_range(job, stream, stream->done).count;
    phase_enter(ctx->comm.progress, PHASE_FOLD);
    if (ctx->device->backend->wait(queue, error) != ALLFOLD_OK)
        return error->status;
    monoid_combine(stream->monoid, stream->type, stream->partial, queue->partial);
    stream->done++;
    atomic_fetch_add(&ctx->comm.progress->done, elements * allfold_type_bytes(stream->type));
    return job->hook == NULL ? ALLFOLD_OK : job->hook->after_shard(job->hook->user, stream, false, error);
}

/* Shard i runs in queue i mod queues. Its partial is taken just before the queue's next shard, so partials come in order. A run
   that is asked to stop starts no further shard, and waits for those that have started. */
static allfold_status fold_streamed(struct allfold_context *ctx, const struct job *job, struct stream *stream,
                                    const struct device_data *device_data, struct error *error)
{
    const uint64_t queues = (uint64_t)ctx->queue_count, start = stream->done;
    uint64_t end = stream->shards;
    core_log(ctx, "%" PRIu64 " elements stream in %" PRIu64 " shards", job->range.count, stream->shards);
    for (uint64_t i = start; i < end + queues; i++) {
        if (i >= start + queues && take_shard(ctx, job, stream, error) != ALLFOLD_OK)
            return error->status;
        if (i < end && atomic_load_explicit(&ctx->comm.progress->stop, memory_order_relaxed) != 0)
            end = i;
        if (i < end && start_shard(ctx, job, stream, i, device_data, error) != ALLFOLD_OK)
            return error->status;
    }
    if (end == stream->shards)
        return ALLFOLD_OK;
    if (job->hook != NULL && job->hook->after_shard(job->hook->user, stream, true, error) != ALLFOLD_OK)
        return error->status;
    return progress_check(ctx->comm.progress, error);
}

allfold_status fold_part(struct allfold_context *ctx, const struct job *job, struct stream *stream, const struct device_data *device_data,
                         struct error *error)
{
    if (job->range.count == 0 || error->status != ALLFOLD_OK)
        return error->status;
    const allfold_status status = device_data->elements == job->range.count ? fold_in_place(ctx, job, stream, device_data, error)
                                                                       : fold_streamed(ctx, job, stream, device_data, error);
    if (status != ALLFOLD_OK)
        drain(ctx);
    return status;
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
    struct comm_part part = {.call = CALL_REDUCE | (uint32_t)call.fold << 8 | (uint32_t)call.result_type << 2 | (uint32_t)call.nan,
                             .monoid = monoid, .type = type, .count = job->range.count, .partial = &partial};
    progress_expect(ctx->comm.progress, part.count * allfold_type_bytes(type));
    if (!stream_begin(ctx, job, &stream, error))
        return error->status;
    if (error->status == ALLFOLD_OK)
        locate_memory(ctx, job->source->memory, part.count, &device_data, error);
    fold_part(ctx, job, &stream, &device_data, error);
    if (job->source != NULL)
        source_check(job->source, error);
    reader_close(ctx);
    if (comm_combine(&ctx->comm, &part, error) != ALLFOLD_OK)
        return error->status;
    if (call.packing != NULL)
        packed_sum_unpack(call.packing, part.count, &partial);
    if (job->partial != NULL)
        *job->partial = partial;
    /* every rank holds the same partial: the same result, or the same error */
    error->shared = fold_finish(&call, call.packing != NULL ? ALLFOLD_F64 : type, &partial, part.count, result, error) != ALLFOLD_OK;
    return error->status;
}
