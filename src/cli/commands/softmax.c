/* softmax and log-softmax: write an output of the input's shape. */
#include "cli/axes.h"
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

struct softmax {
    struct session_output output;
    struct axes axes; /* with --axis */
    struct axis_array array;
};

static void fill(struct session *session, void *user)
{
    struct softmax *const softmax = user;
    struct sink *const sink = softmax->output.sinks[0];
    const bool logarithm = session->settings->command->which;
    struct job job;
    session_source(session, &job);
    softmax->array.source = job.source;
    if (session->settings->axis != NULL) { /* of the whole array it keeps the first pass alone */
        session->checkpoint.progress.sinks = softmax->output.sinks;
        session->checkpoint.progress.sink_count = 1;
    }
    if (session->settings->axis != NULL)
        core_softmax_stream(session->context, logarithm, &softmax->array, sink, &session->error);
    else
        core_softmax(session->context, logarithm, &job, sink, &session->error);
    source_close(job.source);
}

void softmax_run(struct session *session)
{
    const struct settings *const settings = session->settings;
    struct softmax softmax = {.axes = {0}};
    struct array_info shape;
    session_describe(session, settings->operands, settings->operand_count);
    if (session->error.status != ALLFOLD_OK)
        return;
    if (session->input.missing != MISSING_KEEP)
        session->input.missing = MISSING_REFUSE; /* every place of the output needs a value */
    shape = session->input;
    if (choose_type(session, &shape.type) != ALLFOLD_OK
        || (settings->axis != NULL && axes_take(session, &softmax.axes, &softmax.array) != ALLFOLD_OK))
        return;
    softmax.output = session_output_of(session, &shape);
    session->checkpoint.progress = (struct resumable){.monoid = softmax_monoid(session->input.type, shape.type, settings->command->which,
                                                                               session->context->level), .type = session->input.type};
    softmax.array.progress = settings->axis != NULL && settings->checkpoint != NULL ? &session->checkpoint.progress : NULL;
    session_write(session, &(struct session_outputs){&softmax.output, 1, fill, &softmax, softmax.array.progress, .in_place = true});
    const double seconds = session_seconds(session);
    session_phases(session);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_output(session, &(struct report_output){shape.type, settings->axis != NULL ? &softmax.axes : NULL, &softmax.array}, seconds);
}
