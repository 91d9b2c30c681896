/* The CPU backend's inner loops. loops.c is compiled once for each instruction set, cpu.c picks the best table that
   the processor can run. The bits are the same in all. */
#pragma once

#include "fold/exponential.h"
#include "fold/table.h"

struct cpu_loops {
    const char *name;
    /* Takes the work, of less than 2^32 elements, into *partial. */
    void (*fold)(const struct work *work, struct partial *partial);
    /* The second pass of softmax. */
    void (*normalise)(const struct softmax_work *work, const struct softmax_constants *constants);
};

extern const struct cpu_loops cpu_loops_base;
#ifdef ALLFOLD_HAVE_X86_ISA
extern const struct cpu_loops cpu_loops_avx2, cpu_loops_avx512;
#endif
