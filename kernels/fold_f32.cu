/* The fold kernels of f32. */
#define FAMILY f32
#define TYPES(X) X(F32)
#include "kernels/fold_family.cuh"
