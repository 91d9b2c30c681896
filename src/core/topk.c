/* The largest or smallest elements: a sample says from which key on few more than k elements lie, one pass keeps these with their indices, and the
   ranks exchange the best k of each. If that missed, or ties found no room, the key of the last one wanted is found by narrowing, and then, among
   its ties, the index. */
#include "base/draw.h"
#include "core/order_passes.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WHOLE_MOST = 1 << 17, SAMPLE_MOST = 1 << 18, SAMPLE_MOST_HOST = 1 << 16, INDEX_RANGES = 1 << 16,
    NARROWED = 3, /* passes over a sample, at most, */
    LEAST_ROOM = 64, /* of candidates */
    ENOUGH = 8,   /* elements of it, about, that may be taken beyond those that are wanted */
    TIES_FEW = 1 << 14 /* elements in device memory, besides the k and as many, that the host takes sooner than a pass leaves ties out */
};

struct candidate {
    uint64_t order, key, index; /* order: the less, the better; equal for elements that are equal */
};

struct top {
    struct order o; /* first */
    struct order_space space;
    uint64_t k;
    bool smallest;
    struct candidate *best; /* of this rank, so far. If there are `room`, they are cut to the k best */
    uint64_t best_count, room;
    uint64_t inside;  /* elements of all ranks in the bracket of the last pass */
    uint64_t missing; /* NaNs that are left out, of all ranks */
};

/* ---- the best of some */

static struct candidate candidate_of(const struct top *t, uint64_t key, uint64_t index)
{
    const uint64_t equal = order_equals(&t->space, key).low;
    return (struct candidate){t->smallest ? equal : UINT64_MAX - equal, key, index};
}

static bool is_worse(const struct candidate *a, const struct candidate *b)
{
    return a->order != b->order ? a->order > b->order : a->index > b->index;
}

static int compare_candidates(const void *a, const void *b) { return is_worse(a, b) ? 1 : -1; } /* none are equal */

/* Leaves the k best, the worst of which is the last. */
static void keep_best(struct top *t)
{
    struct candidate *const best = t->best;
    const int64_t wanted = (int64_t)t->k - 1;
    int64_t low = 0, high = (int64_t)t->best_count - 1;
    if (wanted >= high)
        return;
    while (low < high) {
        const struct candidate pivot = best[low + (int64_t)(draw_mix((uint64_t)(high + low)) % (uint64_t)(high - low + 1))];
        int64_t i = low, j = high;
        while (i <= j) {
            while (is_worse(&pivot, &best[i]))
                i++;
            while (is_worse(&best[j], &pivot))
                j--;
            if (i <= j) {
                const struct candidate other = best[i];
                best[i++] = best[j];
                best[j--] = other;
            }
        }
        if (j < wanted)
            low = i;
        if (wanted < i)
            high = j;
    }
    t->best_count = t->k;
}

/* Sorts the best: few in less time than qsort takes to call a function for each comparison. */
static void sort_best(struct top *t)
{
    if (t->best_count > LEAST_ROOM) {
        keep_best(t);
        qsort(t->best, t->best_count, sizeof *t->best, compare_candidates);
        return;
    }
    for (uint64_t i = 1; i < t->best_count; i++) {
        const struct candidate next = t->best[i];
        uint64_t at = i;
        for (; at > 0 && is_worse(&t->best[at - 1], &next); at--)
            t->best[at] = t->best[at - 1];
        t->best[at] = next;
    }
}

/* Whether only the k best are left now. */
static bool hold(struct top *t, struct candidate candidate)
{
    t->best[t->best_count++] = candidate;
    if (t->best_count < t->room)
        return false;
    keep_best(t);
    return true;
}

/* The keys that may be among the best: those of elements that are not worse than the last of the k. */
static struct order_bracket bounds_of(const struct top *t)
{
    return t->k == 0 ? (struct order_bracket){1, 0} : order_side(&t->space, t->best[t->k - 1].key, t->smallest, UINT64_MAX);
}

/* The keys of a set of which k are the best, and mostly few more: their digits in the set's range tell. */
#define DEFINE(bytes, bits, type, signed_type)                                                                    \
    static struct order_bracket likely_##bits(const struct top *t, const type *keys, uint64_t count)             \
    {                                                                                                             \
        enum { DIGITS = 512 };                                                                                    \
        uint64_t counts[DIGITS] = {0};                                                                            \
        struct order_target worst = {0};                                                                          \
        type low = (type)UINT64_MAX, last = 0;                                                                    \
        for (uint64_t i = 0; i < count; i++) {                                                                    \
            low = keys[i] < low ? keys[i] : low;                                                                  \
            last = keys[i] > last ? keys[i] : last;                                                               \
        }                                                                                                         \
        struct order_cut cut = {.low = low, .last = last};                                                        \
        order_cut_into(&cut, DIGITS);                                                                             \
        for (uint64_t i = 0; i < count; i++)                                                                      \
            counts[(type)(keys[i] - low) >> cut.shift]++;                                                         \
        uint32_t digit = t->smallest ? 0 : cut.digits - 1;                                                        \
        for (uint64_t left = t->k; left > counts[digit]; digit += t->smallest ? 1 : UINT32_MAX)                   \
            left -= counts[digit];                                                                                \
        order_target_narrow(&worst, &cut, digit, 0, 0);                                                           \
        return order_side(&t->space, t->smallest ? worst.last : worst.low, t->smallest, UINT64_MAX);              \
    }
ORDER_WIDTHS(DEFINE)
#undef DEFINE

/* Takes the best of a set in host memory, and mostly few more. */
static void take_set(struct top *t, const struct order_set *set)
{
    struct order_bracket bounds = {0, UINT64_MAX};
    t->best_count = 0;
    switch (order_key_bytes(&t->o)) {
#define CASE(bytes, bits, type, signed_type)                                               \
    case bytes: {                                                                          \
        const type *const keys = (const type *)(const void *)set->keys;                    \
        if (set->count > t->k && t->k > 0)                                                 \
            bounds = likely_##bits(t, keys, set->count);                                   \
        for (uint64_t i = 0; i < set->count; i++) {                                        \
            if (keys[i] < bounds.low || keys[i] > bounds.last)                             \
                continue;                                                                  \
            if (hold(t, candidate_of(t, keys[i], set->indices[i])))                        \
                bounds = bounds_of(t);                                                     \
        }                                                                                  \
        break;                                                                             \
    }
        ORDER_WIDTHS(CASE)
#undef CASE
    }
}

/* Leaves only the k best in the set. */
static void trim_set(struct order *o)
{
    struct top *const t = (struct top *)o;
    const size_t each = order_key_bytes(o);
    take_set(t, &o->set);
    keep_best(t);
    for (uint64_t i = 0; i < t->best_count; i++) {
        memcpy(o->set.keys + i * each, &t->best[i].key, each); /* little-endian: the low bytes */
        o->set.indices[i] = t->best[i].index;
    }
    o->set.count = t->best_count;
}

/* ---- the passes */

/* The keys on the wanted side of this one, itself and its equals included. */
static struct order_bracket side_of(const struct top *t, uint64_t key)
{
    const allfold_type type = t->o.input->type;
    return order_side(&t->space, key, t->smallest, t->o.input->nan == ALLFOLD_NAN_PROPAGATE ? order_most(type) : order_last(type));
}

/* After a pass: whether it has kept the k that are wanted. */
static bool take_counts(struct top *t)
{
    const struct order *const o = &t->o;
    if (o->error->status != ALLFOLD_OK)
        return false;
    const uint64_t *const counts = o->counts + ORDER_FIRST_COUNT;
    t->missing = o->input->nan == ALLFOLD_NAN_PROPAGATE ? 0 : o->counts[ORDER_NANS];
    t->inside = counts[ORDER_LOW] + counts[ORDER_LAST] + counts[ORDER_BETWEEN];
    return o->kept >= t->k && !o->set.overflowed;
}

static bool keep_side(struct top *t, uint64_t key, struct order_ties ties, uint64_t limit)
{
    const struct order_brackets brackets = {1, true, {side_of(t, key)}};
    struct order_work work = {.kind = ORDER_BRACKETS, .brackets = &brackets, .ties = ties, .limit = limit};
    order_pass(&t->o, &work, ORDER_COUNTS);
    return take_counts(t);
}

/* The index below which enough ties lie, mostly, if so large a part of the elements are ties. */
static uint64_t early_index(const struct top *t, double part) { return (uint64_t)fmin((double)t->o.positions, 4 * ((double)t->k + ENOUGH) / part); }

/* How many elements of a sample that is worth so much are taken so that the k are among what lies beyond, but once in thousands of times. */
static double sampled_rank(const struct top *t, uint64_t found, uint64_t worth)
{
    const double at = (double)t->k / (double)t->o.positions, n = (double)u64_max(worth, 1);
    return ceil((at + (3.5 * sqrt(n * at) + 1) / n) * (double)found);
}

/* The sample and the pass in one, if few elements of the sample will do. *key: where the side begins. *is_kept as keep_side says. False: there was no pass, or an
   error. */
static bool chain_pass(struct top *t, uint64_t *key, bool *is_kept)
{
    struct order *const o = &t->o;
    struct order_work work = {.sample = SAMPLE_MOST, .target_count = 1, .smallest = t->smallest, .ties = {.low = 1}};
    const uint64_t found = o->x.elements / order_stride(o, SAMPLE_MOST);
    const double rank = sampled_rank(t, found, found);
    const struct order_target target = {.rank = (uint64_t)rank, .room = (uint64_t)rank + ENOUGH};
    work.targets = &target;
    const struct order_chain *const chain = rank < ORDER_CHAIN_TOP ? order_pass_chain(o, &work) : NULL;
    if (chain == NULL || !chain->is_done)
        return false;
    *key = t->smallest ? chain->brackets.list->last : chain->brackets.list->low;
    *is_kept = take_counts(t);
    return true;
}

/* A key with few more than k elements on the wanted side, as a sample says. If more than that equal it, they are ties, of which the first will do, mostly: *ties
   and *limit. */
static uint64_t sampled_key(struct top *t, struct order_ties *ties, uint64_t *limit)
{
    struct order *const o = &t->o;
    const allfold_type type = o->input->type;
    uint64_t found = 0, worth = 0;
    order_sample(o, o->ctx->device->backend->own_memory ? SAMPLE_MOST : SAMPLE_MOST_HOST, &found, &worth);
    if (o->error->status != ALLFOLD_OK)
        return 0;
    const double wanted = sampled_rank(t, found, worth);
    if (!(wanted < (double)found))
        return t->smallest ? order_most(type) : 0;
    struct order_target target = {.rank = t->smallest ? (uint64_t)wanted : found - 1 - (uint64_t)wanted, .last = order_most(type), .count = found,
                                  .room = (uint64_t)wanted + ENOUGH};
    order_search(o, &target, 1, NARROWED);
    const uint64_t key = t->smallest ? target.last : target.low;
    const struct order_bracket equal = order_equals(&t->space, key);
    const bool ties_cost = o->ctx->device->backend->own_memory; /* a host keeps the best k of them as they come */
    if (o->error->status == ALLFOLD_OK && ties_cost && target.low >= equal.low && target.last <= equal.last && target.count > target.room) {
        *ties = (struct order_ties){.low = equal.low, .last = equal.last};
        *limit = early_index(t, (double)target.count / (double)found);
    }
    return key;
}

/* Narrows the range of the last element that is wanted until at most `most` more than the k are on the wanted side of it. */
static void narrow_last(struct top *t, struct order_target *last, uint64_t most)
{
    for (uint64_t more = UINT64_MAX; order_is_open(last, 1) && more > most && !t->o.error->shared;) {
        order_narrow(&t->o, false, last, 1);
        more = t->smallest ? last->below + last->count - 1 - last->rank : last->rank - last->below;
    }
}

/* After a pass that missed: keeps the k, and few more, as keep_side says. *key: that of the last one, if they were not kept. */
static bool keep_last(struct top *t, uint64_t *key)
{
    struct order *const o = &t->o;
    const uint64_t count = o->seen - t->missing;
    const allfold_type type = o->input->type;
    const uint64_t end = o->input->nan == ALLFOLD_NAN_PROPAGATE ? order_most(type) : order_last(type);
    struct order_target last = {.rank = t->smallest ? t->k - 1 : count - t->k, .last = end, .count = count};
    const struct order_ties none = {.low = 1};
    narrow_last(t, &last, SAMPLE_MOST); /* for which a set has room */
    *key = t->smallest ? last.last : last.low;
    const bool is_kept = !o->error->shared && keep_side(t, *key, none, UINT64_MAX);
    if (is_kept || o->error->shared || !order_is_open(&last, 1))
        return is_kept;
    narrow_last(t, &last, 0);
    *key = t->smallest ? last.last : last.low;
    return !o->error->shared && keep_side(t, *key, none, UINT64_MAX);
}

/* The index below which enough ties of the last key lie, not many more. */
static uint64_t last_index(struct top *t, const struct order_ties *ties)
{
    struct order *const o = &t->o;
    struct order_work work = {.kind = ORDER_TIES, .ties = *ties};
    uint64_t found = t->inside, range = 0;
    while (o->positions >> work.ties.shift >= INDEX_RANGES)
        work.ties.shift++;
    order_pass(o, &work, INDEX_RANGES);
    if (o->error->status != ALLFOLD_OK)
        return 0;
    for (uint64_t i = 0; i < INDEX_RANGES; i++)
        found -= o->counts[ORDER_FIRST_COUNT + i]; /* what is beyond the ties */
    while (range < INDEX_RANGES && (found += o->counts[ORDER_FIRST_COUNT + range]) < t->k)
        range++;
    return (range + 1) << work.ties.shift;
}

/* Whether the last one wanted is among those that equal this key, at which the bracket of the last pass ended. */
static bool ends_among_ties(const struct top *t, uint64_t key)
{
    const uint64_t *const counts = t->o.counts + ORDER_FIRST_COUNT;
    const struct order_bracket side = side_of(t, key);
    const uint64_t equal = t->smallest && side.low < side.last ? counts[ORDER_LAST] : counts[ORDER_LOW];
    return order_equals(&t->space, key).low == order_equals(&t->space, key).last && t->inside >= t->k && t->inside - equal < t->k;
}

static void find(struct top *t)
{
    struct order *const o = &t->o;
    const uint64_t own = o->input->range.count;
    const bool whole = o->positions <= WHOLE_MOST;
    const struct order_ties none = {.low = 1};
    struct order_ties sampled = none;
    uint64_t limit = UINT64_MAX;
    order_room(o, whole ? u64_max(own, 1) : u64_min(u64_max(own, SAMPLE_MOST), u64_max(own / 64, SAMPLE_MOST) + 3 * t->k));
    uint64_t key = 0;
    bool is_found = false;
    const bool is_distinct = order_key_bytes(o) >= 4 || t->space.kind == 'f'; /* mostly: of short integers many are equal */
    const bool is_chained = !whole && is_distinct && order_has_chain(o) && chain_pass(t, &key, &is_found);
    if (!is_chained) {
        key = whole ? (t->smallest ? order_most(o->input->type) : 0) : sampled_key(t, &sampled, &limit);
        is_found = keep_side(t, key, sampled, limit);
    }
    const bool is_early = limit < UINT64_MAX;
    const bool is_known = !o->error->shared && ends_among_ties(t, key);
    const bool is_kept = is_found || (is_early && !is_known && !o->error->shared && keep_side(t, key, none, UINT64_MAX));
    if (o->error->shared || o->seen - t->missing < t->k || (is_kept && (is_early || !is_known || o->kept_there < 2 * t->k + TIES_FEW)))
        return;
    uint64_t last = key;
    if ((!is_known && keep_last(t, &last)) || o->error->shared)
        return;
    const struct order_bracket equal = order_equals(&t->space, last);
    const struct order_ties ties = {.low = equal.low, .last = equal.last};
    if (!(is_early && is_known) && keep_side(t, last, ties, early_index(t, (double)t->inside / (double)o->positions)))
        return;
    if (o->error->shared)
        return;
    limit = last_index(t, &ties);
    if (!o->error->shared)
        keep_side(t, last, ties, limit);
}

/* ---- what was kept */

/* Every rank gets the best of all. */
static void gather(struct top *t)
{
    struct order *const o = &t->o;
    const uint64_t k = t->k;
    if (!order_failed(o)) { /* else there may be no room */
        keep_best(t);
        t->best[k].index = t->best_count;
    }
    struct candidate *const all = comm_gather_all(&o->ctx->comm, t->best, (k + 1) * sizeof *t->best, o->error);
    if (all == NULL)
        return;
    t->best_count = 0;
    for (int rank = 0; rank < o->ctx->comm.size; rank++) {
        const struct candidate *const list = all + (uint64_t)rank * (k + 1);
        for (uint64_t i = 0; i < list[k].index; i++)
            hold(t, list[i]);
    }
    keep_best(t);
    free(all);
}

allfold_status core_topk(struct allfold_context *ctx, const struct order_input *input, uint64_t k, bool smallest, struct order_top *top,
                         struct error *error)
{
    struct top t = {.o = {.ctx = ctx, .input = input, .error = error, .indexed = true, .trim = trim_set}, .space = order_space_of(input->type), .k = k,
                    .smallest = smallest, .room = 2 * k + LEAST_ROOM};
    t.best = malloc(t.room * sizeof *t.best);
    if (t.best == NULL)
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " elements", k);
    order_open(&t.o, k << 8 | (uint64_t)smallest << 4 | (uint64_t)input->nan, false);
    if (error->status == ALLFOLD_OK)
        find(&t);
    if (error->status == ALLFOLD_OK && input->nan == ALLFOLD_NAN_ERROR && t.missing > 0)
        error->shared = error_set(error, ALLFOLD_NO_VALUE, "%" PRIu64 " of %" PRIu64 " elements are NaN, and NaN is refused here", t.missing,
                                  t.o.seen) != ALLFOLD_OK;
    if (error->status == ALLFOLD_OK && t.o.seen - t.missing < k)
        error->shared = error_set(error, ALLFOLD_NO_VALUE, "k is %" PRIu64 ", and there are %" PRIu64 " elements%s", k, t.o.seen - t.missing,
                                  t.missing > 0 ? " that are not NaN" : "") != ALLFOLD_OK;
    const struct order_set kept = order_set_on_host(&t.o);
    if (error->status == ALLFOLD_OK)
        take_set(&t, &kept);
    if (ctx->comm.size == 1)
        comm_agree(&ctx->comm, error);
    else if (!error->shared)
        gather(&t);
    if (error->status == ALLFOLD_OK)
        sort_best(&t);
    for (uint64_t i = 0; i < k && error->status == ALLFOLD_OK; i++)
        top[i] = (struct order_top){order_bits(input->type, t.best[i].key), t.best[i].index};
    order_close(&t.o);
    free(t.best);
    return error->status;
}
