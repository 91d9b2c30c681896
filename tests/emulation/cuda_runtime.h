/* The CUDA subset that kernels/ use, for the host: each thread of a block is a fiber (emulation.cpp). This folder comes
   first on the include path, and this header before every source, as nvcc does with the real one. Test code only.

   Device code sees __CUDA_ARCH__, so the emulated kernels take the branches that the GPU's take. What CUDA leaves
   undefined is a fault: the launch ends with cudaErrorLaunchFailure and emulation_fault() says what happened where. */
#pragma once

/* Before the macros, which are not for them. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <type_traits>

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __host__
#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
/* One block runs at a time, so each variable is there once. The thread's own storage gathers them all between two marks,
   where the emulation can fill, save and restore them; unseen by the compiler, hence `used`. In a function they are
   static without the word, which leaves room for `extern __shared__ unsigned char bytes[]`: of this one name. */
#define __shared__ thread_local __attribute__((used))

struct uint3 {
    unsigned int x, y, z;
};
struct dim3 {
    unsigned int x, y, z;
    constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
};
struct alignas(16) uint4 {
    unsigned int x, y, z, w;
};
static inline uint4 make_uint4(unsigned int x, unsigned int y, unsigned int z, unsigned int w) { return {x, y, z, w}; }
struct alignas(16) float4 {
    float x, y, z, w;
};

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

/* Waiting. Every wait knows where it stands: two barriers that threads of one block reach are not the same one. */
struct emulation_site {
    const char *file;
    int line;
};
void emulation_barrier(emulation_site site);
/* In a loop that waits for another block: lets the others run first. */
void emulation_pause(emulation_site site);
/* Waits for the lanes of mask. Gives source's value, or, for EMULATION_VOTE, the mask of lanes whose value is not 0. */
constexpr int EMULATION_VOTE = -1;
uint64_t emulation_warp(unsigned int mask, uint64_t value, int source, emulation_site site);

#define EMULATION_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

static inline void __syncthreads(EMULATION_SITE) { emulation_barrier({file, line}); }
static inline void __syncwarp(unsigned int mask = 0xffffffffu, EMULATION_SITE)
{
    emulation_warp(mask, 0, EMULATION_VOTE, {file, line});
}
static inline unsigned int __ballot_sync(unsigned int mask, int predicate, EMULATION_SITE)
{
    return (unsigned int)emulation_warp(mask, predicate != 0, EMULATION_VOTE, {file, line});
}
static inline int __popc(unsigned int x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
/* In shuffled order words arrive some time later, one before another as it happens, as relaxed stores of a GPU may; before
   the thread's fence, and before the launch ends. Two to one address keep their order. */
void emulation_store(uint64_t *to, uint64_t word);
void emulation_fence(void);
static inline void __threadfence() { emulation_fence(); }
static inline void __threadfence_block() {}
static inline void __threadfence_system() { emulation_fence(); }
/* In shuffled order a copy of 16 bytes arrives at once, or not before its thread waits for the group that it is committed in. The sanitizer
   sees it here. */
void emulation_copy_later(void *to, const void *from);
void emulation_copy_commit(void);
void emulation_copy_wait(int pending); /* for all but the last groups; 0: for all copies */
static inline void emulation_copy(uint4 *to, const uint4 *from)
{
    const volatile uint4 *const both[2] = {to, from};
    for (const volatile uint4 *at : both)
        (void)at->x, (void)at->w;
    emulation_copy_later(to, from);
}

static inline int emulation_lane()
{
    return (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}
template <class T> static inline T emulation_shuffle(unsigned int mask, T value, int source, emulation_site site)
{
    static_assert(sizeof value == 4 || sizeof value == 8, "shuffles move 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = emulation_warp(mask, bits, source, site);
    memcpy(&value, &bits, sizeof value);
    return value;
}
template <class T>
static inline T __shfl_sync(unsigned int mask, T value, int source, int width = 32, EMULATION_SITE)
{
    const int lane = emulation_lane();
    return emulation_shuffle(mask, value, lane / width * width + (source & (width - 1)), {file, line});
}
/* A source outside the segment of `width` lanes is the lane itself. */
template <class T>
static inline T __shfl_down_sync(unsigned int mask, T value, unsigned int delta, int width = 32, EMULATION_SITE)
{
    const int lane = emulation_lane(), source = lane + (int)delta;
    return emulation_shuffle(mask, value, source / width == lane / width ? source : lane, {file, line});
}
template <class T>
static inline T __shfl_up_sync(unsigned int mask, T value, unsigned int delta, int width = 32, EMULATION_SITE)
{
    const int lane = emulation_lane(), source = lane - (int)delta;
    return emulation_shuffle(mask, value, source >= lane / width * width ? source : lane, {file, line});
}
template <class T>
static inline T __shfl_xor_sync(unsigned int mask, T value, int lanes, int width = 32, EMULATION_SITE)
{
    const int lane = emulation_lane(), source = lane ^ lanes;
    return emulation_shuffle(mask, value, source / width <= lane / width ? source : lane, {file, line});
}

/* Memory: hints mean nothing here, alignment does. (Compiled with -fno-strict-aliasing.) */
void emulation_unaligned(const void *at, size_t bytes); /* does not return to the kernel */
template <class T> static inline T *emulation_at(T *at)
{
    if ((uintptr_t)at % sizeof *at != 0)
        emulation_unaligned(at, sizeof *at);
    return at;
}
template <class T> static inline T __ldg(const T *from) { return *emulation_at(from); }
template <class T> static inline T __ldca(const T *from) { return *emulation_at(from); }
template <class T> static inline T __ldcg(const T *from) { return *emulation_at(from); }
template <class T> static inline T __ldcs(const T *from) { return *emulation_at(from); }
template <class T> static inline T __ldlu(const T *from) { return *emulation_at(from); }
template <class T> static inline void __stcg(T *to, T value) { *emulation_at(to) = value; }
template <class T> static inline void __stcs(T *to, T value) { *emulation_at(to) = value; }
template <class T> static inline void __stwt(T *to, T value) { *emulation_at(to) = value; }

template <class T> static inline T atomicAdd(T *at, T value)
{
    const T old = *at;
    *at += value;
    return old;
}
template <class T> static inline T atomicMax(T *at, T value)
{
    const T old = *at;
    *at = value > old ? value : old;
    return old;
}
template <class T> static inline T atomicOr(T *at, T value)
{
    const T old = *at;
    *at = old | value;
    return old;
}
template <class T> static inline T atomicAnd(T *at, T value)
{
    const T old = *at;
    *at = old & value;
    return old;
}
static inline unsigned int atomicInc(unsigned int *at, unsigned int limit)
{
    const unsigned int old = *at;
    *at = old >= limit ? 0 : old + 1;
    return old;
}

/* The host's side. */
enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorInvalidConfiguration = 9,
    cudaErrorNoKernelImageForDevice = 209,
    cudaErrorCooperativeLaunchTooLarge = 720,
    cudaErrorNotSupported = 801,
    cudaErrorLaunchFailure = 719
};
typedef struct emulation_stream *cudaStream_t;
/* All blocks of a launch run at one time here. */
enum cudaLaunchAttributeID {
    cudaLaunchAttributeCooperative = 2,
    cudaLaunchAttributeClusterDimension = 4,
    cudaLaunchAttributeProgrammaticStreamSerialization = 6
};
struct cudaLaunchAttribute {
    cudaLaunchAttributeID id;
    union {
        int cooperative;
        int programmaticStreamSerializationAllowed;
        struct {
            unsigned int x, y, z;
        } clusterDim;
    } val;
};
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute *attrs;
    unsigned int numAttrs;
};

cudaError_t emulation_launch(const cudaLaunchConfig_t *config, void (*body)(void *), void *arguments);
extern "C" cudaError_t cudaGetLastError(); /* the stand-in for the runtime takes it from here, too */

/* A launch is over when it returns. */
template <class... Parameters, class... Arguments>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                                             const Arguments &...arguments)
{
    auto body = [&] { kernel(static_cast<Parameters>(arguments)...); };
    return emulation_launch(config, [](void *call) { (*static_cast<decltype(body) *>(call))(); }, &body);
}

/* For kernels_check: every kernel is there. */
struct cudaFuncAttributes {
    int maxThreadsPerBlock, numRegs, ptxVersion;
    size_t sharedSizeBytes, localSizeBytes;
};
template <class Kernel> static inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, Kernel *)
{
    *attributes = {1024, 32, 0, 0, 0};
    return cudaSuccess;
}

#include "cuda_host.h"
