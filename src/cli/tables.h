/* Prints tables of measurements (measure/table.h) for people, and turns them into JSON. Used by the commands ladder and bench. */
#pragma once

#include "measure/table.h"

#include <json-c/json.h>

/* What a cell shows to people: the number in the format's unit, "-" if it is not known. */
struct table_cell_text {
    char text[TABLE_TEXT_BYTES + 16];
};
struct table_cell_text table_cell_text(enum table_format format, const struct table_cell *cell);

/* Prints a grid of texts in columns that are as wide as they must be. Its first row has the headings; numbers stand on the right. */
struct table_grid {
    int rows, columns; /* rows with the headings */
    struct table_cell_text *texts;
    enum table_format formats[TABLE_COLUMNS_MAX];
};
void table_grid_print(const struct table_grid *grid, bool headings);

/* The facts, one a line, and the rows. */
void table_print_facts(const struct table *table);
void table_print_rows(const struct table *table, bool headings);

/* Adds the facts, or a row, to a JSON object. A verdict that something is wrong comes with the reason, as "why". */
void table_add_facts(struct json_object *object, const struct table *table);
void table_add_row(struct json_object *object, const struct table *table, int row);
