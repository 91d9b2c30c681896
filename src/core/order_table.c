/* Tables of keys, whose intervals passes count: see order_passes.h. */
#include "core/order_passes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

allfold_status order_table_make(struct order_table *table, allfold_type type, const uint64_t *boundaries, uint32_t count, struct error *error)
{
    const struct order_space space = order_space_of(type);
    const size_t each = allfold_type_bytes(type);
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

struct order_guess order_guess_by_key(const uint64_t *boundaries, uint32_t count, uint64_t most)
{
    struct order_guess guess = {.base = count > 0 ? boundaries[0] : 0, .cells = 1};
    const uint64_t length = count > 0 ? boundaries[count - 1] - guess.base : 0;
    while (length >> guess.shift >= most)
        guess.shift++;
    guess.cells = (uint32_t)(length >> guess.shift) + 1;
    return guess;
}

bool order_guess_by_value(struct order_guess *guess, double low, double high, uint32_t cells)
{
    const double scale = (cells - 1) / (high - low);
    *guess = (struct order_guess){.by_value = true, .cells = cells, .low = low, .scale = scale, .low_f32 = (float)low, .scale_f32 = (float)scale};
    return isfinite(low) && scale > 0 && isfinite((float)scale) && guess->scale_f32 > 0 && isfinite(guess->low_f32);
}

/* What it costs to find elements, if all intervals have as many: boundaries that share a cell are searched. */
static double cost(const struct order_table *table)
{
    double sum = 0;
    for (uint32_t cell = 0; cell < table->guess.cells; cell++) {
        const double here = table->cells[cell + 1] - table->cells[cell];
        sum += here > 1 ? here * (1 + log2(here)) : 0;
    }
    return sum;
}

allfold_status order_table_choose(struct order_table *table, allfold_type type, const uint64_t *boundaries, uint32_t count, struct error *error)
{
    const uint32_t cells = (uint32_t)u64_min(4 * (uint64_t)count + 1, ORDER_CELLS_MOST);
    uint32_t numbers = count;
    table->guess = order_guess_by_key(boundaries, count, cells);
    order_table_make(table, type, boundaries, count, error);
    while (numbers > 0 && boundaries[numbers - 1] > order_last(type))
        numbers--;
    for (uint32_t way = 0; way < 2 && numbers > 0 && type_kind(type) == 'f'; way++) { /* as if they were even; without the outermost */
        const uint32_t outer = way == 0 ? 0 : numbers / 32;
        struct order_table other = {.count = 0};
        if (error->status == ALLFOLD_OK && order_guess_by_value(&other.guess, order_real(type, boundaries[outer]),
                                                                order_real(type, boundaries[numbers - 1 - outer]), way == 0 ? count + 1 : cells)
            && order_table_make(&other, type, boundaries, count, error) == ALLFOLD_OK && cost(&other) < cost(table)) {
            const struct order_table worse = *table;
            *table = other;
            other = worse;
        }
        order_table_free(&other);
    }
    return error->status;
}

void order_table_free(struct order_table *table)
{
    free((void *)(uintptr_t)table->keys);
    free((void *)(uintptr_t)table->cells);
}
