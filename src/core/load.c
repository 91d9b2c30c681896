/* Brings the elements of a piece to the device, and results to a sink: see pieces.h. */
#include "core/pieces.h"

#include <string.h>

/* ---- reading */

/* Says which elements are missing, if they must not be. */
static allfold_status refuse_missing(const struct pieces *p, struct error *error)
{
    if (source_check(p->array->source, error) == ALLFOLD_OK)
        error_set(error, ALLFOLD_NO_VALUE, "elements of the array are missing: all are needed here");
    return error->status;
}

/* Reads a run, whose first element is number `at` of the piece. Returns where it lies in host memory; NULL after an error. */
static const void *read_run(const struct pieces *p, struct reader *reader, struct lane *lane, const struct read_request *request,
                            uint64_t at, struct error *error)
{
    struct piece piece = {.count = request->range.count};
    if (reader_read(reader, request, &piece, error) != ALLFOLD_OK)
        return NULL;
    if (piece.count == request->range.count)
        return piece.elements;
    if (!p->array->omits) {
        refuse_missing(p, error);
        return NULL;
    }
    if (piece_closes_gaps(p, &lane->part)) {
        lane->count = piece.count;
        lane->kept = piece.kept;
    } else {
        lane->holes = true;
        missing_spread(p, &piece, request->range.count, (unsigned char *)lane_host(lane, p->there_at + at));
    }
    return piece.elements;
}

/* Elements that this worker takes next, if they follow those of the piece. */
static uint64_t ahead_of(const struct pieces *p, const struct lane *lane)
{
    const uint64_t end = p->part.l + p->part.length - lane->part.l - lane->part.length, full = p->outer * p->length * p->inner;
    if (p->stripes > 1)
        return 0;
    return p->segments > 1 ? u64_min(lane->ahead * p->length, end) * p->inner : lane->ahead * full;
}

/* Boxes of a part that are copied between the memory of an array with a layout and dense elements. */
struct copying {
    char *array, *dense;
    size_t bytes; /* of an element */
    bool back;           /* to the array */
    struct queue *queue; /* whose device copies them; NULL: the host does */
    struct error *error;
};

static void copy_box(void *user, const struct strided_copy *box, int64_t from_at, int64_t to_at)
{
    const struct copying *const c = user;
    char *const array = c->array + from_at * (int64_t)c->bytes, *const dense = c->dense + to_at * (int64_t)c->bytes;
    struct strided_copy copy = *box;
    copy.from = c->back ? dense : array;
    copy.to = c->back ? array : dense;
    copy.bytes = c->bytes;
    if (c->back)
        strided_reverse(&copy);
    if (c->queue == NULL)
        strided_copy_host(&copy);
    else if (c->error->status == ALLFOLD_OK)
        c->queue->device->backend->copy_strided(c->queue, &copy, c->error);
}

allfold_status piece_scatter(const struct pieces *p, const struct lane *lane, const void *y, size_t bytes, void *array, struct error *error)
{
    struct copying c = {array, (char *)(uintptr_t)y, bytes, true, lane->queue, error};
    pieces_visit(p, &lane->part, copy_box, &c);
    return error->status;
}

allfold_status piece_gather(const struct pieces *p, const struct part *part, struct queue *queue, void *dense, struct error *error)
{
    struct copying c = {(char *)(uintptr_t)p->array->memory, dense, allfold_type_bytes(p->array->type), false, queue, error};
    phase_enter(p->ctx->comm.progress, PHASE_UPLOAD);
    pieces_visit(p, part, copy_box, &c);
    return error->status;
}

/* Copies them together, if they are several runs. Returns where they lie in host memory. */
static const void *gather_runs(const struct pieces *p, const struct lane *lane)
{
    const struct runs runs = pieces_runs(p, &lane->part);
    const size_t bytes = allfold_type_bytes(p->array->type), run_bytes = runs.elements * bytes;
    char *const all = lane->queue->staging;
    if (p->array->layout != NULL) {
        struct copying c = {.array = (char *)(uintptr_t)p->array->memory, .dense = all, .bytes = bytes};
        pieces_visit(p, &lane->part, copy_box, &c);
        return all;
    }
    if (runs.planes * runs.lines == 1)
        return piece_memory(p, &lane->part);
    for (uint64_t run = 0; run < runs.planes * runs.lines; run++)
        memcpy(all + run * run_bytes,
               (const char *)p->array->memory + pieces_position(p, &lane->part, run / runs.lines, run % runs.lines) * bytes, run_bytes);
    return all;
}

/* Reads all runs of the piece. Returns where it lies, dense, in host memory; NULL after an error. */
static const void *read_runs(const struct pieces *p, struct worker *worker, struct lane *lane, struct error *error)
{
    const struct runs runs = pieces_runs(p, &lane->part);
    const size_t bytes = allfold_type_bytes(p->array->type) * runs.elements;
    char *const all = lane->queue->staging;
    if (pieces_are_chunked(p) && !p->flat)
        return chunks_read(p, worker, lane, error) == ALLFOLD_OK ? all : NULL;
    struct read_request request = {{pieces_position(p, &lane->part, 0, 0), runs.elements}, ahead_of(p, lane), all, false};
    if (runs.planes * runs.lines == 1)
        return read_run(p, worker->reader, lane, &request, 0, error);
    request.ahead = 0;
    request.buffer = all + p->bounce_at;
    for (uint64_t run = 0; run < runs.planes * runs.lines; run++) {
        request.range.first = pieces_position(p, &lane->part, run / runs.lines, run % runs.lines);
        const void *const found = read_run(p, worker->reader, lane, &request, run * runs.elements, error);
        if (found == NULL)
            return NULL;
        memcpy(all + run * bytes, found, bytes);
    }
    return all;
}

/* Whether the elements lie in the caller's memory, at `from`, from which the device copies quickly. */
static bool is_pinned(struct device *device, const char *from, size_t bytes, struct error *error)
{
    enum place first = PLACE_HOST, last = PLACE_HOST;
    return device->backend->locate(device, from, &first, error) == ALLFOLD_OK && first == PLACE_PINNED
           && device->backend->locate(device, from + bytes - 1, &last, error) == ALLFOLD_OK && last == PLACE_PINNED;
}

static void begin(const struct pieces *p, struct lane *lane)
{
    lane->part = pieces_at(p, lane->number);
    lane->count = part_elements(&lane->part);
    lane->counts = p->array->omits && piece_closes_gaps(p, &lane->part) ? &lane->count : NULL;
    missing_begin(p, lane);
}

static allfold_status read_piece(const struct pieces *p, struct worker *worker, struct lane *lane, struct error *error)
{
    phase_enter(p->ctx->comm.progress, PHASE_READ);
    if (lane->count > 0)
        lane->host = p->array->memory != NULL ? gather_runs(p, lane) : read_runs(p, worker, lane, error);
    missing_count(p, lane);
    return error->status;
}

allfold_status piece_read(const struct pieces *p, struct worker *worker, struct lane *lane, struct error *error)
{
    begin(p, lane);
    return read_piece(p, worker, lane, error);
}

/* ---- to the device */

/* An operand's elements in host memory, and the part of the queue's buffers through which they go. */
struct operand {
    bool in_memory; /* of the caller's, which may be pinned */
    const char *host;
    size_t at;
    void *to; /* in device memory */
};

static bool is_staged(const struct queue *queue, const char *from)
{
    return from >= (char *)queue->staging && from < (char *)queue->staging + queue->bytes;
}

/* Starts their copy, if the device has memory of its own. */
static allfold_status upload(const struct pieces *p, struct lane *lane, const struct operand *operand, const void **x, struct error *error)
{
    struct queue *const queue = lane->queue;
    struct device *const device = queue->device;
    const size_t bytes = (size_t)lane->count * allfold_type_bytes(p->array->type);
    const char *from = operand->host;
    *x = device->backend->own_memory ? operand->to : from;
    if (!device->backend->own_memory || bytes == 0)
        return ALLFOLD_OK;
    phase_enter(p->ctx->comm.progress, PHASE_UPLOAD);
    const bool staged = is_staged(queue, from);
    const bool pinned = !staged && operand->in_memory && is_pinned(device, from, bytes, error);
    if (!staged && !pinned)
        from = memcpy(lane_host(lane, operand->at), from, bytes);
    return error->status != ALLFOLD_OK ? error->status : device->backend->copy(queue, from, operand->to, bytes, error);
}

/* Reads the second operand, to its own part of the queue's buffers. */
static allfold_status read_second(const struct pieces *p, struct worker *worker, struct lane *lane, struct piece *piece, struct error *error)
{
    const struct read_request request = {{lane->part.l, lane->part.length}, ahead_of(p, lane), lane_host(lane, p->second_at), false};
    *piece = (struct piece){.count = request.range.count};
    phase_enter(p->ctx->comm.progress, PHASE_READ);
    reader_read(worker->second, &request, piece, error);
    lane->second = piece->elements;
    return error->status;
}

/* Where the elements, of that type, are, or are to be kept, on the device: those of the row from `place` on. NULL: nowhere. */
static char *placed(const struct pieces *p, const struct device_data *data, allfold_type type, const struct lane *lane, uint64_t elements)
{
    const uint64_t place = lane->part.l - p->part.l;
    return data != NULL && place + lane->part.length <= elements ? data->memory + place * allfold_type_bytes(type) : NULL;
}

/* The first operand's place in device memory. */
static void *first_place(const struct pieces *p, const struct lane *lane)
{
    char *const keep = p->x != NULL ? placed(p, p->x, p->array->type, lane, p->x->capacity) : NULL;
    return keep != NULL ? keep : p->made != NULL ? p->made : lane->queue->buffer;
}

/* Reads the first operand, unless the device makes it. */
static allfold_status read_first(const struct pieces *p, struct worker *worker, struct lane *lane, struct error *error)
{
    const struct source *const source = p->array->source;
    const struct draw *const draw = source != NULL ? source->draw : NULL;
    const struct backend *const backend = p->ctx->device->backend;
    if (!p->flat || draw == NULL || !backend->own_memory)
        return read_piece(p, worker, lane, error);
    phase_enter(p->ctx->comm.progress, PHASE_READ);
    void *const to = first_place(p, lane);
    lane->x = to;
    return backend->generate(lane->queue, draw, (struct range){lane->part.l, lane->part.length}, to, error);
}

/* Starts one copy of both operands, because copies cost the link some microseconds each. False: they have not both been read to the staging buffer,
   or do not both go to the queue's. */
static bool upload_both(const struct pieces *p, struct lane *lane, struct error *error)
{
    struct queue *const queue = lane->queue;
    const struct backend *const backend = queue->device->backend;
    const size_t bytes = allfold_type_bytes(p->array->type);
    if (!backend->own_memory || lane->count == 0 || !is_staged(queue, lane->host) || !is_staged(queue, lane->second)
        || first_place(p, lane) != queue->buffer)
        return false;
    const int64_t apart = lane->second - lane->host;
    if (apart < (int64_t)(lane->count * bytes) || apart % (int64_t)bytes != 0)
        return false;
    const struct strided_copy copy = {.from = lane->host, .to = queue->buffer, .bytes = bytes, .dimensions = 2, .extent = {2, lane->count},
                                      .from_step = {apart / (int64_t)bytes, 1}, .to_step = {(int64_t)(p->second_at / bytes), 1}};
    phase_enter(p->ctx->comm.progress, PHASE_UPLOAD);
    lane->x = queue->buffer;
    lane->y = lane_device(lane, p->second_at);
    backend->copy_strided(queue, &copy, error);
    return true;
}

/* Reads what the device has not, and brings it there. */
static allfold_status load_operands(const struct pieces *p, struct worker *worker, struct lane *lane, struct error *error)
{
    const bool in_memory = p->array->source == NULL || p->array->source->memory != NULL;
    const bool second = p->second != NULL && lane->y == NULL;
    struct piece piece;
    if (lane->x == NULL && read_first(p, worker, lane, error) != ALLFOLD_OK)
        return error->status;
    if (second && read_second(p, worker, lane, &piece, error) != ALLFOLD_OK)
        return error->status;
    if (p->rule != NULL && second && lane->x == NULL)
        missing_join(p, lane, &piece);
    if (second && lane->x == NULL && upload_both(p, lane, error))
        return error->status;
    if (lane->x == NULL)
        upload(p, lane, &(struct operand){in_memory, lane->host, 0, first_place(p, lane)}, &lane->x, error);
    if (second)
        upload(p, lane, &(struct operand){p->second->memory != NULL, lane->second, p->second_at, lane_device(lane, p->second_at)}, &lane->y, error);
    return error->status;
}

/* Elements of an operand on the device as it needs them; NULL if they are elsewhere. Those of another type are converted, to `to`: each is the
   sum of a row of its own, which has a value. */
static const void *found_there(const struct pieces *p, const struct source *source, const struct device_data *data, struct lane *lane, void *to,
                               struct error *error)
{
    const allfold_type type = p->array->type, stored = source != NULL && source->memory_type != ALLFOLD_TYPE_NONE ? source->memory_type : type;
    const uint64_t n = lane->part.length;
    const char *const found = data != NULL ? placed(p, data, stored, lane, data->elements) : NULL;
    if (found == NULL || stored == type)
        return found;
    const struct axis_finish finish = {.fold = ALLFOLD_SUM, .level = ALLFOLD_LEVEL_FAST, .count = 1, .format = type, .outputs = 1,
                                       .of = {{.values = to, .type = type}}, .run = n, .step = n};
    const struct axis_work work = {.monoid = fold_monoid(ALLFOLD_SUM, ALLFOLD_LEVEL_FAST, stored), .type = stored, .x = found,
                                   .box = {n, 1, 1, 1, 1}, .finish = &finish};
    lane->queue->device->backend->fold_axis(lane->queue, &work, error);
    return to;
}

static allfold_status load_elements(const struct pieces *p, struct worker *worker, struct lane *lane, struct error *error)
{
    const struct part *const part = &lane->part;
    begin(p, lane);
    lane->box = (struct box){part->outer, part->length, part->inner, part->length * part->inner, part->inner};
    if (p->array->in_place) {
        lane->box.outer_stride = p->array->outer_stride;
        lane->box.axis_stride = p->array->axis_stride;
        lane->x = piece_memory(p, part);
        return ALLFOLD_OK;
    }
    if (p->array->gathered) {
        lane->x = lane->queue->buffer;
        piece_gather(p, part, lane->queue, lane->queue->buffer, error);
        atomic_fetch_add(&p->ctx->comm.progress->done, part_elements(part) * allfold_type_bytes(p->array->type));
        return error->status;
    }
    lane->x = found_there(p, p->array->source, p->x, lane, lane->queue->buffer, error);
    lane->y = found_there(p, p->second, p->y, lane, lane_device(lane, p->second_at), error);
    if (slab_serves(p, lane))
        missing_count(p, lane);
    if (load_operands(p, worker, lane, error) != ALLFOLD_OK)
        return error->status;
    atomic_fetch_add(&p->ctx->comm.progress->done, part_elements(part) * allfold_type_bytes(p->array->type));
    return ALLFOLD_OK;
}

allfold_status piece_load(const struct pieces *p, struct worker *worker, struct lane *lane, struct error *error)
{
    if (load_elements(p, worker, lane, error) == ALLFOLD_OK && p->array->weights != NULL)
        weights_load(p, lane, error);
    return error->status;
}

/* ---- results */

/* Writes the results of a flat array to where their elements lie. */
static allfold_status store_flat(const struct pieces *p, const struct lane *lane, struct sink *sink, const char *y, struct error *error)
{
    struct source *const source = p->array->source;
    for (uint64_t done = 0, run; done < lane->count && error->status == ALLFOLD_OK; done += run) {
        const uint64_t index = chunking_index(source->chunking, lane->part.l + done, &run);
        run = u64_min(run, lane->count - done);
        sink->write(sink, index, run, y + done * allfold_type_bytes(sink->type), error);
    }
    return error->status;
}

/* The results of boxes, in the order of the source's elements. */
struct storing {
    struct sink *sink;
    const char *y;
    struct error *error;
};

static void store_box(void *user, const struct strided_copy *box, int64_t at, int64_t y_at)
{
    const struct storing *const s = user;
    const size_t bytes = allfold_type_bytes(s->sink->type);
    const bool runs = box->dimensions > 0 && box->from_step[box->dimensions - 1] == 1 && box->to_step[box->dimensions - 1] == 1;
    const uint32_t dimensions = box->dimensions - runs;
    uint64_t lines = 1;
    for (uint32_t d = 0; d < dimensions; d++)
        lines *= box->extent[d];
    for (uint64_t line = 0; line < lines && s->error->status == ALLFOLD_OK; line++) {
        int64_t to = at, from = y_at;
        uint64_t rest = line;
        for (uint32_t d = dimensions; d-- > 0; rest /= box->extent[d]) {
            to += (int64_t)(rest % box->extent[d]) * box->from_step[d];
            from += (int64_t)(rest % box->extent[d]) * box->to_step[d];
        }
        s->sink->write(s->sink, (uint64_t)to, runs ? box->extent[dimensions] : 1, s->y + from * (int64_t)bytes, s->error);
    }
}

allfold_status piece_store(const struct pieces *p, const struct lane *lane, struct sink *sink, const void *y, struct error *error)
{
    const struct runs runs = pieces_runs(p, &lane->part);
    const size_t bytes = allfold_type_bytes(sink->type) * runs.elements;
    phase_enter(p->ctx->comm.progress, PHASE_WRITE);
    if (!p->flat && part_elements(&lane->part) == 0) /* of a rank that has none, which may lie behind the array */
        return error->status;
    if (p->flat && pieces_are_chunked(p))
        return store_flat(p, lane, sink, y, error);
    if (p->array->layout != NULL && p->array->memory != NULL) {
        struct copying c = {.array = sink->memory, .dense = (char *)(uintptr_t)y, .bytes = allfold_type_bytes(sink->type), .back = true};
        pieces_visit(p, &lane->part, copy_box, &c);
        return error->status;
    }
    if (p->array->layout != NULL && p->array->layout->scattered) {
        pieces_visit(p, &lane->part, store_box, &(struct storing){sink, y, error});
        return error->status;
    }
    for (uint64_t run = 0; run < runs.planes * runs.lines && error->status == ALLFOLD_OK; run++)
        sink->write(sink, pieces_position(p, &lane->part, run / runs.lines, run % runs.lines), runs.elements, (const char *)y + run * bytes,
                    error);
    return error->status;
}
