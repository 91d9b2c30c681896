/* The experiments: what one factor of a kernel's speed is worth, with everything else unchanged. Each is a file of its name and a
   line here, X(ID, takes, parts, counts, text), from which the topics are made: `allfold ladder ID` calls ladder_ID.
   C. All reduce int32 sums. */
#pragma once

#include "kernels/ladder/ladder.h"

#define LADDER_EXPERIMENTS(X)                                                                                          \
    X(coalescing, LADDER_TAKES_COLUMNS, 2, "2^28", "row and column sums of a matrix: which lane loads which element")  \
    X(parallelism, 0, 1, "2^28", "bandwidth against bytes in flight on a multiprocessor")                              \
    X(granularity, LADDER_TAKES_BLOCK, 1, "2^28", "1 to 32 elements a thread")                                         \
    X(occupancy, 0, 3, "2^28", "registers and shared memory: where a little more of them costs a block")

#ifdef __cplusplus
extern "C" {
#endif
#define LADDER_DECLARE(ID, takes, parts, counts, text) ladder_run ladder_##ID;
LADDER_EXPERIMENTS(LADDER_DECLARE)
#undef LADDER_DECLARE
#ifdef __cplusplus
}
#endif
