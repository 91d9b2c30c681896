/* Reports the benchmark's results, on rank 0: tables for people, one JSON object for programs. */
#pragma once

#include "bench/bench.h"
#include "cli/session.h"

#include <json-c/json.h>

/* Version of the JSON: it changes if the form changes in a way that a reader must know of. */
#define BENCH_SCHEMA 1

struct bench_report {
    const struct session *session;
    struct json_object *object;
    const struct bench_facts *facts; /* of the ranks that measure now */
    char wrong[240];                 /* the first result that was wrong; "" if none */
    char slow[240];                  /* the first device or link that is slow; "" if none */
    struct error error;              /* no memory for a table. The ranks go on together; it is told at the end */
};

void bench_report_begin(struct bench_report *report, const struct session *session);
/* From now on the first `ranks` ranks measure. facts, one a rank, stay valid meanwhile. */
void bench_report_ranks(struct bench_report *report, const struct bench_facts *facts, int ranks);
void bench_report_case(struct bench_report *report, const struct bench_case *task, int ranks, const struct bench_row *rows,
                       int row_count);
/* Prints the JSON, if it was asked for, and frees what the report holds. */
void bench_report_end(struct bench_report *report);

/* A baseline: a file that --json printed before. NULL and an error if the file is none. */
struct json_object *bench_baseline_read(const char *path, struct error *error);
/* Compares allfold's own rows with those of the baseline of the same fold, type, range, count, ranks, data, caches and timing point.
   Adds the findings to the report. It is an error if one is slower by more than the tolerance, if there is nothing to compare, or
   if the baseline was measured on another device. */
allfold_status bench_baseline_compare(struct json_object *baseline, double tolerance, struct bench_report *report,
                                      struct error *error);
