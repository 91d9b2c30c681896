/* What tests say to the emulation of CUDA, and ask of it. */
#pragma once

#include <stdint.h>

/* The order in which blocks, warps and lanes run from now on: 0 ascending, else shuffled, a different order for each
   seed. A kernel's results must not depend on it. */
void emulation_order(uint64_t seed);

/* From now on launches of blocks that wait for each other are refused, as parts of a device may do. */
void emulation_refuse_together(bool refuse);

/* What threads of kernels have done since the program began. */
struct emulation_counts {
    uint64_t threads, barriers, exchanges; /* that began; that they reached of their block, of lanes of their warp */
};
extern struct emulation_counts emulation_counted;

/* What the last launch did that CUDA leaves undefined; "" if nothing. */
const char *emulation_fault(void);
