/* Reads and writes whole byte ranges: callers meet no short counts, interrupted calls or limits on one call. */
#include "array/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define CALL_BYTES_MAX 0x7ffff000u         /* Linux moves no more in one call */
#define SHOWN_BYTES 200

const char *file_kind(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG: return "a regular file";
    case S_IFDIR: return "a directory";
    case S_IFIFO: return "a fifo (named pipe)";
    case S_IFSOCK: return "a socket";
    case S_IFCHR: return "a character device";
    case S_IFBLK: return "a block device";
    case S_IFLNK: return "a symbolic link";
    default: return "a file of unknown kind";
    }
}

bool file_name_ends(const char *path, const char *ending)
{
    const size_t length = strlen(path), bytes = strlen(ending);
    return length >= bytes && strcasecmp(path + length - bytes, ending) == 0;
}

const char *file_shown(const char *path)
{
    const size_t length = strlen(path);
    if (length <= SHOWN_BYTES)
        return path;
    const char *end = path + length - SHOWN_BYTES;
    const char *slash = strchr(end, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : end;
}

static bool check_regular(const char *path, const struct stat *status, struct error *error)
{
    if (S_ISREG(status->st_mode))
        return true;
    error_set(error, ALLFOLD_BAD_INPUT, "%s: expected a regular file, found %s", file_shown(path),
              file_kind(status->st_mode));
    return false;
}

/* The part of a path after its last slash. */
static const char *last_name(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

static bool stat_folder(const char *path, struct stat *status)
{
    char folder[ARRAY_PATH_BYTES];
    const size_t length = (size_t)(last_name(path) - path);
    if (length >= sizeof folder)
        return false;
    memcpy(folder, path, length);
    memcpy(folder + length, ".", 2);
    return stat(folder, status) == 0;
}

bool file_same(const char *a, const char *b)
{
    struct stat of_a, of_b;
    const bool is_a = stat(a, &of_a) == 0, is_b = stat(b, &of_b) == 0;
    if (is_a != is_b
        || (!is_a && (strcmp(last_name(a), last_name(b)) != 0 || !stat_folder(a, &of_a) || !stat_folder(b, &of_b))))
        return false;
    return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

/* Files of /proc report a size of 0, whatever their content. */
static bool check_size(int fd, const char *path, const struct stat *status, struct error *error)
{
    char byte;
    const ssize_t got = status->st_size == 0 ? pread(fd, &byte, 1, 0) : 0;
    if (got == 0)
        return true;
    if (got < 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot read the file", file_shown(path));
    else
        error_set(error, ALLFOLD_BAD_INPUT, "%s: expected a file that tells its size, found one of size 0 that has content (as those "
                  "of /proc): copy it to a regular file", file_shown(path));
    return false;
}

int file_open(const char *path, uint64_t *bytes, struct error *error)
{
    struct stat status;
    /* before opening, because opening a device may already do something to it */
    if (stat(path, &status) != 0) {
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot find the file", file_shown(path));
        return -1;
    }
    if (!check_regular(path, &status, error))
        return -1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot open the file", file_shown(path));
        return -1;
    }
    if (fstat(fd, &status) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot tell the file's size", file_shown(path));
    else if (check_regular(path, &status, error) && check_size(fd, path, &status, error)) {
        *bytes = (uint64_t)status.st_size;
        return fd;
    }
    close(fd);
    return -1;
}

allfold_status file_read(const struct file_range *range, void *destination, struct error *error)
{
    const char *const name = range->path != NULL ? file_shown(range->path) : "", *const colon = range->path != NULL ? ": " : "";
    for (uint64_t done = 0; done < range->bytes;) {
        const size_t ask = (size_t)u64_min(range->bytes - done, CALL_BYTES_MAX);
        const ssize_t got = pread(range->fd, (char *)destination + done, ask, (off_t)(range->offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s%scannot read at byte %" PRIu64, name, colon, range->offset + done);
        if (got == 0)
            return error_set(error, ALLFOLD_IO_ERROR, "%s%sthe file shrank while it was read: expected %" PRIu64
                             " more bytes at byte %" PRIu64 ", found its end", name, colon, range->bytes - done, range->offset + done);
        done += (uint64_t)got;
    }
    return ALLFOLD_OK;
}

allfold_status file_write(const struct file_range *range, const void *origin, struct error *error)
{
    for (uint64_t done = 0; done < range->bytes;) {
        const size_t ask = (size_t)u64_min(range->bytes - done, CALL_BYTES_MAX);
        const ssize_t put = pwrite(range->fd, (const char *)origin + done, ask, (off_t)(range->offset + done));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot write %" PRIu64 " bytes at byte %" PRIu64,
                               file_shown(range->path), range->bytes - done, range->offset + done);
        if (put == 0)
            return error_set(error, ALLFOLD_IO_ERROR,
                             "%s: the system took none of %" PRIu64 " bytes at byte %" PRIu64 " and gave no reason",
                             file_shown(range->path), range->bytes - done, range->offset + done);
        done += (uint64_t)put;
    }
    return ALLFOLD_OK;
}
