/* Folds: each rank folds its part on its device, then there is one exchange. Data on the device is folded in one piece. Other
   data passes through the queues of a team, piece by piece (pieces.h). */
#include "core/pipeline.h"
#include "fold/packed.h"

#include <inttypes.h>

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
    ctx->device->backend->wait(ctx->queue, &ignored);
}

/* Whether partials get the indices of the whole array at once, because the source's order is not that of the array, or because it
   leaves out elements. */
static bool has_whole_indices(const struct job *job, enum monoid monoid)
{
    const bool leaves_out = job->source != NULL && (job->source->leaves_out || (job->second != NULL && job->second->leaves_out));
    return job->source != NULL && monoid_facts[monoid].indexed && (job->source->chunking != NULL || leaves_out);
}

struct axis_array job_array(const struct job *job)
{
    return (struct axis_array){.source = job->source, .type = job->type, .outer = 1, .length = job->range.first + job->range.count,
                               .inner = 1, .outer_stride = job->range.first + job->range.count, .axis_stride = 1, .omits = true, .progress = job->progress};
}

struct pieces job_pieces(struct allfold_context *ctx, const struct job *job, const struct axis_array *array, enum monoid monoid)
{
    return (struct pieces){.ctx = ctx, .array = array, .monoid = monoid, .second = job->second, .rule = job->rule, .stream = job->stream,
                           .origin = has_whole_indices(job, monoid) ? 0 : job->range.first};
}

/* Elements of a shard; of those that the device makes, of a piece. */
static uint64_t shard_elements(const struct allfold_context *ctx, const struct job *job)
{
    const struct device *const device = ctx->device;
    const uint64_t usual = job->source != NULL ? pieces_elements(job->source, job->type, device->shard_bytes) : 0;
    return job_is_generated(ctx, job) ? usual * u64_max(device->generated_bytes / device->shard_bytes, 1) : usual;
}

bool fold_part_begin(struct allfold_context *ctx, struct part_job *part, struct error *error)
{
    const struct job *const job = part->job;
    part->count = 0;
    monoid_identity(part->monoid, job->type, part->partial);
    monoid_has_room(part->monoid, job->range.count, error); /* of this part: known before the work */
    if (job->progress == NULL)
        return true;
    job->progress->monoid = part->monoid;
    job->progress->type = job->type;
    job->progress->shard_elements = shard_elements(ctx, job);
    progress_load(ctx, job->progress, error);
    return comm_agree(&ctx->comm, error) == ALLFOLD_OK;
}

/* Elements already on the device: one fold, in the caller's stream. */
static allfold_status fold_in_place(struct allfold_context *ctx, struct part_job *part, const void *y, struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    const struct job *const job = part->job;
    const struct work work = {part->monoid, job->type, part->x->memory, part->x->elements, 0, y, job->rule};
    struct queue *const queue = ctx->queue;
    phase_enter(ctx->comm.progress, PHASE_FOLD);
    if (backend->enter(queue, job->stream, error) != ALLFOLD_OK || backend->fold(queue, &work, error) != ALLFOLD_OK
        || backend->wait(queue, error) != ALLFOLD_OK) {
        drain(ctx);
        return error->status;
    }
    monoid_combine(part->monoid, job->type, part->partial, queue->partial);
    part->count = part->x->elements;
    atomic_fetch_add(&ctx->comm.progress->done, part->count * allfold_type_bytes(job->type));
    return ALLFOLD_OK;
}

/* Elements that the device makes itself, in long pieces: one thread and one queue keep it busy. */
static allfold_status fold_generated(struct allfold_context *ctx, struct pieces *p, struct part_job *part, struct error *error)
{
    struct device *const device = ctx->device;
    const struct job *const job = part->job;
    const size_t bytes = allfold_type_bytes(job->type);
    void *made = NULL;
    p->queue = ctx->queue;
    pieces_cut_row(p, job->range, (size_t)shard_elements(ctx, job) * bytes, 0);
    core_log(ctx, "%" PRIu64 " elements are made on the device, in %" PRIu64 " shards", job->range.count, p->segments);
    if (part->x->capacity == 0 && device->backend->allocate(device, p->length * bytes, &made, error) != ALLFOLD_OK)
        return error->status;
    p->made = made;
    pieces_fold_row(p, part->partial, &part->count, error);
    if (made != NULL)
        device->backend->release(device, made);
    return error->status;
}

/* A rank without elements has read nothing, so its source needs no check. No other rank waits for a check: its outcome travels with the
   exchange, as any error does. */
allfold_status fold_part(struct allfold_context *ctx, struct part_job *part, struct error *error)
{
    const struct job *const job = part->job;
    struct device_data y = {0};
    if (job->range.count == 0 || error->status != ALLFOLD_OK)
        return error->status;
    if (job->second != NULL && locate_memory(ctx, job->second->memory, job->range.count, &y, error) != ALLFOLD_OK)
        return error->status;
    const bool converts = job->second != NULL && (job->source->memory_type != ALLFOLD_TYPE_NONE || job->second->memory_type != ALLFOLD_TYPE_NONE);
    if (!converts && part->x->elements == job->range.count && (job->second == NULL || y.elements > 0))
        return fold_in_place(ctx, part, y.memory, error);
    const struct source *const source = job->source;
    const struct axis_array array = job_array(job);
    struct pieces p = job_pieces(ctx, job, &array, part->monoid);
    p.x = part->x;
    p.y = &y;
    p.follows = part->x->elements > 0 || y.elements > 0;
    if (job_is_generated(ctx, job) && (part->x->capacity == 0 || part->x->capacity >= job->range.count))
        return fold_generated(ctx, &p, part, error);
    const bool by_granule = source->chunking != NULL && (has_whole_indices(job, part->monoid) || source->by_granule);
    pieces_cut_row(&p, job->range, by_granule ? 1 : ctx->device->window_bytes / (job->second != NULL ? 2 : 1), 0); /* 1: one granule */
    if (pieces_fold_row(&p, part->partial, &part->count, error) != ALLFOLD_OK || source_check(job->source, error) != ALLFOLD_OK)
        return error->status;
    return job->second != NULL ? source_check(job->second, error) : ALLFOLD_OK;
}

allfold_status core_reduce(struct allfold_context *ctx, const struct fold_call *given, const struct job *job,
                           struct fold_results *result, struct error *error)
{
    struct fold_call call = *given;
    call.level = call.packing != NULL ? ALLFOLD_LEVEL_EXACT : ctx->level;
    const allfold_type type = job->type;
    const enum monoid monoid = fold_monoid(call.fold, call.level, type);
    struct partial partial;
    struct device_data x = {0};
    struct part_job own = {monoid, job, &x, &partial, 0};
    struct comm_part part = {.call = fold_call_number(CALL_REDUCE, &call) ^ job->key,
                             .monoid = monoid, .type = type, .partial = &partial};
    progress_expect(ctx->comm.progress, job->range.count * allfold_type_bytes(type));
    part.call |= has_whole_indices(job, monoid) ? COMM_WHOLE_INDICES : 0;
    if (!fold_part_begin(ctx, &own, error))
        return error->status;
    if (error->status == ALLFOLD_OK)
        locate_memory(ctx, job->source->memory, job->range.count, &x, error);
    fold_part(ctx, &own, error);
    part.count = own.count;
    if (comm_combine(&ctx->comm, &part, error) != ALLFOLD_OK)
        return error->status;
    if (call.packing != NULL)
        packed_sum_unpack(call.packing, part.count, &partial);
    const struct folded whole = {call.packing != NULL ? ALLFOLD_F64 : type, part.count, &partial};
    if (job->total != NULL) {
        *job->total = (struct total){call.fold, call.level, whole.type, part.count, part.count, partial};
        return ALLFOLD_OK;
    }
    /* every rank holds the same partial: the same result, or the same error */
    error->shared = fold_finish(&call, &whole, result, error) != ALLFOLD_OK;
    return error->status;
}
