/* Defines the GPU that the .cu files of the benchmark measure on. */
#pragma once

extern "C" {
#include "fold/table.h"
#include "bench/machine.h"
}
#include "kernels/kernels.h"
#include "measure/cub.cuh"
#include "measure/gpu.cuh"

struct copy_job {
    const struct machine *machine;
    uint64_t bytes;
    int loads, threads; /* 0 loads: the runtime's own copy */
    unsigned int blocks;
};

enum { READS_MAX = 64 };
struct cuda_machine {
    struct machine machine;
    struct gpu *gpu;
    struct fold_space space; /* its mailbox is device memory */
    struct softmax_capacity capacity;
    int read_count, copy_count; /* numbers of bytes for which the fastest way is known */
    struct gpu_read reads[READS_MAX];
    struct copy_job copies[READS_MAX];
    size_t scratch_bytes;
};

static inline struct cuda_machine *cuda_of(struct machine *machine) { return (struct cuda_machine *)machine; }
