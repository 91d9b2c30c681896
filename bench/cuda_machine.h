/* What the .cu files of the benchmark share: a GPU to measure on. */
#ifndef ALLFOLD_BENCH_CUDA_MACHINE_H
#define ALLFOLD_BENCH_CUDA_MACHINE_H

#include "kernels/ladder/measure.h" /* first: it knows the C headers */
#include "kernels/kernels.h"

extern "C" {
#include "bench/machine.h"
}

struct copy_way {
    const struct machine *machine;
    uint64_t bytes;
    int loads, threads; /* 0 loads: the runtime's own copy */
    unsigned int blocks;
};

enum { READS_MAX = 64 };
struct cuda_machine {
    struct machine machine;
    struct ladder *ladder;
    struct fold_space space; /* its mailbox is device memory */
    struct softmax_room room; /* and early: softmax_prepare */
    bool early;
    int read_count, copy_count; /* for so many numbers of bytes the fastest way is known */
    struct ladder_read reads[READS_MAX];
    struct copy_way copies[READS_MAX];
    void *cub_value; /* pinned: CUB's result */
    size_t scratch_bytes;
};

static inline struct cuda_machine *cuda_of(struct machine *machine) { return (struct cuda_machine *)machine; }

/* cub.cu */
allfold_status cub_prepare(struct machine *machine, const struct cub_call *call, struct error *error);
allfold_status cub_start(struct machine *machine, const struct cub_call *call, struct error *error);
allfold_status cub_fetch(struct machine *machine, struct error *error);
double cub_value(const struct machine *machine, enum cub_work work, allfold_type type);
bool cub_has_gpu_to_gpu(void);

#endif
