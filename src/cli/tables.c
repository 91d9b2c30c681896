/* Prints tables of measurements, and turns them into JSON: see tables.h. */
#include "cli/tables.h"

#include "cli/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct table_cell_text table_cell_text(enum table_format format, const struct table_cell *cell)
{
    static const struct {
        const char *format;
        double unit;
    } shown[] = {
        [TABLE_INTEGER] = {"%.0f", 1},       [TABLE_NUMBER] = {"%.3g", 1},   [TABLE_SECONDS] = {"%.2f", 1e6},
        [TABLE_BANDWIDTH] = {"%.1f", 1e-9}, [TABLE_RATE] = {"%.1f", 1e-9}, [TABLE_PERCENT] = {"%.1f", 100},
        [TABLE_TIMES] = {"%.2fx", 1},
    };
    struct table_cell_text t;
    if (format == TABLE_TEXT)
        snprintf(t.text, sizeof t.text, "%s", cell->text);
    else if (!isfinite(cell->number))
        snprintf(t.text, sizeof t.text, "-");
    else if (format == TABLE_VERDICT && cell->number != 0.0)
        snprintf(t.text, sizeof t.text, "correct");
    else if (format == TABLE_VERDICT)
        snprintf(t.text, sizeof t.text, "WRONG: %s", cell->text);
    else
        snprintf(t.text, sizeof t.text, shown[format].format, cell->number * shown[format].unit);
    return t;
}

static bool is_left(enum table_format format) { return format == TABLE_TEXT || format == TABLE_VERDICT; }

/* The last text is not padded, and none is printed behind the last that is not empty. */
static void print_line(const struct table_grid *grid, int row, const int *widths)
{
    const struct table_cell_text *const texts = grid->texts + row * grid->columns;
    int last = grid->columns - 1;
    while (last > 0 && texts[last].text[0] == '\0')
        last--;
    for (int i = 0; i <= last; i++)
        printf("  %*s", !is_left(grid->formats[i]) ? widths[i] : i == last ? 0 : -widths[i], texts[i].text);
    putchar('\n');
}

void table_grid_print(const struct table_grid *grid, bool headings)
{
    int widths[TABLE_COLUMNS_MAX] = {0};
    for (int i = 0; i < grid->rows * grid->columns; i++) {
        const int length = (int)strlen(grid->texts[i].text);
        widths[i % grid->columns] = length > widths[i % grid->columns] ? length : widths[i % grid->columns];
    }
    for (int row = headings ? 0 : 1; row < grid->rows; row++)
        print_line(grid, row, widths);
}

static bool is_known(const struct table_column_facts *facts, const struct table_cell *cell)
{
    return facts->format == TABLE_TEXT || !isnan(cell->number);
}

/* For people, a column of which something is known. */
static bool is_shown(const struct table *table, int i)
{
    const struct table_column_facts *const facts = &table_columns[table->columns[i]];
    bool known = table->row_count == 0;
    for (int row = 0; row < table->row_count && !known; row++)
        known = is_known(facts, &table->cells[row * table->column_count + i]);
    return known && facts->heading != NULL && (table->hidden >> i & 1) == 0;
}

void table_print_rows(const struct table *table, bool headings)
{
    struct table_grid grid = {.rows = table->row_count + 1};
    int shown[TABLE_COLUMNS_MAX];
    for (int i = 0; i < table->column_count; i++)
        if (is_shown(table, i)) {
            grid.formats[grid.columns] = table_columns[table->columns[i]].format;
            shown[grid.columns++] = i;
        }
    grid.texts = malloc((size_t)grid.rows * (size_t)grid.columns * sizeof *grid.texts);
    for (int i = 0; grid.texts != NULL && i < grid.rows * grid.columns; i++) {
        const int column = shown[i % grid.columns], row = i / grid.columns - 1;
        if (row < 0)
            snprintf(grid.texts[i].text, sizeof grid.texts[i].text, "%s", table_columns[table->columns[column]].heading);
        else
            grid.texts[i] = table_cell_text(grid.formats[i % grid.columns], &table->cells[row * table->column_count + column]);
    }
    if (grid.texts != NULL)
        table_grid_print(&grid, headings);
    free(grid.texts);
}

void table_print_facts(const struct table *table)
{
    static const char *const units[] = {[TABLE_SECONDS] = " us", [TABLE_BANDWIDTH] = " GB/s", [TABLE_PERCENT] = "%", [TABLE_VERDICT] = ""};
    for (int i = 0; i < table->fact_count; i++) {
        const struct table_column_facts *const fact = &table_columns[table->facts[i]];
        if (fact->heading != NULL && is_known(fact, &table->fact_cells[i]))
            printf("  %s: %s%s\n", fact->heading, table_cell_text(fact->format, &table->fact_cells[i]).text,
                   units[fact->format] != NULL ? units[fact->format] : "");
    }
}

/* A text that is empty, or a number that is not known, is null. */
static void add_cell(struct json_object *object, const struct table_column_facts *column, const struct table_cell *cell)
{
    struct json_object *value = NULL;
    if (column->key == NULL)
        return;
    if (column->format == TABLE_TEXT)
        value = cell->text[0] != '\0' ? report_string(cell->text) : NULL;
    else if (column->format == TABLE_VERDICT)
        value = isnan(cell->number) ? NULL : json_object_new_boolean(cell->number != 0.0);
    else if (column->format == TABLE_INTEGER)
        value = isnan(cell->number) ? NULL : json_object_new_int64((int64_t)cell->number);
    else
        value = report_measured(cell->number);
    json_object_object_add(object, column->key, value);
    if (column->format == TABLE_VERDICT && cell->number == 0.0)
        json_object_object_add(object, "why", report_string(cell->text));
}

void table_add_facts(struct json_object *object, const struct table *table)
{
    for (int i = 0; i < table->fact_count; i++)
        add_cell(object, &table_columns[table->facts[i]], &table->fact_cells[i]);
}

void table_add_row(struct json_object *object, const struct table *table, int row)
{
    for (int i = 0; i < table->column_count; i++)
        add_cell(object, &table_columns[table->columns[i]], &table->cells[row * table->column_count + i]);
}
