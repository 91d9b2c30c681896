/* Partials of whole arrays in files, to be merged later with those of other arrays: `--partial`, `allfold merge`. The file is a
   sealed one (store/record_file.h); docs/numerics.md describes it for other programs. Nothing here is collective. */
#ifndef ALLFOLD_PARTIAL_FILE_H
#define ALLFOLD_PARTIAL_FILE_H

#include "fold/table.h"

/* A partial, and what it is of. */
struct partial_file {
    allfold_fold fold;
    allfold_level level;
    allfold_type type;
    uint64_t count; /* elements */
    struct partial partial;
};

allfold_status partial_file_write(const char *path, const struct partial_file *saved, struct error *error);
allfold_status partial_file_read(const char *path, struct partial_file *saved, struct error *error);

/* *a becomes *a followed by *b, which was read from the file named path; an error where they are not of one kind. */
allfold_status partial_file_merge(struct partial_file *a, const struct partial_file *b, const char *path, struct error *error);

#endif
