/* The kernels' inline PTX, and beside each instruction what it means, for other compilers: tests run the kernels on the host. */
#pragma once

#include <cuda_runtime.h>

#include <unistd.h>

/* Reads memory that nothing writes while the kernel runs, and that this kernel reads once. It is not kept in the first-level cache, but
   in the second-level one, for another kernel. */
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

/* The largest number of the warp's lanes. All lanes call it. */
static __device__ __forceinline__ uint32_t lanes_max(uint32_t x)
{
#if defined(__NVCC__) && __CUDA_ARCH__ >= 800
    return __reduce_max_sync(0xffffffffu, x);
#else
    for (int lanes = 1; lanes < 32; lanes *= 2) {
        const uint32_t other = __shfl_xor_sync(0xffffffffu, x, lanes);
        x = other > x ? other : x;
    }
    return x;
#endif
}

/* x 2^places; from 32 places on, 0. */
static __device__ __forceinline__ uint32_t shifted_left(uint32_t x, uint32_t places)
{
#ifdef __NVCC__
    asm("shl.b32 %0, %0, %1;" : "+r"(x) : "r"(places));
    return x;
#else
    return places < 32 ? x << places : 0;
#endif
}

/* One of two, in registers: of several in an array a compiler makes memory. */
static __device__ __forceinline__ uint32_t selected(bool first, uint32_t a, uint32_t b)
{
#ifdef __NVCC__
    uint32_t found;
    asm("{\n\t.reg .pred first;\n\tsetp.ne.u32 first, %1, 0;\n\tselp.b32 %0, %2, %3, first;\n\t}" : "=r"(found) : "r"((uint32_t)first), "r"(a), "r"(b));
    return found;
#else
    return first ? a : b;
#endif
}

/* Of both halves of words, which are numbers of 16 bits: the larger, or the smaller, of a sum, modulo 2^16, and a third. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 && CUDART_VERSION >= 12000
static __device__ __forceinline__ uint32_t halves_sum_larger(uint32_t a, uint32_t b, uint32_t c) { return __viaddmax_u16x2(a, b, c); }
static __device__ __forceinline__ uint32_t halves_sum_smaller(uint32_t a, uint32_t b, uint32_t c) { return __viaddmin_u16x2(a, b, c); }
#else
static __device__ __forceinline__ uint32_t halves_sum(uint32_t a, uint32_t b) { return ((a + b) & 0xffff) | ((a >> 16) + (b >> 16)) << 16; }
static __device__ __forceinline__ uint32_t halves_sum_larger(uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t sum = halves_sum(a, b);
    return ((sum & 0xffff) > (c & 0xffff) ? sum & 0xffff : c & 0xffff) | (sum >> 16 > c >> 16 ? sum >> 16 : c >> 16) << 16;
}
static __device__ __forceinline__ uint32_t halves_sum_smaller(uint32_t a, uint32_t b, uint32_t c)
{
    const uint32_t sum = halves_sum(a, b);
    return ((sum & 0xffff) < (c & 0xffff) ? sum & 0xffff : c & 0xffff) | (sum >> 16 < c >> 16 ? sum >> 16 : c >> 16) << 16;
}
#endif
static __device__ __forceinline__ uint32_t halves_larger(uint32_t a, uint32_t b) { return halves_sum_larger(a, 0, b); }
/* Both halves the same. */
template <uint32_t half> constexpr uint32_t halves = (half & 0xffff) << 16 | (half & 0xffff);

/* Two words of 64 bits, aligned to 16 bytes. Other blocks and the host see each word as a whole, the two in any order. */
static __device__ __forceinline__ void store_words(uint64_t *to, uint64_t first, uint64_t second)
{
#ifdef __NVCC__
    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" : : "l"(to), "l"(first), "l"(second) : "memory");
#else
    emulation_store(to, first);
    emulation_store(to + 1, second);
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

/* Copies 16 bytes from global to shared memory in the background. Copies are committed in groups; copy_wait returns when all
   groups of this thread but the last `pending` (at most 7) have arrived; 0: all copies. Before Ampere, at once. */
static __device__ __forceinline__ void copy_async(uint4 *shared, const uint4 *global)
{
#if defined(__NVCC__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :
                 : "r"((unsigned int)__cvta_generic_to_shared(shared)), "l"(global)
                 : "memory");
#elif defined(__NVCC__)
    *shared = __ldg(global);
#else
    emulation_copy(emulation_at(shared), emulation_at(global));
#endif
}
/* The same, and the second-level cache gets what lies beside it, of 256 bytes: other blocks copy that. */
static __device__ __forceinline__ void copy_async_wide(uint4 *shared, const uint4 *global)
{
#if defined(__NVCC__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16;" : : "r"((unsigned int)__cvta_generic_to_shared(shared)), "l"(global) : "memory");
#else
    copy_async(shared, global);
#endif
}

/* The same, with what the second-level cache is to do with the line. Ignored before Ampere. */
enum cache_use { CACHE_KEEP, CACHE_DROP };
static __device__ __forceinline__ uint64_t cache_policy(enum cache_use use)
{
    uint64_t policy = 0;
#if defined(__NVCC__) && __CUDA_ARCH__ >= 800
    if (use == CACHE_KEEP)
        asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    else
        asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
#else
    (void)use;
#endif
    return policy;
}
static __device__ __forceinline__ void copy_async(uint4 *shared, const uint4 *global, uint64_t policy)
{
#if defined(__NVCC__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;"
                 :
                 : "r"((unsigned int)__cvta_generic_to_shared(shared)), "l"(global), "l"(policy)
                 : "memory");
#else
    (void)policy;
    copy_async(shared, global);
#endif
}
static __device__ __forceinline__ void copy_commit()
{
#if defined(__NVCC__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" : : : "memory");
#elif !defined(__NVCC__)
    emulation_copy_commit();
#endif
}
static __device__ __forceinline__ void copy_wait(int pending)
{
#if defined(__NVCC__) && __CUDA_ARCH__ >= 800
    switch (pending) {
#define CASE(n)                                             \
    case n:                                                 \
        asm volatile("cp.async.wait_group " #n ";" : : : "memory"); \
        break;
        CASE(1)
        CASE(2)
        CASE(3)
        CASE(4)
        CASE(5)
        CASE(6)
        CASE(7)
#undef CASE
    default:
        asm volatile("cp.async.wait_all;" : : : "memory");
        break;
    }
#elif defined(__NVCC__)
    (void)pending;
#else
    emulation_copy_wait(pending);
#endif
}

/* In a kernel that may start while the one before it in the stream ends (programmatic dependent launch, since compute capability
   9.0): waits until that kernel has ended and all that it wrote is visible. */
static __device__ __forceinline__ void wait_for_last_kernel()
{
#if defined(__NVCC__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" : : : "memory");
#endif
}
/* The next kernel may start when all blocks have called this or have ended. */
static __device__ __forceinline__ void let_next_kernel_start()
{
#if defined(__NVCC__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" : : : "memory");
#endif
}

/* The larger halves of two pairs of f16 or bf16, or the smaller; or NaN. */
#if defined(__NVCC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HAVE_EXTREME_HALVES 1
template <bool is_f16, bool smaller> static __device__ __forceinline__ uint32_t extreme_halves(uint32_t a, uint32_t b)
{
    uint32_t found;
    if constexpr (is_f16 && smaller)
        asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(found) : "r"(a), "r"(b));
    else if constexpr (is_f16)
        asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(found) : "r"(a), "r"(b));
    else if constexpr (smaller)
        asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(found) : "r"(a), "r"(b));
    else
        asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(found) : "r"(a), "r"(b));
    return found;
}
#endif

#if defined(__NVCC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HAVE_WARP_REDUCTIONS 1
/* The largest of a warp's numbers, or NaN, which has no sign: by integers of the same order. */
static __device__ __forceinline__ float warp_largest(float x)
{
    const int32_t bits = __float_as_int(x);
    const int32_t key = (int32_t)__reduce_max_sync(0xffffffffu, (uint32_t)(bits ^ (bits >> 31 | INT32_MIN)));
    return __int_as_float(key ^ (~key >> 31 | INT32_MIN));
}
/* The sum of a warp's numbers, below 2^69: in three parts, of which 32 fit 32 bits. */
static __device__ __forceinline__ unsigned __int128 warp_sum(uint64_t x)
{
    const uint32_t low = __reduce_add_sync(0xffffffffu, (uint32_t)x & 0x3fffff), middle = __reduce_add_sync(0xffffffffu, (uint32_t)(x >> 22) & 0x1fffff);
    const uint32_t high = __reduce_add_sync(0xffffffffu, (uint32_t)(x >> 43));
    return ((unsigned __int128)high << 43) + (((uint64_t)middle << 22) + low);
}
#endif

/* A clock of nanoseconds. */
static __device__ __forceinline__ uint64_t clock_nanoseconds()
{
#ifdef __NVCC__
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#else
    static uint64_t now;
    return now += 1000000;
#endif
}

/* Called in loops that poll for messages of other blocks. */
#ifdef __NVCC__
static __device__ __forceinline__ void wait_for_others() {}
#else
static inline void wait_for_others(EMULATION_SITE) { emulation_pause({file, line}); }
#endif

/* Called in loops that poll for messages of the host, which may come late. */
#ifdef __NVCC__
static __device__ __forceinline__ void wait_for_host() { __nanosleep(200); }
#else
static inline void wait_for_host() { usleep(20); }
#endif

/* Shared memory by its address, which the compiler does not put together again for each access. */
#ifdef __NVCC__
typedef uint32_t shared_address;
static __device__ __forceinline__ shared_address address_of(const void *shared) { return (shared_address)__cvta_generic_to_shared(shared); }
template <class T> static __device__ __forceinline__ void store_shared(shared_address to, T x)
{
    if constexpr (sizeof x == 8)
        asm volatile("st.shared.u64 [%0], %1;" : : "r"(to), "l"((uint64_t)x) : "memory");
    else if constexpr (sizeof x == 4)
        asm volatile("st.shared.u32 [%0], %1;" : : "r"(to), "r"((uint32_t)x) : "memory");
    else if constexpr (sizeof x == 2)
        asm volatile("st.shared.u16 [%0], %1;" : : "r"(to), "h"((uint16_t)x) : "memory");
    else
        asm volatile("st.shared.u8 [%0], %1;" : : "r"(to), "r"((uint32_t)x) : "memory");
}
/* Adds, and does not wait for it; adds, and returns what was there. */
static __device__ __forceinline__ void add_shared(shared_address to, uint32_t x) { asm volatile("red.shared.add.u32 [%0], %1;" : : "r"(to), "r"(x) : "memory"); }
static __device__ __forceinline__ uint32_t fetch_add_shared(shared_address to, uint32_t x)
{
    uint32_t old;
    asm volatile("atom.shared.add.u32 %0, [%1], %2;" : "=r"(old) : "r"(to), "r"(x) : "memory");
    return old;
}
#else
typedef char *shared_address;
static inline shared_address address_of(const void *shared) { return (char *)(uintptr_t)shared; }
template <class T> static inline void store_shared(shared_address to, T x) { *emulation_at((T *)(void *)to) = x; }
static inline void add_shared(shared_address to, uint32_t x) { atomicAdd((uint32_t *)(void *)to, x); }
static inline uint32_t fetch_add_shared(shared_address to, uint32_t x) { return atomicAdd((uint32_t *)(void *)to, x); }
#endif

/* Since compute capability 9.0, of blocks that are a cluster, or of one block: barriers in shared memory that count the bytes which arrive there in the
   background. A phase begins with none and ends when as many have arrived as one thread said that it expects. */
#if defined(__NVCC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define HAVE_CLUSTERS 1
typedef uint64_t byte_barrier;
/* Others see it after cluster_barrier. */
static __device__ __forceinline__ void barrier_begin(byte_barrier *barrier)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" : : "r"(address_of(barrier)) : "memory");
}
static __device__ __forceinline__ void barrier_expect(byte_barrier *barrier, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" : : "r"(address_of(barrier)), "r"(bytes) : "memory");
}
/* Until a phase has ended; phases are counted from 0. It is the current one or the one before it. */
static __device__ __forceinline__ void barrier_wait(byte_barrier *barrier, uint32_t phase)
{
    uint32_t ended;
    do
        asm volatile("{\n\t.reg .pred ended;\n\t"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ended, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, ended;\n\t}"
                     : "=r"(ended)
                     : "r"(address_of(barrier)), "r"(phase & 1)
                     : "memory");
    while (!ended);
}
/* Copies bytes, a multiple of 16, from global memory, where they are read once. One thread calls it. */
static __device__ __forceinline__ void copy_bulk(void *shared, const void *global, uint32_t bytes, byte_barrier *barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
                 :
                 : "r"(address_of(shared)), "l"(global), "r"(bytes), "r"(address_of(barrier)), "l"(cache_policy(CACHE_DROP))
                 : "memory");
}
/* All threads of all blocks of the cluster call it. */
static __device__ __forceinline__ void cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" : : : "memory");
}
static __device__ __forceinline__ shared_address shared_of_peer(const void *shared, uint32_t rank)
{
    shared_address there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address_of(shared)), "r"(rank));
    return there;
}
/* Sends 16 bytes, or 8, to the variable of the same name in the shared memory of a block of the cluster, and tells the barrier there. */
static __device__ __forceinline__ void peer_store(void *shared, const uint64_t words[2], byte_barrier *barrier, uint32_t rank)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];"
                 :
                 : "r"(shared_of_peer(shared, rank)), "l"(words[0]), "l"(words[1]), "r"(shared_of_peer(barrier, rank))
                 : "memory");
}
static __device__ __forceinline__ void peer_store(void *shared, uint64_t word, byte_barrier *barrier, uint32_t rank)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];"
                 :
                 : "r"(shared_of_peer(shared, rank)), "l"(word), "r"(shared_of_peer(barrier, rank))
                 : "memory");
}
#endif
