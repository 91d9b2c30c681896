/* Tables: what experiments and checks find, row by row. */
#include "kernels/ladder/ladder.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

enum { CHECK_RUNG, CHECK_COUNT, CHECK_WRONG, CHECK_VERDICT };

allfold_status ladder_check_begin(const struct ladder_rung_list *rungs, int rung, struct ladder_table *table, struct error *error)
{
    ladder_table_column(table, "rung", "rung", LADDER_TEXT);
    ladder_table_column(table, "checks", "checks", LADDER_INTEGER);
    ladder_table_column(table, "wrong", "wrong", LADDER_INTEGER);
    ladder_table_column(table, "correct", "result", LADDER_VERDICT);
    table->compared = -1;
    snprintf(table->title, sizeof table->title, "every result compared with the oracle, nothing timed");
    for (int i = 0; i < rungs->count; i++) {
        struct ladder_cell *const row = rung < 0 || rung == i ? ladder_table_row(table, error) : NULL;
        if (error->status != ALLFOLD_OK)
            break;
        if (row == NULL)
            continue;
        snprintf(row[CHECK_RUNG].text, sizeof row[CHECK_RUNG].text, "%s", rungs->rungs[i].name);
        row[CHECK_COUNT].number = row[CHECK_WRONG].number = 0.0;
        ladder_table_verdict(table, &row[CHECK_VERDICT], NULL);
    }
    return error->status;
}

void ladder_check_note(struct ladder_table *table, const struct ladder_rung *rung, const char *why)
{
    struct ladder_cell *row = table->cells;
    while (strcmp(row[CHECK_RUNG].text, rung->name) != 0)
        row += table->column_count;
    row[CHECK_COUNT].number += 1.0;
    if (why != NULL && why[0] != '\0' && row[CHECK_WRONG].number++ == 0.0)
        ladder_table_verdict(table, &row[CHECK_VERDICT], why);
}
