/* Reading the bytes of data files: see data_file.h. */
#include "array/data_file.h"

#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

allfold_status data_file_open(const char *path, uint64_t bytes, struct data_file *file, struct error *error)
{
    uint64_t found;
    const int fd = file_open(path, &found, error);
    if (fd < 0)
        return error->status;
    *file = (struct data_file){.fd = fd, .path = path};
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

void data_file_close(struct data_file *file) { close(file->fd); }

allfold_status data_read(struct data_reader *reader, const struct data_request *request, const void **found, struct error *error)
{
    const struct file_range range = {reader->file->fd, reader->file->path, request->offset, request->bytes};
    if (file_read(&range, request->buffer, 1, error) == ALLFOLD_OK)
        *found = request->buffer;
    return error->status;
}

void data_reader_close(struct data_reader *reader) { (void)reader; }
