/* The fold kernels of int8, int16 and int32. */
#define FAMILY i32
#include "kernels/fold_family.cuh"
