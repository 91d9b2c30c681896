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

/* 0, 1, ... tickets - 1, then 0 again: ready for the next launch. What the caller wrote before is seen by who takes a later
   ticket (release), and what holders of earlier tickets wrote is seen after (acquire). */
static __device__ __forceinline__ unsigned int ticket_take(unsigned int *ticket, unsigned int tickets)
{
#ifdef __NVCC__
    unsigned int taken;
    asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(taken) : "l"(ticket), "r"(tickets - 1) : "memory");
#else
    __threadfence();
    const unsigned int taken = atomicInc(ticket, tickets - 1);
    __threadfence();
#endif
    return taken;
}

#endif
