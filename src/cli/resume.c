/* Goes on from checkpoints of an earlier run: see resume.h. Along an axis the results of rows that are finished wait in
   unfinished outputs, whose names have a key that the checkpoints hold. */
#include "cli/resume.h"

#include "cli/names.h"
#include "cli/text.h"
#include "store/record_file.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void resume_begin(struct session *session)
{
    static const char *const nans[] = {[ALLFOLD_NAN_PROPAGATE] = "propagate", [ALLFOLD_NAN_OMIT] = "omit", [ALLFOLD_NAN_ERROR] = "error"};
    static const char *const missing[] = {[MISSING_OMIT] = "omit", [MISSING_KEEP] = "keep", [MISSING_ERROR] = "error",
                                          [MISSING_REFUSE] = "error"};
    const struct settings *const settings = session->settings;
    const struct comm *const comm = session_comm(session);
    struct checkpoint *const checkpoint = &session->checkpoint;
    struct checkpoint_run run = {.file = settings->checkpoint, .every = settings->checkpoint_every, .command = settings->command->name,
                                 .rank = comm->rank, .ranks = comm->size, .nan = nans[settings->nan],
                                 .missing = missing[session->input.missing]};
    if (settings->axis != NULL) {
        run.axis = settings->axis;
        run.output = settings->output;
        run.values = settings->values;
        run.output_type = settings->output_type != ALLFOLD_TYPE_NONE ? allfold_type_name(settings->output_type) : NULL;
        run.keepdims = settings->keepdims;
        run.ddof = settings->ddof;
    }
    if (checkpoint_begin(checkpoint, &run, &session->input, &session->error) != ALLFOLD_OK)
        return;
    names_refuse_input(session, "checkpoint", checkpoint->name, "");
    names_refuse_same("checkpoint", checkpoint->name, settings->output, "the output", &session->error);
    names_refuse_same("checkpoint", checkpoint->name, settings->values, "the values", &session->error);
    names_refuse_same("checkpoint", checkpoint->name, settings->partial, "the partial", &session->error);
}

/* A number that no other run has. */
static uint64_t new_key(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t parts[] = {(uint64_t)now.tv_sec, (uint64_t)now.tv_nsec, (uint64_t)getpid()};
    return checksum(CHECKSUM_START, parts, sizeof parts);
}

/* What ranks tell each other of their checkpoints. */
struct rank_checkpoint {
    uint64_t exists, done, key;
};

/* Finds the key of the checkpoints that exist, and how far they have come. Collective. */
static void compare_checkpoints(struct session *session, struct resumable *progress, struct replacement_key *key)
{
    const struct checkpoint *const checkpoint = &session->checkpoint;
    const struct rank_checkpoint mine = {!checkpoint->fresh, progress->done, checkpoint->key};
    struct rank_checkpoint *const all = comm_gather_all(session_comm(session), &mine, sizeof mine, &session->error);
    int first = -1;
    for (int rank = 0; all != NULL && rank < session_comm(session)->size; rank++) {
        progress->furthest = u64_max(progress->furthest, all[rank].done);
        first = first < 0 && all[rank].exists ? rank : first;
        if (all[rank].exists && all[rank].key != all[first].key)
            session->error.shared = error_set(&session->error, ALLFOLD_BAD_INPUT, "%s: the checkpoints of ranks %d and %d are of different "
                                              "runs (remove all to begin anew)", file_shown(session->settings->checkpoint), first, rank)
                                    != ALLFOLD_OK;
    }
    *key = (struct replacement_key){all != NULL ? all[first < 0 ? 0 : first].key : 0, first >= 0};
    free(all);
}

/* Whether rank 0 finds the outputs. Collective. */
static bool outputs_exist(struct session *session, const struct session_outputs *outputs, uint64_t key)
{
    bool exist = true;
    for (int i = 0; i < outputs->count; i++)
        exist = exist && replacement_exists(outputs->files[i].path, key);
    comm_broadcast(session_comm(session), 0, &exist, sizeof exist, &session->error);
    return exist;
}

/* All ranks save that nothing is done before new outputs are made: these are never taken for those that are gone. Collective. */
static void begin_anew(struct session *session, struct resumable *progress)
{
    if (session_comm(session)->rank == 0 && !session->settings->quiet)
        text_tell(file_shown(session->settings->output), "what the checkpoint has of this output is gone: the work begins anew");
    progress_free_state(progress);
    progress->done = progress->furthest = 0;
    progress->save(progress, &session->error);
    session_agree(session);
}

void resume_load(struct session *session, const struct session_outputs *outputs, struct replacement_key *key)
{
    struct resumable *const progress = outputs->progress;
    struct checkpoint *const checkpoint = &session->checkpoint;
    struct error *const error = &session->error;
    resume_begin(session);
    progress->shard_elements = session->context->device->shard_bytes / allfold_type_bytes(progress->type);
    checkpoint->key = new_key();
    comm_broadcast(session_comm(session), 0, &checkpoint->key, sizeof checkpoint->key, error);
    progress_load(session->context, progress, error);
    compare_checkpoints(session, progress, key);
    checkpoint->key = key->key;
    if (error->status == ALLFOLD_OK && key->exists && !outputs_exist(session, outputs, key->key)) {
        key->exists = false;
        begin_anew(session, progress);
    }
}

void resume_judge(struct session *session, const struct session_outputs *outputs)
{
    struct error ignored = {0};
    int holders = 1;
    if (session->error.status == ALLFOLD_OK || session->error.status == ALLFOLD_MPI_ERROR)
        return;
    comm_count(session_comm(session), session->checkpoint.file.path[0] != '\0' && !session->checkpoint.fresh, &holders, &ignored);
    for (int i = 0; i < outputs->count; i++)
        outputs->files[i].outputs[0].file.kept = holders > 0;
}
