/* Files as formats see them: opened, with their first bytes; and whether they have changed since. */
#include "array/formats/formats.h"

#include "array/formats/parts.h"

#include <errno.h>
#include <unistd.h>

/* When it was last modified, in ns. */
static uint64_t time_of(const struct stat *status)
{
    return (uint64_t)status->st_mtim.tv_sec * 1000000000u + (uint64_t)status->st_mtim.tv_nsec;
}

allfold_status input_open(struct input_file *file, struct error *error)
{
    struct stat status;
    file->fd = file_open(file->name, &file->bytes, error);
    if (file->fd < 0)
        return error->status;
    if (fstat(file->fd, &status) != 0)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot tell the file's time", file_shown(file->name));
    file->time = time_of(&status);
    file->head_bytes = (size_t)u64_min(file->bytes, sizeof file->head);
    return file_read(&(struct file_range){file->fd, file->name, 0, file->head_bytes}, file->head, error);
}

void input_close(struct input_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
}

allfold_status input_read(const struct input_file *file, struct range bytes, void *to, struct error *error)
{
    return file_read(&(struct file_range){file->fd, NULL, bytes.first, bytes.count}, to, error);
}

static allfold_status check_time(const char *path, uint64_t time, struct error *error)
{
    struct stat status;
    if (stat(path, &status) == 0 && time_of(&status) == time)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_INPUT, "%s: the file has changed since its header was read: expected the same time of its last "
                     "modification, found another", file_shown(path));
}

allfold_status array_check_times(const struct array_info *info, struct error *error)
{
    const struct parts_table *const table = parts_of(info);
    for (uint64_t i = 0; info->file_time != 0 && i < array_files(info) && error->status == ALLFOLD_OK; i++)
        check_time(array_file(info, i), table != NULL ? table->parts[i].file_time : info->file_time, error);
    return error->status;
}
