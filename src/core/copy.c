/* Copies a rank's part of a source to a sink as it is: `generate` makes files so. */
#include "core/team.h"

static allfold_status start_window(struct worker *worker, struct lane *lane, struct error *error)
{
    return lane_read(worker, lane, error);
}

static allfold_status finish_window(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct team *const team = worker->team;
    struct sink *const sink = team->user;
    const struct range *const elements = &lane->window.elements;
    struct progress *const progress = team->ctx->comm.progress;
    phase_enter(progress, PHASE_WRITE);
    sink->write(sink, elements->first, elements->count, lane->piece.elements, error);
    atomic_fetch_add(&progress->done, elements->count * allfold_type_bytes(sink->type));
    return error->status;
}

allfold_status core_copy(struct allfold_context *ctx, const struct job *job, struct sink *sink, struct error *error)
{
    static const struct team_work copy_windows = {start_window, finish_window};
    const uint64_t shard = team_elements(job, ctx->device->shard_bytes);
    const uint64_t window = team_window(job, shard, ctx->device->window_bytes);
    struct team team = {.ctx = ctx, .job = job, .work = &copy_windows, .user = sink, .shard_elements = shard, .window_elements = window,
                        .queue_bytes = team_queue_bytes(ctx, job, window, 0),
                        .end = job->range.count / shard + (job->range.count % shard != 0)};
    progress_expect(ctx->comm.progress, job->range.count * allfold_type_bytes(job->type));
    if (team_run(&team, error) != ALLFOLD_OK || progress_check(ctx->comm.progress, error) != ALLFOLD_OK)
        return error->status;
    return source_check(job->source, error);
}
