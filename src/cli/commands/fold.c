/* The folds: sum, min, stats and the others, each a command of that name. */
#include "cli/commands/commands.h"
#include "cli/report.h"

void fold_run(struct session *session)
{
    const struct settings *const settings = session->settings;
    struct job job;
    struct fold_results result;
    session_describe(session, settings->operand);
    if (session->error.status == ALLFOLD_OK)
        session_partial_begin(session);
    if (session->error.status != ALLFOLD_OK)
        return;
    struct partial_file partial = {.fold = (allfold_fold)settings->command->which, .level = settings->context.level,
                                   .type = session->input.type};
    session_source(session, &job);
    job.partial = settings->partial != NULL ? &partial.partial : NULL;
    const struct fold_call call = {.fold = (allfold_fold)settings->command->which, .nan = settings->nan,
                                   .result_type = settings->output_type};
    core_reduce(session->context, &call, &job, &result, &session->error);
    source_close(job.source);
    const double seconds = session_seconds(session);
    session_phases(session);
    partial.count = session->input.count;
    session_partial_end(session, &partial);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_fold(session, &result, seconds);
}
