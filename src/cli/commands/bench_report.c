/* The benchmark's results as tables and as JSON. The formula of each figure: docs/performance.md. */
#include "cli/commands/bench_report.h"

#include "cli/number.h"
#include "cli/report.h"

#include <inttypes.h>
#include <math.h>
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

static struct json_object *machine_json(const struct bench_facts *facts, int rank, const struct bench_illness *ill)
{
    struct json_object *object = json_object_new_object(), *slow = json_object_new_array();
    json_object_object_add(object, "rank", json_object_new_int(rank));
    add_text(object, "host", facts->host);
    add_text(object, "device", facts->device);
    json_object_object_add(object, "uuid", facts->uuid[0] != '\0' ? report_string(facts->uuid) : NULL);
    json_object_object_add(object, "index", json_object_new_int(facts->index));
    json_object_object_add(object, "threads", json_object_new_int(facts->threads));
    json_object_object_add(object, "multiprocessors", json_object_new_int(facts->multiprocessors));
    json_object_object_add(object, "cuda_driver", json_object_new_int(facts->driver));
    json_object_object_add(object, "cuda_runtime", json_object_new_int(facts->runtime));
    json_object_object_add(object, "memory", json_object_new_uint64(facts->memory));
    json_object_object_add(object, "l2", json_object_new_uint64(facts->l2));
    json_object_object_add(object, "ceiling_bytes", json_object_new_uint64(facts->ceiling_bytes));
    add_number(object, "datasheet", facts->datasheet);
    add_number(object, "read", facts->read);
    add_number(object, "copy", facts->copy);
    add_number(object, "link_in", facts->link_in);
    add_number(object, "link_out", facts->link_out);
    add_number(object, "launch", facts->launch);
    add_number(object, "message", facts->message);
    for (int i = 0; i < BENCH_HEALTH_FACTS; i++)
        if (ill->slow[i])
            json_object_array_add(slow, json_object_new_string(bench_health_names[i]));
    json_object_object_add(object, "slow", slow);
    return object;
}

/* A number in a unit, or a dash. */
static struct number_text in_unit(double number, double unit, const char *format)
{
    struct number_text t = {"-"};
    if (isfinite(number))
        snprintf(t.text, sizeof t.text, format, number / unit);
    return t;
}

static void print_machine(const struct bench_facts *facts, int rank, const struct bench_illness *ill)
{
    printf("  %4d %9s %9s %9s %9s %8s %8s  %s on %s", rank, in_unit(facts->read, 1e9, "%.1f").text,
           in_unit(facts->copy, 1e9, "%.1f").text, in_unit(facts->link_in, 1e9, "%.1f").text,
           in_unit(facts->link_out, 1e9, "%.1f").text, in_unit(facts->launch, 1e-6, "%.2f").text,
           in_unit(facts->message, 1e-6, "%.2f").text, facts->uuid[0] != '\0' ? facts->uuid : facts->device, facts->host);
    for (int i = 0; i < BENCH_HEALTH_FACTS; i++)
        if (ill->slow[i])
            printf("  SLOW %s, %.2f of the ranks' median", bench_health_names[i], ill->of_median[i]);
    putchar('\n');
}

static void print_machines(const struct bench_facts *facts, int ranks, const struct bench_illness *ills)
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
    printf("  rank read GB/s copy GB/s  to dev. from dev. launch us  next us\n");
    for (int i = 0; i < ranks; i++)
        print_machine(&facts[i], i, &ills[i]);
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
    struct json_object *survey = json_object_new_object(), *machines = json_object_new_array();
    struct bench_illness *const ills = calloc((size_t)ranks, sizeof *ills);
    report->facts = facts;
    json_object_object_add(survey, "ranks", json_object_new_int(ranks));
    json_object_object_add(survey, "machines", machines);
    json_object_array_add(json_object_object_get(report->object, "surveys"), survey);
    if (ills == NULL)
        return;
    const double asked = report->session->settings->bench.slow;
    bench_health(facts, ranks, asked > 0.0 ? asked / 100.0 : BENCH_HEALTH_RATE, ills);
    for (int i = 0; i < ranks; i++)
        json_object_array_add(machines, machine_json(&facts[i], i, &ills[i]));
    note_slow(report, facts, ranks, ills);
    if (for_people(report) && !report->session->settings->quiet)
        print_machines(facts, ranks, ills);
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

static double rate_of(const struct bench_row *row) { return row->bytes > 0.0 ? row->bytes / times_of(row)->median : NAN; }

static void note_wrong(struct bench_report *report, const struct bench_case *task, const struct bench_row *row, int ranks)
{
    for (int rank = 0; rank < ranks; rank++)
        if (!row->measured[rank].correct && report->wrong[0] == '\0')
            snprintf(report->wrong, sizeof report->wrong, "%s of %" PRIu64 " %s: %s (%s), rank %d: %.90s",
                     task->subject->name, task->count, allfold_type_name(task->type), row->peer, bench_timing_point_names[row->timing_point],
                     rank, row->measured[rank].wrong);
}

static bool is_correct(const struct bench_row *row, int ranks)
{
    for (int rank = 0; rank < ranks; rank++)
        if (!row->measured[rank].correct)
            return false;
    return true;
}

/* The array's, of which the second dimension is folded; null for a whole array. */
static struct json_object *shape_json(const struct bench_shape *shape)
{
    if (shape->length == 0)
        return NULL;
    struct json_object *const extents = json_object_new_array();
    json_object_array_add(extents, json_object_new_uint64(shape->outer));
    json_object_array_add(extents, json_object_new_uint64(shape->length));
    json_object_array_add(extents, json_object_new_uint64(shape->inner));
    return extents;
}

static struct json_object *row_json(const struct bench_report *report, const struct bench_case *task, int ranks,
                                    const struct bench_row *row)
{
    const struct timing *const times = times_of(row);
    const struct bench_facts *const facts = &report->facts[row->slowest];
    struct json_object *object = json_object_new_object(), *medians = json_object_new_array();
    add_text(object, "fold", task->subject->name);
    add_text(object, "dtype", allfold_type_name(task->type));
    json_object_object_add(object, "count", json_object_new_uint64(task->count));
    json_object_object_add(object, "shape", shape_json(&task->shape));
    json_object_object_add(object, "cut", task->shape.length > 0 ? report_string(task->shape.cut_axis ? "axis" : "outer") : NULL);
    json_object_object_add(object, "ranks", json_object_new_int(ranks));
    add_text(object, "data", bench_place_names[task->place]);
    add_text(object, "caches", task->warm ? "warm" : "cleared");
    add_text(object, "peer", row->peer);
    add_text(object, "timing_point", bench_timing_point_names[row->timing_point]);
    json_object_object_add(object, "runs", json_object_new_int(times->runs));
    add_number(object, "seconds", times->median);
    add_number(object, "seconds_p10", times->p10);
    add_number(object, "seconds_p99", times->p99);
    json_object_object_add(object, "slowest_rank", json_object_new_int(row->slowest));
    for (int rank = 0; rank < ranks; rank++)
        json_object_array_add(medians, report_measured(row->measured[rank].times.median));
    json_object_object_add(object, "seconds_by_rank", medians);
    json_object_object_add(object, "bytes", row->bytes > 0.0 ? json_object_new_uint64((uint64_t)row->bytes) : NULL);
    add_number(object, "bytes_per_second", rate_of(row));
    add_number(object, "of_read_ceiling", rate_of(row) / facts->read);
    add_number(object, "of_datasheet", rate_of(row) / facts->datasheet);
    add_number(object, "floor_seconds", row->floor > 0.0 ? row->floor : NAN);
    add_number(object, "of_floor", row->floor > 0.0 ? row->floor / times->median : NAN);
    json_object_object_add(object, "correct",
                           row->measured[0].checked ? json_object_new_boolean(is_correct(row, ranks)) : NULL);
    return object;
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

static void print_row(const struct bench_report *report, int ranks, const struct bench_row *row, double own)
{
    const struct timing *const times = times_of(row);
    const struct bench_facts *const facts = &report->facts[row->slowest];
    const bool ours = strcmp(row->peer, "allfold") == 0;
    printf("  %-13s %-12s %10.2f %10.2f %10.2f %8s %6s %6s %6s %8s %5d  %s\n", row->peer, bench_timing_point_names[row->timing_point],
           times->median * 1e6, times->p10 * 1e6, times->p99 * 1e6, in_unit(rate_of(row), 1e9, "%.1f").text,
           in_unit(rate_of(row) / facts->read, 0.01, "%.1f").text, in_unit(rate_of(row) / facts->datasheet, 0.01, "%.1f").text,
           in_unit(row->floor > 0.0 ? row->floor / times->median : NAN, 0.01, "%.1f").text,
           ours ? "" : in_unit(times->median / own, 1.0, "%.2fx").text, row->slowest,
           !row->measured[0].checked ? "" : is_correct(row, ranks) ? "correct" : "WRONG");
}

static void print_case_name(const struct bench_case *task, int ranks)
{
    const struct bench_shape *const shape = &task->shape;
    printf("\n%s of ", task->subject->name);
    if (shape->length > 0)
        printf("%s x %s x %s ", count_text(shape->outer).text, count_text(shape->length).text, count_text(shape->inner).text);
    else
        printf("%s ", count_text(task->count).text);
    printf("%s a rank%s, %d rank%s%s%s\n", allfold_type_name(task->type),
           shape->length == 0 ? "" : shape->cut_axis ? " along the middle dimension, which is spread over ranks" : " along the middle dimension",
           ranks, ranks == 1 ? "" : "s",
           task->place == BENCH_IN_HOST   ? ", data in host memory"
           : task->place == BENCH_IN_FILE ? ", data in a file"
                                          : "",
           task->warm ? ", caches warm" : "");
}

static void print_case(const struct bench_report *report, const struct bench_case *task, int ranks,
                       const struct bench_row *rows, int count)
{
    print_case_name(task, ranks);
    if (!report->session->settings->quiet)
        printf("  %-13s %-12s %10s %10s %10s %8s %6s %6s %6s %8s %5s\n", "peer", "timing point", "us", "p10", "p99", "GB/s",
               "%read", "%sheet", "%floor", "/allfold", "rank");
    for (int i = 0; i < count; i++) {
        const struct bench_row *const own = find(rows, count, "allfold", rows[i].timing_point);
        print_row(report, ranks, &rows[i], own != NULL ? times_of(own)->median : NAN);
    }
    const struct split split = split_of(rows, count);
    if (!isnan(split.rest))
        printf("  allfold, host: kernel %.2f, hand-over %.2f, exchange %.2f, rest %.2f us\n", split.kernel * 1e6,
               split.hand_over * 1e6, split.exchange * 1e6, split.rest * 1e6);
    fflush(stdout);
}

void bench_report_case(struct bench_report *report, const struct bench_case *task, int ranks, const struct bench_row *rows,
                       int row_count)
{
    struct json_object *const results = json_object_object_get(report->object, "results");
    const struct split split = split_of(rows, row_count);
    for (int i = 0; i < row_count; i++) {
        struct json_object *const object = row_json(report, task, ranks, &rows[i]);
        if (rows[i].timing_point == BENCH_HOST && strcmp(rows[i].peer, "allfold") == 0 && !isnan(split.rest))
            add_split(object, &split);
        json_object_array_add(results, object);
        note_wrong(report, task, &rows[i], ranks);
    }
    if (for_people(report))
        print_case(report, task, ranks, rows, row_count);
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
