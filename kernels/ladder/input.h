/* The ladder's input on the GPU, and what its .cu files share. */
#pragma once

extern "C" {
#include "base/base.h"
#include "fold/table.h"
#include "kernels/ladder/oracle.h"
}
#include "kernels/ladder/ladder.h"
#include "kernels/ladder/rung.cuh"
#include "measure/gpu.cuh"

/* Bytes behind an input, of values that spoil every sum (input.cu). */
#define LADDER_GUARD_BYTES ((size_t)64 << 10)
#define LADDER_POISON 0x7f /* of each byte: a huge number in each type */

/* n elements (numbers.h) in GPU_INPUT, and the guard behind them. */
allfold_status ladder_input(struct gpu *gpu, allfold_type type, uint64_t n, const void **x, struct error *error);
/* The same for f32 that are integers of `bits` bits (oracle.h, ladder_line_bits). */
allfold_status ladder_input_integers(struct gpu *gpu, int bits, uint64_t n, const float **x, struct error *error);
/* The same for the logits of softmax, f32. */
allfold_status ladder_input_logits(struct gpu *gpu, uint64_t n, const float **x, struct error *error);
/* How many elements of the input, or bytes of its guard, are not what they were made as. */
allfold_status ladder_input_changes(struct gpu *gpu, allfold_type type, uint64_t n, uint64_t *changes,
                                    struct error *error);
allfold_status ladder_input_integers_changes(struct gpu *gpu, int bits, uint64_t n, uint64_t *changes, struct error *error);
allfold_status ladder_input_logits_changes(struct gpu *gpu, uint64_t n, uint64_t *changes, struct error *error);

/* Overwrites what earlier runs left, so that it cannot be found again. */
allfold_status ladder_poison(struct gpu *gpu, struct error *error);
