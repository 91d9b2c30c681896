/* Progress that a caller keeps: see resumable.h. */
#include "core/pieces.h"

#include "base/host.h"

#include <inttypes.h>
#include <stdio.h>

allfold_status progress_load(struct allfold_context *ctx, struct resumable *progress, struct error *error)
{
    const struct backend *const backend = ctx->device->backend;
    if (progress->loaded)
        return error->status;
    snprintf(progress->device, sizeof progress->device, "%.63s", backend->bits_by_model ? ctx->device->info.name : backend->name);
    progress->last = clock_seconds();
    progress->loaded = true;
    phase_enter(ctx->comm.progress, PHASE_CHECKPOINT);
    return error->status != ALLFOLD_OK ? error->status : progress->load(progress, error);
}

allfold_status progress_sync(struct allfold_context *ctx, struct resumable *progress, struct error *error)
{
    phase_enter(ctx->comm.progress, PHASE_WRITE);
    for (int i = 0; i < progress->sink_count && error->status == ALLFOLD_OK; i++)
        if (progress->sinks[i]->sync != NULL)
            progress->sinks[i]->sync(progress->sinks[i], error);
    return error->status;
}

bool progress_is_due(const struct resumable *progress) { return clock_seconds() - progress->last >= progress->every; }

allfold_status progress_save(struct allfold_context *ctx, struct resumable *progress, struct error *error)
{
    const enum phase before = phase_of_thread(ctx->comm.progress);
    if (progress_sync(ctx, progress, error) != ALLFOLD_OK)
        return error->status;
    phase_enter(ctx->comm.progress, PHASE_CHECKPOINT);
    if (progress->save(progress, error) != ALLFOLD_OK)
        return error->status;
    progress->last = clock_seconds();
    phase_enter(ctx->comm.progress, before);
    return ALLFOLD_OK;
}

void progress_tell(const struct allfold_context *ctx, const char *what, uint64_t done, uint64_t of, uint64_t bytes)
{
    if (done == 0)
        return;
    core_log(ctx, "the checkpoint has %" PRIu64 " of %" PRIu64 " %s", done, of, what);
    atomic_fetch_add(&ctx->comm.progress->done, bytes);
}

allfold_status progress_refuse(struct error *error)
{
    return error_set(error, ALLFOLD_BAD_INPUT, "the checkpoint is not of this work: remove it to begin anew");
}
