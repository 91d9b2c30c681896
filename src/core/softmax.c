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
    struct device_data x, y; /* what lies in device memory already */
    struct sink *sink;
};

/* Backwards: the first pass ended at the end, so caches still hold the last elements. The caller's memory is written after the work in
   the caller's stream. */
static allfold_status normalise_part(struct normalise *n, struct error *error)
{
    const size_t x_bytes = allfold_type_bytes(n->job->type), y_bytes = allfold_type_bytes(n->sink->type);
    const size_t bytes = n->ctx->device->window_bytes / 2 * x_bytes / u64_max(x_bytes, y_bytes);
    const struct softmax_output output = {.logarithm = n->logarithm, .sink = n->sink, .y = n->y.memory, .type = n->sink->type};
    const struct axis_array array = job_array(n->job);
    struct pieces p = job_pieces(n->ctx, n->job, &array, MONOID_sum);
    p.x = &n->x;
    p.follows = n->y.memory != NULL;
    pieces_cut_row(&p, n->job->range, n->job->source->chunking != NULL ? 1 : bytes, y_bytes); /* 1: one granule */
    return pieces_normalise(&p, &output, &n->constants, error) == ALLFOLD_OK ? source_check(n->job->source, error) : error->status;
}

/* Allocates device memory for as much of the part as the budget allows, in whole shards. A failure is no error: less is kept. Pieces
   with empty positions are not kept. */
static void reserve_kept(struct allfold_context *ctx, const struct job *job, struct device_data *kept)
{
    const size_t element_bytes = allfold_type_bytes(job->type);
    const uint64_t count = job->range.count;
    const uint64_t shard = pieces_elements(job->source, job->type, ctx->device->shard_bytes), room = ctx->device->memory / element_bytes;
    const uint64_t elements = room >= count ? count : room / shard * shard;
    struct error ignored = {0};
    void *memory;
    if (elements == 0 || job->source->chunking != NULL
        || ctx->device->backend->allocate(ctx->device, elements * element_bytes, &memory, &ignored) != ALLFOLD_OK)
        return;
    *kept = (struct device_data){.memory = memory, .capacity = elements, .owned = true};
    core_log(ctx, "%" PRIu64 " of %" PRIu64 " elements stay on the device between the passes", elements, count);
}

/* Whether both the caller's part and its output lie on the device: the device then does both passes in its own way. Elements that
   were copied there for the second pass do not count, because the first pass has read them shard by shard. */
static bool lies_on_device(const struct normalise *n)
{
    const uint64_t count = n->job->range.count;
    return count > 0 && !n->x.owned && n->x.elements == count && n->y.elements == count;
}

/* The first pass on the device, in the caller's stream. One rank needs no partial: the device makes the constants. */
static allfold_status begin_on_device(const struct normalise *n, struct partial *partial, struct error *error)
{
    const struct backend *const backend = n->ctx->device->backend;
    struct queue *const queue = n->ctx->queue;
    const bool single_rank = n->ctx->comm.size == 1;
    const uint64_t count = n->x.elements;
    const struct softmax_work work = {n->x.memory, n->y.memory, n->job->type, n->sink->type, box_of_row(count), count, 1, n->logarithm, n->ctx->level};
    phase_enter(n->ctx->comm.progress, PHASE_FOLD);
    if (backend->enter(queue, n->job->stream, error) != ALLFOLD_OK
        || backend->softmax_begin(queue, &work, single_rank, error) != ALLFOLD_OK)
        drain(n->ctx); /* some of it may be under way, in the caller's stream */
    else if (!single_rank)
        *partial = *queue->partial;
    atomic_fetch_add(&n->ctx->comm.progress->done, count * allfold_type_bytes(n->job->type));
    return error->status;
}

/* The first pass over this rank's part. n->x gets the elements that lie on the device or stay there. */
static void fold_pass(struct normalise *n, struct part_job *part, struct error *error)
{
    const uint64_t count = n->job->range.count;
    if (error->status == ALLFOLD_OK) {
        locate_memory(n->ctx, n->sink->memory, count, &n->y, error);
        locate_memory(n->ctx, n->job->source->memory, count, &n->x, error);
    }
    /* a fold that resumes has not read the earlier elements: all are read again */
    if (error->status == ALLFOLD_OK && n->x.memory == NULL && n->job->progress == NULL)
        reserve_kept(n->ctx, n->job, &n->x);
    if (error->status == ALLFOLD_OK && lies_on_device(n))
        begin_on_device(n, part->partial, error);
    else
        fold_part(n->ctx, part, error);
    if (n->x.capacity > 0)
        n->x.elements = n->x.capacity;
}

/* The second pass, from the whole array's partial. */
static void normalise_pass(struct normalise *n, const struct part_job *part, struct error *error)
{
    const bool single_rank = n->ctx->comm.size == 1;
    softmax_constants_set(part->monoid, part->partial, &n->constants);
    if (lies_on_device(n)) {
        phase_enter(n->ctx->comm.progress, PHASE_NORMALISE);
        n->ctx->device->backend->softmax_finish(n->ctx->queue, single_rank ? NULL : &n->constants, error);
        atomic_fetch_add(&n->ctx->comm.progress->done, n->x.elements * allfold_type_bytes(n->job->type));
        if (error->status != ALLFOLD_OK)
            drain(n->ctx);
    } else if (n->job->range.count > 0) {
        normalise_part(n, error);
    }
}

allfold_status core_softmax(struct allfold_context *ctx, bool logarithm, const struct job *job, struct sink *sink,
                            struct error *error)
{
    const bool usable = error->status == ALLFOLD_OK;
    const allfold_type y_type = usable ? sink->type : ALLFOLD_F32;
    struct normalise n = {.ctx = ctx, .job = job, .logarithm = logarithm, .sink = sink};
    struct partial partial;
    struct part_job own = {softmax_monoid(job->type, y_type, logarithm, ctx->level), job, &n.x, &partial, 0};
    struct comm_part part = {.call = CALL_SOFTMAX | (logarithm ? 1u : 0u) << 8 | (usable ? (uint32_t)y_type : 0) | job->key,
                             .monoid = own.monoid, .type = job->type, .count = job->range.count, .partial = &partial};
    progress_expect(ctx->comm.progress, 2 * part.count * allfold_type_bytes(job->type));
    if (!fold_part_begin(ctx, &own, error))
        return error->status;
    fold_pass(&n, &own, error);
    if (comm_combine(&ctx->comm, &part, error) == ALLFOLD_OK) /* of all parts together: every rank holds the same count */
        error->shared = monoid_has_room(own.monoid, part.count, error) != ALLFOLD_OK;
    if (error->status != ALLFOLD_OK) {
        if (lies_on_device(&n))
            drain(ctx);
    } else {
        normalise_pass(&n, &own, error);
        if (ctx->comm.size > 1)
            comm_agree(&ctx->comm, error);
    }
    device_data_release(ctx, &n.x);
    return error->status;
}
