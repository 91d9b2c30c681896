/* Machines: where the benchmark's data lies and its time is taken. cuda.cu is a GPU, cpu.c the CPU. */
#pragma once

#include "bench/bench.h"
#include "bench/data.h"
#include "fold/axis.h"
#include "measure/cub.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Elements first, first + 1, ... of the data, which go to x[place] and on. */
struct bench_data {
    allfold_type type;
    int range;
    uint64_t first, count, place;
    bool in_host;
};

/* Softmax y of elements x, `count` of them, each `stride` behind the one before, whose exponentials add up to sumexp; in memory of the
   machine. */
struct softmax_found {
    allfold_type type;
    const void *x, *y;
    uint64_t count, stride;
    double sumexp;
};

struct machine;
struct machine_ops {
    const char *name;
    void (*close)(struct machine *machine);
    /* Fills in what is known without measuring. */
    allfold_status (*describe)(struct machine *machine, struct bench_facts *facts, struct error *error);
    /* The data to machine->x, and to host_x where in_host. */
    allfold_status (*fill)(struct machine *machine, const struct bench_data *data, struct error *error);
    /* What is known of a row of the data, wherever it lies. */
    allfold_status (*known)(struct machine *machine, const struct bench_row_of *row, struct bench_known *known, struct error *error);
    /* From the machine's memory to the host's. */
    allfold_status (*fetch)(struct machine *machine, const void *from, void *to, size_t bytes, struct error *error);
    /* Sets all bits of the first `bytes` bytes of machine->y, which makes elements NaN, so that what is not written shows. */
    allfold_status (*poison)(struct machine *machine, uint64_t bytes, struct error *error);
    /* The largest |y / (exp(x) / sumexp) - 1|. */
    allfold_status (*softmax_error)(struct machine *machine, const struct softmax_found *found, double *worst, struct error *error);

    /* What follows starts work; wait waits for it. */
    allfold_status (*clear)(struct machine *machine, struct error *error); /* no data is in a cache afterwards */
    allfold_status (*wait)(struct machine *machine, struct error *error);
    allfold_status (*begin)(struct machine *machine, struct error *error); /* time begins here, in the order of work */
    allfold_status (*end)(struct machine *machine, struct error *error);
    allfold_status (*elapsed)(struct machine *machine, double *seconds, struct error *error); /* after wait */

    /* The fastest way of reading `bytes` of x is looked for, once for each number of bytes, then used. */
    allfold_status (*read_prepare)(struct machine *machine, uint64_t bytes, struct error *error);
    allfold_status (*read)(struct machine *machine, uint64_t bytes, struct error *error);
    allfold_status (*copy_prepare)(struct machine *machine, uint64_t bytes, struct error *error); /* x to y */
    allfold_status (*copy)(struct machine *machine, uint64_t bytes, struct error *error);
    /* The kernels alone. A GPU's partial stays there, as CUB's result does; fold_taken waits for it, and takes it. */
    allfold_status (*fold)(struct machine *machine, const struct work *work, struct error *error);
    allfold_status (*fold_taken)(struct machine *machine, const struct work *work, struct partial *partial, struct error *error);
    /* Both passes of softmax; `partial` is what the first pass will find, or has found. */
    allfold_status (*softmax)(struct machine *machine, const struct softmax_work *work, const struct partial *partial,
                              struct error *error);

    /* NULL where there is none. */
    allfold_status (*link)(struct machine *machine, uint64_t bytes, bool in, struct error *error); /* host_x, x */
    allfold_status (*nothing)(struct machine *machine, struct error *error); /* an empty kernel */
    /* CUB, which gets x and result from the machine: its result stays on the device. cub_fetch takes the result to the host, where it
       is after wait; cub_value tells a result in host memory. */
    allfold_status (*cub_prepare)(struct machine *machine, const struct cub_call *call, struct error *error);
    allfold_status (*cub)(struct machine *machine, const struct cub_call *call, struct error *error);
    allfold_status (*cub_fetch)(struct machine *machine, struct error *error);
    double (*cub_value)(enum cub_work work, allfold_type type, const void *value);
    /* Whether this CUB has CUB_SUM_GPU_TO_GPU: of f32 and f64, of fewer than 2^31; and CUB_ROWS_SUM and CUB_ROWS_MAX. */
    bool (*cub_has_gpu_to_gpu)(void);
    bool (*cub_has_rows)(void);
};

struct machine {
    const struct machine_ops *ops;
    void *x, *y, *host_x;  /* of the bytes that open was told */
    void *stream, *result; /* cudaStream_t in which all work goes, and CUB's result; NULL on the CPU */
    void *taken;           /* host memory: the result that cub_fetch has taken there */
};

/* Opens a GPU, local_rank modulo visible; or the CPU, with `threads` threads. */
allfold_status machine_open_cuda(int local_rank, const struct bench_bytes *bytes, struct machine **machine, struct error *error);
allfold_status machine_open_cpu(int threads, const struct bench_bytes *bytes, struct machine **machine, struct error *error);
/* As softmax_error, of elements in host memory. */
double machine_cpu_softmax_error(const struct softmax_found *found, int threads);
/* More than the caches of `threads` cores are likely to hold: 8 MiB each, 64 MiB at least. */
uint64_t machine_cpu_cache_bytes(int threads);

#ifdef __cplusplus
}
#endif
