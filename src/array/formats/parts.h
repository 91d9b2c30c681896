/* Arrays in several files, one behind the other: their elements lie there as they are (plain.c), or in chunks (joined.c). */
#pragma once

#include "array/array.h"
#include "array/data_file.h"

/* The elements that lie in one file. */
struct array_part_place {
    struct range range;    /* of the array's elements, those left out (info->skipped) included */
    uint64_t name, member; /* the names of file and array begin at these bytes of the table */
    uint64_t file_bytes, file_time;
    struct array_layout layout;
    uint64_t granule;      /* as array_info says, */
    uint64_t chunk[ARRAY_DIMENSIONS_MAX];
};

/* What info->details is for arrays of several files. Their names follow the parts. */
struct parts_table {
    uint64_t count;
    struct array_part_place parts[];
};

/* The parts of an array of several files while it is described. All zero: none yet. */
struct parts_list {
    struct array_part_place *parts;
    uint64_t count;
    char *names;
    uint64_t names_bytes;
};

/* Adds the file of an array that is described by info, behind those before it. */
allfold_status parts_add(struct parts_list *list, const struct array_info *info, struct error *error);
/* Makes the table of the list: info->details, file_bytes (of all files), file_time (the latest). Frees the list in any
   case. */
allfold_status parts_finish(struct parts_list *list, struct array_info *info, struct error *error);
void parts_free(struct parts_list *list);

/* The table of an array of several files; NULL: it lies in one. */
static inline const struct parts_table *parts_of(const struct array_info *info)
{
    return (info->plain || array_is_chunked(info)) && info->details_bytes > 0 ? info->details : NULL;
}
static inline const char *parts_file(const struct parts_table *table, const struct array_part_place *part)
{
    return (const char *)table + part->name;
}
static inline const char *parts_member(const struct parts_table *table, const struct array_part_place *part)
{
    return (const char *)table + part->member;
}

/* The files of any array, which are the parts of one that has several; and the array's name in each. */
static inline uint64_t array_files(const struct array_info *info)
{
    return parts_of(info) != NULL ? parts_of(info)->count : 1;
}
static inline const char *array_file(const struct array_info *info, uint64_t file)
{
    const struct parts_table *const table = parts_of(info);
    return table != NULL ? parts_file(table, &table->parts[file]) : info->path;
}
static inline const char *array_member(const struct array_info *info, uint64_t file)
{
    const struct parts_table *const table = parts_of(info);
    return table != NULL ? parts_member(table, &table->parts[file]) : info->member;
}

/* Opens one of the files. It must be what it was when `opened` was found; NULL: whatever it is. */
allfold_status parts_open(const struct parts_table *table, uint64_t part, const struct stat *opened, struct data_file *file, struct error *error);
/* Looks at all of them, so that one of another size is refused before any work. Returns what each is, to be freed; NULL
   after an error. */
struct stat *parts_look(const struct parts_table *table, struct error *error);
/* Whether they still are that: called after the last read. */
allfold_status parts_check(const struct parts_table *table, const struct stat *opened, struct error *error);
