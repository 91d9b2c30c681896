/* The fold kernels of f16, bf16 and f32. */
#define FAMILY f32
#include "kernels/fold_family.cuh"
