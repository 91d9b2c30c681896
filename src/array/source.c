/* What an array's name means, and reading its elements: .npy and raw files, generators. */
#include "array/array.h"
#include "array/file.h"
#include "array/npy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GENERATOR_PREFIX "gen:"

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), ending = strlen(end);
    return length >= ending && strcmp(text + length - ending, end) == 0;
}

/* What the user says of an .npy file: its own element type again, and which of its elements, in the order in which they lie
   there. Part of an array is a row. */
static allfold_status cut_npy(const char *name, const struct array_hints *hints, struct array_info *info, struct error *error)
{
    const uint64_t offset = hints->has_offset ? hints->offset : 0;
    if (hints->type != ALLFOLD_TYPE_NONE && hints->type != info->type)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s is an .npy file of %s elements: expected no --dtype, or that one, found %s",
                         file_shown(name), allfold_type_name(info->type), allfold_type_name(hints->type));
    if (offset > info->count || (hints->has_count && hints->count > info->count - offset))
        return error_set(error, ALLFOLD_BAD_INPUT, "%s: .npy file: expected --offset and --count within its %" PRIu64
                         " elements, found %" PRIu64 " elements from %" PRIu64, file_shown(name), info->count,
                         hints->has_count ? hints->count : 0, offset);
    if (!hints->has_offset && !hints->has_count)
        return ALLFOLD_OK;
    info->data_offset += offset * allfold_type_bytes(info->type);
    info->count = hints->has_count ? hints->count : info->count - offset;
    memset(info->shape, 0, sizeof info->shape);
    info->shape[0] = info->count;
    info->dimensions = 1;
    info->fortran_order = 0;
    return ALLFOLD_OK;
}

static allfold_status describe_raw(const char *name, uint64_t file_bytes, const struct array_hints *hints,
                                   struct array_info *info, struct error *error)
{
    const char *shown = file_shown(name);
    if (hints->type == ALLFOLD_TYPE_NONE)
        return error_set(error, ALLFOLD_BAD_ARGUMENT,
                         "%s: expected an .npy file, or --dtype TYPE to read it as raw elements; found no .npy magic "
                         "and no --dtype", shown);
    const uint64_t bytes = allfold_type_bytes(hints->type);
    const uint64_t offset = hints->has_offset ? hints->offset : 0;
    if (offset > file_bytes)
        return error_set(error, ALLFOLD_BAD_INPUT,
                         "%s: raw file: expected --offset %" PRIu64 " to lie inside it, found %" PRIu64 " bytes",
                         shown, offset, file_bytes);
    const uint64_t rest = file_bytes - offset;
    if (hints->has_count && hints->count > rest / bytes)
        return error_set(error, ALLFOLD_BAD_INPUT,
                         "%s: raw file: expected %" PRIu64 " %s elements from byte %" PRIu64 ", found %" PRIu64
                         " (%" PRIu64 " bytes)",
                         shown, hints->count, allfold_type_name(hints->type), offset, rest / bytes, rest);
    if (!hints->has_count && rest % bytes != 0)
        return error_set(error, ALLFOLD_BAD_INPUT,
                         "%s: raw file: expected whole %s elements of %" PRIu64 " bytes from byte %" PRIu64
                         ", found %" PRIu64 " bytes: %" PRIu64 " too many (or give --count)",
                         shown, allfold_type_name(hints->type), bytes, offset, rest, rest % bytes);
    info->format = ARRAY_RAW;
    info->type = hints->type;
    info->count = hints->has_count ? hints->count : rest / bytes;
    info->dimensions = 1;
    info->shape[0] = info->count;
    info->data_offset = offset;
    return ALLFOLD_OK;
}

static allfold_status describe_file(const char *name, int fd, uint64_t file_bytes, const struct array_hints *hints,
                                    struct array_info *info, struct error *error)
{
    char magic[NPY_MAGIC_BYTES] = "";
    const uint64_t have = u64_min(file_bytes, sizeof magic);
    info->file_bytes = file_bytes;
    if (file_read(&(struct file_range){fd, name, 0, have}, magic, 1, error) != ALLFOLD_OK)
        return error->status;
    if (have == sizeof magic && memcmp(magic, NPY_MAGIC, sizeof magic) == 0) {
        info->format = ARRAY_NPY;
        if (npy_describe(name, fd, file_bytes, info, error) != ALLFOLD_OK)
            return error->status;
        return cut_npy(name, hints, info, error);
    }
    /* a damaged .npy file must not pass for raw elements, whatever the user says of its type */
    if (ends_with(name, ".npy"))
        return error_set(error, ALLFOLD_BAD_INPUT,
                         "%s: expected the .npy magic (byte 0x93 and NUMPY), found %s (a raw file needs another name)",
                         file_shown(name), have == 0 ? "an empty file" : "other bytes");
    return describe_raw(name, file_bytes, hints, info, error);
}

allfold_status array_describe(const char *name, const struct array_hints *hints, struct array_info *info,
                              struct error *error)
{
    static const struct array_hints none;
    struct array_info described;
    memset(&described, 0, sizeof described); /* the padding too: descriptions are compared as bytes */
    if (hints == NULL)
        hints = &none;
    const size_t length = strlen(name);
    if (length == 0)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "expected the name of an array, found an empty one");
    if (length >= sizeof described.path)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: expected a name of less than %zu bytes, found %zu",
                         file_shown(name), sizeof described.path, length);
    memcpy(described.path, name, length);
    if (strncmp(name, GENERATOR_PREFIX, strlen(GENERATOR_PREFIX)) == 0) {
        described.format = ARRAY_GENERATED;
        generator_parse(name + strlen(GENERATOR_PREFIX), hints, &described, error);
    } else {
        uint64_t file_bytes;
        const int fd = file_open(name, &file_bytes, error);
        if (fd < 0)
            return error->status;
        struct stat status;
        if (fstat(fd, &status) == 0)
            described.file_time = (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
        describe_file(name, fd, file_bytes, hints, &described, error);
        close(fd);
    }
    if (error->status == ALLFOLD_OK)
        memcpy(info, &described, sizeof described);
    return error->status;
}

/* A source of either kind; fd is -1 for generated arrays. */
struct array_source {
    struct source source;
    struct array_info info;
    int fd;
};

static allfold_status check_range(const struct array_info *info, uint64_t first, uint64_t count, struct error *error)
{
    if (first <= info->count && count <= info->count - first)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "%s: expected a range within its %" PRIu64 " elements, found %" PRIu64 " elements from %" PRIu64,
                     file_shown(info->path), info->count, count, first);
}

static allfold_status read_file(struct source *source, uint64_t first, uint64_t count, void *destination, int threads,
                                struct error *error)
{
    const struct array_source *s = (const struct array_source *)source;
    const uint64_t bytes = allfold_type_bytes(s->info.type);
    if (check_range(&s->info, first, count, error) != ALLFOLD_OK)
        return error->status;
    const struct file_range range = {s->fd, s->info.path, s->info.data_offset + first * bytes, count * bytes};
    return file_read(&range, destination, threads, error);
}

static allfold_status read_generated(struct source *source, uint64_t first, uint64_t count, void *destination,
                                     int threads, struct error *error)
{
    const struct array_source *s = (const struct array_source *)source;
    if (check_range(&s->info, first, count, error) != ALLFOLD_OK)
        return error->status;
    generator_fill(&s->info.generator, s->info.type, first, count, destination, threads);
    return ALLFOLD_OK;
}

static void close_source(struct source *source)
{
    struct array_source *s = (struct array_source *)source;
    if (s->fd >= 0)
        close(s->fd);
    free(s);
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

allfold_status source_open(const struct array_info *info, struct source **source, struct error *error)
{
    const bool generated = info->format == ARRAY_GENERATED;
    struct array_source *s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(info->path));
    s->source.read = generated ? read_generated : read_file;
    s->source.close = close_source;
    s->source.type = info->type;
    memcpy(&s->info, info, sizeof *info);
    s->fd = generated ? -1 : open_checked(info, error);
    if (!generated && s->fd < 0) {
        free(s);
        return error->status;
    }
    *source = &s->source;
    return ALLFOLD_OK;
}
