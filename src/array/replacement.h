/* Makes files that appear whole, under their name, or not at all: written under a temporary name in the same folder, and
   renamed when all has succeeded. The one way in which the program writes files: outputs, partials, checkpoints. */
#pragma once

#include "array/file.h"

/* A file being made. Plain bytes: one process creates it and may hand it to others, which open the temporary file by its name;
   the creator commits or discards. */
struct replacement {
    char path[ARRAY_PATH_BYTES];      /* the target: symbolic links are resolved */
    char temporary[ARRAY_PATH_BYTES]; /* in the same folder */
    uint64_t bytes;
    int descriptor; /* in the creator: the temporary file, for writing; its lock keeps other runs from removing it. Elsewhere -1 */
    bool kept;      /* replacement_discard leaves it */
};

/* Names a temporary file that outlives its run, for another run that goes on with it: ".NAME.KEY.part". */
struct replacement_key {
    uint64_t key;
    bool exists; /* it is there, and must be; else one that is there is removed */
};
/* Whether there is one, or nothing can be said of it because the target or its folder cannot be written. */
bool replacement_exists(const char *path, uint64_t key);

/* Creates the temporary file, of `bytes` zeros. An existing target's permission bits are kept. A symbolic link is written
   through and stays, as with cp; a link to nothing, a target that is not a regular file or may not be replaced, and a folder
   without room for the bytes are refused. If the size of files is limited, SIGXFSZ must be ignored for that to be an error. Files that
   killed runs with the same target have left on this host since its start are removed. key: NULL, or of a file that outlives the run,
   which is kept if it existed. Writes *replacement only on success. */
allfold_status replacement_create(const char *path, uint64_t bytes, const struct replacement_key *key, struct replacement *replacement,
                                  struct error *error);

/* After a commit: another temporary file, of as many bytes, for the same target. */
allfold_status replacement_renew(struct replacement *replacement, struct error *error);

/* Opens the temporary file, if it is still the one that was created. access: O_WRONLY or O_RDWR. Returns the descriptor, -1 on an error.
   It never waits, as opening a fifo that has taken the file's place would. */
int replacement_open(const struct replacement *replacement, int access, struct error *error);

/* Renames the temporary file to the target and syncs the folder; on failure the temporary file is gone. Its bytes must be
   durable already. */
allfold_status replacement_commit(struct replacement *replacement, struct error *error);

/* The same, unless there is a file of that name by now: then *taken is true and the temporary file is gone. */
allfold_status replacement_commit_new(struct replacement *replacement, bool *taken, struct error *error);

/* Removes the temporary file, unless it is kept. */
void replacement_discard(struct replacement *replacement);
