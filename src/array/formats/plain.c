/* Elements that lie in files as they are: one behind the other or in runs, in either byte order, in one file or in several. */
#include "array/formats/formats.h"

#include "array/data_file.h"
#include "array/formats/parts.h"
#include "array/formats/swap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_BYTES ((uint64_t)256 << 10) /* what is read at once of runs that are shorter than half of it */

struct plain_source {
    struct source source;
    struct array_info info;
    struct array_part_place only; /* of an array in one file */
    const struct array_part_place *parts;
    uint64_t part_count;
    struct data_file file; /* that one, for all readers */
    struct stat *opened;   /* of each part of several: what the file was at first */
};

/* One of several files is opened by each reader when it comes to it. */
struct plain_reader {
    struct reader reader;
    struct data_reader data; /* of the file that was entered */
    struct data_file file;
    uint64_t part;  /* which is open */
    bool has_file;  /* `file` is open */
    void *window;   /* WINDOW_BYTES + READER_SLACK; NULL: not yet needed */
};

allfold_status array_check_range(const struct array_info *info, uint64_t first, uint64_t count, struct error *error)
{
    if (first <= info->count && count <= info->count - first)
        return ALLFOLD_OK;
    return error_set(error, ALLFOLD_BAD_ARGUMENT,
                     "%s: expected a range within its %" PRIu64 " elements, found %" PRIu64 " elements from %" PRIu64,
                     file_shown(info->path), info->count, count, first);
}

/* Bytes of an element in the file. */
static size_t element_bytes(const struct plain_source *source)
{
    return allfold_type_bytes(array_stored_type(&source->info));
}

static const char *part_name(const struct plain_source *source, uint64_t part)
{
    return source->parts == &source->only ? source->info.path : parts_file(parts_of(&source->info), &source->parts[part]);
}

static struct plain_source *source_of(const struct plain_reader *r) { return (struct plain_source *)r->reader.source; }

static void leave_part(struct plain_reader *r)
{
    data_reader_close(&r->data);
    if (r->has_file)
        data_file_close(&r->file);
    r->has_file = false;
}

static allfold_status enter_part(struct plain_reader *r, uint64_t part, struct error *error)
{
    struct plain_source *const s = source_of(r);
    if (s->part_count == 1)
        r->data.file = &s->file;
    if (s->part_count == 1 || (r->has_file && r->part == part))
        return ALLFOLD_OK;
    leave_part(r);
    if (parts_open(parts_of(&s->info), part, s->opened, &r->file, error) != ALLFOLD_OK)
        return error->status;
    r->data = (struct data_reader){.file = &r->file};
    r->has_file = true;
    r->part = part;
    return ALLFOLD_OK;
}

/* The part that holds element i, which there is. */
static uint64_t find_part(const struct plain_source *source, uint64_t i)
{
    uint64_t low = 0, high = source->part_count; /* it is in [low, high) */
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        if (source->parts[middle].range.first <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Elements of one part, by their place in it. */
struct stretch {
    const struct array_layout *layout;
    struct range range;
    uint64_t part_count; /* elements of the part */
    size_t bytes;        /* of an element */
};

/* Reads bytes of the part that has been entered into memory that need not be aligned. */
static allfold_status read_bytes(struct plain_reader *r, uint64_t offset, uint64_t bytes, void *to, struct error *error)
{
    const struct file_range range = {r->data.file->fd, r->data.file->path, offset, bytes};
    return file_read(&range, to, error);
}

/* Runs, or ends of runs, one at a time. */
static allfold_status read_long_runs(struct plain_reader *r, const struct stretch *s, char *to, struct error *error)
{
    const uint64_t end = s->range.first + s->range.count;
    for (uint64_t i = s->range.first; i < end && error->status == ALLFOLD_OK;) {
        const uint64_t run = i / s->layout->run, within = i % s->layout->run, count = u64_min(s->layout->run - within, end - i);
        read_bytes(r, s->layout->offset + run * s->layout->stride + within * s->bytes, count * s->bytes, to, error);
        to += count * s->bytes;
        i += count;
    }
    return error->status;
}

/* As many runs at a time as lie in a window, with what lies between them. */
static allfold_status read_short_runs(struct plain_reader *r, const struct stretch *s, char *to, struct error *error)
{
    const struct array_layout *const layout = s->layout;
    const uint64_t run_bytes = layout->run * s->bytes, most = (WINDOW_BYTES - run_bytes) / layout->stride + 1;
    const uint64_t end = s->range.first + s->range.count;
    if (r->window == NULL && (r->window = aligned_alloc(4096, WINDOW_BYTES + READER_SLACK)) == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to read it", file_shown(source_of(r)->info.path));
    for (uint64_t i = s->range.first; i < end;) {
        const uint64_t run = i / layout->run, runs = u64_min(most, (end - 1) / layout->run + 1 - run);
        const struct data_request request = {layout->offset + run * layout->stride, (runs - 1) * layout->stride + run_bytes, 0, r->window, 1};
        const void *found;
        if (data_read(&r->data, &request, &found, error) != ALLFOLD_OK)
            break;
        for (uint64_t k = 0; k < runs; k++) {
            const uint64_t within = i % layout->run, count = u64_min(layout->run - within, end - i);
            memcpy(to, (const char *)found + k * layout->stride + within * s->bytes, count * s->bytes);
            to += count * s->bytes;
            i += count;
        }
    }
    return error->status;
}

static allfold_status read_stretch(struct plain_reader *r, const struct stretch *s, char *to, struct error *error)
{
    if (s->layout->run == 0)
        return read_bytes(r, s->layout->offset + s->range.first * s->bytes, s->range.count * s->bytes, to, error);
    return s->layout->stride <= WINDOW_BYTES / 2 ? read_short_runs(r, s, to, error) : read_long_runs(r, s, to, error);
}

/* The elements of the range that lie in a part, and how they lie there. */
static struct stretch stretch_of(const struct plain_source *source, uint64_t part, struct range range)
{
    const struct array_part_place *const place = &source->parts[part];
    const uint64_t first = range.first - place->range.first;
    return (struct stretch){&place->layout, {first, u64_min(range.count, place->range.count - first)}, place->range.count,
                            element_bytes(source)};
}

/* Elements that can be read without a copy: those of a stretch that lie in one run. */
static bool is_in_one_run(const struct stretch *s)
{
    return s->layout->run == 0 || s->range.first % s->layout->run + s->range.count <= s->layout->run;
}

/* Reads such a stretch. */
static allfold_status read_in_place(struct plain_reader *r, const struct stretch *s, const struct read_request *request,
                                    const void **found, struct error *error)
{
    const uint64_t run = s->layout->run != 0 ? s->layout->run : s->part_count, within = s->range.first % run;
    const struct data_request bytes = {
        .offset = s->layout->offset + s->range.first / run * s->layout->stride + within * s->bytes,
        .bytes = s->range.count * s->bytes,
        .ahead = u64_min(request->ahead, run - within - s->range.count) * s->bytes,
        .buffer = request->buffer,
        .alignment = s->bytes};
    return data_read(&r->data, &bytes, found, error);
}

/* Puts the elements of all parts of the range into the request's buffer. */
static allfold_status gather(struct plain_reader *r, struct range range, char *to, struct error *error)
{
    for (uint64_t part = find_part(source_of(r), range.first); range.count > 0; part++) {
        const struct stretch s = stretch_of(source_of(r), part, range);
        if (s.range.count > 0 && (enter_part(r, part, error) != ALLFOLD_OK || read_stretch(r, &s, to, error) != ALLFOLD_OK))
            break;
        if (s.layout->swapped)
            swap_bytes(to, to, s.range.count, s.bytes);
        to += s.range.count * s.bytes;
        range.first += s.range.count;
        range.count -= s.range.count;
    }
    return error->status;
}

static allfold_status read_plain(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    struct plain_reader *const r = (struct plain_reader *)reader;
    const struct plain_source *const source = source_of(r);
    if (array_check_range(&source->info, request->range.first, request->range.count, error) != ALLFOLD_OK)
        return error->status;
    const struct range range = {source->info.skipped + request->range.first, request->range.count};
    const uint64_t part = find_part(source, range.first);
    const struct stretch s = stretch_of(source, part, range);
    piece->count = range.count;
    piece->kept = NULL;
    piece->elements = request->buffer;
    if (s.range.count < range.count || !is_in_one_run(&s))
        return gather(r, range, request->buffer, error);
    if (enter_part(r, part, error) != ALLFOLD_OK
        || read_in_place(r, &s, request, &piece->elements, error) != ALLFOLD_OK)
        return error->status;
    if (s.layout->swapped) {
        const char *const from = piece->elements, *const buffer = request->buffer;
        const bool ours = from >= buffer && from < buffer + READER_SLACK; /* else they are the reader's */
        void *const to = ours ? (char *)request->buffer + (from - buffer) : request->buffer;
        swap_bytes(to, from, range.count, s.bytes);
        piece->elements = to;
    }
    return ALLFOLD_OK;
}

static void close_reader(struct reader *reader)
{
    struct plain_reader *const r = (struct plain_reader *)reader;
    leave_part(r);
    free(r->window);
}

static allfold_status check_plain(struct source *source, struct error *error)
{
    struct plain_source *const s = (struct plain_source *)source;
    return s->part_count == 1 ? data_file_check(&s->file, error) : parts_check(parts_of(&s->info), s->opened, error);
}

static void close_plain(struct source *source)
{
    struct plain_source *const s = (struct plain_source *)source;
    if (s->part_count == 1)
        data_file_close(&s->file);
    free(s->opened);
}

static allfold_status open_files(struct plain_source *s, struct error *error)
{
    const struct array_info *const info = &s->info;
    const struct parts_table *const table = parts_of(info);
    s->only = (struct array_part_place){.range = {0, info->skipped + info->count}, .file_bytes = info->file_bytes, .layout = info->layout};
    s->parts = table != NULL ? table->parts : &s->only;
    s->part_count = table != NULL ? table->count : 1;
    if (s->part_count > 1)
        return (s->opened = parts_look(table, error)) != NULL ? ALLFOLD_OK : error->status;
    return data_file_open(part_name(s, 0), s->parts[0].file_bytes, &s->file, error);
}

allfold_status plain_open(const struct array_info *info, struct source **source, struct error *error)
{
    struct plain_source *const s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(info->path));
    s->source = (struct source){.read = read_plain, .reader_bytes = sizeof(struct plain_reader), .close_reader = close_reader, .check = check_plain, .close = close_plain, .type = info->type};
    memcpy(&s->info, info, sizeof *info);
    if (open_files(s, error) != ALLFOLD_OK) {
        free(s->opened);
        free(s);
        return error->status;
    }
    *source = &s->source;
    return ALLFOLD_OK;
}
