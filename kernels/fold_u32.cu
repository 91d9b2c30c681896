/* The fold kernels of uint8, uint16, uint32 and bool. */
#define FAMILY u32
#define TYPES(X) X(UINT8) X(UINT16) X(UINT32) X(BOOL)
#include "kernels/fold_family.cuh"
