/* The fold kernels of uint64. */
#define FAMILY u64
#include "kernels/fold_family.cuh"
