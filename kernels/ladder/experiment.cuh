/* What the experiments (ladder_experiments.h) share: an input, rows that are timed and checked, the end of a reduction. All
   sum int32, modulo 2^32: such a sum is the same in every order, so an element that is lost or taken twice always shows. */
#pragma once

#include "kernels/ladder/input.h" /* first: it says that base/ is C */

#include "kernels/ladder/ladder_experiments.h"
#include "kernels/ladder/parts.cuh"

typedef sum_of<int32_t> int_sum;

struct experiment {
    struct gpu *gpu;
    struct ladder_table *table;
    const int32_t *x;
    uint64_t n;
    double ceiling;    /* bytes a second that this GPU reads */
    int32_t *partials; /* EXPERIMENT_PARTIALS of them */
    int32_t *result;
    struct ladder_oracle oracle;
    int time;          /* the first of the columns that experiment_columns adds */
};

enum { EXPERIMENT_PARTIALS = 1 << 16, EXPERIMENT_THREADS = 256 };

/* Makes the input, measures the ceiling, and appends the facts that hold for the table. */
allfold_status experiment_begin(struct experiment *experiment, struct gpu *gpu, uint64_t n, struct ladder_table *table,
                                struct error *error);

/* Appends the columns that every experiment ends with: time, p99, bandwidth, percent of both peaks, the verdict. */
void experiment_columns(struct experiment *experiment);

/* Times work, which moves this many bytes, and fills those columns of the row but the verdict. */
allfold_status experiment_time(struct experiment *experiment, const struct gpu_work *work, double bytes,
                               struct ladder_cell *row, struct error *error);

/* Writes the row's verdict; why: see ladder_table_verdict. */
void experiment_verdict(struct experiment *experiment, struct ladder_cell *row, const char *why);

/* Runs work, which leaves the sum of all elements in *experiment->result. why says what is wrong with it, or with the input
   afterwards; it is empty if nothing is. */
allfold_status experiment_check(struct experiment *experiment, const struct gpu_work *work, char why[LADDER_TEXT_BYTES],
                                struct error *error);
/* The input alone; why is left as it is if nothing is wrong. */
allfold_status experiment_check_input(struct experiment *experiment, char why[LADDER_TEXT_BYTES], struct error *error);

/* Both, for a work that reads the input once. */
allfold_status experiment_row(struct experiment *experiment, const struct gpu_work *work, struct ladder_cell *row,
                              struct error *error);

/* The second level: the sum of this many partials goes to *experiment->result. */
cudaError_t experiment_finish(const struct experiment *experiment, unsigned int partials, cudaStream_t stream);

/* What the runtime reports about a kernel: registers a thread, bytes of local memory a thread (for what did not fit into
   registers), and how many blocks of this many threads and this much dynamic shared memory a multiprocessor holds at one time. */
struct kernel_needs {
    int registers, blocks;
    size_t local_bytes;
};
allfold_status experiment_needs(const void *kernel, int threads, size_t dynamic_bytes, struct kernel_needs *needs,
                                struct error *error);
