/* What the files of the CPU backend share. */
#pragma once

#include "device/cpu/loops.h"
#include "device/device.h"

#ifdef __SSE__
#include <xmmintrin.h>
#endif

enum {
    BLOCK = 1 << 16,  /* least elements of a block: shorter arrays are one, folded without waking threads */
    BLOCKS_MAX = 4096 /* so partials need little memory, whatever the length */
};

struct cpu_device {
    struct device device;
    const struct cpu_loops *loops;
};

struct cpu_queue {
    struct queue queue;
    struct partial partial;
    struct softmax_work softmax; /* begun */
    unsigned char *blocks; /* of a queue without staging: partials of blocks, as close as their size allows, for all threads */
    struct cpu_scratch *scratch; /* of all threads, for columns: axis.c */
    void *shared;          /* of the first of some queues: the staging buffers of all */
};

static inline const struct cpu_loops *cpu_loops_of(const struct queue *queue)
{
    return ((const struct cpu_device *)queue->device)->loops;
}

/* What the calling thread has stored past the caches is seen by all that see what it does next. It waits for those stores: once for many rows. */
static inline void cpu_fence_stores(void)
{
#ifdef __SSE__
    _mm_sfence();
#endif
}

/* ---- blocks.c */

/* Elements of a block of an array of n: a multiple of BLOCK, or all where that is less. */
uint64_t cpu_block_elements(uint64_t n);
/* Folds a range of the work's elements into *partial, of which only monoid_bytes are written. */
void cpu_fold_block(const struct cpu_loops *loops, const struct work *work, struct range block, struct partial *partial);
/* Folds all of the work's elements, block after block, by the thread that calls. */
void cpu_fold_by_caller(const struct cpu_loops *loops, const struct work *work, struct partial *partial);
/* The same, with the same bits, by all of the device's threads. The queue must have blocks. */
void cpu_fold_by_all(const struct cpu_queue *cpu, const struct work *work, struct partial *partial);
/* The same of several arrays: short ones side by side. */
void cpu_fold_many_by_all(const struct cpu_queue *cpu, const struct fold_item *items, uint64_t count);

/* axis.c: see device.h. */
allfold_status cpu_fold_axis(struct queue *queue, const struct axis_work *work, struct error *error);
allfold_status cpu_gradient_axis(struct queue *queue, const struct gradient_work *work, struct error *error);
bool cpu_softmax_axis(struct queue *queue, const struct softmax_work *work, const struct softmax_constants *constants, enum place place,
                      struct error *error);
