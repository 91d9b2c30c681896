/* The softmax ladder: y[i] = exp(x[i] - max) / sum of exp(x - max), f32, each rung with fewer trips through memory than
   the one before. A rung is one file that defines softmax_NAME, and a line of LADDER_SOFTMAX_RUNGS. */
#pragma once

#include "kernels/ladder/rung.cuh"

#include "kernels/kernels.h"

struct gpu;

struct softmax_job {
    struct gpu *gpu;
    const float *x;
    uint64_t n; /* > 0 */
    float *y;
    float *partials;       /* device memory: two floats for each of `blocks` blocks */
    float *result;         /* device memory: the maximum, the sum */
    struct fold_space space; /* the engine's; its mailbox is host memory */
    unsigned int blocks;   /* as many as the GPU holds at one time, of SOFTMAX_BLOCK threads */
};
enum { SOFTMAX_BLOCK = 512 };

struct softmax_rung {
    gpu_start *start; /* of a struct softmax_job */
    int passes;         /* how many times the n elements are read or written */
    unsigned int most;  /* blocks; 0: as many as the GPU holds */
    /* units in the last place that an output may be off: in any case, for each addition that its thread makes in a row, and for
       each unit that x lies below the maximum */
    double allowed, allowed_each, allowed_below;
};
