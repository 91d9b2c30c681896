/* The kernels along an axis of f64. */
#define FAMILY f64
#include "kernels/axis_family.cuh"
