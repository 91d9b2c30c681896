/* What the ladder asks the CUDA runtime for beside launches, on the host: memory is the host's own, all work is over when it
   is started, and a kernel needs 32 registers. Included by cuda_runtime.h. Test code only. */
#pragma once

typedef struct emulation_event *cudaEvent_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDefault = 4 };
enum cudaDeviceAttr { cudaDevAttrL2CacheSize = 38, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9,
    cudaFuncAttributeNonPortableClusterSizeAllowed = 14
};
enum {
    cudaSharedmemCarveoutMaxShared = 100,
    EMULATION_SHARED_BYTES = 96 << 10,
    EMULATION_SHARED_BLOCK_BYTES = 48 << 10,
    EMULATION_CACHE_BYTES = 128 << 10
};

struct alignas(16) int4 {
    int x, y, z, w;
};

static inline const char *cudaGetErrorString(cudaError_t) { return "a fault of the emulation"; }
static inline const char *cudaGetErrorName(cudaError_t) { return "emulation"; }
static inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
static inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t)
{
    memset(to, value, bytes);
    return cudaSuccess;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}
static inline cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int)
{
    *value = attribute == cudaDevAttrL2CacheSize ? EMULATION_CACHE_BYTES : EMULATION_SHARED_BLOCK_BYTES;
    return cudaSuccess;
}
static inline cudaError_t cudaFuncSetAttribute(const void *, cudaFuncAttribute, int) { return cudaSuccess; }
static inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *, int threads,
                                                                        size_t dynamic)
{
    const int by_threads = 2048 / threads, by_shared = (int)(EMULATION_SHARED_BYTES / (dynamic + 1024));
    *blocks = by_threads < by_shared ? by_threads : by_shared;
    return cudaSuccess;
}
/* No block is of a cluster here. */
static inline cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, const void *, const cudaLaunchConfig_t *)
{
    *clusters = 0;
    return cudaSuccess;
}
