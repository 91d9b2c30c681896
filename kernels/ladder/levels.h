/* A reduction by one rung, planned once and started many times. */
#pragma once

#include "kernels/ladder/input.h"

#include "kernels/kernels.h"

enum { LEVELS_MAX = 12 }; /* 2^64 elements, in blocks of 64 */

struct rung_reduction {
    struct gpu *gpu;
    const struct rung *rung;
    allfold_type type;
    allfold_fold fold;
    int block;
    const void *x; /* n elements of device memory */
    uint64_t n;
    /* what planning finds */
    int level_count;
    struct level levels[LEVELS_MAX];
    cudaError_t (*start)(const struct level *level);
    void *result, *scratch; /* device memory; host memory for a rung that runs there */
    size_t scratch_bytes;
    struct fold_space space; /* the engine's */
    /* what the table tells of it; what is not known is NaN */
    uint64_t bytes_read, bytes_written; /* that the rung's own loads and stores ask for, over all levels */
    double occupancy, registers, shared_bytes, launches;
    double roundings; /* see struct ladder_answer */
};

/* How a rung runs. */
struct rung_driver {
    bool on_host;
    allfold_status (*plan)(struct rung_reduction *reduction, struct error *error);
    gpu_start *start; /* of a struct rung_reduction */
    /* Waits and takes the result. */
    allfold_status (*answer)(struct rung_reduction *reduction, struct ladder_answer *answer, struct error *error);
};
extern const struct rung_driver levels_driver;

/* Makes *reduction of `rung`, ready to start. The caller has set its gpu and x; all else is 0. */
allfold_status reduction_plan(const struct rung *rung, const struct ladder_request *request, struct rung_reduction *reduction,
                              struct error *error);
static inline const struct rung_driver *reduction_driver(const struct rung_reduction *reduction)
{
    return reduction->rung->driver != NULL ? reduction->rung->driver : &levels_driver;
}

/* An answer in the elements' own type, at `value` in host memory. */
struct ladder_answer reduction_answer_at(const struct rung_reduction *reduction, const void *value);
/* The same from the beginning of reduction->result, in device memory. */
allfold_status reduction_answer_device(struct rung_reduction *reduction, struct ladder_answer *answer, struct error *error);
