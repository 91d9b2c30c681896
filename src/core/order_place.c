/* Where the elements of order statistics are, and what is kept of them: in device memory or the host's, and passes over what is there: see
   order_passes.h. */
#include "core/order_passes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWERED_MOST = 1 << 20, /* bytes of counters that a kernel writes to host memory, which costs less than a copy and a wait for it; */
    ANSWERED_ROOM = 1 << 15  /* and elements, with their indices */
};
_Static_assert(ANSWERED_MOST + ANSWERED_ROOM * 16 <= IN_PLACE_BYTES, "the staging memory has room");
_Static_assert(ANSWERED_MOST + ORDER_SEARCH_COUNTS * 8 <= IN_PLACE_COUNTERS_BYTES, "so have the counters");

struct job order_job(const struct order *o)
{
    const bool loaded = o->x.owned;
    return (struct job){.type = o->input->type, .source = loaded ? (struct source *)(uintptr_t)&o->loaded : o->input->source,
                        .range = {loaded ? 0 : o->input->range.first, o->input->range.count}, .key = o->input->key, .stream = o->input->stream};
}

void order_read(struct order *o)
{
    if (o->reads++ == 0)
        return;
    progress_expect(o->ctx->comm.progress, o->input->range.count * order_key_bytes(o));
    if (o->x.elements == 0)
        core_log(o->ctx, "the elements are read once more: number %d", o->reads);
}

/* The device's memory for kept elements stays with the context. */
static void device_room(struct order *o, size_t each)
{
    struct allfold_context *const ctx = o->ctx;
    const uint64_t capacity = u64_min(o->set.capacity, u64_max(ctx->device->memory / 4 / each, ORDER_SAMPLE_MOST));
    const size_t keys = pages(capacity * order_key_bytes(o)), bytes = keys + (o->indexed ? capacity * sizeof *o->set.indices : 0);
    if (core_keep(ctx, &ctx->order, bytes, o->error) != ALLFOLD_OK)
        return;
    o->set.keys = ctx->order.memory;
    o->set.indices = o->indexed ? (uint64_t *)(void *)(o->set.keys + keys) : NULL;
    o->set.capacity = capacity;
}

/* Makes room in host memory, of which pages that are not used cost nothing. */
allfold_status order_host_room(struct order *o, uint64_t room)
{
    struct order_set *const set = &o->set;
    char *const keys = realloc(set->keys, room * order_key_bytes(o));
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
        device_room(o, order_key_bytes(o) + (o->indexed ? sizeof *o->set.indices : 0));
    else
        order_host_room(o, in_place ? capacity : u64_min(capacity, 1 << 16));
}

/* ---- work on it */

static void to_device(struct order *o, const void *from, char *to, size_t bytes)
{
    const struct backend *const backend = o->ctx->device->backend;
    if (order_failed(o) || in_place_upload(o->ctx, from, to, bytes, o->error) != ALLFOLD_OK)
        return;
    backend->enter(in_place_queue(o->ctx), o->input->stream, o->error);
}

/* What a table has in memory, one part behind the other. */
struct table_part {
    const void *from;
    size_t bytes, at;
};
enum { TABLE_KEYS, TABLE_CELLS, TABLE_SPLITS, TABLE_PARTS };

void order_upload(struct order *o, struct order_work *work, size_t counts, struct order_table *table)
{
    struct queue *const queue = in_place_queue(o->ctx);
    char *const memory = o->ctx->axis_memory, *const staging = queue->staging;
    work->counts = (uint64_t *)(void *)memory;
    work->clear = counts;
    if (table == NULL)
        return;
    *table = *work->table;
    work->table = table;
    const struct order_guess *const guess = &table->guess;
    struct table_part parts[TABLE_PARTS] = {
        [TABLE_KEYS] = {table->keys, guess->exact ? 0 : (table->count + 1) * allfold_type_bytes(work->type), 0},
        [TABLE_CELLS] = {table->cells, guess->exact ? 0 : ((size_t)guess->cells + 1) * sizeof *table->cells, 0},
        [TABLE_SPLITS] = {guess->splits, guess->coarse * sizeof *guess->splits, 0}};
    size_t all = pages(counts);
    for (int part = 0; part < TABLE_PARTS; part++) {
        parts[part].at = all;
        all += (parts[part].bytes + 15) / 16 * 16;
    }
    if (all > IN_PLACE_MEMORY_BYTES) {
        error_set(o->error, ALLFOLD_NO_MEMORY, "the device has no room for %zu bytes of counters and their table", all);
        return;
    }
    const bool once = all <= IN_PLACE_BYTES;
    for (int part = 0; part < TABLE_PARTS; part++) {
        if (!once)
            to_device(o, parts[part].from, memory + parts[part].at, parts[part].bytes);
        else if (parts[part].bytes > 0)
            memcpy(staging + parts[part].at, parts[part].from, parts[part].bytes);
    }
    if (once) {
        work->clear = 0;
        memset(staging, 0, counts);
        o->ctx->device->backend->copy(queue, staging, memory, all, o->error);
    }
    table->keys = memory + parts[TABLE_KEYS].at;
    table->cells = (uint32_t *)(void *)(memory + parts[TABLE_CELLS].at);
    table->guess.splits = (struct order_split *)(void *)(memory + parts[TABLE_SPLITS].at);
}

/* Brings what a pass has counted to o->counts; or short counters to o->short_counts. */
static void take_counts(struct order *o, const struct order_work *work, size_t counts)
{
    if (work->answer == NULL) {
        in_place_download(o->ctx, o->input->stream, o->ctx->axis_memory, o->counts, counts, o->error);
    } else if (o->ctx->device->backend->wait(in_place_queue(o->ctx), o->error) == ALLFOLD_OK) {
        o->counts = work->answer;
        o->short_counts = work->short_counts ? (uint32_t *)work->answer : NULL;
    }
}

bool order_is_answered(size_t counts, bool on_device) { return on_device && counts > 0 && counts <= ANSWERED_MOST; }

void order_find_slots(struct order *o, size_t counters, bool keeps)
{
    struct allfold_context *const ctx = o->ctx;
    o->slot_bytes = pages(counters * sizeof *o->counts) + (keeps && o->indexed ? ANSWERED_ROOM * 16 : 0);
    o->slots = NULL;
    if (ctx->window.pinned && order_is_answered(counters * sizeof *o->counts, true) && (size_t)ctx->comm.size * o->slot_bytes <= IN_PLACE_BYTES)
        o->slots = (char *)ctx->window.memory + (ctx->window.turns + 1) % 2 * IN_PLACE_BYTES;
}

static void run_on_device(struct order *o, const struct order_work *given, const struct order_elements *elements, size_t counts)
{
    struct allfold_context *const ctx = o->ctx;
    struct order_work work = *given;
    struct order_table table;
    size_t clean = 0;
    o->set.answer = NULL;
    if (in_place_open(ctx, o->input->stream, o->error) != ALLFOLD_OK)
        return;
    work.type = elements->type;
    work.x = elements->x;
    work.n = elements->count;
    work.first = elements->first;
    if (counts > 0)
        order_upload(o, &work, counts, work.table != NULL ? &table : NULL);
    if (order_is_answered(counts, true)) {
        if (work.table == NULL) { /* what a device has answered is 0 again */
            const size_t used = counts + (work.wanted_count > 0 ? ORDER_SEARCH_COUNTS * sizeof(uint64_t) : 0);
            work.counts = (uint64_t *)(void *)((char *)ctx->axis_memory + IN_PLACE_MEMORY_BYTES);
            work.clear = used > ctx->order_clean ? used : 0;
            clean = u64_max(used, ctx->order_clean);
            ctx->order_clean = 0;
        }
        work.short_counts = work.kind == ORDER_EVEN && o->takes_short;
        work.answer = o->slots != NULL ? (void *)order_slot(o, ctx->comm.rank) : in_place_queue(ctx)->staging;
        work.answered = work.short_counts ? (counts / 2 + 7) / 8 * 8 : counts;
        work.answer_room = work.indices != NULL ? ANSWERED_ROOM : 0;
    }
    if (!order_failed(o) && ctx->device->backend->order(in_place_queue(ctx), &work, o->error) == ALLFOLD_OK && counts > 0) {
        if (o->meanwhile != NULL)
            o->meanwhile(o);
        take_counts(o, &work, counts);
    }
    if (!order_failed(o) && clean > 0)
        ctx->order_clean = clean;
    if (!order_failed(o) && work.answer_room > 0 && o->counts[ORDER_KEPT] <= ANSWERED_ROOM)
        o->set.answer = (const char *)work.answer + counts;
    if (order_failed(o)) {
        struct error ignored = {0};
        ctx->device->backend->wait(in_place_queue(ctx), &ignored);
    }
}

void order_run_on_host(struct order *o, const struct order_work *given, const struct order_elements *elements)
{
    struct order_work work = *given;
    work.type = elements->type;
    work.x = elements->x;
    work.n = elements->count;
    work.first = elements->first;
    work.counts = o->counts;
    host_order(&work, o->ctx->device->threads, o->error);
}

void order_run_elements(struct order *o, const struct order_work *work, const struct order_elements *elements, size_t counts, bool on_device)
{
    phase_enter(o->ctx->comm.progress, PHASE_FOLD);
    if (on_device)
        run_on_device(o, work, elements, counts);
    else
        order_run_on_host(o, work, elements);
}

void order_set_read(struct order *o, void *keys)
{
    const size_t bytes = o->set.count * order_key_bytes(o);
    if (o->set.on_device)
        in_place_download(o->ctx, o->input->stream, o->set.keys, keys, bytes, o->error);
    else if (bytes > 0)
        memcpy(keys, o->set.keys, bytes);
}

struct order_set order_set_on_host(struct order *o)
{
    const struct order_set on_device = o->set;
    struct order_set there = on_device;
    if (!on_device.on_device || order_failed(o))
        return on_device;
    if (on_device.answer != NULL) {
        there.indices = (uint64_t *)(uintptr_t)on_device.answer;
        there.keys = (char *)(there.indices + ANSWERED_ROOM);
        return there;
    }
    o->set = (struct order_set){.capacity = on_device.capacity};
    if (order_host_room(o, u64_max(on_device.count, 1)) != ALLFOLD_OK)
        return o->set;
    in_place_download(o->ctx, o->input->stream, on_device.keys, o->set.keys, on_device.count * order_key_bytes(o), o->error);
    in_place_download(o->ctx, o->input->stream, on_device.indices, o->set.indices, on_device.count * sizeof *o->set.indices, o->error);
    o->set.count = on_device.count;
    return o->set;
}
