/* File formats: one file of this folder and one line of the table in formats.c for each. */
#pragma once

#include "array/array.h"
#include "array/file.h"

#include <string.h>

/* An input that is about to be described, open for reading. */
struct input_file {
    const char *name;         /* as the user gave it, without the member */
    const char *member;       /* the array's name in the file; NULL: not given, or the format has no names */
    int fd;                   /* -1: no file (generated) */
    uint64_t bytes;           /* of the file */
    unsigned char head[16];   /* its first bytes */
    size_t head_bytes;        /* how many of them there are */
};

struct format {
    const char *name; /* in messages and reports */
    /* Whether the input is of this format. */
    bool (*recognises)(const struct input_file *file);
    /* Calls visit for each array of the file. NULL: the file is one array, without a name, and `describe` says all of it. */
    allfold_status (*list)(const struct input_file *file, array_visit *visit, void *user, struct error *error);
    /* Sets all of *info but format, path, file_bytes and file_time, and granule if it is 1; member, which is set, may be replaced by
       another spelling of the same name, and all of these if the array lies in another file. If the format has names, file->member is one, and input_refuse_member tells that there is none of that name. Checks
       all that can be checked without reading the elements. */
    allfold_status (*describe)(const struct input_file *file, const struct array_hints *hints, struct array_info *info,
                               struct error *error);
    /* Opens a described array for reading, if info->plain is not 1. Every rank calls it. */
    allfold_status (*open)(const struct array_info *info, struct source **source, struct error *error);
};

extern const struct format format_generated, format_npy, format_npz, format_safetensors, format_safetensors_index, format_netcdf, format_netcdf4, format_hdf5,
    format_raw;

/* A name that the user gives: of an array in a file, of a pattern of files, or of a generator. */
struct input_name {
    char path[ARRAY_PATH_BYTES];
    const char *member; /* what stands behind the path's ':'; NULL: nothing */
    bool pattern;
};

/* For array_describe and array_entries, which say what a name means (name.c): one file, or a generator (formats.c). */
allfold_status format_describe(const struct input_name *name, const struct array_hints *hints, struct array_info *info,
                               struct error *error);
allfold_status format_entries(const struct input_name *name, array_visit *visit, void *user, const char **format, struct error *error);
/* Calls visit for a described array. */
void format_visit(const struct array_info *info, array_visit *visit, void *user);
bool format_is_generated(const char *name);

/* Opens the file called file->name and sets the rest of *file but member; of *info file_bytes and file_time. The caller closes file->fd
   if it is not negative, also after an error (input.c). */
allfold_status input_open(struct input_file *file, struct array_info *info, struct error *error);

/* Fails: the file holds no array called file->member. The message lists those that it holds. */
allfold_status input_refuse_member(const struct input_file *file, const struct format *format, struct error *error);

/* The name of the only array of the file. If there are several, the error lists them. */
allfold_status input_only_member(const struct input_file *file, const struct format *format, char name[ARRAY_PATH_BYTES],
                                 struct error *error);

/* Sets info->plain, and what the user says of an array whose type the file tells: the type again, which must agree, and which of its
   elements, in the order in which they lie there. Part of an array is a row (plain.c). */
allfold_status plain_cut(const struct array_hints *hints, struct array_info *info, struct error *error);

/* Gives a row of elements the shape "3,4", which must have as many (shape.c). */
allfold_status shape_give(const char *text, struct array_info *info, struct error *error);

/* Opens an array whose elements lie as info->layout or the parts say (plain.c). */
allfold_status plain_open(const struct array_info *info, struct source **source, struct error *error);

/* Whether the file is HDF5: the signature stands at its beginning, or behind a block of the user's of 512, 1024 or 2048 bytes
   (hdf5_signature.c). */
bool hdf5_recognises(const struct input_file *file);

/* Refuses a range that is not within the array (plain.c). */
allfold_status array_check_range(const struct array_info *info, uint64_t first, uint64_t count, struct error *error);
