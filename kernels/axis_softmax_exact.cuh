/* Softmax along rows at level exact, of elements that are f32 or become f32. Terms are integers (fold/exact_exponential.h), of which a thread has one sum for
   each bin. The maximum is known first, and so is the bin of its term. */
#pragma once

#include "kernels/axis_softmax_whole.cuh"

/* What a thread keeps of its vectors in its block's shared memory: of 16 bits exponentials, 32 bytes a vector, its halves apart; of f32 that which costs most of
   the second pass, while elements stay in registers. */
template <int threads> struct shared_terms {
    uint4 *first; /* this thread's */
    __device__ __forceinline__ shared_terms(uint4 *first, const uint4 *) : first(first) {}
    __device__ __forceinline__ eight_terms operator[](int i) const
    {
        eight_terms terms;
        const uint4 halves[2] = {first[2 * i * threads], first[(2 * i + 1) * threads]};
        memcpy(&terms, halves, sizeof terms);
        return terms;
    }
    __device__ __forceinline__ void set(int i, const float *of) const
    {
        uint4 halves[2];
        memcpy(halves, of, sizeof halves);
        first[2 * i * threads] = halves[0], first[(2 * i + 1) * threads] = halves[1];
    }
    __device__ __forceinline__ shared_terms from(int i) const { return {first + 2 * i * threads, nullptr}; }
};
template <int threads> struct shared_lows {
    uint4 *first;
    const uint4 *x;
    __device__ __forceinline__ shared_lows(uint4 *first, const uint4 *x) : first(first), x(x) {}
    __device__ __forceinline__ struct vector_with_low operator[](int i) const { return {x[i], first[i * threads]}; }
    __device__ __forceinline__ void set(int i, const float *of) const { memcpy(&first[i * threads], of, sizeof *first); }
    __device__ __forceinline__ shared_lows from(int i) const { return {first + i * threads, x + i}; }
};
/* What is kept of the vectors from i on. */
template <class Kept> static __device__ __forceinline__ Kept kept_from(const Kept &kept, int i) { return kept.from(i); }
static __device__ __forceinline__ uint4 *kept_from(uint4 *kept, int i) { return kept + i; }

/* The terms of elements that are not reduced in f32, or whose maximum is not. */
template <class Fold, class Element> static __device__ __noinline__ typename Fold::partial far_terms(const uint4 *x, int count, float max)
{
    typename Fold::partial partial = partial_of_max<Fold>((double)max);
#pragma unroll 1
    for (int i = 0; i < count; i++)
        exp_bins_add(&partial, (double)Element::load(((const typename Element::stored *)x)[i]), true);
    return partial;
}

/* keeps: in shared memory, what the second pass would compute again. */
template <class Element_, bool logarithm, bool keeps> struct exact_row {
    typedef Element_ element;
    typedef softmax_fold<element, logarithm, true> Fold;
    typedef struct bin_sums part;
    typedef float real;
    static constexpr bool is_logarithm = logarithm, is_short = !logarithm && sizeof(typename element::stored) == 2;
    static constexpr bool heavy = true, missing_costs = true, in_shared = keeps && !logarithm, keeps_low = in_shared && !is_short;
    typedef std::conditional_t<logarithm, whole_results_log<element>, std::conditional_t<is_short, whole_results_short<element>, whole_results<element>>> results;
    typedef uint4 kept;
    template <int threads> using shared_kept = std::conditional_t<is_short, shared_terms<threads>, shared_lows<threads>>;
    static constexpr size_t kept_bytes = element::per_vector * sizeof(float); /* of a vector, in shared memory */
    static constexpr int short_blocks = row_blocks(true, sizeof(typename element::value));
    template <int vectors> static __device__ __forceinline__ void take_max(float *max, const uint4 *x) { vectors_extreme<element, vectors>(max, x); }
    struct terms {
        float max;
        uint128 sums[EXP_BINS];
        uint32_t top;      /* the maximum's place as a float's bits, of which the last 5 are left out */
        bool usual, near;  /* the maximum: its elements are reduced in f32; and relative to 0 */
        bool lows;         /* what is kept of f32 is of use */
        explicit __device__ __forceinline__ terms(float max) : max(max)
        {
            const float magnitude = fabsf(max);
            uint32_t place;
            float n;
            exp_placed_f32(max, &place, &n);
            usual = magnitude <= EXP_LIMIT - EXP_BINS_RANGE;
            lows = near = magnitude <= EXP_WHOLE;
            top = place >> 5;
#pragma unroll
            for (int i = 0; i < EXP_BINS; i++)
                sums[i] = 0;
        }
        /* The reference, if the maximum is near. */
        __device__ __forceinline__ uint32_t whole() const
        {
            uint32_t place;
            float n;
            exp_placed_f32(max, &place, &n);
            return place - f32_bits(EXP_PLACE_F32);
        }
        /* k: of in_shared a shared_kept; else vectors, which may be x. */
        template <int vectors, class Kept> __device__ __forceinline__ void take(const uint4 *x, Kept k)
        {
            constexpr int count = vectors * element::per_vector;
            float smallest = INFINITY;
            vectors_extreme<element, vectors, true>(&smallest, x);
            if constexpr (!in_shared)
#pragma unroll
                for (int i = 0; i < vectors; i++)
                    k[i] = x[i];
            if (usual) {
                uint32_t place;
                float n;
                exp_placed_f32(smallest, &place, &n);
                const int32_t range = smallest >= -EXP_LIMIT ? (int32_t)(top - (place >> 5)) : (int32_t)EXP_BINS;
                if (range <= 0)
                    add<vectors, 1>(x, smallest, k);
                else if (range == 1)
                    add<vectors, 2>(x, smallest, k);
                else
                    add<vectors, EXP_BINS>(x, smallest, k);
            } else if (is_finite((double)max)) {
                uint4 copy[vectors]; /* in memory */
                memcpy(copy, x, sizeof copy);
                const typename Fold::partial far = far_terms<Fold, element>(copy, count, max);
#pragma unroll
                for (int i = 0; i < EXP_BINS; i++)
                    sums[i] += far.sums[i];
            }
            if constexpr (in_shared && is_short)
                if (!near) {
                    const struct exp_anchor_f32 anchor = exp_anchor_f32(is_finite((double)max) ? (double)max : 0.0, SOFTMAX_RANGE_F32);
#pragma unroll
                    for (int i = 0; i < vectors; i++) {
                        float terms[8];
#pragma unroll
                        for (int j = 0; j < 8; j++)
                            terms[j] = exp_short_f32(vectors_value<element>(x[i], j), &anchor);
                        k.set(i, terms);
                    }
                }
        }
        /* The same of the first `count` vectors. If any thread of the warp has fewer than all, they are taken one by one: what is missing is -inf, which
           would be a term in another bin. */
        template <int vectors, class Kept> __device__ __forceinline__ void take_some(const uint4 *x, Kept k, int count)
        {
            if (__ballot_sync(0xffffffffu, count < vectors) != 0) {
#pragma unroll
                for (int i = 0; i < vectors; i++)
                    if (i < count)
                        take<1>(x + i, kept_from(k, i));
                return;
            }
            take<vectors>(x, k);
        }
        /* Adds terms to the first `bins` bins; of one or two bins, all elements are in these. */
        template <int vectors, int bins, class Kept> __device__ __forceinline__ void add(const uint4 *x, float smallest, const Kept &k)
        {
            constexpr int per_vector = element::per_vector, count = vectors * per_vector;
            const uint32_t down = f32_bits(EXP_SHIFT_F32) - whole() - (EXP_OFFSET + EXP_FRACTION_F32 - SOFTMAX_UP_F32);
            /* what is below has no term, and, if the maximum is near, a result of 0 */
            const float floor = bins <= 2 ? 0.0f : near ? (float)((int32_t)whole() - SOFTMAX_RANGE_F32) * EXP_LN2_F32 : -(float)EXP_LIMIT;
            uint64_t here[bins] = {};
            float kept[count];
#pragma unroll
            for (int i = 0; i < count; i++) {
                uint32_t place;
                float low;
                const float value = vectors_value<element>(x[i / per_vector], i), fraction = exp_fraction_low_f32(bins <= 2 ? value : fmaxf(value, floor), &place, &low);
                const uint32_t integer = (1u << EXP_FRACTION_F32) + (uint32_t)nearest_i32(fraction), below = top - (place >> 5);
                here[0] = exp_add_shifted(here[0], integer, place, bins <= 2 || below == 0);
#pragma unroll
                for (int bin = 1; bin < bins; bin++)
                    here[bin] = exp_add_shifted(here[bin], integer, place, below == (uint32_t)bin);
                /* the exponential relative to the reference, times 2^SOFTMAX_UP_F32 */
                kept[i] = is_short ? f32_from_bits(f32_bits((float)(1 << EXP_FRACTION_F32) + fraction) + ((place + down) << 23)) : low;
                if constexpr (in_shared)
                    if (i % per_vector == per_vector - 1)
                        k.set(i / per_vector, kept + i / per_vector * per_vector);
            }
            lows &= bins <= 2 || smallest >= floor;
            sums[0] += bins == 2 ? here[0] - here[bins - 1] : here[0];
#pragma unroll
            for (int bin = 1; bin < bins; bin++)
                sums[bin] += here[bin];
        }
        __device__ __forceinline__ struct bin_sums own() const { return bin_sums_of(sums, (double)max, max != max); }
        /* Members of groups smaller than 8 each compute the constants, and need no barrier. */
        template <int threads> __device__ __forceinline__ results results_of_group(const struct row_members &members) const
        {
            return group_results<exact_row, threads, 8>(own(), members);
        }
        template <int threads> __device__ __forceinline__ results results_of_blocks(const struct row_messages &others) const
        {
            return group_results<exact_row, threads, threads>(own(), row_members_of(threads, threads), &others);
        }
    };
};

/* short_rows: in registers. */
template <class Element, bool short_rows>
using quick_row_of = std::conditional_t<short_rows && sizeof(typename Element::stored) == 2, quick_row<Element, kept_terms<Element>, kept_results<Element>>,
                                        quick_row<Element, row_terms<Element>, row_results<Element>>>;
template <class Element, bool logarithm, bool exact, bool short_rows>
using row_of = std::conditional_t<sizeof(typename Element::value) == 8, whole_row<Element, logarithm, exact || logarithm>,
                                  std::conditional_t<exact, exact_row<Element, logarithm, short_rows>,
                                                     std::conditional_t<logarithm, quick_row<Element, log_terms<Element>, log_results<Element>>,
                                                                        quick_row_of<Element, short_rows>>>>;
