/* exp(x - m), m the largest element, as 2^k * (1 + q), and the softmax of one element: one fixed sequence of fused
   operations, the same bits on host and device.

   x - m is never formed: rounded, it would cost |x - m| / 2 units in the last place, and alike for equal elements, so
   that their sum would lose it too. Each of the two is reduced by itself, x = n ln 2 + r, and exp(x - m) is
   2^(n - n') * exp(r - r'). With ln 2 = H + L, H rounded to the type, r = fma(-n, H, x) is exact for |x| <= 2048, and
   r - r' nearly so; what L contributes, (n' - n) L, is small. n is (x - r') log2(e) to the nearest integer, by adding a
   large constant: so r - r' lies within ln 2 / 2 of 0, and x = m gives 2^0 * (1 + 0), exactly. Beyond |m| = 2048, m is
   subtracted from both first: exact for all x that count, since they lie within a factor of two of m (Sterbenz).

   q = exp(d) - 1 for |d| <= ln 2 / 2 is d + d^2 P(d), P the polynomial (f32: Remez, f64: Chebyshev interpolation) that
   leaves a relative error of exp(d) below 2^-28 (f32) and 2^-61 (f64). */
#ifndef ALLFOLD_EXPONENTIAL_H
#define ALLFOLD_EXPONENTIAL_H

#include "fold/arithmetic.h"

#define EXP_WHOLE 2048 /* up to this magnitude m is reduced as it is */

/* m, reduced once for many x. least: x - base below it is taken for it. */
struct exp_anchor_f32 {
    float base, shifted, r, least;
    uint32_t bias; /* what brings the bits of an element's n, moved to the exponent, to those of 2^(n - n') */
};
struct exp_anchor_f64 {
    double base, shifted, r, least;
};

/* What exp(x - m) is made of: 2^k * exp(d + rest), k = n - n'. */
struct exp_parts_f32 {
    float d, scale; /* scale is 2^(k + up); d includes the rest */
};
struct exp_parts_f64 {
    int32_t k;
    double d, rest, r; /* r: d before r' was subtracted */
};

/* x to the nearest integer, for |x| < 2^22 and < 2^51; it is in the low bits, too. */
#define EXP_SHIFT_F32 0x1.8p23f
#define EXP_SHIFT_F64 0x1.8p52

/* range: how far below m elements still count. */
HOST_DEVICE struct exp_anchor_f32 exp_anchor_f32(float m, float range)
{
    struct exp_anchor_f32 anchor;
    anchor.base = m > EXP_WHOLE || m < -EXP_WHOLE ? m : 0.0f;
    const float rest = m - anchor.base;
    anchor.shifted = fmaf(rest, 0x1.715476p0f, EXP_SHIFT_F32);
    anchor.r = fmaf(anchor.shifted - EXP_SHIFT_F32, -0x1.62e43p-1f, rest);
    anchor.least = rest - range;
    anchor.bias = (127u - f32_bits(anchor.shifted)) << 23;
#ifdef __CUDA_ARCH__
    asm("" : "+r"(anchor.bias)); /* hides its origin: else it is added before the shift, by an instruction of its own */
#endif
    return anchor;
}
HOST_DEVICE struct exp_anchor_f64 exp_anchor_f64(double m, double range)
{
    struct exp_anchor_f64 anchor;
    anchor.base = m > EXP_WHOLE || m < -EXP_WHOLE ? m : 0.0;
    const double rest = m - anchor.base;
    anchor.shifted = fma(rest, 0x1.71547652b82fep0, EXP_SHIFT_F64);
    anchor.r = fma(anchor.shifted - EXP_SHIFT_F64, -0x1.62e42fefa39efp-1, rest);
    anchor.least = rest - range;
    return anchor;
}

/* u, but at least `least`. On the device NaN becomes `least`, in one instruction: see larger_f32. */
HOST_DEVICE float at_least_f32(float u, float least)
{
#ifdef __CUDA_ARCH__
    return fmaxf(u, least);
#else
    return u < least ? least : u;
#endif
}

/* For x <= m, -126 <= k + up <= 127. On the host NaN gives NaN; on the device, tiles with NaN do not come here. */
HOST_DEVICE struct exp_parts_f32 exp_reduce_f32(float x, const struct exp_anchor_f32 *m, int32_t up)
{
    struct exp_parts_f32 parts;
    const float u = at_least_f32(x - m->base, m->least);
    const float shifted = fmaf(u - m->r, 0x1.715476p0f, EXP_SHIFT_F32);
    const float d = fmaf(shifted - EXP_SHIFT_F32, -0x1.62e43p-1f, u) - m->r;
    parts.scale = f32_from_bits((f32_bits(shifted) << 23) + (m->bias + ((uint32_t)up << 23)));
    parts.d = fmaf(shifted - m->shifted, 0x1.05c61p-29f, d);
    return parts;
}
HOST_DEVICE struct exp_parts_f64 exp_reduce_f64(double x, const struct exp_anchor_f64 *m)
{
    struct exp_parts_f64 parts;
    double u = x - m->base;
    u = u < m->least ? m->least : u;
    const double shifted = fma(u - m->r, 0x1.71547652b82fep0, EXP_SHIFT_F64);
    parts.k = (int32_t)(uint32_t)(f64_bits(shifted) - f64_bits(m->shifted));
    parts.r = fma(shifted - EXP_SHIFT_F64, -0x1.62e42fefa39efp-1, u);
    parts.d = parts.r - m->r;
    parts.rest = (shifted - m->shifted) * -0x1.abc9e3b39803fp-56;
    return parts;
}

/* q, and q - d, for |d| <= ln 2 / 2. */
HOST_DEVICE float exp_less_1_f32(float d)
{
    float p = 0x1.6a23c8p-10f;
    p = fmaf(p, d, 0x1.123a2p-7f);
    p = fmaf(p, d, 0x1.5558f4p-5f);
    p = fmaf(p, d, 0x1.555492p-3f);
    p = fmaf(p, d, 0x1.fffffcp-2f);
    return fmaf(d * d, p, d);
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

/* 2^k, -1022 <= k <= 1023. */
HOST_DEVICE double scale_f64(int32_t k) { return f64_from_bits((uint64_t)(uint32_t)(k + 1023) << 52); }

/* exp(x - m), where results below the smallest normal number do not matter: terms of a sum that is at least 1. The
   anchor's range is EXP_TERM_RANGE; below it is the (negligible) value at its end. */
#define EXP_TERM_RANGE_F32 86.0f
#define EXP_TERM_RANGE_F64 707.0

/* Rounded to one number, equal terms would all be wrong by the same, and so would their sum. So a term comes in two
   parts, to be added up apart: f32, the multiple of 2^-12 that 2^k is, of which sums are exact, and what it lacks; f64,
   the term and what its rounding lost. */
struct exp_term_f32 {
    float power, rest;
};
#define EXP_POWER_LEAST 0x1p-12f
struct exp_term_f64 {
    double term, lost;
};
HOST_DEVICE struct exp_term_f32 exp_term_f32(float x, const struct exp_anchor_f32 *m)
{
    const struct exp_parts_f32 parts = exp_reduce_f32(x, m, 0);
    struct exp_term_f32 term;
    term.power = parts.scale;
    term.rest = parts.scale * exp_less_1_f32(parts.d);
    return term;
}
HOST_DEVICE struct exp_term_f32 exp_terms_add(struct exp_term_f32 a, struct exp_term_f32 b)
{
    struct exp_term_f32 sum;
    sum.power = a.power + b.power;
    sum.rest = a.rest + b.rest;
    return sum;
}
/* The terms of x[0] and x[stride], of whose 2^k only the multiple of 2^-12 stays apart. */
HOST_DEVICE struct exp_term_f32 exp_2_terms_f32(const float *x, size_t stride, const struct exp_anchor_f32 *m)
{
    const struct exp_term_f32 first = exp_term_f32(x[0], m);
    const struct exp_parts_f32 parts = exp_reduce_f32(x[stride], m, 0);
    const float power = first.power + parts.scale;
    const float small = power < EXP_POWER_LEAST ? power : EXP_POWER_LEAST;
    struct exp_term_f32 sum;
    sum.power = power - small;
    sum.rest = fmaf(parts.scale, exp_less_1_f32(parts.d), first.rest) + small;
    return sum;
}
/* The terms of x[0], x[stride], ..., x[7 stride]. */
HOST_DEVICE struct exp_term_f32 exp_8_terms_f32(const float *x, size_t stride, const struct exp_anchor_f32 *m)
{
#define PAIR(i) exp_2_terms_f32(x + (i) * stride, stride, m)
    return exp_terms_add(exp_terms_add(PAIR(0), PAIR(2)), exp_terms_add(PAIR(4), PAIR(6)));
#undef PAIR
}
HOST_DEVICE struct exp_term_f64 exp_term_f64(double x, const struct exp_anchor_f64 *m)
{
    const struct exp_parts_f64 parts = exp_reduce_f64(x, m);
    const double d = parts.d + parts.rest, scale = scale_f64(parts.k), q = d + exp_square_f64(d);
    struct exp_term_f64 term;
    term.term = fma(scale, q, scale);
    term.lost = fma(scale, q, scale - term.term);
    return term;
}

/* exp(x - m) beyond the precision of f64: the factor between two partial sums. What the parts lose is kept. */
HOST_DEVICE pair exp_pair(double x, double m)
{
    const struct exp_anchor_f64 anchor = exp_anchor_f64(m, EXP_TERM_RANGE_F64);
    const struct exp_parts_f64 parts = exp_reduce_f64(x, &anchor);
    double lost, error;
    const double d = two_sum(parts.r, -anchor.r, &lost), rest = parts.rest + lost;
    const double square = exp_square_f64(d), scale = scale_f64(parts.k);
    const double one = two_sum(1.0, d, &error), low = error + (square + fma(rest, square + d, rest)), sum = one + low;
    pair factor;
    factor.high = sum * scale;
    factor.low = (low - (sum - one)) * scale;
    return factor;
}

/* What the second pass of softmax needs to know of the first: set once by softmax_constants_set. */
struct softmax_constants {
    double max;             /* the largest element; NaN when the result is NaN everywhere */
    double log_sum;         /* log of the sum of exp(x - max) */
    double inverse_high;    /* 1 / that sum, in two parts */
    double inverse_low;
    struct exp_anchor_f64 anchor;
    struct exp_anchor_f32 anchor_f32; /* the same for f32 arithmetic */
    float inverse_high_f32, inverse_low_f32; /* times 2^-24 */
};

/* How far below the maximum results still differ from 0: for f32 the smallest k is then -150, and 2^(k + 24) is normal. */
#define SOFTMAX_RANGE_F32 104.25f
#define SOFTMAX_RANGE_F64 760.0

/* exp(x - max) / sum, subnormal results included. */
HOST_DEVICE float softmax_f32(float x, const struct softmax_constants *c)
{
    const struct exp_parts_f32 parts = exp_reduce_f32(x, &c->anchor_f32, 24);
    const float y = c->inverse_high_f32 + fmaf(c->inverse_high_f32, exp_less_1_f32(parts.d), c->inverse_low_f32);
    return y * parts.scale; /* only this can be subnormal, and round */
}
HOST_DEVICE double softmax_f64(double x, const struct softmax_constants *c)
{
    const struct exp_parts_f64 parts = exp_reduce_f64(x, &c->anchor);
    const double d = parts.d, high = c->inverse_high, square = exp_square_f64(d);
    const double low = square + fma(parts.rest, square + d, parts.rest);
    const double y = high + fma(high, d, fma(high, low, c->inverse_low));
    return y * scale_f64(parts.k + 600) * 0x1p-600;
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
