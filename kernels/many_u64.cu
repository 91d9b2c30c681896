/* The kernels for several arrays of uint64. */
#define EXACT_TOTAL_DIGITS 48
#define FAMILY u64
#include "kernels/many_family.cuh"
