/* The fold kernels of uint64. */
#define FAMILY u64
#define TYPES(X) X(UINT64)
#include "kernels/fold_family.cuh"
