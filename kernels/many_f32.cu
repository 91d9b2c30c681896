/* The kernels for several arrays of f16, bf16 and f32. */
#define EXACT_TOTAL_DIGITS 48
#define FAMILY f32
#include "kernels/many_family.cuh"
