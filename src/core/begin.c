/* Folds in two phases. A rank's part is folded when the fold is begun: in device memory by a kernel that is only started, in a queue of
   its own. The first end makes one exchange of all folds that are begun by then, in the order in which they were. */
#include "core/pipeline.h"

struct begun *begun_open(struct allfold_context *ctx)
{
    for (int i = 0; i < BEGUN_MOST; i++)
        if (ctx->begun[i].ticket == 0) {
            ctx->begun[i].ticket = ++ctx->tickets;
            return &ctx->begun[i];
        }
    return NULL;
}

struct begun *begun_find(struct allfold_context *ctx, uint64_t ticket)
{
    for (int i = 0; i < BEGUN_MOST; i++)
        if (ticket != 0 && ctx->begun[i].ticket == ticket)
            return &ctx->begun[i];
    return NULL;
}

/* Starts the kernel, in the caller's stream. */
static allfold_status start(struct allfold_context *ctx, const struct job *job, const struct work *work, struct begun *begun)
{
    const struct backend *const backend = ctx->device->backend;
    struct error *const error = &begun->error;
    struct error ignored = {0};
    if (begun->queue == NULL && backend->queues_open(ctx->device, 0, 1, &begun->queue, error) != ALLFOLD_OK)
        return error->status;
    begun->count = work->n;
    begun->under_way = true;
    if (backend->enter(begun->queue, job->stream, error) != ALLFOLD_OK || backend->fold(begun->queue, work, error) != ALLFOLD_OK) {
        backend->wait(begun->queue, &ignored);
        begun->under_way = false;
    }
    return error->status;
}

void core_begin(struct allfold_context *ctx, const struct fold_call *call, const struct job *job, struct begun *begun,
                const struct error *given)
{
    struct error *const error = &begun->error;
    struct device_data x = {0}, y = {0};
    struct part_job part = {fold_monoid(call->fold, ctx->level, job->type), job, &x, &begun->partial, 0};
    *error = *given;
    begun->call = *call;
    begun->call.level = ctx->level;
    begun->type = job->type;
    begun->state = BEGUN_HERE;
    begun->phase = PHASE_START;
    begun->under_way = begun->delivered = false;
    begun->count = 0;
    fold_part_begin(ctx, &part, error);
    if (error->status != ALLFOLD_OK || job->range.count == 0
        || locate_memory(ctx, job->source->memory, job->range.count, &x, error) != ALLFOLD_OK
        || (job->second != NULL && locate_memory(ctx, job->second->memory, job->range.count, &y, error) != ALLFOLD_OK))
        return;
    begun->phase = PHASE_FOLD;
    if (ctx->device->backend->own_memory && x.elements > 0 && (job->second == NULL || y.elements > 0)) {
        start(ctx, job, &(struct work){part.monoid, job->type, x.memory, x.elements, 0, y.memory, NULL}, begun);
    } else {
        fold_part(ctx, &part, error);
        begun->count = part.count;
    }
}

/* Waits for the kernel, and takes its partial. An error is told with the phase in which it arose, not with that of a call in between. */
static void take_partial(struct allfold_context *ctx, struct begun *begun, struct error *error)
{
    if (begun->under_way && ctx->device->backend->wait(begun->queue, &begun->error) == ALLFOLD_OK)
        monoid_combine(fold_monoid(begun->call.fold, ctx->level, begun->type), begun->type, &begun->partial, begun->queue->partial);
    begun->under_way = false;
    if (error->status == ALLFOLD_OK && begun->error.status != ALLFOLD_OK) {
        *error = begun->error;
        phase_enter(ctx->comm.progress, begun->phase);
    }
}

struct comm_part begun_part(struct begun *begun)
{
    return (struct comm_part){.call = fold_call_number(CALL_BEGUN, &begun->call),
                              .monoid = fold_monoid(begun->call.fold, begun->call.level, begun->type), .type = begun->type,
                              .count = begun->count, .partial = &begun->partial};
}

/* The folds that no exchange has had or will have, in the order of their tickets. */
static int list(struct allfold_context *ctx, struct begun *begun[BEGUN_MOST])
{
    int count = 0;
    for (int i = 0; i < BEGUN_MOST; i++) {
        struct begun *const one = &ctx->begun[i];
        if (one->ticket == 0 || one->delivered || one->state != BEGUN_HERE)
            continue;
        int at = count++;
        for (; at > 0 && begun[at - 1]->ticket > one->ticket; at--)
            begun[at] = begun[at - 1];
        begun[at] = one;
    }
    return count;
}

/* As many exchanges as the folds need room for: mostly one. After a failure the folds that follow are left to their own ends. */
void begun_exchange(struct allfold_context *ctx, struct error *error)
{
    struct begun *begun[BEGUN_MOST];
    struct comm_part parts[BEGUN_MOST];
    const int count = list(ctx, begun);
    for (int i = 0; i < count; i++) {
        take_partial(ctx, begun[i], error);
        parts[i] = begun_part(begun[i]);
    }
    for (int first = 0, end; first < count; first = end) {
        if (first > 0 && error->status != ALLFOLD_OK)
            return;
        end = first + comm_fit(parts + first, count - first);
        comm_combine_all(&ctx->comm, parts + first, end - first, error);
        for (int i = first; i < end; i++) {
            begun[i]->state = error->status == ALLFOLD_OK ? BEGUN_EVERYWHERE : ctx->comm.different_calls ? BEGUN_APART : BEGUN_FAILED;
            begun[i]->error = *error;
            begun[i]->count = parts[i].count;
        }
    }
}

allfold_status core_end(struct allfold_context *ctx, struct begun *begun, struct fold_results *result, struct error *error)
{
    struct begun *ignored[BEGUN_MOST];
    if (begun != NULL && begun->state != BEGUN_HERE && error->status == ALLFOLD_OK)
        *error = begun->error;
    if (begun != NULL ? begun->state == BEGUN_HERE : list(ctx, ignored) > 0)
        begun_exchange(ctx, error);
    else if (begun != NULL && begun->state == BEGUN_APART) /* a rank that begins it later waits in an exchange of its own */
        comm_agree(&ctx->comm, error);
    if (begun == NULL)
        return error->status;
    begun->ticket = 0;
    if (error->status == ALLFOLD_OK)
        fold_finish(&begun->call, &(struct folded){begun->type, begun->count, &begun->partial}, result, error);
    return error->status;
}
