/* Runs the commands that fold: sum, min, stats and the others. */
#include "cli/commands/commands.h"
#include "cli/commands/fold_axis.h"
#include "cli/report.h"

#include <inttypes.h>

/* Missing elements in what a checkpoint holds are no error of this run's source. */
static void refuse_missing(struct session *session)
{
    struct error *const error = &session->error;
    char name[ARRAY_NAME_BYTES];
    if (error->status == ALLFOLD_OK && session->missing > 0 && session->input.missing == MISSING_ERROR)
        error->shared = error_set(error, ALLFOLD_NO_VALUE, "%s: %" PRIu64 " of the elements are missing, which the run found before it was "
                                  "resumed: they are refused here (--missing=omit leaves them out)",
                                  file_shown(array_name(&session->input, name)), session->missing) != ALLFOLD_OK;
}

void fold_run(struct session *session)
{
    const struct settings *const settings = session->settings;
    const allfold_fold fold = (allfold_fold)settings->command->which;
    struct job job;
    struct fold_results result = {0};
    if (settings->axis != NULL) {
        fold_axis_run(session);
        return;
    }
    session_describe(session, settings->operands, settings->operand_count);
    if (session->error.status == ALLFOLD_OK)
        session_partial_begin(session);
    if (session->error.status != ALLFOLD_OK)
        return;
    struct partial_file partial = {.fold = fold, .type = session->input.type};
    const struct packing *const packing = fold == ALLFOLD_SUM || fold == ALLFOLD_MEAN ? array_keep_packed(&session->input) : NULL;
    session_source(session, &job);
    job.partial = settings->partial != NULL ? &partial.partial : NULL;
    const struct fold_call call = {.fold = fold, .nan = settings->nan, .result_type = settings->output_type,
                                   .ddof = settings->ddof, .packing = packing};
    core_reduce(session->context, &call, &job, &result, &session->error);
    source_close(job.source);
    const double seconds = session_seconds(session);
    session_phases(session);
    session->missing = session->input.count - result.count;
    refuse_missing(session);
    partial.count = result.count;
    partial.length = session->input.count;
    partial.level = packing != NULL ? ALLFOLD_LEVEL_EXACT : settings->context.level;
    session_partial_end(session, &partial);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_fold(session, &result, seconds);
}
