/* Passes of order statistics over the ranks' parts: order_passes.h. Elements that the device uses in place, and what is kept of them, take one
   call of the backend (order_place.c); others pass through the queues of a team (order_stream.c). */
#include "core/order_passes.h"

#include "comm/vectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening */

struct opening {
    uint64_t count;
    int32_t has_range, on_host;
    double range[2];
};

/* What ranks have, and whether they make the same call. */
static void take_ranks(struct order *o, uint64_t call)
{
    const struct comm *const comm = &o->ctx->comm;
    const struct opening own = {.count = o->input->range.count, .has_range = o->has_range, .on_host = !o->ctx->device->backend->own_memory,
                                .range = {o->range[0], o->range[1]}};
    const uint64_t number = (call ^ o->input->key) * 31 + o->input->type;
    struct opening *const all = comm_gather_call(&o->ctx->comm, number, &own, sizeof own, o->error);
    uint64_t before = 0;
    for (int rank = 0; all != NULL && rank < comm->size; rank++) {
        before += rank < comm->rank ? all[rank].count : 0;
        o->positions += all[rank].count;
        o->on_host |= all[rank].on_host != 0;
        if (all[rank].has_range) { /* the same on all that have one */
            memcpy(o->range, all[rank].range, sizeof o->range);
            o->has_range = true;
        }
    }
    o->first = o->input->has_part ? before : o->input->range.first;
    free(all);
}

void order_open(struct order *o, uint64_t call, bool several)
{
    struct allfold_context *const ctx = o->ctx;
    const struct job job = order_job(o);
    progress_expect(ctx->comm.progress, o->input->range.count * order_key_bytes(o));
    if (o->input->progress != NULL)
        order_progress_load(o, call);
    else if (!order_failed(o) && o->input->range.count > 0
        && locate_memory(ctx, job.source->memory, job.range.count, &o->x, o->error) == ALLFOLD_OK && o->x.elements == 0)
        order_load(o, several);
    take_ranks(o, call);
    if (ctx->comm.size > 1 && !order_failed(o)) /* the same on all ranks */
        window_open(ctx, o->error);
}

void order_close(struct order *o)
{
    if (!o->set.on_device) {
        free(o->set.keys);
        free(o->set.indices);
    }
    free(o->own_counts);
    device_data_release(o->ctx, &o->x);
}

/* ---- passes */

/* Counters that are 0, unless a device counts and answers: it may do so in a slot. */
static void prepare_counts(struct order *o, uint64_t count, bool on_device, bool keeps)
{
    const bool is_answered = order_is_answered(count * sizeof *o->counts, on_device);
    o->short_counts = NULL;
    o->short_parts = 1;
    order_find_slots(o, count, keeps);
    if (order_failed(o) || (is_answered && o->slots == NULL))
        return;
    if (count > o->most_counts) {
        free(o->own_counts);
        o->own_counts = malloc(count * sizeof *o->counts);
        o->most_counts = o->own_counts != NULL ? count : 0;
        if (o->own_counts == NULL)
            error_set(o->error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " counters", count);
    }
    o->counts = o->own_counts;
    if (o->counts != NULL && !is_answered)
        memset(o->counts, 0, count * sizeof *o->counts);
}

/* The same counters in the same memory, in 32 bits each. */
static uint32_t *shorten(uint64_t *counts, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint32_t own = (uint32_t)counts[i];
        memcpy((char *)counts + i * sizeof own, &own, sizeof own);
    }
    return (uint32_t *)counts;
}

/* Takes what is in the slots, where this rank's counters are if the device has answered. Short ones are added up later. */
static allfold_status take_slots(struct order *o, const void *counts, size_t n, size_t bytes)
{
    struct comm *const comm = &o->ctx->comm;
    if (!order_failed(o) && counts != order_slot(o, comm->rank))
        memcpy(order_slot(o, comm->rank), counts, n * bytes);
    if (comm_agree(comm, o->error) != ALLFOLD_OK)
        return o->error->status;
    o->ctx->window.turns++;
    o->counts = o->own_counts;
    o->short_counts = o->takes_short ? (uint32_t *)(void *)order_slot(o, 0) : NULL;
    o->short_parts = comm->size;
    o->short_stride = o->slot_bytes / sizeof *o->short_counts;
    for (int rank = 1; rank < comm->size && !o->takes_short; rank++) {
        const uint64_t *const before = rank == 1 ? (void *)order_slot(o, 0) : o->own_counts, *const more = (void *)order_slot(o, rank);
        for (size_t i = 0; i < n; i++)
            o->counts[i] = before[i] + more[i];
    }
    return ALLFOLD_OK;
}

void order_counts(const struct order *o, uint64_t first, uint64_t n, int64_t *sums)
{
    enum { PAGE = 1024 };
    if (o->short_counts == NULL) {
        memcpy(sums, &o->counts[ORDER_FIRST_COUNT + first], n * sizeof *sums);
        return;
    }
    for (uint64_t start = 0; start < n; start += PAGE) {
        const uint64_t end = u64_min(start + PAGE, n);
        for (int part = 0; part < o->short_parts; part++) {
            const uint32_t *const from = o->short_counts + (size_t)part * o->short_stride + ORDER_FIRST_COUNT + first;
            if (part == 0)
                for (uint64_t i = start; i < end; i++)
                    sums[i] = from[i];
            else
                for (uint64_t i = start; i < end; i++)
                    sums[i] += from[i];
        }
    }
}

/* Adds up what the ranks have counted: in 32 bits, if the caller takes that, whatever this rank has. */
static void exchange(struct order *o, uint64_t count)
{
    uint64_t more[ORDER_MORE_COUNTS] = {o->seen, o->set.overflowed, o->set.count, o->set.on_device ? o->set.count : 0};
    if (!order_failed(o)) { /* else there may be no room */
        if (o->takes_short && o->short_counts == NULL)
            o->short_counts = shorten(o->counts, count);
        for (uint64_t i = 0; i < ORDER_MORE_COUNTS; i++) {
            if (o->takes_short)
                o->short_counts[count + i] = (uint32_t)more[i];
            else
                o->counts[count + i] = more[i];
        }
    }
    void *const own = o->takes_short ? (void *)o->short_counts : o->counts;
    const size_t n = count + ORDER_MORE_COUNTS, bytes = o->takes_short ? sizeof *o->short_counts : sizeof *o->counts;
    if ((o->slots != NULL ? take_slots(o, own, n, bytes) : comm_sum(&o->ctx->comm, own, n, bytes, o->error)) != ALLFOLD_OK)
        return;
    for (uint64_t i = 0; i < ORDER_MORE_COUNTS; i++)
        more[i] = order_count(o, count - ORDER_FIRST_COUNT + i);
    o->seen = more[0];
    o->set.overflowed = more[1] > 0;
    o->kept = more[2];
    o->kept_there = more[3];
}

/* What a pass has streamed, and another needs, too, stays in host memory now, if it fits. */
static void load_for_more(struct order *o)
{
    if (o->x.elements > 0 || !o->is_begun || o->input->range.count == 0 || o->ctx->device->backend->own_memory || order_failed(o))
        return;
    order_load(o, true);
    if (o->x.elements > 0 && !order_failed(o))
        order_host_room(o, o->set.capacity);
}

void order_pass(struct order *o, struct order_work *work, uint64_t counters)
{
    const uint64_t count = ORDER_FIRST_COUNT + counters;
    const size_t bytes = (count + ORDER_MORE_COUNTS) * sizeof *o->counts;
    load_for_more(o);
    const bool in_place = o->x.elements > 0, on_device = o->ctx->device->backend->own_memory;
    const bool keeps = work->kind == ORDER_BRACKETS || work->kind == ORDER_KEEP || work->kind == ORDER_ENDS || work->kind == ORDER_CHAIN;
    if (o->error->shared)
        return;
    prepare_counts(o, count + ORDER_MORE_COUNTS, in_place && on_device, keeps);
    o->set.count = 0;
    o->set.overflowed = false;
    if (keeps) {
        work->keys = o->set.keys;
        work->indices = o->set.indices;
        work->capacity = o->set.capacity;
    }
    o->seen = 0;
    if (!o->x.owned && o->input->range.count > 0)
        order_read(o);
    if (!order_failed(o) && in_place) {
        const struct order_elements elements = {o->input->type, o->x.memory, o->x.elements, o->first};
        order_run_elements(o, work, &elements, bytes, on_device);
        o->seen = o->x.elements;
        if (keeps && !order_failed(o)) {
            o->set.count = u64_min(o->counts[ORDER_KEPT], o->set.capacity);
            o->set.overflowed = o->counts[ORDER_KEPT] > o->set.capacity;
        }
        if (!o->x.owned)
            atomic_fetch_add(&o->ctx->comm.progress->done, o->x.elements * order_key_bytes(o));
    } else if (!order_failed(o) && o->input->range.count > 0 && !o->x.owned) { /* else all that was loaded is left out */
        order_run_pieces(o, work, count * sizeof *o->counts);
    }
    exchange(o, count);
}

void order_pass_set(struct order *o, struct order_work *work, uint64_t counters)
{
    const uint64_t count = ORDER_FIRST_COUNT + counters;
    const size_t bytes = (count + ORDER_MORE_COUNTS) * sizeof *o->counts;
    const struct order_elements elements = {order_key_type(o->input->type), o->set.keys, o->set.count, 0};
    if (o->error->shared)
        return;
    prepare_counts(o, count + ORDER_MORE_COUNTS, elements.count > 0 && o->set.on_device, false);
    if (!order_failed(o) && elements.count > 0)
        order_run_elements(o, work, &elements, bytes, o->set.on_device);
    o->seen = o->set.count;
    exchange(o, count);
}

/* ---- a sample */

/* Leaves the NaNs of a sample, which come last, out of its count. */
static uint64_t count_numbers(struct order *o, uint64_t found)
{
    const allfold_type type = o->input->type, as = order_key_type(o->input->type);
    const uint64_t end = order_last(type) + 1;
    struct order_table table = {.count = 0};
    struct order_work work = {.kind = ORDER_TABLE, .table = &table};
    if (order_last(type) == order_most(type))
        return found;
    order_table_make(&table, as, &end, 1, o->error);
    order_pass_set(o, &work, 2);
    order_table_free(&table);
    return o->error->status == ALLFOLD_OK ? o->counts[ORDER_FIRST_COUNT] : 0;
}

uint64_t order_stride(const struct order *o, uint64_t count) { return u64_max((o->positions + count - 1) / count, 1); }

const struct order_chain *order_pass_chain(struct order *o, struct order_work *work)
{
    work->kind = ORDER_CHAIN;
    work->limit = UINT64_MAX;
    order_pass(o, work, ORDER_CHAIN_COUNTS);
    return o->error->status == ALLFOLD_OK ? (const struct order_chain *)(const void *)o->counts : NULL;
}

void order_sample(struct order *o, uint64_t count, uint64_t *found, uint64_t *worth)
{
    const uint64_t stride = order_stride(o, count);
    struct order_work work = {.kind = ORDER_SAMPLE, .stride = stride, .keys = o->set.keys};
    uint64_t sizes[3] = {0};
    o->set.count = 0;
    if (!order_failed(o) && o->x.elements > 0) {
        const struct order_elements elements = {o->input->type, o->x.memory, o->x.elements, 0};
        order_run_elements(o, &work, &elements, 0, o->ctx->device->backend->own_memory);
        o->set.count = o->x.elements / stride;
    } else if (!order_failed(o) && o->input->range.count > 0 && !o->x.owned) {
        order_sample_source(o, stride);
    }
    sizes[0] = o->set.count;
    sizes[1] = o->x.elements > 0 ? o->set.count : o->set.count / 16;
    sizes[2] = o->x.elements == 0 && o->input->range.count > 0 && !o->x.owned;
    if (comm_sum(&o->ctx->comm, sizes, 3, sizeof *sizes, o->error) == ALLFOLD_OK) {
        *found = o->input->nan != ALLFOLD_NAN_PROPAGATE ? count_numbers(o, sizes[0]) : sizes[0];
        *worth = u64_max(u64_min(sizes[1], *found), 1);
        o->neighbours = sizes[2] > 0 ? ORDER_NEIGHBOURS : 1;
    }
}

/* By bytes, of which only the last `bytes` differ; `room` is as large. */
static void sort_keys(uint64_t *keys, uint64_t *room, uint64_t count, size_t bytes)
{
    uint64_t *from = keys, *to = room;
    for (size_t byte = 0; byte < bytes; byte++) {
        uint64_t places[257] = {0}, *const other = from;
        for (uint64_t i = 0; i < count; i++)
            places[(from[i] >> 8 * byte & 255) + 1]++;
        for (int digit = 0; digit < 255; digit++)
            places[digit + 1] += places[digit];
        for (uint64_t i = 0; i < count; i++)
            to[places[from[i] >> 8 * byte & 255]++] = from[i];
        from = to;
        to = other;
    }
    if (from != keys)
        memcpy(keys, from, count * sizeof *keys);
}

uint64_t *order_sample_sorted(struct order *o, uint64_t count, uint64_t *found)
{
    struct comm *const comm = &o->ctx->comm;
    const size_t each = order_key_bytes(o);
    uint64_t numbers = 0, worth, before = 0, *keys = NULL;
    order_sample(o, count, &numbers, &worth);
    uint64_t *const sizes = comm_gather_all(comm, &o->set.count, sizeof o->set.count, o->error);
    *found = 0;
    for (int rank = 0; sizes != NULL && rank < comm->size; rank++) {
        before += rank < comm->rank ? sizes[rank] : 0;
        *found += sizes[rank];
    }
    free(sizes);
    if (!order_failed(o) && (keys = calloc(2 * *found + 1, sizeof *keys)) == NULL)
        error_set(o->error, ALLFOLD_NO_MEMORY, "no memory for a sample of %" PRIu64 " elements", *found);
    if (!order_failed(o)) {
        uint64_t *const own = keys + *found; /* room for all that has not been used */
        order_set_read(o, own);
        for (uint64_t i = 0; i < o->set.count; i++)
            memcpy(&keys[before + i], (const char *)own + i * each, each); /* little-endian: the low bytes */
    }
    if (comm_sum(comm, keys, *found, sizeof *keys, o->error) != ALLFOLD_OK) { /* others have 0 there */
        free(keys);
        return NULL;
    }
    sort_keys(keys, keys + *found, *found, each);
    return keys;
}
