/* Data files: regular files whose bytes many threads read at a time, each with a reader of its own. Formats read elements or
   chunks through this; headers are read with file.h. */
#pragma once

#include "array/file.h"

#include <stdatomic.h>

/* A file open for reading, shared by the readers of a source. */
struct data_file {
    int fd;
    const char *path;         /* the caller's, valid as long as the file is open */
    struct stat opened;       /* the file when it was opened */
    atomic_int direct;        /* a second descriptor, which bypasses the system's cache, opened when it is needed; or why there is none */
    atomic_bool direct_refused;
    atomic_bool cache_hidden; /* the file system does not say what is in the cache */
};

/* Opens the file; refuses one of another size than expected. */
allfold_status data_file_open(const char *path, uint64_t bytes, struct data_file *file, struct error *error);
/* After the last read: refuses a file that has been replaced, or has changed its size or its time, since it was opened. */
allfold_status data_file_check(const struct data_file *file, struct error *error);
void data_file_close(struct data_file *file);

/* One thread's way to the bytes of a file. All zero but for file is a reader that has read nothing.

   What is in the system's cache is copied from there. What is not is read directly, in large requests, which is quicker than through
   the cache, and leaves there what others keep. Where the file system refuses either, bytes are read in the ordinary way. */
struct data_reader {
    struct data_file *file;
    char *ahead;                     /* 4 MiB of the file that were read directly; NULL: never */
    uint64_t ahead_first, ahead_end; /* bytes of the file that are there */
};

struct data_request {
    uint64_t offset, bytes; /* within the file */
    uint64_t ahead;         /* bytes behind them that this reader will be asked for next, in order; 0: unknown */
    void *buffer;           /* aligned to 4096, with room for bytes + READER_SLACK (array.h) */
    size_t alignment;       /* that the bytes need in memory: a power of two, at most 64 */
};

/* Gives the bytes, in the buffer (not always at its beginning) or in memory of the reader, valid until its next read. */
allfold_status data_read(struct data_reader *reader, const struct data_request *request, const void **found, struct error *error);
void data_reader_close(struct data_reader *reader);
