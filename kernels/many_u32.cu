/* The kernels for several arrays of uint8, uint16, uint32 and bool. */
#define EXACT_TOTAL_DIGITS 48
#define FAMILY u32
#include "kernels/many_family.cuh"
