/* Fills tables of what is measured and checked: see table.h. */
#include "measure/table.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const struct table_column_facts table_columns[] = {
#define COLUMN(ID, key, heading, format) {key, heading, TABLE_##format},
    TABLE_COLUMNS(COLUMN)
#undef COLUMN
};

void table_add_columns(struct table *table, const enum table_column *columns, int count)
{
    assert(table->column_count + count <= TABLE_COLUMNS_MAX && table->row_count == 0);
    for (int i = 0; i < count; i++)
        table->columns[table->column_count++] = columns[i];
}

/* The place of the column; -1: the table does not have it. */
static int place_of(const struct table *table, enum table_column column)
{
    int i = table->column_count - 1;
    while (i >= 0 && table->columns[i] != column)
        i--;
    return i;
}

bool table_has(const struct table *table, enum table_column column) { return place_of(table, column) >= 0; }

void table_hide(struct table *table, enum table_column column)
{
    const int place = place_of(table, column);
    if (place >= 0)
        table->hidden |= 1u << place;
}

struct table_cell *table_fact(struct table *table, enum table_column fact)
{
    assert(table->fact_count < TABLE_FACTS_MAX);
    table->facts[table->fact_count] = fact;
    table->fact_cells[table->fact_count] = (struct table_cell){.number = NAN};
    return &table->fact_cells[table->fact_count++];
}

allfold_status table_row(struct table *table, struct error *error)
{
    const size_t columns = (size_t)table->column_count, rows = (size_t)table->row_count;
    struct table_cell *const cells = realloc(table->cells, (rows + 1) * columns * sizeof *cells);
    if (cells == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for a table of %zu rows", rows + 1);
    for (size_t i = 0; i < columns; i++)
        cells[rows * columns + i] = (struct table_cell){.number = NAN};
    table->cells = cells;
    table->row_count++;
    return ALLFOLD_OK;
}

struct table_cell *table_cell(const struct table *table, int row, enum table_column column)
{
    const int place = place_of(table, column);
    return place >= 0 ? &table->cells[row * table->column_count + place] : NULL;
}

void table_number(struct table *table, enum table_column column, double number)
{
    struct table_cell *const cell = table_cell(table, table->row_count - 1, column);
    if (cell != NULL)
        cell->number = number;
}

void table_text(struct table *table, enum table_column column, const char *text)
{
    struct table_cell *const cell = table_cell(table, table->row_count - 1, column);
    if (cell != NULL)
        snprintf(cell->text, sizeof cell->text, "%s", text);
}

double table_number_of(const struct table *table, enum table_column column)
{
    const struct table_cell *const cell = table_cell(table, table->row_count - 1, column);
    return cell != NULL ? cell->number : NAN;
}

void table_verdict(struct table *table, int row, const char *why)
{
    struct table_cell *const cell = table_cell(table, row, COLUMN_CORRECT);
    const bool correct = why == NULL || why[0] == '\0';
    cell->number = correct;
    snprintf(cell->text, sizeof cell->text, "%s", correct ? "" : why);
    if (!correct)
        table->is_wrong = true;
}

void table_times(struct table *table, const struct timing *times, const struct table_speed *speed)
{
    const double rate = speed->bytes / times->median;
    table_number(table, COLUMN_RUNS, times->runs);
    table_number(table, COLUMN_SECONDS, times->median);
    table_number(table, COLUMN_P10, times->p10);
    table_number(table, COLUMN_P99, times->p99);
    table_number(table, COLUMN_BANDWIDTH, rate);
    table_number(table, COLUMN_OF_CEILING, speed->read > 0.0 ? rate / speed->read : NAN);
    table_number(table, COLUMN_OF_DATASHEET, speed->datasheet > 0.0 ? rate / speed->datasheet : NAN);
}

void table_free(struct table *table)
{
    free(table->cells);
    table->cells = NULL;
    table->row_count = 0;
}
