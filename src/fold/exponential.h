/* exp(t + lost) as 2^k * (1 + r + low), and the softmax of one element: one fixed sequence of fused operations, the same
   bits on host and device. lost is what rounding took from t.

   Range reduction: k = t * log2(e) to the nearest integer by adding a large constant, r = t - k ln 2 with ln 2 in two
   parts; the first fused step is exact, for |t| below 2^8 (f32) and 2^11 (f64), and the second goes into low. With P from
   Chebyshev interpolation of (expm1(r) - r) / r^2 on |r| <= ln(2)/2, whose error is below 2^-30 (f32) and 2^-61 (f64),
   low = r^2 P(r) + what is small. Giving r and low, not 1 + r + low, lets the caller scale and round once:
   c * 2^k * (1 + r + low) = 2^k * (c + (c * r + c * low)). */
#ifndef ALLFOLD_EXPONENTIAL_H
#define ALLFOLD_EXPONENTIAL_H

#include "fold/arithmetic.h"

/* For -2^8 < t < 2^8. NaN gives NaN and some k. */
HOST_DEVICE float exp_parts_f32(float t, float lost, float *low, int32_t *k)
{
    const float shift = 0x1.8p23f;
    const float shifted = fmaf(t, 0x1.715476p0f, shift);
    const float n = shifted - shift;
    *k = (int32_t)(f32_bits(shifted) - 0x4b400000u);
    const float r = fmaf(n, -0x1.62e43p-1f, t), rest = fmaf(n, 0x1.05c61p-29f, lost);
    float p = 0x1.a124f2p-13f;
    p = fmaf(p, r, 0x1.6d4324p-10f);
    p = fmaf(p, r, 0x1.1110ep-7f);
    p = fmaf(p, r, 0x1.5554eap-5f);
    p = fmaf(p, r, 0x1.555556p-3f);
    p = fmaf(p, r, 0x1p-1f);
    const float square = r * r * p;
    *low = square + fmaf(rest, square + r, rest);
    return r;
}

/* For -2^11 < t < 2^11. */
HOST_DEVICE double exp_parts_f64(double t, double lost, double *low, int32_t *k)
{
    const double shift = 0x1.8p52;
    const double shifted = fma(t, 0x1.71547652b82fep0, shift);
    const double n = shifted - shift;
    *k = (int32_t)(uint32_t)f64_bits(shifted);
    const double r = fma(n, -0x1.62e42fefa39efp-1, t), rest = fma(n, -0x1.abc9e3b39803fp-56, lost);
    double p = 0x1.1f730349868cep-29;
    p = fma(p, r, 0x1.af4de97ca4194p-26);
    p = fma(p, r, 0x1.27e4db646b17ep-22);
    p = fma(p, r, 0x1.71de0231960ebp-19);
    p = fma(p, r, 0x1.a01a01a6d889cp-16);
    p = fma(p, r, 0x1.a01a01abe7fe1p-13);
    p = fma(p, r, 0x1.6c16c16c162d4p-10);
    p = fma(p, r, 0x1.11111111100dcp-7);
    p = fma(p, r, 0x1.5555555555556p-5);
    p = fma(p, r, 0x1.5555555555557p-3);
    p = fma(p, r, 0x1p-1);
    const double square = r * r * p;
    *low = square + fma(rest, square + r, rest);
    return r;
}

/* 2^k, -126 <= k <= 127 and -1022 <= k <= 1023. */
HOST_DEVICE float scale_f32(int32_t k) { return f32_from_bits((uint32_t)(k + 127) << 23); }
HOST_DEVICE double scale_f64(int32_t k) { return f64_from_bits((uint64_t)(uint32_t)(k + 1023) << 52); }

/* exp(t) for t <= 0, where results below the smallest normal number do not matter: terms of a sum that is at least 1.
   Below the bound it is the (negligible) value at the bound; NaN stays NaN. */
HOST_DEVICE double exp_term_f64(double t)
{
    int32_t k;
    double low;
    const double r = exp_parts_f64(t < -708.0 ? -708.0 : t, 0.0, &low, &k);
    const double scale = scale_f64(k);
    return fma(scale, r + low, scale);
}

/* The same of x - base, whose rounding is put back: it would cost |x - base| / 2 units, and equal elements would lose it
   all the same way, so that their sum would, too. base is finite. */
HOST_DEVICE float exp_term_of_f32(float x, float base)
{
    float t = x - base;
    const float back = t - x;
    float lost = (x - (t - back)) - (base + back);
    lost = t < -87.0f ? 0.0f : lost;
    t = t < -87.0f ? -87.0f : t;
    int32_t k;
    float low;
    const float r = exp_parts_f32(t, lost, &low, &k);
    const float scale = scale_f32(k);
    return fmaf(scale, r + low, scale);
}
HOST_DEVICE double exp_term_of_f64(double x, double base)
{
    double t = x - base;
    const double back = t - x;
    double lost = (x - (t - back)) - (base + back);
    lost = t < -708.0 ? 0.0 : lost;
    t = t < -708.0 ? -708.0 : t;
    int32_t k;
    double low;
    const double r = exp_parts_f64(t, lost, &low, &k);
    const double scale = scale_f64(k);
    return fma(scale, r + low, scale);
}

/* What the second pass of softmax needs to know of the first: set once by softmax_constants. */
struct softmax_constants {
    double max;             /* the largest element; NaN when the result is NaN everywhere */
    double inverse_high;    /* 1 / sum of exp(x - max), in two parts */
    double inverse_low;
    double log_sum;         /* log of that sum */
    float max_f32, inverse_high_f32, inverse_low_f32; /* the same for f32 arithmetic */
};

/* exp(x - max) / sum, subnormal results included. The difference x - max is kept exactly, in two parts: rounded, it
   would cost up to |x - max| / 2 units in the last place. */
HOST_DEVICE float softmax_f32(float x, const struct softmax_constants *c)
{
    float t = x - c->max_f32;
    const float back = t - x;
    float lost = (x - (t - back)) - (c->max_f32 + back);
    lost = t < -120.0f ? 0.0f : lost;
    t = t < -120.0f ? -120.0f : t; /* exp(-120) is 0 in f32, as is all below */
    int32_t k;
    float low;
    const float r = exp_parts_f32(t, lost, &low, &k);
    const float high = c->inverse_high_f32;
    const float y = high + fmaf(high, r, fmaf(high, low, c->inverse_low_f32));
    return y * scale_f32(k + 100) * 0x1p-100f; /* in two steps: only the last can be subnormal, and round */
}
HOST_DEVICE double softmax_f64(double x, const struct softmax_constants *c)
{
    double t = x - c->max;
    const double back = t - x;
    double lost = (x - (t - back)) - (c->max + back);
    lost = t < -760.0 ? 0.0 : lost;
    t = t < -760.0 ? -760.0 : t;
    int32_t k;
    double low;
    const double r = exp_parts_f64(t, lost, &low, &k);
    const double high = c->inverse_high;
    const double y = high + fma(high, r, fma(high, low, c->inverse_low));
    return y * scale_f64(k + 600) * 0x1p-600;
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
