/* Tables of keys, whose intervals passes count: see order_passes.h. */
#include "core/order_passes.h"

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

void order_table_free(struct order_table *table)
{
    free((void *)(uintptr_t)table->keys);
    free((void *)(uintptr_t)table->cells);
}
