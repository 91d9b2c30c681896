/* Quantiles: a sample says in which brackets of keys they lie, one pass counts what is below each and keeps what is inside, and the search ends in
   what was kept. A bracket that missed, or had no room, is known to within the keys beside it: these are narrowed. */
#include "core/order_passes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHOLE_MOST = 1 << 17,  /* elements of a rank that are all kept, without a sample */
    SAMPLE_MOST = 1 << 18, /* on a device with memory of its own, of one quantile; of several */
    SAMPLE_MOST_SEVERAL = ORDER_SAMPLE_MOST,
    SAMPLE_MOST_HOST = 1 << 16,
    KEPT_PART = 16,        /* of a rank's elements one in so many may be kept */
    NARROWED = 3           /* passes over a sample, at most */
};

/* How many are kept is chosen so that a bracket misses once in thousands of times. */
static const double DEVIATIONS = 3.5;

struct quantiles {
    struct order o;
    const allfold_quantiles *call;
    double *q;                    /* in ascending order, */
    struct order_place *places;   /* where they are in the sorted array, in the call's order, */
    struct order_target *targets; /* and the elements that they need, in ascending order, none twice */
    uint64_t target_count;
    uint64_t *kept;               /* as locate_target sets it, of each */
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

/* Targets around q among `found` elements of a sample that is worth less. wide: how far, of what the usual deviations make. What need not be known of a
   pair is an eighth of what lies between them. */
static void sample_targets(const struct quantiles *w, uint64_t found, uint64_t worth, double wide, struct order_target *targets)
{
    for (size_t i = 0; i < w->call->count; i++) {
        const double q = w->q[i], n = (double)worth, off = (DEVIATIONS * sqrt(n * q * (1 - q)) + 2) / n * wide, at = (double)(found - 1);
        const double low = floor((q - off) * at), high = ceil((q + off) * at);
        targets[2 * i] = (struct order_target){.rank = low > 0 ? (uint64_t)low : 0, .last = order_most(w->o.input->type), .count = found};
        targets[2 * i + 1] = targets[2 * i];
        targets[2 * i + 1].rank = high < at ? (uint64_t)high : found - 1;
        targets[2 * i].room = targets[2 * i + 1].room = (targets[2 * i + 1].rank - targets[2 * i].rank) / 8;
    }
}

/* Makes brackets of pairs of targets, joined where they meet. A bracket that begins or ends the sample has all that lies beyond. */
static void take_brackets(const struct quantiles *w, const struct order_target *targets, uint64_t found, struct order_brackets *brackets)
{
    const uint64_t last_number = order_last(w->o.input->type);
    struct order_bracket *before = NULL;
    for (size_t i = 0; i < w->call->count; i++) {
        const struct order_target *const low = &targets[2 * i], *const high = low + 1;
        const struct order_bracket next = {low->rank == 0 ? 0 : u64_min(low->low, last_number),
                                           high->rank == found - 1 ? last_number : u64_min(high->last, last_number)};
        if (before == NULL || next.low > before->last + (before->last < last_number)) {
            before = &brackets->list[brackets->count++];
            *before = next;
        }
        before->low = u64_min(before->low, next.low);
        before->last = u64_max(before->last, next.last);
    }
}

/* Brackets from a sample. */
static void sample_brackets(struct quantiles *w, struct order_brackets *brackets)
{
    struct order *const o = &w->o;
    uint64_t found = 0, worth = 0;
    double inside = 0;
    *brackets = (struct order_brackets){.count = 0};
    order_sample(o, !o->ctx->device->backend->own_memory ? SAMPLE_MOST_HOST : w->call->count > 1 ? SAMPLE_MOST_SEVERAL : SAMPLE_MOST, &found, &worth);
    if (o->error->status != ALLFOLD_OK || found == 0)
        return;
    worth = u64_max(u64_min(worth, found), 1);
    for (size_t i = 0; i < w->call->count; i++)
        inside += 2 * (DEVIATIONS * sqrt((double)worth * w->q[i] * (1 - w->q[i])) + 2) / (double)worth;
    sample_targets(w, found, worth, inside * KEPT_PART > 0.75 ? 0.75 / KEPT_PART / inside : 1, w->inside);
    order_search(o, w->inside, 2 * w->call->count, NARROWED);
    if (o->error->status == ALLFOLD_OK)
        take_brackets(w, w->inside, found, brackets);
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

/* The target is now known to be among the keys [low, last]. */
static void place_target(struct order_target *target, uint64_t low, uint64_t last, uint64_t below, uint64_t count)
{
    target->low = low;
    target->last = last;
    target->below = below;
    target->count = count;
}

/* Where a target is, as the last pass has counted. *kept: how many elements of the set lie below; UINT64_MAX: it is not in the set. */
static void locate_target(const struct quantiles *w, const struct order_brackets *brackets, struct order_target *target, uint64_t *kept)
{
    const uint64_t *counts = w->o.counts + ORDER_FIRST_COUNT, all = w->seen;
    uint64_t low = target->low, below = target->below, before = 0;
    for (uint32_t b = 0; b < brackets->count; b++, counts += ORDER_COUNTS) {
        const struct order_bracket *const bracket = &brackets->list[b];
        const uint64_t begin = all - counts[ORDER_FROM], at_low = counts[ORDER_LOW], between = counts[ORDER_BETWEEN];
        const uint64_t end = begin + at_low + between + counts[ORDER_LAST];
        if (bracket->last < target->low)
            before += brackets->whole ? end - begin : between;
        if (bracket->last < target->low || bracket->low > target->last)
            continue;
        *kept = UINT64_MAX;
        if (target->rank < begin) {
            place_target(target, low, bracket->low - 1, below, begin - below);
            return;
        }
        if (target->rank < end) {
            if (brackets->whole) {
                *kept = before;
                place_target(target, bracket->low, bracket->last, begin, end - begin);
            } else if (target->rank < begin + at_low) {
                place_target(target, bracket->low, bracket->low, begin, at_low);
            } else if (target->rank >= begin + at_low + between) {
                place_target(target, bracket->last, bracket->last, end - counts[ORDER_LAST], counts[ORDER_LAST]);
            } else {
                *kept = before;
                place_target(target, bracket->low + 1, bracket->last - 1, begin + at_low, between);
            }
            return;
        }
        before += brackets->whole ? end - begin : between;
        low = bracket->last + 1;
        below = end;
    }
    *kept = UINT64_MAX;
    place_target(target, low, target->last, below, (target->last == order_last(w->o.input->type) ? w->count : target->below + target->count) - below);
}

/* Finds the targets that are in the set. */
static void search_set(struct quantiles *w)
{
    uint64_t count = 0, found = 0;
    for (uint64_t i = 0; i < w->target_count; i++) {
        const struct order_target *const target = &w->targets[i];
        if (w->kept[i] == UINT64_MAX)
            continue;
        w->inside[count] = *target;
        w->inside[count].rank = target->rank - target->below + w->kept[i];
        w->inside[count++].below = w->kept[i];
    }
    order_search(&w->o, w->inside, count, UINT32_MAX);
    for (uint64_t i = 0; i < w->target_count; i++)
        if (w->kept[i] != UINT64_MAX)
            w->targets[i].low = w->targets[i].last = w->inside[found++].low;
}

/* ---- passes over all elements */

/* A pass that keeps what is in the brackets. */
static void bracket_pass(struct quantiles *w, const struct order_brackets *brackets)
{
    struct order *const o = &w->o;
    struct order_work work = {.kind = ORDER_BRACKETS, .brackets = brackets, .limit = UINT64_MAX};
    const bool first = w->target_count == 0;
    order_pass(o, &work, (uint64_t)brackets->count * ORDER_COUNTS);
    if (o->error->status != ALLFOLD_OK)
        return;
    w->nans = o->counts[ORDER_NANS];
    w->seen = o->seen;
    w->count = w->seen - w->nans;
    if (first && w->count > 0)
        set_targets(w);
    for (uint64_t i = 0; i < w->target_count; i++) {
        w->kept[i] = UINT64_MAX;
        if (w->targets[i].low < w->targets[i].last)
            locate_target(w, brackets, &w->targets[i], &w->kept[i]);
        if (o->set.overflowed)
            w->kept[i] = UINT64_MAX;
    }
    search_set(w);
}

/* The ranges in which targets still are, as brackets. False: they are too many, or there is no room for what is in them. */
static bool open_brackets(const struct quantiles *w, struct order_brackets *brackets)
{
    const uint64_t room = w->o.positions / KEPT_PART / 2;
    uint64_t inside = 0;
    *brackets = (struct order_brackets){.whole = true};
    for (uint64_t i = 0; i < w->target_count; i++) {
        const struct order_target *const target = &w->targets[i];
        if (target->low == target->last || (brackets->count > 0 && brackets->list[brackets->count - 1].low == target->low))
            continue;
        inside += target->count;
        if (brackets->count == ORDER_BRACKETS_MOST || inside > room)
            return false;
        brackets->list[brackets->count++] = (struct order_bracket){target->low, target->last};
    }
    return true;
}

static void find_elements(struct quantiles *w)
{
    struct order *const o = &w->o;
    const uint64_t own = o->input->range.count;
    struct order_brackets brackets = {.count = 1, .whole = true, .list = {{0, order_last(o->input->type)}}};
    const bool whole = o->positions <= WHOLE_MOST;
    bool fits = true;
    order_room(o, whole ? u64_max(own, 1) : u64_max(u64_max(own / KEPT_PART, WHOLE_MOST), SAMPLE_MOST_SEVERAL));
    if (!whole && w->call->count > ORDER_BRACKETS_MOST)
        brackets.count = 0; /* a pass that only counts elements: narrowing finds so many */
    else if (!whole)
        sample_brackets(w, &brackets);
    bracket_pass(w, &brackets);
    const bool are_nan = w->call->nan == ALLFOLD_NAN_PROPAGATE && w->nans > 0; /* the results: nothing need be found */
    while (!are_nan && order_is_open(w->targets, w->target_count) && !o->error->shared) {
        if (fits && open_brackets(w, &brackets)) {
            bracket_pass(w, &brackets);
            fits = !o->set.overflowed;
        } else {
            order_narrow(o, false, w->targets, w->target_count);
        }
    }
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
    if (w->nans > 0 && w->call->nan == ALLFOLD_NAN_PROPAGATE)
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
    order_open(&w.o, error->status == ALLFOLD_OK ? call_number(call, call->nan) : 0, false);
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
