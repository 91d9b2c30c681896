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
    job.result_type = settings->has_output_type ? &settings->output_type : NULL;
    core_reduce(session->context, (allfold_fold)settings->command->which, settings->nan, session->input.type, &job,
                &result, &session->error);
    source_close(job.source);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_fold(session, &result, session_seconds(session));
}
