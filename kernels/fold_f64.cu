/* The fold kernels of f64. */
#define FAMILY f64
#include "kernels/fold_family.cuh"
