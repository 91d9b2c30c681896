/* The fold kernels of f64. */
#define FAMILY f64
#define TYPES(X) X(F64)
#include "kernels/fold_family.cuh"
