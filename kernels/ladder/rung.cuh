/* What a rung is. A classic rung is one kernel that makes of n elements one partial a block, and is launched level by
   level (levels.cu): over the input, then over its own partials, until one is left. Every rung file holds such a
   kernel,

       template <class Op, int block> __global__ void NAME_kernel(const T *x, uint64_t n, T *partials)

   where Op is sum_of<T> or max_of<T>, block the number of threads (a power of two from 64 to 1024, equal to
   blockDim.x), n may be anything from 0 on, and x is never written; and a line LADDER_RUNG. */
#pragma once

#include "measure/launch.cuh"

#include <math.h>
#include <stdint.h>

#include <type_traits>

/* The folds: the same type as the element throughout, as the tutorials have it. A sum of int32 wraps around, modulo
   2^32, and does so in unsigned arithmetic, in which wrapping is defined. NaN is not considered here; see docs/numerics.md. */
template <class T> struct sum_of {
    typedef T value;
    static __host__ __device__ __forceinline__ T identity() { return 0; }
    static __host__ __device__ __forceinline__ T combine(T a, T b)
    {
        if constexpr (std::is_same<T, int32_t>::value)
            return (T)((uint32_t)a + (uint32_t)b);
        else
            return a + b;
    }
};
template <class T> struct max_of {
    typedef T value;
    static __host__ __device__ __forceinline__ T identity()
    {
        if constexpr (std::is_same<T, int32_t>::value)
            return INT32_MIN;
        else
            return -(T)INFINITY;
    }
    static __host__ __device__ __forceinline__ T combine(T a, T b) { return a < b ? b : a; }
};

/* One launch: blocks of `block` threads make `blocks` partials at `to` from n elements at `from`. */
struct level {
    const void *from;
    uint64_t n;
    void *to;
    void *work; /* n elements, for rungs that work in global memory */
    unsigned int blocks;
    int block;
    cudaStream_t stream;
};

/* A rung at one fold, type and block size. */
struct rung_variant {
    cudaError_t (*start)(const struct level *level);
    const void *kernel; /* for the runtime's questions; NULL where it is not ours to know */
};

enum { RUNG_FOLDS = 2, RUNG_TYPES = 3, RUNG_BLOCKS = 5 }; /* sum, max; int32, f32, f64; 64 to 1024 threads */
enum {
    RUNG_IN_GLOBAL = 1,      /* keeps its intermediate values in global memory, level.work */
    RUNG_ONE_WAVE = 2,       /* no more blocks than the GPU holds at one time; they take `elements` a thread or more */
    RUNG_DYNAMIC_SHARED = 4, /* an element of shared memory a thread, given at launch */
};

struct rung_driver;
struct rung {
    const struct rung_driver *driver; /* how it runs (levels.h); NULL: level by level */
    int elements;               /* that a thread takes in one level */
    unsigned int flags;
    struct rung_variant variants[RUNG_FOLDS][RUNG_TYPES][RUNG_BLOCKS];
};

static inline unsigned int rung_level_blocks(const struct rung *rung, uint64_t n, int block, uint64_t wave)
{
    const uint64_t each = (uint64_t)block * (uint64_t)rung->elements;
    uint64_t blocks = n / each + (n % each != 0);
    if ((rung->flags & RUNG_ONE_WAVE) != 0 && blocks > wave)
        blocks = wave;
    return (unsigned int)(blocks > 0 ? blocks : 1);
}

template <class T>
static inline cudaError_t rung_start(void (*kernel)(const T *, uint64_t, T *), const struct level *level,
                                     size_t shared_bytes)
{
    return gpu_launch(kernel, level->blocks, level->block, shared_bytes, level->stream, (const T *)level->from,
                         level->n, (T *)level->to);
}
template <class T>
static inline cudaError_t rung_start(void (*kernel)(const T *, uint64_t, T *, T *), const struct level *level,
                                     size_t shared_bytes)
{
    return gpu_launch(kernel, level->blocks, level->block, shared_bytes, level->stream, (const T *)level->from,
                         level->n, (T *)level->to, (T *)level->work);
}

/* The end of a rung's file: NAME_kernel for all folds, types and block sizes. */
#define LADDER_RUNG(NAME, ELEMENTS, FLAGS)                                                                          \
    template <class Op, int block> static cudaError_t NAME##_start(const struct level *level)                       \
    {                                                                                                               \
        const bool dynamic = ((FLAGS) & RUNG_DYNAMIC_SHARED) != 0;                                                  \
        return rung_start(NAME##_kernel<Op, block>, level, dynamic ? block * sizeof(typename Op::value) : 0);       \
    }                                                                                                               \
    extern const struct rung rung_##NAME;                                                                           \
    const struct rung rung_##NAME = {nullptr, ELEMENTS, FLAGS, {LADDER_OPS(sum_of, NAME), LADDER_OPS(max_of, NAME)}};
#define LADDER_OPS(OP, NAME) \
    {LADDER_BLOCKS(OP<int32_t>, NAME), LADDER_BLOCKS(OP<float>, NAME), LADDER_BLOCKS(OP<double>, NAME)}
#define LADDER_BLOCKS(OP, NAME)                                                                        \
    {LADDER_BLOCK(OP, NAME, 64), LADDER_BLOCK(OP, NAME, 128), LADDER_BLOCK(OP, NAME, 256),             \
     LADDER_BLOCK(OP, NAME, 512), LADDER_BLOCK(OP, NAME, 1024)}
#define LADDER_BLOCK(OP, NAME, BLOCK) {NAME##_start<OP, BLOCK>, (const void *)NAME##_kernel<OP, BLOCK>}
