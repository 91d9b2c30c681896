/* Runs folds along an axis (fold_axis.c), and prints their results (fold_axis_print.c). */
#pragma once

#include "cli/axes.h"
#include "cli/session.h"

/* An array of results: one of the fold's, or its indices. */
struct fold_axis_array {
    char name[32];
    size_t result;
    bool indices;
    allfold_type type;
};

struct fold_axis {
    struct axes axes;
    struct axis_array array;
    struct array_info *shape; /* of each array of results */
    int count;
    struct fold_axis_array arrays[OUTPUT_ARRAYS_MAX];
    struct sink *sinks[OUTPUT_ARRAYS_MAX]; /* of each */
    struct fold_call call;
    struct output_about about;
    struct session_output *files;
    int file_count;
};

/* `fold --axis`, as fold_run. */
void fold_axis_run(struct session *session);

/* ---- for fold_axis.c: results that are printed */

enum { FOLD_AXIS_PRINTED_MAX = 1000 };

/* A sink that keeps a few results in memory. NULL: no memory. */
struct sink *fold_axis_memory(allfold_type type, uint64_t count);

/* Brings the results of all ranks, from such sinks, to rank 0. Collective. */
void fold_axis_gather(struct session *session, struct fold_axis *fold);

/* Prints them on rank 0. */
void fold_axis_print(const struct session *session, const struct fold_axis *fold, double seconds);
