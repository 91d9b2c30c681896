/* The kernels for several arrays of int64. */
#define EXACT_TOTAL_DIGITS 48
#define FAMILY i64
#include "kernels/many_family.cuh"
