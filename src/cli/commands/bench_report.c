/* Reports the benchmark's results as tables and as JSON. The formula of each figure: docs/performance.md. */
#include "cli/commands/bench_report.h"

#include "cli/number.h"
#include "cli/report.h"
#include "cli/tables.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool for_people(const struct bench_report *report) { return !report->session->settings->json; }

static void add_number(struct json_object *object, const char *key, double number)
{
    json_object_object_add(object, key, report_measured(number));
}

static void add_text(struct json_object *object, const char *key, const char *text)
{
    json_object_object_add(object, key, report_string(text));
}

void bench_report_begin(struct bench_report *report, const struct session *session)
{
    *report = (struct bench_report){.session = session, .object = json_object_new_object()};
    add_text(report->object, "command", session->settings->command->name);
    json_object_object_add(report->object, "schema", json_object_new_int(BENCH_SCHEMA));
    add_text(report->object, "version", allfold_version());
    add_text(report->object, "backend", session->context->device->backend->name);
    json_object_object_add(report->object, "surveys", json_object_new_array());
    json_object_object_add(report->object, "results", json_object_new_array());
}

/* ---- the machines */

/* What is slow of a machine, for people; empty if nothing is. */
static void slow_text(const struct bench_illness *ill, char text[TABLE_TEXT_BYTES])
{
    int length = 0;
    text[0] = '\0';
    for (int i = 0; i < BENCH_HEALTH_FACTS; i++)
        if (ill->slow[i])
            length += snprintf(text + length, (size_t)(TABLE_TEXT_BYTES - length), "%s %s, %.2f", length == 0 ? "SLOW" : ";",
                               bench_health_names[i], ill->of_median[i]);
    if (length > 0)
        snprintf(text + length, (size_t)(TABLE_TEXT_BYTES - length), " of the ranks' median");
}

static void fill_machine(struct table *table, const struct bench_facts *facts, int rank, const struct bench_illness *ill)
{
    char place[TABLE_TEXT_BYTES], slow[TABLE_TEXT_BYTES];
    snprintf(place, sizeof place, "%.60s on %.60s", facts->uuid[0] != '\0' ? facts->uuid : facts->device, facts->host);
    slow_text(ill, slow);
    table_number(table, COLUMN_RANK, rank);
    table_text(table, COLUMN_HOST, facts->host);
    table_text(table, COLUMN_DEVICE, facts->device);
    table_text(table, COLUMN_UUID, facts->uuid);
    table_number(table, COLUMN_INDEX, facts->index);
    table_number(table, COLUMN_HOST_THREADS, facts->threads);
    table_number(table, COLUMN_MULTIPROCESSORS, facts->multiprocessors);
    table_number(table, COLUMN_DRIVER, facts->driver);
    table_number(table, COLUMN_RUNTIME, facts->runtime);
    table_number(table, COLUMN_MEMORY, (double)facts->memory);
    table_number(table, COLUMN_L2, (double)facts->l2);
    table_number(table, COLUMN_CEILING_BYTES, (double)facts->ceiling_bytes);
    table_number(table, COLUMN_SHEET, facts->datasheet);
    table_number(table, COLUMN_READ, facts->read);
    table_number(table, COLUMN_COPY, facts->copy);
    table_number(table, COLUMN_LINK_IN, facts->link_in);
    table_number(table, COLUMN_LINK_OUT, facts->link_out);
    table_number(table, COLUMN_LAUNCH, facts->launch);
    table_number(table, COLUMN_MESSAGE, facts->message);
    table_text(table, COLUMN_PLACE, place);
    table_text(table, COLUMN_SLOW, slow);
}

static struct table machines_table(struct bench_report *report, const struct bench_facts *facts, int ranks, const struct bench_illness *ills)
{
    static const enum table_column columns[] = {
        COLUMN_RANK, COLUMN_HOST, COLUMN_DEVICE, COLUMN_UUID, COLUMN_INDEX, COLUMN_HOST_THREADS, COLUMN_MULTIPROCESSORS, COLUMN_DRIVER,
        COLUMN_RUNTIME, COLUMN_MEMORY, COLUMN_L2, COLUMN_CEILING_BYTES, COLUMN_SHEET, COLUMN_READ, COLUMN_COPY, COLUMN_LINK_IN,
        COLUMN_LINK_OUT, COLUMN_LAUNCH, COLUMN_MESSAGE, COLUMN_PLACE, COLUMN_SLOW,
    };
    struct table table = {0};
    table_add_columns(&table, columns, sizeof columns / sizeof *columns);
    for (int rank = 0; rank < ranks && table_row(&table, &report->error) == ALLFOLD_OK; rank++)
        fill_machine(&table, &facts[rank], rank, &ills[rank]);
    return table;
}

static struct json_object *machines_json(const struct table *table, const struct bench_illness *ills)
{
    struct json_object *const machines = json_object_new_array();
    for (int rank = 0; rank < table->row_count; rank++) {
        struct json_object *const object = json_object_new_object(), *const slow = json_object_new_array();
        table_add_row(object, table, rank);
        for (int i = 0; i < BENCH_HEALTH_FACTS; i++)
            if (ills[rank].slow[i])
                json_object_array_add(slow, json_object_new_string(bench_health_names[i]));
        json_object_object_add(object, "slow", slow);
        json_object_array_add(machines, object);
    }
    return machines;
}

static void print_machines(const struct bench_facts *facts, int ranks, const struct table *table)
{
    printf("\n%d rank%s of %s", ranks, ranks == 1 ? "" : "s", facts->device);
    if (facts->multiprocessors > 0)
        printf(", %d multiprocessors, CUDA driver %d.%d, runtime %d.%d", facts->multiprocessors, facts->driver / 1000,
               facts->driver % 1000 / 10, facts->runtime / 1000, facts->runtime % 1000 / 10);
    else
        printf(", %d thread%s a rank", facts->threads, facts->threads == 1 ? "" : "s");
    if (!isnan(facts->datasheet))
        printf(", datasheet %.1f GB/s", facts->datasheet / 1e9);
    printf("; ceilings over %s:\n", number_bytes((double)facts->ceiling_bytes).text);
    table_print_rows(table, true);
}

static void note_slow(struct bench_report *report, const struct bench_facts *facts, int ranks,
                      const struct bench_illness *ills)
{
    for (int rank = 0; rank < ranks; rank++)
        for (int i = 0; i < BENCH_HEALTH_FACTS; i++)
            if (ills[rank].slow[i] && report->slow[0] == '\0')
                snprintf(report->slow, sizeof report->slow, "rank %d on %.64s (%.64s): %s at %.2f of the ranks' median", rank,
                         facts[rank].host, facts[rank].uuid[0] != '\0' ? facts[rank].uuid : facts[rank].device,
                         bench_health_names[i], ills[rank].of_median[i]);
}

void bench_report_ranks(struct bench_report *report, const struct bench_facts *facts, int ranks)
{
    struct bench_illness *const ills = calloc((size_t)ranks, sizeof *ills);
    report->facts = facts;
    if (ills == NULL) {
        error_set(&report->error, ALLFOLD_NO_MEMORY, "no memory for a survey of %d ranks", ranks);
        return;
    }
    const double asked = report->session->settings->bench.slow;
    bench_health(facts, ranks, asked > 0.0 ? asked / 100.0 : BENCH_HEALTH_RATE, ills);
    struct table table = machines_table(report, facts, ranks, ills);
    struct json_object *const survey = json_object_new_object();
    json_object_object_add(survey, "ranks", json_object_new_int(ranks));
    json_object_object_add(survey, "machines", machines_json(&table, ills));
    json_object_array_add(json_object_object_get(report->object, "surveys"), survey);
    note_slow(report, facts, ranks, ills);
    if (for_people(report) && !report->session->settings->quiet)
        print_machines(facts, ranks, &table);
    table_free(&table);
    free(ills);
}

/* ---- results */

static const struct timing *times_of(const struct bench_row *row) { return &row->measured[row->slowest].times; }

static const struct bench_row *find(const struct bench_row *rows, int count, const char *peer, enum bench_timing_point timing_point)
{
    for (int i = 0; i < count; i++)
        if (rows[i].timing_point == timing_point && strcmp(rows[i].peer, peer) == 0)
            return &rows[i];
    return NULL;
}

/* The parts of allfold's time: medians, measured separately. NaN if a part is not measured. */
struct split {
    double kernel, hand_over, exchange, rest;
};

static struct split split_of(const struct bench_row *rows, int count)
{
    double seconds[BENCH_TIMING_POINT_COUNT];
    for (int i = 0; i < BENCH_TIMING_POINT_COUNT; i++) {
        const struct bench_row *const row = find(rows, count, "allfold", (enum bench_timing_point)i);
        seconds[i] = row != NULL ? times_of(row)->median : NAN;
    }
    return (struct split){seconds[BENCH_KERNEL], seconds[BENCH_PARTIAL] - seconds[BENCH_KERNEL], seconds[BENCH_EXCHANGE],
                          seconds[BENCH_HOST] - seconds[BENCH_PARTIAL] - seconds[BENCH_EXCHANGE]};
}

static void note_wrong(struct bench_report *report, const struct bench_case *task, const struct bench_row *row, int ranks)
{
    for (int rank = 0; rank < ranks; rank++)
        if (!row->measured[rank].correct && report->wrong[0] == '\0')
            snprintf(report->wrong, sizeof report->wrong, "%s of %" PRIu64 " %s: %s (%s), rank %d: %.90s",
                     task->subject->name, task->count, allfold_type_name(task->type), row->peer, bench_timing_point_names[row->timing_point],
                     rank, row->measured[rank].wrong);
}

/* How a row is wrong on the first rank on which it is; empty if it is right on all. */
static const char *wrong_of(const struct bench_row *row, int ranks)
{
    for (int rank = 0; rank < ranks; rank++)
        if (!row->measured[rank].correct)
            return row->measured[rank].wrong;
    return "";
}

/* What holds for all rows of a case. */
static void add_case(struct json_object *object, const struct bench_case *task, int ranks)
{
    const struct bench_shape *const shape = &task->shape;
    const uint64_t extents[] = {shape->outer, shape->length, shape->inner};
    add_text(object, "fold", task->subject->name);
    add_text(object, "dtype", allfold_type_name(task->type));
    json_object_object_add(object, "range", type_kind(task->type) == 'f' ? json_object_new_int(task->range) : NULL);
    json_object_object_add(object, "count", json_object_new_uint64(task->count));
    json_object_object_add(object, "shape", shape->length > 0 ? report_counts(extents, 3) : NULL); /* null: a whole array */
    json_object_object_add(object, "cut", shape->length > 0 ? report_string(shape->cut_axis ? "axis" : "outer") : NULL);
    json_object_object_add(object, "ranks", json_object_new_int(ranks));
    add_text(object, "data", bench_place_names[task->place]);
    add_text(object, "caches", task->warm ? "warm" : "cleared");
}

/* own: allfold's median at the same timing point; NaN: there is none. */
static void fill_row(struct table *table, const struct bench_row *row, int ranks, const struct bench_facts *facts, double own)
{
    const struct timing *const times = times_of(row);
    const struct table_speed speed = {row->bytes > 0.0 ? row->bytes : NAN, facts->read, facts->datasheet};
    table_times(table, times, &speed);
    table_text(table, COLUMN_PEER, row->peer);
    table_text(table, COLUMN_TIMING_POINT, bench_timing_point_names[row->timing_point]);
    table_number(table, COLUMN_SLOWEST_RANK, row->slowest);
    table_number(table, COLUMN_BYTES, speed.bytes);
    table_number(table, COLUMN_FLOOR, row->floor > 0.0 ? row->floor : NAN);
    table_number(table, COLUMN_OF_FLOOR, row->floor > 0.0 ? row->floor / times->median : NAN);
    if (strcmp(row->peer, "allfold") != 0)
        table_number(table, COLUMN_OF_ALLFOLD, times->median / own);
    if (row->measured[0].checked)
        table_verdict(table, table->row_count - 1, wrong_of(row, ranks));
}

static struct table case_table(struct bench_report *report, int ranks, const struct bench_row *rows, int count)
{
    static const enum table_column columns[] = {
        COLUMN_PEER, COLUMN_TIMING_POINT, COLUMN_RUNS, COLUMN_SECONDS, COLUMN_P10, COLUMN_P99, COLUMN_BYTES, COLUMN_BANDWIDTH,
        COLUMN_OF_CEILING, COLUMN_OF_DATASHEET, COLUMN_FLOOR, COLUMN_OF_FLOOR, COLUMN_OF_ALLFOLD, COLUMN_SLOWEST_RANK, COLUMN_CORRECT,
    };
    struct table table = {0};
    table_add_columns(&table, columns, sizeof columns / sizeof *columns);
    for (int i = 0; i < count && table_row(&table, &report->error) == ALLFOLD_OK; i++) {
        const struct bench_row *const own = find(rows, count, "allfold", rows[i].timing_point);
        fill_row(&table, &rows[i], ranks, &report->facts[rows[i].slowest], own != NULL ? times_of(own)->median : NAN);
    }
    return table;
}

static struct json_object *medians_json(const struct bench_row *row, int ranks)
{
    struct json_object *const medians = json_object_new_array();
    for (int rank = 0; rank < ranks; rank++)
        json_object_array_add(medians, report_measured(row->measured[rank].times.median));
    return medians;
}

static void add_split(struct json_object *object, const struct split *split)
{
    struct json_object *parts = json_object_new_object();
    add_number(parts, "kernel", split->kernel);
    add_number(parts, "hand_over", split->hand_over);
    add_number(parts, "exchange", split->exchange);
    add_number(parts, "rest", split->rest);
    json_object_object_add(object, "split", parts);
}

static struct number_text count_text(uint64_t count)
{
    struct number_text t;
    if (count >= 16 && (count & (count - 1)) == 0)
        snprintf(t.text, sizeof t.text, "2^%d", (int)log2((double)count));
    else
        snprintf(t.text, sizeof t.text, "%" PRIu64, count);
    return t;
}

static void print_case_name(const struct bench_case *task, int ranks)
{
    const struct bench_shape *const shape = &task->shape;
    char range[48] = "";
    if (type_kind(task->type) == 'f' && task->range != BENCH_RANGE)
        snprintf(range, sizeof range, " in [-%d, %d)", task->range, task->range);
    printf("\n%s of ", task->subject->name);
    if (shape->length > 0)
        printf("%s x %s x %s ", count_text(shape->outer).text, count_text(shape->length).text, count_text(shape->inner).text);
    else
        printf("%s ", count_text(task->count).text);
    printf("%s%s a rank%s, %d rank%s%s%s\n", allfold_type_name(task->type), range,
           shape->length == 0 ? "" : shape->cut_axis ? " along the middle dimension, which is spread over ranks" : " along the middle dimension",
           ranks, ranks == 1 ? "" : "s",
           task->place == BENCH_IN_HOST   ? ", data in host memory"
           : task->place == BENCH_IN_FILE ? ", data in a file"
                                          : "",
           task->warm ? ", caches warm" : "");
}

static void print_split(const struct split *split)
{
    if (!isnan(split->rest))
        printf("  allfold, host: kernel %.2f, hand-over %.2f, exchange %.2f, rest %.2f us\n", split->kernel * 1e6,
               split->hand_over * 1e6, split->exchange * 1e6, split->rest * 1e6);
    fflush(stdout);
}

void bench_report_case(struct bench_report *report, const struct bench_case *task, int ranks, const struct bench_row *rows,
                       int row_count)
{
    struct json_object *const results = json_object_object_get(report->object, "results");
    const struct split split = split_of(rows, row_count);
    struct table table = case_table(report, ranks, rows, row_count);
    for (int i = 0; i < table.row_count; i++) {
        struct json_object *const object = json_object_new_object();
        add_case(object, task, ranks);
        table_add_row(object, &table, i);
        json_object_object_add(object, "seconds_by_rank", medians_json(&rows[i], ranks));
        if (rows[i].timing_point == BENCH_HOST && strcmp(rows[i].peer, "allfold") == 0 && !isnan(split.rest))
            add_split(object, &split);
        json_object_array_add(results, object);
        note_wrong(report, task, &rows[i], ranks);
    }
    if (for_people(report)) {
        print_case_name(task, ranks);
        table_print_rows(&table, !report->session->settings->quiet);
        print_split(&split);
    }
    table_free(&table);
}

void bench_report_end(struct bench_report *report)
{
    if (report->object == NULL)
        return;
    json_object_object_add(report->object, "correct", json_object_new_boolean(report->wrong[0] == '\0'));
    if (for_people(report))
        json_object_put(report->object);
    else
        report_print(report->object);
    report->object = NULL;
}
