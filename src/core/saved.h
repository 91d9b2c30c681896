/* Partials of whole arrays in files, to be merged later with those of other arrays: `--partial`, `allfold merge`. The file is a
   sealed one (array/sealed.h); docs/numerics.md describes it for other programs. Nothing here is collective. */
#ifndef ALLFOLD_SAVED_H
#define ALLFOLD_SAVED_H

#include "fold/table.h"

/* A partial, and what it is of. */
struct saved {
    allfold_fold fold;
    allfold_level level;
    allfold_type type;
    uint64_t count; /* elements */
    struct partial partial;
};

allfold_status saved_write(const char *path, const struct saved *saved, struct error *error);
allfold_status saved_read(const char *path, struct saved *saved, struct error *error);

/* *a becomes *a followed by *b, which was read from the file named path; an error where they are not of one kind. */
allfold_status saved_merge(struct saved *a, const struct saved *b, const char *path, struct error *error);

#endif
