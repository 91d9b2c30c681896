/* File formats: one file of this folder and one row of the table in formats.c for each. */
#pragma once

#include "array/array.h"
#include "array/file.h"

#include <string.h>

/* An input that is about to be described, open for reading. */
struct input_file {
    const char *name;         /* as the user gave it, without the array's */
    const struct array_hints *hints;
    int fd;                   /* -1: no file (generated) */
    uint64_t bytes, time;     /* of the file: array_info's file_bytes and file_time */
    unsigned char head[16];   /* its first bytes */
    size_t head_bytes;        /* how many of them there are */
};

/* What a file's directory is read for. */
struct directory {
    const char *name; /* of the array that is wanted; NULL: all */
    bool pattern;     /* the name may also be a pattern, as of fnmatch(3), of names that are wanted */
    uint64_t most;    /* arrays that are wanted; those behind them are only counted */
    uint64_t count;   /* arrays so far; of that name */
    array_take *take; /* is given those that are wanted */
    void *user;
    struct array_entry entry; /* of the array that is being described */
};

struct format {
    const char *name; /* in messages and reports */
    /* Whether the input is of this format. */
    bool (*recognises)(const struct input_file *file);
    /* Calls directory_entry for each array of the file, in the file's order. Where that returns an entry, describes the array there
       and calls directory_add. Checks all that can be checked without reading the elements. An array that cannot be read is added,
       too: entry->refused says why. *error is for what is wrong with the whole file. Neither text names the file or the array. */
    allfold_status (*read_directory)(const struct input_file *file, struct directory *directory, struct error *error);
    /* Opens a described array for reading, if info->plain is not 1. Every rank calls it. */
    allfold_status (*open)(const struct array_info *info, struct source **source, struct error *error);
    /* As array_attributes, of an open file. NULL: the format has no attributes. */
    allfold_status (*visit_attributes)(const struct input_file *file, const char *array, attribute_visit *visit, void *user, struct error *error);
    bool named;       /* a file may hold several arrays, which have names; else it is one, without */
    bool headless;    /* what the array is says file->hints, all of which read_directory obeys */
    bool opens_parts; /* `open` leaves out info->skipped elements: --offset and --count choose some */
};

extern const struct format format_generated, format_npy, format_npz, format_safetensors, format_safetensors_index, format_netcdf,
    format_netcdf4, format_hdf5, format_raw;

/* For formats (directory.c): the entry of the next array; NULL: it is not wanted. All of it is zero but the name, which must stay until
   directory_add, and what does not depend on the format. Of entry->info the format sets type, dimensions and shape; fortran_order,
   encoding; plain and layout, or granule, positions and details. other: another spelling of the name, by which it is found, too; or NULL. */
struct array_entry *directory_entry(struct directory *directory, const struct input_file *file, const char *name, const char *other);
/* Adds that entry. Counts its elements; refuses it if they are too many or, lying in the file as they are, end beyond it. */
void directory_add(struct directory *directory);

/* A name that the user gives: of an array in a file, of a pattern of files, or of a generator. */
struct input_name {
    char path[ARRAY_PATH_BYTES];
    const char *member; /* what stands behind the path's ':'; NULL: nothing */
    bool pattern; /* the path means several files */
    bool several; /* the member means several arrays */
};

/* For all formats (directory.c): describes the array of that name, or the only one (NULL). If there is none, or several, the error lists
   those that the file holds. Sets all of *info but format and missing. */
allfold_status directory_find(const struct format *format, const struct input_file *file, const char *name, struct array_info *info,
                              struct error *error);
/* Calls visit for each array, or those that the name's member means. */
allfold_status directory_list(const struct format *format, const struct input_file *file, const struct input_name *name, array_visit *visit,
                              void *user, struct error *error);
/* Reads the directory as it asks. An error names the file; so does one if there is no array of a name, or several of what is no pattern. */
allfold_status directory_read(const struct format *format, const struct input_file *file, struct directory *directory, struct error *error);

/* For array_describe and array_entries, which say what a name means (name.c): one file, or a generator (formats.c). */
allfold_status format_describe(const struct input_name *name, const struct array_hints *hints, struct array_info *info,
                               struct error *error);
allfold_status format_entries(const struct input_name *name, array_visit *visit, void *user, const char **format, struct error *error);
/* Describes those of its arrays whose names match name->member, one by one: as array_describe_each. */
allfold_status format_describe_each(const struct input_name *name, const struct array_hints *hints, array_take *take, void *user,
                                    struct error *error);
/* Whether the file can be read, and holds an array of exactly that name. */
bool format_holds(const struct input_name *name);
/* Calls visit for a described array. */
void format_visit(const struct array_info *info, array_visit *visit, void *user);
bool format_is_generated(const char *name);

/* What the user says of an array whose type the file tells: the type again, which must agree, and which of its elements, in the order
   in which they lie there. Part of an array is a row (formats.c). */
allfold_status format_cut(const struct array_hints *hints, struct array_info *info, struct error *error);

/* Opens the file called file->name and sets the rest of *file but hints. The message names the file. The caller closes it, also after an
   error (input.c). */
allfold_status input_open(struct input_file *file, struct error *error);
void input_close(struct input_file *file); /* if there is one */
/* Reads bytes of it. As those of formats, the message does not name the file. */
allfold_status input_read(const struct input_file *file, struct range bytes, void *to, struct error *error);

/* Gives a row of elements the shape "3,4", which must have as many (shape.c). */
allfold_status shape_give(const char *text, struct array_info *info, struct error *error);

/* Opens an array whose elements lie as info->layout or the parts say (plain.c). */
allfold_status plain_open(const struct array_info *info, struct source **source, struct error *error);

/* Whether the file is HDF5: the signature stands at its beginning, or behind a block of the user's of 512, 1024 or 2048 bytes
   (hdf5_signature.c). */
bool hdf5_recognises(const struct input_file *file);

/* Refuses a range that is not within the array (plain.c). */
allfold_status array_check_range(const struct array_info *info, uint64_t first, uint64_t count, struct error *error);
