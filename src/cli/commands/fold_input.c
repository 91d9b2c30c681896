/* Folds the session's input, one array: see fold.h. */
#include "cli/commands/fold.h"

#include "files/describe.h"

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

void fold_input(struct session *session, struct total *total)
{
    const struct settings *const settings = session->settings;
    const allfold_fold fold = (allfold_fold)settings->command->which;
    struct job job;
    const struct packing *const packing = fold == ALLFOLD_SUM || fold == ALLFOLD_MEAN ? array_keep_packed(&session->input) : NULL;
    session_source(session, &job);
    job.total = total;
    const struct fold_call call = {.fold = fold, .nan = settings->nan, .result_type = settings->output_type, .ddof = settings->ddof,
                                   .packing = packing};
    core_reduce(session->context, &call, &job, NULL, &session->error);
    source_close(job.source);
    if (session->error.status != ALLFOLD_OK)
        return;
    total->length = session->input.count;
    session->missing = total->length - total->count;
    refuse_missing(session);
}

void fold_input_result(struct session *session, const struct total *total, struct fold_results *result)
{
    const struct settings *const settings = session->settings;
    const struct fold_call call = {.nan = settings->nan, .result_type = settings->output_type, .ddof = settings->ddof, .place = describe_place,
                                   .array = &session->input};
    if (session->error.status == ALLFOLD_OK)
        session->error.shared = total_finish(total, &call, result, &session->error) != ALLFOLD_OK;
}
