/* The kernels along an axis of uint8, uint16, uint32 and bool. */
#define EXACT_TOTAL_DIGITS 48
#define FAMILY u32
#include "kernels/axis_family.cuh"
