/* The fold kernels of int8, int16 and int32. */
#define FAMILY i32
#define TYPES(X) X(INT8) X(INT16) X(INT32)
#include "kernels/fold_family.cuh"
