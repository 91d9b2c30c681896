/* The fold kernels of f16. */
#define FAMILY f16
#define TYPES(X) X(F16)
#include "kernels/fold_family.cuh"
