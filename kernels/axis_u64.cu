/* The kernels along an axis of uint64. */
#define EXACT_TOTAL_DIGITS 48
#define FAMILY u64
#include "kernels/axis_family.cuh"
