/* Quantiles: a sample says in which brackets of keys they lie, one pass counts what is below each and keeps what is inside, and the search ends in
   what was kept. Of many quantiles, a pass counts between the keys of the sample. What then is not known to within one key, a pass keeps, if there is room for
   it; else a pass narrows it. */
#include "core/order_passes.h"

#include "comm/vectors.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHOLE_MOST = 1 << 17,  /* elements of a rank that are all kept, without a sample */
    SAMPLE_MOST = 1 << 18, /* on a device with memory of its own, of one quantile; of several. Chains may take twice as many */
    SAMPLE_MOST_SEVERAL = ORDER_SAMPLE_MOST,
    SAMPLE_MOST_HOST = 1 << 16,
    SAMPLE_MOST_HOST_SEVERAL = 1 << 18, /* in memory */
    MANY_HOST = 12,        /* more have brackets that mostly miss, as their sample is small; more than ORDER_BRACKETS_MOST nowhere have any */
    CELLS_EACH = 128,      /* in which many quantiles are counted, for each, so that few permille of the elements are kept; */
    CELLS_LEAST = 1 << 13, CELLS_MOST = 1 << 20, /* in all; a quarter as many elements are the sample */
    PIECES_LEAST = 64,     /* of a sample from a file, of which a variance says something */
    NARROWED = 3           /* passes over a sample, at most */
};

struct quantiles {
    struct order o;
    const allfold_quantiles *call;
    double *q;                    /* in ascending order, */
    struct order_place *places;   /* where they are in the sorted array, in the call's order, */
    struct order_target *targets; /* and the elements that they need, in ascending order, none twice */
    uint64_t target_count;
    uint64_t *kept;               /* what order_target_locate says of each */
    struct order_target *inside;  /* targets in a set, or in a sample */
    uint64_t seen;  /* elements of all ranks, without those that are missing */
    uint64_t count; /* of these, those that have an order: NaNs are behind them */
    uint64_t nans;
};

static int compare_reals(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_targets(const void *a, const void *b)
{
    const uint64_t x = ((const struct order_target *)a)->rank, y = ((const struct order_target *)b)->rank;
    return (x > y) - (x < y);
}

static uint64_t call_number(const allfold_quantiles *call, allfold_nan nan)
{
    uint64_t hash = (uint64_t)call->method * 4 + (uint64_t)nan + 1;
    for (size_t i = 0; i < call->count; i++)
        hash = (hash ^ f64_bits(call->q[i])) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
    return hash;
}

/* ---- brackets */

/* How much less elements of the sample that were read together tell of each quantile than as many that lie apart. */
static void find_spreads(struct quantiles *w, uint64_t found, double *spreads)
{
    struct order *const o = &w->o;
    const size_t each = order_key_bytes(o);
    const uint32_t count = (uint32_t)w->call->count, together = (uint32_t)o->neighbours;
    uint64_t sums[1 + 2 * ORDER_BRACKETS_MOST] = {0};
    for (uint32_t i = 0; i < count; i++) {
        w->inside[i] = (struct order_target){.rank = (uint64_t)(w->q[i] * (double)(found - 1)), .last = order_most(o->input->type), .count = found};
        spreads[i] = 1;
    }
    if (together == 1)
        return;
    order_search(o, w->inside, count, NARROWED);
    for (uint64_t first = 0; !order_failed(o) && !o->set.on_device && first + together <= o->set.count; first += together, sums[0]++)
        for (uint32_t i = 0; i < count; i++) {
            uint64_t below = 0, key = 0;
            for (uint64_t j = first; j < first + together; j++) {
                memcpy(&key, o->set.keys + j * each, each); /* little-endian: the low bytes */
                below += key < w->inside[i].low;
            }
            sums[1 + 2 * i] += below;
            sums[2 + 2 * i] += below * below;
        }
    if (comm_sum(&o->ctx->comm, sums, 1 + 2 * count, sizeof *sums, o->error) == ALLFOLD_OK)
        for (uint32_t i = 0; i < count; i++)
            spreads[i] = sums[0] < PIECES_LEAST ? together : order_sample_spread(sums[2 + 2 * i], sums[1 + 2 * i], sums[0], together);
}

/* Pairs of targets among `found` elements of a sample. How many pairs. */
static uint32_t sample_targets(const struct quantiles *w, uint64_t found, const double *spreads, struct order_target *targets)
{
    const uint32_t count = (uint32_t)w->call->count; /* at most ORDER_BRACKETS_MOST */
    double offs[ORDER_BRACKETS_MOST];
    for (uint32_t i = 0; i < count; i++)
        offs[i] = order_sample_off(w->q[i], found, spreads[i]);
    const double part = order_sample_part(offs, count);
    for (uint32_t i = 0; i < count; i++)
        order_sample_pair(&targets[2 * i], w->q[i], part * offs[i], found, order_most(w->o.input->type));
    return order_sample_join(targets, count);
}

static uint64_t sample_most(const struct quantiles *w)
{
    const bool several = w->call->count > 1;
    if (w->o.ctx->device->backend->own_memory)
        return several ? SAMPLE_MOST_SEVERAL : SAMPLE_MOST;
    return several && w->o.x.elements > 0 ? SAMPLE_MOST_HOST_SEVERAL : SAMPLE_MOST_HOST;
}

/* Brackets from a sample. */
static void sample_brackets(struct quantiles *w, struct order_brackets *brackets)
{
    struct order *const o = &w->o;
    uint64_t found = 0, worth = 0;
    double spreads[ORDER_BRACKETS_MOST];
    *brackets = (struct order_brackets){.count = 0};
    order_sample(o, sample_most(w), &found, &worth);
    if (o->error->status != ALLFOLD_OK || found == 0)
        return;
    find_spreads(w, found, spreads);
    if (o->error->status != ALLFOLD_OK)
        return;
    const uint32_t pairs = sample_targets(w, found, spreads, w->inside);
    order_search(o, w->inside, 2 * pairs, NARROWED);
    if (o->error->status == ALLFOLD_OK)
        order_brackets_take(brackets, w->inside, pairs, found, order_last(o->input->type));
}

/* ---- targets */

/* The elements that the quantiles need, now that it is known of how many. */
static void set_targets(struct quantiles *w)
{
    uint64_t found = 0, kept = 0;
    for (size_t i = 0; i < w->call->count; i++) {
        const struct order_place place = w->places[i] = order_place_of(w->call->q[i], w->count);
        const int half = order_half(&place);
        const bool up = half > 0 || (half == 0 && place.below % 2 == 1);
        const bool next = place.part != 0, nearest = w->call->method == ALLFOLD_QUANTILE_NEAREST;
        for (uint64_t j = 0; j <= next; j++)
            if (!nearest || j == up)
                w->targets[found++] = (struct order_target){.rank = place.below + j, .last = order_last(w->o.input->type), .count = w->count};
    }
    qsort(w->targets, found, sizeof *w->targets, compare_targets);
    for (uint64_t i = 0; i < found; i++)
        if (kept == 0 || w->targets[kept - 1].rank != w->targets[i].rank)
            w->targets[kept++] = w->targets[i];
    w->target_count = kept;
}

static const struct order_target *find_target(const struct quantiles *w, uint64_t rank)
{
    return bsearch(&(struct order_target){.rank = rank}, w->targets, w->target_count, sizeof *w->targets, compare_targets);
}

/* Finds the targets that are in the set: unless they are known, by a search. */
static void search_set(struct quantiles *w, const struct order_target *known)
{
    uint64_t count = 0, found = 0;
    for (uint64_t i = 0; i < w->target_count; i++) {
        const struct order_target *const target = &w->targets[i];
        if (w->kept[i] == UINT64_MAX)
            continue;
        w->inside[count] = known != NULL ? known[i] : *target;
        w->inside[count].rank = target->rank - target->below + w->kept[i];
        w->inside[count++].below = w->kept[i];
    }
    order_search(&w->o, w->inside, count, UINT32_MAX);
    for (uint64_t i = 0; i < w->target_count; i++)
        if (w->kept[i] != UINT64_MAX)
            w->targets[i].low = w->targets[i].last = w->inside[found++].low;
}

/* ---- passes over all elements */

/* The results are NaN: nothing need be found. */
static bool are_nan(const struct quantiles *w) { return w->call->nan == ALLFOLD_NAN_PROPAGATE && w->nans > 0; }

static void take_counts(struct quantiles *w)
{
    w->nans = w->o.counts[ORDER_NANS];
    w->seen = w->o.seen;
    w->count = w->seen - w->nans;
}

/* Where the targets are, after a pass that has kept what is in the brackets. known: what was found in the set at once; or NULL. */
static void take_pass(struct quantiles *w, const struct order_brackets *brackets, const struct order_target *known)
{
    const struct order *const o = &w->o;
    for (uint64_t i = 0; i < w->target_count && !are_nan(w); i++) {
        w->kept[i] = UINT64_MAX;
        if (w->targets[i].low < w->targets[i].last)
            w->kept[i] = order_target_locate(&w->targets[i], brackets, o->counts + ORDER_FIRST_COUNT, w->seen, w->count, order_last(o->input->type));
        if (o->set.overflowed)
            w->kept[i] = UINT64_MAX;
    }
    if (!are_nan(w))
        search_set(w, known);
}

static void bracket_pass(struct quantiles *w, const struct order_brackets *brackets)
{
    struct order *const o = &w->o;
    struct order_work work = {.kind = ORDER_BRACKETS, .brackets = brackets, .limit = UINT64_MAX};
    const bool first = w->target_count == 0;
    order_pass(o, &work, (uint64_t)brackets->count * ORDER_COUNTS);
    if (o->error->status != ALLFOLD_OK)
        return;
    take_counts(w);
    if (first && w->count > 0)
        set_targets(w);
    take_pass(w, brackets, NULL);
}

/* Elements of a chain's sample at most: pieces are loaded in less time than as many elements that lie apart. */
static uint64_t chain_sample(const struct quantiles *w) { return u64_max(sample_most(w), u64_min(w->o.positions / 128, 2 * sample_most(w))); }

/* The sample, the pass and the search in one. */
static void chain_pass(struct quantiles *w)
{
    struct order *const o = &w->o;
    struct order_work work = {.sample = chain_sample(w), .q = w->q, .q_count = (uint32_t)w->call->count, .rounds = NARROWED};
    w->count = o->x.elements;
    set_targets(w);
    work.wanted = w->targets;
    work.wanted_count = (uint32_t)w->target_count;
    const struct order_chain *const chain = order_pass_chain(o, &work);
    if (chain == NULL)
        return;
    const struct order_brackets brackets = chain->brackets;
    if (chain->is_done) {
        take_counts(w);
        take_pass(w, &brackets, chain->targets);
    } else {
        bracket_pass(w, &brackets);
    }
}

/* ---- many quantiles, and what is left */

static bool are_many(const allfold_quantiles *call, bool on_host) { return call->count > (on_host ? MANY_HOST : (size_t)ORDER_BRACKETS_MOST); }

/* The table by which elements are counted: each key there is of short types, else cells with about as many elements each, as a sample says. Its boundaries, which the
   caller frees; NULL: the error is set. */
static uint64_t *make_grid(struct quantiles *w, struct order_table *table)
{
    struct order *const o = &w->o;
    const allfold_type type = o->input->type;
    const bool all = order_key_bytes(o) <= 2;
    uint64_t cells = CELLS_LEAST, found = all ? order_most(type) + 1 : 0;
    while (cells < CELLS_EACH * w->call->count && cells < CELLS_MOST)
        cells *= 2;
    uint64_t *const keys = all ? malloc(found * sizeof *keys) : order_sample_sorted(o, cells / 4, &found), *boundaries = NULL;
    for (uint64_t i = 0; all && keys != NULL && i < found; i++)
        keys[i] = i;
    while (!all && keys != NULL && found > 0 && keys[found - 1] > order_last(type))
        found--;
    if (keys != NULL)
        boundaries = order_table_grid(table, type, keys, found, o->error);
    else if (!order_failed(o))
        error_set(o->error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " keys", found);
    free(keys);
    return boundaries;
}

/* Where the targets are, as a pass has counted between boundaries. */
static void take_intervals(struct quantiles *w, const uint64_t *boundaries, uint32_t count)
{
    const uint64_t *const counts = w->o.counts + ORDER_FIRST_COUNT, last = order_last(w->o.input->type);
    uint64_t below = 0;
    uint32_t interval = 0;
    w->seen = w->o.seen;
    w->nans = last < order_most(w->o.input->type) ? counts[count] : 0;
    w->count = w->seen - w->nans;
    if (w->count > 0)
        set_targets(w);
    for (uint64_t i = 0; i < w->target_count; i++) {
        struct order_target *const target = &w->targets[i];
        while (below + counts[interval] <= target->rank)
            below += counts[interval++];
        target->low = interval > 0 ? boundaries[interval - 1] : 0;
        target->last = interval < count ? boundaries[interval] - 1 : last;
        target->below = below;
        target->count = counts[interval];
    }
}

static void count_pass(struct quantiles *w)
{
    struct order *const o = &w->o;
    struct order_table table = {.count = 0};
    struct order_work work = {.kind = ORDER_TABLE, .table = &table};
    uint64_t *const boundaries = make_grid(w, &table);
    order_pass(o, &work, (uint64_t)table.count + 1);
    if (o->error->status == ALLFOLD_OK)
        take_intervals(w, boundaries, table.count);
    order_table_free(&table);
    free(boundaries);
}

/* The ranges in which targets still are: where they begin, and where what is between them does. How many such keys; 0: there is no room for what is inside, or
   elements are so short that it is narrowed to one key in as many passes. */
static uint32_t open_ranges(struct quantiles *w, uint64_t *keys)
{
    const uint64_t room = u64_max(w->o.positions / ORDER_KEPT_PART / 2, SAMPLE_MOST_SEVERAL), most = order_most(w->o.input->type);
    uint64_t inside = 0, before = 0, low = UINT64_MAX;
    uint32_t found = 0;
    for (uint64_t i = 0; i < w->target_count; i++) {
        const struct order_target *const target = &w->targets[i];
        w->kept[i] = UINT64_MAX;
        if (!order_target_is_open(target))
            continue;
        if (target->low != low) {
            low = target->low;
            before = inside;
            inside += target->count;
            if (found > 0 && keys[found - 1] == low)
                found--;
            else
                keys[found++] = low;
            if (target->last < most)
                keys[found++] = target->last + 1;
        }
        w->kept[i] = before;
    }
    return inside <= room && order_key_bytes(&w->o) > 2 ? found : 0;
}

/* Keeps what is in these ranges, and finds targets there. False: some rank had no room. */
static bool keep_pass(struct quantiles *w, const uint64_t *keys, uint32_t count)
{
    struct order *const o = &w->o;
    struct order_table table = {.count = 0};
    struct order_work work = {.kind = ORDER_KEEP, .table = &table, .limit = UINT64_MAX};
    order_table_make(&table, o->input->type, keys, count, o->error);
    order_pass(o, &work, 0);
    order_table_free(&table);
    if (o->error->status == ALLFOLD_OK && !o->set.overflowed)
        search_set(w, NULL);
    return !o->set.overflowed;
}

/* Finds the targets that are not known yet. */
static void find_open(struct quantiles *w)
{
    uint64_t *const keys = malloc((2 * w->target_count + 1) * sizeof *keys);
    bool fits = true;
    if (keys == NULL)
        error_set(w->o.error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " ranges of keys", w->target_count);
    comm_agree(&w->o.ctx->comm, w->o.error);
    while (!w->o.error->shared && order_is_open(w->targets, w->target_count)) {
        const uint32_t count = fits ? open_ranges(w, keys) : 0;
        fits = count == 0 || keep_pass(w, keys, count);
        if (count == 0)
            order_narrow(&w->o, false, w->targets, w->target_count);
    }
    free(keys);
}

static void find_elements(struct quantiles *w)
{
    struct order *const o = &w->o;
    const uint64_t own = o->input->range.count;
    struct order_brackets brackets = {.count = 1, .whole = true, .list = {{0, order_last(o->input->type)}}};
    const bool whole = o->positions <= WHOLE_MOST;
    order_room(o, whole ? u64_max(own, 1) : u64_max(u64_max(own / ORDER_KEPT_PART, WHOLE_MOST), SAMPLE_MOST_SEVERAL));
    if (!whole && are_many(w->call, o->on_host)) {
        count_pass(w);
    } else if (!whole && order_has_chain(o) && w->call->count <= ORDER_CHAIN_BRACKETS && o->set.capacity <= UINT32_MAX) { /* a search has no more */
        chain_pass(w);
    } else {
        if (!whole)
            sample_brackets(w, &brackets);
        bracket_pass(w, &brackets);
    }
    if (!are_nan(w) && !o->error->shared && order_is_open(w->targets, w->target_count))
        find_open(w);
}

/* ---- results */

static allfold_status refuse(const struct quantiles *w, struct error *error)
{
    if (w->call->nan == ALLFOLD_NAN_ERROR && w->nans > 0)
        return error_set(error, ALLFOLD_NO_VALUE, "%" PRIu64 " of %" PRIu64 " elements are NaN, and NaN is refused here", w->nans, w->seen);
    if (w->seen == 0)
        return error_set(error, ALLFOLD_NO_VALUE, "a quantile of an empty array does not exist");
    if (w->call->nan == ALLFOLD_NAN_OMIT && w->count == 0)
        return error_set(error, ALLFOLD_NO_VALUE, "a quantile does not exist: all %" PRIu64 " elements are NaN and left out", w->nans);
    return ALLFOLD_OK;
}

static allfold_value value_of(const struct quantiles *w, const struct order_place *place)
{
    const allfold_type type = w->o.input->type;
    const allfold_quantile_method method = w->call->method;
    if (are_nan(w))
        return (allfold_value){.kind = ALLFOLD_VALUE_F64, .f64 = (double)NAN};
    const struct order_target *const first = find_target(w, place->below), *const next = find_target(w, place->below + 1);
    if (method == ALLFOLD_QUANTILE_LINEAR || method == ALLFOLD_QUANTILE_MIDPOINT) {
        const struct order_place half = {place->below, place->part != 0, 1};
        const double value = order_between(type, first->low, place->part != 0 ? next->low : first->low,
                                           method == ALLFOLD_QUANTILE_MIDPOINT ? &half : place);
        return (allfold_value){.kind = ALLFOLD_VALUE_F64, .f64 = value};
    }
    const int side = order_half(place);
    const bool up = method == ALLFOLD_QUANTILE_HIGHER ? place->part != 0
                    : method == ALLFOLD_QUANTILE_NEAREST ? side > 0 || (side == 0 && place->below % 2 == 1) : false;
    return order_value(type, (up ? next : first)->low);
}

allfold_status core_quantile(struct allfold_context *ctx, const struct order_input *input, const allfold_quantiles *call,
                             allfold_result *results, struct error *error)
{
    const size_t count = call->count;
    struct quantiles w = {.o = {.ctx = ctx, .input = input, .error = error}, .call = call};
    w.q = malloc((count + 1) * sizeof *w.q);
    w.places = calloc(count + 1, sizeof *w.places);
    w.targets = calloc(2 * count + 1, sizeof *w.targets);
    w.kept = calloc(2 * count + 1, sizeof *w.kept);
    w.inside = calloc(2 * count + 1, sizeof *w.inside);
    if (w.q == NULL || w.places == NULL || w.targets == NULL || w.kept == NULL || w.inside == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %zu quantiles", count);
    order_open(&w.o, error->status == ALLFOLD_OK ? call_number(call, call->nan) : 0, are_many(call, !ctx->device->backend->own_memory));
    if (error->status == ALLFOLD_OK) {
        memcpy(w.q, call->q, count * sizeof *w.q);
        qsort(w.q, count, sizeof *w.q, compare_reals);
        find_elements(&w);
    }
    if (error->status == ALLFOLD_OK)
        error->shared = refuse(&w, error) != ALLFOLD_OK; /* every rank has counted the same */
    for (size_t i = 0; i < count && error->status == ALLFOLD_OK; i++)
        results[i] = (allfold_result){.name = "value", .value = value_of(&w, &w.places[i]), .index = ALLFOLD_NO_INDEX,
                                      .count = w.seen, .level = ALLFOLD_LEVEL_EXACT};
    order_close(&w.o);
    free(w.q);
    free(w.places);
    free(w.targets);
    free(w.kept);
    free(w.inside);
    return error->status;
}
