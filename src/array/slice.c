/* Slices of arrays: what --slice means, and a source of a box around the source of the whole array, which reads no more
   than the box's runs, and gaps that are shorter than what a system reads at once. The chunks of an array in chunks are
   chosen, and cut, by its own source. */
#include "array/slice.h"

#include "array/formats/joined.h"
#include "array/formats/parts.h"
#include "base/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WORD_BYTES = 512,         /* of "time=0:120" */
    WINDOW_BYTES = 256 << 10, /* of what is read at once to be copied */
    GAP_BYTES = 16 << 10      /* between two runs: shorter ones are read with them */
};

/* ---- what is asked for */

/* An index, counted from the end if it is negative. False: it is none. *index may lie beyond the extent, and is
   UINT64_MAX before 0. */
static bool parse_index(const char *word, uint64_t extent, uint64_t *index)
{
    const bool negative = word[0] == '-';
    if (!parse_count(word + negative, index))
        return false;
    if (negative && *index > 0)
        *index = *index <= extent ? extent - *index : UINT64_MAX;
    return true;
}

/* One end of a range: of none, if there is nothing, the array's. Ends beyond the array are moved to it. */
static bool parse_end(const char *word, uint64_t extent, uint64_t absent, uint64_t *end)
{
    *end = absent;
    if (word[0] != '\0' && !parse_index(word, extent, end))
        return false;
    *end = *end == UINT64_MAX && word[0] == '-' ? 0 : u64_min(*end, extent);
    return true;
}

/* "A:B", ":B", "A:", ":" or "A". */
static bool parse_range(char *word, uint64_t extent, struct range *range)
{
    char *const colon = strchr(word, ':');
    uint64_t end;
    if (colon == NULL) {
        range->count = 1;
        return parse_index(word, extent, &range->first) && range->first < extent;
    }
    *colon = '\0';
    const bool right = parse_end(word, extent, 0, &range->first) && parse_end(colon + 1, extent, extent, &end);
    *colon = ':';
    range->count = right && end > range->first ? end - range->first : 0;
    return right;
}

static allfold_status refuse_range(const struct array_info *info, long dimension, const char *word, struct error *error)
{
    const char *const range = strchr(word, '=') + 1, *const colon = strchr(range, ':');
    uint64_t index;
    if (colon != NULL && strchr(colon + 1, ':') != NULL)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "--slice: expected FIRST:END, found '%.100s': steps are not supported", word);
    if (colon == NULL && parse_index(range, 0, &index))
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: --slice: expected an index within the dimension's extent of %" PRIu64 ", found '%.100s'",
                         file_shown(info->path), info->shape[dimension], word);
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "--slice: expected indices, FIRST:END, found '%.100s'", word);
}

static allfold_status refuse_dimension(const struct array_info *info, const char *word, struct error *error)
{
    char shape[128], names[200];
    array_shape_text(info->whole, info->dimensions, shape, sizeof shape);
    array_names_text(info, names, sizeof names);
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "%s: --slice: expected a dimension of its shape %s, by number%s%s%s, found '%.100s'",
                     file_shown(info->path), shape, names[0] != '\0' ? " or by name (" : "", names, names[0] != '\0' ? ")" : "", word);
}

/* Takes one "DIMENSION=RANGE" of the text. */
static allfold_status take_word(char *word, struct array_info *info, bool given[ARRAY_DIMENSIONS_MAX], struct error *error)
{
    const long dimensions = (long)info->dimensions;
    char *const equals = strchr(word, '=');
    struct range range = {0};
    long dimension;
    if (equals == NULL)
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "--slice: expected DIMENSION=FIRST:END, or several with commas between them, found '%.100s'", word);
    if (!array_find_dimension(info, word, (size_t)(equals - word), &dimension) || dimension < -dimensions || dimension >= dimensions)
        return refuse_dimension(info, word, error);
    dimension += dimension < 0 ? dimensions : 0;
    if (given[dimension])
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "--slice: expected each dimension once, found another '%.100s'", word);
    if (!parse_range(equals + 1, info->shape[dimension], &range))
        return refuse_range(info, dimension, word, error);
    given[dimension] = true;
    info->first[dimension] += range.first;
    info->shape[dimension] = range.count;
    return ALLFOLD_OK;
}

/* Of chunks, those that have elements of the slice are left. */
static void count_elements(struct array_info *info)
{
    struct chunk_grid grid;
    array_count(info->shape, info->dimensions, allfold_type_bytes(info->type), &info->count); /* not more than there were */
    if (array_is_chunked(info) && parts_of(info) != NULL)
        joined_count(info); /* as many or less */
    else if (array_is_chunked(info))
        info->positions = info->granule * chunk_grid_make(&grid, info->dimensions, info->shape, info->first, info->chunk);
}

allfold_status slice_take(const char *text, struct array_info *info, struct error *error)
{
    bool given[ARRAY_DIMENSIONS_MAX] = {false};
    if (info->sliced == 0)
        memcpy(info->whole, info->shape, sizeof info->whole);
    info->sliced = 1;
    for (const char *next = text; *next != '\0' || next == text;) {
        char word[WORD_BYTES];
        const size_t length = strcspn(next, ",");
        if (length >= sizeof word)
            return error_set(error, ALLFOLD_BAD_ARGUMENT, "--slice: expected at most %d characters between commas, found '%.100s...'", WORD_BYTES - 1, next);
        snprintf(word, sizeof word, "%.*s", (int)length, next);
        if (take_word(word, info, given, error) != ALLFOLD_OK)
            return error->status;
        next += length;
        if (*next == ',' && *++next == '\0')
            return error_set(error, ALLFOLD_BAD_ARGUMENT, "--slice: expected DIMENSION=FIRST:END behind the last comma, found '%.100s'", text);
    }
    count_elements(info);
    return ALLFOLD_OK;
}

void slice_whole(const struct array_info *info, struct array_info *whole)
{
    memcpy(whole, info, sizeof *whole);
    whole->sliced = 0;
    memcpy(whole->shape, info->whole, sizeof whole->shape);
    memset(whole->first, 0, sizeof whole->first);
    array_count(whole->shape, whole->dimensions, allfold_type_bytes(whole->type), &whole->count);
}

/* ---- its source */

/* A box is a number of runs of elements that follow one another in the whole array. Levels say where they lie, from the run's
   neighbours on. */
struct run_level {
    uint64_t extent, stride; /* in runs, and in elements of the whole array */
};

struct slice_source {
    struct source source;
    uint64_t run, first; /* elements of a run; where the first run begins */
    uint32_t level_count;
    struct run_level levels[ARRAY_DIMENSIONS_MAX];
};

struct slice_reader {
    struct reader reader;
    void *window; /* NULL: not yet needed */
};

/* Where a run begins in the whole array. */
static uint64_t run_at(const struct slice_source *s, uint64_t run)
{
    uint64_t at = s->first;
    for (uint32_t i = 0; i < s->level_count; i++) {
        at += run % s->levels[i].extent * s->levels[i].stride;
        run /= s->levels[i].extent;
    }
    return at;
}

/* What is read at once of `count` elements of the slice, from element i on: part of a run, or the ends of some that are
   close to each other. *taken: how many of the elements that are. */
static struct range next_read(const struct slice_source *s, uint64_t i, uint64_t count, uint64_t *taken)
{
    const uint64_t bytes = allfold_type_bytes(s->source.type), window = WINDOW_BYTES / bytes, run = i / s->run, within = i % s->run;
    const struct run_level *const near = s->levels;
    const uint64_t behind = near->extent - 1 - run % near->extent; /* runs that have the same distance */
    struct range range = {run_at(s, run) + within, u64_min(u64_min(s->run - within, count), window)};
    *taken = range.count;
    for (uint64_t k = 0; k < behind && *taken < count && (near->stride - s->run) * bytes <= GAP_BYTES; k++) {
        const uint64_t next = u64_min(s->run, count - *taken), end = near->stride * (k + 1) - within + next;
        if (end > window)
            break;
        range.count = end;
        *taken += next;
    }
    return range;
}

/* Copies `taken` elements of runs, of which the first is number `within` of its run. */
static void copy_runs(const struct slice_source *s, uint64_t within, uint64_t taken, const char *from, char *to)
{
    const uint64_t bytes = allfold_type_bytes(s->source.type);
    while (taken > 0) {
        const uint64_t count = u64_min(s->run - within, taken);
        memcpy(to, from, count * bytes);
        from += (s->levels->stride - within) * bytes;
        to += count * bytes;
        taken -= count;
        within = 0;
    }
}

static allfold_status gather(struct slice_reader *r, const struct read_request *request, struct error *error)
{
    const struct slice_source *const s = (const struct slice_source *)r->reader.source;
    const uint64_t bytes = allfold_type_bytes(s->source.type), count = request->range.count;
    if (r->window == NULL && (r->window = aligned_alloc(4096, reader_room(WINDOW_BYTES / bytes, bytes) / 4096 * 4096 + 4096)) == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory to read a slice");
    for (uint64_t done = 0, taken; done < count; done += taken) {
        const uint64_t i = request->range.first + done;
        const struct read_request part = {next_read(s, i, count - done, &taken), 0, r->window, false};
        struct piece piece;
        if (reader_read(r->reader.inner, &part, &piece, error) != ALLFOLD_OK)
            break;
        copy_runs(s, i % s->run, taken, piece.elements, (char *)request->buffer + done * bytes);
    }
    return error->status;
}

static allfold_status read_slice(struct reader *reader, const struct read_request *request, struct piece *piece, struct error *error)
{
    const struct slice_source *const s = (const struct slice_source *)reader->source;
    const uint64_t within = request->range.first % s->run, count = request->range.count;
    if (within + count <= s->run) {
        const struct range range = {run_at(s, request->range.first / s->run) + within, count};
        const struct read_request of_run = {range, u64_min(request->ahead, s->run - within - count), request->buffer, false};
        return reader_read(reader->inner, &of_run, piece, error);
    }
    *piece = (struct piece){.elements = request->buffer, .count = count};
    return gather((struct slice_reader *)reader, request, error);
}

static void close_reader(struct reader *reader) { free(((struct slice_reader *)reader)->window); }

/* Finds the runs, from the dimension on that varies fastest. */
static void find_runs(struct slice_source *s, const struct array_info *info)
{
    uint64_t stride = 1;
    bool whole = true; /* the dimensions so far */
    s->run = 1;
    for (uint32_t i = 0; i < info->dimensions; i++) {
        const uint32_t dimension = info->fortran_order ? i : info->dimensions - 1 - i;
        const uint64_t extent = info->shape[dimension];
        struct run_level *const before = &s->levels[s->level_count - (s->level_count > 0)];
        s->first += info->first[dimension] * stride;
        if (whole)
            s->run *= extent;
        else if (s->level_count > 0 && before->extent * before->stride == stride)
            before->extent *= extent;
        else if (extent > 1)
            s->levels[s->level_count++] = (struct run_level){extent, stride};
        whole = whole && extent == info->whole[dimension];
        stride *= info->whole[dimension];
    }
}

allfold_status slice_open(const struct array_info *info, struct source **source, struct error *error)
{
    struct slice_source *const s = source_around(source, sizeof *s, file_shown(info->path), error);
    if (s == NULL)
        return error->status;
    s->source.read = read_slice;
    s->source.reader_bytes = sizeof(struct slice_reader);
    s->source.close_reader = close_reader;
    find_runs(s, info);
    return ALLFOLD_OK;
}
