/* The fold kernels of int64. */
#define FAMILY i64
#define TYPES(X) X(INT64)
#include "kernels/fold_family.cuh"
