/* Softmax: a first pass folds (max, sum of exponentials), one exchange makes it global, a second pass normalises each
   rank's part into its sink. What fits the device budget stays there between the passes; the rest is read twice. */
#include "core/pipeline.h"
#include "fold/exponential.h"

#include <inttypes.h>

/* The second pass over one rank's part. */
struct normalise {
    struct allfold_context *ctx;
    const struct job *job;
    struct softmax_constants constants;
    bool logarithm;
    allfold_type x_type, y_type;
    struct device_data x, y; /* what lies in device memory already */
    struct sink *sink;
    struct progress *progress;
};

/* Elements of the part that one step takes: input and output each fit half a queue. */
static uint64_t step_elements(const struct normalise *n)
{
    const size_t x_bytes = allfold_type_bytes(n->x_type), y_bytes = allfold_type_bytes(n->y_type);
    return n->ctx->queues[0]->bytes / 2 / (x_bytes > y_bytes ? x_bytes : y_bytes);
}

static allfold_status normalise_start(const struct normalise *n, struct queue *queue, struct range step,
                                      const void **host, struct error *error)
{
    const struct backend *const backend = n->ctx->device->backend;
    const size_t x_bytes = allfold_type_bytes(n->x_type), y_bytes = allfold_type_bytes(n->y_type);
    const uint64_t start = step.first - n->job->range.first;
    const bool kept = n->x.memory != NULL && start + step.count <= n->x.elements;
    char *const x = kept ? n->x.memory + start * x_bytes : queue->buffer;
    if (!kept && elements_upload(n->ctx, queue, n->job, step, x, error) != ALLFOLD_OK)
        return error->status;
    phase_enter(n->progress, PHASE_NORMALISE);
    char *const y = n->y.memory != NULL ? n->y.memory + start * y_bytes : (char *)queue->buffer + queue->bytes / 2;
    const struct softmax_work work = {x, y, n->x_type, n->y_type, step.count, n->logarithm, n->ctx->level};
    if (backend->normalise(queue, &work, &n->constants, error) != ALLFOLD_OK || n->y.memory != NULL)
        return error->status;
    return backend->download(queue, y, (size_t)step.count * y_bytes, host, error);
}

static allfold_status normalise_finish(const struct normalise *n, struct queue *queue, struct range step,
                                       const void *host, struct error *error)
{
    phase_enter(n->progress, PHASE_NORMALISE);
    if (n->ctx->device->backend->wait(queue, error) != ALLFOLD_OK)
        return error->status;
    if (n->y.memory == NULL) {
        phase_enter(n->progress, PHASE_WRITE);
        n->sink->write(n->sink, step.first, step.count, host, n->ctx->device->threads, error);
    }
    atomic_fetch_add(&n->progress->done, step.count * allfold_type_bytes(n->x_type));
    return error->status;
}

/* The caller's memory is written after the work in the caller's stream: several queues write it, and each of them waits. */
static allfold_status follow_caller(const struct normalise *n, struct error *error)
{
    for (int i = 0; i < n->ctx->queue_count && n->y.memory != NULL; i++)
        if (n->ctx->device->backend->follow(n->ctx->queues[i], n->job->stream, error) != ALLFOLD_OK)
            break;
    return error->status;
}

/* Backwards: the first pass ended at the end, so caches still hold the last elements. */
static allfold_status normalise_part(const struct normalise *n, struct error *error)
{
    const uint64_t count = n->job->range.count, queues = (uint64_t)n->ctx->queue_count;
    const uint64_t size = step_elements(n), steps = (count + size - 1) / size;
    struct range step[CORE_QUEUES_MAX] = {{0, 0}};
    const void *host[CORE_QUEUES_MAX] = {NULL};
    for (uint64_t i = 0; i < steps + queues; i++) {
        const uint64_t q = i % queues;
        struct queue *const queue = n->ctx->queues[q];
        if (i >= queues && i - queues < steps && normalise_finish(n, queue, step[q], host[q], error) != ALLFOLD_OK)
            return error->status;
        if (i < steps) {
            if (progress_check(n->progress, error) != ALLFOLD_OK)
                return error->status;
            const uint64_t start = (steps - 1 - i) * size;
            step[q] = (struct range){n->job->range.first + start, u64_min(size, count - start)};
            if (normalise_start(n, queue, step[q], &host[q], error) != ALLFOLD_OK)
                return error->status;
        }
    }
    return ALLFOLD_OK;
}

/* Allocates device memory for as much of the part as the budget allows, in whole shards. A failure is no error: less is kept. */
static void reserve_kept(struct allfold_context *ctx, allfold_type type, uint64_t count, struct device_data *kept)
{
    const size_t element_bytes = allfold_type_bytes(type);
    const uint64_t shard = ctx->queues[0]->bytes / element_bytes, room = ctx->device->memory / element_bytes;
    const uint64_t elements = room >= count ? count : room / shard * shard;
    struct error ignored = {0};
    void *memory;
    if (elements == 0
        || ctx->device->backend->allocate(ctx->device, elements * element_bytes, &memory, &ignored) != ALLFOLD_OK)
        return;
    *kept = (struct device_data){.memory = memory, .capacity = elements, .owned = true};
    core_log(ctx, "%" PRIu64 " of %" PRIu64 " elements stay on the device between the passes", elements, count);
}

/* Whether both the caller's part and its output lie on the device: the device then does both passes in its own way. Elements that
   were copied there for the second pass do not count, because the first pass has read them shard by shard. */
static bool is_placed(const struct normalise *n)
{
    const uint64_t count = n->job->range.count;
    return count > 0 && !n->x.owned && n->x.elements == count && n->y.elements == count;
}

/* The first pass on the device, in the caller's stream. One rank needs no partial: the device makes the constants. */
static allfold_status begin_placed(const struct normalise *n, struct partial *partial, struct error *error)
{
    const struct backend *const backend = n->ctx->device->backend;
    struct queue *const queue = n->ctx->queues[0];
    const bool single_rank = n->ctx->comm.size == 1;
    const struct softmax_work work = {n->x.memory, n->y.memory, n->x_type, n->y_type, n->x.elements, n->logarithm, n->ctx->level};
    phase_enter(n->progress, PHASE_FOLD);
    if (backend->enter(queue, n->job->stream, error) != ALLFOLD_OK
        || backend->softmax_begin(queue, &work, single_rank, error) != ALLFOLD_OK
        || (!single_rank && backend->softmax_partial(queue, error) != ALLFOLD_OK))
        drain(n->ctx); /* some of it may be under way, in the caller's stream */
    else if (!single_rank)
        *partial = *queue->partial;
    atomic_fetch_add(&n->progress->done, n->x.elements * allfold_type_bytes(n->x_type));
    return error->status;
}

/* The first pass over this rank's part. n->x gets the elements that lie on the device or stay there. */
static void fold_pass(struct normalise *n, struct stream *stream, struct error *error)
{
    const uint64_t count = n->job->range.count;
    if (error->status == ALLFOLD_OK) {
        locate_memory(n->ctx, n->sink->memory, count, &n->y, error);
        locate_memory(n->ctx, n->job->source->memory, count, &n->x, error);
    }
    /* a fold that resumes from its hook has not read the earlier elements: all are read again */
    if (error->status == ALLFOLD_OK && n->x.memory == NULL && n->job->hook == NULL)
        reserve_kept(n->ctx, n->x_type, count, &n->x);
    if (error->status == ALLFOLD_OK && is_placed(n))
        begin_placed(n, stream->partial, error);
    else
        fold_part(n->ctx, n->job, stream, &n->x, error);
    if (n->x.capacity > 0)
        n->x.elements = n->x.capacity;
}

/* The second pass, from the whole array's partial. */
static void normalise_pass(struct normalise *n, const struct stream *stream, struct error *error)
{
    const bool single_rank = n->ctx->comm.size == 1;
    softmax_constants_set(stream->monoid, stream->partial, &n->constants);
    if (is_placed(n)) {
        phase_enter(n->progress, PHASE_NORMALISE);
        n->ctx->device->backend->softmax_finish(n->ctx->queues[0], single_rank ? NULL : &n->constants, error);
        atomic_fetch_add(&n->progress->done, n->x.elements * allfold_type_bytes(n->x_type));
    } else if (follow_caller(n, error) == ALLFOLD_OK) {
        normalise_part(n, error);
        source_check(n->job->source, error);
    }
    if (error->status != ALLFOLD_OK)
        drain(n->ctx);
}

allfold_status core_softmax(struct allfold_context *ctx, bool logarithm, const struct job *job, struct sink *sink,
                            struct error *error)
{
    const bool usable = error->status == ALLFOLD_OK;
    struct normalise n = {.ctx = ctx, .job = job, .logarithm = logarithm, .x_type = job->type,
                          .y_type = usable ? sink->type : ALLFOLD_F32, .sink = sink, .progress = ctx->comm.progress};
    struct partial partial;
    struct stream stream = {.monoid = softmax_monoid(job->type, n.y_type, logarithm, ctx->level), .type = job->type,
                            .partial = &partial};
    struct comm_part part = {.call = CALL_SOFTMAX | (logarithm ? 1u : 0u) << 8 | (usable ? (uint32_t)sink->type : 0),
                             .monoid = stream.monoid, .type = job->type, .count = job->range.count, .partial = &partial};
    progress_expect(n.progress, 2 * part.count * allfold_type_bytes(job->type));
    if (!stream_begin(ctx, job, &stream, error))
        return error->status;
    fold_pass(&n, &stream, error);
    if (comm_combine(&ctx->comm, &part, error) == ALLFOLD_OK) /* of all parts together: every rank holds the same count */
        error->shared = monoid_has_room(stream.monoid, part.count, error) != ALLFOLD_OK;
    if (error->status != ALLFOLD_OK) {
        if (is_placed(&n))
            ctx->device->backend->softmax_cancel(ctx->queues[0]);
    } else {
        normalise_pass(&n, &stream, error);
        if (ctx->comm.size > 1)
            comm_agree(&ctx->comm, error);
    }
    device_data_release(ctx, &n.x);
    reader_close(ctx);
    return error->status;
}
