/* The CUDA functions that the sweep lets fail. tests/faults/local.mk makes the linker's --wrap options of this list, and
   tests/faults/test_calls.py its cases. */
#pragma once

#define CUDA_CALLS(X)            \
    X(cudaGetDeviceCount)        \
    X(cudaSetDevice)             \
    X(cudaDeviceGetAttribute)    \
    X(cudaMemGetInfo)            \
    X(cudaGetDeviceProperties)   \
    X(cudaDeviceGetPCIBusId)     \
    X(cudaMalloc)                \
    X(cudaFree)                  \
    X(cudaHostAlloc)             \
    X(cudaFreeHost)              \
    X(cudaHostGetDevicePointer)  \
    X(cudaMemsetAsync)           \
    X(cudaStreamCreateWithFlags) \
    X(cudaStreamDestroy)         \
    X(cudaEventCreateWithFlags)  \
    X(cudaEventDestroy)          \
    X(cudaEventRecord)           \
    X(cudaStreamWaitEvent)       \
    X(cudaMemcpyAsync)           \
    X(cudaStreamSynchronize)     \
    X(cudaPointerGetAttributes)  \
    X(cudaFuncGetAttributes)     \
    X(cudaLaunchKernelExC)
