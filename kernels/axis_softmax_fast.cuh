/* Softmax along rows at level fast, of elements that are f32 or become f32: terms and results relative to the maximum, which is known
   first. Every exponential is computed once or twice, in f32, and the sum of a thread's terms is f64. docs/numerics.md has the bounds. */
#pragma once

#include "kernels/axis_softmax.cuh"

/* A part of a row. */
struct row_sum {
    float max;      /* NaN if an element is */
    uint32_t count; /* of the elements that equal max, if their terms are not in the sum */
    double sum;     /* of terms, relative to the reference of max: 2^N or exp(base) in f32, exp(max) for elements of 16 bits */
};

/* The largest element of vectors and *extreme, or the smallest; or NaN. */
template <class Element, int vectors, bool smallest = false> static __device__ __forceinline__ void vectors_extreme(float *extreme, const uint4 *x)
{
    typedef typename Element::stored stored;
    const auto take = [extreme](float element) { *extreme = smallest ? smaller_f32(element, *extreme) : larger_f32(element, *extreme); };
#ifdef HAVE_EXTREME_HALVES
    constexpr bool f16 = Element::type == ALLFOLD_F16;
    if constexpr (f16 || Element::type == ALLFOLD_BF16) {
        const auto both = [](uint32_t a, uint32_t b) { return extreme_halves<f16, smallest>(a, b); };
        uint4 found = x[0];
#pragma unroll
        for (int i = 1; i < vectors; i++)
            found = make_uint4(both(found.x, x[i].x), both(found.y, x[i].y), both(found.z, x[i].z), both(found.w, x[i].w));
        found.x = both(both(found.x, found.y), both(found.z, found.w));
        take(Element::load(vector_element<stored>(found, 0)));
        take(Element::load(vector_element<stored>(found, 1)));
    } else
#endif
#pragma unroll
        for (int i = 0; i < vectors * Element::per_vector; i++)
            take(Element::load(vector_element<stored>(x[i / Element::per_vector], i % Element::per_vector)));
}

/* 1 / x to about 2^-45, for 2^-100 < x < 2^100. */
static __device__ __forceinline__ double quick_inverse(double x)
{
    const double near = (double)(1.0f / (float)x);
    return fma(near, fma(-x, near, 1.0), near);
}

/* Terms of f32: exp(x) relative to 2^N or, far from 0, to exp(max), as in fold/exponential.h, times 2^SOFTMAX_UP_F32. A term is kept and
   becomes the result. */
template <class Element, bool is_short = sizeof(typename Element::stored) == 2> struct row_terms {
    typedef uint4 kept;
    static constexpr bool counts = false, replaces = true; /* what is kept is as large as the elements, and takes their place */
    float max;
    struct exp_anchor_f32 anchor;
    double sum = 0.0;
    explicit __device__ __forceinline__ row_terms(float max) : max(max)
    {
        anchor = exp_anchor_f32(is_finite((double)max) ? (double)max : 0.0, SOFTMAX_RANGE_F32);
    }
    __device__ __forceinline__ uint4 take(const uint4 &x)
    {
        float e[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum += (double)(e[i] = exp_quick_f32(vector_element<float>(x, i), &anchor));
        return vector_of(e);
    }
    __device__ __forceinline__ double value() const { return sum * power_of_two(-SOFTMAX_UP_F32); }
};

/* Terms of 16 bits: 2^((x - max) log2 e), by a GPU's own exp2. The elements are kept. */
template <class Element> struct row_terms<Element, true> {
    typedef uint4 kept;
    static constexpr bool counts = false, replaces = false;
    float max, from, sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    explicit __device__ __forceinline__ row_terms(float max) : max(max), from(is_finite((double)max) ? max : 0.0f) {}
    __device__ __forceinline__ uint4 take(const uint4 &x)
    {
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[i % 4] += exp2_short((Element::load(vector_element<typename Element::stored>(x, i)) - from) * 0x1.715476p0f);
        return x;
    }
    __device__ __forceinline__ double value() const { return (double)((sum[0] + sum[1]) + (sum[2] + sum[3])); }
};

/* The results, of what was kept of a part of a row, and of the whole row. */
template <class Element, bool is_short = sizeof(typename Element::stored) == 2> struct row_results {
    float high, low;
    __device__ __forceinline__ row_results(double factor, const struct row_sum &whole)
    {
        const double scale = is_finite((double)whole.max) ? factor * quick_inverse(whole.sum) : (double)NAN;
        high = (float)scale;
        low = (float)(scale - (double)high);
    }
    __device__ __forceinline__ uint4 of(const uint4 &kept) const
    {
        float y[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float e = vector_element<float>(kept, i);
            y[i] = fmaf(e, high, e * low) * (1.0f / (1 << SOFTMAX_UP_F32));
        }
        return vector_of(y);
    }
};

/* Whether the type has numbers that f32 arithmetic on a device flushes to 0. */
template <class Element> constexpr bool has_subnormals_of_f32
    = float_format_of(Element::type).exponent_min - float_format_of(Element::type).precision + 1 < float_format_of(ALLFOLD_F32).exponent_min;

/* Up by 2^24, so that no result is flushed to 0. */
template <class Element> struct row_results<Element, true> {
    static constexpr bool has_subnormals = has_subnormals_of_f32<Element>;
    float max, log;
    __device__ __forceinline__ row_results(double, const struct row_sum &whole) : max(whole.max)
    {
        log = is_finite((double)max) ? (has_subnormals ? 24.0f : 0.0f) - log2f((float)whole.sum) : (float)NAN;
    }
    __device__ __forceinline__ float result(float x) const
    {
        const float y = exp2_short(fmaf(x - max, 0x1.715476p0f, log));
        return has_subnormals ? y * 0x1p-24f : y;
    }
    __device__ __forceinline__ uint4 of(const uint4 &x) const
    {
        float y[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            y[i] = result(Element::load(vector_element<typename Element::stored>(x, i)));
        return vector_rounded<Element>(y);
    }
};

/* The same, if there are registers for the terms: they are kept, up by 2^24 so that none that counts is flushed to 0. */
struct eight_terms {
    float e[8];
};
template <class Element> struct kept_terms {
    typedef eight_terms kept;
    static constexpr bool counts = false, replaces = false;
    static constexpr int up = has_subnormals_of_f32<Element> ? 24 : 0;
    float max, from, sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    explicit __device__ __forceinline__ kept_terms(float max) : max(max), from(is_finite((double)max) ? max : 0.0f) {}
    __device__ __forceinline__ eight_terms take(const uint4 &x)
    {
        eight_terms terms;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            terms.e[i] = exp2_short(fmaf(Element::load(vector_element<typename Element::stored>(x, i)) - from, 0x1.715476p0f, (float)up));
            sum[i % 4] += terms.e[i];
        }
        return terms;
    }
    __device__ __forceinline__ double value() const { return (double)((sum[0] + sum[1]) + (sum[2] + sum[3])) * power_of_two(-up); }
};
template <class Element> struct kept_results {
    float scale;
    __device__ __forceinline__ kept_results(double factor, const struct row_sum &whole)
    {
        scale = is_finite((double)whole.max) ? (float)(factor * quick_inverse(whole.sum)) : (float)NAN;
    }
    __device__ __forceinline__ float result(float e) const
    {
        constexpr int up = kept_terms<Element>::up;
        return up > 0 ? e * scale * (1.0f / (1 << up)) : e * scale;
    }
    __device__ __forceinline__ uint4 of(const eight_terms &kept) const
    {
        float y[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            y[i] = result(kept.e[i]);
        return vector_rounded<Element>(y);
    }
};

/* log-softmax: the elements that equal the maximum are counted, so that the sum of the others is relatively precise however small it is. In
   f32 terms are those of fold/exponential.h, in f64. */
template <class Element, bool is_short = sizeof(typename Element::stored) == 2> struct log_terms {
    typedef uint4 kept;
    static constexpr bool replaces = false, counts = true;
    float max, lowest; /* a term below is too small to count, and would be larger than it is */
    uint32_t count = 0;
    struct exp_anchor_f32 anchor;
    double sum = 0.0;
    explicit __device__ __forceinline__ log_terms(float max) : max(max), lowest(max - 88.0f)
    {
        anchor = exp_anchor_f32(is_finite((double)max) ? (double)max : 0.0, EXP_TERM_RANGE_F32);
    }
    __device__ __forceinline__ uint4 take(const uint4 &x)
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float from = vector_element<float>(x, i);
            const double term = exp_term_f32(from, &anchor);
            if (from < max && from >= lowest)
                sum += term;
            count += from == max;
        }
        return x;
    }
    __device__ __forceinline__ double value() const { return sum; }
};
template <class Element> struct log_terms<Element, true> {
    typedef uint4 kept;
    static constexpr bool replaces = false, counts = true;
    float max, from, sum[2] = {0.0f, 0.0f};
    uint32_t count = 0;
    explicit __device__ __forceinline__ log_terms(float max) : max(max), from(is_finite((double)max) ? max : 0.0f) {}
    __device__ __forceinline__ uint4 take(const uint4 &x)
    {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float d = Element::load(vector_element<typename Element::stored>(x, i)) - from, term = exp2_short(d * 0x1.715476p0f);
            if (d < 0.0f)
                sum[i % 2] += term;
            count += d == 0.0f;
        }
        return x;
    }
    __device__ __forceinline__ double value() const { return (double)(sum[0] + sum[1]); }
};

/* exp(max) relative to its reference, and what brings a sum from the reference of one maximum to that of another, no smaller one. */
template <class Element> static __device__ __forceinline__ double row_max_term(float max)
{
    return sizeof(typename Element::stored) == 2 ? 1.0 : exp_of_max((double)max, 1.0).high;
}
template <class Element> static __device__ __forceinline__ double row_factor(float from, float to)
{
    if (from == to)
        return 1.0;
    if (from == -INFINITY || !is_finite((double)to))
        return 0.0;
    return sizeof(typename Element::stored) == 2 ? exp_pair((double)from, (double)to).high : exp_factor((double)from, (double)to).high;
}
template <class Element> static __device__ __forceinline__ void row_sum_raise(struct row_sum *a, float max)
{
    if (a->max == max)
        return;
    if (a->count != 0)
        a->sum += a->count * row_max_term<Element>(a->max);
    a->sum *= row_factor<Element>(a->max, max);
    a->count = 0;
    a->max = max;
}
template <class Element> static __device__ __forceinline__ void row_sum_add(struct row_sum *a, struct row_sum b)
{
    const float max = larger_f32(b.max, a->max);
    row_sum_raise<Element>(a, max);
    row_sum_raise<Element>(&b, max);
    a->sum += b.sum;
    a->count += b.count;
}

/* x - max - log of the sum relative to exp(max): in f64, or, with results of 16 bits, in f32. */
template <class Element> struct log_results {
    typedef std::conditional_t<sizeof(typename Element::stored) == 2, float, double> real;
    real max, log;
    __device__ __forceinline__ log_results(double, const struct row_sum &whole) : max((real)whole.max)
    {
        const double others = (double)(whole.count - 1) + whole.sum / row_max_term<Element>(is_finite((double)whole.max) ? whole.max : 0.0f);
        log = is_finite((double)whole.max) ? (real)log1p((real)others) : (real)NAN;
    }
    __device__ __forceinline__ real result(const uint4 &x, int i) const
    {
        return (real)Element::load(vector_element<typename Element::stored>(x, i)) - max - log;
    }
    __device__ __forceinline__ uint4 of(const uint4 &x) const
    {
        float y[Element::per_vector];
#pragma unroll
        for (int i = 0; i < Element::per_vector; i++)
            y[i] = (float)result(x, i);
        if constexpr (sizeof(typename Element::stored) == 2)
            return vector_rounded<Element>(y);
        else
            return vector_of(y);
    }
};

/* The sum of a whole row: each thread reads the parts of some blocks. */
template <class Row, int threads> static __device__ __forceinline__ struct row_sum row_sum_of(const struct row_parts &parts, const struct row_sum &own)
{
    typedef typename Row::element Element;
    struct row_sum whole = {-INFINITY, 0, 0.0};
    if (threadIdx.x == 0)
        parts.send(own);
#pragma unroll 1
    for (uint32_t block = threadIdx.x; block < parts.count; block += threads)
        row_sum_add<Element>(&whole, parts.receive<struct row_sum>(block));
    float max = whole.max;
    group_share<threads>(&max, threads, take_larger());
    row_sum_raise<Element>(&whole, max);
    group_share_sums<threads>(&whole.sum, threads);
    if (Row::counts)
        group_share_sums<threads>(&whole.count, threads);
    return whole;
}

/* Rows at level fast whose terms are f32. */
template <class Element, class Terms, class Results> struct quick_row {
    typedef Element element;
    typedef float real;
    typedef Results results;
    typedef typename Terms::kept kept;
    static constexpr bool heavy = false, in_shared = false, replaces = Terms::replaces, counts = Terms::counts;
    static constexpr int short_blocks = row_blocks(false, sizeof(typename Element::stored));
    template <int vectors> static __device__ __forceinline__ void take_max(float *max, const uint4 *x) { vectors_extreme<Element, vectors>(max, x); }
    struct terms : Terms {
        explicit __device__ __forceinline__ terms(float max) : Terms(max) {}
        /* k may be x. */
        template <int vectors> __device__ __forceinline__ void take(const uint4 *x, kept *k)
        {
#pragma unroll
            for (int i = 0; i < vectors; i++)
                k[i] = Terms::take(x[i]);
        }
        template <int threads> __device__ __forceinline__ struct row_sum group_sum(uint32_t members) const
        {
            struct row_sum own = {this->max, 0, this->value()};
            group_share_sums<threads>(&own.sum, members);
            if constexpr (counts) {
                own.count = this->count;
                group_share_sums<threads>(&own.count, members);
            }
            return own;
        }
        template <int threads> __device__ __forceinline__ Results results_of_group(uint32_t members_bits) const
        {
            return Results(1.0, group_sum<threads>(1u << members_bits));
        }
        template <int threads> __device__ __forceinline__ Results results_of_blocks(const struct row_parts &parts) const
        {
            const struct row_sum own = group_sum<threads>(threads);
            if (parts.count == 1)
                return Results(1.0, own);
            const struct row_sum whole = row_sum_of<quick_row, threads>(parts, own);
            return Results(row_factor<Element>(own.max, whole.max), whole);
        }
    };
};
