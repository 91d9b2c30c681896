/* Order statistics of elements that pass through the queues of a team, piece by piece: see order_passes.h. What is kept of them is in host
   memory, and so is the progress that a caller keeps (core/resumable.h): that of the first pass, which is the only one, mostly. */
#include "core/order_passes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HOST_BYTES (UINT64_C(1) << 30) /* of elements that the ranks of a host keep in its memory */

/* Pieces lie where they do in the part, or, if some of its elements are left out, or it is in chunks, in any order, without gaps. */
static allfold_status load_piece(struct worker *worker, struct lane *lane, struct error *error)
{
    const struct pieces *const p = worker->team->pieces;
    struct order *const o = worker->team->user;
    const size_t each = order_key_bytes(o);
    if (piece_load(p, worker, lane, error) != ALLFOLD_OK)
        return error->status;
    const uint64_t before = atomic_fetch_add(&o->loaded_elements, lane->count);
    char *const to = o->x.memory + (o->is_packed ? before : lane->part.l - p->part.l) * each;
    return lane->x == to ? ALLFOLD_OK : p->ctx->device->backend->copy(lane->queue, lane->x, to, lane->count * each, error);
}

static allfold_status wait_piece(struct worker *worker, struct lane *lane, struct error *error)
{
    return worker->team->pieces->ctx->device->backend->wait(lane->queue, error);
}

/* Elements that several passes take are made, or read, once, if they fit the device; in host memory, if several passes are sure, or a second is due. Else, or if
   indices are wanted of chunks, or behind what is left out, each pass reads them. */
void order_load(struct order *o, bool several)
{
    static const struct team_work work = {load_piece, wait_piece, NULL};
    struct allfold_context *const ctx = o->ctx;
    const struct backend *const backend = ctx->device->backend;
    const struct job job = order_job(o);
    const struct axis_array array = job_array(&job);
    const uint64_t count = job.range.count, bytes = count * order_key_bytes(o);
    const uint64_t room = backend->own_memory ? ctx->device->memory / 2 : several ? HOST_BYTES / (uint64_t)ctx->comm.local_size : 0;
    struct error ignored = {0};
    void *memory;
    o->is_packed = job.source->chunking != NULL || job.source->leaves_out;
    if (bytes > room || (o->is_packed && o->indexed) || backend->allocate(ctx->device, bytes, &memory, &ignored) != ALLFOLD_OK)
        return;
    o->x = (struct device_data){.memory = memory, .capacity = count, .owned = true};
    order_read(o);
    atomic_store(&o->loaded_elements, job_is_generated(ctx, &job) ? count : 0);
    if (job_is_generated(ctx, &job)) {
        if (backend->generate(ctx->queue, job.source->draw, job.range, memory, o->error) == ALLFOLD_OK)
            backend->wait(ctx->queue, o->error);
    } else {
        struct pieces p = job_pieces(ctx, &job, &array, MONOID_sum);
        p.x = o->is_packed ? NULL : &o->x;
        pieces_cut_row(&p, job.range, job.source->chunking != NULL && job.source->by_granule ? 1 : ctx->device->window_bytes, 0);
        struct team team = pieces_team(&p, (struct range){0, p.units}, 0, &work, o);
        if (team_run(&team, o->error) == ALLFOLD_OK && progress_check(ctx->comm.progress, o->error) == ALLFOLD_OK)
            source_check(job.source, o->error);
        core_log(ctx, "%" PRIu64 " elements were read, and stay in memory for all passes", (uint64_t)o->loaded_elements);
    }
    o->x.elements = o->loaded_elements;
    o->loaded = (struct source){.type = o->input->type, .granule = 1, .memory = memory};
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
    if (backend->copy(lane->queue, lane_host(lane, s->counts_at), work.counts, s->counts, error) != ALLFOLD_OK
        || backend->order(lane->queue, &work, error) != ALLFOLD_OK)
        return error->status;
    return backend->copy(lane->queue, work.counts, lane_host(lane, s->counts_at), s->counts, error);
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
    const size_t each = order_key_bytes(o);
    const char *const keys = lane_host(lane, s->keys_at);
    const uint64_t *const own = lane_host(lane, s->indices_at);
    for (uint64_t done = 0, count; done < kept; done += count) {
        if (set->count == set->capacity && o->trim != NULL)
            o->trim(o);
        count = u64_min(kept - done, set->capacity - set->count);
        if (set->count + count > set->room && order_host_room(o, u64_min(set->capacity, 2 * (set->count + count))) != ALLFOLD_OK)
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
        && (backend->copy(lane->queue, lane_device(lane, s->keys_at), lane_host(lane, s->keys_at), kept * order_key_bytes(o), error) != ALLFOLD_OK
            || (o->indexed
                && backend->copy(lane->queue, lane_device(lane, s->indices_at), lane_host(lane, s->indices_at), kept * 8, error) != ALLFOLD_OK)
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

/* ---- progress of the first pass */

/* Behind it come the counters, the set's keys and their indices. */
struct saved {
    uint64_t shards, seen, kept, overflowed;
    double range[2];
};

allfold_status order_progress_load(struct order *o, uint64_t call)
{
    struct resumable *const progress = o->input->progress;
    struct saved saved;
    progress->monoid = MONOID_sum;
    progress->type = o->input->type;
    progress->call = call;
    progress->shard_elements = o->input->source != NULL ? pieces_elements(o->input->source, o->input->type, o->ctx->device->shard_bytes) : 0;
    if (progress_load(o->ctx, progress, o->error) == ALLFOLD_OK && progress->state_bytes >= sizeof saved) {
        memcpy(&saved, progress->state, sizeof saved);
        memcpy(o->range, saved.range, sizeof saved.range);
        o->has_range = true;
    }
    return o->error->status;
}

static size_t state_bytes(const struct stream *s, uint64_t kept)
{
    return sizeof(struct saved) + s->counts + kept * (order_key_bytes(s->o) + (s->o->indexed ? sizeof *s->o->set.indices : 0));
}

static void save(const struct stream *s, uint64_t shards)
{
    struct order *const o = s->o;
    struct resumable *const progress = o->input->progress;
    if (o->trim != NULL)
        o->trim(o);
    const struct order_set *const set = &o->set;
    const size_t keys = set->count * order_key_bytes(o);
    char *const state = malloc(state_bytes(s, set->count));
    struct error own = {0}; /* a run that was asked to stop saves, too */
    if (state == NULL) {
        error_set(o->error, ALLFOLD_NO_MEMORY, "no memory for progress of %zu bytes", state_bytes(s, set->count));
        return;
    }
    *(struct saved *)(void *)state = (struct saved){shards, o->seen, set->count, set->overflowed, {o->range[0], o->range[1]}};
    memcpy(state + sizeof(struct saved), o->counts, s->counts);
    memcpy(state + sizeof(struct saved) + s->counts, set->keys, keys);
    if (o->indexed)
        memcpy(state + sizeof(struct saved) + s->counts + keys, set->indices, set->count * sizeof *set->indices);
    progress->state = state;
    progress->state_bytes = state_bytes(s, set->count);
    if (progress_save(o->ctx, progress, &own) != ALLFOLD_OK && !order_failed(o))
        *o->error = own;
    progress_free_state(progress);
}

/* The shards that are done. */
static uint64_t restore(struct stream *s, uint64_t shards)
{
    struct order *const o = s->o;
    struct resumable *const progress = o->input->progress;
    const char *const state = progress->state;
    struct saved saved;
    if (state == NULL)
        return 0;
    if (progress->state_bytes >= sizeof saved)
        memcpy(&saved, state, sizeof saved);
    if (progress->state_bytes < sizeof saved || saved.shards > shards || saved.kept > o->set.capacity
        || progress->state_bytes != state_bytes(s, saved.kept)) {
        progress_refuse(o->error);
        return 0;
    }
    if (saved.kept > o->set.room && order_host_room(o, saved.kept) != ALLFOLD_OK)
        return 0;
    const char *const keys = state + sizeof saved + s->counts;
    memcpy(o->counts, state + sizeof saved, s->counts);
    memcpy(o->set.keys, keys, saved.kept * order_key_bytes(o));
    if (o->indexed)
        memcpy(o->set.indices, keys + saved.kept * order_key_bytes(o), saved.kept * sizeof *o->set.indices);
    o->seen = saved.seen;
    o->set.count = saved.kept;
    o->set.overflowed = saved.overflowed != 0;
    progress_free_state(progress);
    return saved.shards;
}

/* ---- */

/* All shards; those of the first pass that counts some at a time, if progress is kept. A run that is asked to stop has done all that it has begun. */
static void run_shards(struct stream *s, struct pieces *p)
{
    static const struct team_work work = {start_piece, finish_piece, NULL};
    struct order *const o = s->o;
    struct resumable *const progress = s->work->kind != ORDER_ENDS && !o->is_begun ? o->input->progress : NULL;
    struct team team = pieces_team(p, (struct range){0, p->units}, 0, &work, s);
    const uint64_t end = team.end, each = progress == NULL ? end : (uint64_t)o->ctx->device->workers * (progress->every > 0 ? 64 : 1);
    uint64_t done = progress != NULL ? restore(s, end) : 0;
    o->is_begun |= s->work->kind != ORDER_ENDS;
    if (progress != NULL)
        progress_tell(o->ctx, "shards", done, end, u64_min(team_pieces(&team, done) * p->length, o->input->range.count) * order_key_bytes(o));
    for (bool stopped = false; done < end && !stopped && !order_failed(o);) {
        team = pieces_team(p, (struct range){0, p->units}, 0, &work, s);
        team.next = done;
        team.end = u64_min(done + each, end);
        if (team_run(&team, o->error) != ALLFOLD_OK)
            return;
        stopped = team.next < team.end;
        done = team.next;
        if (progress != NULL && (stopped || progress_is_due(progress)))
            save(s, done);
    }
    if (!order_failed(o) && progress_check(o->ctx->comm.progress, o->error) == ALLFOLD_OK)
        source_check(o->input->source, o->error);
}

void order_run_pieces(struct order *o, const struct order_work *given, size_t counts)
{
    struct allfold_context *const ctx = o->ctx;
    const struct job job = order_job(o);
    const struct axis_array array = job_array(&job);
    struct pieces p = job_pieces(ctx, &job, &array, MONOID_sum);
    struct order_work own = *given;
    struct order_table table;
    struct stream s = {.o = o, .work = &own, .counts = counts};
    const bool by_granule = job.source->chunking != NULL && (o->indexed || job.source->by_granule);
    pieces_cut_row(&p, job.range, by_granule ? 1 : ctx->device->window_bytes, 0);
    s.counts_at = p.more_at;
    s.keys_at = s.counts_at + pages(counts);
    s.indices_at = s.keys_at + (own.keys != NULL ? pages(p.length * order_key_bytes(o)) : 0);
    p.queue_bytes = u64_max(p.queue_bytes, s.indices_at + (o->indexed ? pages(p.length * sizeof *o->set.indices) : 0));
    own.type = o->input->type;
    if (own.table != NULL && ctx->device->backend->own_memory && in_place_open(ctx, o->input->stream, o->error) == ALLFOLD_OK) {
        order_upload(o, &own, counts, &table); /* of which only the table is used */
        ctx->device->backend->wait(in_place_queue(ctx), o->error);
    }
    pthread_mutex_init(&s.lock, NULL);
    if (!order_failed(o))
        run_shards(&s, &p);
    pthread_mutex_destroy(&s.lock);
}

/* Reads some elements here and there, in whole granules. */
void order_sample_source(struct order *o, uint64_t stride)
{
    struct source *const source = o->input->source;
    const struct range range = o->input->range;
    const size_t each = order_key_bytes(o);
    const uint64_t length = source->granule > 1 ? source->granule : ORDER_NEIGHBOURS, step = u64_max(length * stride, length);
    struct order_work work = {.kind = ORDER_SAMPLE, .stride = 1};
    struct reader *reader = NULL;
    void *const buffer = aligned_alloc(4096, pages(reader_room(length, each)));
    if (buffer == NULL)
        error_set(o->error, ALLFOLD_NO_MEMORY, "no memory for a sample");
    else
        source_open_reader(source, &reader, o->error);
    for (uint64_t i = 0; i * step < range.count && !order_failed(o); i++) {
        const uint64_t place = u64_min(order_sample_place(i, step), range.count - 1) / length * length;
        const struct read_request request = {{range.first + place, u64_min(length, range.count - place)}, 0, buffer, false};
        struct piece piece = {.count = request.range.count};
        if (reader_read(reader, &request, &piece, o->error) != ALLFOLD_OK || o->set.count + piece.count > o->set.capacity)
            break;
        if (o->set.count + piece.count > o->set.room && order_host_room(o, u64_min(o->set.capacity, 2 * (o->set.count + piece.count))) != ALLFOLD_OK)
            break;
        work.keys = o->set.keys + o->set.count * each;
        order_run_on_host(o, &work, &(struct order_elements){o->input->type, piece.elements, piece.count, 0});
        o->set.count += piece.count;
    }
    reader_close(reader);
    free(buffer);
}

