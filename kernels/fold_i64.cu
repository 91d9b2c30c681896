/* The fold kernels of int64. */
#define FAMILY i64
#include "kernels/fold_family.cuh"
