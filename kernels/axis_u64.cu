/* The kernels along an axis of uint64. */
#define FAMILY u64
#include "kernels/axis_family.cuh"
