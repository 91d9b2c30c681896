/* Partials of whole arrays in files, to be merged later with those of other arrays: `--partial`, `allfold merge`. The file is a
   record file (record_file.h); docs/numerics.md describes it for other programs. Nothing here is collective. */
#pragma once

#include "array/replacement.h"
#include "fold/total.h"

/* Of files, and of the partials in checkpoints. Files of versions 2 (partial_version_2.h) and 3 are read, too, but for logsumexp at level exact, whose
   terms were others before version 4: the largest one's is taken out of their sum in the end. */
enum { PARTIAL_VERSION = 4 };

/* Makes the temporary file; writes the partial to it. It is committed or discarded by the caller. */
allfold_status partial_file_create(const char *path, struct replacement *replacement, struct error *error);
allfold_status partial_file_write(const struct replacement *replacement, const struct total *total, struct error *error);

allfold_status partial_file_read(const char *path, struct total *total, struct error *error);
