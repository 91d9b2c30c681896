/* The ladder itself: every rung over the same elements, checked, timed, checked again, and put into one table. */
#include "kernels/ladder/levels.h"
#include "kernels/ladder/runner.h"

#include <initializer_list>
#include <stdio.h>
#include <string.h>

#define ROW(ID, name, idea) extern const struct rung rung_##ID;
LADDER_RUNGS(ROW)
#undef ROW
static const struct rung *const rungs[] = {
#define ROW(ID, name, idea) &rung_##ID,
    LADDER_RUNGS(ROW)
#undef ROW
};

/* The elements of a request, on the GPU, what their reductions must give, and the reduction of one rung. */
struct rung_subject {
    const struct ladder_request *request;
    const void *x;
    struct ladder_oracle oracle;
    struct rung_reduction reduction;
};

static allfold_status subject_make(struct gpu *gpu, const struct ladder_request *request, struct rung_subject *subject,
                                   struct error *error)
{
    *subject = {};
    subject->request = request;
    ladder_oracle_compute(request->type, request->count, &subject->oracle);
    if (ladder_input(gpu, request->type, request->count, &subject->x, error) == ALLFOLD_OK)
        gpu_wait(gpu, "making the input", error);
    subject->reduction.gpu = gpu;
    return error->status;
}

static allfold_status poison(void *argument, struct error *error)
{
    struct rung_reduction *const r = &((struct rung_subject *)argument)->reduction;
    if (reduction_driver(r)->on_host)
        memset(r->result, LADDER_POISON, allfold_type_bytes(r->type));
    return error->status;
}

/* An input that was altered is made anew, so that the next rung is not blamed for it. */
static allfold_status compare_input(struct rung_reduction *r, char why[TABLE_TEXT_BYTES], struct error *error)
{
    uint64_t changes = 0;
    if (ladder_input_changes(r->gpu, r->type, r->n, &changes, error) != ALLFOLD_OK || changes == 0)
        return error->status;
    snprintf(why, TABLE_TEXT_BYTES, "changed %llu places of its input", (unsigned long long)changes);
    return ladder_input(r->gpu, r->type, r->n, &r->x, error);
}

static allfold_status compare(void *argument, char why[TABLE_TEXT_BYTES], struct error *error)
{
    struct rung_subject *const subject = (struct rung_subject *)argument;
    struct rung_reduction *const r = &subject->reduction;
    struct ladder_answer answer;
    if (reduction_driver(r)->answer(r, &answer, error) != ALLFOLD_OK)
        return error->status;
    if (why[0] == '\0')
        ladder_oracle_differs(&subject->oracle, r->fold, &answer, why, TABLE_TEXT_BYTES);
    return compare_input(r, why, error);
}

static allfold_status prepare(void *argument, int rung, struct ladder_work *work, struct error *error)
{
    struct rung_subject *const subject = (struct rung_subject *)argument;
    struct rung_reduction *const r = &subject->reduction;
    struct gpu *const gpu = r->gpu;
    *r = {};
    r->gpu = gpu;
    r->x = subject->x;
    if (rungs[rung]->elements == 0)
        return ALLFOLD_OK;
    if (reduction_plan(rungs[rung], subject->request, r, error) != ALLFOLD_OK)
        return error->status;
    const struct rung_driver *const driver = reduction_driver(r);
    *work = {{driver->start, r}, driver->on_host, (double)(r->bytes_read + r->bytes_written), subject, poison, compare};
    return ALLFOLD_OK;
}

static void describe(const void *argument, const struct ladder_runner *runner)
{
    const struct rung_reduction *const r = &((const struct rung_subject *)argument)->reduction;
    struct table *const table = runner->table;
    const double seconds = table_number_of(table, COLUMN_SECONDS), input = (double)r->n * (double)allfold_type_bytes(r->type);
    table_number(table, COLUMN_BYTES_READ, (double)r->bytes_read);
    table_number(table, COLUMN_BYTES_WRITTEN, (double)r->bytes_written);
    if (runner->ceiling > 0.0 && !reduction_driver(r)->on_host)
        table_number(table, COLUMN_INPUT_OF_CEILING, input / seconds / runner->ceiling);
    table_number(table, COLUMN_RATE, (double)(r->n > 0 ? r->n - 1 : 0) / seconds);
    table_number(table, COLUMN_OCCUPANCY, r->occupancy);
    table_number(table, COLUMN_LAUNCHES, r->launches);
    table_number(table, COLUMN_THREADS, r->level_count > 0 ? (double)r->levels[0].blocks * r->block : NAN);
    table_number(table, COLUMN_REGISTERS, r->registers);
    table_number(table, COLUMN_SHARED_BYTES, r->shared_bytes);
}

static struct ladder_climb climb_of(struct rung_subject *subject)
{
    return {&ladder_rungs, subject->request->rung, subject, prepare, describe};
}

allfold_status ladder_rungs_run(struct gpu *gpu, const struct ladder_request *request, struct table *table, struct error *error)
{
    static const enum table_column columns[] = {
        COLUMN_RUNG, COLUMN_SECONDS, COLUMN_P99, COLUMN_RUNS, COLUMN_BYTES_READ, COLUMN_BYTES_WRITTEN, COLUMN_BANDWIDTH,
        COLUMN_OF_CEILING, COLUMN_OF_DATASHEET, COLUMN_INPUT_OF_CEILING, COLUMN_RATE, COLUMN_OVER_BEFORE, COLUMN_OVER_FIRST,
        COLUMN_OVER_HOST, COLUMN_OCCUPANCY, COLUMN_LAUNCHES, COLUMN_THREADS, COLUMN_BARRIERS, COLUMN_EXCHANGES, COLUMN_REGISTERS,
        COLUMN_SHARED_BYTES, COLUMN_CORRECT, COLUMN_IDEA,
    };
    struct rung_subject subject;
    struct ladder_runner runner;
    table_add_columns(table, columns, sizeof columns / sizeof *columns);
    for (const enum table_column column : {COLUMN_BYTES_READ, COLUMN_BYTES_WRITTEN, COLUMN_THREADS})
        if (!gpu->device.emulated) /* there the times say more */
            table_hide(table, column);
    snprintf(table->title, sizeof table->title, "%s of %llu %s, blocks of %d threads", allfold_fold_name(request->fold),
             (unsigned long long)request->count, allfold_type_name(request->type), request->block);
    if (subject_make(gpu, request, &subject, error) != ALLFOLD_OK
        || ladder_runner_begin(&runner, gpu, subject.x, request->count * allfold_type_bytes(request->type), table, error) != ALLFOLD_OK)
        return error->status;
    const struct ladder_climb climb = climb_of(&subject);
    return ladder_climb_measure(&climb, &runner, error);
}

/* A length at which a rung differs counts as one failure of the rung. */
allfold_status ladder_rungs_check(struct gpu *gpu, const struct ladder_request *request, struct table *table, struct error *error)
{
    struct rung_subject subject;
    char where[TABLE_TEXT_BYTES];
    if (subject_make(gpu, request, &subject, error) != ALLFOLD_OK)
        return error->status;
    snprintf(where, sizeof where, "%s %s n=%llu block=%d", allfold_fold_name(request->fold), allfold_type_name(request->type),
             (unsigned long long)request->count, request->block);
    const struct ladder_climb climb = climb_of(&subject);
    return ladder_climb_check(&climb, gpu, where, table, error);
}
