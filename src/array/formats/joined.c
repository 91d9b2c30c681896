/* Arrays in chunks that lie in several files, joined along the first dimension: a source around the files' own, which are
   opened when a reader comes to them. The files' chunks may differ in size. */
#include "array/formats/joined.h"

#include "array/formats/parts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPEN_MOST = 128 }; /* files, besides those that readers are in */

/* One of the files, of which some rows are wanted. */
struct joined_file {
    uint64_t part;         /* its number among the parts */
    struct source *source; /* NULL: not open */
    int readers;
};

struct joined_source {
    struct source source;
    struct array_info info;
    open_array *open;
    struct stat *opened; /* what each part was at first */
    struct chunking chunking;
    struct chunk_grid *grids;  /* of the files that have any of the rows, */
    struct joined_file *files; /* and these */
    uint64_t open_count;
    pthread_mutex_t opening;
    char note[240];
};

struct joined_reader {
    struct reader reader;
    struct reader *of_file; /* NULL: it is in none */
    uint64_t file;          /* which is it */
};

/* ---- grids */

/* What is wanted of a part. */
struct part_rows {
    struct range rows; /* the indices of its rows along the first dimension of the array */
    uint64_t all;      /* of its rows, wanted or not */
    uint64_t shape[ARRAY_DIMENSIONS_MAX], first[ARRAY_DIMENSIONS_MAX]; /* the slice of its own array that they are */
};

/* False: nothing. */
static bool find_rows(const struct array_info *info, const struct array_part_place *part, struct part_rows *found)
{
    uint64_t row = 1;
    for (uint32_t i = 1; i < info->dimensions; i++)
        row *= array_whole(info)[i];
    row = u64_max(row, 1);
    const uint64_t start = part->range.first / row, low = u64_max(start, info->first[0]);
    found->all = part->range.count / row;
    const uint64_t high = u64_min(start + found->all, info->first[0] + info->shape[0]);
    found->rows = (struct range){low - info->first[0], high - low};
    memcpy(found->shape, info->shape, sizeof info->shape);
    memcpy(found->first, info->first, sizeof info->first);
    found->shape[0] = high - low;
    found->first[0] = low - start;
    return low < high;
}

/* Makes the grid of a part, behind `before` chunks, and counts its chunks. False: it has none of the rows. */
static bool make_grid(const struct array_info *info, const struct array_part_place *part, uint64_t before, struct chunk_grid *grid, uint64_t *chunks)
{
    struct part_rows found;
    if (!find_rows(info, part, &found))
        return false;
    *chunks = chunk_grid_make(grid, info->dimensions, found.shape, found.first, part->chunk);
    grid->rows = found.rows;
    grid->before = before;
    return true;
}

bool joined_count(struct array_info *info)
{
    const struct parts_table *const table = parts_of(info);
    struct chunk_grid grid;
    uint64_t all = 0, chunks;
    for (uint64_t part = 0; part < table->count; part++)
        if (make_grid(info, &table->parts[part], 0, &grid, &chunks) && __builtin_add_overflow(all, chunks, &all))
            return false;
    return !__builtin_mul_overflow(all, info->granule, &info->positions) && info->positions <= UINT64_MAX / 8;
}

static void make_grids(struct joined_source *s)
{
    const struct array_info *const info = &s->info;
    const struct parts_table *const table = parts_of(info);
    uint64_t before = 0, chunks;
    s->chunking = (struct chunking){.dimensions = info->dimensions, .granule = info->granule, .grids = s->grids};
    memcpy(s->chunking.shape, info->shape, sizeof s->chunking.shape);
    for (uint64_t part = 0; part < table->count; part++) {
        uint64_t *const count = &s->chunking.grid_count;
        if (!make_grid(info, &table->parts[part], before, &s->grids[*count], &chunks))
            continue;
        s->files[(*count)++].part = part;
        before += chunks;
    }
}

/* ---- files */

/* The array of one file, as a slice of what is there. */
static void describe_file(const struct joined_source *s, uint64_t file, struct array_info *info)
{
    const struct parts_table *const table = parts_of(&s->info);
    const struct array_part_place *const part = &table->parts[s->files[file].part];
    struct part_rows found;
    find_rows(&s->info, part, &found);
    memcpy(info, &s->info, sizeof *info);
    info->sliced = 1;
    memcpy(info->whole, array_whole(&s->info), sizeof info->whole);
    info->whole[0] = found.all;
    memcpy(info->shape, found.shape, sizeof info->shape);
    memcpy(info->first, found.first, sizeof info->first);
    array_count(info->shape, info->dimensions, allfold_type_bytes(info->type), &info->count);
    info->details = NULL;
    info->details_bytes = 0;
    info->file_bytes = part->file_bytes;
    info->layout = part->layout;
    info->granule = part->granule;
    memcpy(info->chunk, part->chunk, sizeof info->chunk);
    snprintf(info->path, sizeof info->path, "%s", parts_file(table, part));
    snprintf(info->member, sizeof info->member, "%s", parts_member(table, part));
}

/* Closes a file that no reader is in, if many are open. */
static void close_one(struct joined_source *s)
{
    for (uint64_t i = 0; i < s->chunking.grid_count && s->open_count >= OPEN_MOST; i++)
        if (s->files[i].source != NULL && s->files[i].readers == 0) {
            source_close(s->files[i].source);
            s->files[i].source = NULL;
            s->open_count--;
        }
}

/* Opens a file, if it is not open. Under the lock. */
static allfold_status open_file(struct joined_source *s, struct joined_file *file, struct error *error)
{
    struct array_info info;
    if (file->source != NULL)
        return ALLFOLD_OK;
    close_one(s);
    describe_file(s, (uint64_t)(file - s->files), &info);
    if (s->open(&info, &file->source, error) == ALLFOLD_OK)
        s->open_count++;
    return error->status;
}

static void leave_file(struct joined_reader *r)
{
    struct joined_source *const s = (struct joined_source *)r->reader.source;
    if (r->of_file == NULL)
        return;
    reader_close(r->of_file);
    r->of_file = NULL;
    pthread_mutex_lock(&s->opening);
    s->files[r->file].readers--;
    pthread_mutex_unlock(&s->opening);
}

static allfold_status enter_file(struct joined_reader *r, uint64_t number, struct error *error)
{
    struct joined_source *const s = (struct joined_source *)r->reader.source;
    struct joined_file *const file = &s->files[number];
    if (r->of_file != NULL && r->file == number)
        return ALLFOLD_OK;
    leave_file(r);
    pthread_mutex_lock(&s->opening);
    if (open_file(s, file, error) == ALLFOLD_OK && source_open_reader(file->source, &r->of_file, error) == ALLFOLD_OK) {
        file->readers++;
        r->file = number;
    }
    pthread_mutex_unlock(&s->opening);
    return error->status;
}

/* ---- the source */

/* What can be read at once of `chunks` chunks from a number on: those of one file, or one if they have fewer elements
   than others'. */
static uint64_t chunks_together(const struct joined_source *s, uint64_t number, uint64_t chunks, uint64_t file, uint64_t granule)
{
    const uint64_t end = file + 1 < s->chunking.grid_count ? s->grids[file + 1].before : UINT64_MAX;
    return granule < s->info.granule ? 1 : u64_min(chunks, end - number);
}

static allfold_status read_joined(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    struct joined_reader *const r = (struct joined_reader *)reader;
    struct joined_source *const s = (struct joined_source *)r->reader.source;
    const uint64_t bytes = allfold_type_bytes(s->info.type), end = (request->range.first + request->range.count) / s->info.granule;
    char *const buffer = request->buffer;
    uint64_t count = 0;
    for (uint64_t number = request->range.first / s->info.granule, chunks; number < end; number += chunks) {
        const uint64_t file = chunking_box(&s->chunking, number).grid, granule = parts_of(&s->info)->parts[s->files[file].part].granule;
        chunks = chunks_together(s, number, end - number, file, granule);
        const struct range range = {(number - s->grids[file].before) * granule, chunks * granule};
        const struct read_request of_file = {range, 0, buffer + (count * bytes + 4095) / 4096 * 4096, false};
        if (enter_file(r, file, error) != ALLFOLD_OK || reader_read(r->of_file, &of_file, piece, error) != ALLFOLD_OK)
            return error->status;
        if (count > 0 || number + chunks < end) {
            memmove(buffer + count * bytes, piece->elements, piece->count * bytes);
            piece->elements = buffer;
        }
        count += piece->count;
    }
    piece->count = count;
    return ALLFOLD_OK;
}

static void close_reader(struct reader *reader) { leave_file((struct joined_reader *)reader); }

static allfold_status check_joined(struct source *source, struct error *error)
{
    struct joined_source *const s = (struct joined_source *)source;
    return parts_check(parts_of(&s->info), s->opened, error);
}

static void close_joined(struct source *source)
{
    struct joined_source *const s = (struct joined_source *)source;
    for (uint64_t i = 0; i < s->chunking.grid_count; i++)
        source_close(s->files[i].source);
    pthread_mutex_destroy(&s->opening);
    free(s->opened);
    free(s->grids);
    free(s->files);
}

/* Opens the first file, which may have a note. */
static void open_first(struct joined_source *s, struct error *error)
{
    if (s->chunking.grid_count == 0 || open_file(s, s->files, error) != ALLFOLD_OK || s->files->source->note == NULL)
        return;
    snprintf(s->note, sizeof s->note, "%s", s->files->source->note);
    s->source.note = s->note;
}

allfold_status joined_open(const struct array_info *info, open_array *open, struct source **source, struct error *error)
{
    const struct parts_table *const table = parts_of(info);
    struct joined_source *const s = calloc(1, sizeof *s);
    if (s == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open it", file_shown(info->path));
    s->source = (struct source){.read = read_joined, .reader_bytes = sizeof(struct joined_reader), .close_reader = close_reader, .check = check_joined,
                                .close = close_joined, .type = info->type, .chunking = &s->chunking};
    memcpy(&s->info, info, sizeof *info);
    s->open = open;
    pthread_mutex_init(&s->opening, NULL);
    s->grids = calloc(table->count, sizeof *s->grids);
    s->files = calloc(table->count, sizeof *s->files);
    if (s->grids == NULL || s->files == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "%s: no memory to open its files", file_shown(info->path));
    else if ((s->opened = parts_look(table, error)) != NULL) {
        make_grids(s);
        open_first(s, error);
    }
    if (error->status == ALLFOLD_OK)
        *source = &s->source;
    else
        source_close(&s->source);
    return error->status;
}
