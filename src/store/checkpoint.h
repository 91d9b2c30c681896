/* Checkpoints: a rank keeps the progress of its work in a file, so that the same run, started again, goes on from there and gives
   the same bits. One file a rank. Nothing here is collective: core/ makes all ranks agree on errors.

   While a run works there is always a file of that name, whole, and the run holds a lock on it: a second run with the same
   checkpoint is refused. It is not if the file system has no locks, or if they do not reach another host. */
#pragma once

#include "array/array.h"
#include "base/phase.h"
#include "core/stream.h"

/* What must be equal for a checkpoint to belong to this run: everything on which the partial's bits depend. Each has a line in the
   table of checkpoint.c, which names it in messages. */
struct checkpoint_identity {
    char version[16], command[16], format[16], device[64];
    uint64_t type, count, data_offset; /* the input's header */
    uint64_t array;                    /* checksum of its name in the file, and of what else says where its elements lie */
    uint64_t file_bytes, file_time;            /* 0 where there is no file */
    uint64_t generator;                        /* checksum of a generated input's parameters */
    uint64_t options;                          /* the command's own: NaN, output type */
    uint64_t ranks, rank, shard;               /* shard: elements */
    uint64_t monoid;
    uint64_t axis; /* checksum of what says how the work is along an axis, and where results go; 0: it is not */
};

/* What a run says of itself. */
struct checkpoint_run {
    const char *file;    /* rank R keeps its checkpoint in FILE.R */
    double every;        /* seconds between two writings; 0: after each shard */
    const char *command;
    uint64_t options;    /* the command's own */
    int rank, ranks;
    uint64_t axis;       /* as in the identity */
};

struct checkpoint {
    char name[ARRAY_PATH_BYTES]; /* FILE.RANK */
    struct replacement file;     /* file.path is the file itself if the name is a symbolic link */
    double every;
    double last; /* when it was written, or the fold began */
    int held;    /* descriptor of the file, locked; -1: none */
    bool fresh;  /* the file is this run's, and holds nothing yet */
    uint64_t key; /* of outputs that hold results (array/replacement.h): the file's, or set by the caller before it is made */
    struct checkpoint_identity identity;
    struct progress *progress;
    struct stream_hook hook; /* for the job */
};

/* FILE.RANK. Errors: a name that is too long. */
allfold_status checkpoint_name(const char *file, int rank, char path[ARRAY_PATH_BYTES], struct error *error);

/* Begins the checkpoint of this rank of a run on input. The file is checked, created and locked when the job's hook is called. */
allfold_status checkpoint_begin(struct checkpoint *checkpoint, const struct checkpoint_run *run, const struct array_info *input,
                                struct progress *progress, struct error *error);

/* Releases the file, and removes it if the run has succeeded or if it holds nothing. A symbolic link to it is removed, too: left
   without a target it would be refused next time. */
allfold_status checkpoint_end(struct checkpoint *checkpoint, bool succeeded, struct error *error);
