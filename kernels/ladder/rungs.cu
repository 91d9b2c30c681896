/* The ladder itself: every rung over the same elements, checked, timed, checked again, and put into one table. */
#include "kernels/ladder/levels.h"

#include "measure/numbers.h"

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

/* The elements of a request, on the GPU, and what their reductions must give. */
struct subject {
    const void *x;
    struct ladder_oracle oracle;
};

static allfold_status subject_make(struct gpu *gpu, const struct ladder_request *request, struct subject *subject,
                                   struct error *error)
{
    ladder_oracle_compute(request->type, request->count, &subject->oracle);
    if (ladder_input(gpu, request->type, request->count, &subject->x, error) == ALLFOLD_OK)
        gpu_wait(gpu, "making the input", error);
    return error->status;
}

/* Compares the result of the last start. why is left unchanged if it is not empty. */
static allfold_status compare(struct reduction *r, const struct subject *subject, char why[LADDER_TEXT_BYTES],
                              struct error *error)
{
    struct ladder_answer answer;
    if (reduction_driver(r)->answer(r, &answer, error) == ALLFOLD_OK && why[0] == '\0')
        ladder_oracle_differs(&subject->oracle, r->fold, &answer, why, LADDER_TEXT_BYTES);
    return error->status;
}

/* One run from poisoned memory. */
static allfold_status check(struct reduction *r, const struct subject *subject, char why[LADDER_TEXT_BYTES],
                            struct error *error)
{
    if (reduction_driver(r)->on_host)
        memset(r->result, LADDER_POISON, allfold_type_bytes(r->type));
    if (ladder_poison(r->gpu, error) != ALLFOLD_OK
        || gpu_check(reduction_driver(r)->start(r, r->gpu->stream), "starting a rung", error) != ALLFOLD_OK)
        return error->status;
    return compare(r, subject, why, error);
}

/* An input that was altered is made anew, so that the next rung is not blamed for it. */
static allfold_status check_input(struct reduction *r, char why[LADDER_TEXT_BYTES], struct error *error)
{
    uint64_t changes = 0;
    if (ladder_input_changes(r->gpu, r->type, r->n, &changes, error) != ALLFOLD_OK || changes == 0)
        return error->status;
    snprintf(why, LADDER_TEXT_BYTES, "changed %llu places of its input", (unsigned long long)changes);
    return ladder_input(r->gpu, r->type, r->n, &r->x, error);
}

/* The columns of the table, in their order. */
#define COLUMNS(X)                                                    \
    X(RUNG, "rung", "rung", LADDER_TEXT)                              \
    X(MEDIAN, "seconds", "time us", LADDER_SECONDS)                   \
    X(P99, "seconds_p99", "p99 us", LADDER_SECONDS)                   \
    X(RUNS, "runs", NULL, LADDER_INTEGER)                             \
    X(READ, "bytes_read", NULL, LADDER_INTEGER)                       \
    X(WRITTEN, "bytes_written", NULL, LADDER_INTEGER)                 \
    X(BANDWIDTH, "bytes_per_second", "GB/s", LADDER_BANDWIDTH)        \
    X(OF_CEILING, "of_read_ceiling", "% ceiling", LADDER_PERCENT)     \
    X(OF_DATASHEET, "of_datasheet", "% sheet", LADDER_PERCENT)        \
    X(INPUT, "input_of_read_ceiling", "% useful", LADDER_PERCENT)     \
    X(RATE, "operations_per_second", "GFLOP/s", LADDER_RATE)          \
    X(BEFORE, "speedup_before", "x before", LADDER_TIMES)             \
    X(FIRST, "speedup_first", "x first", LADDER_TIMES)                \
    X(HOST, "speedup_host", NULL, LADDER_TIMES)                       \
    X(OCCUPANCY, "occupancy", "occup %", LADDER_PERCENT)              \
    X(LAUNCHES, "launches", "launches", LADDER_INTEGER)               \
    X(REGISTERS, "registers", "regs", LADDER_INTEGER)                 \
    X(SHARED, "shared_bytes", NULL, LADDER_INTEGER)                   \
    X(CORRECT, "correct", "result", LADDER_VERDICT)                   \
    X(IDEA, "idea", "idea", LADDER_TEXT)
enum column {
#define ROW(ID, key, heading, format) ID,
    COLUMNS(ROW)
#undef ROW
};

/* Medians that later rungs are compared with. */
struct times_before {
    double before, first, host;
};

static void fill_row(const struct reduction *r, const struct timing *times, double ceiling,
                     struct times_before *earlier, struct ladder_cell *row)
{
    const bool on_host = reduction_driver(r)->on_host;
    const double bytes = (double)(r->bytes_read + r->bytes_written);
    const double input = (double)r->n * (double)allfold_type_bytes(r->type);
    row[MEDIAN].number = times->median;
    row[P99].number = times->p99;
    row[RUNS].number = times->runs;
    row[READ].number = (double)r->bytes_read;
    row[WRITTEN].number = (double)r->bytes_written;
    row[BANDWIDTH].number = bytes / times->median;
    if (ceiling > 0.0 && !on_host) { /* the peaks are the GPU's */
        row[OF_CEILING].number = bytes / times->median / ceiling;
        row[INPUT].number = input / times->median / ceiling;
    }
    if (!on_host)
        row[OF_DATASHEET].number = bytes / times->median / r->gpu->device.datasheet;
    row[RATE].number = (double)(r->n > 0 ? r->n - 1 : 0) / times->median;
    row[BEFORE].number = earlier->before / times->median;
    if (!on_host && !(earlier->first > 0.0))
        earlier->first = times->median;
    if (on_host)
        earlier->host = times->median;
    row[FIRST].number = on_host ? NAN : earlier->first / times->median;
    row[HOST].number = earlier->host / times->median;
    row[OCCUPANCY].number = r->occupancy;
    row[LAUNCHES].number = r->launches;
    row[REGISTERS].number = r->registers;
    row[SHARED].number = r->shared_bytes;
    earlier->before = times->median;
}

/* All rungs over one subject. */
struct climb {
    struct gpu *gpu;
    const struct ladder_request *request;
    struct subject subject;
    double ceiling; /* bytes a second that this GPU reads */
    struct times_before earlier;
    struct ladder_table *table;
};

static allfold_status measure(struct climb *climb, int rung, struct error *error)
{
    const struct subject *const subject = &climb->subject;
    char why[LADDER_TEXT_BYTES] = "";
    struct reduction r = {};
    struct timing times;
    r.gpu = climb->gpu;
    r.x = subject->x;
    if (reduction_plan(rungs[rung], climb->request, &r, error) != ALLFOLD_OK
        || check(&r, subject, why, error) != ALLFOLD_OK)
        return error->status;
    const struct gpu_work work = {reduction_driver(&r)->start, &r};
    const bool on_host = reduction_driver(&r)->on_host;
    if ((on_host ? host_time(&work, &times, error) : gpu_time(climb->gpu, &work, &times, error)) != ALLFOLD_OK
        || compare(&r, subject, why, error) != ALLFOLD_OK || check_input(&r, why, error) != ALLFOLD_OK)
        return error->status;
    struct ladder_cell *const row = ladder_table_row(climb->table, error);
    if (row == NULL)
        return error->status;
    snprintf(row[RUNG].text, sizeof row[RUNG].text, "%s", ladder_rungs.rungs[rung].name);
    snprintf(row[IDEA].text, sizeof row[IDEA].text, "%s", ladder_rungs.rungs[rung].idea);
    fill_row(&r, &times, climb->ceiling, &climb->earlier, row);
    ladder_table_verdict(climb->table, &row[CORRECT], why);
    return ALLFOLD_OK;
}

allfold_status ladder_rungs_run(struct gpu *gpu, const struct ladder_request *request, struct ladder_table *table,
                                struct error *error)
{
    struct climb climb = {gpu, request, {}, NAN, {NAN, NAN, NAN}, table};
#define ROW(ID, key, heading, format) \
    ladder_table_column(table, key, ID == RATE && request->type == ALLFOLD_INT32 ? "Gop/s" : heading, format);
    COLUMNS(ROW)
#undef ROW
    table->compared = MEDIAN;
    snprintf(table->title, sizeof table->title, "%s of %llu %s, blocks of %d threads", allfold_fold_name(request->fold),
             (unsigned long long)request->count, allfold_type_name(request->type), request->block);
    if (subject_make(gpu, request, &climb.subject, error) != ALLFOLD_OK
        || gpu_read_ceiling(gpu, climb.subject.x, request->count * allfold_type_bytes(request->type), &climb.ceiling, error)
               != ALLFOLD_OK)
        return error->status;
    ladder_facts(gpu, climb.ceiling, table);
    for (int rung = 0; rung < ladder_rungs.count; rung++)
        if ((request->rung < 0 || request->rung == rung)
            && measure(&climb, rung, error) != ALLFOLD_OK)
            break;
    return error->status;
}

/* A length at which a rung differs counts as one failure of the rung. */
allfold_status ladder_rungs_check(struct gpu *gpu, const struct ladder_request *request, struct ladder_table *table,
                                  struct error *error)
{
    struct subject subject;
    if (subject_make(gpu, request, &subject, error) != ALLFOLD_OK)
        return error->status;
    for (int rung = 0; rung < ladder_rungs.count; rung++) {
        char why[LADDER_TEXT_BYTES] = "", where[LADDER_TEXT_BYTES];
        struct reduction r = {};
        if (request->rung >= 0 && request->rung != rung)
            continue;
        r.gpu = gpu;
        r.x = subject.x;
        if (reduction_plan(rungs[rung], request, &r, error) != ALLFOLD_OK
            || check(&r, &subject, why, error) != ALLFOLD_OK || check_input(&r, why, error) != ALLFOLD_OK)
            return error->status;
        snprintf(where, sizeof where, "%s %s n=%llu block=%d: %.60s", allfold_fold_name(request->fold),
                 allfold_type_name(request->type), (unsigned long long)request->count, request->block, why);
        ladder_check_note(table, &ladder_rungs.rungs[rung], why[0] != '\0' ? where : NULL);
    }
    return ALLFOLD_OK;
}
