/* Replaces files whole: see replacement.h.

   A process that is killed cannot remove its temporary file. A later run can, because the creator keeps a lock on the file,
   which ends with the process, and the file's name identifies the running kernel. On that kernel a file without a lock is
   not in use. Between hosts a lock may have no effect, which depends on the file system.

   What users of such tools expect: a target that is a symbolic link is written through (the link stays, the file it
   names is replaced), as cp does, and as cp does a link to nothing is refused; a target that is not a regular file, or
   that its permissions protect from writing, is refused; a target's other hard links keep the old contents. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* fallocate */
#endif
#include "array/replacement.h"

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

/* Length of the folder part of a path, with its last slash; 0 if there is none. */
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

/* In a sticky folder only root and the owners of file and folder may replace a file, whatever its permissions. */
static bool is_sticky(const char *target, const struct stat *file)
{
    char name[ARRAY_PATH_BYTES];
    struct stat folder;
    folder_of(target, name);
    return stat(name, &folder) == 0 && (folder.st_mode & S_ISVTX) != 0 && geteuid() != 0 && geteuid() != file->st_uid
           && geteuid() != folder.st_uid;
}

/* Finds the name to replace, and the permissions that its file has now (exists is false if there is none). */
static allfold_status find_target(const char *path, char target[ARRAY_PATH_BYTES], bool *exists, mode_t *mode,
                                  struct error *error)
{
    struct stat status;
    const size_t length = strlen(path);
    *exists = false;
    if (length >= ARRAY_PATH_BYTES)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a path of less than %d bytes, found %zu",
                         file_shown(path), ARRAY_PATH_BYTES, length);
    if (length == 0 || path[length - 1] == '/')
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "expected the name of a file to write, found %s%s",
                         length == 0 ? "an empty name" : "the folder ", file_shown(path));
    memcpy(target, path, length + 1);
    if (lstat(path, &status) != 0) {
        if (errno == ENOENT)
            return ALLFOLD_OK;
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot make this file", file_shown(path));
    }
    if (S_ISLNK(status.st_mode)) {
        if (resolve_link(path, target, error) != ALLFOLD_OK)
            return error->status;
        if (stat(target, &status) != 0)
            return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot tell what it is", file_shown(target));
    }
    if (!S_ISREG(status.st_mode))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a regular file to replace, or none yet, found %s", file_shown(path), file_kind(status.st_mode));
    if (faccessat(AT_FDCWD, target, W_OK, AT_EACCESS) != 0)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: the file is there and may not be written",
                           file_shown(path));
    if (is_sticky(target, &status))
        return error_set(error, ALLFOLD_IO_ERROR, "%s: the file is another user's, and its folder lets only its owner replace it",
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

/* A mark of the running kernel and its boot: processes with the same mark see each other's locks. "" if it is unknown. */
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

/* Removes files that runs for the same target on this kernel have left behind: "PREFIXxxxxxx.tmp" without a lock. */
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

/* Locks a file that was just created. False if it must not be used: another process has taken it for one that was left
   behind, or files cannot be locked here; *lockable is false in the second case. */
static bool lock_temporary(int fd, bool *lockable)
{
    struct stat status;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fstat(fd, &status) == 0 && status.st_nlink > 0;
    *lockable = errno == EWOULDBLOCK || errno == EINTR;
    return false;
}

/* Creates ".NAME.MARK.XXXXXX.tmp" beside the target, locked, or ".NAME.XXXXXX.tmp" if files cannot be locked. Returns
   its descriptor, -1 on an error. */
static int create_temporary(const char *target, bool clean, char temporary[ARRAY_PATH_BYTES], struct error *error)
{
    const size_t folder = folder_length(target);
    char mark[MARK_BYTES], prefix[TEMPORARY_NAME_BYTES + MARK_BYTES + 3];
    kernel_mark(mark);
    snprintf(prefix, sizeof prefix, ".%.*s.%s", TEMPORARY_NAME_BYTES, target + folder, mark);
    bool lockable = mark[0] != '\0';
    if (lockable && clean)
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
    error_errno(error, ALLFOLD_IO_ERROR, reason, "%s: cannot create a file in the folder %.200s",
                file_shown(target), name);
    return -1;
}

/* Gives the file its full size, and reserves its blocks if the file system can do that, so that a full disk shows now and not
   after hours of work. */
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
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: no room for a file of %" PRIu64 " bytes",
                           file_shown(path), bytes);
#endif
    if (ftruncate(fd, (off_t)bytes) != 0)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot make a file of %" PRIu64 " bytes",
                           file_shown(path), bytes);
    return ALLFOLD_OK;
}

/* Makes a new name durable. A folder that may be written but not read cannot be opened, and some file systems cannot sync folders: the
   name is there and counts. */
static allfold_status sync_folder(const char *path, const char *state, struct error *error)
{
    char folder[ARRAY_PATH_BYTES];
    folder_of(path, folder);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return ALLFOLD_OK;
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP && errno != EINTR)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: the output is %s, but its folder cannot be synced", file_shown(path), state);
    close(fd);
    return error->status;
}

/* The name of a file that outlives its run. */
static allfold_status name_kept(const char *target, uint64_t key, char temporary[ARRAY_PATH_BYTES], struct error *error)
{
    const size_t folder = folder_length(target);
    if (snprintf(temporary, ARRAY_PATH_BYTES, "%.*s.%.*s.%016" PRIx64 ".part", (int)folder, target, TEMPORARY_NAME_BYTES, target + folder,
                 key) < ARRAY_PATH_BYTES)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a shorter path", file_shown(target));
}

bool replacement_exists(const char *path, uint64_t key)
{
    char target[ARRAY_PATH_BYTES], temporary[ARRAY_PATH_BYTES], folder[ARRAY_PATH_BYTES];
    struct error error = {0};
    bool exists;
    mode_t mode;
    if (find_target(path, target, &exists, &mode, &error) != ALLFOLD_OK || name_kept(target, key, temporary, &error) != ALLFOLD_OK)
        return true;
    folder_of(target, folder);
    return access(temporary, F_OK) == 0 || errno != ENOENT || access(folder, W_OK) != 0;
}

/* Whether the temporary file is still the one that was created. */
static allfold_status check_temporary(const struct replacement *replacement, struct error *error)
{
    struct stat status;
    if (lstat(replacement->temporary, &status) != 0)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: the temporary file is not here (all hosts must share its folder)",
                           file_shown(replacement->temporary));
    if (S_ISREG(status.st_mode) && (uint64_t)status.st_size == replacement->bytes)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_IO_ERROR, "%s: expected the temporary file of %" PRIu64 " bytes, found %s of %" PRIu64
                     ": something else has touched it%s", file_shown(replacement->temporary), replacement->bytes, file_kind(status.st_mode),
                     (uint64_t)status.st_size, replacement->kept ? " (remove it to begin anew)" : "");
}

int replacement_open(const struct replacement *replacement, int access, struct error *error)
{
    if (check_temporary(replacement, error) != ALLFOLD_OK)
        return -1;
    const int fd = open(replacement->temporary, access | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot open the temporary file", file_shown(replacement->temporary));
    return fd;
}

/* Opens the file that an earlier run has left, or makes a new one. Returns its descriptor, -1 on an error. */
static int open_kept(struct replacement *made, const struct replacement_key *key, struct error *error)
{
    if (name_kept(made->path, key->key, made->temporary, error) != ALLFOLD_OK)
        return -1;
    made->kept = key->exists;
    if (!key->exists)
        unlink(made->temporary);
    const int fd = key->exists ? replacement_open(made, O_WRONLY, error)
                               : open(made->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot create the unfinished output", file_shown(made->temporary));
    else if (sync_folder(made->temporary, "created", error) != ALLFOLD_OK)
        close(fd);
    return error->status == ALLFOLD_OK ? fd : -1;
}

/* What is to be made. */
struct wish {
    const char *path;
    uint64_t bytes;
    const struct replacement_key *key; /* NULL: none */
    bool clean;                        /* remove what killed runs have left */
};

static allfold_status make(const struct wish *wish, struct replacement *replacement, struct error *error)
{
    struct replacement made;
    bool exists = false;
    mode_t mode = 0;
    memset(&made, 0, sizeof made);
    made.bytes = wish->bytes;
    if (find_target(wish->path, made.path, &exists, &mode, error) != ALLFOLD_OK)
        return error->status;
    made.descriptor = wish->key != NULL ? open_kept(&made, wish->key, error)
                                        : create_temporary(made.path, wish->clean, made.temporary, error);
    if (made.descriptor < 0)
        return error->status;
    if (exists && fchmod(made.descriptor, mode) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot keep the permissions of the file that is there",
                    file_shown(made.path));
    else if (reserve(made.descriptor, made.path, made.bytes, error) == ALLFOLD_OK) {
        memcpy(replacement, &made, sizeof made);
        return ALLFOLD_OK;
    }
    replacement_discard(&made);
    return error->status;
}

allfold_status replacement_create(const char *path, uint64_t bytes, const struct replacement_key *key, struct replacement *replacement,
                                  struct error *error)
{
    return make(&(struct wish){path, bytes, key, true}, replacement, error);
}

allfold_status replacement_renew(struct replacement *replacement, struct error *error)
{
    char path[ARRAY_PATH_BYTES];
    memcpy(path, replacement->path, sizeof path);
    return make(&(struct wish){path, replacement->bytes, NULL, false}, replacement, error);
}

static void release(struct replacement *replacement)
{
    if (replacement->descriptor >= 0)
        close(replacement->descriptor);
    replacement->descriptor = -1;
}

/* Gives the temporary file its name by `name_it`, which is rename or link. Returns 0, or errno if that fails. */
static int commit(struct replacement *replacement, int (*name_it)(const char *from, const char *to), struct error *error)
{
    return check_temporary(replacement, error) != ALLFOLD_OK || name_it(replacement->temporary, replacement->path) == 0 ? 0 : errno;
}

allfold_status replacement_commit(struct replacement *replacement, struct error *error)
{
    const int reason = commit(replacement, rename, error);
    if (reason != 0)
        error_errno(error, ALLFOLD_IO_ERROR, reason, "%s: cannot give the finished file its name",
                    file_shown(replacement->path));
    if (error->status != ALLFOLD_OK) {
        replacement_discard(replacement);
        return error->status;
    }
    release(replacement);
    return sync_folder(replacement->path, "complete", error);
}

allfold_status replacement_commit_new(struct replacement *replacement, bool *taken, struct error *error)
{
    const int reason = commit(replacement, link, error);
    *taken = reason == EEXIST;
    if (reason != 0 && reason != EEXIST) /* a file system without hard links */
        return replacement_commit(replacement, error);
    replacement_discard(replacement); /* of two names the temporary one */
    return *taken || error->status != ALLFOLD_OK ? error->status : sync_folder(replacement->path, "complete", error);
}

void replacement_discard(struct replacement *replacement)
{
    if (!replacement->kept)
        unlink(replacement->temporary);
    release(replacement);
}
