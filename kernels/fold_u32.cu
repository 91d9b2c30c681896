/* The fold kernels of uint8, uint16, uint32 and bool. */
#define FAMILY u32
#include "kernels/fold_family.cuh"
