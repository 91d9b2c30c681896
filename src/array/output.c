/* Output files that appear whole, under their name, or not at all: every process writes its ranges of a temporary file
   in the target's folder, which is renamed to the target when all have succeeded.

   A process that is killed cannot remove its temporary file. So that a later run can, the creator keeps a lock on it,
   which ends with the process, and the name says on which running kernel: there, a file without a lock is nobody's.
   Between hosts a lock may mean nothing: that is up to the file system.

   What users of such tools expect: a target that is a symbolic link is written through (the link stays, the file it
   names is replaced), as cp does, and as cp does a link to nothing is refused; a target that is not a regular file, or
   that its permissions protect from writing, is refused; a target's other hard links keep the old contents. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fallocate */
#endif
#include "array/array.h"
#include "array/file.h"
#include "array/npy.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define TEMPORARY_NAME_BYTES 200 /* of the target's name: with the rest it stays below any NAME_MAX */
#define ATTEMPTS 100
#define LETTERS 6
#define MARK_BYTES 16

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
static void letters(unsigned attempt, char text[LETTERS + 1])
{
    static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t x = (uint64_t)now.tv_nsec ^ (uint64_t)now.tv_sec << 30 ^ (uint64_t)getpid() << 20;
    x = (x + attempt) * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 29;
    for (int i = 0; i < LETTERS; i++, x /= 36)
        text[i] = alphabet[x % 36];
    text[LETTERS] = '\0';
}

/* Which kernel this is, since when it runs: processes with the same mark see each other's locks. "" if nobody says. */
static void kernel_mark(char mark[MARK_BYTES])
{
    const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd >= 0 ? read(fd, mark, 8) : -1;
    memcpy(mark + 8, ".", 2);
    for (int i = 0; i < 8; i++)
        if (got != 8 || !isxdigit((unsigned char)mark[i]))
            mark[0] = '\0';
    if (fd >= 0)
        close(fd);
}

/* Removes a temporary file that no process holds. */
static void remove_if_unlocked(int folder, const char *name)
{
    struct stat status;
    const int fd = openat(folder, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(fd);
}

/* Removes what runs for the same target on this kernel have left behind: "PREFIXxxxxxx.tmp" without a lock. */
static void remove_stale(const char *target, const char *prefix)
{
    char path[ARRAY_PATH_BYTES];
    const size_t length = strlen(prefix);
    folder_of(target, path);
    DIR *const folder = opendir(path);
    if (folder == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (strncmp(entry->d_name, prefix, length) == 0 && strlen(entry->d_name) == length + LETTERS + 4
            && strcmp(entry->d_name + length + LETTERS, ".tmp") == 0)
            remove_if_unlocked(dirfd(folder), entry->d_name);
    closedir(folder);
}

/* Locks a file that was just created. False where it is not to be used: someone has taken it for one that was left
   behind; or files cannot be locked here, and *lockable is false then. */
static bool lock_temporary(int fd, bool *lockable)
{
    struct stat status;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fstat(fd, &status) == 0 && status.st_nlink > 0;
    *lockable = errno == EWOULDBLOCK || errno == EINTR;
    return false;
}

/* Creates ".NAME.MARK.XXXXXX.tmp" beside the target, locked, or ".NAME.XXXXXX.tmp" where nothing can be locked. Returns
   its descriptor, -1 on an error. */
static int create_temporary(const char *target, char temporary[ARRAY_PATH_BYTES], struct error *error)
{
    const size_t folder = folder_length(target);
    char mark[MARK_BYTES], prefix[TEMPORARY_NAME_BYTES + MARK_BYTES + 3];
    kernel_mark(mark);
    snprintf(prefix, sizeof prefix, ".%.*s.%s", TEMPORARY_NAME_BYTES, target + folder, mark);
    bool lockable = mark[0] != '\0';
    if (lockable)
        remove_stale(target, prefix);
    for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
        char unique[LETTERS + 1];
        letters(attempt, unique);
        if (snprintf(temporary, ARRAY_PATH_BYTES, "%.*s.%.*s.%s%s.tmp", (int)folder, target, TEMPORARY_NAME_BYTES,
                     target + folder, lockable ? mark : "", unique) >= ARRAY_PATH_BYTES) {
            errno = ENAMETOOLONG;
            break;
        }
        const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
        if (fd >= 0 && (!lockable || lock_temporary(fd, &lockable)))
            return fd;
        if (fd >= 0) {
            unlink(temporary);
            close(fd);
        }
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
                         "%s: NumPy has no bfloat16: expected elements of another type (f32 holds every bf16), or a name "
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
    made.lock = create_temporary(made.path, made.temporary, error);
    if (made.lock < 0)
        return error->status;
    if (fill_temporary(made.lock, &made, header, exists, mode, error) != ALLFOLD_OK) {
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

static void unlock(const struct output *output)
{
    if (output->lock >= 0)
        close(output->lock);
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
    if (error->status != ALLFOLD_OK) {
        output_discard(output);
        return error->status;
    }
    unlock(output);
    return sync_folder(output->path, error);
}

void output_discard(const struct output *output)
{
    unlink(output->temporary);
    unlock(output);
}
