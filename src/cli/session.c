/* Does the steps that commands share: see session.h. */
#include "cli/session.h"

#include "base/host.h"
#include "cli/names.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/resume.h"
#include "cli/start.h"
#include "cli/text.h"
#include "files/describe.h"
#include "watch/stop.h"
#include "watch/temporary.h"
#include "watch/watchdog.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Log lines of the library, for --verbose: each rank prints its own. */
static void log_line(void *user, const char *line)
{
    char rank[32];
    snprintf(rank, sizeof rank, "rank %d", *(const int *)user);
    text_tell(rank, line);
}

/* A command without work for the backend's GPU must not wait for one, nor take memory of it. The ladder chooses and opens its own. */
static allfold_status choose_backend(const struct settings *settings, allfold_backend *backend, struct error *error)
{
    const struct command *const command = settings->command;
    if (command->works_on == WORKS_ON_DEVICE || (command->works_on == WORKS_ON_CPU_IF_OPERAND && settings->operand == NULL))
        return ALLFOLD_OK;
    if (*backend == ALLFOLD_BACKEND_CUDA && command->works_on != WORKS_ON_OWN_GPU)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected --backend=cpu or auto, since it works on the CPU, found cuda",
                         command->name);
    *backend = ALLFOLD_BACKEND_CPU;
    return ALLFOLD_OK;
}

/* Where the time of this rank's start went, for --verbose. */
static void tell_start(const struct start *start, int rank, double watched, double opened)
{
    char device[64] = "";
    if (start->device > 0)
        snprintf(device, sizeof device, " (beside it the device %.3f s)", start->device);
    fprintf(stderr, "allfold: rank %d: start took %.3f s: loading %.3f s of CPU time, MPI_Init %.3f s%s, watchdog %.3f s, the rest "
            "of the device %.3f s, context %.3f s\n", rank, clock_seconds() - start->begun + start->loading, start->loading, start->mpi,
            device, watched, start->waiting, opened);
}

void session_open(struct session *session)
{
    static int rank; /* lives as long as the context, which may log */
    const double begun = clock_seconds();
    allfold_options options = session->settings->context;
    char message[ALLFOLD_ERROR_BYTES] = "";
    const struct watch_settings watch = {.program = "allfold",
                                         .statuses = {[WATCH_FAILED] = EXIT_FAILED, [WATCH_STOPPED] = EXIT_STOPPED},
                                         .timeout = session->settings->timeout,
                                         .show = session->settings->quiet ? NULL : progress_show,
                                         .eraser = progress_eraser};
    if (choose_backend(session->settings, &options.backend, &session->error) != ALLFOLD_OK
        || watch_open(&watch, &session->error) != ALLFOLD_OK)
        return;
    const double watched = clock_seconds();
    stop_install();
    start_device_wait(session->start);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (session->settings->verbose) {
        options.log = log_line;
        options.log_user = &rank;
    }
    const double opening = clock_seconds();
    const allfold_status status = allfold_open(MPI_COMM_WORLD, &options, &session->context, message, sizeof message);
    if (status != ALLFOLD_OK)
        error_set(&session->error, status, "%s", message);
    else
        session_comm(session)->progress = watch_progress();
    if (session->settings->verbose)
        tell_start(session->start, rank, watched - begun, clock_seconds() - opening);
}

void session_close(struct session *session)
{
    array_release(&session->input);
    allfold_close(session->context);
    session->context = NULL;
}

void session_begin_input(struct session *session)
{
    ranks_tell_shared(session);
    ranks_tell_bound(session);
    session->started = session_comm(session)->progress->entered = clock_seconds();
}

void session_share(struct session *session, struct array_info *info)
{
    struct comm *const comm = session_comm(session);
    if (comm->rank != 0)
        array_release(info);
    if (describe_share(session->context, info, &session->error) != ALLFOLD_OK)
        return;
    session->input_bytes += (double)info->count * (double)allfold_type_bytes(array_stored_type(info));
}

void session_share_input(struct session *session)
{
    struct comm *const comm = session_comm(session);
    struct array_info *const input = &session->input;
    session_share(session, input);
    if (session->error.status != ALLFOLD_OK)
        return;
    session->input_read = true;
    session->range = array_part(input, (uint64_t)comm->rank, (uint64_t)comm->size);
    if (session->settings->verbose)
        ranks_tell(session);
}

void session_describe(struct session *session, const char *const *names, int count)
{
    session_begin_input(session);
    if (session->error.status != ALLFOLD_OK)
        return;
    if (session_comm(session)->rank == 0)
        array_describe_all(names, count, &session->settings->hints, &session->input, &session->error);
    session_share_input(session);
}

/* Says once what is special about the way in which the input is read. */
static void tell_note(struct session *session, const struct source *source)
{
    if (source != NULL && source->note != NULL && !session->settings->quiet && session_comm(session)->rank == 0)
        text_tell(file_shown(session->input.path), source->note);
}

void session_source(struct session *session, struct job *job)
{
    *job = (struct job){.type = session->input.type, .range = session->range};
    describe_open(&session->input, session_comm(session)->rank == 0, &job->source, &session->error);
    tell_note(session, job->source);
    if (session->settings->checkpoint == NULL || session->settings->axis != NULL)
        return;
    job->progress = &session->checkpoint.progress; /* on all ranks, whatever has failed */
    resume_begin(session);
}

/* Renames or removes a file that rank 0 has created. */
static void finish_replacement(struct session *session, struct replacement *file, bool created)
{
    struct comm *const comm = session_comm(session);
    struct error *const error = &session->error;
    /* after a failure of MPI rank 0 may be gone already: any rank that is left cleans up, but for a file that is kept */
    if (error->status == ALLFOLD_MPI_ERROR && file->temporary[0] != '\0')
        replacement_discard(file);
    else if (created && error->status != ALLFOLD_OK)
        replacement_discard(file);
    else if (created) {
        phase_enter(comm->progress, PHASE_RENAME);
        replacement_commit(file, error);
    }
    session_agree(session);
    temporary_forget(file->temporary);
}

/* A file that is kept stays after an early end. */
static void remember(const struct replacement *file)
{
    if (!file->kept)
        temporary_remember(file->temporary);
}

struct session_output session_output_of(const struct session *session, const struct array_info *info)
{
    return (struct session_output){.path = session->settings->output, .arrays = {.info = info, .count = 1, .types = {info->type}}};
}

/* Rank 0 creates the temporary file. key: NULL, or of a file that is kept. */
static void create_output(struct session_output *file, const struct replacement_key *key, struct error *error)
{
    struct array_info *const info = malloc(sizeof *info);
    if (info == NULL) {
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to create it", file_shown(file->path));
        return;
    }
    memcpy(info, file->arrays.info, sizeof *info);
    info->type = file->arrays.types[0];
    file->created = (file->archive                ? output_create_archive(file->path, &file->arrays, key, file->outputs, error)
                     : file->arrays.about != NULL ? output_create_netcdf(file->path, &file->arrays, key, file->outputs, error)
                                                  : output_create(file->path, info, key, &file->outputs[0], error)) == ALLFOLD_OK;
    free(info);
    file->outputs[0].file.kept = file->created && key != NULL;
    remember(&file->outputs[0].file);
}

/* Every rank opens what rank 0 has created. Collective; a rank that cannot open it says so in session->error alone. */
static allfold_status open_output(struct session *session, struct session_output *file, const struct replacement_key *key)
{
    struct comm *const comm = session_comm(session);
    struct error *const error = &session->error;
    const size_t bytes = (size_t)file->arrays.count * sizeof *file->outputs;
    if (comm->rank == 0 && error->status == ALLFOLD_OK)
        create_output(file, key, error);
    if (comm_broadcast(comm, 0, file->outputs, bytes, error) != ALLFOLD_OK)
        return error->status;
    remember(&file->outputs[0].file);
    for (int i = 0; i < file->arrays.count; i++) {
        file->outputs[i].file.descriptor = file->created ? file->outputs[i].file.descriptor : -1;
        output_open(&file->outputs[i], &file->sinks[i], error);
    }
    session_agree(session);
    return error->status;
}

/* Closes what is open, and completes the file: each rank some members of an archive. */
static void close_output(struct session *session, struct session_output *file)
{
    struct comm *const comm = session_comm(session);
    struct error *const error = &session->error;
    for (int i = 0; i < file->arrays.count; i++)
        if (file->sinks[i] != NULL)
            file->sinks[i]->close(file->sinks[i], error);
    session_agree(session);
    for (int i = comm->rank; file->archive && i < file->arrays.count && error->status == ALLFOLD_OK; i += comm->size)
        output_seal(&file->outputs[i], error);
}

/* Rank 0: refuses outputs that would replace something else than what the user means. */
static void check_names(struct session *session, const struct session_outputs *outputs)
{
    if (!outputs->in_place || !array_is_file(&session->input))
        names_refuse_input(session, "output", outputs->files[0].path,
                           outputs->in_place ? " (-o may name the input only if that is one file with nothing else in it)" : "");
    if (outputs->count > 1) {
        names_refuse_input(session, "values", outputs->files[1].path, "");
        names_refuse_same("values", outputs->files[1].path, outputs->files[0].path, "the output", &session->error);
    }
}

void session_write(struct session *session, const struct session_outputs *outputs)
{
    struct comm *const comm = session_comm(session);
    struct error *const error = &session->error;
    struct replacement_key key = {0};
    if (comm->rank == 0)
        check_names(session, outputs);
    if (!session_agree(session))
        return;
    if (outputs->progress != NULL)
        resume_load(session, outputs, &key);
    for (int i = 0; i < outputs->count; i++)
        open_output(session, &outputs->files[i], outputs->progress != NULL ? &key : NULL);
    if (error->status == ALLFOLD_OK)
        outputs->fill(session, outputs->user);
    phase_enter(comm->progress, PHASE_WRITE);
    for (int i = 0; i < outputs->count; i++)
        close_output(session, &outputs->files[i]);
    progress_check(comm->progress, error); /* the last safe point: after it the outputs become the result */
    session_agree(session);
    if (outputs->progress != NULL)
        resume_judge(session, outputs);
    for (int i = 0; i < outputs->count; i++)
        finish_replacement(session, &outputs->files[i].outputs[0].file, outputs->files[i].created);
}

void session_partial_begin(struct session *session)
{
    const struct settings *const settings = session->settings;
    struct comm *const comm = session_comm(session);
    struct replacement *const file = &session->partial;
    if (settings->partial == NULL)
        return;
    if (comm->rank == 0 && session->input_read)
        names_refuse_input(session, "partial", settings->partial, "");
    for (int i = 0; i < settings->operand_count && comm->rank == 0; i++)
        names_refuse_same("partial", settings->partial, settings->operands[i], "the input", &session->error);
    if (comm->rank == 0 && session->error.status == ALLFOLD_OK)
        partial_file_create(settings->partial, file, &session->error);
    temporary_remember(file->temporary);
    if (comm_broadcast(comm, 0, file, sizeof *file, &session->error) != ALLFOLD_OK)
        return;
    temporary_remember(file->temporary);
    file->descriptor = comm->rank == 0 ? file->descriptor : -1;
}

void session_partial_end(struct session *session, const struct total *total)
{
    const bool first = session_comm(session)->rank == 0;
    if (session->settings->partial == NULL)
        return;
    if (first && session->error.status == ALLFOLD_OK)
        partial_file_write(&session->partial, total, &session->error);
    finish_replacement(session, &session->partial, first);
}

void session_end(struct session *session)
{
    const bool succeeded = session->error.status == ALLFOLD_OK;
    if (session->checkpoint.progress.load == NULL)
        return;
    phase_enter(session_comm(session)->progress, PHASE_CHECKPOINT);
    checkpoint_end(&session->checkpoint, succeeded, &session->error);
    if (succeeded)
        session_agree(session);
}

void session_phases(struct session *session)
{
    struct comm *const comm = session_comm(session);
    if (!session->settings->json || session->error.status != ALLFOLD_OK)
        return;
    phase_enter(comm->progress, PHASE_START); /* so that the time of the phase before is counted */
    double mine[PHASE_COUNT];
    memcpy(mine, comm->progress->seconds, sizeof mine);
    double (*const all)[PHASE_COUNT] = comm_gather(comm, mine, sizeof mine, &session->error);
    for (int rank = 0; all != NULL && rank < comm->size; rank++)
        for (int phase = 0; phase < PHASE_COUNT; phase++)
            if (all[rank][phase] > session->phases[phase])
                session->phases[phase] = all[rank][phase];
    free(all);
}

double session_seconds(const struct session *session)
{
    return clock_seconds() - session->started;
}
