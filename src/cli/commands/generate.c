/* generate: writes the elements of a named distribution into a file. An element depends on its index alone, so the file is
   the same whatever the number of ranks. */
#include "cli/commands/commands.h"
#include "cli/report.h"

#include <string.h>

static void fill(struct session *session, void *user)
{
    const struct session_output *const output = user;
    struct job job;
    session_source(session, &job);
    if (session->error.status == ALLFOLD_OK)
        core_copy(session->context, &job, output->sinks[0], &session->error);
    source_close(job.source);
}

void generate_run(struct session *session)
{
    static const char prefix[] = "gen:";
    const char *const operand = session->settings->operand;
    char name[ARRAY_PATH_BYTES + sizeof prefix];
    snprintf(name, sizeof name, "%s%.*s", strncmp(operand, prefix, strlen(prefix)) == 0 ? "" : prefix,
             ARRAY_PATH_BYTES, operand);
    session_describe(session, (const char *const[]){name}, 1);
    if (session->error.status != ALLFOLD_OK)
        return;
    struct session_output output = session_output_of(session, &session->input);
    session_write(session, &(struct session_outputs){&output, 1, fill, &output, NULL, false});
    const double seconds = session_seconds(session);
    session_phases(session);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_output(session, &(struct report_output){.type = session->input.type}, seconds);
}
