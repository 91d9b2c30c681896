/* The kernels for several arrays of f64. */
#define FAMILY f64
#include "kernels/many_family.cuh"
