/* The table of `allfold ladder --check`: how often each rung was compared with its oracle, and how often it was wrong. */
#include "kernels/ladder/ladder.h"

#include <stdio.h>
#include <string.h>

void ladder_check_begin(struct table *table)
{
    static const enum table_column columns[] = {COLUMN_RUNG, COLUMN_CHECKS, COLUMN_WRONG, COLUMN_CORRECT};
    table_add_columns(table, columns, sizeof columns / sizeof *columns);
    snprintf(table->title, sizeof table->title, "every result compared with the oracle, nothing timed");
}

allfold_status ladder_check_note(struct table *table, const struct ladder_rung *rung, const char *why, struct error *error)
{
    int row = 0;
    while (row < table->row_count && strcmp(table_cell(table, row, COLUMN_RUNG)->text, rung->name) != 0)
        row++;
    if (row == table->row_count) {
        if (table_row(table, error) != ALLFOLD_OK)
            return error->status;
        table_text(table, COLUMN_RUNG, rung->name);
        table_number(table, COLUMN_CHECKS, 0.0);
        table_number(table, COLUMN_WRONG, 0.0);
        table_verdict(table, row, NULL);
    }
    table_cell(table, row, COLUMN_CHECKS)->number += 1.0;
    if (why != NULL && why[0] != '\0' && table_cell(table, row, COLUMN_WRONG)->number++ == 0.0)
        table_verdict(table, row, why);
    return ALLFOLD_OK;
}
