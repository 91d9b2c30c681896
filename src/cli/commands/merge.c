/* merge: combines partials that folds have left in files (--partial) into the result of the whole array. Rank 0 does it. */
#include "cli/commands/commands.h"
#include "base/host.h"
#include "cli/report.h"


static allfold_status merge_files(const struct settings *settings, struct total *all, struct error *error)
{
    struct total next;
    struct error own = {0};
    for (int i = 0; i < settings->operand_count && error->status == ALLFOLD_OK; i++)
        if (partial_file_read(settings->operands[i], &next, error) == ALLFOLD_OK) {
            total_append(all, &next, &own);
            error_within(error, &own, "%s", file_shown(settings->operands[i]));
        }
    return error->status;
}

void merge_run(struct session *session)
{
    const struct settings *const settings = session->settings;
    struct total all = {.type = ALLFOLD_TYPE_NONE};
    struct fold_results result;
    session->started = clock_seconds();
    session_partial_begin(session);
    if (session->error.status != ALLFOLD_OK)
        return;
    if (session_comm(session)->rank == 0 && merge_files(settings, &all, &session->error) == ALLFOLD_OK) {
        const struct fold_call call = {.nan = settings->nan, .result_type = settings->output_type, .ddof = settings->ddof};
        if (settings->nan != ALLFOLD_NAN_PROPAGATE && !fold_has_nan_choice(all.fold))
            error_set(&session->error, ALLFOLD_BAD_ARGUMENT, "merge: %s always propagates NaN: leave out --nan",
                      allfold_fold_name(all.fold));
        else if (settings->ddof != 0 && !fold_has_variance(all.fold))
            error_set(&session->error, ALLFOLD_BAD_ARGUMENT, "merge: %s has no variance: leave out --ddof", allfold_fold_name(all.fold));
        else
            total_finish(&all, &call, &result, &session->error);
    }
    session_agree(session);
    session_partial_end(session, &all);
    if (session->error.status != ALLFOLD_OK || session_comm(session)->rank != 0)
        return;
    session->name = allfold_fold_name(all.fold);
    session->input.type = all.type;
    session->input.count = all.length;
    session->missing = all.length - all.count;
    snprintf(session->input.path, sizeof session->input.path, "%d partial%s", settings->operand_count,
             settings->operand_count == 1 ? "" : "s");
    report_fold(session, &result, session_seconds(session));
}
