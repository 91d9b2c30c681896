/* The kernels along an axis of int64. */
#define EXACT_TOTAL_DIGITS 48
#define FAMILY i64
#include "kernels/axis_family.cuh"
