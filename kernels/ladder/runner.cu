/* Checks and times rungs and experiments: see runner.h. */
#include "kernels/ladder/runner.h"

#include <initializer_list>
#include <math.h>
#include <stdio.h>
#include <string.h>

allfold_status ladder_check(struct gpu *gpu, const struct ladder_work *work, char why[TABLE_TEXT_BYTES], struct error *error)
{
    if (ladder_poison(gpu, error) != ALLFOLD_OK || (work->poison != NULL && work->poison(work->subject, error) != ALLFOLD_OK)
        || gpu_check(work->run.start(work->run.argument, gpu->stream), "starting what is checked", error) != ALLFOLD_OK)
        return error->status;
    return work->compare(work->subject, why, error);
}

allfold_status ladder_runner_begin(struct ladder_runner *runner, struct gpu *gpu, const void *x, uint64_t bytes, struct table *table,
                                   struct error *error)
{
    *runner = {gpu, table, NAN, NAN, NAN, NAN};
    if (gpu_read_ceiling(gpu, x, bytes, &runner->ceiling, error) == ALLFOLD_OK) {
        table_fact(table, COLUMN_FACT_CEILING)->number = runner->ceiling;
        table_fact(table, COLUMN_FACT_DATASHEET)->number = gpu->device.datasheet;
    }
    return error->status;
}

static void fill_row(struct ladder_runner *runner, const struct ladder_work *work, const struct timing *times)
{
    const double datasheet = runner->gpu->device.datasheet;
    const struct table_speed speed = {work->bytes, work->on_host ? NAN : runner->ceiling, work->on_host ? NAN : datasheet};
    table_times(runner->table, times, &speed);
    if (work->on_host)
        runner->host = times->median;
    else if (isnan(runner->first))
        runner->first = times->median;
    table_number(runner->table, COLUMN_OVER_BEFORE, runner->before / times->median);
    table_number(runner->table, COLUMN_OVER_FIRST, work->on_host ? NAN : runner->first / times->median);
    table_number(runner->table, COLUMN_OVER_HOST, runner->host / times->median);
    runner->before = times->median;
}

allfold_status ladder_runner_measure(struct ladder_runner *runner, const struct ladder_work *work, struct error *error)
{
    char why[TABLE_TEXT_BYTES] = "";
    struct timing times;
    if (ladder_check(runner->gpu, work, why, error) != ALLFOLD_OK
        || (work->on_host ? host_time(&work->run, &times, error) : gpu_time(runner->gpu, &work->run, &times, error)) != ALLFOLD_OK
        || work->compare(work->subject, why, error) != ALLFOLD_OK)
        return error->status;
    fill_row(runner, work, &times);
    table_verdict(runner->table, runner->table->row_count - 1, why);
    return ALLFOLD_OK;
}

static bool is_wanted(const struct ladder_climb *climb, int rung) { return climb->rung < 0 || climb->rung == rung; }

/* Names, once, a rung that this machine does not have. */
static allfold_status leave_out(const struct ladder_climb *climb, int rung, struct table *table, struct error *error)
{
    const char *const name = climb->list->rungs[rung].name;
    int i = 0;
    if (climb->rung == rung)
        return error_set(error, ALLFOLD_UNSUPPORTED, "ladder: --rung: %s runs on a GPU only", name);
    while (i < table->fact_count && table->facts[i] != COLUMN_FACT_LEFT_OUT)
        i++;
    struct table_cell *const cell = i < table->fact_count ? &table->fact_cells[i] : table_fact(table, COLUMN_FACT_LEFT_OUT);
    const size_t length = strlen(cell->text);
    if (strstr(cell->text, name) == NULL)
        snprintf(cell->text + length, sizeof cell->text - length, "%s%s", length > 0 ? ", " : "", name);
    return ALLFOLD_OK;
}

/* What only the emulation knows, and what only a compiler for a GPU does. */
static void fill_emulated(struct ladder_runner *runner, bool on_host)
{
    table_number(runner->table, COLUMN_BARRIERS, on_host ? NAN : runner->gpu->barriers);
    table_number(runner->table, COLUMN_EXCHANGES, on_host ? NAN : runner->gpu->exchanges);
    for (const enum table_column column : {COLUMN_OCCUPANCY, COLUMN_REGISTERS, COLUMN_SHARED_BYTES})
        table_number(runner->table, column, NAN);
}

static allfold_status measure_rung(const struct ladder_climb *climb, int rung, struct ladder_runner *runner, struct error *error)
{
    struct ladder_work work = {};
    if (climb->prepare(climb->subject, rung, &work, error) != ALLFOLD_OK)
        return error->status;
    if (work.run.start == NULL)
        return leave_out(climb, rung, runner->table, error);
    if (table_row(runner->table, error) != ALLFOLD_OK)
        return error->status;
    table_text(runner->table, COLUMN_RUNG, climb->list->rungs[rung].name);
    table_text(runner->table, COLUMN_IDEA, climb->list->rungs[rung].idea);
    if (ladder_runner_measure(runner, &work, error) == ALLFOLD_OK)
        climb->describe(climb->subject, runner);
    if (runner->gpu->device.emulated)
        fill_emulated(runner, work.on_host);
    return error->status;
}

allfold_status ladder_climb_measure(const struct ladder_climb *climb, struct ladder_runner *runner, struct error *error)
{
    for (int rung = 0; rung < climb->list->count && error->status == ALLFOLD_OK; rung++)
        if (is_wanted(climb, rung))
            measure_rung(climb, rung, runner, error);
    return error->status;
}

static allfold_status check_rung(const struct ladder_climb *climb, int rung, struct gpu *gpu, const char *where, struct table *table,
                                 struct error *error)
{
    struct ladder_work work = {};
    char why[TABLE_TEXT_BYTES] = "", text[TABLE_TEXT_BYTES];
    if (climb->prepare(climb->subject, rung, &work, error) != ALLFOLD_OK)
        return error->status;
    if (work.run.start == NULL)
        return leave_out(climb, rung, table, error);
    if (ladder_check(gpu, &work, why, error) != ALLFOLD_OK)
        return error->status;
    snprintf(text, sizeof text, "%.60s: %.60s", where, why);
    return ladder_check_note(table, &climb->list->rungs[rung], why[0] != '\0' ? text : NULL, error);
}

allfold_status ladder_climb_check(const struct ladder_climb *climb, struct gpu *gpu, const char *where, struct table *table,
                                  struct error *error)
{
    for (int rung = 0; rung < climb->list->count && error->status == ALLFOLD_OK; rung++)
        if (is_wanted(climb, rung))
            check_rung(climb, rung, gpu, where, table, error);
    return error->status;
}
