/* Checks and times rungs and kernels of experiments, all in the same way, and fills a row of the table with what was found.
   Rungs (rungs.cu, line_sums.cu, softmax_ladder.cu) and experiments call it. */
#pragma once

#include "kernels/ladder/input.h"

/* A rung, or a kernel of an experiment, ready to start many times. */
struct ladder_work {
    struct gpu_work run;
    bool on_host;  /* its time is the host's, and the GPU's speed is no measure of it */
    double bytes;  /* that one run moves */
    void *subject; /* what the next two get */
    /* Overwrites results of earlier runs in memory other than the ladder's own, which ladder_poison overwrites. NULL: there are none. */
    allfold_status (*poison)(void *subject, struct error *error);
    /* Compares what the last run left, and the input, with what they must be, and says in why how they differ; keeps a why that is not
       empty. */
    allfold_status (*compare)(void *subject, char why[TABLE_TEXT_BYTES], struct error *error);
};

/* One run from poisoned memory, compared. */
allfold_status ladder_check(struct gpu *gpu, const struct ladder_work *work, char why[TABLE_TEXT_BYTES], struct error *error);

/* What is measured with, and the table that is filled. */
struct ladder_runner {
    struct gpu *gpu;
    struct table *table;
    double ceiling;             /* bytes a second that this GPU reads */
    double before, first, host; /* medians of the row before, the first one on the GPU, and the last one on the host; NaN: none */
};

/* Measures how fast the GPU reads x, and adds that and the datasheet's speed to the table as facts. */
allfold_status ladder_runner_begin(struct ladder_runner *runner, struct gpu *gpu, const void *x, uint64_t bytes, struct table *table,
                                   struct error *error);
/* Checks work, times it, compares again, and fills the last row. */
allfold_status ladder_runner_measure(struct ladder_runner *runner, const struct ladder_work *work, struct error *error);

/* The rungs of a list over one subject. */
struct ladder_climb {
    const struct ladder_rung_list *list;
    int rung; /* the only one; -1: all */
    void *subject;
    /* Makes a rung ready, or leaves *work, which is zero, as it is: this machine does not have the rung. */
    allfold_status (*prepare)(void *subject, int rung, struct ladder_work *work, struct error *error);
    /* Fills the columns that only these rungs have, of the rung that was prepared last. */
    void (*describe)(const void *subject, const struct ladder_runner *runner);
};
/* A row for each rung. */
allfold_status ladder_climb_measure(const struct ladder_climb *climb, struct ladder_runner *runner, struct error *error);
/* Notes in the table of ladder_check_begin whether each rung is right; where: the subject, for people. */
allfold_status ladder_climb_check(const struct ladder_climb *climb, struct gpu *gpu, const char *where, struct table *table,
                                  struct error *error);
