/* generate: the elements of a named distribution, in a file. An element depends on its index alone, so the file is the
   same whatever the number of ranks. */
#include "cli/commands/commands.h"
#include "cli/report.h"

#include <stdlib.h>
#include <string.h>

/* Works in chunks, so that memory does not grow with the array. Not collective. */
static void copy(struct session *session, struct source *source, struct sink *sink)
{
    struct error *const error = &session->error;
    const struct device *const device = session->context->device;
    struct progress *const progress = session_comm(session)->progress;
    const uint64_t most = device->staging_bytes / allfold_type_bytes(source->type), chunk = u64_max(most, 1);
    const uint64_t end = session->range.first + session->range.count;
    progress_expect(progress, session->range.count * allfold_type_bytes(source->type));
    struct reader *reader = NULL;
    void *elements = aligned_alloc(4096, (chunk * allfold_type_bytes(source->type) + READER_SLACK + 4095) / 4096 * 4096);
    if (elements == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for a chunk of %zu bytes: ask for less with --staging",
                  device->staging_bytes);
    else
        source->open_reader(source, &reader, error);
    for (uint64_t first = session->range.first; first < end && error->status == ALLFOLD_OK; first += chunk) {
        const uint64_t count = u64_min(chunk, end - first);
        phase_enter(progress, PHASE_READ);
        const struct read_request request = {{first, count}, 0, elements};
        struct piece piece;
        if (progress_check(progress, error) == ALLFOLD_OK && reader->read(reader, &request, &piece, error) == ALLFOLD_OK) {
            phase_enter(progress, PHASE_WRITE);
            sink->write(sink, first, count, piece.elements, device->threads, error);
        }
        atomic_fetch_add(&progress->done, count * allfold_type_bytes(source->type));
    }
    if (reader != NULL)
        reader->close(reader);
    free(elements);
}

static void fill(struct session *session, struct sink *sink)
{
    struct job job;
    session_source(session, &job);
    if (session->error.status == ALLFOLD_OK)
        copy(session, job.source, sink);
    source_close(job.source);
}

void generate_run(struct session *session)
{
    static const char prefix[] = "gen:";
    const char *const operand = session->settings->operand;
    char name[ARRAY_PATH_BYTES + sizeof prefix];
    snprintf(name, sizeof name, "%s%.*s", strncmp(operand, prefix, strlen(prefix)) == 0 ? "" : prefix,
             ARRAY_PATH_BYTES, operand);
    session_describe(session, name);
    if (session->error.status != ALLFOLD_OK)
        return;
    session_write(session, &session->input, fill);
    const double seconds = session_seconds(session);
    session_phases(session);
    if (session->error.status == ALLFOLD_OK && session_comm(session)->rank == 0)
        report_output(session, session->input.type, seconds);
}
