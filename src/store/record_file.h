/* Small files that are either whole and unaltered or refused: a magic, the length, the contents, a checksum. Checkpoints and
   partials are such files. They are written as replacements (array/replacement.h). */
#pragma once

#include "array/replacement.h"

/* One kind of such files. */
struct record_kind {
    char magic[8];
    const char *name; /* in messages: "the checkpoint" */
    size_t bytes;     /* of the contents */
};

/* FNV-1a, 64 bits: any one byte that differs changes it. Begin with CHECKSUM_START. */
#define CHECKSUM_START UINT64_C(0xcbf29ce484222325)
uint64_t checksum(uint64_t sum, const void *bytes, size_t count);

/* Makes the temporary file for a record of that kind, which replaces whatever is at path when it is committed. */
allfold_status record_file_create(const char *path, const struct record_kind *kind, struct replacement *file,
                                  struct error *error);

/* Writes the record into the temporary file and makes it durable. Neither commits nor discards it. */
allfold_status record_file_write(const struct replacement *file, const struct record_kind *kind, const void *contents,
                                 struct error *error);

/* Reads the contents. If there is no such file *exists is false, and nothing else happens. A file that is of another kind, of
   another length or damaged is ALLFOLD_BAD_INPUT. */
allfold_status record_file_read(const char *path, const struct record_kind *kind, void *contents, bool *exists,
                                struct error *error);
