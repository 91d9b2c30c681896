/* What needs words that CUDA C++ lacks: the kernels' inline PTX, and beside each what it means, for other compilers (tests
   run the kernels on the host). */
#ifndef ALLFOLD_PTX_CUH
#define ALLFOLD_PTX_CUH

#include <cuda_runtime.h>

/* Memory that no one writes while the kernel runs and that is read once: past the first-level cache, but kept in the
   second, where a second pass may find it. */
static __device__ __forceinline__ uint4 load_read_only(const void *x)
{
#ifdef __NVCC__
    uint4 vector;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(vector.x), "=r"(vector.y), "=r"(vector.z), "=r"(vector.w)
        : "l"(x));
    return vector;
#else
    return __ldg((const uint4 *)x);
#endif
}

/* Two words of 64 bits, each of which other blocks and the host see whole, at some time; aligned to 16 bytes. */
static __device__ __forceinline__ void store_words(uint64_t *to, uint64_t first, uint64_t second)
{
#ifdef __NVCC__
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" : : "l"(to), "l"(first), "l"(second) : "memory");
#else
    to[0] = first;
    to[1] = second;
#endif
}
static __device__ __forceinline__ void load_words(const uint64_t *from, uint64_t words[2])
{
#ifdef __NVCC__
    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(words[0]), "=l"(words[1]) : "l"(from) : "memory");
#else
    words[0] = from[0];
    words[1] = from[1];
#endif
}

/* In a loop that waits for other blocks. */
#ifdef __NVCC__
static __device__ __forceinline__ void wait_for_others() {}
#else
static inline void wait_for_others(EMULATION_SITE) { emulation_pause({file, line}); }
#endif

#endif
