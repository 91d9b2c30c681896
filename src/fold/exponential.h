/* exp(x - m), m the largest element, as 2^k * (1 + q), and the softmax of one element: one fixed sequence of fused
   operations, the same bits on host and device.

   x - m is never formed: rounded, it would cost |x - m| / 2 units in the last place, and alike for equal elements, so
   that their sum would lose it too. Each of the two is reduced by itself, x = n ln 2 + r, and exp(x - m) is
   2^(n - n') * exp(r - r'). With ln 2 = H + L, H rounded to the type, r = fma(-n, H, x) is exact for |x| <= 2048, and
   r - r' nearly so; what L contributes, (n' - n) L, is small. n = x log2(e) to the nearest integer by adding a large
   constant. For x = m this gives 2^0 * (1 + 0), exactly. Beyond |m| = 2048, m is subtracted from both first: exact for all
   x that count, since they lie within a factor of two of m (Sterbenz).

   exp(d) - 1 for |d| <= ln 2 is d + d^2 P(d), P from Chebyshev interpolation of (expm1(d) - d) / d^2: relative error
   below 2^-28 (f32) and 2^-57 (f64). */
#ifndef ALLFOLD_EXPONENTIAL_H
#define ALLFOLD_EXPONENTIAL_H

#include "fold/arithmetic.h"

#define EXP_WHOLE 2048 /* up to this magnitude m is reduced as it is */

/* m, reduced once for many x. least: x - base below it is taken for it. */
struct exp_anchor_f32 {
    float base, shifted, r, least;
};
struct exp_anchor_f64 {
    double base, shifted, r, least;
};

/* What exp(x - m) is made of: 2^k * exp(d + rest), k = difference = n - n'. */
struct exp_parts_f32 {
    float d, difference, scale; /* scale is 2^(k + up); rest is difference * -L */
};
struct exp_parts_f64 {
    int32_t k;
    double d, rest, r; /* r: d before r' was subtracted */
};

#define EXP_MINUS_L_F32 0x1.05c61p-29f

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
    const float shifted = fmaf(u, 0x1.715476p0f, EXP_SHIFT_F32);
    const uint32_t bias = ((uint32_t)(127 + up) - f32_bits(m->shifted)) << 23;
    parts.scale = f32_from_bits((f32_bits(shifted) << 23) + bias);
    parts.d = fmaf(shifted - EXP_SHIFT_F32, -0x1.62e43p-1f, u) - m->r;
    parts.difference = shifted - m->shifted;
    return parts;
}
HOST_DEVICE struct exp_parts_f64 exp_reduce_f64(double x, const struct exp_anchor_f64 *m)
{
    struct exp_parts_f64 parts;
    double u = x - m->base;
    u = u < m->least ? m->least : u;
    const double shifted = fma(u, 0x1.71547652b82fep0, EXP_SHIFT_F64);
    parts.k = (int32_t)(uint32_t)(f64_bits(shifted) - f64_bits(m->shifted));
    parts.r = fma(shifted - EXP_SHIFT_F64, -0x1.62e42fefa39efp-1, u);
    parts.d = parts.r - m->r;
    parts.rest = (shifted - m->shifted) * -0x1.abc9e3b39803fp-56;
    return parts;
}

/* P(d), and d^2 P(d), which is exp(d) - 1 - d, for |d| <= ln 2. */
HOST_DEVICE float exp_polynomial_f32(float d)
{
    float p = 0x1.a402b2p-16f;
    p = fmaf(p, d, 0x1.a4fe02p-13f);
    p = fmaf(p, d, 0x1.6c12fep-10f);
    p = fmaf(p, d, 0x1.110c5ap-7f);
    p = fmaf(p, d, 0x1.555558p-5f);
    p = fmaf(p, d, 0x1.55555ap-3f);
    return fmaf(p, d, 0x1p-1f);
}
HOST_DEVICE double exp_square_f64(double d)
{
    double p = 0x1.963a4acb7c508p-37;
    p = fma(p, d, 0x1.63c7a56efd600p-33);
    p = fma(p, d, 0x1.1eebf8cba3ebap-29);
    p = fma(p, d, 0x1.ae6129ab30c25p-26);
    p = fma(p, d, 0x1.27e4fc62148f7p-22);
    p = fma(p, d, 0x1.71de3c2ac773ep-19);
    p = fma(p, d, 0x1.a01a019f965f9p-16);
    p = fma(p, d, 0x1.a01a019f12942p-13);
    p = fma(p, d, 0x1.6c16c16c16e11p-10);
    p = fma(p, d, 0x1.1111111111507p-7);
    p = fma(p, d, 0x1.5555555555555p-5);
    p = fma(p, d, 0x1.5555555555554p-3);
    p = fma(p, d, 0x1p-1);
    return d * d * p;
}

/* 2^k, -1022 <= k <= 1023. */
HOST_DEVICE double scale_f64(int32_t k) { return f64_from_bits((uint64_t)(uint32_t)(k + 1023) << 52); }

/* exp(x - m), where results below the smallest normal number do not matter: terms of a sum that is at least 1. The
   anchor's range is EXP_TERM_RANGE; below it is the (negligible) value at its end. */
#define EXP_TERM_RANGE_F32 86.0f
#define EXP_TERM_RANGE_F64 707.0
HOST_DEVICE float exp_term_f32(float x, const struct exp_anchor_f32 *m)
{
    const struct exp_parts_f32 parts = exp_reduce_f32(x, m, 0);
    const float d = fmaf(parts.difference, EXP_MINUS_L_F32, parts.d);
    return fmaf(parts.scale, fmaf(d * d, exp_polynomial_f32(d), d), parts.scale);
}
HOST_DEVICE double exp_term_f64(double x, const struct exp_anchor_f64 *m)
{
    const struct exp_parts_f64 parts = exp_reduce_f64(x, m);
    const double d = parts.d + parts.rest, scale = scale_f64(parts.k);
    return fma(scale, d + exp_square_f64(d), scale);
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
    float inverse_high_f32, inverse_low_f32;
};

/* How far below the maximum results still differ from 0. */
#define SOFTMAX_RANGE_F32 120.0f
#define SOFTMAX_RANGE_F64 760.0

/* exp(x - max) / sum, subnormal results included. */
HOST_DEVICE float softmax_f32(float x, const struct softmax_constants *c)
{
    const struct exp_parts_f32 parts = exp_reduce_f32(x, &c->anchor_f32, 100);
    const float d = parts.d, high = c->inverse_high_f32, rest = parts.difference * EXP_MINUS_L_F32;
    const float square = d * d * exp_polynomial_f32(d), low = square + fmaf(rest, square + d, rest);
    const float y = high + fmaf(high, d, fmaf(high, low, c->inverse_low_f32));
    return y * parts.scale * 0x1p-100f; /* in two steps: only the last can be subnormal, and round */
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
