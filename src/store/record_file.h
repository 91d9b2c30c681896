/* Small files that are either whole and unaltered or refused: a magic, the length, the contents, a checksum; written under
   another name and renamed. For checkpoints, and for whatever else must survive a crash in the middle of its writing. */
#ifndef ALLFOLD_RECORD_FILE_H
#define ALLFOLD_RECORD_FILE_H

#include "base/base.h"

#define RECORD_MAGIC_BYTES 8

/* FNV-1a, 64 bits: any one byte that differs changes it. Begin with CHECKSUM_START. */
#define CHECKSUM_START UINT64_C(0xcbf29ce484222325)
uint64_t checksum(uint64_t sum, const void *bytes, size_t count);

/* Makes the file, or replaces it as a whole. what names it in messages ("the checkpoint"). */
allfold_status record_file_write(const char *path, const char *what, const char magic[RECORD_MAGIC_BYTES],
                            const void *contents, size_t bytes, struct error *error);

/* Reads contents of exactly `bytes`. Where there is no such file *exists is false, and nothing else happens. A file that is
   of another kind, of another length or damaged is ALLFOLD_BAD_INPUT. */
allfold_status record_file_read(const char *path, const char *what, const char magic[RECORD_MAGIC_BYTES], void *contents,
                           size_t bytes, bool *exists, struct error *error);

/* Removes the file, and what an interrupted record_file_write has left. No file is no error. */
allfold_status record_file_remove(const char *path, const char *what, struct error *error);

#endif
