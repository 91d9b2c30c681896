/* Tables of keys, whose intervals passes count: see order_passes.h. */
#include "core/order_passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COARSE_MOST = 1 << 11, /* their splits fit a first-level cache */ CELLS_MOST = 1 << 20 };

allfold_status order_guess_by_key(struct order_guess *guess, allfold_type type, const uint64_t *keys, uint64_t count, struct error *error)
{
    const uint64_t length = count > 0 ? keys[count - 1] - keys[0] : 0, most = order_most(type);
    struct order_split *const splits = calloc(COARSE_MOST, sizeof *splits);
    *guess = (struct order_guess){.base = count > 0 ? keys[0] : 0, .last = most, .splits = splits};
    if (splits == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %d ranges of keys", COARSE_MOST);
    while (length >> guess->shift >= COARSE_MOST)
        guess->shift++;
    guess->coarse = (uint32_t)(length >> guess->shift) + 1;
    const uint64_t within = (UINT64_C(1) << guess->shift) - 1, behind = ((uint64_t)(guess->coarse - 1) << guess->shift) | within;
    guess->top = behind > most - guess->base ? most : guess->base + behind;
    uint64_t shared = 1; /* keys of which two cells are made, or up to four: less if keys are very many */
    while (4 * count / shared > CELLS_MOST)
        shared *= 2;
    for (uint64_t i = 0; i < count; i++)
        splits[(keys[i] - guess->base) >> guess->shift].first++;
    for (uint32_t c = 0; c < guess->coarse; c++) {
        uint32_t bits = 0;
        while (bits < guess->shift && shared << bits < 2 * (uint64_t)splits[c].first)
            bits++;
        splits[c] = (struct order_split){guess->cells, guess->shift - bits};
        guess->cells += 1u << bits;
    }
    return ALLFOLD_OK;
}

bool order_guess_even(struct order_guess *guess, double low, double high, uint64_t bins)
{
    const double scale = (double)bins / (high - low);
    *guess = (struct order_guess){.even = true, .cells = (uint32_t)bins + 1, .low = low, .scale = scale, .low_f32 = (float)low, .scale_f32 = (float)scale};
    return isfinite(low) && scale > 0 && isfinite((float)scale) && guess->scale_f32 > 0 && isfinite(guess->low_f32);
}

allfold_status order_table_make(struct order_table *table, allfold_type type, const uint64_t *boundaries, uint32_t count, struct error *error)
{
    const struct order_space space = order_space_of(type);
    const size_t each = allfold_type_bytes(type);
    if (!table->guess.even && order_guess_by_key(&table->guess, type, boundaries, count, error) != ALLFOLD_OK)
        return error->status;
    char *const keys = calloc(count + 1, each);
    uint32_t *const cells = calloc((size_t)table->guess.cells + 1, sizeof *cells);
    table->count = count;
    table->keys = keys;
    table->cells = cells;
    if (keys == NULL || cells == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for %u intervals", count + 1);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(keys + i * each, &boundaries[i], each); /* little-endian: the low bytes */
        cells[order_cell(&space, boundaries[i], &table->guess) + 1]++;
    }
    for (uint32_t cell = 0; cell < table->guess.cells; cell++)
        cells[cell + 1] += cells[cell];
    return ALLFOLD_OK;
}

uint64_t *order_table_grid(struct order_table *table, allfold_type type, const uint64_t *keys, uint64_t count, struct error *error)
{
    struct order_guess *const guess = &table->guess;
    const uint64_t last = order_last(type);
    if (order_guess_by_key(guess, type, keys, count, error) != ALLFOLD_OK)
        return NULL;
    uint64_t *const boundaries = malloc((guess->cells + 1) * sizeof *boundaries);
    uint32_t cells = 0;
    for (uint32_t c = 0; boundaries != NULL && c < guess->coarse; c++) {
        const uint32_t end = c + 1 < guess->coarse ? guess->splits[c + 1].first : guess->cells;
        for (uint32_t cell = guess->splits[c].first; cell < end; cell++) {
            const uint64_t at = ((uint64_t)c << guess->shift) + ((uint64_t)(cell - guess->splits[c].first) << guess->splits[c].shift);
            if (at > last - guess->base) /* these cells have no number */
                break;
            if (cells++ > 0)
                boundaries[cell - 1] = guess->base + at;
        }
    }
    guess->cells = cells;
    guess->exact = true;
    guess->last = last;
    table->count = cells > 0 ? cells - 1 : 0;
    if (boundaries == NULL) {
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for %u intervals", guess->cells);
    } else if (last < order_most(type)) { /* NaN's cell */
        guess->cells++;
        boundaries[table->count++] = last + 1;
    }
    return boundaries;
}

void order_table_free(struct order_table *table)
{
    free((void *)(uintptr_t)table->keys);
    free((void *)(uintptr_t)table->cells);
    free((void *)(uintptr_t)table->guess.splits);
}
