/* exp(x) as 2^n * (1 + q), the terms of sums of exponentials, and the softmax of one element: one fixed sequence of fused
   operations, the same bits on host and device.

   Each x is reduced by itself. n is the integer nearest to x log2(e), found by adding a large constant. d + rest = x - n ln 2
   lies within ln 2 / 2 of 0. ln 2 = H + L, H rounded to so few bits that d = fma(-n, H, x) is exact for all x that matter. Only
   rest = -n L is rounded, and it is small. (x - m, m the largest element, is never formed. Rounded, it would cost |x - m| / 2
   units in the last place, and the same for equal elements, so that their sum would lose it too.)

   Sums and results are relative to 2^N, N the n of m, which keeps them in range. It is a power of two, so changing from one N to
   another rounds nothing. Beyond |m| = 2048, m is subtracted from all x first and N is 0. The difference is exact for all x that
   count, because they lie within a factor of two of m (Sterbenz). So the reference, 'exp_reference' below, is N ln 2 or m.

   q = exp(d + rest) - 1 = d + low, with low = rest + s^2 P(s), and s = d + rest rounded. The polynomial P (f32: Remez, f64:
   Chebyshev interpolation) leaves a relative error of exp(s) below 2^-28 (f32) and 2^-61 (f64). d and low are kept apart as long
   as it matters: low is at most 0.069, so its rounding errors are small. Bounds, added up: docs/numerics.md. */
#pragma once

#include "fold/arithmetic.h"

#define EXP_WHOLE 2048 /* up to this magnitude m is not subtracted */
#define EXP_LN2 0x1.62e42fefa39efp-1
#define EXP_LN2_REST 0x1.abc9e3b39803fp-56
#define EXP_LN2_F32 0x1.62e43p-1f
#define EXP_LN2_REST_F32 -0x1.05c61p-29f

/* Adding and subtracting these rounds to the nearest integer, for |x| < 2^22 and < 2^51. Low bits of the sum are the integer. */
#define EXP_SHIFT_F32 0x1.8p23f
#define EXP_SHIFT_F64 0x1.8p52

/* The reference of a row with the maximum m: its exponentials are relative to exp(base) * 2^whole. */
struct exp_reference {
    double base;
    int32_t whole;
};
/* m is finite. Both precisions use the same computation, so that the result is a function of m alone. */
HOST_DEVICE struct exp_reference exp_reference(double m)
{
    struct exp_reference reference;
    const bool far = m > EXP_WHOLE || m < -EXP_WHOLE;
    reference.base = far ? m : 0.0;
    const float shifted = fmaf(far ? 0.0f : (float)m, 0x1.715476p0f, EXP_SHIFT_F32);
    reference.whole = (int32_t)(f32_bits(shifted) - f32_bits(EXP_SHIFT_F32));
    return reference;
}

/* A reference in the form that elements need. An x - base below `least` is replaced by `least`. */
struct exp_anchor_f32 {
    float base, least;
    float shift; /* EXP_SHIFT_F32 - N: n plus this has n - N in its low bits */
};
struct exp_anchor_f64 {
    double base, least;
    uint64_t bias;
};

/* Elements further than `range` powers of two below the reference are treated as if they were at that distance. */
HOST_DEVICE struct exp_anchor_f32 exp_anchor_f32(double m, int32_t range)
{
    const struct exp_reference reference = exp_reference(m);
    struct exp_anchor_f32 anchor;
    anchor.base = (float)reference.base;
    anchor.least = (float)(reference.whole - range) * 0x1.62e43p-1f;
    anchor.shift = EXP_SHIFT_F32 - (float)reference.whole;
    return anchor;
}
HOST_DEVICE struct exp_anchor_f64 exp_anchor_f64(double m, int32_t range)
{
    const struct exp_reference reference = exp_reference(m);
    struct exp_anchor_f64 anchor;
    anchor.base = reference.base;
    anchor.least = (double)(reference.whole - range) * EXP_LN2;
    anchor.bias = (uint64_t)(1023 - reference.whole) << 52;
    return anchor;
}

/* x - base, but at least `least`. On the host NaN gives NaN; on the device `least`, in one instruction: see larger_f32. */
HOST_DEVICE float exp_clamp_f32(float x, const struct exp_anchor_f32 *m)
{
    const float u = x - m->base;
#ifdef __CUDA_ARCH__
    return fmaxf(u, m->least);
#else
    return u < m->least ? m->least : u;
#endif
}
HOST_DEVICE double exp_clamp_f64(double x, const struct exp_anchor_f64 *m)
{
    const double u = x - m->base;
    return u < m->least ? m->least : u;
}

/* n and d of u = x - base, and what follows from n - N: f32: an integer whose low bits are n - N; f64: 2^(n - N + up). */
struct exp_parts_f32 {
    uint32_t power;
    float n, d;
};
struct exp_parts_f64 {
    double scale, n, d;
};
HOST_DEVICE struct exp_parts_f32 exp_reduce_f32(float u, const struct exp_anchor_f32 *m)
{
    struct exp_parts_f32 parts;
    const float shifted = fmaf(u, 0x1.715476p0f, m->shift);
    parts.power = f32_bits(shifted);
    parts.n = shifted - m->shift;
    parts.d = fmaf(parts.n, -EXP_LN2_F32, u);
    return parts;
}
HOST_DEVICE struct exp_parts_f64 exp_reduce_f64(double u, const struct exp_anchor_f64 *m, uint64_t up)
{
    struct exp_parts_f64 parts;
    const double shifted = fma(u, 0x1.71547652b82fep0, EXP_SHIFT_F64);
    parts.scale = f64_from_bits((f64_bits(shifted) << 52) + (m->bias + (up << 52)));
    parts.n = shifted - EXP_SHIFT_F64;
    parts.d = fma(parts.n, -EXP_LN2, u);
    return parts;
}

/* unit P(s), for |s| <= ln 2 / 2; unit is a power of two. */
HOST_DEVICE float exp_polynomial_f32(float s, float unit)
{
    float p = 0x1.6a23c8p-10f * unit;
    p = fmaf(p, s, 0x1.123a2p-7f * unit);
    p = fmaf(p, s, 0x1.5558f4p-5f * unit);
    p = fmaf(p, s, 0x1.555492p-3f * unit);
    return fmaf(p, s, 0x1.fffffcp-2f * unit);
}
HOST_DEVICE double exp_polynomial_f64(double s)
{
    double p = 0x1.1f731f4303551p-29;
    p = fma(p, s, 0x1.af4e1a7461be7p-26);
    p = fma(p, s, 0x1.27e4db56f84b0p-22);
    p = fma(p, s, 0x1.71de021a0ba98p-19);
    p = fma(p, s, 0x1.a01a01a6dcc7ep-16);
    p = fma(p, s, 0x1.a01a01abef6b4p-13);
    p = fma(p, s, 0x1.6c16c16c162ccp-10);
    p = fma(p, s, 0x1.11111111100cep-7);
    p = fma(p, s, 0x1.5555555555556p-5);
    p = fma(p, s, 0x1.5555555555557p-3);
    return fma(p, s, 0x1p-1);
}

/* unit (q - d), of n and d; f64: of d and rest. */
HOST_DEVICE float exp_low_f32(float n, float d, float unit)
{
    const float s = fmaf(n, -EXP_LN2_REST_F32, d);
    return fmaf(s * s, exp_polynomial_f32(s, unit), n * (-EXP_LN2_REST_F32 * unit));
}
HOST_DEVICE double exp_low_f64(double d, double rest)
{
    const double s = d + rest;
    return fma(s * s, exp_polynomial_f64(s), rest);
}

/* Terms of a sum: exp(x - reference). Elements further below the reference than these powers of two are treated as if they were at that
   distance. In f32 that is too little to matter: the sum is at least 1/2. In f64 the term is 0, as the bits of 2^-1023 are.

   Rounded to one number of their precision, equal terms would all have the same error, and their sum would have it too. So in f32
   only q is rounded, and f64 holds 1 + q. In f64 a term is added to two numbers, without being rounded first. */
#define EXP_TERM_RANGE_F32 124
#define EXP_TERM_RANGE_F64 1023
/* (1 + q) 2^n; n is in the low bits of power. If q is NaN, these are any: on the host a NaN is multiplied. */
HOST_DEVICE double exp_scaled_f64(double q, uint32_t power)
{
#ifdef __CUDA_ARCH__
    const uint64_t bits = f64_bits(1.0 + q); /* the lower half stays as it is: otherwise the compiler copies it */
    return f64_from_bits((uint64_t)((uint32_t)(bits >> 32) + (power << 20)) << 32 | (uint32_t)bits);
#else
    const double scale = f64_from_bits(f64_bits(1.0) + ((uint64_t)power << 52));
    return fma(scale, q, scale);
#endif
}
/* q, rounded. */
HOST_DEVICE float exp_q_f32(const struct exp_parts_f32 *parts)
{
    return parts->d + exp_low_f32(parts->n, parts->d, 1.0f);
}
HOST_DEVICE double exp_term_f32(float x, const struct exp_anchor_f32 *m)
{
    const struct exp_parts_f32 parts = exp_reduce_f32(exp_clamp_f32(x, m), m);
    return exp_scaled_f64((double)exp_q_f32(&parts), parts.power);
}
/* The sum of the terms of x[0], x[stride], ..., x[7 stride]. Not a loop: gcc makes vectors of this only if there is none. */
HOST_DEVICE double exp_2_terms_f32(const float *x, size_t stride, const struct exp_anchor_f32 *m)
{
    return exp_term_f32(x[0], m) + exp_term_f32(x[stride], m);
}
HOST_DEVICE double exp_8_terms_f32(const float *x, size_t stride, const struct exp_anchor_f32 *m)
{
    return (exp_2_terms_f32(x, stride, m) + exp_2_terms_f32(x + 2 * stride, stride, m))
           + (exp_2_terms_f32(x + 4 * stride, stride, m) + exp_2_terms_f32(x + 6 * stride, stride, m));
}

/* A sum of terms in f64: high - EXP_SUM_BEGIN + low, times `up`, which leads to the reference of the anchor that it was begun with.
   The terms themselves are relative to the power of two in the largest, so that none is larger than EXP_SUM_BEGIN: sum - high is
   exact below, and what low takes is small. EXP_TERM_RANGE_F64 below the largest, too, a term is 0. */
#define EXP_SUM_BEGIN 2.0
struct exp_sum_anchor {
    struct exp_anchor_f64 m;
    double up;
};
/* For elements of which none is larger than `largest`. */
HOST_DEVICE struct exp_sum_anchor exp_sum_anchor(double largest, const struct exp_anchor_f64 *m)
{
    const double shifted = fma(exp_clamp_f64(largest, m), 0x1.71547652b82fep0, EXP_SHIFT_F64);
    struct exp_sum_anchor anchor;
    anchor.up = f64_from_bits((f64_bits(shifted) << 52) + m->bias);
    anchor.m.base = m->base;
    anchor.m.bias = f64_bits(1.0) - (f64_bits(shifted) << 52);
    anchor.m.least = fma(shifted - EXP_SHIFT_F64, EXP_LN2, -EXP_TERM_RANGE_F64 * EXP_LN2);
    return anchor;
}
HOST_DEVICE void exp_sum_add(double *high, double *low, double x, const struct exp_anchor_f64 *m)
{
    const struct exp_parts_f64 parts = exp_reduce_f64(exp_clamp_f64(x, m), m, 0);
    const double less = exp_low_f64(parts.d, parts.n * -EXP_LN2_REST);
    const double sum = *high + fma(parts.scale, parts.d + less, parts.scale), taken = sum - *high;
    *low += fma(parts.scale, less, fma(parts.scale, parts.d, parts.scale - taken));
    *high = sum;
}
HOST_DEVICE pair exp_sum_value(double high, double low, const struct exp_sum_anchor *anchor)
{
    pair sum;
    sum.high = (high - EXP_SUM_BEGIN) * anchor->up;
    sum.low = low * anchor->up;
    return sum;
}
/* The sum of the term of one element. */
HOST_DEVICE pair exp_term_f64(double x, const struct exp_anchor_f64 *m)
{
    const struct exp_sum_anchor anchor = exp_sum_anchor(x, m);
    double high = EXP_SUM_BEGIN, low = 0.0;
    exp_sum_add(&high, &low, x, &anchor.m);
    return exp_sum_value(high, low, &anchor);
}

/* exp(d + rest), |d| at most a little more than ln 2 / 2, in two parts. */
HOST_DEVICE pair exp_near(double d, double rest)
{
    double lost;
    const double one = two_sum(1.0, d, &lost), low = lost + exp_low_f64(d, rest);
    pair sum;
    sum.high = one + low;
    sum.low = low - (sum.high - one);
    return sum;
}

/* exp(x - m), x <= m or nearly so, beyond the precision of f64; 0 from EXP_TERM_RANGE_F64 on. */
HOST_DEVICE pair exp_pair(double x, double m)
{
    const double range = EXP_TERM_RANGE_F64 * EXP_LN2, base = m > EXP_WHOLE || m < -EXP_WHOLE ? m : 0.0, whole_m = m - base;
    const double shifted_m = fma(whole_m, 0x1.71547652b82fep0, EXP_SHIFT_F64);
    const double r_m = fma(shifted_m - EXP_SHIFT_F64, -EXP_LN2, whole_m);
    const double u = x - base < whole_m - range ? whole_m - range : x - base;
    const double shifted = fma(u - r_m, 0x1.71547652b82fep0, EXP_SHIFT_F64);
    const double rest_ln2 = (shifted - shifted_m) * -EXP_LN2_REST;
    double lost;
    const double d = two_sum(fma(shifted - EXP_SHIFT_F64, -EXP_LN2, u), -r_m, &lost);
    return pair_scaled(exp_near(d, rest_ln2 + lost), (int)(uint32_t)(f64_bits(shifted) - f64_bits(shifted_m)));
}

/* The factor that brings a sum from the reference of one finite maximum to that of another, no smaller one. It is a power of two,
   unless one of the maxima is far from 0: then it is more precise than f64. */
HOST_DEVICE pair exp_factor(double from, double to)
{
    const struct exp_reference a = exp_reference(from), b = exp_reference(to);
    pair factor;
    if (a.base == 0.0 && b.base == 0.0) {
        const int32_t power = a.whole - b.whole;
        factor.high = power_of_two(power > -EXP_TERM_RANGE_F64 ? power : -EXP_TERM_RANGE_F64);
        factor.low = 0.0;
        return factor;
    }
    /* whole ln 2, and its rounding error */
    const double a_whole = (double)a.whole * EXP_LN2, b_whole = (double)b.whole * EXP_LN2;
    const double a_lost = fma((double)a.whole, EXP_LN2, -a_whole) + (double)a.whole * EXP_LN2_REST;
    const double b_lost = fma((double)b.whole, EXP_LN2, -b_whole) + (double)b.whole * EXP_LN2_REST;
    factor = exp_pair(a.base + a_whole, b.base + b_whole);
    factor.low = fma(factor.high, a_lost - b_lost, factor.low);
    return factor;
}

/* exp(m) relative to the reference of m, m finite. With sign -1: the reference relative to exp(m). */
HOST_DEVICE pair exp_of_max(double m, double sign)
{
    const struct exp_reference reference = exp_reference(m);
    const double whole_m = m - reference.base, n = fma(whole_m, 0x1.71547652b82fep0, EXP_SHIFT_F64) - EXP_SHIFT_F64;
    const int power = (int)n - reference.whole;
    return pair_scaled(exp_near(sign * fma(n, -EXP_LN2, whole_m), sign * n * -EXP_LN2_REST), sign < 0.0 ? -power : power);
}

/* A positive normal number as 2^k m, m between the roots of 1/2 and 2; down is 2^-k. */
struct log_parts {
    double k, m, down;
};
HOST_DEVICE struct log_parts log_parts(double x)
{
    const uint64_t biased = (f64_bits(x) + (f64_bits(1.0) - f64_bits(0x1.6a09e667f3bcdp-1))) >> 52; /* k + 1023 */
    struct log_parts parts;
    parts.k = f64_from_bits(f64_bits(0x1p52) + biased) - (0x1p52 + 1023.0);
    parts.down = f64_from_bits((2046 - biased) << 52);
    parts.m = x * parts.down;
    return parts;
}

/* log(1 + x), -1/4 <= x < 2^1000, within some ulp; without branches and calls, so that compilers make vectors of it. log m is 2 atanh z. */
HOST_DEVICE double log_of_one_more(double x)
{
#ifdef __CUDA_ARCH__
    return log1p(x);
#else
    double lost;
    const struct log_parts parts = log_parts(two_sum(1.0, x, &lost));
    const double low = lost * parts.down, z = (parts.m - 1.0 + low) / (parts.m + 1.0 + low), square = z * z;
    double p = fma(fma(fma(fma(1.0 / 19, square, 1.0 / 17), square, 1.0 / 15), square, 1.0 / 13), square, 1.0 / 11);
    p = fma(fma(fma(fma(p, square, 1.0 / 9), square, 1.0 / 7), square, 1.0 / 5), square, 1.0 / 3);
    return fma(parts.k, EXP_LN2, 2.0 * fma(z * square, p, z));
#endif
}

/* Elements this far below the reference give 0. Above it 2^(n - N + up) is normal. */
#define SOFTMAX_RANGE_F32 151
#define SOFTMAX_UP_F32 25
#define SOFTMAX_RANGE_F64 1076
#define SOFTMAX_UP_F64 64
/* For logsumexp at level fast, and on a device for softmax of rows and columns: exp(x) relative to the reference, times 2^SOFTMAX_UP_F32, rounded, in half of
   the operations. The anchor is of SOFTMAX_RANGE_F32. 2^f is 1 + f Q(f); Q (Remez) leaves a relative error below 2^-28. */
HOST_DEVICE float exp_quick_f32(float x, const struct exp_anchor_f32 *m)
{
#ifdef __CUDA_ARCH__
    const float up = (float)(1 << SOFTMAX_UP_F32);
#else
    const float up = 1.0f;
#endif
    const float u = exp_clamp_f32(x, m), shifted = fmaf(u, 0x1.715476p0f, m->shift);
    const float f = fmaf(u, 0x1.4ae0cp-26f, fmaf(u, 0x1.715476p0f, m->shift - shifted));
    float q = 0x1.470c58p-13f * up;
    q = fmaf(q, f, 0x1.5f72f8p-10f * up);
    q = fmaf(q, f, 0x1.3b270cp-7f * up);
    q = fmaf(q, f, 0x1.c6ae72p-5f * up);
    q = fmaf(q, f, 0x1.ebfbe2p-3f * up);
    q = fmaf(q, f, 0x1.62e432p-1f * up);
#ifdef __CUDA_ARCH__
    return f32_from_bits(f32_bits(fmaf(q, f, up)) + (f32_bits(shifted) << 23));
#else
    return fmaf(q, f, up) * f32_from_bits((f32_bits(shifted) << 23) + ((127u + SOFTMAX_UP_F32) << 23)); /* as exp_scaled_f64: NaN stays NaN */
#endif
}

/* The same of an x of 16 bits up to EXP_WHOLE, in fewer operations, and without subtracting the base: exp(x + n rest), where x = n ln 2 + d, ln 2 is
   rounded to f32, and rest is what it lacks. d is exact. */
HOST_DEVICE float exp_without_rest_f32(float x, const struct exp_anchor_f32 *m)
{
    const float up = (float)(1 << SOFTMAX_UP_F32);
    const struct exp_parts_f32 parts = exp_reduce_f32(x, m);
    const float slope = fmaf(exp_polynomial_f32(parts.d, up), parts.d, up);
    return f32_from_bits(f32_bits(fmaf(slope, parts.d, up)) + (parts.power << 23));
}

/* How the terms of a sum were computed. */
enum exp_terms { EXP_TERMS_F64, EXP_TERMS_F32 };
/* A sum of exponentials without the term of the largest element m, which is known to the bit. Relative to the reference, as the
   sum is. m and the sum are finite. */
HOST_DEVICE pair exp_others_finite(double m, const pair *sum, enum exp_terms terms)
{
    pair own, others;
    if (terms == EXP_TERMS_F32) {
        const struct exp_anchor_f32 anchor = exp_anchor_f32(m, EXP_TERM_RANGE_F32);
        own.high = exp_term_f32((float)m, &anchor);
        own.low = 0.0;
    } else {
        const struct exp_anchor_f64 anchor = exp_anchor_f64(m, EXP_TERM_RANGE_F64);
        own = exp_term_f64(m, &anchor);
    }
    others.high = two_sum(sum->high, -own.high, &others.low);
    others.low += sum->low - own.low;
    return others;
}
/* 0 if m is infinite, but NaN if the sum is. */
HOST_DEVICE pair exp_others(double m, const pair *sum, enum exp_terms terms)
{
    if (is_finite(m) && sum->high == sum->high)
        return exp_others_finite(m, sum, terms);
    pair others;
    others.high = sum->high == sum->high ? 0.0 : sum->high;
    others.low = 0.0;
    return others;
}

/* What the second pass of softmax needs to know of the first: softmax_constants.h. */
struct softmax_constants {
    double max;             /* the largest element; NaN when the result is NaN everywhere */
    double log_sum, log_low; /* log of the sum of exp(x - max), in two parts */
    double inverse_high;    /* 1 / the sum of exponentials relative to the reference, times 2^-SOFTMAX_UP_F64, in two parts; NaN */
    double inverse_low;     /* as max is */
    struct exp_anchor_f64 anchor;
    struct exp_anchor_f32 anchor_f32; /* the same for f32 arithmetic */
    float inverse_high_f32, inverse_low_f32; /* times 2^-SOFTMAX_UP_F32 */
};

/* 2^(n - N + up) */
HOST_DEVICE float softmax_power_f32(const struct exp_parts_f32 *parts)
{
    return f32_from_bits((parts->power << 23) + ((127u + SOFTMAX_UP_F32) << 23));
}
/* 1 + q - one; one is 1 + d, rounded. */
HOST_DEVICE float exp_less_f32(const struct exp_parts_f32 *parts, float one)
{
    return exp_low_f32(parts->n, parts->d, 1.0f) + (parts->d - (one - 1.0f));
}
/* exp(x - max) / sum, subnormal results included. one + less is 1 + q, more precise than the format. Almost all of the rounding
   error of y comes from the last addition. */
HOST_DEVICE float softmax_f32(float x, const struct softmax_constants *c)
{
    const struct exp_parts_f32 parts = exp_reduce_f32(exp_clamp_f32(x, &c->anchor_f32), &c->anchor_f32);
    const float high = c->inverse_high_f32, one = 1.0f + parts.d;
    const float y = fmaf(high, one, fmaf(high, exp_less_f32(&parts, one), c->inverse_low_f32 * one));
    return y * softmax_power_f32(&parts); /* only this result can be subnormal, and rounded again */
}
/* For results of 16 bits: exp(x) relative to the reference, times 2^SOFTMAX_UP_F32, rounded to f32. */
HOST_DEVICE float exp_short_f32(float x, const struct exp_anchor_f32 *m)
{
    const float up = (float)(1 << SOFTMAX_UP_F32);
    const struct exp_parts_f32 parts = exp_reduce_f32(exp_clamp_f32(x, m), m);
    return f32_from_bits(f32_bits(up + fmaf(parts.d, up, exp_low_f32(parts.n, parts.d, up))) + (parts.power << 23));
}
/* The softmax of these, within 4 ulp of f32. */
HOST_DEVICE float softmax_short(float x, const struct softmax_constants *c) { return exp_short_f32(x, &c->anchor_f32) * c->inverse_high_f32; }
HOST_DEVICE double softmax_f64(double x, const struct softmax_constants *c)
{
    const struct exp_parts_f64 parts = exp_reduce_f64(exp_clamp_f64(x, &c->anchor), &c->anchor, SOFTMAX_UP_F64);
    const double high = c->inverse_high, one = 1.0 + parts.d;
    const double less = exp_low_f64(parts.d, parts.n * -EXP_LN2_REST) + (parts.d - (one - 1.0));
    const double y = fma(high, one, fma(high, less, c->inverse_low * one));
    return y * parts.scale;
}
/* x - max - log(sum), each difference in two parts: two roundings. Never positive. */
HOST_DEVICE double log_softmax_f64(double x, const struct softmax_constants *c)
{
    const double t = x - c->max, back = t - x;
    const double lost = (x - (t - back)) - (c->max + back);
    const double y = t - c->log_sum;
    return lost == lost ? y + (lost - c->log_low) : y; /* infinite x: lost is NaN, y is -inf */
}
