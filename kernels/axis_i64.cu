/* The kernels along an axis of int64. */
#define FAMILY i64
#include "kernels/axis_family.cuh"
