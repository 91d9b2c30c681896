/* Reads the bytes of data files: see data_file.h. */
#include "array/data_file.h"

#include "array/array.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    BLOCK_BYTES = 4096,       /* what direct reads, and their memory, are aligned to */
    CACHED_BYTES = 512 << 10, /* of one copy from the system's cache */
    DIRECT_LEAST = 256 << 10, /* less is read in the ordinary way: the system then reads ahead */
    AHEAD_BYTES = 4 << 20     /* of one direct read ahead: enough to keep a disk busy */
};
_Static_assert(READER_SLACK >= 2 * BLOCK_BYTES, "the blocks in which the bytes begin and end need room");

enum { DIRECT_UNTRIED = -2, DIRECT_REFUSED = -1 };

allfold_status data_file_open(const char *path, uint64_t bytes, struct data_file *file, struct error *error)
{
    uint64_t found;
    const int fd = file_open(path, &found, error);
    if (fd < 0)
        return error->status;
    *file = (struct data_file){.fd = fd, .path = path, .direct = DIRECT_UNTRIED};
    if (fstat(fd, &file->opened) != 0)
        error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot tell the file's time", file_shown(path));
    else if (found != bytes)
        error_set(error, ALLFOLD_BAD_INPUT,
                  "%s: expected the file of %" PRIu64 " bytes that was described, found %" PRIu64
                  " bytes: it has changed, or this host sees another file", file_shown(path), bytes, found);
    if (error->status != ALLFOLD_OK)
        close(fd);
    return error->status;
}

allfold_status data_file_check(const struct data_file *file, struct error *error)
{
    const struct stat *const was = &file->opened;
    const char *const shown = file_shown(file->path);
    struct stat is, named;
    if (fstat(file->fd, &is) != 0)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot tell whether the file has changed", shown);
    if (is.st_size != was->st_size)
        return error_set(error, ALLFOLD_IO_ERROR, "%s: the file changed while it was read: expected %" PRIu64 " bytes, found %" PRIu64,
                         shown, (uint64_t)was->st_size, (uint64_t)is.st_size);
    if (is.st_mtim.tv_sec != was->st_mtim.tv_sec || is.st_mtim.tv_nsec != was->st_mtim.tv_nsec)
        return error_set(error, ALLFOLD_IO_ERROR, "%s: the file changed while it was read: it was written to", shown);
    if (stat(file->path, &named) != 0 || named.st_dev != was->st_dev || named.st_ino != was->st_ino)
        return error_set(error, ALLFOLD_IO_ERROR, "%s: the file was removed or replaced while it was read", shown);
    return ALLFOLD_OK;
}

void data_file_close(struct data_file *file)
{
    const int direct = atomic_load(&file->direct);
    close(file->fd);
    if (direct >= 0)
        close(direct);
}

/* Opens the file again, once for all threads. A file system that has no direct reads refuses that; so does a file that has been
   replaced. */
static int direct_descriptor(struct data_file *file)
{
    static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
    if (atomic_load(&file->direct) != DIRECT_UNTRIED)
        return atomic_load(&file->direct);
    pthread_mutex_lock(&opening);
    if (atomic_load(&file->direct) == DIRECT_UNTRIED) {
        struct stat is;
        int fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT);
        if (fd >= 0 && (fstat(fd, &is) != 0 || is.st_dev != file->opened.st_dev || is.st_ino != file->opened.st_ino)) {
            close(fd);
            fd = -1;
        }
        atomic_store(&file->direct, fd >= 0 ? fd : DIRECT_REFUSED);
    }
    pthread_mutex_unlock(&opening);
    return atomic_load(&file->direct);
}

/* Bytes of a file, and where they go. */
struct span {
    uint64_t offset, bytes;
    char *to;
};

static bool is_refusal(int error) { return error == EINVAL || error == EOPNOTSUPP || error == ENOSYS; }

/* Copies what is in the system's cache, up to the first byte that is not. Returns how many bytes. */
static uint64_t read_cached(struct data_file *file, const struct span *span)
{
    uint64_t done = 0;
    while (done < span->bytes && !atomic_load_explicit(&file->cache_hidden, memory_order_relaxed)) {
        const struct iovec to = {span->to + done, (size_t)u64_min(span->bytes - done, CACHED_BYTES)};
        const ssize_t got = preadv2(file->fd, &to, 1, (off_t)(span->offset + done), RWF_NOWAIT);
        if (got < 0 && is_refusal(errno))
            atomic_store_explicit(&file->cache_hidden, true, memory_order_relaxed);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        done += (uint64_t)got;
    }
    return done;
}

/* Reads whole blocks directly, up to the end of the file: whether that gave `least` bytes. If not, an ordinary read finds out why. */
static bool read_blocks(struct data_file *file, const struct span *blocks, uint64_t least)
{
    const int fd = atomic_load(&file->direct_refused) ? DIRECT_REFUSED : direct_descriptor(file);
    uint64_t done = 0;
    while (fd >= 0 && done < least && done % BLOCK_BYTES == 0) {
        const ssize_t got = pread(fd, blocks->to + done, (size_t)(blocks->bytes - done), (off_t)(blocks->offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && is_refusal(errno))
            atomic_store(&file->direct_refused, true);
        if (got <= 0)
            break;
        done += (uint64_t)got;
    }
    return done >= least;
}

/* Reads a span directly. Its place in a block of the file is its place in a block of memory: what lies around it in these blocks is
   read, too. */
static bool read_direct(struct data_file *file, const struct span *span)
{
    const uint64_t before = span->offset % BLOCK_BYTES, least = before + span->bytes;
    const struct span blocks = {span->offset - before, (least + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES, span->to - before};
    return read_blocks(file, &blocks, least);
}

/* Reads the bytes, and those that will be asked for next, into memory of the reader. */
static bool read_ahead(struct data_reader *reader, const struct data_request *request)
{
    if (reader->ahead == NULL && (reader->ahead = aligned_alloc(BLOCK_BYTES, AHEAD_BYTES + READER_SLACK)) == NULL)
        return false;
    const uint64_t bytes = u64_min(request->bytes + request->ahead, AHEAD_BYTES);
    const struct span span = {request->offset, bytes, reader->ahead + request->offset % BLOCK_BYTES};
    const bool done = read_direct(reader->file, &span);
    reader->ahead_first = request->offset;
    reader->ahead_end = request->offset + (done ? bytes : 0);
    return done;
}

static const char *find_ahead(const struct data_reader *reader, const struct data_request *request)
{
    const bool there = request->offset >= reader->ahead_first && request->offset + request->bytes <= reader->ahead_end;
    return there ? reader->ahead + reader->ahead_first % BLOCK_BYTES + (request->offset - reader->ahead_first) : NULL;
}

/* Bytes whose offset does not have the alignment that they need in memory are not read directly. */
allfold_status data_read(struct data_reader *reader, const struct data_request *request, const void **found, struct error *error)
{
    struct data_file *const file = reader->file;
    const bool aligned = request->offset % request->alignment == 0;
    struct span span = {request->offset, request->bytes, (char *)request->buffer + (aligned ? request->offset % BLOCK_BYTES : 0)};
    if (aligned && (*found = find_ahead(reader, request)) != NULL)
        return ALLFOLD_OK;
    *found = span.to;
    const uint64_t cached = read_cached(file, &span);
    span = (struct span){span.offset + cached, span.bytes - cached, span.to + cached};
    if (aligned && span.bytes >= DIRECT_LEAST && !atomic_load_explicit(&file->cache_hidden, memory_order_relaxed)) {
        if (cached == 0 && request->ahead > 0 && request->bytes <= AHEAD_BYTES && read_ahead(reader, request)) {
            *found = find_ahead(reader, request);
            return ALLFOLD_OK;
        }
        if (read_direct(file, &span))
            return ALLFOLD_OK;
    }
    return file_read(&(struct file_range){file->fd, file->path, span.offset, span.bytes}, span.to, error);
}

void data_reader_close(struct data_reader *reader)
{
    free(reader->ahead);
    reader->ahead = NULL;
}
