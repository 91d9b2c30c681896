/* The table of `allfold ladder --check`: how often each rung was compared with its oracle, and how often it was wrong. */
#include "kernels/ladder/ladder.h"

#include <stdio.h>
#include <string.h>

allfold_status ladder_check_begin(const struct ladder_rung_list *rungs, int rung, struct table *table, struct error *error)
{
    static const enum table_column columns[] = {COLUMN_RUNG, COLUMN_CHECKS, COLUMN_WRONG, COLUMN_CORRECT};
    table_add_columns(table, columns, sizeof columns / sizeof *columns);
    snprintf(table->title, sizeof table->title, "every result compared with the oracle, nothing timed");
    for (int i = 0; i < rungs->count; i++) {
        if (rung >= 0 && rung != i)
            continue;
        if (table_row(table, error) != ALLFOLD_OK)
            break;
        table_text(table, COLUMN_RUNG, rungs->rungs[i].name);
        table_number(table, COLUMN_CHECKS, 0.0);
        table_number(table, COLUMN_WRONG, 0.0);
        table_verdict(table, table->row_count - 1, NULL);
    }
    return error->status;
}

void ladder_check_note(struct table *table, const struct ladder_rung *rung, const char *why)
{
    int row = 0;
    while (strcmp(table_cell(table, row, COLUMN_RUNG)->text, rung->name) != 0)
        row++;
    table_cell(table, row, COLUMN_CHECKS)->number += 1.0;
    if (why != NULL && why[0] != '\0' && table_cell(table, row, COLUMN_WRONG)->number++ == 0.0)
        table_verdict(table, row, why);
}
