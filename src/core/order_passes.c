/* Passes of order statistics over the ranks' parts: order_passes.h. Elements that the device uses in place, and what is kept of them, take one
   call of the backend; others pass through the queues of a team, and what is kept of them is in host memory. */
#include "core/order_passes.h"

#include "comm/vectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static size_t key_bytes(const struct order *o) { return allfold_type_bytes(o->input->type); }

allfold_type order_key_type(const struct order *o)
{
    switch (key_bytes(o)) {
    case 1: return ALLFOLD_UINT8;
    case 2: return ALLFOLD_UINT16;
    case 4: return ALLFOLD_UINT32;
    default: return ALLFOLD_UINT64;
    }
}

/* ---- opening */

struct opening {
    uint64_t call, count;
    int32_t type;
};

/* What ranks have, and whether they make the same call. */
static void take_ranks(struct order *o, uint64_t call)
{
    const struct comm *const comm = &o->ctx->comm;
    const struct opening own = {.call = call ^ o->input->key, .count = o->input->range.count, .type = (int32_t)o->input->type};
    struct opening *const all = comm_gather_all(&o->ctx->comm, &own, sizeof own, o->error);
    uint64_t before = 0;
    for (int rank = 0; all != NULL && rank < comm->size; rank++) {
        before += rank < comm->rank ? all[rank].count : 0;
        o->positions += all[rank].count;
        if (all[rank].call != all[0].call || all[rank].type != all[0].type)
            o->error->shared = error_set(o->error, ALLFOLD_BAD_ARGUMENT, "the ranks made different calls: what is asked for, element types and "
                                         "options must be the same on all") != ALLFOLD_OK;
    }
    o->first = o->input->has_part ? before : o->input->range.first;
    free(all);
}

/* Elements that the device makes itself stay there, if they fit. */
static void generate(struct order *o, const struct job *job)
{
    const struct backend *const backend = o->ctx->device->backend;
    const uint64_t count = o->input->range.count, bytes = count * key_bytes(o);
    struct error ignored = {0};
    void *memory;
    if (!job_is_generated(o->ctx, job) || bytes > o->ctx->device->memory / 2
        || backend->allocate(o->ctx->device, bytes, &memory, &ignored) != ALLFOLD_OK)
        return;
    o->x = (struct device_data){.memory = memory, .elements = count, .owned = true};
    if (backend->generate(o->ctx->queue, o->input->source->draw, o->input->range, memory, o->error) == ALLFOLD_OK)
        backend->wait(o->ctx->queue, o->error);
}

static struct job job_of(const struct order *o)
{
    return (struct job){.type = o->input->type, .source = o->input->source, .range = o->input->range, .stream = o->input->stream};
}

void order_open(struct order *o, uint64_t call)
{
    struct allfold_context *const ctx = o->ctx;
    const struct job job = job_of(o);
    progress_expect(ctx->comm.progress, o->input->range.count * key_bytes(o));
    if (!order_failed(o) && o->input->range.count > 0
        && locate_memory(ctx, job.source->memory, job.range.count, &o->x, o->error) == ALLFOLD_OK && o->x.elements == 0)
        generate(o, &job);
    take_ranks(o, call);
}

void order_close(struct order *o)
{
    if (!o->set.on_device) {
        free(o->set.keys);
        free(o->set.indices);
    }
    free(o->counts);
    device_data_release(o->ctx, &o->x);
}

/* The device's memory for kept elements stays with the context. */
static void device_room(struct order *o, size_t each)
{
    struct allfold_context *const ctx = o->ctx;
    const struct backend *const backend = ctx->device->backend;
    const uint64_t capacity = u64_min(o->set.capacity, u64_max(ctx->device->memory / 4 / each, 1 << 16));
    const size_t keys = pages(capacity * key_bytes(o)), bytes = keys + (o->indexed ? capacity * sizeof *o->set.indices : 0);
    if (bytes > ctx->order_bytes) {
        if (ctx->order_memory != NULL)
            backend->release(ctx->device, ctx->order_memory);
        ctx->order_memory = NULL;
        ctx->order_bytes = 0;
        if (backend->allocate(ctx->device, bytes, &ctx->order_memory, o->error) != ALLFOLD_OK)
            return;
        ctx->order_bytes = bytes;
    }
    o->set.keys = ctx->order_memory;
    o->set.indices = o->indexed ? (uint64_t *)(void *)(o->set.keys + keys) : NULL;
    o->set.capacity = capacity;
}

/* Makes room in host memory, of which pages that are not used cost nothing. */
static allfold_status host_room(struct order *o, uint64_t room)
{
    struct order_set *const set = &o->set;
    char *const keys = realloc(set->keys, room * key_bytes(o));
    set->keys = keys != NULL ? keys : set->keys;
    uint64_t *const indices = o->indexed ? realloc(set->indices, room * sizeof *indices) : NULL;
    set->indices = indices != NULL ? indices : set->indices;
    if (keys == NULL || (o->indexed && indices == NULL))
        return error_set(o->error, ALLFOLD_NO_MEMORY, "no memory to keep %" PRIu64 " elements", room);
    set->room = room;
    return ALLFOLD_OK;
}

void order_room(struct order *o, uint64_t capacity)
{
    const bool in_place = o->x.elements > 0;
    if (order_failed(o))
        return;
    o->set.capacity = capacity;
    o->set.on_device = in_place && o->ctx->device->backend->own_memory;
    if (o->set.on_device)
        device_room(o, key_bytes(o) + (o->indexed ? sizeof *o->set.indices : 0));
    else
        host_room(o, in_place ? capacity : u64_min(capacity, 1 << 16));
}

/* ---- in place */

/* Elements, or keys, in memory that the work uses where it is. */
struct elements {
    allfold_type type;
    const void *x;
    uint64_t count, first;
};

static void to_device(struct order *o, const void *from, char *to, size_t bytes)
{
    const struct backend *const backend = o->ctx->device->backend;
    if (order_failed(o) || in_place_upload(o->ctx, from, to, bytes, o->error) != ALLFOLD_OK)
        return;
    backend->enter(in_place_queue(o->ctx), o->input->stream, o->error);
}

static void from_device(struct order *o, const char *from, void *to, size_t bytes)
{
    const struct backend *const backend = o->ctx->device->backend;
    struct queue *const queue = in_place_queue(o->ctx);
    for (size_t start = 0; start < bytes && !order_failed(o); start += IN_PLACE_BYTES) {
        const size_t piece = (size_t)u64_min(bytes - start, IN_PLACE_BYTES);
        backend->enter(queue, o->input->stream, o->error);
        if (backend->download(queue, from + start, piece, queue->staging, o->error) == ALLFOLD_OK && backend->wait(queue, o->error) == ALLFOLD_OK)
            memcpy((char *)to + start, queue->staging, piece);
    }
}

/* A table's bytes, and how many of them are cells. */
static size_t table_bytes(const struct order_table *table, size_t each, size_t *cells)
{
    *cells = table == NULL ? 0 : ((uint64_t)table->guess.cells + 1) * sizeof *table->cells;
    return table == NULL ? 0 : pages((table->count + 1) * each) + *cells;
}

/* Brings counters, which are 0, and the table to the device, at once if they are small. */
static void upload(struct order *o, struct order_work *work, size_t counts, struct order_table *table)
{
    struct queue *const queue = in_place_queue(o->ctx);
    char *const memory = o->ctx->axis_memory;
    const size_t each = allfold_type_bytes(work->type), at = pages(counts);
    size_t cells;
    const size_t all = at + table_bytes(work->table, each, &cells), cells_at = all - cells;
    const bool once = all <= IN_PLACE_BYTES;
    char *const staging = queue->staging;
    if (once) {
        memset(staging, 0, counts);
        if (table != NULL) {
            memcpy(staging + at, work->table->keys, (work->table->count + 1) * each);
            memcpy(staging + cells_at, work->table->cells, cells);
        }
        o->ctx->device->backend->upload(queue, staging, memory, table != NULL ? all : counts, o->error);
    } else {
        to_device(o, o->counts, memory, counts);
        to_device(o, work->table->keys, memory + at, (work->table->count + 1) * each);
        to_device(o, work->table->cells, memory + cells_at, cells);
    }
    work->counts = (uint64_t *)(void *)memory;
    if (table != NULL) {
        *table = *work->table;
        table->keys = memory + at;
        table->cells = (uint32_t *)(void *)(memory + cells_at);
        work->table = table;
    }
}

/* On the device: o->counts, which are 0, get what is counted. */
static void run_on_device(struct order *o, const struct order_work *given, const struct elements *elements, size_t counts)
{
    struct allfold_context *const ctx = o->ctx;
    struct order_work work = *given;
    struct order_table table;
    if (in_place_open(ctx, o->input->stream, o->error) != ALLFOLD_OK)
        return;
    work.type = elements->type;
    work.x = elements->x;
    work.n = elements->count;
    work.first = elements->first;
    if (counts > 0)
        upload(o, &work, counts, work.table != NULL ? &table : NULL);
    if (!order_failed(o) && ctx->device->backend->order(in_place_queue(ctx), &work, o->error) == ALLFOLD_OK && counts > 0)
        from_device(o, ctx->axis_memory, o->counts, counts);
    if (order_failed(o)) {
        struct error ignored = {0};
        ctx->device->backend->wait(in_place_queue(ctx), &ignored);
    }
}

static void run_on_host(struct order *o, const struct order_work *given, const struct elements *elements)
{
    struct order_work work = *given;
    work.type = elements->type;
    work.x = elements->x;
    work.n = elements->count;
    work.first = elements->first;
    work.counts = o->counts;
    host_order(&work, o->ctx->device->threads, o->error);
}

static void run_elements(struct order *o, const struct order_work *work, const struct elements *elements, size_t counts, bool on_device)
{
    phase_enter(o->ctx->comm.progress, PHASE_FOLD);
    if (on_device)
        run_on_device(o, work, elements, counts);
    else
        run_on_host(o, work, elements);
}

/* ---- piece by piece */

struct stream {
    struct order *o;
    const struct order_work *work;
    size_t counts;                         /* bytes */
    size_t counts_at, keys_at, indices_at; /* in a queue's buffers */
    pthread_mutex_t lock;                  /* of what the order has */
};

static allfold_status start_piece(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct pieces *const p = worker->team->pieces;
    const struct stream *const s = worker->team->user;
    const struct backend *const backend = lane->queue->device->backend;
    struct order_work work = *s->work;
    if (piece_load(p, worker, lane, error) != ALLFOLD_OK)
        return error->status;
    phase_enter(p->ctx->comm.progress, PHASE_FOLD);
    work.x = lane->x;
    work.n = lane->count;
    work.first = 0;
    work.counts = lane_device(lane, s->counts_at);
    work.keys = work.keys != NULL ? lane_device(lane, s->keys_at) : NULL;
    work.indices = work.indices != NULL ? lane_device(lane, s->indices_at) : NULL;
    work.capacity = p->length;
    work.limit = UINT64_MAX;
    memset(lane_host(lane, s->counts_at), 0, s->counts);
    if (backend->upload(lane->queue, lane_host(lane, s->counts_at), work.counts, s->counts, error) != ALLFOLD_OK
        || backend->order(lane->queue, &work, error) != ALLFOLD_OK)
        return error->status;
    return backend->download(lane->queue, work.counts, s->counts, lane_host(lane, s->counts_at), error);
}

/* The index of an element of the piece: number i of those that are there. */
static uint64_t index_of(const struct order *o, const struct lane *lane, uint64_t i)
{
    const struct chunking *const chunking = o->input->source->chunking;
    const uint64_t position = lane->part.l + (lane->kept != NULL ? encoding_select(lane->kept, i) : i);
    uint64_t run;
    return chunking != NULL ? chunking_index(chunking, position, &run) : position - o->input->range.first + o->first;
}

/* Appends what a piece has kept to the set, as far as there is room. */
static void append(struct order *o, const struct lane *lane, const struct stream *s, uint64_t kept, struct error *error)
{
    struct order_set *const set = &o->set;
    const size_t each = key_bytes(o);
    const char *const keys = lane_host(lane, s->keys_at);
    const uint64_t *const own = lane_host(lane, s->indices_at);
    for (uint64_t done = 0, count; done < kept; done += count) {
        if (set->count == set->capacity && o->trim != NULL)
            o->trim(o);
        count = u64_min(kept - done, set->capacity - set->count);
        if (set->count + count > set->room && host_room(o, u64_min(set->capacity, 2 * (set->count + count))) != ALLFOLD_OK)
            error_set(error, ALLFOLD_NO_MEMORY, "%s", o->error->text);
        set->overflowed = set->overflowed || count == 0;
        if (set->overflowed || error->status != ALLFOLD_OK)
            return;
        memcpy(set->keys + set->count * each, keys + done * each, count * each);
        for (uint64_t i = 0; o->indexed && i < count; i++)
            set->indices[set->count + i] = index_of(o, lane, own[done + i]);
        set->count += count;
    }
}

static allfold_status finish_piece(struct worker *worker, struct lane *lane, struct error *error)
{
    struct stream *const s = worker->team->user;
    struct order *const o = s->o;
    const struct backend *const backend = lane->queue->device->backend;
    const uint64_t *const counts = lane_host(lane, s->counts_at);
    if (backend->wait(lane->queue, error) != ALLFOLD_OK)
        return error->status;
    const uint64_t kept = counts[ORDER_KEPT];
    if (kept > 0
        && (backend->download(lane->queue, lane_device(lane, s->keys_at), kept * key_bytes(o), lane_host(lane, s->keys_at), error) != ALLFOLD_OK
            || (o->indexed
                && backend->download(lane->queue, lane_device(lane, s->indices_at), kept * 8, lane_host(lane, s->indices_at), error) != ALLFOLD_OK)
            || backend->wait(lane->queue, error) != ALLFOLD_OK))
        return error->status;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 1; i < s->counts / sizeof *counts; i++)
        o->counts[i] += counts[i];
    o->seen += lane->count;
    if (kept > 0)
        append(o, lane, s, kept, error);
    pthread_mutex_unlock(&s->lock);
    return error->status;
}

static void run_pieces(struct order *o, const struct order_work *given, size_t counts)
{
    static const struct team_work work = {start_piece, finish_piece, NULL};
    struct allfold_context *const ctx = o->ctx;
    const struct job job = job_of(o);
    const struct axis_array array = job_array(&job);
    struct pieces p = job_pieces(ctx, &job, &array, MONOID_sum);
    struct order_work own = *given;
    struct order_table table;
    struct stream s = {.o = o, .work = &own, .counts = counts};
    const bool by_granule = job.source->chunking != NULL && (o->indexed || job.source->by_granule);
    pieces_cut_row(&p, job.range, by_granule ? 1 : ctx->device->window_bytes, 0);
    s.counts_at = p.more_at;
    s.keys_at = s.counts_at + pages(counts);
    s.indices_at = s.keys_at + (own.keys != NULL ? pages(p.length * key_bytes(o)) : 0);
    p.queue_bytes = u64_max(p.queue_bytes, s.indices_at + (o->indexed ? pages(p.length * sizeof *o->set.indices) : 0));
    own.type = o->input->type;
    if (own.table != NULL && ctx->device->backend->own_memory && in_place_open(ctx, o->input->stream, o->error) == ALLFOLD_OK) {
        upload(o, &own, counts, &table); /* of which only the table is used */
        ctx->device->backend->wait(in_place_queue(ctx), o->error);
    }
    struct team team = pieces_team(&p, (struct range){0, p.units}, 0, &work, &s);
    pthread_mutex_init(&s.lock, NULL);
    if (!order_failed(o) && team_run(&team, o->error) == ALLFOLD_OK && progress_check(ctx->comm.progress, o->error) == ALLFOLD_OK)
        source_check(job.source, o->error);
    pthread_mutex_destroy(&s.lock);
}

/* ---- passes */

/* Counters that are 0. */
static void clear_counts(struct order *o, uint64_t count)
{
    if (count > o->most_counts) {
        free(o->counts);
        o->counts = malloc(count * sizeof *o->counts);
        o->most_counts = o->counts != NULL ? count : 0;
        if (o->counts == NULL) {
            error_set(o->error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " counters", count);
            return;
        }
    }
    memset(o->counts, 0, count * sizeof *o->counts);
}

/* Adds up what the ranks have counted. */
static void exchange(struct order *o, uint64_t count)
{
    uint64_t none[2];
    uint64_t *const counts = o->counts != NULL ? o->counts : none;
    if (o->counts != NULL) {
        counts[count] = o->seen;
        counts[count + 1] = o->set.overflowed;
    }
    if (comm_sum(&o->ctx->comm, counts, count + 2, o->error) != ALLFOLD_OK)
        return;
    o->seen = counts[count];
    o->set.overflowed = counts[count + 1] > 0;
}

void order_pass(struct order *o, struct order_work *work, uint64_t counters)
{
    const uint64_t count = ORDER_FIRST_COUNT + counters;
    if (o->error->shared)
        return;
    if (!order_failed(o))
        clear_counts(o, count + 2);
    if (work->kind == ORDER_BRACKETS) {
        o->set.count = 0;
        o->set.overflowed = false;
        work->keys = o->set.keys;
        work->indices = o->set.indices;
        work->capacity = o->set.capacity;
    }
    o->seen = 0;
    if (!order_failed(o) && o->x.elements > 0) {
        const struct elements elements = {o->input->type, o->x.memory, o->x.elements, o->first};
        run_elements(o, work, &elements, count * sizeof *o->counts, o->ctx->device->backend->own_memory);
        o->seen = o->x.elements;
        if (work->kind == ORDER_BRACKETS && !order_failed(o)) {
            o->set.count = u64_min(o->counts[ORDER_KEPT], o->set.capacity);
            o->set.overflowed = o->counts[ORDER_KEPT] > o->set.capacity;
        }
        atomic_fetch_add(&o->ctx->comm.progress->done, o->x.elements * key_bytes(o));
    } else if (!order_failed(o) && o->input->range.count > 0) {
        run_pieces(o, work, count * sizeof *o->counts);
    }
    exchange(o, count);
}

void order_pass_set(struct order *o, struct order_work *work, uint64_t counters)
{
    const uint64_t count = ORDER_FIRST_COUNT + counters;
    const struct elements elements = {order_key_type(o), o->set.keys, o->set.count, 0};
    if (o->error->shared)
        return;
    if (!order_failed(o))
        clear_counts(o, count + 2);
    if (!order_failed(o) && o->set.count > 0)
        run_elements(o, work, &elements, count * sizeof *o->counts, o->set.on_device);
    o->seen = o->set.count;
    exchange(o, count);
}

void order_set_to_host(struct order *o)
{
    const struct order_set on_device = o->set;
    o->set = (struct order_set){.capacity = on_device.capacity};
    if (host_room(o, u64_max(on_device.count, 1)) != ALLFOLD_OK)
        return;
    from_device(o, on_device.keys, o->set.keys, on_device.count * key_bytes(o));
    from_device(o, (const char *)on_device.indices, o->set.indices, on_device.count * sizeof *o->set.indices);
    o->set.count = on_device.count;
}

/* ---- a sample */

enum { NEIGHBOURS = 64 }; /* elements of a file that are read together */

/* Reads some elements here and there, in whole granules. */
static void sample_source(struct order *o, uint64_t stride)
{
    struct source *const source = o->input->source;
    const struct range range = o->input->range;
    const size_t each = key_bytes(o);
    const uint64_t length = source->granule > 1 ? source->granule : NEIGHBOURS, step = u64_max(length * stride, length);
    struct order_work work = {.kind = ORDER_SAMPLE, .stride = 1};
    struct reader *reader = NULL;
    void *const buffer = aligned_alloc(4096, pages(reader_room(length, each)));
    if (buffer == NULL)
        error_set(o->error, ALLFOLD_NO_MEMORY, "no memory for a sample");
    else
        source->open_reader(source, &reader, o->error);
    for (uint64_t i = 0; i * step < range.count && !order_failed(o); i++) {
        const uint64_t place = u64_min(order_sample_place(i, step), range.count - 1) / length * length;
        const struct read_request request = {{range.first + place, u64_min(length, range.count - place)}, 0, buffer, false};
        struct piece piece = {.count = request.range.count};
        if (reader->read(reader, &request, &piece, o->error) != ALLFOLD_OK || o->set.count + piece.count > o->set.capacity)
            break;
        if (o->set.count + piece.count > o->set.room && host_room(o, u64_min(o->set.capacity, 2 * (o->set.count + piece.count))) != ALLFOLD_OK)
            break;
        work.keys = o->set.keys + o->set.count * each;
        run_on_host(o, &work, &(struct elements){o->input->type, piece.elements, piece.count, 0});
        o->set.count += piece.count;
    }
    if (reader != NULL)
        reader->close(reader);
    free(buffer);
}

/* Leaves the NaNs of a sample, which come last, out of its count. */
static uint64_t count_numbers(struct order *o, uint64_t found)
{
    const allfold_type type = o->input->type, as = order_key_type(o);
    const uint64_t end = order_last(type) + 1;
    struct order_table table = {.guess = {.cells = 1}};
    struct order_work work = {.kind = ORDER_TABLE, .table = &table};
    if (order_last(type) == order_most(type))
        return found;
    order_table_make(&table, as, &end, 1, o->error);
    order_pass_set(o, &work, 2);
    order_table_free(&table);
    return o->error->status == ALLFOLD_OK ? o->counts[ORDER_FIRST_COUNT] : 0;
}

void order_sample(struct order *o, uint64_t count, uint64_t *found, uint64_t *worth)
{
    const uint64_t stride = u64_max(o->positions / u64_max(count, 1), 1);
    struct order_work work = {.kind = ORDER_SAMPLE, .stride = stride, .keys = o->set.keys};
    uint64_t sizes[2] = {0};
    o->set.count = 0;
    if (!order_failed(o) && o->x.elements > 0) {
        const struct elements elements = {o->input->type, o->x.memory, o->x.elements, 0};
        run_elements(o, &work, &elements, 0, o->ctx->device->backend->own_memory);
        o->set.count = o->x.elements / stride;
    } else if (!order_failed(o) && o->input->range.count > 0) {
        sample_source(o, stride);
    }
    sizes[0] = o->set.count;
    sizes[1] = o->x.elements > 0 ? o->set.count : o->set.count / 16;
    if (comm_sum(&o->ctx->comm, sizes, 2, o->error) == ALLFOLD_OK) {
        *found = o->input->nan != ALLFOLD_NAN_PROPAGATE ? count_numbers(o, sizes[0]) : sizes[0];
        *worth = u64_max(u64_min(sizes[1], *found), 1);
    }
}
