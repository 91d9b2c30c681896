/* exp(x) as 2^n * (1 + q), the terms of sums of exponentials, and the softmax of one element: one fixed sequence of fused
   operations, the same bits on host and device.

   x is reduced by itself: n is x log2(e) to the nearest integer, by adding a large constant, and d = x - n ln 2, which lies
   within ln 2 / 2 of 0. With ln 2 = H + L, H rounded to so few bits that fma(-n, H, x) is exact for |x| <= 2048, only the
   last operation, which takes n L away, rounds. (x - m, m the largest element, is never formed: rounded, it would cost
   |x - m| / 2 units in the last place, and alike for equal elements, so that their sum would lose it too.)

   Sums and results are relative to 2^N, N the n of m, which keeps them in range: a power of two, so that going from one N to
   another rounds nothing. Beyond |m| = 2048, m is subtracted from all x first and N is 0: the difference is exact for all x
   that count, since they lie within a factor of two of m (Sterbenz). So the reference, 'exp_reference' below, is N ln 2 or m.

   q = exp(d) - 1 for |d| <= ln 2 / 2 is d + d^2 P(d), P the polynomial (f32: Remez, f64: Chebyshev interpolation) that
   leaves a relative error of exp(d) below 2^-28 (f32) and 2^-61 (f64). */
#ifndef ALLFOLD_EXPONENTIAL_H
#define ALLFOLD_EXPONENTIAL_H

#include "fold/arithmetic.h"

#define EXP_WHOLE 2048 /* up to this magnitude m is no base to be subtracted */
#define EXP_LN2 0x1.62e42fefa39efp-1
#define EXP_LN2_REST 0x1.abc9e3b39803fp-56

/* x to the nearest integer, for |x| < 2^22 and < 2^51; it is in the low bits, too. */
#define EXP_SHIFT_F32 0x1.8p23f
#define EXP_SHIFT_F64 0x1.8p52

/* What the exponentials of a row with the maximum m are relative to: exp(base) * 2^whole. */
struct exp_reference {
    double base;
    int32_t whole;
};
/* m is finite. One way for both precisions, so that it is a function of m alone. */
HOST_DEVICE struct exp_reference exp_reference(double m)
{
    struct exp_reference reference;
    const bool far = m > EXP_WHOLE || m < -EXP_WHOLE;
    reference.base = far ? m : 0.0;
    const float shifted = fmaf(far ? 0.0f : (float)m, 0x1.715476p0f, EXP_SHIFT_F32);
    reference.whole = (int32_t)(f32_bits(shifted) - f32_bits(EXP_SHIFT_F32));
    return reference;
}

/* A reference as elements need it. Smaller x - base than `least` are taken for that. */
struct exp_anchor_f32 {
    float base, least;
    uint32_t bias; /* what brings the bits of an element's n, moved to the exponent, to those of 2^(n - N) */
};
struct exp_anchor_f64 {
    double base, least;
    uint64_t bias;
};

/* Elements `range` powers of two below the reference, and further down, are taken for one there. */
HOST_DEVICE struct exp_anchor_f32 exp_anchor_f32(double m, int32_t range)
{
    const struct exp_reference reference = exp_reference(m);
    struct exp_anchor_f32 anchor;
    anchor.base = (float)reference.base;
    anchor.least = (float)(reference.whole - range) * 0x1.62e43p-1f;
    anchor.bias = (uint32_t)(127 - reference.whole) << 23;
#ifdef __CUDA_ARCH__
    asm("" : "+r"(anchor.bias)); /* hides its origin: else it is added before the shift, by an instruction of its own */
#endif
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

/* 2^(n - N + up), and d, of u = x - base. f64: d in two parts. */
struct exp_parts_f32 {
    float scale, d;
};
struct exp_parts_f64 {
    double scale, d, rest;
};
HOST_DEVICE struct exp_parts_f32 exp_reduce_f32(float u, const struct exp_anchor_f32 *m, uint32_t up)
{
    struct exp_parts_f32 parts;
    const float shifted = fmaf(u, 0x1.715476p0f, EXP_SHIFT_F32), n = shifted - EXP_SHIFT_F32;
    parts.scale = f32_from_bits((f32_bits(shifted) << 23) + (m->bias + (up << 23)));
    parts.d = fmaf(n, 0x1.05c61p-29f, fmaf(n, -0x1.62e43p-1f, u));
    return parts;
}
HOST_DEVICE struct exp_parts_f64 exp_reduce_f64(double u, const struct exp_anchor_f64 *m, uint64_t up)
{
    struct exp_parts_f64 parts;
    const double shifted = fma(u, 0x1.71547652b82fep0, EXP_SHIFT_F64), n = shifted - EXP_SHIFT_F64;
    parts.scale = f64_from_bits((f64_bits(shifted) << 52) + (m->bias + (up << 52)));
    parts.d = fma(n, -EXP_LN2, u);
    parts.rest = n * -EXP_LN2_REST;
    return parts;
}

/* q - d for |d| <= ln 2 / 2. */
HOST_DEVICE float exp_square_f32(float d)
{
    float p = 0x1.6a23c8p-10f;
    p = fmaf(p, d, 0x1.123a2p-7f);
    p = fmaf(p, d, 0x1.5558f4p-5f);
    p = fmaf(p, d, 0x1.555492p-3f);
    p = fmaf(p, d, 0x1.fffffcp-2f);
    return d * d * p;
}
HOST_DEVICE double exp_square_f64(double d)
{
    double p = 0x1.1f731f4303551p-29;
    p = fma(p, d, 0x1.af4e1a7461be7p-26);
    p = fma(p, d, 0x1.27e4db56f84b0p-22);
    p = fma(p, d, 0x1.71de021a0ba98p-19);
    p = fma(p, d, 0x1.a01a01a6dcc7ep-16);
    p = fma(p, d, 0x1.a01a01abef6b4p-13);
    p = fma(p, d, 0x1.6c16c16c162ccp-10);
    p = fma(p, d, 0x1.11111111100cep-7);
    p = fma(p, d, 0x1.5555555555556p-5);
    p = fma(p, d, 0x1.5555555555557p-3);
    p = fma(p, d, 0x1p-1);
    return d * d * p;
}

/* exp(x - reference), where results below the smallest normal number do not matter: terms of a sum that is at least 1/2.

   Rounded to one number, equal terms would all be wrong by the same, and so would their sum. So a term comes in two
   parts, to be added up apart: f32, the power 2^(n - N) and what it lacks; f64, the term and what its rounding lost. */
#define EXP_TERM_RANGE_F32 124
#define EXP_TERM_RANGE_F64 1020
struct exp_term_f32 {
    float power, rest;
};
struct exp_term_f64 {
    double term, lost;
};
/* 2^(n - N) q + more. */
HOST_DEVICE float exp_rest_f32(const struct exp_parts_f32 *parts, float more)
{
    return fmaf(parts->scale, parts->d, fmaf(parts->scale, exp_square_f32(parts->d), more));
}
HOST_DEVICE struct exp_term_f32 exp_term_f32(float x, const struct exp_anchor_f32 *m)
{
    const struct exp_parts_f32 parts = exp_reduce_f32(exp_clamp_f32(x, m), m, 0);
    struct exp_term_f32 term;
    term.power = parts.scale;
    term.rest = exp_rest_f32(&parts, 0.0f);
    return term;
}
/* The terms of x[0] and x[stride]: of their powers, at most 4 together, only the multiple of 2^-20 stays apart. */
#define EXP_SHIFT_POWERS 12.0f
HOST_DEVICE struct exp_term_f32 exp_2_terms_f32(const float *x, size_t stride, const struct exp_anchor_f32 *m)
{
    const struct exp_parts_f32 a = exp_reduce_f32(exp_clamp_f32(x[0], m), m, 0);
    const struct exp_parts_f32 b = exp_reduce_f32(exp_clamp_f32(x[stride], m), m, 0);
    struct exp_term_f32 sum;
    sum.power = ((a.scale + EXP_SHIFT_POWERS) + b.scale) - EXP_SHIFT_POWERS;
    const float small = (a.scale - sum.power) + b.scale;
    sum.rest = exp_rest_f32(&b, exp_rest_f32(&a, small));
    return sum;
}
/* The sum of the terms of x[0], x[stride], ..., x[7 stride]: sums of such multiples of at most 16 are exact. */
HOST_DEVICE double exp_8_terms_f32(const float *x, size_t stride, const struct exp_anchor_f32 *m)
{
#define PAIR(i) exp_2_terms_f32(x + (i) * stride, stride, m)
    const struct exp_term_f32 a = PAIR(0), b = PAIR(2), c = PAIR(4), d = PAIR(6);
#undef PAIR
    const float powers = (a.power + b.power) + (c.power + d.power);
    return (double)powers + ((double)(a.rest + b.rest) + (double)(c.rest + d.rest));
}
HOST_DEVICE struct exp_term_f64 exp_term_f64(double x, const struct exp_anchor_f64 *m)
{
    const struct exp_parts_f64 parts = exp_reduce_f64(exp_clamp_f64(x, m), m, 0);
    const double d = parts.d + parts.rest, q = d + exp_square_f64(d);
    struct exp_term_f64 term;
    term.term = fma(parts.scale, q, parts.scale);
    term.lost = fma(parts.scale, q, parts.scale - term.term);
    return term;
}

/* exp(x - m), x <= m or nearly so, beyond the precision of f64. */
HOST_DEVICE pair exp_pair(double x, double m)
{
    const double range = 707.0, base = m > EXP_WHOLE || m < -EXP_WHOLE ? m : 0.0, whole_m = m - base;
    const double shifted_m = fma(whole_m, 0x1.71547652b82fep0, EXP_SHIFT_F64);
    const double r_m = fma(shifted_m - EXP_SHIFT_F64, -EXP_LN2, whole_m);
    const double u = x - base < whole_m - range ? whole_m - range : x - base;
    const double shifted = fma(u - r_m, 0x1.71547652b82fep0, EXP_SHIFT_F64);
    const double rest_ln2 = (shifted - shifted_m) * -EXP_LN2_REST;
    double lost, error;
    const double d = two_sum(fma(shifted - EXP_SHIFT_F64, -EXP_LN2, u), -r_m, &lost), rest = rest_ln2 + lost;
    const double square = exp_square_f64(d), scale = power_of_two((int)(uint32_t)(f64_bits(shifted) - f64_bits(shifted_m)));
    const double one = two_sum(1.0, d, &error), low = error + (square + fma(rest, square + d, rest)), sum = one + low;
    pair factor;
    factor.high = sum * scale;
    factor.low = (low - (sum - one)) * scale;
    return factor;
}

/* The factor that brings a sum from the reference of one finite maximum to that of another, no smaller: a power of two, but
   where one of them is far from 0, beyond the precision of f64. */
HOST_DEVICE pair exp_factor(double from, double to)
{
    const struct exp_reference a = exp_reference(from), b = exp_reference(to);
    pair factor;
    if (a.base == 0.0 && b.base == 0.0) {
        const int32_t power = a.whole - b.whole;
        factor.high = power_of_two(power < -1000 ? -1000 : power);
        factor.low = 0.0;
        return factor;
    }
    /* whole ln 2, and what its rounding lost */
    const double a_whole = (double)a.whole * EXP_LN2, b_whole = (double)b.whole * EXP_LN2;
    const double a_lost = fma((double)a.whole, EXP_LN2, -a_whole) + (double)a.whole * EXP_LN2_REST;
    const double b_lost = fma((double)b.whole, EXP_LN2, -b_whole) + (double)b.whole * EXP_LN2_REST;
    factor = exp_pair(a.base + a_whole, b.base + b_whole);
    factor.low = fma(factor.high, a_lost - b_lost, factor.low);
    return factor;
}

/* What the second pass of softmax needs to know of the first: set once by softmax_constants_set. */
struct softmax_constants {
    double max;             /* the largest element; NaN when the result is NaN everywhere */
    double log_sum;         /* log of the sum of exp(x - max) */
    double inverse_high;    /* 1 / the sum of exponentials relative to the reference, in two parts; NaN as max is */
    double inverse_low;
    struct exp_anchor_f64 anchor;
    struct exp_anchor_f32 anchor_f32; /* the same for f32 arithmetic */
    float inverse_high_f32, inverse_low_f32; /* times 2^-SOFTMAX_UP_F32 */
};

/* What is so far below the reference gives 0; from there on 2^(n - N + up) is normal. */
#define SOFTMAX_RANGE_F32 151
#define SOFTMAX_UP_F32 25
#define SOFTMAX_RANGE_F64 1076
#define SOFTMAX_UP_F64 600

/* exp(x - max) / sum, subnormal results included. */
HOST_DEVICE float softmax_f32(float x, const struct softmax_constants *c)
{
    const struct exp_parts_f32 parts = exp_reduce_f32(exp_clamp_f32(x, &c->anchor_f32), &c->anchor_f32, SOFTMAX_UP_F32);
    const float high = c->inverse_high_f32;
    const float y = high + fmaf(high, parts.d, fmaf(high, exp_square_f32(parts.d), c->inverse_low_f32));
    return y * parts.scale; /* only this can be subnormal, and round */
}
HOST_DEVICE double softmax_f64(double x, const struct softmax_constants *c)
{
    const struct exp_parts_f64 parts = exp_reduce_f64(exp_clamp_f64(x, &c->anchor), &c->anchor, SOFTMAX_UP_F64);
    const double d = parts.d, high = c->inverse_high, square = exp_square_f64(d);
    const double low = square + fma(parts.rest, square + d, parts.rest);
    const double y = high + fma(high, d, fma(high, low, c->inverse_low));
    return y * parts.scale * 0x1p-600;
}
/* x - max - log(sum): the first difference exact in two parts, then one rounding that matters. */
HOST_DEVICE double log_softmax_f64(double x, const struct softmax_constants *c)
{
    const double t = x - c->max, back = t - x;
    const double lost = (x - (t - back)) - (c->max + back);
    const double y = t - c->log_sum;
    return lost == lost ? y + lost : y; /* infinite x: lost is NaN, y is -inf */
}

#endif
