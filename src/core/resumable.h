/* Progress that a caller keeps, so that a later run goes on from there (store/checkpoint.h). It is handed to a pipeline, which loads it
   before its first piece and has it saved between shards. Either all ranks have one or none has. */
#pragma once

#include "fold/table.h"

#include <stdlib.h>

struct sink;
struct resumable {
    /* Takes what an earlier run has saved of this work: done, state, and furthest. Called once, on each rank, also if it has no elements;
       the ranks then agree on the outcome. */
    allfold_status (*load)(struct resumable *progress, struct error *error);
    /* Saves done and state. Each rank calls it by itself. */
    allfold_status (*save)(struct resumable *progress, struct error *error);
    double every, last; /* seconds between two savings; when the last one was */
    /* What the work is, and the bits of its partials depend on: set before load. */
    enum monoid monoid;
    allfold_type type;
    uint64_t shard_elements;
    uint64_t call; /* a number for what else the state depends on; 0: nothing */
    char device[64]; /* "cpu" or a GPU's model */
    /* How far it has come. */
    uint64_t done;      /* shards, from the first on */
    uint64_t furthest;  /* the most that any rank has done; set by the caller, if outputs depend on it */
    void *state;        /* partials of results that are not finished; load sets it to memory from malloc, or to NULL */
    size_t state_bytes;
    bool loaded;
    struct sink *const *sinks; /* to which results go that `done` counts: they are made durable before it is saved */
    int sink_count;
};

static inline void progress_free_state(struct resumable *progress)
{
    free(progress->state);
    progress->state = NULL;
    progress->state_bytes = 0;
}
