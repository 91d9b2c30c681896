/* The kernels along an axis of int8, int16 and int32. */
#define EXACT_TOTAL_DIGITS 48
#define FAMILY i32
#include "kernels/axis_family.cuh"
