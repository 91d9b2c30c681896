/* Checkpoints: a rank keeps the progress of its work in a file, so that the same run, started again, goes on from there and gives
   the same bits. One file a rank. Nothing here is collective: core/ makes all ranks agree on errors.

   While a run works there is always a file of that name, whole, and the run holds a lock on it: a second run with the same
   checkpoint is refused. It is not if the file system has no locks, or if they do not reach another host. */
#pragma once

#include "array/array.h"
#include "core/resumable.h"

/* What must be equal for a checkpoint to belong to this run: everything on which the partial's bits depend, and where results along an axis
   go. X(member, words for messages) */
#define CHECKPOINT_IDENTITY(X)                                    \
    X(version, "version")                                         \
    X(command, "command")                                         \
    X(ranks, "ranks")                                             \
    X(rank, "rank")                                               \
    X(file_bytes, "bytes of the input")                           \
    X(file_time, "time of the input (ns)")                        \
    X(format, "format of the input")                              \
    X(type, "element type")                                       \
    X(count, "elements")                                          \
    X(data_offset, "offset of the elements")                      \
    X(array, "array in the file")                                 \
    X(skipped, "elements before the first (--offset)")            \
    X(places, "places of the elements (checksum)")                \
    X(generator, "parameters of the generator (checksum)")        \
    X(nan, "--nan")                                               \
    X(missing, "--missing")                                       \
    X(axis, "--axis")                                             \
    X(shape, "shape")                                             \
    X(slice, "part of the array (--slice)")                       \
    X(keepdims, "--keepdims")                                     \
    X(ddof, "--ddof")                                             \
    X(output_type, "--output-type")                               \
    X(output, "output (-o)")                                      \
    X(values, "--values")                                         \
    X(device, "device")                                           \
    X(shard, "elements of a shard (--staging)")                   \
    X(monoid, "kind of partial (--sum, --output-type)")           \
    X(call, "what is asked for, such as --q (checksum)")

/* All as text. Instead of what is too long its checksum. */
enum { IDENTITY_BYTES = 64 };
struct checkpoint_identity {
#define MEMBER(name, words) char name[IDENTITY_BYTES];
    CHECKPOINT_IDENTITY(MEMBER)
#undef MEMBER
};

/* What a run says of itself. */
struct checkpoint_run {
    const char *file;    /* rank R keeps its checkpoint in FILE.R */
    double every;        /* seconds between two writings; 0: after each shard */
    const char *command;
    int rank, ranks;
    const char *nan, *missing;
    /* Along an axis, else NULL and 0. */
    const char *axis, *output, *values, *output_type;
    bool keepdims;
    uint64_t ddof;
};

struct checkpoint {
    struct resumable progress;   /* for the job: the first member */
    char name[ARRAY_PATH_BYTES]; /* FILE.RANK */
    struct replacement file;     /* file.path is the file itself if the name is a symbolic link */
    int locked;  /* descriptor of the file, which is locked; -1: none */
    bool fresh;  /* the file is this run's, and holds nothing yet */
    uint64_t key; /* of outputs that hold results (array/replacement.h): the file's, or set by the caller before it is made */
    struct checkpoint_identity identity;
};

/* FILE.RANK. Errors: a name that is too long. */
allfold_status checkpoint_name(const char *file, int rank, char path[ARRAY_PATH_BYTES], struct error *error);

/* Begins the checkpoint of this rank of a run on input: *checkpoint is zero, except for what a caller has set in ->progress. The file is
   checked, created and locked when the progress is loaded. */
allfold_status checkpoint_begin(struct checkpoint *checkpoint, const struct checkpoint_run *run, const struct array_info *input,
                                struct error *error);

/* Releases the file, and removes it if the run has succeeded or if it holds nothing. A symbolic link to it is removed, too: left
   without a target it would be refused next time. */
allfold_status checkpoint_end(struct checkpoint *checkpoint, bool succeeded, struct error *error);
