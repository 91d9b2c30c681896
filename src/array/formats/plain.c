/* Elements that lie in a file as they are, one behind the other. */
#include "array/formats/formats.h"

#include "array/data_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct plain_source {
    struct source source;
    struct array_info info;
    struct data_file file;
};

struct plain_reader {
    struct reader reader;
    const struct plain_source *source;
    struct data_reader data;
};

allfold_status array_check_range(const struct array_info *info, uint64_t first, uint64_t count, struct error *error)
{
    if (first <= info->count && count <= info->count - first)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "%s: expected a range within its %" PRIu64 " elements, found %" PRIu64 " elements from %" PRIu64,
                     file_shown(info->path), info->count, count, first);
}

static allfold_status read_plain(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    struct plain_reader *const r = (struct plain_reader *)reader;
    const struct array_info *const info = &r->source->info;
    const size_t bytes = allfold_type_bytes(info->type);
    const struct range *const range = &request->range;
    const struct data_request bytes_of = {info->layout.offset + range->first * bytes, range->count * bytes, request->ahead * bytes,
                                          request->buffer, bytes};
    if (array_check_range(info, range->first, range->count, error) != ALLFOLD_OK)
        return error->status;
    piece->count = range->count;
    return data_read(&r->data, &bytes_of, &piece->elements, error);
}

static void close_reader(struct reader *reader)
{
    data_reader_close(&((struct plain_reader *)reader)->data);
    free(reader);
}

static allfold_status open_reader(struct source *source, struct reader **reader, struct error *error)
{
    struct plain_source *const s = (struct plain_source *)source;
    struct plain_reader *const r = calloc(1, sizeof *r);
    if (r == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to read it", file_shown(s->info.path));
    *r = (struct plain_reader){{read_plain, close_reader}, s, {.file = &s->file}};
    *reader = &r->reader;
    return ALLFOLD_OK;
}

static allfold_status check_plain(struct source *source, struct error *error)
{
    return data_file_check(&((struct plain_source *)source)->file, error);
}

static void close_plain(struct source *source)
{
    data_file_close(&((struct plain_source *)source)->file);
    free(source);
}

allfold_status plain_open(const struct array_info *info, struct source **source, struct error *error)
{
    struct plain_source *const s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(info->path));
    s->source = (struct source){.open_reader = open_reader, .check = check_plain, .close = close_plain, .type = info->type};
    memcpy(&s->info, info, sizeof *info);
    if (data_file_open(s->info.path, info->file_bytes, &s->file, error) != ALLFOLD_OK) {
        free(s);
        return error->status;
    }
    *source = &s->source;
    return ALLFOLD_OK;
}
