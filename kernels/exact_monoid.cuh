/* Exact monoids as kernels take them: what a thread carries, how it takes a tile, and how the windows of a warp are added up. Included by
   exact.cuh, and by the kernels along an axis. */
#pragma once

#include "kernels/fold.cuh"

static __device__ __forceinline__ int64_t warp_sum(int64_t value)
{
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        value += (int64_t)__shfl_xor_sync(0xffffffffu, (unsigned long long)value, lanes);
    return value;
}

/* Adds the windows of a warp to the block's words. Windows of one exponent are added up first; usually all lanes have the same. */
static __device__ __forceinline__ void warp_windows_add(struct exact_accumulator *accumulator, int windows, const struct exact_sink *block)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int w = 0; w < windows; w++) {
        int32_t exponent;
        const int64_t value = exact_window_take(accumulator, w, &exponent);
        unsigned int left = __ballot_sync(0xffffffffu, value != 0);
#pragma unroll 1
        while (left != 0) {
            int leader = 0;
            while ((left >> leader & 1) == 0)
                leader++;
            const int32_t common = __shfl_sync(0xffffffffu, exponent, leader);
            const bool alike = value != 0 && exponent == common;
            const int64_t sum = warp_sum(alike ? value : 0);
            if (lane == 0)
                exact_add_integer(block, sum, common);
            left &= ~__ballot_sync(0xffffffffu, alike);
        }
    }
    if (__ballot_sync(0xffffffffu, accumulator->not_minus_zero) != 0 && lane == 0)
        exact_count(block, EXACT_NOT_MINUS_ZERO, 1);
}

/* What a thread keeps in memory, not in registers. */
struct exact_aside {
    const struct compare_rule *rule;
    uint32_t *most;
};

/* Ordered data behind words: none, or the extremes of stats; of comparisons: exact_compare.cuh. */
struct exact_no_ends {
    struct type {};
};
template <class Value> struct exact_extremes {
    typedef fold_of<MONOID_argmin, Value> least;
    typedef fold_of<MONOID_argmax, Value> most;
    struct type {
        typename least::partial min;
        typename most::partial max;
    };
    static __device__ __forceinline__ type identity() { return {least::identity(), most::identity()}; }
    static __device__ __forceinline__ void combine(type *a, const type *b)
    {
        least::combine(&a->min, &b->min);
        most::combine(&a->max, &b->max);
    }
    template <class Thread> static __device__ __forceinline__ type of(const Thread &thread)
    {
        return {thread.accumulator.min, thread.accumulator.max};
    }
    template <int threads> static __device__ __forceinline__ void block_take(type *ends)
    {
        __syncthreads();
        block_combine<least, threads>(&ends->min);
        __syncthreads();
        block_combine<most, threads>(&ends->max);
    }
};
/* An exact monoid at a value type, in the shape of fold_of: what a thread carries stands for the partial. carries: whether word
   i is a limb whose carry belongs to the next word. */
template <enum monoid monoid, class Value> struct exact_of;
#define DEFINE_EXACT_10(name, value_name)                                                                         \
    template <> struct exact_of<MONOID_##name, value_##value_name> {                                             \
        typedef value_##value_name value;                                                                        \
        struct partial {                                                                                         \
            struct exact_accumulator accumulator;                                                                \
            struct exact_sink sinks[1];                                                                          \
        };                                                                                                       \
        static constexpr enum monoid monoid = MONOID_##name;                                                     \
        typedef name##_##value_name whole;                                                                       \
        typedef exact_no_ends ends;                                                                              \
        typedef exact_aside aside;                                                                               \
        static constexpr bool indexed = false, cheap = false;                                                    \
        static constexpr int operands = monoid_facts[MONOID_##name].operands;                                    \
        typedef values_of<value, operands>::type values;                                                         \
        static constexpr enum cost cost = monoid_facts[MONOID_##name].cost;                                      \
        static constexpr int words = name##_words_##value_name, windows = name##_windows_of_##value_name;        \
        static constexpr int bins = name##_bins_##value_name;                                                    \
        static __device__ __forceinline__ bool carries(int i) { return i < name##_limbs_##value_name - 1; }      \
        static __device__ __forceinline__ void place(struct exact_sink *sinks, int64_t *at, uint32_t stride)     \
        {                                                                                                        \
            sinks[0] = exact_sink_of(at, stride, name##_limbs_##value_name, name##_lowest_##value_name);         \
            sinks[0].shared = true;                                                                              \
        }                                                                                                        \
        static __device__ __forceinline__ void start(partial *p, aside *)                                        \
        {                                                                                                        \
            name##_start_##value_name(&p->accumulator);                                                          \
        }                                                                                                        \
        static __device__ __forceinline__ void tile(partial *p, values x, uint32_t n, uint64_t)                  \
        {                                                                                                        \
            name##_take_##value_name(&p->accumulator, &p->sinks[0], x, n);                                       \
        }                                                                                                        \
        static __device__ __forceinline__ void finish(struct exact_accumulator *accumulator, struct exact_sink *sink) \
        {                                                                                                        \
            name##_finish_accumulator_##value_name(accumulator, sink);                                           \
        }                                                                                                        \
        static __device__ __forceinline__ void add(partial *p, struct exact_sink *sinks)                         \
        {                                                                                                        \
            warp_windows_add(&p->accumulator, windows, &sinks[0]);                                               \
        }                                                                                                        \
    };
#define DEFINE_EXACT_20 DEFINE_EXACT_10
#define DEFINE_EXACT_21(name, value_name) /* below */
/* stats: three sums, and the extremes. */
#define DEFINE_EXACT_11(name, value_name)                                                                         \
    template <> struct exact_of<MONOID_##name, value_##value_name> {                                             \
        typedef value_##value_name value;                                                                        \
        typedef exact_of<MONOID_sum_exact, value> sum;                                                           \
        typedef exact_of<MONOID_norm1_exact, value> norm1;                                                       \
        typedef exact_of<MONOID_norm2_exact, value> norm2;                                                       \
        struct partial {                                                                                         \
            name##_accumulator_##value_name accumulator;                                                         \
            struct exact_sink sinks[3];                                                                          \
        };                                                                                                       \
        static constexpr enum monoid monoid = MONOID_##name;                                                     \
        typedef name##_##value_name whole;                                                                       \
        typedef exact_extremes<value> ends;                                                                      \
        typedef exact_aside aside;                                                                               \
        static constexpr bool indexed = true, cheap = false;                                                     \
        static constexpr int operands = 1;                                                                       \
        static constexpr enum cost cost = monoid_facts[MONOID_##name].cost;                                      \
        static constexpr int words = sum::words + norm1::words + norm2::words, bins = 0;                         \
        static __device__ __forceinline__ bool carries(int i)                                                    \
        {                                                                                                        \
            return i < sum::words                  ? sum::carries(i)                                             \
                   : i < sum::words + norm1::words ? norm1::carries(i - sum::words)                              \
                                                   : norm2::carries(i - sum::words - norm1::words);              \
        }                                                                                                        \
        static __device__ __forceinline__ void place(struct exact_sink *sinks, int64_t *at, uint32_t stride)     \
        {                                                                                                        \
            name##_sinks_##value_name(sinks, at, stride);                                                        \
            sinks[0].shared = sinks[1].shared = sinks[2].shared = true;                                          \
        }                                                                                                        \
        static __device__ __forceinline__ void start(partial *p, aside *)                                        \
        {                                                                                                        \
            name##_start_##value_name(&p->accumulator);                                                          \
        }                                                                                                        \
        static __device__ __forceinline__ void tile(partial *p, const value *x, uint32_t n, uint64_t first)      \
        {                                                                                                        \
            name##_take_##value_name(&p->accumulator, p->sinks, x, n, first);                                    \
        }                                                                                                        \
        static __device__ __forceinline__ void add(partial *p, struct exact_sink *sinks)                         \
        {                                                                                                        \
            warp_windows_add(&p->accumulator.sum, sum::windows, &sinks[0]);                                      \
            warp_windows_add(&p->accumulator.norm1, norm1::windows, &sinks[1]);                                  \
            warp_windows_add(&p->accumulator.norm2, norm2::windows, &sinks[2]);                                  \
        }                                                                                                        \
    };
#include "kernels/exact_compare.cuh"

#define DEFINE_EXACTS(name, values, operands, indexed, ...) VALUES_##values(DEFINE_EXACT_##operands##indexed, name)
WORD_MONOIDS(DEFINE_EXACTS)
#undef DEFINE_EXACTS
#undef DEFINE_EXACT_10
#undef DEFINE_EXACT_11
#undef DEFINE_EXACT_20
#undef DEFINE_EXACT_21
