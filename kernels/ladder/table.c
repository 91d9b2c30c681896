/* Tables: what experiments find, row by row. */
#include "kernels/ladder/ladder.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct ladder_cell *ladder_table_row(struct ladder_table *table, struct error *error)
{
    const size_t columns = (size_t)table->column_count, rows = (size_t)table->row_count;
    struct ladder_cell *const cells = realloc(table->cells, (rows + 1) * columns * sizeof *cells);
    if (cells == NULL) {
        error_set(error, ALLFOLD_NO_MEMORY, "no memory for a table of %zu rows", rows + 1);
        return NULL;
    }
    struct ladder_cell *const row = cells + rows * columns;
    for (size_t i = 0; i < columns; i++)
        row[i] = (struct ladder_cell){.number = NAN};
    table->cells = cells;
    table->row_count++;
    return row;
}

struct ladder_cell *ladder_table_fact(struct ladder_table *table, const char *key, const char *heading,
                                      enum ladder_format format)
{
    assert(table->fact_count < LADDER_FACTS_MAX);
    struct ladder_cell *const cell = &table->fact_cells[table->fact_count];
    table->facts[table->fact_count++] = (struct ladder_column){key, heading, format};
    *cell = (struct ladder_cell){.number = NAN};
    return cell;
}

int ladder_table_column(struct ladder_table *table, const char *key, const char *heading, enum ladder_format format)
{
    assert(table->column_count < LADDER_COLUMNS_MAX && table->row_count == 0);
    table->columns[table->column_count] = (struct ladder_column){key, heading, format};
    return table->column_count++;
}

void ladder_table_verdict(struct ladder_table *table, struct ladder_cell *cell, const char *why)
{
    const bool correct = why == NULL || why[0] == '\0';
    cell->number = correct;
    snprintf(cell->text, sizeof cell->text, "%s", correct ? "" : why);
    if (!correct)
        table->correct = false;
}

void ladder_table_free(struct ladder_table *table)
{
    free(table->cells);
    table->cells = NULL;
    table->row_count = 0;
}
