/* What folds and softmax along an axis of a source share: see axis_stream.h. */
#include "core/axis_stream.h"

#include <inttypes.h>
#include <string.h>

enum {
    LONG_RUN_BYTES = 16 << 10, /* of some columns' row: reading these is not much slower than reading all in order */
    CHUNKED_BYTES = 32 << 20,  /* of a piece of an array in chunks, at most, if a shard is shorter */
    PARTIALS_BYTES = 1 << 20,  /* of a piece's partials: they stay in a core's cache */
    SCRATCH_BYTES = 1 << 20    /* behind them, on a device that has memory of its own */
};

/* ---- the cut */

static uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }

/* Extents of which multiples are cut. */
struct grains {
    uint64_t outer, length, inner;
};

static struct grains grains_of(const struct axis_array *array)
{
    const struct source *const source = array->source;
    if (source->index == NULL)
        return (struct grains){1, 1, 1};
    return (struct grains){axis_chunks_grain(source, 0, array->shape.first), axis_chunks_grain(source, array->shape.first, array->shape.last + 1),
                           axis_chunks_grain(source, array->shape.last + 1, source->dimensions)};
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

static size_t pages(uint64_t bytes) { return (size_t)((bytes + 4095) / 4096 * 4096); }

/* A rank's part of a dimension: whole grains. */
static struct range part_of(uint64_t extent, uint64_t grain, uint64_t rank, uint64_t size)
{
    const struct range grains = range_part(divide_up(extent, grain), rank, size);
    const uint64_t first = u64_min(grains.first * grain, extent);
    return (struct range){first, u64_min(grains.count * grain, extent - first)};
}

static void take_part(struct axis_stream *s, const struct grains *grains)
{
    const struct axis_array *const a = s->array;
    const uint64_t rank = (uint64_t)s->ctx->comm.rank, size = (uint64_t)s->ctx->comm.size;
    const struct range o = part_of(a->outer, grains->outer, rank, size), l = part_of(a->length, grains->length, rank, size);
    const struct range i = part_of(a->inner, grains->inner, rank, size);
    s->part = (struct axis_part){0, a->outer, 0, a->length, 0, a->inner};
    s->longest = s->least = a->length;
    switch (a->cut) {
    case ALLFOLD_CUT_OUTER: s->part.o = o.first, s->part.outer = o.count; break;
    case ALLFOLD_CUT_INNER: s->part.i = i.first, s->part.inner = i.count; break;
    case ALLFOLD_CUT_AXIS:
        s->part.l = l.first, s->part.length = l.count;
        s->longest = part_of(a->length, grains->length, 0, size).count;
        s->least = part_of(a->length, grains->length, size - 1, size).count;
    }
}

/* What a piece has room for, in elements and in results. */
struct limits {
    uint64_t window, shard, results;
};

/* The extents of a piece, from those that the longest part of a rank has, so that all ranks cut results alike. */
static void size_pieces(struct axis_stream *s, const struct limits *limits)
{
    const uint64_t length = u64_max(s->longest, 1), inner = u64_max(s->part.inner, 1), most = limits->results;
    const uint64_t long_run = u64_min(inner, u64_max(LONG_RUN_BYTES / allfold_type_bytes(s->array->type), 1));
    const uint64_t columns = u64_min(u64_min(inner, most), limits->shard / length);
    s->outer = 1;
    s->length = length;
    s->inner = u64_min(inner, most);
    if (inner <= most && length <= limits->window / inner) {
        s->outer = u64_max(1, u64_min(limits->window / inner / length, most / inner));
    } else if (columns > 0 && columns >= u64_min(long_run, most)) {
        s->inner = columns;
    } else {
        s->inner = u64_min(u64_min(long_run, most), limits->shard);
        s->length = u64_min(length, u64_max(1, (s->inner == 1 ? limits->window : limits->shard) / s->inner));
    }
}

/* So many grains of an extent as there is room for, at least one. */
static uint64_t whole_grains(uint64_t extent, uint64_t grain, uint64_t room)
{
    return u64_min(u64_max(extent, 1), u64_max(room / grain, 1) * grain);
}

/* The same for an array in chunks: whole ones, if they do not take too much memory. */
static void size_chunked_pieces(struct axis_stream *s, const struct grains *grains, const struct limits *limits)
{
    const uint64_t room = u64_max(limits->shard, CHUNKED_BYTES / allfold_type_bytes(s->array->type));
    const uint64_t length = u64_max(s->longest, 1);
    s->inner = u64_min(u64_max(s->part.inner, 1), u64_min(grains->inner, limits->results));
    s->outer = u64_min(u64_max(s->part.outer, 1), u64_min(grains->outer, u64_max(limits->results / s->inner, 1)));
    s->outer = u64_min(s->outer, u64_max(room / s->inner / u64_min(grains->length, length), 1));
    if (s->outer * s->inner > room / length) {
        s->length = whole_grains(length, grains->length, room / (s->outer * s->inner));
        return;
    }
    s->length = length;
    if (s->inner % grains->inner == 0)
        s->inner = whole_grains(s->part.inner, grains->inner, u64_min(limits->shard / (s->outer * length), limits->results / s->outer));
    if (s->inner == s->part.inner && s->outer % grains->outer == 0)
        s->outer = whole_grains(s->part.outer, grains->outer, u64_min(limits->shard / (s->inner * length), limits->results / s->inner));
}

/* The runs of a piece in the array: so many lines of each of some planes. */
struct runs {
    uint64_t planes, lines, elements;
};

static struct runs runs_of(const struct axis_stream *s, const struct axis_part *piece)
{
    if (piece->inner < s->array->inner)
        return (struct runs){piece->outer, piece->length, piece->inner};
    if (piece->length < s->array->length)
        return (struct runs){piece->outer, 1, piece->length * piece->inner};
    return (struct runs){1, 1, piece->outer * piece->length * piece->inner};
}

/* Elements that are read behind a piece, and copied into it: one of several runs, or a chunk. */
static uint64_t bounced(const struct axis_stream *s)
{
    const struct axis_part full = {0, s->outer, 0, u64_min(s->length, s->part.length), 0, s->inner};
    const struct runs runs = runs_of(s, &full);
    if (s->array->source->index != NULL)
        return s->array->source->granule;
    return runs.planes * runs.lines == 1 ? 0 : runs.elements;
}

static void place(struct axis_stream *s, const struct axis_room *room)
{
    const size_t bytes = allfold_type_bytes(s->array->type);
    const uint64_t results = s->outer * s->inner, elements = results * s->length, behind = bounced(s);
    s->bounce_at = pages(reader_room(elements, bytes));
    s->partials_at = s->bounce_at + (behind == 0 ? 0 : pages(reader_room(behind, bytes)));
    s->more_at = s->partials_at + pages(results * s->stride) + (s->ctx->device->backend->own_memory ? SCRATCH_BYTES : 0);
    s->there_at = s->more_at + pages(results * room->result) + pages(elements * room->element) + pages(room->fixed);
    s->chunk_there_at = s->there_at + (s->array->omits ? pages(elements) : 0);
    s->counts_at = s->chunk_there_at + (s->array->omits ? pages(behind) : 0);
    s->row_at = s->counts_at + (s->array->omits ? pages(results * sizeof(uint64_t)) : 0);
    s->again_at = s->row_at + (s->array->omits ? pages(reader_room(s->length, bytes)) : 0);
    s->queue_bytes = s->again_at + (s->array->omits ? pages(results * s->stride) : 0);
}

void axis_stream_cut(struct axis_stream *s, const struct axis_room *room)
{
    const struct device *const device = s->ctx->device;
    const struct grains grains = grains_of(s->array);
    s->stride = partial_stride(s->monoid, s->array->type);
    const bool chunked = s->array->source->index != NULL;
    const struct limits limits = {u64_max(device->window_bytes / room->widest, 1), u64_max(device->shard_bytes / room->widest, 1),
                                  u64_max((chunked ? CHUNKED_BYTES : PARTIALS_BYTES) / s->stride, 1)};
    s->array->cut = choose_cut(s->array, &grains, (uint64_t)s->ctx->comm.size);
    take_part(s, &grains);
    if (chunked)
        size_chunked_pieces(s, &grains, &limits);
    else
        size_pieces(s, &limits);
    place(s, room);
    s->stripes = u64_max(1, divide_up(s->part.inner, s->inner));
    s->units = s->part.inner > 0 ? divide_up(s->part.outer, s->outer) * s->stripes : 0;
    s->segments = u64_max(1, divide_up(s->part.length, s->length));
}

struct axis_part axis_stream_piece(const struct axis_stream *s, uint64_t unit, uint64_t segment)
{
    const uint64_t o = unit / s->stripes * s->outer, i = unit % s->stripes * s->inner, l = segment * s->length;
    return (struct axis_part){s->part.o + o, u64_min(s->outer, s->part.outer - o), s->part.l + l, u64_min(s->length, s->part.length - l),
                              s->part.i + i, u64_min(s->inner, s->part.inner - i)};
}

uint64_t axis_stream_first(const struct axis_stream *s, uint64_t unit)
{
    const uint64_t o = u64_min(unit / s->stripes * s->outer, s->part.outer), outer = u64_min(s->outer, s->part.outer - o);
    return o * s->part.inner + outer * (unit % s->stripes) * s->inner;
}

uint64_t axis_stream_place(const struct axis_stream *s, uint64_t result, uint64_t *run)
{
    const uint64_t planes = result / (s->outer * s->part.inner) * s->outer, outer = u64_min(s->outer, s->part.outer - planes);
    const uint64_t rest = result - planes * s->part.inner, stripe = rest / (outer * s->inner), at = rest - stripe * outer * s->inner;
    const uint64_t width = u64_min(s->inner, s->part.inner - stripe * s->inner);
    *run = width == s->array->inner ? UINT64_MAX : width - at % width;
    return (s->part.o + planes + at / width) * s->array->inner + s->part.i + stripe * s->inner + at % width;
}

bool axis_stream_is_whole(const struct axis_stream *s)
{
    return s->segments == 1 && !axis_stream_is_exchanged(s);
}

uint64_t axis_stream_shard(const struct axis_stream *s)
{
    const uint64_t elements = s->outer * s->length * s->inner, shard = s->ctx->device->shard_bytes / allfold_type_bytes(s->array->type);
    return s->stripes == 1 ? u64_max(1, shard / u64_max(elements, 1)) : 1;
}

/* ---- elements */

static uint64_t position(const struct axis_stream *s, const struct axis_part *piece, uint64_t plane, uint64_t line)
{
    return ((piece->o + plane) * s->array->length + piece->l + line) * s->array->inner + piece->i;
}

/* Reads a run, whose first element is number `at` of the piece. Returns where it lies in host memory; NULL after an error. */
static const void *read_run(const struct axis_stream *s, struct axis_task *task, const struct read_request *request, uint64_t at,
                            struct error *error)
{
    struct reader *const reader = task->worker->reader;
    struct piece piece = {.count = request->range.count};
    if (reader->read(reader, request, &piece, error) != ALLFOLD_OK)
        return NULL;
    if (piece.count < request->range.count && !s->array->omits) {
        if (source_check(s->array->source, error) == ALLFOLD_OK) /* it says which element is missing */
            error_set(error, ALLFOLD_NO_VALUE, "elements of the array are missing: all are needed here");
        return NULL;
    }
    if (piece.count < request->range.count) {
        task->holes = true;
        axis_missing_spread(s, &piece, request->range.count, (unsigned char *)task->queue->staging + s->there_at + at);
    }
    return piece.elements;
}

/* Reads all runs of the piece. Returns where it lies, dense, in host memory; NULL after an error. */
static const void *read_piece(const struct axis_stream *s, struct axis_task *task, struct error *error)
{
    const struct runs runs = runs_of(s, &task->piece);
    const size_t bytes = allfold_type_bytes(s->array->type) * runs.elements;
    char *const all = task->queue->staging;
    if (s->array->source->index != NULL)
        return axis_chunks_read(s, task, error) == ALLFOLD_OK ? all : NULL;
    struct read_request request = {{position(s, &task->piece, 0, 0), runs.elements}, task->ahead, all};
    if (runs.planes * runs.lines == 1)
        return read_run(s, task, &request, 0, error);
    request.ahead = 0;
    request.buffer = all + s->bounce_at;
    for (uint64_t run = 0; run < runs.planes * runs.lines; run++) {
        request.range.first = position(s, &task->piece, run / runs.lines, run % runs.lines);
        const void *const part = read_run(s, task, &request, run * runs.elements, error);
        if (part == NULL)
            return NULL;
        memcpy(all + run * bytes, part, bytes);
    }
    return all;
}

allfold_status axis_stream_load(const struct axis_stream *s, struct axis_task *task, struct error *error)
{
    struct progress *const progress = s->ctx->comm.progress;
    struct queue *const queue = task->queue;
    const size_t bytes = task->piece.outer * task->piece.length * task->piece.inner * allfold_type_bytes(s->array->type);
    const void *found = NULL;
    task->x = NULL;
    axis_missing_begin(s, task);
    if (bytes > 0) {
        phase_enter(progress, PHASE_READ);
        found = read_piece(s, task, error);
    }
    axis_missing_count(s, task);
    if (bytes == 0 || error->status != ALLFOLD_OK)
        return error->status;
    atomic_fetch_add(&progress->done, bytes);
    task->x = task->host = found;
    if (!queue->device->backend->own_memory)
        return ALLFOLD_OK;
    phase_enter(progress, PHASE_UPLOAD);
    if ((const char *)found < (char *)queue->staging || (const char *)found >= (char *)queue->staging + queue->bytes)
        found = memcpy(queue->staging, found, bytes);
    task->x = queue->buffer;
    task->host = found;
    return queue->device->backend->upload(queue, found, queue->buffer, bytes, error);
}

allfold_status axis_stream_fold(const struct axis_stream *s, const struct axis_task *task, const unsigned char **partials,
                                struct error *error)
{
    const struct axis_part *const piece = &task->piece;
    const struct backend *const backend = task->queue->device->backend;
    const struct box box = {piece->outer, piece->length, piece->inner, piece->length * piece->inner, piece->inner};
    const struct axis_work work = {.monoid = s->monoid, .type = s->array->type, .x = task->x, .box = box, .first = piece->l,
                                   .partials = (char *)task->queue->buffer + s->partials_at, .bytes = s->more_at - s->partials_at};
    const void *found = NULL;
    phase_enter(s->ctx->comm.progress, PHASE_FOLD);
    if (backend->fold_axis(task->queue, &work, error) == ALLFOLD_OK && axis_missing_fold(s, task, error) == ALLFOLD_OK
        && backend->download(task->queue, work.partials, piece->outer * piece->inner * s->stride, &found, error) == ALLFOLD_OK
        && backend->wait(task->queue, error) == ALLFOLD_OK)
        *partials = found;
    if (error->status == ALLFOLD_OK)
        axis_missing_take(s, task, (unsigned char *)(uintptr_t)found);
    return error->status;
}

allfold_status axis_stream_store(const struct axis_stream *s, const struct axis_task *task, struct sink *sink, const void *y,
                                 struct error *error)
{
    const struct runs runs = runs_of(s, &task->piece);
    const size_t bytes = allfold_type_bytes(sink->type) * runs.elements;
    phase_enter(s->ctx->comm.progress, PHASE_WRITE);
    for (uint64_t run = 0; run < runs.planes * runs.lines && error->status == ALLFOLD_OK; run++)
        sink->write(sink, position(s, &task->piece, run / runs.lines, run % runs.lines), runs.elements, (const char *)y + run * bytes,
                    error);
    return error->status;
}
