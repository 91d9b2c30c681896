/* The search for elements of a given rank: their ranges of keys are cut into digits, by passes (order_passes.c). Called by quantile.c and topk.c. */
#include "core/order_passes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS_ALL = 1 << 20, DIGITS_OF_SET = 1 << 16, DIGITS_MOST = 1 << 11 /* of a range, */, DIGITS_EACH = 4 /* at least */ };
enum { SEARCHED_MOST = 1 << 12 }; /* targets in a set, for which several searches take less time than tables of as many ranges */

bool order_is_open(const struct order_target *targets, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (order_target_is_open(&targets[i]))
            return true;
    return false;
}

static int compare_cuts(const void *a, const void *b)
{
    const struct order_cut *const x = a, *const y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* The ranges of targets that are open, each once, in order. */
static uint32_t list_cuts(const struct order_target *targets, uint64_t count, struct order_cut *cuts)
{
    uint32_t found = 0, kept = 0;
    for (uint64_t i = 0; i < count; i++)
        if (order_target_is_open(&targets[i]))
            cuts[found++] = (struct order_cut){.low = targets[i].low, .last = targets[i].last};
    qsort(cuts, found, sizeof *cuts, compare_cuts);
    for (uint32_t i = 0; i < found; i++)
        if (kept == 0 || cuts[kept - 1].low != cuts[i].low)
            cuts[kept++] = cuts[i];
    return kept;
}

/* Cuts the ranges, and numbers the boundaries. How many there are. */
static uint32_t cut_digits(struct order_cut *cuts, uint32_t count, uint32_t all, uint64_t most_key)
{
    uint32_t most = DIGITS_MOST;
    while (most > DIGITS_EACH && (uint64_t)most * count > all)
        most /= 2;
    for (uint32_t c = 0; c < count; c++)
        order_cut_into(&cuts[c], most);
    return order_cuts_number(cuts, count, most_key);
}

static void take_digit(const struct order *o, const struct order_cut *cut, struct order_target *target)
{
    const uint64_t *const counts = o->counts + ORDER_FIRST_COUNT + cut->first + 1;
    uint64_t below = 0;
    uint32_t digit = 0;
    while (digit + 1 < cut->digits && target->below + below + counts[digit] <= target->rank)
        below += counts[digit++];
    order_target_narrow(target, cut, digit, below, counts[digit]);
}

/* The table of all digits. */
static void make_table(struct order *o, allfold_type type, const struct order_cut *cuts, uint32_t count, uint32_t found, struct order_table *table)
{
    uint64_t *const boundaries = malloc((found + 1) * sizeof *boundaries);
    if (boundaries == NULL) {
        error_set(o->error, ALLFOLD_NO_MEMORY, "no memory for %u ranges of keys", count);
        return;
    }
    for (uint32_t c = 0; c < count; c++) {
        for (uint32_t digit = 0; digit < cuts[c].digits; digit++)
            boundaries[cuts[c].first + digit] = cuts[c].low + ((uint64_t)digit << cuts[c].shift);
        boundaries[cuts[c].first + cuts[c].digits] = cuts[c].last + 1; /* the end, or what the next one begins with, or behind all */
    }
    order_table_make(table, type, boundaries, found, o->error);
    free(boundaries);
}

void order_narrow(struct order *o, bool of_set, struct order_target *targets, uint64_t count)
{
    const allfold_type type = of_set ? order_key_type(o->input->type) : o->input->type;
    struct order_cut *const cuts = malloc((count + 1) * sizeof *cuts);
    struct order_table table = {.count = 0};
    struct order_work work = {.kind = ORDER_TABLE, .table = &table};
    uint32_t open = 0, found = 0;
    if (o->error->shared || !order_is_open(targets, count)) {
        free(cuts);
        return;
    }
    if (cuts == NULL) {
        error_set(o->error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " ranges of keys", count);
    } else {
        open = list_cuts(targets, count, cuts);
        found = cut_digits(cuts, open, !of_set ? DIGITS_ALL : open <= ORDER_SEARCH_MOST ? ORDER_DIGITS_MOST : DIGITS_OF_SET, order_most(type));
        if ((of_set ? o->set.on_device : o->ctx->device->backend->own_memory) && open <= ORDER_CUTS_MOST && found <= ORDER_DIGITS_MOST + open)
            work = (struct order_work){.kind = ORDER_DIGITS, .cuts = cuts, .cut_count = open, .digits = found + 1};
        else
            make_table(o, type, cuts, open, found, &table);
    }
    (of_set ? order_pass_set : order_pass)(o, &work, (uint64_t)found + 1);
    for (uint64_t i = 0; i < count && !order_failed(o); i++)
        if (order_target_is_open(&targets[i]))
            take_digit(o, bsearch(&(struct order_cut){.low = targets[i].low}, cuts, open, sizeof *cuts, compare_cuts), &targets[i]);
    order_table_free(&table);
    free(cuts);
}

static int compare_targets(const void *a, const void *b)
{
    const struct order_target *const x = *(struct order_target *const *)a, *const y = *(struct order_target *const *)b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

/* All passes in one, for some targets at a time, of a device whose set is the only one. */
static void search_on_device(struct order *o, struct order_target *targets, uint32_t count, uint32_t passes)
{
    const struct order_elements elements = {order_key_type(o->input->type), o->set.keys, o->set.count, 0};
    struct order_target *places[SEARCHED_MOST], sorted[ORDER_SEARCH_MOST];
    for (uint32_t i = 0; i < count; i++)
        places[i] = &targets[i];
    qsort(places, count, sizeof *places, compare_targets);
    for (uint32_t first = 0; first < count && !order_failed(o); first += ORDER_SEARCH_MOST) {
        const uint32_t n = (uint32_t)u64_min(count - first, ORDER_SEARCH_MOST);
        for (uint32_t i = 0; i < n; i++)
            sorted[i] = *places[first + i];
        const struct order_work work = {.kind = ORDER_SEARCH, .targets = sorted, .target_count = n, .rounds = passes};
        order_run_elements(o, &work, &elements, ORDER_SEARCH_COUNTS * sizeof *o->counts, true);
        for (uint32_t i = 0; i < n && !order_failed(o); i++)
            memcpy(places[first + i], (const struct order_target *)(const void *)o->counts + i, sizeof *places[first + i]);
    }
    comm_agree(&o->ctx->comm, o->error);
}

void order_search(struct order *o, struct order_target *targets, uint64_t count, uint32_t passes)
{
    const bool alone = o->ctx->comm.size == 1 && o->set.on_device && o->set.count > 0 && o->set.count <= UINT32_MAX && count <= SEARCHED_MOST;
    if (alone && passes > 0 && !order_failed(o) && order_is_open(targets, count))
        search_on_device(o, targets, (uint32_t)count, passes);
    for (uint32_t i = 0; !alone && i < passes && order_is_open(targets, count) && !o->error->shared; i++)
        order_narrow(o, true, targets, count);
}
