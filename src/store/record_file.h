/* Small files that are either whole and unaltered or refused: a magic, the length, the contents, a checksum. Checkpoints and
   partials are such files. They are written as replacements (array/replacement.h). */
#pragma once

#include "array/replacement.h"

/* One kind of such files. */
struct record_kind {
    char magic[8];
    const char *name; /* in messages: "the checkpoint" */
    size_t bytes;     /* of the contents, which may have a tail behind them */
};
struct record_tail {
    void *memory;
    size_t bytes;
};

/* FNV-1a, 64 bits: any one byte that differs changes it. Begin with CHECKSUM_START. */
#define CHECKSUM_START UINT64_C(0xcbf29ce484222325)
uint64_t checksum(uint64_t sum, const void *bytes, size_t count);

/* Makes the temporary file for a record of that kind without a tail, which replaces what is at path when it is committed. A file there that
   is neither empty nor begins as one of the kind is ALLFOLD_BAD_INPUT. */
allfold_status record_file_create(const char *path, const struct record_kind *kind, struct replacement *file,
                                  struct error *error);

/* After a commit: another one, with room for a tail. */
allfold_status record_file_renew(struct replacement *file, const struct record_kind *kind, size_t tail, struct error *error);

/* Writes the record into the temporary file and makes it durable. Neither commits nor discards it. tail: NULL, or of as many bytes as
   the file has room for. */
allfold_status record_file_write(const struct replacement *file, const struct record_kind *kind, const void *contents,
                                 const struct record_tail *tail, struct error *error);

/* Reads the contents, and if tail is not NULL what is behind them, to memory that the caller frees. A file that is of another kind, of
   another length or damaged is ALLFOLD_BAD_INPUT. Both are written only on success. */
allfold_status record_file_read(const char *path, const struct record_kind *kind, void *contents, struct record_tail *tail,
                                struct error *error);
