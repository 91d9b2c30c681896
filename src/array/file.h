/* Opens regular files, and reads and writes whole ranges of bytes, for the readers and writers of this folder. */
#pragma once

#include "base/base.h"

#include <sys/stat.h>
#include <sys/types.h>

_Static_assert(sizeof(off_t) == 8, "file offsets must have 64 bits: build with -D_FILE_OFFSET_BITS=64");

#define FILE_BYTES_MAX ((uint64_t)INT64_MAX)
#define ARRAY_PATH_BYTES 4096

/* What a mode is called in a message: "a directory". */
const char *file_kind(mode_t mode);

/* The path, or the end of a long one, so that a message has room for its reason. Points into path. */
const char *file_shown(const char *path);

/* Whether the name ends so: ".npy", also in capitals. */
bool file_name_ends(const char *path, const char *ending);

/* Whether two names are of one file: compared by device and inode, or, if neither file exists yet, by folder and name. */
bool file_same(const char *a, const char *b);

/* Opens a regular file for reading (it never waits, as opening a fifo would) and returns its size. A file of size 0 that has
   content, as in /proc, is refused. Returns the descriptor, -1 on an error. */
int file_open(const char *path, uint64_t *bytes, struct error *error);

/* Bytes [offset, offset + bytes) of an open file. */
struct file_range {
    int fd;
    const char *path; /* for messages; NULL, of what is read: they do not name the file */
    uint64_t offset, bytes;
};

/* Reads or writes all of the range, or fails. */
allfold_status file_read(const struct file_range *range, void *destination, struct error *error);
allfold_status file_write(const struct file_range *range, const void *origin, struct error *error);
