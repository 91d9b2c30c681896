/* Runs a team over the pieces of an array along an axis. If progress is to be kept, workers make pauses in which it is saved. See
   axis_stream.h. */
#include "core/axis_stream.h"

#include "base/host.h"

#include <inttypes.h>

bool axis_stream_pauses(const struct axis_stream *s, bool done_something)
{
    return atomic_load_explicit(&s->ctx->comm.progress->stop, memory_order_relaxed) != 0
           || (s->pause_at > 0 && done_something && clock_seconds() >= s->pause_at);
}

void axis_stream_tell(const struct axis_stream *s, uint64_t bytes)
{
    struct progress *const progress = s->ctx->comm.progress;
    if (bytes == 0)
        return;
    core_log(s->ctx, "the checkpoint has %" PRIu64 " of %" PRIu64 " bytes", bytes, atomic_load(&progress->total));
    atomic_fetch_add(&progress->done, bytes);
}

allfold_status axis_stream_sync(const struct axis_stream *s, struct error *error)
{
    const struct axis_checkpoint *const checkpoint = s->array->checkpoint;
    phase_enter(s->ctx->comm.progress, PHASE_WRITE);
    for (int i = 0; i < checkpoint->sink_count && error->status == ALLFOLD_OK; i++)
        if (checkpoint->sinks[i]->sync != NULL)
            checkpoint->sinks[i]->sync(checkpoint->sinks[i], error);
    return error->status;
}

allfold_status axis_stream_save(const struct axis_stream *s, struct error *error)
{
    const struct axis_checkpoint *const checkpoint = s->array->checkpoint;
    if (axis_stream_sync(s, error) == ALLFOLD_OK)
        checkpoint->hook->after_shard(checkpoint->hook->user, &checkpoint->stream, true, error);
    return error->status;
}

static uint64_t shards(const struct axis_tasks *tasks, uint64_t count) { return count / tasks->shard + (count % tasks->shard != 0); }

allfold_status axis_stream_run(struct axis_stream *s, struct axis_tasks *tasks, struct error *error)
{
    const struct job job = {.type = s->array->type, .source = s->array->source, .range = {0, tasks->count}};
    do {
        s->pause_at = tasks->save != NULL ? clock_seconds() + s->array->checkpoint->hook->every : 0;
        struct team team = {.ctx = s->ctx, .job = &job, .work = tasks->work, .user = tasks->user, .shard_elements = tasks->shard,
                            .window_elements = 1, .queue_bytes = s->queue_bytes, .pause_at = s->pause_at,
                            .next = shards(tasks, tasks->first), .end = shards(tasks, tasks->count)};
        if (team_run(&team, error) != ALLFOLD_OK)
            return error->status;
        tasks->first = u64_min(team.next * tasks->shard, tasks->count);
        if (tasks->save != NULL)
            tasks->save(s, tasks, error);
    } while (progress_check(s->ctx->comm.progress, error) == ALLFOLD_OK && tasks->first < tasks->count);
    return error->status;
}

static void save_rows(struct axis_stream *s, struct axis_tasks *tasks, struct error *error)
{
    s->array->checkpoint->stream.done = tasks->first;
    axis_stream_save(s, error);
}

allfold_status axis_stream_run_rows(struct axis_stream *s, const struct team_work *work, void *user, struct error *error)
{
    const struct axis_checkpoint *const checkpoint = s->array->checkpoint;
    struct axis_tasks tasks = {work, user, s->units, axis_stream_shard(s), 0, NULL};
    if (checkpoint != NULL) {
        tasks.save = save_rows;
        tasks.first = checkpoint->stream.done;
        if (tasks.first > tasks.count || checkpoint->stream.state_bytes > 0)
            return error_set(error, ALLFOLD_BAD_INPUT, "the checkpoint is not of this work: remove it to begin anew");
        axis_stream_tell(s, axis_stream_first(s, tasks.first) * s->part.length * allfold_type_bytes(s->array->type));
    }
    return axis_stream_run(s, &tasks, error);
}
