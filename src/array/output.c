/* Output files that appear whole, under their name, or not at all: every process writes its ranges of a temporary file
   in the target's folder, which is renamed to the target when all have succeeded.

   What users of such tools expect: a target that is a symbolic link is written through (the link stays, the file it
   names is replaced), as cp does, and as cp does a link to nothing is refused; a target that is not a regular file, or
   that its permissions protect from writing, is refused; a target's other hard links keep the old contents. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fallocate */
#endif
#include "array/array.h"
#include "array/file.h"
#include "array/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TEMPORARY_NAME_BYTES 200 /* of the target's name: with the rest it stays below any NAME_MAX */
#define ATTEMPTS 100

/* Length of the folder part of a path, with its last slash; 0 where there is none. */
static size_t folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? 0 : (size_t)(slash - path) + 1;
}

/* The folder of a path as a path of its own. */
static void folder_of(const char *path, char folder[ARRAY_PATH_BYTES])
{
    const size_t length = folder_length(path);
    snprintf(folder, ARRAY_PATH_BYTES, "%.*s", length > 0 ? (int)length : 1, length > 0 ? path : ".");
}

static allfold_status resolve_link(const char *path, char target[ARRAY_PATH_BYTES], struct error *error)
{
    char *resolved = realpath(path, NULL);
    if (resolved == NULL)
        return error_errno(error, ALLFOLD_IO_ERROR, errno,
                           "%s: cannot write through this symbolic link (name the file itself)", file_shown(path));
    const size_t length = strlen(resolved);
    if (length < ARRAY_PATH_BYTES)
        memcpy(target, resolved, length + 1);
    else
        error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: the path behind this symbolic link is too long: expected less "
                  "than %d bytes, found %zu", file_shown(path), ARRAY_PATH_BYTES, length);
    free(resolved);
    return error->status;
}

/* Finds the name to replace, and the permissions that its file has now (exists is false where there is none). */
static allfold_status find_target(const char *path, char target[ARRAY_PATH_BYTES], bool *exists, mode_t *mode,
                                  struct error *error)
{
    struct stat status;
    const size_t length = strlen(path);
    *exists = false;
    if (length >= ARRAY_PATH_BYTES)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected an output path of less than %d bytes, found %zu",
                         file_shown(path), ARRAY_PATH_BYTES, length);
    if (length == 0 || path[length - 1] == '/')
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "expected the name of an output file, found %s%s",
                         length == 0 ? "an empty name" : "the folder ", file_shown(path));
    memcpy(target, path, length + 1);
    if (lstat(path, &status) != 0) {
        if (errno == ENOENT)
            return ALLFOLD_OK;
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot make this output file", file_shown(path));
    }
    if (S_ISLNK(status.st_mode)) {
        if (resolve_link(path, target, error) != ALLFOLD_OK)
            return error->status;
        if (stat(target, &status) != 0)
            return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot tell what it is", file_shown(target));
    }
    if (!S_ISREG(status.st_mode))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a regular file, or none yet, for the output, "
                         "found %s", file_shown(path), file_kind(status.st_mode));
    if (faccessat(AT_FDCWD, target, W_OK, AT_EACCESS) != 0)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: the file is there and may not be written",
                           file_shown(path));
    *exists = true;
    *mode = status.st_mode & 0777;
    return ALLFOLD_OK;
}

/* Six letters that differ from process to process and from call to call; O_EXCL is what makes names unique. */
static void letters(unsigned attempt, char text[7])
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t x = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30 ^ (uint64_t)getpid() << 20;
    x = (x + attempt) * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    for (int i = 0; i < 6; i++, x /= 36)
        text[i] = alphabet[x % 36];
    text[6] = '\0';
}

/* Creates ".NAME.XXXXXX.tmp" beside the target. Returns its descriptor, -1 on an error. */
static int create_temporary(const char *target, char temporary[ARRAY_PATH_BYTES], struct error *error)
{
    const size_t folder = folder_length(target);
    int fd = -1;
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        char unique[7];
        letters(attempt, unique);
        if (snprintf(temporary, ARRAY_PATH_BYTES, "%.*s.%.*s.%s.tmp", (int)folder, target, TEMPORARY_NAME_BYTES,
                     target + folder, unique) >= ARRAY_PATH_BYTES) {
            errno = ENAMETOOLONG;
            break;
        }
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return fd;
        if (errno != EEXIST)
            break;
    }
    const int reason = errno;
    char name[ARRAY_PATH_BYTES];
    folder_of(target, name);
    error_errno(error, ALLFOLD_IO_ERROR, reason, "%s: cannot create an output file in the folder %.200s",
                file_shown(target), name);
    return -1;
}

/* Gives the file its full size, and its blocks where the file system can promise them: a disk that is too small then
   shows now, and not after hours of work. */
static allfold_status reserve(int fd, const char *path, uint64_t bytes, struct error *error)
{
#ifdef __linux__
    int result = -1;
    for (int attempt = 0; attempt < ATTEMPTS && bytes > 0; attempt++) {
        result = fallocate(fd, 0, 0, (off_t)bytes);
        if (result == 0 || errno != EINTR)
            break;
    }
    if (bytes > 0 && result != 0 && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL && errno != EINTR)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: no room for an output file of %" PRIu64 " bytes",
                           file_shown(path), bytes);
#endif
    if (ftruncate(fd, (off_t)bytes) != 0)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot make an output file of %" PRIu64 " bytes",
                           file_shown(path), bytes);
    return ALLFOLD_OK;
}

static allfold_status fill_temporary(int fd, const struct output *output, const char *header, bool exists, mode_t mode,
                                     struct error *error)
{
    const uint64_t bytes = output->data_offset + output->count * allfold_type_bytes(output->type);
    if (exists && fchmod(fd, mode) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot keep the permissions of the file that is there",
                    file_shown(output->path));
    else if (reserve(fd, output->path, bytes, error) == ALLFOLD_OK)
        file_write(fd, output->path, 0, output->data_offset, header, 1, error);
    if (close(fd) != 0 && errno != EINTR)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot close the output file", file_shown(output->path));
    return error->status;
}

/* The header, and what of *output does not depend on the file system. */
static allfold_status plan(const char *path, const struct array_info *info, struct output *output, char *header,
                           struct error *error)
{
    const size_t length = strlen(path);
    const bool npy = length >= 4 && strcmp(path + length - 4, ".npy") == 0;
    uint64_t bytes, product;
    if (npy && info->type == ALLFOLD_BF16)
        return error_set(error, ALLFOLD_UNSUPPORTED,
                         "%s: NumPy has no bfloat16: expected another --output-type (f32 holds every bf16), or a name "
                         "that does not end in .npy for a raw file", file_shown(path));
    if (info->dimensions > ARRAY_DIMENSIONS_MAX || !npy_count(info->shape, info->dimensions, &product) ||
        product != info->count)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: the output's shape does not make up its %" PRIu64
                         " elements", file_shown(path), info->count);
    output->type = info->type;
    output->count = info->count;
    output->data_offset = npy ? npy_header(info, header) : 0;
    if (__builtin_mul_overflow(info->count, (uint64_t)allfold_type_bytes(info->type), &bytes) ||
        bytes > FILE_BYTES_MAX - output->data_offset)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected an output of less than 2^63 bytes, found %" PRIu64
                         " %s elements", file_shown(path), info->count, allfold_type_name(info->type));
    return ALLFOLD_OK;
}

allfold_status output_create(const char *path, const struct array_info *info, struct output *output,
                             struct error *error)
{
    struct output made;
    char header[NPY_HEADER_BYTES_MAX];
    bool exists = false;
    mode_t mode = 0;
    memset(&made, 0, sizeof made);
    if (plan(path, info, &made, header, error) != ALLFOLD_OK ||
        find_target(path, made.path, &exists, &mode, error) != ALLFOLD_OK)
        return error->status;
    const int fd = create_temporary(made.path, made.temporary, error);
    if (fd < 0)
        return error->status;
    if (fill_temporary(fd, &made, header, exists, mode, error) != ALLFOLD_OK) {
        output_discard(&made);
        return error->status;
    }
    memcpy(output, &made, sizeof made);
    return ALLFOLD_OK;
}

/* Is the temporary file, of this status, the one that was created? */
static allfold_status check_temporary(const struct output *output, const struct stat *status, struct error *error)
{
    const uint64_t bytes = output->data_offset + output->count * allfold_type_bytes(output->type);
    if (S_ISREG(status->st_mode) && (uint64_t)status->st_size == bytes)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_IO_ERROR,
                     "%s: expected the temporary output file of %" PRIu64 " bytes, found %s of %" PRIu64
                     ": something else has touched it", file_shown(output->temporary), bytes,
                     file_kind(status->st_mode), (uint64_t)status->st_size);
}

struct file_sink {
    struct sink sink;
    struct output output;
    int fd;
};

static allfold_status write_sink(struct sink *sink, uint64_t first, uint64_t count, const void *elements, int threads,
                                 struct error *error)
{
    const struct file_sink *s = (const struct file_sink *)sink;
    const struct output *o = &s->output;
    const uint64_t bytes = allfold_type_bytes(o->type);
    if (first > o->count || count > o->count - first)
        return error_set(error, ALLFOLD_BAD_ARGUMENT,
                         "%s: expected a range within its %" PRIu64 " elements, found %" PRIu64 " elements from %"
                         PRIu64, file_shown(o->path), o->count, count, first);
    return file_write(s->fd, o->path, o->data_offset + first * bytes, count * bytes, elements, threads, error);
}

static allfold_status close_sink(struct sink *sink, struct error *error)
{
    struct file_sink *s = (struct file_sink *)sink;
    const char *shown = file_shown(s->output.path);
    int synced;
    while ((synced = fsync(s->fd)) != 0 && errno == EINTR)
        ;
    if (synced != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot make the output durable", shown);
    if (close(s->fd) != 0 && errno != EINTR) /* Linux has closed it even then */
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot close the output file", shown);
    free(s);
    return error->status;
}

allfold_status output_open(const struct output *output, struct sink **sink, struct error *error)
{
    struct stat status;
    struct file_sink *s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(output->path));
    s->sink.write = write_sink;
    s->sink.close = close_sink;
    s->sink.type = output->type;
    memcpy(&s->output, output, sizeof *output);
    s->fd = open(output->temporary, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (s->fd < 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno,
                    "%s: cannot open the output file that another rank has made (all hosts must share its folder)",
                    file_shown(output->temporary));
    else if (fstat(s->fd, &status) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot tell its size", file_shown(output->temporary));
    else if (check_temporary(output, &status, error) == ALLFOLD_OK) {
        *sink = &s->sink;
        return ALLFOLD_OK;
    }
    if (s->fd >= 0)
        close(s->fd);
    free(s);
    return error->status;
}

/* Makes a rename durable. A folder that may be written but not read cannot be opened, and some file systems cannot
   sync folders: the rename has happened and counts. */
static allfold_status sync_folder(const char *path, struct error *error)
{
    char folder[ARRAY_PATH_BYTES];
    folder_of(path, folder);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return ALLFOLD_OK;
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EINTR)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: the output is complete, but its folder cannot be synced",
                    file_shown(path));
    close(fd);
    return error->status;
}

allfold_status output_commit(const struct output *output, struct error *error)
{
    struct stat status;
    if (lstat(output->temporary, &status) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: the temporary output file is gone",
                    file_shown(output->temporary));
    else if (check_temporary(output, &status, error) == ALLFOLD_OK &&
             rename(output->temporary, output->path) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot give the finished output its name",
                    file_shown(output->path));
    if (error->status == ALLFOLD_OK)
        return sync_folder(output->path, error);
    output_discard(output);
    return error->status;
}

void output_discard(const struct output *output)
{
    unlink(output->temporary);
}
