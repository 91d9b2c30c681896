/* Runs the commands that fold: sum, min, stats and the others. */
#include "cli/commands/commands.h"
#include "cli/commands/fold.h"
#include "cli/commands/fold_axis.h"
#include "cli/report.h"

/* One array, of one input or of several that are joined. */
static void fold_one(struct session *session)
{
    const struct settings *const settings = session->settings;
    struct total total;
    struct fold_results result;
    session_describe(session, settings->operands, settings->operand_count);
    if (session->error.status == ALLFOLD_OK)
        session_partial_begin(session);
    if (session->error.status != ALLFOLD_OK)
        return;
    fold_input(session, &total);
    fold_input_result(session, &total, &result);
    const double seconds = session_seconds(session);
    session_phases(session);
    session_partial_end(session, &total);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_fold(session, &result, seconds);
}

/* Whether the operands mean several arrays, each for itself. Rank 0 alone looks at files. */
static bool folds_many(struct session *session)
{
    const struct settings *const settings = session->settings;
    bool several = session_comm(session)->rank == 0 && array_names_several(settings->operands, settings->operand_count);
    comm_broadcast(session_comm(session), 0, &several, sizeof several, &session->error);
    return several || settings->total;
}

void fold_run(struct session *session)
{
    if (session->settings->axis != NULL || session->settings->weights != NULL)
        fold_axis_run(session);
    else if (folds_many(session))
        fold_many_run(session);
    else
        fold_one(session);
}
