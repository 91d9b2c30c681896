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
    struct memory_sink memory[OUTPUT_ARRAYS_MAX]; /* without files: of each */
    struct fold_call call;
    struct output_about about;
    struct session_output *files;
    int file_count;
};

/* `fold --axis`, as fold_run. */
void fold_axis_run(struct session *session);

/* Results that are printed. */
enum { FOLD_AXIS_PRINTED_MAX = 1000 };

/* Prints them on rank 0. */
void fold_axis_print(const struct session *session, const struct fold_axis *fold, double seconds);
