/* Elements that lie in a file as they are, one behind the other. */
#include "array/formats/formats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct plain_source {
    struct source source;
    struct array_info info;
    int fd;
};

allfold_status array_check_range(const struct array_info *info, uint64_t first, uint64_t count, struct error *error)
{
    if (first <= info->count && count <= info->count - first)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "%s: expected a range within its %" PRIu64 " elements, found %" PRIu64 " elements from %" PRIu64,
                     file_shown(info->path), info->count, count, first);
}

static allfold_status read_plain(struct source *source, uint64_t first, uint64_t count, void *destination, int threads,
                                 struct error *error)
{
    const struct plain_source *s = (const struct plain_source *)source;
    const uint64_t bytes = allfold_type_bytes(s->info.type);
    if (array_check_range(&s->info, first, count, error) != ALLFOLD_OK)
        return error->status;
    const struct file_range range = {s->fd, s->info.path, s->info.layout.offset + first * bytes, count * bytes};
    return file_read(&range, destination, threads, error);
}

static void close_plain(struct source *source)
{
    close(((struct plain_source *)source)->fd);
    free(source);
}

static int open_checked(const struct array_info *info, struct error *error)
{
    uint64_t file_bytes;
    const int fd = file_open(info->path, &file_bytes, error);
    if (fd < 0 || file_bytes == info->file_bytes)
        return fd;
    error_set(error, ALLFOLD_BAD_INPUT,
              "%s: expected the file of %" PRIu64 " bytes that was described, found %" PRIu64
              " bytes: it has changed, or this host sees another file",
              file_shown(info->path), info->file_bytes, file_bytes);
    close(fd);
    return -1;
}

allfold_status plain_open(const struct array_info *info, struct source **source, struct error *error)
{
    struct plain_source *s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(info->path));
    s->source = (struct source){.read = read_plain, .close = close_plain, .type = info->type};
    memcpy(&s->info, info, sizeof *info);
    s->fd = open_checked(info, error);
    if (s->fd < 0) {
        free(s);
        return error->status;
    }
    *source = &s->source;
    return ALLFOLD_OK;
}
