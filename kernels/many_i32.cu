/* The kernels for several arrays of int8, int16 and int32. */
#define EXACT_TOTAL_DIGITS 48
#define FAMILY i32
#include "kernels/many_family.cuh"
