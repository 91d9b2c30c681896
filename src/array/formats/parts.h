/* Arrays whose elements are not encoded: in one file, or in several, one behind the other. */
#pragma once

#include "array/array.h"

/* The elements that lie in one file. */
struct array_part_place {
    struct range range;   /* of the array's elements, those left out (info->skipped) included */
    uint64_t name;        /* the file's name begins at this byte of the table */
    uint64_t file_bytes, file_time;
    struct array_layout layout;
};

/* What info->details is for arrays of several files. Their names follow the parts. */
struct parts_table {
    uint64_t count;
    struct array_part_place parts[];
};

/* The parts of an array of several files while it is described. All zero: none yet. */
struct parts_list {
    struct array_part_place *parts;
    uint64_t count, capacity;
    char *names;
    uint64_t names_bytes, names_capacity;
};

/* Adds the file of an array that is described by info, behind those before it. */
allfold_status parts_add(struct parts_list *list, const struct array_info *info, struct error *error);
/* Makes the table of the list: info->details, file_bytes (of all files), file_time (the latest). Frees the list in any case. */
allfold_status parts_finish(struct parts_list *list, struct array_info *info, struct error *error);
void parts_free(struct parts_list *list);

/* The table of an array of several files; NULL: it lies in one. */
static inline const struct parts_table *parts_of(const struct array_info *info) { return info->details; }
static inline const char *parts_file(const struct parts_table *table, const struct array_part_place *part)
{
    return (const char *)table + part->name;
}
