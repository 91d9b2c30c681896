/* What the experiments (ladder_experiments.h) share: an input, a row that is checked and timed, the end of a reduction. All
   sum int32, modulo 2^32: such a sum is the same in every order, so an element that is lost or taken twice always shows. */
#pragma once

#include "kernels/ladder/runner.h" /* first: it says that base/ is C */

#include "kernels/ladder/ladder_experiments.h"
#include "kernels/ladder/parts.cuh"

typedef sum_of<int32_t> int_sum;

struct experiment {
    struct gpu *gpu;
    struct table *table;
    struct ladder_runner runner;
    const int32_t *x;
    uint64_t n;
    int32_t *partials; /* EXPERIMENT_PARTIALS of them */
    int32_t *result;
    struct ladder_oracle oracle;
};

enum { EXPERIMENT_PARTIALS = 1 << 16, EXPERIMENT_THREADS = 256 };

/* Makes the input, measures the ceiling, and appends the facts that hold for the table, and the columns that every experiment ends with:
   time, p99, bandwidth, percent of both peaks, the verdict. */
allfold_status experiment_begin(struct experiment *experiment, struct gpu *gpu, uint64_t n, struct table *table, struct error *error);

/* Checks and times work that reads the input once and leaves the sum of all elements in *experiment->result, and fills the last row. */
allfold_status experiment_measure(struct experiment *experiment, const struct gpu_work *work, struct error *error);
/* Whether the input is what it was; why is left as it is if so. */
allfold_status experiment_compare_input(struct experiment *experiment, char why[TABLE_TEXT_BYTES], struct error *error);

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
