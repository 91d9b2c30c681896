/* The rungs' names and ideas. In every build, also in one without CUDA. */
#include "kernels/ladder/ladder.h"

const struct ladder_rung ladder_rungs[] = {
#define ROW(ID, name, idea) {name, idea},
    LADDER_RUNGS(ROW)
#undef ROW
};
const int ladder_rung_count = sizeof ladder_rungs / sizeof *ladder_rungs;
