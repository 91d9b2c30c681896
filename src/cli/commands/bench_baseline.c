/* Guards against slowdowns: compares this run of the benchmark with an earlier one. */
#include "cli/commands/bench_report.h"
#include "cli/report.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES_MAX = 64 << 20 }; /* of a baseline */

static const char *text_of(struct json_object *object, const char *key)
{
    const char *const text = json_object_get_string(json_object_object_get(object, key));
    return text != NULL ? text : "";
}

static double number_of(struct json_object *object, const char *key)
{
    return json_object_get_double(json_object_object_get(object, key));
}

/* The device of rank 0. */
static const char *device_of(struct json_object *report)
{
    struct json_object *const survey = json_object_array_get_idx(json_object_object_get(report, "surveys"), 0);
    struct json_object *const machine = json_object_array_get_idx(json_object_object_get(survey, "machines"), 0);
    return text_of(machine, "device");
}

struct json_object *bench_baseline_read(const char *path, struct error *error)
{
    uint64_t bytes = 0;
    const int fd = file_open(path, &bytes, error);
    struct json_object *const baseline = fd >= 0 && bytes <= BYTES_MAX ? json_object_from_fd(fd) : NULL;
    if (fd >= 0)
        close(fd);
    if (baseline == NULL)
        error_set(error, ALLFOLD_BAD_INPUT, "bench: --baseline %.200s: expected a file that allfold bench --json wrote, "
                                             "found none that can be read as JSON", path);
    else if (strcmp(text_of(baseline, "command"), "bench") != 0
             || json_object_get_int(json_object_object_get(baseline, "schema")) != BENCH_SCHEMA
             || !json_object_is_type(json_object_object_get(baseline, "results"), json_type_array)
             || !json_object_is_type(json_object_object_get(baseline, "surveys"), json_type_array))
        error_set(error, ALLFOLD_BAD_INPUT,
                  "bench: --baseline %.200s: expected what allfold bench --json of this version prints (schema %d)", path,
                  BENCH_SCHEMA);
    if (error->status == ALLFOLD_OK)
        return baseline;
    json_object_put(baseline);
    return NULL;
}

/* Rows of integers, and those of earlier versions, have none. */
static int range_of(struct json_object *row)
{
    const int range = json_object_get_int(json_object_object_get(row, "range"));
    return range > 0 ? range : BENCH_RANGE;
}

/* Whether two rows describe the same work. */
static bool same_work(struct json_object *a, struct json_object *b)
{
    static const char *const keys[] = {"fold", "dtype", "count", "shape", "cut", "ranks", "data", "caches", "peer", "timing_point"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strcmp(text_of(a, keys[i]), text_of(b, keys[i])) != 0)
            return false;
    return range_of(a) == range_of(b);
}

static struct json_object *counterpart(struct json_object *rows, struct json_object *row)
{
    for (size_t i = 0; i < json_object_array_length(rows); i++)
        if (same_work(json_object_array_get_idx(rows, i), row))
            return json_object_array_get_idx(rows, i);
    return NULL;
}

static struct json_object *slower_json(struct json_object *row, double before, double now)
{
    static const char *const keys[] = {"fold", "dtype", "count", "shape", "ranks", "timing_point"};
    struct json_object *const object = json_object_new_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        json_object_object_add(object, keys[i], json_object_get(json_object_object_get(row, keys[i])));
    json_object_object_add(object, "seconds_before", report_measured(before));
    json_object_object_add(object, "seconds", report_measured(now));
    return object;
}

/* The findings so far. */
struct comparison {
    double tolerance;
    bool people; /* slower rows are printed for people */
    int compared;
    struct json_object *slower; /* an array */
    struct json_object *worst;  /* the row with the largest slowdown, and its size */
    double worst_ratio;
};

static void compare(struct comparison *c, struct json_object *before, struct json_object *row)
{
    const double was = number_of(before, "seconds"), is = number_of(row, "seconds"), ratio = is / was;
    c->compared++;
    if (ratio > 1.0 + c->tolerance) {
        json_object_array_add(c->slower, slower_json(row, was, is));
        if (c->people)
            printf("slower: %s of %s %s, %s ranks, %s: %.2f us, was %.2f us (%.2fx)\n", text_of(row, "fold"),
                   text_of(row, "count"), text_of(row, "dtype"), text_of(row, "ranks"), text_of(row, "timing_point"), is * 1e6, was * 1e6,
                   ratio);
    }
    if (ratio > c->worst_ratio) {
        c->worst_ratio = ratio;
        c->worst = row;
    }
}

static void report_comparison(const struct comparison *c, struct json_object *report)
{
    struct json_object *const found = json_object_new_object();
    if (c->people && c->compared > 0)
        printf("\ncompared with the baseline: %d times, %zu of them slower by more than %.3g%%\n", c->compared,
               json_object_array_length(c->slower), 100.0 * c->tolerance);
    json_object_object_add(found, "tolerance", report_measured(c->tolerance));
    json_object_object_add(found, "compared", json_object_new_int(c->compared));
    json_object_object_add(found, "slower", c->slower);
    json_object_object_add(report, "baseline", found);
}

allfold_status bench_baseline_compare(struct json_object *baseline, double tolerance, struct bench_report *report,
                                      struct error *error)
{
    struct json_object *const then = json_object_object_get(baseline, "results");
    struct json_object *const now = json_object_object_get(report->object, "results");
    struct comparison c = {.tolerance = tolerance, .people = !report->session->settings->json, .slower = json_object_new_array()};
    for (size_t i = 0; i < json_object_array_length(now); i++) {
        struct json_object *const row = json_object_array_get_idx(now, i), *const before = counterpart(then, row);
        if (strcmp(text_of(row, "peer"), "allfold") == 0 && before != NULL && number_of(before, "seconds") > 0.0)
            compare(&c, before, row);
    }
    const size_t count = json_object_array_length(c.slower);
    report_comparison(&c, report->object);
    if (strcmp(device_of(baseline), device_of(report->object)) != 0)
        return error_set(error, ALLFOLD_BAD_INPUT, "bench: --baseline: it was measured on %.100s, this run on %.100s",
                         device_of(baseline), device_of(report->object));
    if (c.compared == 0)
        return error_set(error, ALLFOLD_BAD_INPUT, "bench: --baseline: it has none of the folds, types, counts and ranks "
                                                   "of this run: ask for some that it has");
    if (count > 0)
        error_set(error, ALLFOLD_NO_VALUE,
                  "bench: slower than the baseline by more than %.3g%% in %zu of %d times; most in %s of %s %s, %s ranks, "
                  "%s: %.2fx",
                  100.0 * tolerance, count, c.compared, text_of(c.worst, "fold"), text_of(c.worst, "count"),
                  text_of(c.worst, "dtype"), text_of(c.worst, "ranks"), text_of(c.worst, "timing_point"), c.worst_ratio);
    return error->status;
}
