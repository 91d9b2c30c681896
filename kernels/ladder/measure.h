/* Measuring on one GPU, for the ladder's own .cu files: memory, input, time, ceilings, errors. */
#ifndef ALLFOLD_LADDER_MEASURE_H
#define ALLFOLD_LADDER_MEASURE_H

extern "C" {
#include "base/base.h"
#include "fold/table.h"
#include "kernels/ladder/oracle.h"
}
#include "kernels/ladder/ladder.h"
#include "kernels/ladder/rung.cuh"
#include "kernels/ladder/times.h"

/* Device memory, kept from one use to the next and grown where more is asked for. */
enum ladder_place {
    LADDER_INPUT,
    LADDER_WORK,       /* as large as the input, for rungs that work in global memory; softmax's output */
    LADDER_PARTIALS,   /* of the odd levels */
    LADDER_PARTIALS_2, /* of the even levels */
    LADDER_RESULT,
    LADDER_SCRATCH,    /* the engine's, CUB's */
    LADDER_COUNTER,
    LADDER_CLEAR,      /* read between runs, so that the caches hold nothing of the input */
    LADDER_PLACES
};

struct ladder {
    struct ladder_device device;
    cudaStream_t stream;   /* all work goes here */
    cudaEvent_t *events;   /* two for each run */
    void *places[LADDER_PLACES];
    size_t place_bytes[LADDER_PLACES];
    void *host[2];         /* the same for host memory: the input, and a work space */
    size_t host_bytes[2];
};

/* CUDA's own words for code, if it is an error, behind `what`; the status. */
allfold_status ladder_cuda(cudaError_t code, const char *what, struct error *error);

/* At least `bytes` of device or host memory; what was in it is lost if it grows. */
allfold_status ladder_room(struct ladder *ladder, enum ladder_place place, size_t bytes, void **memory,
                           struct error *error);
allfold_status ladder_host_room(struct ladder *ladder, int which, size_t bytes, void **memory, struct error *error);

/* Waits for the stream. */
allfold_status ladder_wait(struct ladder *ladder, const char *what, struct error *error);

/* Behind an input lie so many bytes that no sum survives (input.cu). */
#define LADDER_GUARD_BYTES ((size_t)64 << 10)
#define LADDER_POISON 0x7f /* of each byte: a huge number in each type */

/* n elements (numbers.h) in LADDER_INPUT, and the guard behind them. */
allfold_status ladder_input(struct ladder *ladder, allfold_type type, uint64_t n, const void **x, struct error *error);
/* The same for the logits of softmax, f32. */
allfold_status ladder_input_logits(struct ladder *ladder, uint64_t n, const float **x, struct error *error);
/* How many elements of the input, or bytes of its guard, are not what they were made as. */
allfold_status ladder_input_changes(struct ladder *ladder, allfold_type type, uint64_t n, uint64_t *changes,
                                    struct error *error);
allfold_status ladder_input_logits_changes(struct ladder *ladder, uint64_t n, uint64_t *changes, struct error *error);

/* Times work between two events on the GPU: warm-up, then 20 to 200 runs, by how long one takes, each after the caches
   were cleared. The runs are queued ahead, so that the host's time does not count, unless work itself waits for the
   GPU. */
allfold_status ladder_time(struct ladder *ladder, ladder_work *work, void *argument, struct ladder_times *times,
                           struct error *error);
/* The same in 5 to 20 runs, to choose between ways of doing the same. */
allfold_status ladder_time_quickly(struct ladder *ladder, ladder_work *work, void *argument, struct ladder_times *times,
                                   struct error *error);
/* Times work that the calling thread does itself: 3 to 20 runs. */
allfold_status ladder_time_host(ladder_work *work, void *argument, struct ladder_times *times, struct error *error);

/* Reads other memory than the input's, more than the second-level cache holds: the caches then hold nothing of the
   input, and nothing that is still to be written back. */
cudaError_t ladder_clear(struct ladder *ladder);

/* A way of reading `bytes` at x, 16-byte aligned, and doing nothing else. */
struct ladder_read {
    const void *x;
    uint64_t bytes;
    void *sink;
    int loads, threads; /* a thread's in flight, a block's */
    int rounds;         /* of a block before it ends; 0: blocks stay */
    unsigned int blocks;
};
cudaError_t ladder_read_start(void *read, cudaStream_t stream); /* of a struct ladder_read */
/* The fastest of many such ways, each tried a few times. */
allfold_status ladder_read_fastest(struct ladder *ladder, const void *x, uint64_t bytes, struct ladder_read *read,
                                   struct error *error);
/* How fast this GPU reads so: bytes a second, launch included. 0 for less than 16 bytes. */
allfold_status ladder_read_ceiling(struct ladder *ladder, const void *x, uint64_t bytes, double *bytes_per_second,
                                   struct error *error);

/* Appends what holds for every table: the GPU, the ceilings. */
void ladder_facts(const struct ladder *ladder, double read_ceiling, struct ladder_table *table);

#endif
