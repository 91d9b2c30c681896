/* Finds what runs the ladder's rungs: GPUs, or without one their emulation. */
#pragma once

#include "kernels/ladder/ladder.h"

/* The program's own machine if a GPU is visible; else the emulation, which is loaded then, and for good. A backend other than auto leaves
   no choice. If there is none, *error says so, and the program's machine is good for its topics only. */
const struct ladder_machine *ladder_machine_find(allfold_backend backend, struct error *error);
