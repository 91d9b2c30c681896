/* The fold kernels of bf16. */
#define FAMILY bf16
#define TYPES(X) X(BF16)
#include "kernels/fold_family.cuh"
