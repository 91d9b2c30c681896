/* The folds: sum, min, stats and the others, each a command of that name. */
#include "cli/commands/commands.h"
#include "cli/report.h"
#include "fold/packed.h"

/* Sums and means of packed integers: the integers are added as they are stored, and unpacked at the end. */
static bool sums_packed(const struct array_info *input, allfold_fold fold)
{
    return input->encoding.packed && type_kind(input->encoding.stored) != 'f' && (fold == ALLFOLD_SUM || fold == ALLFOLD_MEAN);
}

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
    const struct packing packing = {session->input.encoding.scale, session->input.encoding.offset};
    const bool packed = sums_packed(&session->input, fold);
    struct partial_file partial = {.fold = fold, .type = session->input.type};
    if (packed)
        session->input.type = session->input.encoding.stored;
    session_source(session, &job);
    job.partial = settings->partial != NULL ? &partial.partial : NULL;
    const struct fold_call call = {.fold = fold, .nan = settings->nan, .result_type = settings->output_type,
                                   .packing = packed ? &packing : NULL};
    core_reduce(session->context, &call, &job, &result, &session->error);
    source_close(job.source);
    const double seconds = session_seconds(session);
    session_phases(session);
    session->missing = session->input.count - result.count;
    partial.count = result.count;
    partial.length = session->input.count;
    partial.level = packed ? ALLFOLD_LEVEL_EXACT : settings->context.level;
    session_partial_end(session, &partial);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_fold(session, &result, seconds);
}
