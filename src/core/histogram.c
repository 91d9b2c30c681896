/* Histograms: the f64 edges become keys, so that one pass counts elements between keys. Every element is compared with the edges themselves. */
#include "core/order_passes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct histogram {
    struct order o;
    const allfold_bins *call;
    double low, high, step; /* the first edge, and the last; even bins' width */
    double *edges;   /* the caller's, or NULL; */
    int64_t *counts; /* and the counts */
    bool is_filled;  /* edges are there, and the counts' memory has been written */
    uint64_t *boundaries; /* unless a device has even bins: the edges', that of what is above the last, and that of NaN: as far as there are such keys */
    uint32_t count;
};

/* ---- edges */

/* An integer that f64 does not hold is rounded away from the others, so that it is not beyond its own edge. */
static double outward(allfold_value value, bool up)
{
    const double near = allfold_number(value);
    const bool negative = value.kind == ALLFOLD_VALUE_I64 && value.i64 < 0;
    const uint64_t size = negative ? -value.u64 : value.u64;
    if (value.kind == ALLFOLD_VALUE_F64 || (fabs(near) < 0x1p64 && (uint64_t)fabs(near) == size))
        return near;
    const bool is_above = (fabs(near) >= 0x1p64 || (uint64_t)fabs(near) > size) != negative;
    return is_above == up ? near : nextafter(near, up ? INFINITY : -INFINITY);
}

/* Least and largest of keys in host memory. */
static struct order_bracket ends_of(const struct order *o, const void *keys, uint64_t count)
{
    const size_t each = order_key_bytes(o);
    struct order_bracket ends = {UINT64_MAX, 0};
    for (uint64_t i = 0; i < count; i++) {
        uint64_t key = 0;
        memcpy(&key, (const char *)keys + i * each, each); /* little-endian: the low bytes */
        ends.low = u64_min(ends.low, key);
        ends.last = u64_max(ends.last, key);
    }
    return ends;
}

/* The ends of many pieces become those of all. */
static void trim_ends(struct order *o)
{
    const struct order_bracket ends = ends_of(o, o->set.keys, o->set.count);
    const size_t each = order_key_bytes(o);
    memcpy(o->set.keys, &ends.low, each);
    memcpy(o->set.keys + each, &ends.last, each);
    o->set.count = 2;
}

/* The least and the largest number of all ranks. No number: 0 and 1. */
static void find_range(struct histogram *h)
{
    struct order *const o = &h->o;
    const allfold_type type = o->input->type;
    struct order_work work = {.kind = ORDER_ENDS};
    order_room(o, ORDER_ENDS_MOST);
    o->trim = trim_ends;
    order_pass(o, &work, 0);
    o->trim = NULL;
    void *const keys = malloc(o->set.count * order_key_bytes(o) + 1);
    if (keys == NULL)
        error_set(o->error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " numbers", o->set.count);
    else
        order_set_read(o, keys);
    const struct order_bracket own = keys == NULL ? (struct order_bracket){UINT64_MAX, 0} : ends_of(o, keys, o->set.count);
    struct order_bracket *const all = comm_gather_all(&o->ctx->comm, &own, sizeof own, o->error), ends = {UINT64_MAX, 0};
    for (int rank = 0; all != NULL && rank < o->ctx->comm.size; rank++) {
        ends.low = u64_min(ends.low, all[rank].low);
        ends.last = u64_max(ends.last, all[rank].last);
    }
    o->range[0] = ends.low > ends.last ? 0 : outward(order_value(type, ends.low), false) + 0.0; /* not -0 */
    o->range[1] = ends.low > ends.last ? 1 : outward(order_value(type, ends.last), true) + 0.0;
    free(all);
    free(keys);
}

static void set_ends(struct histogram *h, double low, double high, struct error *error)
{
    if (!(isfinite(high - low) && low <= high)) {
        error->shared = error_set(error, ALLFOLD_BAD_ARGUMENT, "the bins are from %g to %g: expected finite numbers, whose difference is finite, the lesser "
                                  "one first: give another range", low, high) != ALLFOLD_OK;
        return;
    }
    if (low == high) {
        low -= 0.5;
        high += 0.5;
    }
    h->low = low;
    h->high = high;
    h->step = (high - low) / (double)h->call->count;
    if ((double)(h->call->count - 1) * h->step + low > high)
        error->shared = error_set(error, ALLFOLD_BAD_ARGUMENT, "%llu bins from %g to %g: f64 has no numbers that are so close together, and the last edge is "
                                  "below the one before: give fewer bins, or another range", (unsigned long long)h->call->count, low, high) != ALLFOLD_OK;
}

/* Even ones as numpy.linspace has them. */
static double edge_of(const struct histogram *h, uint64_t i)
{
    const uint64_t bins = h->call->count;
    if (h->call->edges != NULL)
        return h->call->edges[i];
    return i == bins ? h->high : (h->step == 0 ? (double)i / (double)bins * (h->high - h->low) : (double)i * h->step) + h->low;
}

/* What needs no counts. The first write to memory takes the host as long as the counts. */
static void fill(struct order *o)
{
    struct histogram *const h = (struct histogram *)o;
    if (h->is_filled)
        return;
    for (uint64_t i = 0; h->edges != NULL && i <= h->call->count; i++)
        h->edges[i] = edge_of(h, i);
    memset(h->counts, 0, h->call->count * sizeof *h->counts);
    h->is_filled = true;
}

static void take_edges(struct histogram *h)
{
    const allfold_bins *const call = h->call;
    struct error *const error = h->o.error;
    if (call->edges != NULL) {
        h->low = call->edges[0];
        h->high = call->edges[call->count];
        return;
    }
    double *const range = h->o.range;
    if (call->has_range) {
        range[0] = call->low;
        range[1] = call->high;
    } else if (!h->o.has_range) { /* else an earlier run knew it */
        find_range(h);
    }
    if (error->status == ALLFOLD_OK)
        set_ends(h, range[0], range[1], error);
}

static bool add_boundary(struct histogram *h, const struct order_space *space, bool exists, uint64_t key)
{
    if (!exists && space->last == space->most)
        return false;
    h->boundaries[h->count++] = exists ? key : space->last + 1; /* NaN's; if that has no key either, what comes is empty */
    return true;
}

static void set_boundaries(struct histogram *h)
{
    const struct order_space space = order_space_of(h->o.input->type);
    uint64_t key = 0;
    h->boundaries = malloc((h->call->count + 2) * sizeof *h->boundaries);
    if (h->boundaries == NULL)
        error_set(h->o.error, ALLFOLD_NO_MEMORY, "no memory for %llu bins", (unsigned long long)h->call->count);
    bool more = h->boundaries != NULL;
    for (uint64_t i = 0; i < h->call->count && more; i++) {
        const bool exists = order_at_least(&space, edge_of(h, i), false, &key);
        more = add_boundary(h, &space, exists, key);
    }
    if (more) {
        const bool exists = order_at_least(&space, h->high, true, &key);
        if (add_boundary(h, &space, exists, key))
            add_boundary(h, &space, false, 0);
    }
}

/* ---- the table */

static void count_bins(struct histogram *h, allfold_outside *outside)
{
    struct order *const o = &h->o;
    const uint64_t bins = h->call->count;
    const bool on_device = o->ctx->device->backend->own_memory;
    struct order_table table = {0};
    struct order_even even;
    struct order_work work = {.kind = ORDER_TABLE, .table = &table};
    if (on_device && h->call->edges == NULL && order_even_of(h->low, h->high, bins, &even)) {
        work = (struct order_work){.kind = ORDER_EVEN, .even = &even};
    } else {
        set_boundaries(h);
        if (h->call->edges != NULL || !order_guess_even(&table.guess, h->low, h->high, bins))
            table.guess.even = false;
        order_table_make(&table, o->input->type, h->boundaries, h->count, o->error);
    }
    o->meanwhile = fill;
    o->takes_short = o->positions <= UINT32_MAX;
    order_pass(o, &work, bins + 3);
    order_table_free(&table);
    if (o->error->status != ALLFOLD_OK)
        return;
    fill(o);
    order_counts(o, 1, bins, h->counts);
    *outside = (allfold_outside){.count = o->seen, .below = order_count(o, 0), .above = order_count(o, bins + 1), .nan = order_count(o, bins + 2)};
}

static uint64_t call_number(const allfold_bins *call)
{
    uint64_t hash = call->count * 4 + (call->edges != NULL) * 2 + (call->has_range != 0);
    for (uint64_t i = 0; call->edges != NULL && i <= call->count; i++)
        hash = (hash ^ f64_bits(call->edges[i])) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
    return ((hash ^ f64_bits(call->low)) * UINT64_C(0x9e3779b97f4a7c15)) ^ f64_bits(call->high);
}

allfold_status core_histogram(struct allfold_context *ctx, const struct order_input *input, const allfold_bins *call, double *edges,
                              int64_t *counts, allfold_outside *outside, struct error *error)
{
    struct histogram h = {.o = {.ctx = ctx, .input = input, .error = error}, .call = call, .edges = edges, .counts = counts};
    order_open(&h.o, error->status == ALLFOLD_OK ? call_number(call) : 0, call->edges == NULL && !call->has_range);
    if (error->status == ALLFOLD_OK)
        take_edges(&h);
    if (error->status == ALLFOLD_OK)
        count_bins(&h, outside);
    order_close(&h.o);
    free(h.boundaries);
    return error->status;
}
