/* The folds: sum, min, stats and the others, each a command of that name. */
#include "cli/commands/commands.h"
#include "cli/report.h"

void fold_run(struct session *session)
{
    const struct settings *const settings = session->settings;
    const allfold_fold fold = (allfold_fold)settings->command->which;
    struct job job;
    struct fold_results result = {0};
    session_describe(session, settings->operand);
    if (session->error.status == ALLFOLD_OK)
        session_partial_begin(session);
    if (session->error.status != ALLFOLD_OK)
        return;
    struct partial_file partial = {.fold = fold, .type = session->input.type};
    const struct packing *const packing = fold == ALLFOLD_SUM || fold == ALLFOLD_MEAN ? array_keep_packed(&session->input) : NULL;
    session_source(session, &job);
    job.partial = settings->partial != NULL ? &partial.partial : NULL;
    const struct fold_call call = {.fold = fold, .nan = settings->nan, .result_type = settings->output_type,
                                   .packing = packing};
    core_reduce(session->context, &call, &job, &result, &session->error);
    source_close(job.source);
    const double seconds = session_seconds(session);
    session_phases(session);
    session->missing = session->input.count - result.count;
    partial.count = result.count;
    partial.length = session->input.count;
    partial.level = packing != NULL ? ALLFOLD_LEVEL_EXACT : settings->context.level;
    session_partial_end(session, &partial);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_fold(session, &result, seconds);
}
