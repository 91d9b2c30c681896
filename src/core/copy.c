/* Copies a rank's part of a source to a sink as it is: `generate` makes files so. */
#include "core/pipeline.h"

static allfold_status start_piece(struct worker *worker, struct lane *lane, struct error *error)
{
    return piece_read(worker->team->pieces, worker, lane, error);
}

static allfold_status finish_piece(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct team *const team = worker->team;
    struct sink *const sink = team->user;
    piece_store(team->pieces, lane, sink, lane->host, error);
    atomic_fetch_add(&team->pieces->ctx->comm.progress->done, lane->count * allfold_type_bytes(sink->type));
    return error->status;
}

allfold_status core_copy(struct allfold_context *ctx, const struct job *job, struct sink *sink, struct error *error)
{
    static const struct team_work copy = {start_piece, finish_piece, NULL};
    const struct axis_array array = job_array(job);
    struct pieces p = job_pieces(ctx, job, &array, MONOID_sum);
    progress_expect(ctx->comm.progress, job->range.count * allfold_type_bytes(job->type));
    pieces_cut_row(&p, job->range, ctx->device->window_bytes, 0);
    struct team team = pieces_team(&p, (struct range){0, 1}, 0, &copy, sink);
    if (team_run(&team, error) != ALLFOLD_OK || progress_check(ctx->comm.progress, error) != ALLFOLD_OK)
        return error->status;
    return source_check(job->source, error);
}
