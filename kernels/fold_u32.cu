/* The fold kernels of uint8, uint16 and uint32. */
#define FAMILY u32
#include "kernels/fold_family.cuh"
