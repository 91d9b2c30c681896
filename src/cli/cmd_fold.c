/* The folds: sum, min, stats and the others, each a command of that name. */
#include "cli/report.h"

void fold_run(struct session *session)
{
    const struct settings *const settings = session->settings;
    struct job job;
    allfold_result result;
    session_describe(session, settings->operand);
    if (session->error.status != ALLFOLD_OK)
        return;
    session_source(session, &job);
    core_reduce(session->context, (allfold_fold)settings->command->which, settings->nan, session->input.type, &job,
                &result, &session->error);
    source_close(job.source);
    const double seconds = session_seconds(session);
    session_phases(session);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_fold(session, &result, seconds);
}
