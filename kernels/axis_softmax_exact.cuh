/* Softmax along rows at level exact, of elements that are f32 or become f32. Terms are integers (fold/exact_exponential.h), of which a thread has one sum for
   each bin. The maximum is known first, and so is the bin of its term. */
#pragma once

#include "kernels/axis_softmax_whole.cuh"

/* What a thread keeps of its vectors in shared memory: of 16 bits exponentials, two places of 16 bytes a vector; of f32 that which costs most of the second pass, one,
   while elements stay in registers. Behind its places one is left free, so that the next thread uses other banks. */
template <int vectors> struct shared_terms {
    static constexpr int places = 2 * vectors + 1;
    uint4 *own;
    __device__ __forceinline__ shared_terms(unsigned char *bytes, const uint4 *) : own((uint4 *)bytes + threadIdx.x * places) {}
    __device__ __forceinline__ eight_terms operator[](int i) const
    {
        eight_terms terms;
        const uint4 halves[2] = {own[2 * i], own[2 * i + 1]};
        memcpy(&terms, halves, sizeof terms);
        return terms;
    }
    __device__ __forceinline__ void set(int i, const float *of) const
    {
        uint4 halves[2];
        memcpy(halves, of, sizeof halves);
        own[2 * i] = halves[0], own[2 * i + 1] = halves[1];
    }
};
template <int vectors> struct shared_lows {
    static constexpr int places = vectors + 1;
    uint4 *own;
    const uint4 *x;
    __device__ __forceinline__ shared_lows(unsigned char *bytes, const uint4 *x) : own((uint4 *)bytes + threadIdx.x * places), x(x) {}
    __device__ __forceinline__ struct vector_with_low operator[](int i) const { return {x[i], own[i]}; }
    __device__ __forceinline__ void set(int i, const float *of) const { memcpy(&own[i], of, sizeof *own); }
};

/* The terms of elements that are not reduced in f32, or whose maximum is not; and M of that maximum, shifted to its place in its bin. */
template <class Fold, class Element> static __device__ __noinline__ typename Fold::partial far_terms(const typename Element::stored *x, int count, float max)
{
    typename Fold::partial partial = partial_of_max<Fold>((double)max);
#pragma unroll 1
    for (int i = 0; i < count; i++)
        exp_bins_add(&partial, (double)Element::load(x[i]), true);
    return partial;
}
static __device__ __noinline__ uint128 far_integer(float max)
{
    int64_t place;
    const uint128 integer = exp_integer_any((double)max, true, &place);
    return integer << (place & 31);
}
static __device__ __forceinline__ uint128 shifted_integer(float max)
{
    uint32_t place;
    const uint128 integer = exp_integer_f32(max, &place);
    return integer << (place & 31);
}

/* A vector of which only elements first ... end - 1 are there: others become the maximum. Returns how many. whole: all or none are there, and first is 0. */
template <class Element, bool whole> static __device__ __forceinline__ int32_t vector_fill(uint4 *x, int32_t first, int32_t end, float max)
{
    typedef typename Element::stored stored;
    constexpr int32_t count = Element::per_vector;
    if ((whole || first <= 0) && end >= count)
        return 0;
    stored fill, elements[count];
    int32_t missing = 0;
    round_to(&fill, max);
#pragma unroll
    for (int32_t i = 0; i < count; i++) {
        const bool here = !whole && i >= first && i < end;
        elements[i] = here ? vector_element<stored>(*x, i) : fill;
        missing += !here;
    }
    *x = vector_of(elements);
    return missing;
}

/* Powers of two by which a row's reference may be above that of a part. */
constexpr int32_t MOST_ABOVE = 24;
/* Powers of two below a maximum's of the floor of 16 bits. Rounded to bf16 it may be one lower: exponentials are normal numbers (from -150 on), and results below half of
   bf16's least (-134). */
constexpr int32_t SHORT_RANGE = 145;

/* A row. keeps: in shared memory, what the second pass would compute again. missing_costs: a vector that is missing would have terms. */
template <class Element_, bool logarithm, bool keeps> struct bins_row {
    typedef Element_ element;
    typedef softmax_fold<element, logarithm, true> Fold;
    typedef struct bin_sums part;
    typedef float real;
    static constexpr bool is_logarithm = logarithm, is_short = !logarithm && sizeof(typename element::stored) == 2;
    static constexpr bool heavy = true, missing_costs = true, in_shared = keeps && !logarithm, keeps_low = in_shared && !is_short;
    typedef std::conditional_t<logarithm, whole_results_log<element>, std::conditional_t<is_short, whole_results_short<element>, whole_results<element>>> results;
    static constexpr bool two_blocks = in_shared && is_short; /* a multiprocessor has shared memory for no more that keep longer rows */
    typedef uint4 kept;
    template <int vectors> using shared_kept = std::conditional_t<is_short, shared_terms<vectors>, shared_lows<vectors>>;
    static constexpr int short_blocks = row_blocks(true, sizeof(typename element::value)), least = results_least(logarithm, sizeof(typename element::value));
    template <int vectors> static __device__ __forceinline__ void take_max(float *max, const uint4 *x) { vectors_extreme<element, vectors>(max, x); }
    struct terms {
        /* 64 bits have room for the terms of one take() of up to 32 elements: all that a thread has of f32 rows that are short or of which something is kept. */
        typedef std::conditional_t<keeps && sizeof(typename element::stored) == 4, uint64_t, uint128> sum_type;
        float max;
        sum_type sums[EXP_BINS];
        uint32_t top;      /* the maximum's place as a float's bits, of which the last 5 are left out */
        bool usual, near;  /* the maximum is such that elements are reduced in f32; that exponentials relative to its reference follow from terms by shifts */
        int32_t most_above; /* what is kept serves a row whose reference is above that of this maximum by so many powers of two at most */
        explicit __device__ __forceinline__ terms(float max) : max(max)
        {
            const float magnitude = fabsf(max);
            usual = magnitude <= EXP_LIMIT - EXP_BINS_RANGE;
            near = magnitude <= (is_short ? 64 : EXP_WHOLE); /* `unit` is a normal number */
            most_above = magnitude <= EXP_WHOLE ? MOST_ABOVE : -1;
            top = place_of(max) >> 5;
#pragma unroll
            for (int i = 0; i < EXP_BINS; i++)
                sums[i] = 0;
        }
        /* The reference, if it is not the maximum. */
        __device__ __forceinline__ uint32_t whole() const { return place_of(max) - f32_bits(EXP_PLACE_F32); }
        /* k: of in_shared a shared_kept, and elements of x below the floor are raised to it; else vectors, which may be x. used: only so many elements have terms; others
           equal one of these. */
        template <int vectors, class Kept> __device__ __forceinline__ void take(uint4 *x, Kept k, uint32_t used = vectors * element::per_vector)
        {
            constexpr int count = vectors * element::per_vector;
            static_assert(sizeof(sum_type) > 8 || count <= 32, "room for all terms");
            float smallest = INFINITY;
            vectors_extreme<element, vectors, true>(&smallest, x);
            if constexpr (!in_shared)
#pragma unroll
                for (int i = 0; i < vectors; i++)
                    k[i] = x[i];
            const uint32_t range = !usual ? 0 : smallest >= -EXP_LIMIT ? top - (place_of(smallest) >> 5) : (uint32_t)EXP_BINS;
            constexpr int few = count <= 32 ? 2 : 1; /* of more elements, the code for two bins would take longer to load than it saves */
            const bool one_bin = warp_all(range == 0), few_bins = few > 1 && warp_all(range < few); /* all threads alike: else a warp would do one after the other */
            if (usual) {
                if (one_bin) {
                    add<vectors, 1>(x, k, used);
                } else if (few_bins) {
                    add<vectors, few>(x, k, used);
                } else {
                    raise_to_floor<vectors>(x, smallest);
                    add<vectors, EXP_BINS>(x, k, used);
                }
            } else if (is_finite((double)max)) {
                typename element::stored copy[count]; /* in memory */
                memcpy(copy, x, sizeof copy);
                const typename Fold::partial far = far_terms<Fold, element>(copy, (int)used, max);
#pragma unroll
                for (int i = 0; i < EXP_BINS; i++)
                    sums[i] += (sum_type)far.sums[i];
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
        /* The same of vectors of which vector i has elements first - i step ... end - i step - 1. Others would be terms in other bins: they become the maximum, whose
           terms are then taken away again. */
        template <int vectors, bool whole, class Kept> __device__ __forceinline__ void take_part(uint4 *x, Kept k, int32_t first, int32_t end, int32_t step)
        {
            uint32_t missing = 0;
            if ((!whole && first > 0) || end < (vectors - 1) * step + element::per_vector)
#pragma unroll
                for (int i = 0; i < vectors; i++)
                    missing += vector_fill<element, whole>(&x[i], first - i * step, end - i * step, max);
            take<vectors>(x, k);
            if (missing != 0 && is_finite((double)max))
                sums[0] -= (sum_type)(usual ? shifted_integer(max) : far_integer(max)) * missing;
        }
        /* What is below has no term, and, if the maximum is near, a result of 0. */
        __device__ __forceinline__ float floor() const
        {
            return near ? (float)((int32_t)whole() - (is_short ? SHORT_RANGE : SOFTMAX_RANGE_F32)) * EXP_LN2_F32 : -(float)EXP_LIMIT;
        }
        /* Adds the terms of elements. bins: one or two, in which all are; or EXP_BINS: what is in none of them has no term. */
        template <int vectors, int bins, class Kept> __device__ __forceinline__ void add(const uint4 *x, const Kept &k, uint32_t used)
        {
            constexpr int per_vector = element::per_vector, count = vectors * per_vector;
            /* of exponentials relative to the reference, times 2^SOFTMAX_UP_F32: what is multiplied by the place's power of two, if the maximum is near */
            const float unit = is_short ? f32_from_bits((127u + SOFTMAX_UP_F32 - EXP_OFFSET - EXP_FRACTION_F32 - whole()) << 23) : 0.0f, one = unit * (1 << EXP_FRACTION_F32);
            uint64_t here[bins] = {};
            float kept[count];
#pragma unroll
            for (int i = 0; i < count; i++) {
                if ((uint32_t)i < used) {
                    uint32_t place;
                    float low;
                    const float value = vectors_value<element>(x[i / per_vector], i);
                    const float fraction = exp_fraction_low_f32(in_shared || bins <= 2 ? value : fmaxf(value, floor()), &place, &low);
                    const uint32_t integer = (1u << EXP_FRACTION_F32) + (uint32_t)nearest_i32(fraction), below = top - (place >> 5);
#pragma unroll
                    for (int bin = 0; bin < bins; bin++)
                        here[bin] = exp_add_shifted(here[bin], integer, place, (bin == 0 && bins <= 2) || below == (uint32_t)bin);
                    kept[i] = is_short ? f32_from_bits(f32_bits(fmaf(fraction, unit, one)) + (place << 23)) : low;
                    if constexpr (in_shared)
                        if (i % per_vector == per_vector - 1)
                            k.set(i / per_vector, kept + i / per_vector * per_vector);
                }
                if (i % 32 == 31 || i == count - 1) { /* 64 bits have room for so many terms */
                    if (bins == 2)
                        here[0] -= here[bins - 1];
#pragma unroll
                    for (int bin = 0; bin < bins; bin++) {
                        sums[bin] += here[bin];
                        here[bin] = 0;
                    }
                }
            }
        }
        /* Makes what is below the floor equal it. If any is not far above, what is kept would be out of range for a larger maximum. */
        template <int vectors> __device__ __forceinline__ void raise_to_floor(uint4 *x, float smallest)
        {
            if constexpr (keeps_low)
                if (smallest < floor() + MOST_ABOVE * EXP_LN2_F32)
                    most_above = near ? 0 : -1;
            if constexpr (in_shared)
                if (smallest < floor())
                    vectors_raise<element, vectors>(x, floor());
        }
        __device__ __forceinline__ struct bin_sums own() const { return bin_sums_of(sums, (double)max, max != max); }
        /* Whether what is kept serves the row, of whose blocks another may have the maximum: then it is brought to the row's reference. */
        __device__ __forceinline__ bool keeps_for(results *row) const
        {
            const int32_t above = (int32_t)(f32_bits(EXP_SHIFT_F32) - f32_bits(row->anchor.shift) - whole());
            if (most_above < 0 || row->anchor.base != 0.0f || above > most_above)
                return false;
            if constexpr (is_short)
                row->scale *= f32_from_bits((uint32_t)(127 - above) << 23);
            return true;
        }
        /* The first warp gets that of its block. */
        template <int threads> __device__ __forceinline__ struct bin_sums of_block(uint32_t warps) const
        {
            __shared__ struct bin_sums parts[threads / 32];
            struct bin_sums sum = own();
            lanes_add(&sum, 32);
            if (threadIdx.x % 32 == 0)
                parts[threadIdx.x / 32] = sum;
            __syncthreads();
            return threadIdx.x < 32 ? parts_sum(parts, warps) : sum;
        }
        template <int threads> __device__ __forceinline__ results results_of_group(const struct row_members &members) const
        {
            return group_results<bins_row, threads, least>(own(), members);
        }
        template <int threads> __device__ __forceinline__ results results_of_blocks(const struct row_messages &others) const
        {
            return group_results<bins_row, threads, threads>(own(), row_members_of(threads, threads), &others);
        }
    };
    /* All threads get the results of a row that the first warp has the sums of; own: those of this block. */
    static __device__ __forceinline__ results results_shared(const struct bin_sums &row)
    {
        __shared__ results of;
        if (threadIdx.x < 32) {
            const results found = results_of_row<bins_row>(row);
            if (threadIdx.x == 0)
                of = found;
        }
        __syncthreads();
        return of;
    }
    static __device__ __forceinline__ results results_of_block(const struct bin_sums &own) { return results_shared(own); }
    template <int threads> static __device__ __forceinline__ results results_of_part(const struct bin_sums &own, const struct row_claims &)
    {
        return results_shared(own);
    }
    template <int threads> static __device__ __forceinline__ results results_of_part(const struct bin_sums &own, const struct row_cluster<struct bin_sums> &others)
    {
        others.tell(own);
        return results_shared(threadIdx.x < 32 ? cluster_sum(others) : own);
    }
    /* Of the parts of a row's blocks. */
    static __device__ __forceinline__ struct bin_sums cluster_sum(const struct row_cluster<struct bin_sums> &others)
    {
        struct bin_sums part = {};
        part.max = -INFINITY;
        if (threadIdx.x < others.count)
            part = others.told(threadIdx.x);
        float max = (float)part.max;
        warp_share(&max, take_larger());
        const bool same = part.max == -INFINITY || (fabs(part.max) <= EXP_LIMIT && place_of((float)part.max) >> 5 == place_of(max) >> 5);
        if (__ballot_sync(0xffffffffu, !same) == 0) {
            part.max = (double)max;
            lanes_add(&part, 32);
            return part;
        }
        typename Fold::partial partial = partial_of_part<Fold>(part);
        warp_combine<Fold>(&partial);
        return bin_sums_of(partial.sums, partial.max, partial.nan != 0);
    }
    static __device__ __forceinline__ uint32_t place_of(float x)
    {
        uint32_t place;
        float n;
        exp_placed_f32(x, &place, &n);
        return place;
    }
};

/* short_rows: in registers. */
template <class Element, bool short_rows>
using quick_row_of = std::conditional_t<short_rows && sizeof(typename Element::stored) == 2, quick_row<Element, kept_terms<Element>, kept_results<Element>>,
                                        quick_row<Element, row_terms<Element>, row_results<Element>>>;
template <class Element, bool logarithm, bool exact, bool short_rows>
using row_of = std::conditional_t<sizeof(typename Element::value) == 8, whole_row<Element, logarithm, exact || logarithm>,
                                  std::conditional_t<exact, bins_row<Element, logarithm, short_rows>,
                                                     std::conditional_t<logarithm, quick_row<Element, log_terms<Element>, log_results<Element>>,
                                                                        quick_row_of<Element, short_rows>>>>;
