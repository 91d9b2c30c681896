/* softmax and log-softmax: an input becomes an output of the same shape. */
#include "cli/commands/commands.h"
#include "cli/report.h"

/* The output's type: the one asked for, else the input's. The same on all ranks. */
static allfold_status choose_type(struct session *session, allfold_type *type)
{
    const struct settings *const settings = session->settings;
    *type = settings->output_type != ALLFOLD_TYPE_NONE ? settings->output_type : session->input.type;
    if (type_kind(*type) == 'f')
        return ALLFOLD_OK;
    return error_set(&session->error, ALLFOLD_BAD_ARGUMENT,
                     "%s: expected floating-point elements, or --output-type=f16|bf16|f32|f64 to say how to write the "
                     "result, found %s elements and no --output-type", settings->command->name,
                     allfold_type_name(session->input.type));
}

static void fill(struct session *session, struct sink *sink)
{
    struct job job;
    session_source(session, &job);
    core_softmax(session->context, session->settings->command->which, &job, sink, &session->error);
    source_close(job.source);
}

void softmax_run(struct session *session)
{
    struct array_info output;
    session_describe(session, session->settings->operand);
    if (session->error.status != ALLFOLD_OK)
        return;
    if (session->input.missing != MISSING_KEEP)
        session->input.missing = MISSING_REFUSE; /* every place of the output needs a value */
    output = session->input;
    if (choose_type(session, &output.type) != ALLFOLD_OK)
        return;
    session_write(session, &output, fill);
    const double seconds = session_seconds(session);
    session_phases(session);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_output(session, output.type, seconds);
}
