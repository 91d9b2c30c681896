/* The table of formats, and what an array's name means. */
#include "array/formats/formats.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The first that recognises the input takes it. */
static const struct format *const formats[] = {&format_generated, &format_npy, &format_raw};
enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

const char *array_format_name(const struct array_info *info) { return formats[info->format]->name; }

/* Opens the file that the input's name means, if it means one. */
static allfold_status open_input(struct input_file *file, struct array_info *info, struct error *error)
{
    struct stat status;
    if (format_generated.recognises(file))
        return ALLFOLD_OK;
    file->fd = file_open(file->name, &file->bytes, error);
    if (file->fd < 0)
        return error->status;
    if (fstat(file->fd, &status) != 0)
        return error_errno(error, ALLFOLD_IO_ERROR, errno, "%s: cannot tell the file's time", file_shown(file->name));
    info->file_time = (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
    info->file_bytes = file->bytes;
    file->head_bytes = (size_t)u64_min(file->bytes, sizeof file->head);
    return file_read(&(struct file_range){file->fd, file->name, 0, file->head_bytes}, file->head, 1, error);
}

allfold_status array_describe(const char *name, const struct array_hints *hints, struct array_info *info,
                              struct error *error)
{
    static const struct array_hints none;
    struct array_info described;
    struct input_file file = {.name = name, .fd = -1};
    memset(&described, 0, sizeof described); /* the padding too: descriptions are compared as bytes */
    const size_t length = strlen(name);
    if (length == 0)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "expected the name of an array, found an empty one");
    if (length >= sizeof described.path)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a name of less than %zu bytes, found %zu",
                         file_shown(name), sizeof described.path, length);
    memcpy(described.path, name, length);
    if (open_input(&file, &described, error) == ALLFOLD_OK) {
        while (!formats[described.format]->recognises(&file)) /* the last takes any */
            described.format++;
        formats[described.format]->describe(&file, hints != NULL ? hints : &none, &described, error);
    }
    if (file.fd >= 0)
        close(file.fd);
    if (error->status == ALLFOLD_OK)
        memcpy(info, &described, sizeof described);
    return error->status;
}

allfold_status source_open(const struct array_info *info, struct source **source, struct error *error)
{
    return formats[info->format]->open(info, source, error);
}
