/* Pieces of an array in chunks, whose source has an order of its own: each chunk that has elements of a piece is read, and these are copied.
   See pieces.h. */
#include "core/pieces.h"

#include "comm/vectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Sets the ranges in which the indices of a piece lie along the dimensions of a coordinate, of which it has a run. */
static void set_ranges(const struct layout *layout, struct range *ranges, enum coordinate of, struct range run)
{
    uint64_t lowest = run.first, highest = run.first + run.count - 1, below = 1;
    for (uint32_t i = 0; i < layout->count; i++)
        below *= layout->dimensions[i].of == of ? layout->dimensions[i].extent : 1;
    bool differ = false;
    for (uint32_t i = 0; i < layout->count; i++) {
        const uint64_t extent = layout->dimensions[i].extent;
        if (layout->dimensions[i].of != of)
            continue;
        below /= extent;
        const uint64_t low = differ ? 0 : lowest / below, high = differ ? extent - 1 : highest / below;
        differ = differ || low != high;
        lowest %= below;
        highest %= below;
        ranges[i] = (struct range){low, high - low + 1};
    }
}

/* What is copied: an element, or a byte for each. */
struct copy {
    const char *from; /* of a chunk */
    char *to;         /* of the piece */
    size_t bytes;
};

/* Coordinates of the first element of a row: the array's last dimensions, as many as `tail`, make one. */
struct row_start {
    uint64_t o, l;
};
static struct row_start row_start(const struct layout *layout, uint64_t row, uint32_t tail, uint64_t length)
{
    struct row_start start = {0, 0};
    uint64_t of_outer = 1, of_axis = length;
    for (uint32_t d = layout->count - tail; d-- > 0; row /= layout->dimensions[d].extent) {
        const uint64_t extent = layout->dimensions[d].extent, at = row % extent;
        const bool along = layout->dimensions[d].of == COORDINATE_AXIS;
        *(along ? &start.l : &start.o) += at * (along ? of_axis : of_outer);
        *(along ? &of_axis : &of_outer) *= extent;
    }
    return start;
}

/* Copies what a run of neighbours, the first of which has that index in the array, has of the piece. A row is a line of it, or several lines
   if these are whole. */
static void copy_run(const struct pieces *p, const struct part *part, struct range run, const struct copy *copy)
{
    const struct layout *const layout = p->array->layout;
    const bool whole = part->inner == p->array->inner;
    const uint32_t tail = whole ? layout->tail : layout->inner;
    const uint64_t length = whole ? layout->tail_length : 1, width = length * p->array->inner;
    const char *from = copy->from;
    while (run.count > 0) {
        const uint64_t at = run.first % width, end = u64_min(at + run.count, width);
        const struct row_start start = row_start(layout, run.first / width, tail, length);
        const uint64_t first = u64_max(start.l, part->l), last = u64_min(start.l + length, part->l + part->length);
        if (start.o >= part->o && start.o < part->o + part->outer && first < last) {
            const struct range line = {(first - start.l) * p->array->inner + part->i, (last - first - 1) * p->array->inner + part->inner};
            const uint64_t low = u64_max(at, line.first), high = u64_min(end, line.first + line.count);
            const uint64_t dense = ((start.o - part->o) * part->length + first - part->l) * part->inner;
            if (low < high)
                memcpy(copy->to + (dense + low - line.first) * copy->bytes, from + (low - at) * copy->bytes, (high - low) * copy->bytes);
        }
        from += (end - at) * copy->bytes;
        run = (struct range){run.first + end - at, run.count - (end - at)};
    }
}

/* Where the elements of chunks go: to their places in a box. */
struct target {
    const struct part *box;
    const struct range *ranges; /* of it along each dimension */
    char *elements, *there;
    struct slab *slab; /* NULL: the box is a piece */
};

/* Before the first chunk with holes all is there. In memory that ranks share each chunk says so itself. */
static void open_holes(const struct target *target)
{
#pragma omp critical(allfold_slab)
    if (!target->slab->holes) {
        if (target->slab->shared == 0)
            memset(target->there, 1, part_elements(target->box));
        target->slab->holes = true;
    }
}

/* Where the source has a chunk: with a chunking of its own at that number, else at the index of its first element. */
static struct range chunk_positions(const struct pieces *p, const struct chunk_box *chunk, uint64_t number)
{
    const struct source *const source = p->array->source;
    struct range positions = {0, chunk->elements};
    if (source->chunking != NULL)
        return (struct range){number * source->granule, source->granule};
    for (uint32_t i = 0; i < p->array->layout->count; i++)
        positions.first += chunk->start[i] * (uint64_t)p->array->layout->dimensions[i].stride;
    return positions;
}

/* Whether elements of the chunk lie outside of the ranges. */
static bool lies_in_part(const struct layout *layout, const struct chunk_box *chunk, const struct range *ranges)
{
    for (uint32_t i = 0; i < layout->count; i++)
        if (chunk->start[i] < ranges[i].first || chunk->start[i] + chunk->extent[i] > ranges[i].first + ranges[i].count)
            return true;
    return false;
}

/* Reads a chunk into the queue's buffer behind a piece's, and copies what it has of the box. */
static allfold_status read_chunk(const struct pieces *p, struct worker *worker, struct lane *lane, uint64_t number, const struct target *target,
                                 struct error *error)
{
    struct source *const source = p->array->source;
    const struct chunk_box chunk = chunking_box(p->array->layout->chunking, number);
    const uint64_t count = chunk.elements;
    char *const all = lane->queue->staging, *const there = all + p->chunk_there_at;
    const struct read_request request = {chunk_positions(p, &chunk, number), 0, all + p->bounce_at,
                                         lies_in_part(p->array->layout, &chunk, target->ranges)};
    const size_t bytes = allfold_type_bytes(p->array->type);
    struct piece piece;
    if (reader_read(worker->reader, &request, &piece, error) != ALLFOLD_OK)
        return error->status;
    if (source->leaves_out && !p->array->omits && source_check(source, error) != ALLFOLD_OK)
        return error->status;
    const bool holes = piece.count < count, marks = p->array->omits && (holes || (target->slab != NULL && target->slab->shared > 0));
    if (marks && holes)
        missing_spread(p, &piece, count, (unsigned char *)there);
    else if (marks)
        memset(there, 1, count);
    lane->holes = lane->holes || holes;
    if (holes && target->slab != NULL)
        open_holes(target);
    for (uint64_t done = 0, run = count; done < count; done += run) {
        const uint64_t index = source->chunking != NULL ? chunking_index(source->chunking, request.range.first + done, &run) : request.range.first;
        run = u64_min(run, count - done);
        copy_run(p, target->box, (struct range){index, run}, &(struct copy){(const char *)piece.elements + done * bytes, target->elements, bytes});
        if (marks)
            copy_run(p, target->box, (struct range){index, run}, &(struct copy){there + done, target->there, 1});
    }
    return ALLFOLD_OK;
}

/* Finds the ranges along each dimension in which a box lies, and returns how many chunks have elements there. */
static uint64_t find_chunks(const struct pieces *p, const struct part *box, struct range ranges[ARRAY_DIMENSIONS_MAX])
{
    const struct layout *const layout = p->array->layout;
    if (part_elements(box) == 0)
        return 0;
    set_ranges(layout, ranges, COORDINATE_OUTER, (struct range){box->o, box->outer});
    set_ranges(layout, ranges, COORDINATE_AXIS, (struct range){box->l, box->length});
    set_ranges(layout, ranges, COORDINATE_INNER, (struct range){box->i, box->inner});
    return chunking_count(layout->chunking, ranges);
}

/* The place in the slab of a line of the piece. */
static uint64_t place_in_slab(const struct slab *slab, const struct part *part, uint64_t line)
{
    const struct part *const loaded = &slab->loaded;
    const uint64_t plane = part->o - loaded->o + line / part->length, l = part->l - loaded->l + line % part->length;
    return (plane * loaded->length + l) * loaded->inner + part->i - loaded->i;
}

bool slab_serves(const struct pieces *p, struct lane *lane)
{
    const struct slab *const slab = &p->slab;
    if (slab->length == 0 || slab->holes || p->ctx->device->backend->own_memory || part_elements(&lane->part) == 0)
        return false;
    lane->box.outer_stride = slab->loaded.length * slab->loaded.inner;
    lane->box.axis_stride = slab->loaded.inner;
    lane->x = slab->elements + place_in_slab(slab, &lane->part, 0) * allfold_type_bytes(p->array->type);
    return true;
}

/* Copies a piece from the slab. */
static void copy_piece(const struct pieces *p, struct lane *lane)
{
    const struct part *const part = &lane->part;
    const size_t bytes = allfold_type_bytes(p->array->type);
    char *const all = lane->queue->staging;
    lane->holes = p->slab.holes;
    for (uint64_t line = 0; line < part->outer * part->length; line++) {
        const uint64_t from = place_in_slab(&p->slab, part, line), to = line * part->inner;
        memcpy(all + to * bytes, p->slab.elements + from * bytes, part->inner * bytes);
        if (lane->holes)
            memcpy(all + p->there_at + to, p->slab.there + from, part->inner);
    }
}

allfold_status chunks_read(const struct pieces *p, struct worker *worker, struct lane *lane, struct error *error)
{
    char *const all = lane->queue->staging;
    struct range ranges[ARRAY_DIMENSIONS_MAX];
    const struct target target = {&lane->part, ranges, all, all + p->there_at, NULL};
    if (p->slab.length > 0) {
        copy_piece(p, lane);
        return ALLFOLD_OK;
    }
    const uint64_t count = find_chunks(p, &lane->part, ranges);
    for (uint64_t k = 0; k < count && error->status == ALLFOLD_OK; k++)
        read_chunk(p, worker, lane, chunking_find(p->array->layout->chunking, ranges, k), &target, error);
    return error->status;
}

/* ---- slabs */

struct filling {
    struct pieces *p;
    struct part box;
    struct range ranges[ARRAY_DIMENSIONS_MAX];
};

static allfold_status start_chunk(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct filling *const filling = worker->team->user;
    struct slab *const slab = &filling->p->slab;
    const struct target target = {&filling->box, filling->ranges, slab->elements, (char *)slab->there, slab};
    phase_enter(filling->p->ctx->comm.progress, PHASE_READ);
    const uint64_t number = chunking_find(filling->p->array->layout->chunking, filling->ranges, lane->number);
    return read_chunk(filling->p, worker, lane, number, &target, error);
}

static allfold_status finish_chunk(struct worker *worker, struct lane *lane, struct error *error)
{
    (void)worker, (void)lane;
    return error->status;
}

uint64_t slab_bytes(const struct pieces *p)
{
    return p->slab.outer * p->slab.length * p->slab.inner * (allfold_type_bytes(p->array->type) + p->array->omits);
}

static allfold_status open_memory(const struct pieces *p, struct slab *slab, struct error *error)
{
    if (slab->elements == NULL && (slab->elements = malloc(slab_bytes(p))) == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " bytes of decoded elements", slab_bytes(p));
    slab->there = (unsigned char *)slab->elements + slab->outer * slab->length * slab->inner * allfold_type_bytes(p->array->type);
    return ALLFOLD_OK;
}

void slab_close(struct slab *slab)
{
    if (slab->shared > 0)
        comm_window_close(slab->elements, slab->shared);
    else
        free(slab->elements);
    slab->elements = NULL;
}

/* Decodes the chunks of the box, of memory that ranks share this rank's share. */
static void decode(struct pieces *p, const struct part *box, struct error *error)
{
    static const struct team_work work = {start_chunk, finish_chunk, NULL};
    const struct comm *const comm = &p->ctx->comm;
    struct slab *const slab = &p->slab;
    struct filling filling = {.p = p, .box = *box};
    struct range chunks = {0, find_chunks(p, box, filling.ranges)};
    if (slab->shared > 0)
        chunks = range_part(chunks.count, (uint64_t)comm->rank, (uint64_t)comm->size);
    struct team team = {.pieces = p, .work = &work, .user = &filling, .before = chunks.first, .step = 1, .run = chunks.count, .runs = 1};
    team.end = team_shards(&team, 1);
    slab->loaded = *box;
    slab->holes = false;
    if (open_memory(p, slab, error) == ALLFOLD_OK)
        team_run(&team, error);
}

allfold_status slab_fill(struct pieces *p, uint64_t round, struct error *error)
{
    struct comm *const comm = &p->ctx->comm;
    struct slab *const slab = &p->slab;
    struct part box = slab->group;
    int holes = 0;
    box.l += round * p->length;
    box.length = u64_min(p->length, box.length - round * p->length);
    if (slab->shared > 0)
        comm_agree(comm, error); /* all have done with what it held */
    if (slab->length == 0 || error->status != ALLFOLD_OK || memcmp(&box, &slab->loaded, sizeof box) == 0)
        return error->status;
    decode(p, &box, error);
    if (slab->shared == 0)
        return error->status;
    progress_check(comm->progress, error);
    if (comm_agree(comm, error) == ALLFOLD_OK && comm_count(comm, slab->holes, &holes, error) == ALLFOLD_OK)
        slab->holes = holes > 0;
    return error->status;
}
