/* Log-probabilities and sums of exponentials at level fast: what a thread has found of a row, and what becomes of it. */
#pragma once

#include "kernels/found.cuh"

/* The sums are relative to exp(max). */
struct row_logits : row_largest {
    double sum, weights;
};

/* Partials: sums of exponentials alone, or all that log-probabilities need. */
template <bool weighted> struct fast_partial {
    typedef sumexp_quick_f32 type;
    static __device__ __forceinline__ type of(const struct row_logits &row, double max, uint64_t) { return {max, {row.sum, 0.0}}; }
    static __device__ __forceinline__ void combine(type *a, type *b) { sumexp_quick_combine_f32(a, b); }
};
template <> struct fast_partial<true> {
    typedef struct logits type;
    static __device__ __forceinline__ type of(const struct row_logits &row, double max, uint64_t index)
    {
        return {max, row.sum, row.weights, index, MARK_NONE};
    }
    static __device__ __forceinline__ void raise(type *partial, double max)
    {
        if (partial->max == max)
            return;
        const double distance = max - partial->max, factor = is_finite(distance) ? (double)exp2_short(fmaxf((float)distance * -0x1.715476p0f, -200.0f)) : 0.0;
        partial->weighted = factor > 0.0 ? factor * fma(distance, partial->sum, partial->weighted) : 0.0;
        partial->sum *= factor;
        partial->max = max;
    }
    /* As logits_combine, but the factors are a GPU's own exp2. */
    static __device__ __forceinline__ void combine(type *a, type *b)
    {
        const double max = a->max > b->max ? a->max : b->max;
        logits_index(&a->index, a->sum != a->sum, a->max, b->index, b->sum != b->sum, b->max);
        raise(a, max);
        raise(b, max);
        a->sum += b->sum;
        a->weighted += b->weighted;
    }
};

/* Elements of 16 bits, `least` in place of smaller ones. */
template <class Element> static __device__ __forceinline__ uint4 vector_at_least(const uint4 &x, float least)
{
#ifdef HAVE_EXTREME_HALVES
    const uint32_t both = round_two<Element>(least, least);
    const auto at_least = [both](uint32_t two) { return extreme_halves<Element::type == ALLFOLD_F16, false>(two, both); };
    return make_uint4(at_least(x.x), at_least(x.y), at_least(x.z), at_least(x.w));
#else
    float y[8];
    for (int i = 0; i < 8; i++)
        y[i] = fmaxf(Element::load(vector_element<typename Element::stored>(x, i)), least);
    return vector_rounded<Element>(y);
#endif
}

/* What a thread has of a row. Its sums are relative to the reference of `from`, an element that no other is `far` above: a power of two, as in
   fold/exponential.h, or, if there are weights, exp(from), so that `from` has the weight 0. What is above it then has a negative one; that
   cancels little, as neither of the two has nearly all of the probability. half: terms are those of sumexp_half (fold/sumexp.h). */
template <class Element, bool weighted, int vectors, bool half> struct fast_row : row_logits {
    typedef typename Element::stored stored;
    static constexpr int count = vectors * Element::per_vector;
    static constexpr bool is_short = sizeof(stored) == 2, ends_at_nan = half;
    static constexpr float far = weighted || half ? 2.0f : 32.0f;
    float from;
    struct exp_anchor_f32 anchor;

    static __device__ __forceinline__ float element(const uint4 *x, int i)
    {
        return Element::load(vector_element<stored>(x[i / Element::per_vector], i % Element::per_vector));
    }
    /* As exp_anchor_f32. */
    __device__ __forceinline__ void anchor_to(float to)
    {
        const bool near = !weighted && fabsf(to) <= EXP_WHOLE;
        const float whole = near ? fmaf(to, 0x1.715476p0f, EXP_SHIFT_F32) - EXP_SHIFT_F32 : 0.0f;
        from = to;
        anchor.base = near || fabsf(to) == INFINITY ? 0.0f : to;
        anchor.least = (whole - SOFTMAX_RANGE_F32) * EXP_LN2_F32;
        anchor.shift = EXP_SHIFT_F32 - whole;
    }
    template <class Partial> __device__ __forceinline__ void start(uint32_t first, Partial *, uint32_t)
    {
        max = -INFINITY;
        nan = false;
        best = first;
        sum = weights = 0.0;
        anchor_to(-INFINITY);
    }
    /* to: larger than from, or equal. */
    __device__ __forceinline__ void raise(float to)
    {
        const struct exp_anchor_f32 old = anchor;
        const float before = from;
        double factor = 0.0;
        if (before == to)
            return;
        anchor_to(to);
        if (before > -INFINITY && to < INFINITY) {
            if (old.base == anchor.base)
                factor = power_of_two((int)fmaxf(anchor.shift - old.shift, -1000.0f));
            else if (weighted)
                factor = (double)exp2_short(fmaxf((float)(((double)before - (double)to) * 0x1.71547652b82fep0), -200.0f));
            else
                factor = exp_factor((double)before, (double)to).high;
        }
        if (weighted)
            weights = factor > 0.0 ? factor * fma((double)to - (double)before, sum, weights) : 0.0;
        sum *= factor;
    }
    /* In place of what is smaller: of 16 bits and finite. */
    static __device__ __forceinline__ float least_of(float base)
    {
        return Element::type == ALLFOLD_F16 ? -0x1.ffcp15f : base < -0x1p99f ? -0x1.fep127f : -0x1p100f;
    }
    /* By a GPU's own exp2. The term of what is below `least` is 0, as that of `least` is; -inf times 0 would be NaN. low: `least` is no further below the base:
       the lowest numbers there are, beside which -inf and the padding must count nothing. */
    template <bool low> __device__ __forceinline__ void take_short_weighted(const uint4 *x)
    {
        const float least = least_of(anchor.base);
        float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f}, weighed[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int i = 0; i < count; i += Element::per_vector) {
            const uint4 vector = low ? x[i / Element::per_vector] : vector_at_least<Element>(x[i / Element::per_vector], least);
#pragma unroll
            for (int k = 0; k < Element::per_vector; k++) {
                const float distance = element(&vector, k) - anchor.base, above = low ? fmaxf(distance, -200.0f) : distance;
                const float term = exp2_short(above * 0x1.715476p0f);
                sums[k % 4] += term;
                weighed[k % 4] = fmaf(term, above, weighed[k % 4]);
            }
        }
        sum += (double)((sums[0] + sums[1]) + (sums[2] + sums[3]));
        weights -= (double)((weighed[0] + weighed[1]) + (weighed[2] + weighed[3]));
    }
    __device__ __forceinline__ void take_short(const uint4 *x)
    {
        double sums[2] = {0.0, 0.0};
#pragma unroll
        for (int i = 0; i < count; i += Element::per_vector) {
            const uint4 vector = vector_at_least<Element>(x[i / Element::per_vector], anchor.least + 16.0f /* may be rounded by half of that */);
#pragma unroll
            for (int k = 0; k < Element::per_vector; k++)
                sums[k % 2] += (double)exp_without_rest_f32(element(&vector, k), &anchor);
        }
        sum = fma(sums[0] + sums[1], power_of_two(-SOFTMAX_UP_F32), sum);
    }
    /* Four terms at a time, in two roundings. */
    template <bool near> __device__ __forceinline__ void take_half(const uint4 *x)
    {
        const float whole = EXP_SHIFT_F32 - anchor.shift;
#pragma unroll
        for (int i = 0; i < count; i += 4) {
            float terms[4];
#pragma unroll
            for (int k = 0; k < 4; k++)
                terms[k] = sumexp_half_term_f32(element(x, i + k), near ? 0.0f : anchor.base, whole, near);
            sum += (double)((terms[0] + terms[1]) + (terms[2] + terms[3]));
        }
    }
    __device__ __forceinline__ void take_any(const uint4 *x, const struct exp_anchor_f32 &anchor)
    {
        double sums[2] = {0.0, 0.0};
        float weighed[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int i = 0; i < count; i++) {
            const float term = exp_quick_f32(element(x, i), &anchor);
            sums[i % 2] += (double)term;
            if (weighted)
                weighed[i % 4] = fmaf(term, fminf(anchor.base - element(x, i), 200.0f), weighed[i % 4]);
        }
        sum = fma(sums[0] + sums[1], power_of_two(-SOFTMAX_UP_F32), sum);
        if (weighted)
            weights = fma((double)((weighed[0] + weighed[1]) + (weighed[2] + weighed[3])), power_of_two(-SOFTMAX_UP_F32), weights);
    }
    /* least: of a trial; gives up, as if an element were NaN, if all so far are below it. */
    template <uint32_t> __device__ __forceinline__ void take(const uint4 *x, uint32_t v, float least)
    {
        float largest = -INFINITY;
        vectors_extreme<Element, vectors>(&largest, x);
        if (!(largest <= max)) {
            nan |= largest != largest;
            /* far from 0 a maximum is always the reference, so that its term is exactly 1 */
            const bool near = weighted || (anchor.base == 0.0f && fabsf(largest) <= EXP_WHOLE);
            if (largest > (near ? from + far : from))
                raise(largest);
            max = largest > max ? largest : max;
            best = v;
        }
        if constexpr (half) {
            nan |= max < least && max > -INFINITY;
            if (nan)
                return;
        }
        if constexpr (is_short && weighted)
            anchor.base - least_of(anchor.base) < 200.0f ? take_short_weighted<true>(x) : take_short_weighted<false>(x);
        else if constexpr (half)
            fabsf(from) <= (float)EXP_SHORT_MAX ? take_half<true>(x) : take_half<false>(x);
        else if constexpr (is_short)
            anchor.base == 0.0f ? take_short(x) : take_any(x, anchor);
        else if (weighted || anchor.base != 0.0f)
            take_any(x, anchor);
        else
            take_any(x, {0.0f, anchor.least, anchor.shift}); /* nothing is subtracted */
    }
    /* The maximum of a group of lanes, or of a thread alone, NaN where an element is; and its sums, relative to that. All lanes of the warp call it. */
    template <uint32_t members> __device__ __forceinline__ float end()
    {
        float all_max = nan ? (float)NAN : max;
        lanes_share(&all_max, members, take_larger());
        if (is_finite((double)all_max))
            raise(all_max);
        else
            sum = weights = all_max != all_max ? (double)NAN : 0.0;
#pragma unroll
        for (uint32_t lanes = members / 2; lanes > 0; lanes /= 2) {
            sum += lane_xor(sum, lanes);
            if (weighted)
                weights += lane_xor(weights, lanes);
        }
        return all_max;
    }
    /* Makes up for the rest of ln 2 in the terms of exp_without_rest_f32. The maximum gets the term that will be taken out. terms: of the monoid; of 16 bits, TERMS_QUICK. */
    template <class Partial> static __device__ __forceinline__ void close(Partial *partial, enum terms terms)
    {
        if constexpr (!weighted) {
            const float max = (float)partial->max;
            if (!(fabsf(max) <= EXP_WHOLE) || (!is_short && !half && terms == TERMS_QUICK))
                return;
            const struct exp_anchor_f32 anchor = exp_anchor_f32(partial->max, SOFTMAX_RANGE_F32);
            const double down = power_of_two(-SOFTMAX_UP_F32), quick = (double)exp_quick_f32(max, &anchor) * down;
            if constexpr (half) {
                const bool near = fabsf(max) <= (float)EXP_SHORT_MAX;
                partial->sum.high = (partial->sum.high - (double)sumexp_half_term_f32(max, 0.0f, EXP_SHIFT_F32 - anchor.shift, near)) + quick;
            } else if constexpr (is_short) {
                const double others = partial->sum.high - (double)exp_without_rest_f32(max, &anchor) * down;
                partial->sum.high = fma(others, (double)(anchor.shift - EXP_SHIFT_F32) * (double)EXP_LN2_REST_F32, others) + quick;
            } else {
                const struct exp_anchor_f32 anchor_f32 = exp_anchor_f32(partial->max, EXP_TERM_RANGE_F32);
                partial->sum.high = (partial->sum.high - quick) + exp_term_f32(max, &anchor_f32);
            }
        }
    }
};

/* logsumexp is tried by the terms of sumexp_half first: they cost less. Whether the logarithm of a sum of them is as exact as that of the others depends on the result, and on
   log_count, the logarithm of the number of terms. */
struct half_trial {
    static constexpr bool tries = true;
    bool wanted;
    float log_count;
    static half_trial of(const struct axis_work *work, uint64_t count) { return {work->monoid == MONOID_sumexp_quick, logf((float)count)}; }
    /* A thread that has found something, but nothing so large, gives up. */
    __device__ __forceinline__ float least() const { return 6.0f - log_count; }
    /* In 2^-24, a term is off by 4, as exp2 is, by 2 in a sum of four, by 0.23 of x, as far as log2 e is in one part, and for the rounding of its exponent by 1.4, or by its distance, which is
       log_count - log(sum) at most, in the mean of all terms; the maximum's, which is replaced, by twice that: docs/numerics.md. */
    __device__ __forceinline__ bool suffices(const sumexp_quick_f32 &partial) const
    {
        const float max = (float)partial.max;
        if (!is_finite(partial.max))
            return partial.sum.high == partial.sum.high;
        const struct exp_reference reference = exp_reference(partial.max);
        const float result = (float)reference.base + EXP_LN2_F32 * ((float)reference.whole + log2f((float)partial.sum.high));
        const float distance = fmaxf(log_count - (result - max), 0.0f), share = exp2_short((max - result) * 0x1.715476p0f);
        return (7.5f + 0.23f * fminf(fabsf(max), 34.0f)) * (1.0f + share) + (fabsf(max) <= (float)EXP_SHORT_MAX ? 1.25f : 3.0f) * distance <= 2.0f * result;
    }
};
