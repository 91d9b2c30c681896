/* Cuts an array among the ranks, and a rank's part into pieces: see pieces.h. */
#include "core/pieces.h"

#include "base/host.h"
#include "comm/vectors.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    LONG_RUN_BYTES = 16 << 10, /* of some columns' row: reading these is not much slower than reading all in order */
    CHUNKED_BYTES = 32 << 20,  /* of a piece of an array in chunks, at most, if a shard is shorter, */
    CHUNKED_SHARDS = 8,        /* and of its partials: as much as this number of shards */
    PARTIALS_BYTES = 1 << 20,  /* of a piece's partials: they stay in a core's cache */
    SCRATCH_BYTES = 1 << 20,   /* behind them, on a device that has memory of its own */
    SLAB_SHARDS = 256,         /* a slab and the partials of its rows are together as long as this number of shards, at most, */
    SLAB_SHARE = 4,            /* and a rank's share of the host's memory divided by this; */
    SLAB_USUAL = 16,           /* shards as long as a slab of several grains of whole rows */
    COLUMNS_PIECES = 8,        /* of a shard of some columns, at most, */
    COLUMNS_SHARDS = 128       /* if there is this number of shards */
};

static uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

/* Extents of which multiples are cut. */
struct grains {
    uint64_t outer, length, inner;
};

static struct grains grains_of(const struct pieces *p)
{
    const struct axis_array *const array = p->array;
    if (!pieces_are_chunked(p))
        return (struct grains){1, 1, 1};
    return (struct grains){layout_grain(array->layout, COORDINATE_OUTER), layout_grain(array->layout, COORDINATE_AXIS),
                           layout_grain(array->layout, COORDINATE_INNER)};
}

/* What the ranks had best cut: so that each reads long runs, and exchanges few partials or none. */
static allfold_cut choose_cut(const struct axis_array *array, const struct grains *grains, uint64_t size)
{
    const uint64_t outer = divide_up(array->outer, grains->outer), length = divide_up(array->length, grains->length);
    const uint64_t inner = divide_up(array->inner, grains->inner);
    if (outer >= 4 * size || (outer > 0 && outer % size == 0))
        return ALLFOLD_CUT_OUTER;
    if (array->length / 4096 >= size && length >= size)
        return ALLFOLD_CUT_AXIS;
    if (array->inner / 1024 >= size && inner >= size)
        return ALLFOLD_CUT_INNER;
    if (length > outer && length > inner)
        return ALLFOLD_CUT_AXIS;
    return outer >= inner ? ALLFOLD_CUT_OUTER : ALLFOLD_CUT_INNER;
}

/* A rank's part of a dimension: whole grains. */
static struct range part_of(uint64_t extent, uint64_t grain, uint64_t rank, uint64_t size)
{
    const struct range grains = range_part(divide_up(extent, grain), rank, size);
    const uint64_t first = u64_min(grains.first * grain, extent);
    return (struct range){first, u64_min(grains.count * grain, extent - first)};
}

void pieces_take_part(struct pieces *p, struct range mine, uint64_t longest)
{
    const struct axis_array *const a = p->array;
    p->part = (struct part){0, a->outer, 0, a->length, 0, a->inner};
    p->longest = a->cut == ALLFOLD_CUT_AXIS ? longest : a->length;
    switch (a->cut) {
    case ALLFOLD_CUT_OUTER: p->part.o = mine.first, p->part.outer = mine.count; break;
    case ALLFOLD_CUT_AXIS: p->part.l = mine.first, p->part.length = mine.count; break;
    case ALLFOLD_CUT_INNER: p->part.i = mine.first, p->part.inner = mine.count;
    }
}

static void take_part(struct pieces *p, const struct grains *grains)
{
    const struct axis_array *const a = p->array;
    const uint64_t size = (uint64_t)p->ctx->comm.size, extent = cut_one_of(a->cut, a->outer, a->length, a->inner);
    const uint64_t grain = cut_one_of(a->cut, grains->outer, grains->length, grains->inner);
    pieces_take_part(p, part_of(extent, grain, (uint64_t)p->ctx->comm.rank, size), part_of(extent, grain, 0, size).count);
}

/* What a piece has room for, in elements and in results, and the bytes of a slab and its partials. */
struct limits {
    uint64_t window, shard, results, slab_bytes;
};

/* The extents of a piece, from those that the longest part of a rank has, so that all ranks cut results alike. */
static void size_pieces(struct pieces *p, const struct limits *limits)
{
    const uint64_t length = u64_max(p->longest, 1), inner = u64_max(p->part.inner, 1), most = limits->results;
    const uint64_t long_run = u64_min(inner, u64_max(LONG_RUN_BYTES / allfold_type_bytes(p->array->type), 1));
    const uint64_t columns = u64_min(u64_min(inner, most), limits->shard / length);
    p->outer = 1;
    p->length = length;
    p->inner = u64_min(inner, most);
    if (inner <= most && length <= limits->window / inner) {
        p->outer = u64_max(1, u64_min(limits->window / inner / length, most / inner));
    } else if (columns > 0 && columns >= u64_min(long_run, most)) {
        p->inner = columns;
    } else {
        p->inner = u64_min(u64_min(long_run, most), limits->shard);
        p->length = u64_min(length, u64_max(1, (p->inner == 1 ? limits->window : limits->shard) / p->inner));
    }
}

/* As many grains of an extent as there is room for, at least one. */
static uint64_t whole_grains(uint64_t extent, uint64_t grain, uint64_t room)
{
    return u64_min(u64_max(extent, 1), u64_max(room / grain, 1) * grain);
}

/* The same for an array in chunks: whole ones, if they do not take too much memory. */
static void size_chunked_pieces(struct pieces *p, const struct grains *grains, const struct limits *limits)
{
    const uint64_t whole = u64_max(limits->shard, CHUNKED_BYTES / allfold_type_bytes(p->array->type));
    const uint64_t room = p->array->source->chunking != NULL ? whole : limits->window; /* runs are no longer than that */
    const uint64_t length = u64_max(p->longest, 1);
    p->inner = u64_min(u64_max(p->part.inner, 1), u64_min(grains->inner, limits->results));
    p->outer = u64_min(u64_max(p->part.outer, 1), u64_min(grains->outer, u64_max(limits->results / p->inner, 1)));
    p->outer = u64_min(p->outer, u64_max(room / p->inner / u64_min(grains->length, length), 1));
    if (p->outer * p->inner > room / length) {
        p->length = whole_grains(length, grains->length, room / (p->outer * p->inner));
        return;
    }
    p->length = length;
    if (p->inner % grains->inner == 0)
        p->inner = whole_grains(p->part.inner, grains->inner, u64_min(limits->shard / (p->outer * length), limits->results / p->outer));
    if (p->inner == p->part.inner && p->outer % grains->outer == 0)
        p->outer = whole_grains(p->part.outer, grains->outer, u64_min(limits->shard / (p->inner * length), limits->results / p->inner));
}

/* The number of results whose elements have room, `length` of `bytes` bytes for each. */
static uint64_t results_in(uint64_t room, uint64_t bytes, uint64_t length) { return u64_max(room / bytes / length, 1); }

/* Cuts the part in slabs, if pieces would cut chunks. Its groups have whole rows if a slab has room for these; else half of the memory is for
   their partials. */
static void size_slabs(struct pieces *p, const struct grains *grains, const struct limits *limits)
{
    struct slab *const slab = &p->slab;
    const uint64_t outer = u64_min(u64_max(p->part.outer, 1), grains->outer), inner = u64_min(u64_max(p->part.inner, 1), grains->inner);
    const uint64_t bytes = allfold_type_bytes(p->array->type) + p->array->omits, length = u64_max(p->longest, 1), half = limits->slab_bytes / 2;
    const uint64_t shard = p->ctx->device->shard_bytes, partials = half / (p->stride + sizeof(uint64_t));
    if (p->inner >= inner && p->outer >= outer)
        return;
    const bool whole = outer * inner <= limits->slab_bytes / bytes / length;
    const uint64_t most = whole ? u64_max(outer * inner, results_in(SLAB_USUAL * shard, bytes, length))
                                : u64_max(u64_min(partials, results_in(half, bytes, u64_min(grains->length, length))), outer);
    slab->inner = inner <= most / outer ? whole_grains(p->part.inner, grains->inner, most / outer) : most / outer;
    slab->outer = slab->inner == u64_max(p->part.inner, 1) ? whole_grains(p->part.outer, grains->outer, most / slab->inner) : outer;
    slab->length = whole ? length : whole_grains(length, grains->length, results_in(half, bytes, slab->outer * slab->inner));
    slab->all = p->part;
    p->length = slab->length;
    const uint64_t results = u64_min(results_in(u64_min(PARTIALS_BYTES, CHUNKED_SHARDS * shard), p->stride, 1), u64_max(limits->shard / p->length, 1));
    p->inner = u64_min(slab->inner, results);
    p->outer = u64_min(slab->outer, u64_max(results / p->inner, 1));
}

uint64_t pieces_position(const struct pieces *p, const struct part *part, uint64_t plane, uint64_t line)
{
    return (part->o + plane) * p->array->outer_stride + (part->l + line) * p->array->axis_stride + part->i - p->base;
}

void pieces_visit(const struct pieces *p, const struct part *part, layout_visit *visit, void *user)
{
    struct part at = *part;
    if (p->array->memory != NULL) {
        at.o -= p->part.o;
        at.l -= p->part.l;
        at.i -= p->part.i;
    }
    layout_visit_part(p->array->layout, &at, visit, user);
}

struct runs pieces_runs(const struct pieces *p, const struct part *part)
{
    if (part->inner != p->array->axis_stride && part->length > 1)
        return (struct runs){part->outer, part->length, part->inner};
    if (part->length * part->inner != p->array->outer_stride && part->outer > 1)
        return (struct runs){part->outer, 1, part->length * part->inner};
    return (struct runs){1, 1, part_elements(part)};
}

/* Elements that are read behind a piece, and copied into it: one of several runs, or a chunk. */
static uint64_t bounced(const struct pieces *p)
{
    const struct part full = {0, p->outer, 0, u64_min(p->length, p->part.length), 0, p->inner};
    const struct runs runs = pieces_runs(p, &full);
    if (pieces_are_chunked(p))
        return p->array->layout->chunking->granule;
    return runs.planes * runs.lines == 1 || p->array->memory != NULL ? 0 : runs.elements;
}

static void place(struct pieces *p, const struct axis_needs *needs)
{
    const size_t bytes = allfold_type_bytes(p->array->type);
    const uint64_t results = p->outer * p->inner, elements = results * p->length, behind = bounced(p);
    const bool omits = p->array->omits;
    p->bounce_at = pages(reader_room(elements, bytes));
    p->partials_at = p->bounce_at + (behind == 0 ? 0 : pages(reader_room(behind, bytes)));
    p->more_at = p->partials_at + pages(results * p->stride) + (p->ctx->device->backend->own_memory ? SCRATCH_BYTES : 0);
    p->there_at = p->more_at + pages(results * needs->result) + pages(elements * needs->element) + pages(needs->fixed);
    p->chunk_there_at = p->there_at + (omits ? pages(elements) : 0);
    p->counts_at = p->chunk_there_at + (omits ? pages(behind) : 0);
    p->row_at = p->counts_at + (omits ? pages(results * sizeof(uint64_t)) : 0);
    p->weights_at = p->row_at + (omits ? pages(reader_room(p->length, bytes)) : 0);
    p->queue_bytes = p->weights_at + (p->array->weights != NULL ? pages(weights_bytes(p)) : 0);
}

/* Pieces of a shard: as many as are together as long as shards are. Of some columns more, if there are many: all their partials are
   combined for each shard. */
static uint64_t shard_of(const struct pieces *p)
{
    const uint64_t elements = p->outer * p->length * p->inner, shard = p->ctx->device->shard_bytes / allfold_type_bytes(p->array->type);
    const uint64_t usual = u64_max(1, shard / u64_max(elements, 1));
    if (p->segments == 1)
        return p->stripes == 1 ? usual : 1;
    return p->outer * p->inner == 1 ? usual : u64_max(usual, u64_min(COLUMNS_PIECES, p->units * p->segments / COLUMNS_SHARDS));
}

/* The units of the part, which is all or a group. */
static void count_pieces(struct pieces *p)
{
    p->stripes = u64_max(1, divide_up(p->part.inner, p->inner));
    p->units = p->part.inner == 0 ? 0 : divide_up(p->part.outer, p->outer) * p->stripes;
    p->segments = u64_max(1, divide_up(p->part.length, p->length));
    p->last = true;
}

/* A rank's share of some rows. */
static struct part share_of(const struct part *rows, uint64_t rank, uint64_t size)
{
    struct part share = *rows;
    const bool columns = rows->inner >= rows->outer;
    const struct range range = range_part(columns ? rows->inner : rows->outer, rank, size);
    if (columns)
        share.i += range.first, share.inner = range.count;
    else
        share.o += range.first, share.outer = range.count;
    return share;
}

bool pieces_take_group(struct pieces *p, uint64_t number)
{
    struct slab *const slab = &p->slab;
    const struct part *const all = &slab->all;
    if (slab->length == 0)
        return number == 0;
    const uint64_t across = u64_max(divide_up(all->inner, slab->inner), 1), groups = u64_max(divide_up(all->outer, slab->outer), 1) * across;
    const uint64_t o = number / across * slab->outer, i = number % across * slab->inner;
    if (number >= groups)
        return false;
    p->before = number == 0 ? 0 : p->before + p->units;
    slab->group = (struct part){all->o + o, u64_min(slab->outer, all->outer - o), all->l, all->length, all->i + i, u64_min(slab->inner, all->inner - i)};
    p->part = slab->shared > 0 ? share_of(&slab->group, (uint64_t)p->ctx->comm.rank, (uint64_t)p->ctx->comm.size) : slab->group;
    count_pieces(p);
    p->last = number + 1 == groups;
    return true;
}

/* The cut of the part. memory: bytes of the host that it may use. */
static void cut_part(struct pieces *p, const struct grains *grains, const struct axis_needs *needs, uint64_t memory)
{
    const struct device *const device = p->ctx->device;
    p->stride = partial_stride(p->monoid, p->array->type);
    const bool chunked = pieces_are_chunked(p);
    const struct limits limits = {u64_max(device->window_bytes / needs->widest, 1), u64_max(device->shard_bytes / needs->widest, 1),
                                  u64_max((chunked ? CHUNKED_SHARDS * device->shard_bytes : PARTIALS_BYTES) / p->stride, 1),
                                  u64_min(memory / SLAB_SHARE, SLAB_SHARDS * device->shard_bytes)};
    p->slab = (struct slab){0};
    if (chunked) {
        size_chunked_pieces(p, grains, &limits);
        size_slabs(p, grains, &limits);
    } else {
        size_pieces(p, &limits);
    }
    place(p, needs);
    count_pieces(p);
    p->shard = p->slab.length > 0 ? 1 : shard_of(p);
}

/* What each rank may have of its host's memory, at least. Progress that is kept must not depend on it: the run may go on elsewhere. Agrees on
   *error. Collective. */
static uint64_t memory_of_ranks(struct comm *comm, bool progress, struct error *error)
{
    uint64_t least = progress ? UINT64_MAX : host_memory() / (uint64_t)comm->local_size;
    uint64_t *const all = comm_gather_all(comm, &least, sizeof least, error);
    for (int rank = 0; all != NULL && rank < comm->size; rank++)
        least = u64_min(least, all[rank]);
    free(all);
    return least;
}

/* If slabs of whole rows fit memory that the ranks share, each decodes some of their chunks, and folds some of their rows: then nothing is
   exchanged. Collective. */
static void share_slabs(struct pieces *p, struct axis_array *array, const struct grains *grains, const struct axis_needs *needs, uint64_t memory,
                        struct error *error)
{
    const struct pieces exchanged = *p;
    void *shared = NULL;
    array->cut = array->inner >= array->outer ? ALLFOLD_CUT_INNER : ALLFOLD_CUT_OUTER;
    p->part = (struct part){0, array->outer, 0, array->length, 0, array->inner};
    p->longest = array->length;
    cut_part(p, grains, needs, memory);
    const uint64_t bytes = slab_bytes(p);
    const bool whole = p->slab.length == array->length && p->slab.inner >= u64_min(array->inner, grains->inner);
    if (whole && comm_window_open(&p->ctx->comm, bytes, &shared, error) == ALLFOLD_OK && shared != NULL) {
        p->slab.elements = shared;
        p->slab.shared = bytes;
        p->part = share_of(&p->part, (uint64_t)p->ctx->comm.rank, (uint64_t)p->ctx->comm.size); /* until groups are taken */
        return;
    }
    *p = exchanged;
    array->cut = ALLFOLD_CUT_AXIS;
}

/* Says how often chunks are decoded, if groups cut them. */
static void tell_groups(const struct pieces *p, const struct grains *grains)
{
    const struct slab *const slab = &p->slab;
    const uint64_t inner = u64_min(u64_max(slab->all.inner, 1), grains->inner);
    if (slab->length > 0 && slab->inner < inner)
        core_log(p->ctx, "chunks are decoded %" PRIu64 " times: there is memory for %" PRIu64 " results of the %" PRIu64 " that they have",
                 divide_up(inner, slab->inner), slab->outer * slab->inner, slab->outer * inner);
}

allfold_status pieces_cut(struct pieces *p, struct axis_array *array, const struct axis_needs *needs, struct error *error)
{
    const uint64_t memory = memory_of_ranks(&p->ctx->comm, array->progress != NULL, error);
    if (error->status != ALLFOLD_OK)
        return error->status;
    p->array = array;
    layout_of_source(array->layout, &array->shape, array->source, p->ctx->device->window_bytes / needs->widest);
    if (array->weights != NULL)
        weights_lay_out(array->weights, array->layout, &array->shape);
    const struct grains grains = grains_of(p);
    array->axis_stride = array->inner;
    array->outer_stride = array->length * array->inner;
    array->cut = choose_cut(array, &grains, (uint64_t)p->ctx->comm.size);
    take_part(p, &grains);
    cut_part(p, &grains, needs, memory);
    if (p->slab.length > 0 && pieces_are_exchanged(p) && p->ctx->comm.hosts == 1 && array->progress == NULL)
        share_slabs(p, array, &grains, needs, memory, error);
    tell_groups(p, &grains);
    return error->status;
}

void pieces_cut_part(struct pieces *p, const struct axis_needs *needs) { cut_part(p, &(struct grains){1, 1, 1}, needs, 0); }

/* Columns that lie side by side are cut by a multiple of this, if there are more, so that words and vectors stay whole. */
enum { COLUMNS_TOGETHER = 64 };
/* The size of a piece if `count` is cut evenly into the fewest pieces of at most `most`. */
static uint64_t evenly(uint64_t count, uint64_t most) { return divide_up(count, divide_up(count, most)); }

void pieces_cut_in_place(struct pieces *p, uint64_t results)
{
    const uint64_t outer = u64_max(p->part.outer, 1), inner = u64_max(p->part.inner, 1);
    p->length = u64_max(p->longest, 1);
    if (p->array->gathered)
        results = u64_min(results, GATHERED_BYTES / allfold_type_bytes(p->array->type) / p->length);
    if (results < inner && results > COLUMNS_TOGETHER)
        results = evenly(divide_up(inner, COLUMNS_TOGETHER), results / COLUMNS_TOGETHER) * COLUMNS_TOGETHER;
    p->inner = u64_min(inner, u64_max(results, 1));
    p->outer = p->inner == inner ? evenly(outer, u64_max(1, results / inner)) : 1;
    count_pieces(p);
}

/* ---- flat arrays */

uint64_t pieces_elements(const struct source *source, allfold_type type, size_t bytes)
{
    return u64_max(bytes / allfold_type_bytes(type) / source->granule, 1) * source->granule;
}

/* Bytes of a queue's buffers. Sizes are powers of two, up to what any type's usual pieces need: so the queues of one call mostly serve the
   next. */
static size_t usual_bytes(const struct pieces *p, uint64_t needed)
{
    const uint64_t usual = reader_room(p->ctx->device->window_bytes, 1);
    uint64_t bytes = 1 << 16;
    while (bytes < needed)
        bytes *= 2;
    return pages(u64_max(u64_min(bytes, usual), needed));
}

void pieces_cut_row(struct pieces *p, struct range range, size_t window, size_t y_bytes)
{
    const allfold_type type = p->array->type;
    const struct source *const source = p->array->source;
    const size_t bytes = allfold_type_bytes(type);
    const uint64_t all = divide_up(range.count, source->granule) * source->granule;
    const uint64_t shard = pieces_elements(source, type, p->ctx->device->shard_bytes);
    p->flat = true;
    p->stride = partial_stride(p->monoid, type);
    p->part = (struct part){0, 1, range.first, range.count, 0, 1};
    p->outer = p->inner = p->stripes = p->units = 1;
    p->length = u64_max(u64_min(pieces_elements(source, type, window), all), 1);
    p->segments = divide_up(range.count, p->length);
    p->shard = u64_max(shard / p->length, 1);
    p->more_at = p->second_at = pages(reader_room(p->length, bytes));
    p->joint_at = 2 * p->second_at;
    const size_t joint = p->rule != NULL ? p->length / 8 + 8 : 0;
    p->queue_bytes = p->queue != NULL ? 0 : usual_bytes(p, p->more_at + (p->second != NULL ? p->second_at : 0) + joint
                                                           + (y_bytes > 0 ? 4096 + p->length * y_bytes : 0));
}

/* ---- places */

struct team pieces_team(const struct pieces *p, struct range units, uint64_t round, const struct team_work *work, void *user)
{
    const bool single = p->segments == 1 || p->slab.length > 0;
    struct team team = {.pieces = p, .work = work, .user = user, .before = units.first * p->segments + round, .step = single ? p->segments : 1,
                        .run = single ? units.count : p->segments, .runs = single ? 1 : units.count};
    team.end = team_shards(&team, team.runs);
    return team;
}

struct part pieces_at(const struct pieces *p, uint64_t number)
{
    const uint64_t unit = number / p->segments, l = number % p->segments * p->length;
    const uint64_t o = unit / p->stripes * p->outer, i = unit % p->stripes * p->inner;
    return (struct part){p->part.o + o, u64_min(p->outer, p->part.outer - o), p->part.l + l, u64_min(p->length, p->part.length - l),
                         p->part.i + i, u64_min(p->inner, p->part.inner - i)};
}

uint64_t pieces_first_result(const struct pieces *p, uint64_t unit)
{
    const uint64_t o = u64_min(unit / p->stripes * p->outer, p->part.outer), outer = u64_min(p->outer, p->part.outer - o);
    return o * p->part.inner + outer * (unit % p->stripes) * p->inner;
}

uint64_t pieces_place(const struct pieces *p, uint64_t result, uint64_t *run)
{
    const uint64_t planes = result / (p->outer * p->part.inner) * p->outer, outer = u64_min(p->outer, p->part.outer - planes);
    const uint64_t rest = result - planes * p->part.inner, stripe = rest / (outer * p->inner), at = rest - stripe * outer * p->inner;
    const uint64_t width = u64_min(p->inner, p->part.inner - stripe * p->inner);
    *run = width == p->array->inner ? UINT64_MAX : width - at % width;
    return (p->part.o + planes + at / width) * p->array->inner + p->part.i + stripe * p->inner + at % width;
}
