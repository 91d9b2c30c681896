/* Turns errors of CUDA's calls into errors of ours. */
#include "device/cuda/cuda.h"

#include <stdarg.h>
#include <stdio.h>

allfold_status cuda_check(const struct cuda_device *cuda, cudaError_t code, struct error *error, const char *format, ...)
{
    char what[160];
    va_list arguments;
    if (code == cudaSuccess)
        return ALLFOLD_OK;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    cudaGetLastError(); /* reported here: the next call must not find it */
    return error_set(error, code == cudaErrorMemoryAllocation ? ALLFOLD_NO_MEMORY : ALLFOLD_DEVICE_ERROR,
                     "CUDA device %d: %s: %s (%s)", cuda->index, what, cudaGetErrorString(code), cudaGetErrorName(code));
}

allfold_status cuda_use(const struct cuda_device *cuda, struct error *error)
{
    return cuda_check(cuda, cudaSetDevice(cuda->index), error, "cudaSetDevice");
}
