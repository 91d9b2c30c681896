/* The CPU backend's inner loops. cpu_loops.c is compiled once for each instruction set, cpu.c picks the best table that
   the processor can run. The bits are the same in all. */
#ifndef ALLFOLD_CPU_LOOPS_H
#define ALLFOLD_CPU_LOOPS_H

#include "fold/exponential.h"
#include "fold/table.h"

struct cpu_loops {
    const char *name;
    /* Takes x[0 .. n), n < 2^32, into *partial. */
    void (*fold)(enum monoid monoid, allfold_type type, struct partial *partial, const void *x, uint32_t n,
                 uint64_t first);
    /* y[i] = softmax of x[i], or its logarithm; x == y is allowed where the types are equal. */
    void (*softmax)(const struct softmax_constants *constants, bool logarithm, allfold_type x_type, const void *x,
                    allfold_type y_type, void *y, uint64_t n);
};

extern const struct cpu_loops cpu_loops_base;
#ifdef ALLFOLD_HAVE_X86_ISA
extern const struct cpu_loops cpu_loops_avx2, cpu_loops_avx512;
#endif

#endif
