/* An object of tests/faults/allfold-standin and tests/faults/allfold-cuda, which are linked with --wrap for each function
   here: ALLFOLD_FAIL_CUDA="RANK:FUNCTION:K" lets call number K (from 1) of a CUDA function, on rank RANK, fail with
   cudaErrorUnknown. When it strikes it says "failing: struck" on standard error. The functions are called through six words,
   which is what their arguments, at most six integers and pointers, are passed in. One that the program does not call may be
   missing. */
#include "tests/faults/cuda_calls.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CUDA_ERROR_UNKNOWN = 999 };

static struct {
    char function[40];
    atomic_int left;
} plan;

__attribute__((constructor)) static void prepare(void)
{
    const char *const text = getenv("ALLFOLD_FAIL_CUDA"), *const rank = getenv("OMPI_COMM_WORLD_RANK");
    int on, k;
    char function[sizeof plan.function];
    if (text == NULL)
        return;
    if (sscanf(text, "%d:%39[^:]:%d", &on, function, &k) != 3)
        abort();
    if (on != (rank != NULL ? atoi(rank) : 0))
        return;
    atomic_store(&plan.left, k);
    memcpy(plan.function, function, sizeof function);
}

static bool strikes(const char *function)
{
    if (strcmp(function, plan.function) != 0 || atomic_fetch_sub(&plan.left, 1) != 1)
        return false;
    fprintf(stderr, "failing: struck\n");
    return true;
}

typedef uintptr_t word;
#define WRAP(name)                                                                                \
    __attribute__((weak)) int __real_##name(word a, word b, word c, word d, word e, word f);      \
    int __wrap_##name(word a, word b, word c, word d, word e, word f);                            \
    int __wrap_##name(word a, word b, word c, word d, word e, word f)                             \
    {                                                                                             \
        return strikes(#name) ? CUDA_ERROR_UNKNOWN : __real_##name(a, b, c, d, e, f);             \
    }
CUDA_CALLS(WRAP)
