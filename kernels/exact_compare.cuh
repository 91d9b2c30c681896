/* Comparisons, as the kernel of exact sums takes them: in the shape of its other monoids, and how it reads two arrays. Included by
   exact_monoid.cuh. */
#pragma once

#include "kernels/compare.cuh"
#include "kernels/fold.cuh"

/* Ordered data behind words: what a comparison counts and finds. */
struct exact_differences {
    typedef struct compare_ends type, partial; /* in the shape of fold_of */
    static constexpr bool scaled = false, exact = false, f32_terms = false, cheap = false;
    static __device__ __forceinline__ type identity() { return compare_ends_identity(); }
    static __device__ __forceinline__ void combine(type *a, const type *b) { compare_ends_combine(a, b); }
    template <class Thread> static __device__ __forceinline__ type of(const Thread &thread) { return thread.accumulator.ends; }
    template <int threads> static __device__ __forceinline__ void block_take(type *ends)
    {
        __syncthreads();
        block_combine<exact_differences, threads>(ends);
    }
};
struct exact_quick_differences : exact_differences {
    template <class Thread> static __device__ __forceinline__ type of(const Thread &thread)
    {
        const struct compare_rule *const rule = thread.aside->rule;
        const struct compare_quick &quick = thread.quick;
        const uint64_t nans = (uint64_t)quick.nan_a + quick.nan_b + (rule->equal_nan ? 0 : quick.nan_both);
        type ends = thread.aside->ends;
        ends.nan_a = quick.nan_a;
        ends.nan_b = quick.nan_b;
        ends.nan_both = quick.nan_both;
        ends.different = quick.different + nans;
        ends.outside = (rule->atol == 0.0 && rule->rtol == 0.0 ? quick.different : quick.outside) + nans;
        return ends;
    }
};

/* Comparisons: two sums, counts, and the largest differences. Threads add up integers by themselves. */
#define DEFINE_COMPARE(value_name, more)                                                                         \
    template <> struct exact_of<MONOID_compare, value_##value_name> {                                            \
        typedef value_##value_name value;                                                                        \
        struct partial {                                                                                         \
            compare_accumulator_##value_name accumulator;                                                        \
            struct exact_sink sinks[2];                                                                          \
            const struct compare_rule *rule;                                                                     \
        };                                                                                                       \
        static constexpr enum monoid monoid = MONOID_compare;                                                    \
        typedef compare_##value_name whole;                                                                      \
        typedef exact_differences ends;                                                                          \
        typedef exact_aside aside;                                                                               \
        static constexpr bool indexed = true, cheap = false;                                                     \
        static constexpr int operands = 2;                                                                       \
        typedef values_of<value, operands>::type values;                                                         \
        static constexpr enum cost cost = COST_COMPARE;                                                          \
        static constexpr int sum_words = compare_sum_words_##value_name, squares_words = compare_squares_words_##value_name; \
        static constexpr int words = sum_words + squares_words, bins = 0;                                        \
        static __device__ __forceinline__ bool carries(int i)                                                    \
        {                                                                                                        \
            return i < sum_words ? i < compare_sum_limbs_##value_name - 1                                        \
                                 : i - sum_words < compare_squares_limbs_##value_name - 1;                       \
        }                                                                                                        \
        static __device__ __forceinline__ void place(struct exact_sink *sinks, int64_t *at, uint32_t stride)     \
        {                                                                                                        \
            compare_sinks_##value_name(sinks, at, stride);                                                       \
            sinks[0].shared = sinks[1].shared = true;                                                            \
        }                                                                                                        \
        static __device__ __forceinline__ void start(partial *p, aside *to)                                      \
        {                                                                                                        \
            compare_start_##value_name(&p->accumulator);                                                         \
            p->rule = to->rule;                                                                                   \
        }                                                                                                        \
        static __device__ __forceinline__ void tile(partial *p, values x, uint32_t n, uint32_t each, uint64_t first, uint64_t gap) \
        {                                                                                                        \
            FOLD_UNROLL                                                                                          \
            for (uint32_t i = 0; i < n; i += each, first += gap)                                                 \
                compare_take_##value_name(&p->accumulator, p->sinks, arrays_from_##value_name(x, i), p->rule, each, first); \
        }                                                                                                        \
        static __device__ __forceinline__ void add(partial *p, struct exact_sink *sinks) { more }                \
    };
#define DEFINE_COMPARE_FLOAT(nothing, value_name)                                                                \
    DEFINE_COMPARE(value_name, (warp_windows_add(&p->accumulator.sum, compare_sum_windows_of_##value_name, &sinks[0]), \
                                warp_windows_add(&p->accumulator.squares, compare_squares_windows_of_##value_name, &sinks[1]));)
#define DEFINE_COMPARE_INTEGER(nothing, value_name) DEFINE_COMPARE(value_name, compare_flush_##value_name(&p->accumulator, sinks);)
DEFINE_COMPARE_FLOAT(, f64)
VALUES_INTEGER(DEFINE_COMPARE_INTEGER, )
#undef DEFINE_COMPARE_FLOAT
#undef DEFINE_COMPARE_INTEGER
#undef DEFINE_COMPARE

template <> struct exact_of<MONOID_compare, float> {
    typedef float value;
    struct partial {
        struct compare_quick quick;
        struct compare_aside *aside;
        struct exact_sink sinks[2];
    };
    static constexpr enum monoid monoid = MONOID_compare;
    typedef compare_f32 whole;
    typedef exact_quick_differences ends;
    typedef compare_aside aside;
    static constexpr bool indexed = true, cheap = false;
    static constexpr int operands = 2;
    typedef arrays_f32 values;
    static constexpr enum cost cost = COST_COMPARE;
    static constexpr int words = compare_sum_words_f32 + compare_squares_words_f32, bins = 0;
    static __device__ __forceinline__ bool carries(int i)
    {
        return i < compare_sum_words_f32 ? i < compare_sum_limbs_f32 - 1 : i - compare_sum_words_f32 < compare_squares_limbs_f32 - 1;
    }
    static __device__ __forceinline__ void place(struct exact_sink *sinks, int64_t *at, uint32_t stride)
    {
        compare_sinks_f32(sinks, at, stride);
        sinks[0].shared = sinks[1].shared = true;
    }
    /* All threads of the block call it. */
    static __device__ __forceinline__ void start(partial *p, aside *to)
    {
        if (threadIdx.x == 0)
            *block_limits() = compare_limits_of(to->rule);
        p->quick = {};
        p->quick.own.units = 1;
        p->aside = to;
        to->ends = compare_ends_identity();
        to->uses_sinks = false;
        to->sinks[0] = p->sinks[0];
        to->sinks[1] = p->sinks[1];
        __syncthreads();
    }
    static __device__ __forceinline__ void tile(partial *p, values x, uint32_t n, uint32_t each, uint64_t first, uint64_t gap)
    {
        if (compare_equal_f32(x, n))
            return;
        float both[2][COMPARE_TILE];
        FOLD_UNROLL
        for (uint32_t i = 0; i < n; i++) {
            both[0][i] = x.x[i];
            both[1][i] = x.y[i];
        }
        compare_take_tile(&p->quick, p->aside, {n, each, first, gap}, both[0], both[1]);
    }
    static __device__ __forceinline__ void add(partial *p, struct exact_sink *sinks)
    {
        struct exact_accumulator sums[2];
        windows_of(p->quick.windows, sums);
        p->sinks[0].ready = p->aside->uses_sinks;
        warp_windows_add(&sums[0], 1, &sinks[0]);
        warp_windows_add(&sums[1], 2, &sinks[1]);
    }
};

/* A thread's vector of both arrays in shared memory: one by one, with zeros behind the end, which are equal. */
template <class Element, int threads>
static __device__ __noinline__ void pair_fill(uint4 *place, array_pair<Element> x, uint64_t vector, uint64_t n)
{
    typename Element::stored a[Element::per_vector], b[Element::per_vector];
#pragma unroll
    for (int i = 0; i < Element::per_vector; i++) {
        const uint64_t index = vector * Element::per_vector + i;
        a[i] = index < n ? x.x[index] : typename Element::stored();
        b[i] = index < n ? x.y[index] : typename Element::stored();
    }
    place[0] = vector_of(a);
    place[threads] = vector_of(b);
}

/* Takes all pairs, a round of the grid after the other. Copies to shared memory are `stages` rounds ahead; each thread copies its own vectors, so
   none waits for another. */
template <class Exact, class Element, class plan>
static __device__ __forceinline__ void stages_take(typename Exact::partial *thread, array_pair<Element> x, uint64_t first, uint64_t n, uint4 *places)
{
    constexpr uint32_t stage_vectors = 2 * plan::block_vectors;
    const uint32_t step = gridDim.x * plan::block_vectors, start = blockIdx.x * plan::block_vectors + threadIdx.x, warp = start - threadIdx.x % 32;
    const uint64_t some = (n + Element::per_vector - 1) / Element::per_vector; /* vectors; those that are whole: */
    const uint64_t all = is_vector_aligned(x) && n / Element::per_vector > plan::block_vectors - plan::threads
                             ? n / Element::per_vector - (plan::block_vectors - plan::threads) : 0;
    const uint32_t rounds = warp < some ? (uint32_t)((some - warp + step - 1) / step) : 0; /* the same for all of a warp */
    const uint32_t whole = start < all ? (uint32_t)((all - start + step - 1) / step) : 0;
    const uint4 *from_x = (const uint4 *)x.x + start, *from_y = (const uint4 *)x.y + start;
    uint32_t stage = 0; /* the place of the next one */
    places += threadIdx.x;
    const auto copy = [&](uint32_t round) {
        uint4 *const place = places + stage;
        if (round < whole) {
#pragma unroll
            for (int i = 0; i < plan::vectors; i++) {
                copy_async(place + 2 * i * plan::threads, from_x + i * plan::threads);
                copy_async(place + (2 * i + 1) * plan::threads, from_y + i * plan::threads);
            }
            from_x += step;
            from_y += step;
        } else if (round < rounds) {
            for (int i = 0; i < plan::vectors; i++)
                pair_fill<Element, plan::threads>(place + 2 * i * plan::threads, x, start + (uint64_t)round * step + i * plan::threads, n);
        }
        copy_commit();
        stage = stage < (plan::stages - 1) * stage_vectors ? stage + stage_vectors : 0;
    };
#pragma unroll 1
    for (uint32_t round = 0; round < plan::stages; round++)
        copy(round);
#pragma unroll 1
    for (uint32_t round = 0; round < rounds; round++) {
        typename Element::value both[2][plan::vectors * Element::per_vector];
        copy_wait(plan::stages - 1);
#pragma unroll
        for (int i = 0; i < plan::vectors; i++) {
            const vector_pair pair = {places[stage + 2 * i * plan::threads], places[stage + (2 * i + 1) * plan::threads]};
#pragma unroll
            for (int j = 0; j < Element::per_vector; j++) {
                both[0][i * Element::per_vector + j] = vectors_value<Element>(pair.x, j);
                both[1][i * Element::per_vector + j] = vectors_value<Element>(pair.y, j);
            }
        }
        copy(round + plan::stages);
        const uint64_t index = first + (start + (uint64_t)round * step) * Element::per_vector;
        Exact::tile(thread, {both[0], both[1], NULL}, plan::vectors * Element::per_vector, Element::per_vector, index, plan::threads * Element::per_vector);
        __syncwarp(); /* lanes whose pairs differ would stay behind the others, for all further rounds */
    }
}
