/* Pieces of an array in chunks, whose source has an order of its own: each chunk that has elements of a piece is read, and these are copied.
   See pieces.h. */
#include "core/pieces.h"

#include "comm/vectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

uint64_t chunks_grain(const struct source *source, uint32_t first, uint32_t end)
{
    const struct chunking *const c = source->chunking;
    uint64_t grain = 1;
    for (uint32_t i = first; i < end; i++)
        grain = grain > 1 ? grain * c->shape[i] : u64_min(c->grids->extent[i], c->shape[i]);
    return u64_max(grain, 1);
}

/* Sets the ranges of dimensions [first, end) in which the indices of a piece lie, which has a run of them. */
static void set_ranges(const struct source *source, struct range *ranges, uint32_t first, uint32_t end, struct range run)
{
    const uint64_t *const shape = source->chunking->shape;
    uint64_t lowest = run.first, highest = run.first + run.count - 1, below = 1;
    for (uint32_t i = first; i < end; i++)
        below *= shape[i];
    bool differ = false;
    for (uint32_t i = first; i < end; i++) {
        below /= shape[i];
        const uint64_t low = differ ? 0 : lowest / below, high = differ ? shape[i] - 1 : highest / below;
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

/* Where the elements of chunks go: to their places in a box. */
struct target {
    const struct part *box;
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

/* Reads a chunk into the queue's buffer behind a piece's, and copies what it has of the box. */
static allfold_status read_chunk(const struct pieces *p, struct worker *worker, struct lane *lane, uint64_t number, const struct target *target,
                                 struct error *error)
{
    struct source *const source = p->array->source;
    const uint64_t count = chunking_box(source->chunking, number).elements;
    char *const all = lane->queue->staging, *const there = all + p->chunk_there_at;
    const struct read_request request = {{number * source->granule, source->granule}, 0, all + p->bounce_at};
    const size_t bytes = allfold_type_bytes(p->array->type);
    struct piece piece;
    if (worker->reader->read(worker->reader, &request, &piece, error) != ALLFOLD_OK)
        return error->status;
    const bool holes = piece.count < count, marks = holes || (p->array->omits && target->slab != NULL && target->slab->shared > 0);
    if (holes && p->array->omits)
        missing_spread(p, &piece, count, (unsigned char *)there);
    else if (marks)
        memset(there, 1, count);
    else if (source->leaves_out && !p->array->omits && source_check(source, error) != ALLFOLD_OK)
        return error->status;
    lane->holes = lane->holes || holes;
    if (holes && target->slab != NULL)
        open_holes(target);
    for (uint64_t done = 0, run; done < count; done += run) {
        const uint64_t index = chunking_index(source->chunking, request.range.first + done, &run);
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
    const struct source *const source = p->array->source;
    const struct rows_shape *const shape = &p->array->shape;
    if (part_elements(box) == 0)
        return 0;
    set_ranges(source, ranges, 0, shape->first, (struct range){box->o, box->outer});
    set_ranges(source, ranges, shape->first, shape->last + 1, (struct range){box->l, box->length});
    set_ranges(source, ranges, shape->last + 1, source->chunking->dimensions, (struct range){box->i, box->inner});
    return chunking_count(source->chunking, ranges);
}

/* The place in the slab of a line of the piece. */
static uint64_t place_in_slab(const struct slab *slab, const struct part *part, uint64_t line)
{
    const struct part *const held = &slab->held;
    const uint64_t plane = part->o - held->o + line / part->length, l = part->l - held->l + line % part->length;
    return (plane * held->length + l) * held->inner + part->i - held->i;
}

bool slab_serves(const struct pieces *p, struct lane *lane)
{
    const struct slab *const slab = &p->slab;
    if (slab->length == 0 || slab->holes || p->ctx->device->backend->own_memory)
        return false;
    lane->box.outer_stride = slab->held.length * slab->held.inner;
    lane->box.axis_stride = slab->held.inner;
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
    const struct target target = {&lane->part, all, all + p->there_at, NULL};
    struct range ranges[ARRAY_DIMENSIONS_MAX];
    if (p->slab.length > 0) {
        copy_piece(p, lane);
        return ALLFOLD_OK;
    }
    const uint64_t count = find_chunks(p, &lane->part, ranges);
    for (uint64_t k = 0; k < count && error->status == ALLFOLD_OK; k++)
        read_chunk(p, worker, lane, chunking_find(p->array->source->chunking, ranges, k), &target, error);
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
    const struct target target = {&filling->box, slab->elements, (char *)slab->there, slab};
    phase_enter(filling->p->ctx->comm.progress, PHASE_READ);
    const uint64_t number = chunking_find(filling->p->array->source->chunking, filling->ranges, lane->number);
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
    slab->held = *box;
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
    if (slab->length == 0 || error->status != ALLFOLD_OK || memcmp(&box, &slab->held, sizeof box) == 0)
        return error->status;
    decode(p, &box, error);
    if (slab->shared == 0)
        return error->status;
    progress_check(comm->progress, error);
    if (comm_agree(comm, error) == ALLFOLD_OK && comm_count(comm, slab->holes, &holes, error) == ALLFOLD_OK)
        slab->holes = holes > 0;
    return error->status;
}
