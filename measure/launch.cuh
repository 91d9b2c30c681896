/* Launches measured kernels. */
#pragma once

#include <cuda_runtime.h>

/* Starts work on the stream. The caller times this work from its beginning to its end. */
typedef cudaError_t gpu_start(void *argument, cudaStream_t stream);
struct gpu_work {
    gpu_start *start;
    void *argument;
};

template <class... Parameters, class... Arguments>
static inline cudaError_t gpu_launch(void (*kernel)(Parameters...), unsigned int blocks, int threads,
                                     size_t shared_bytes, cudaStream_t stream, Arguments... arguments)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3((unsigned int)threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}
