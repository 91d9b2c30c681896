/* The search for elements of a given rank: their ranges of keys are cut into digits, by passes (order_passes.c). Called by quantile.c and topk.c. */
#include "core/order_passes.h"

#include <inttypes.h>
#include <stdlib.h>

enum { DIGITS_ALL = 1 << 16, DIGITS_MOST = 1 << 11 };

/* Ranges of keys that are cut into digits: boundaries from `first` on, of which the last is the end. */
struct cut {
    uint64_t low, last;
    uint32_t first, digits, shift;
};

static bool is_open(const struct order_target *target) { return target->low < target->last; }

bool order_is_open(const struct order_target *targets, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (is_open(&targets[i]))
            return true;
    return false;
}

static int compare_cuts(const void *a, const void *b)
{
    const struct cut *const x = a, *const y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* The ranges of targets that are open, each once, in order. */
static uint32_t list_cuts(const struct order_target *targets, uint64_t count, struct cut *cuts)
{
    uint32_t found = 0, kept = 0;
    for (uint64_t i = 0; i < count; i++)
        if (is_open(&targets[i]))
            cuts[found++] = (struct cut){.low = targets[i].low, .last = targets[i].last};
    qsort(cuts, found, sizeof *cuts, compare_cuts);
    for (uint32_t i = 0; i < found; i++)
        if (kept == 0 || cuts[kept - 1].low != cuts[i].low)
            cuts[kept++] = cuts[i];
    return kept;
}

/* Boundaries of all digits. */
static uint32_t cut_digits(struct cut *cuts, uint32_t count, uint64_t *boundaries)
{
    uint32_t most = DIGITS_MOST, found = 0;
    while (most > 2 && (uint64_t)most * count > DIGITS_ALL)
        most /= 2;
    for (uint32_t c = 0; c < count; c++) {
        struct cut *const cut = &cuts[c];
        while ((cut->last - cut->low) >> cut->shift >= most)
            cut->shift++;
        cut->digits = (uint32_t)((cut->last - cut->low) >> cut->shift) + 1;
        cut->first = found;
        for (uint32_t digit = 0; digit < cut->digits; digit++)
            boundaries[found++] = cut->low + ((uint64_t)digit << cut->shift);
        if (c + 1 == count || cuts[c + 1].low != cut->last + 1)
            boundaries[found++] = cut->last + 1; /* above the largest key it is 0, and left out */
    }
    return found;
}

static void take_digit(const struct order *o, const struct cut *cut, struct order_target *target)
{
    const uint64_t *const counts = o->counts + ORDER_FIRST_COUNT + cut->first + 1;
    uint32_t digit = 0;
    while (digit + 1 < cut->digits && target->below + counts[digit] <= target->rank)
        target->below += counts[digit++];
    target->count = counts[digit];
    target->low = cut->low + ((uint64_t)digit << cut->shift);
    target->last = digit + 1 == cut->digits ? cut->last : target->low + (UINT64_C(1) << cut->shift) - 1;
}

/* Cells of one width, from the first boundary to the last. */
static struct order_guess guess_of(const uint64_t *boundaries, uint32_t count, const struct cut *cuts, uint32_t cut_count)
{
    struct order_guess guess = {.base = boundaries[0], .shift = cut_count == 1 ? cuts->shift : 0, .cells = 1};
    const uint64_t length = boundaries[count - 1] - guess.base;
    while (length >> guess.shift >= 2 * DIGITS_MOST)
        guess.shift++;
    guess.cells = (uint32_t)(length >> guess.shift) + 1;
    return guess;
}

/* The table of all digits of targets that are open. */
static void make_digits(struct order *o, allfold_type type, struct cut *cuts, uint32_t count, struct order_table *table)
{
    uint64_t *const boundaries = malloc((DIGITS_ALL + 3 * (size_t)count) * sizeof *boundaries);
    if (boundaries == NULL) {
        error_set(o->error, ALLFOLD_NO_MEMORY, "no memory for %u ranges of keys", count);
        return;
    }
    uint32_t found = cut_digits(cuts, count, boundaries);
    if (boundaries[found - 1] == 0 || boundaries[found - 1] > order_most(type))
        found--;
    table->guess = guess_of(boundaries, found, cuts, count);
    order_table_make(table, type, boundaries, found, o->error);
    free(boundaries);
}

void order_narrow(struct order *o, bool of_set, struct order_target *targets, uint64_t count)
{
    struct cut *const cuts = malloc((count + 1) * sizeof *cuts);
    struct order_table table = {.guess = {.cells = 1}};
    struct order_work work = {.kind = ORDER_TABLE, .table = &table};
    uint32_t open = 0;
    if (o->error->shared || !order_is_open(targets, count)) {
        free(cuts);
        return;
    }
    if (cuts == NULL)
        error_set(o->error, ALLFOLD_NO_MEMORY, "no memory for %" PRIu64 " ranges of keys", count);
    else
        make_digits(o, of_set ? order_key_type(o) : o->input->type, cuts, open = list_cuts(targets, count, cuts), &table);
    (of_set ? order_pass_set : order_pass)(o, &work, table.count + 1);
    for (uint64_t i = 0; i < count && !order_failed(o); i++)
        if (is_open(&targets[i]))
            take_digit(o, bsearch(&(struct cut){.low = targets[i].low}, cuts, open, sizeof *cuts, compare_cuts), &targets[i]);
    order_table_free(&table);
    free(cuts);
}
