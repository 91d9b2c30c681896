/* Draws the elements of a generator into host memory. */
#pragma once

#include "base/draw.h"

/* Makes a generator of elements of that type ready. */
void draw_prepare(const struct generator *generator, allfold_type type, struct draw *draw);

/* Elements of that range of indices; `elements` is aligned to their size. */
void draw_elements(const struct draw *draw, struct range range, void *elements);

/* The same, by draw_loops.c as it is compiled for each instruction set. */
typedef void draw_loop(const struct draw *draw, struct range range, void *elements);
draw_loop draw_base, draw_avx2, draw_avx512;
