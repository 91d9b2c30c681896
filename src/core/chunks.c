/* Pieces of an array in chunks, whose source has an order of its own: each chunk that has elements of a piece is read, and these are copied.
   See pieces.h. */
#include "core/pieces.h"

#include <string.h>

uint64_t chunks_grain(const struct source *source, uint32_t first, uint32_t end)
{
    uint64_t grain = 1;
    for (uint32_t i = first; i < end; i++)
        grain = grain > 1 ? grain * source->shape[i] : u64_min(source->chunk[i], source->shape[i]);
    return u64_max(grain, 1);
}

/* The chunks that may have elements of a piece: a range along each dimension. */
struct chunks {
    struct range along[ARRAY_DIMENSIONS_MAX];
    uint64_t grid[ARRAY_DIMENSIONS_MAX]; /* of all */
};

/* Sets the ranges of dimensions [first, end), of which the piece has a run of indices. */
static void set_ranges(const struct source *source, struct chunks *chunks, uint32_t first, uint32_t end, struct range run)
{
    uint64_t lowest = run.first, highest = run.first + run.count - 1, below = 1;
    for (uint32_t i = first; i < end; i++)
        below *= source->shape[i];
    bool differ = false;
    for (uint32_t i = first; i < end; i++) {
        below /= source->shape[i];
        const uint64_t low = differ ? 0 : lowest / below, high = differ ? source->shape[i] - 1 : highest / below;
        differ = differ || low != high;
        lowest %= below;
        highest %= below;
        chunks->along[i] = (struct range){low / source->chunk[i], high / source->chunk[i] - low / source->chunk[i] + 1};
        chunks->grid[i] = (source->shape[i] + source->chunk[i] - 1) / source->chunk[i];
    }
}

/* What is copied: an element, or a byte for each. */
struct copy {
    const char *from; /* of a chunk */
    char *to;         /* of the piece */
    size_t bytes;
};

/* Copies what a run of neighbours, the first of which has that index in the array, has of the piece. */
static void copy_run(const struct pieces *p, const struct part *part, struct range run, const struct copy *copy)
{
    const size_t bytes = copy->bytes;
    const char *from = copy->from;
    char *const to = copy->to;
    const bool planes = part->inner == p->array->inner; /* lines are whole planes */
    const uint64_t width = planes ? p->array->length * p->array->inner : p->array->inner;
    const struct range line = planes ? (struct range){part->l * part->inner, part->length * part->inner}
                                     : (struct range){part->i, part->inner};
    while (run.count > 0) {
        const uint64_t row = run.first / width, at = run.first % width, end = u64_min(at + run.count, width);
        const uint64_t o = planes ? row : row / p->array->length, l = planes ? part->l : row % p->array->length;
        const uint64_t low = u64_max(at, line.first), high = u64_min(end, line.first + line.count);
        const uint64_t dense = planes ? o - part->o : (o - part->o) * part->length + l - part->l;
        if (o >= part->o && o < part->o + part->outer && l >= part->l && l < part->l + part->length && low < high)
            memcpy(to + (dense * line.count + low - line.first) * bytes, from + (low - at) * bytes, (high - low) * bytes);
        from += (end - at) * bytes;
        run = (struct range){run.first + end - at, run.count - (end - at)};
    }
}

/* Reads a chunk, which has so many elements, to behind the piece's, and copies what it has of these. */
static allfold_status read_chunk(const struct pieces *p, struct worker *worker, struct lane *lane, struct range chunk, struct error *error)
{
    struct source *const source = p->array->source;
    char *const all = lane->queue->staging, *const there = all + p->chunk_there_at;
    const struct read_request request = {{chunk.first * source->granule, source->granule}, 0, all + p->bounce_at};
    const size_t bytes = allfold_type_bytes(p->array->type);
    struct piece piece;
    if (worker->reader->read(worker->reader, &request, &piece, error) != ALLFOLD_OK)
        return error->status;
    const bool holes = piece.count < chunk.count;
    if (holes && p->array->omits)
        missing_spread(p, &piece, chunk.count, (unsigned char *)there);
    else if (source->leaves_out && !p->array->omits && source_check(source, error) != ALLFOLD_OK)
        return error->status;
    lane->holes = lane->holes || holes;
    for (uint64_t done = 0, run; done < chunk.count; done += run) {
        const uint64_t index = source->index(source, request.range.first + done, &run);
        run = u64_min(run, chunk.count - done);
        copy_run(p, &lane->part, (struct range){index, run}, &(struct copy){(const char *)piece.elements + done * bytes, all, bytes});
        if (holes)
            copy_run(p, &lane->part, (struct range){index, run}, &(struct copy){there + done, all + p->there_at, 1});
    }
    return ALLFOLD_OK;
}

allfold_status chunks_read(const struct pieces *p, struct worker *worker, struct lane *lane, struct error *error)
{
    const struct axis_array *const array = p->array;
    const struct source *const source = array->source;
    const struct part *const part = &lane->part;
    const uint32_t dimensions = source->dimensions;
    struct chunks chunks;
    uint64_t count = 1;
    set_ranges(source, &chunks, 0, array->shape.first, (struct range){part->o, part->outer});
    set_ranges(source, &chunks, array->shape.first, array->shape.last + 1, (struct range){part->l, part->length});
    set_ranges(source, &chunks, array->shape.last + 1, dimensions, (struct range){part->i, part->inner});
    for (uint32_t i = 0; i < dimensions; i++)
        count *= chunks.along[i].count;
    for (uint64_t k = 0; k < count && error->status == ALLFOLD_OK; k++) {
        uint64_t rest = k, number = 0, below = 1, elements = 1;
        for (uint32_t i = dimensions; i-- > 0;) {
            const uint64_t place = chunks.along[i].first + rest % chunks.along[i].count;
            elements *= u64_min(source->chunk[i], source->shape[i] - place * source->chunk[i]);
            number += place * below;
            rest /= chunks.along[i].count;
            below *= chunks.grid[i];
        }
        read_chunk(p, worker, lane, (struct range){number, elements}, error);
    }
    return error->status;
}
