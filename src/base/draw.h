/* Computes the elements of generated arrays, on host and device. Each is a function of the generator, the type and the index
   alone, and the same bits come out of any compiler and processor: integers, and IEEE +, -, *, /, sqrt and fma in a fixed
   order, with no function of a mathematical library whose result may differ. Compile without contraction (-ffp-contract=off,
   --fmad=false). Used by array/draw_loops.c and kernels/generate.cu, which differ only in how they go through the elements. */
#pragma once

#include "base/elements.h"
#include "base/generator.h"

#include <math.h>

#if defined(__clang__) && !defined(__CUDACC__)
#pragma STDC FP_CONTRACT OFF
#endif

/* How an element is made: as a real number, which is then rounded to the type, or as its bits. */
enum draw_kind {
    DRAW_UNIFORM,       /* real */
    DRAW_NORMAL,        /* real; logits too */
    DRAW_RAMP,          /* real */
    DRAW_UNIFORM_WHOLE, /* bits, as all that follow */
    DRAW_RAMP_WHOLE,
    DRAW_WIDE,
    DRAW_CONSTANT
};

/* A generator and its type, made ready (draw_prepare, array/draw.c). Plain bytes: passed to kernels by value. */
struct draw {
    allfold_type type;
    enum draw_kind kind;
    bool floating, is_signed; /* the type */
    uint64_t state;           /* of the hash, before element 0 */
    double a, b;              /* uniform: lo, hi; normal: mean, sd; ramp: start, step; wide: the lowest exponent */
    double outliers;          /* logits: their share; else 0 */
    uint64_t whole, span;     /* integers: lo and hi - lo + 1 (0: 2^64); start and step. Constants: the bits. wide: exponents */
    double unit;              /* uniform: 1 / 2^(64 - shift) */
    int shift;                /* uniform: bits of the hash that the type's significand has no room for */
    int fraction_bits, exponent_min; /* wide: of the floating-point type */
    double least, greatest;   /* real numbers beyond become these, or in integers the last two: */
    uint64_t whole_least, whole_greatest;
};

#define DRAW_OUTLIER_FACTOR 10.0

/* SplitMix64: a Weyl sequence through a finalizer. Steele, Lea, Flood, "Fast splittable pseudorandom number
   generators" (OOPSLA 2014); constants of Stafford's variant 13. The seed goes through the finalizer too, so that
   neighbouring seeds begin at unrelated places of the sequence. */
#define DRAW_WEYL UINT64_C(0x9e3779b97f4a7c15)

HOST_DEVICE uint64_t draw_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* The random bits of an element, and others for the same element. */
HOST_DEVICE uint64_t draw_hash(const struct draw *d, uint64_t index) { return draw_mix(d->state + (index + 1) * DRAW_WEYL); }
HOST_DEVICE uint64_t draw_again(uint64_t h) { return draw_mix(h ^ UINT64_C(0xd1b54a32d192ed03)); }

/* The high half of h * span: h to a number in [0, span) with a bias of at most span / 2^64. */
HOST_DEVICE uint64_t draw_scaled(uint64_t h, uint64_t span)
{
#if defined(__CUDA_ARCH__) && defined(__NVCC__)
    return __umul64hi(h, span);
#else
    return (uint64_t)(((uint128)h * span) >> 64);
#endif
}

HOST_DEVICE double draw_clamp(double x, double least, double greatest)
{
    return x < least ? least : x > greatest ? greatest : x;
}

/* u takes as many bits as the type's significand has: the default range is then exact in every type, and never 1. */
HOST_DEVICE double draw_uniform(const struct draw *d, uint64_t h)
{
    const double u = (double)(int64_t)(h >> d->shift) * d->unit;
    return draw_clamp(d->a * (1.0 - u) + d->b * u, d->a, d->b); /* not lo + (hi - lo) * u: hi - lo may overflow */
}

/* ---- normal deviates: the inverse of their distribution at 0.5 + q. PPND16 of Wichura, Algorithm AS 241, Applied
   Statistics 37 (1988). One rational function for the centre, where 85 % of them are, two of a logarithm for the tails. */

#define DRAW_CENTRE 0.425
#define DRAW_HORNER7(r, c7, c6, c5, c4, c3, c2, c1, c0)                                                                     \
    (((((((c7 * r + c6) * r + c5) * r + c4) * r + c3) * r + c2) * r + c1) * r + c0)

/* q: the middle of one of 2^52 equal cells of (-0.5, 0.5): [1, 2) by its bits, then exact differences. */
HOST_DEVICE double draw_cell(uint64_t h) { return f64_from_bits((h >> 12) | UINT64_C(0x3ff0000000000000)) - 1.5 + 0x1p-53; }
HOST_DEVICE bool draw_in_tail(double q) { return fabs(q) > DRAW_CENTRE; }

HOST_DEVICE double draw_centre(double q)
{
    const double r = 0.180625 - q * q;
    return q *
           DRAW_HORNER7(r, 2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
                        13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608) /
           DRAW_HORNER7(r, 5226.495278852854561, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
                        5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0);
}

/* -log(p) for 0 < p < 1: p = m * 2^e with m in [sqrt(1/2), sqrt(2)); log(m) = 2 atanh((m - 1) / (m + 1)), whose series
   ends below 2^-53 after these terms. */
HOST_DEVICE double draw_minus_log(double p)
{
    const uint64_t bits = f64_bits(p);
    const double half = f64_from_bits((bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3fe0000000000000));
    const bool small = half < 0x1.6a09e667f3bcdp-1;
    const double m = small ? half * 2.0 : half;
    const int e = (int)(bits >> 52) - (small ? 1023 : 1022);
    const double s = (m - 1.0) / (m + 1.0), s2 = s * s;
    double series = 1.0 / 21.0;
    series = series * s2 + 1.0 / 19.0;
    series = series * s2 + 1.0 / 17.0;
    series = series * s2 + 1.0 / 15.0;
    series = series * s2 + 1.0 / 13.0;
    series = series * s2 + 1.0 / 11.0;
    series = series * s2 + 1.0 / 9.0;
    series = series * s2 + 1.0 / 7.0;
    series = series * s2 + 1.0 / 5.0;
    series = series * s2 + 1.0 / 3.0;
    series = series * s2 + 1.0;
    return -((double)e * 0x1.62e42fefa39efp-1 + 2.0 * s * series);
}

/* The argument of a tail's function. Up to DRAW_FAR it is the near one's; of 4e10 elements one has more. */
#define DRAW_FAR 5.0
HOST_DEVICE double draw_tail_argument(double q) { return sqrt(draw_minus_log(0.5 - fabs(q))); }

HOST_DEVICE double draw_near_tail(double q, double argument)
{
    const double r = argument - 1.6;
    const double x = DRAW_HORNER7(r, 7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
                                  1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959,
                                  1.42343711074968357734) /
                     DRAW_HORNER7(r, 1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
                                  0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494,
                                  2.05319162663775882187, 1.0);
    return q < 0.0 ? -x : x;
}

HOST_DEVICE double draw_far_tail(double q, double argument)
{
    const double r = argument - 5.0;
    const double x = DRAW_HORNER7(r, 2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
                                  0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699,
                                  6.6579046435011037772) /
                     DRAW_HORNER7(r, 2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
                                  7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531,
                                  0.59983220655588793769, 1.0);
    return q < 0.0 ? -x : x;
}

/* A deviate to the element's number, and what an outlier among logits is multiplied with, 1 for others. */
HOST_DEVICE double draw_normal(const struct draw *d, double deviate) { return d->a + d->b * deviate; }
HOST_DEVICE double draw_outlier(const struct draw *d, uint64_t h)
{
    return (double)(int64_t)(draw_again(h) >> 11) * 0x1p-53 < d->outliers ? DRAW_OUTLIER_FACTOR : 1.0;
}

/* ---- the other distributions */

/* start + step * index rounded to f64: to nearest for f64 elements, else to odd, so that the second rounding, to the
   element, is the right one of the exact number (Boldo and Melquiond, 2008). */
HOST_DEVICE double draw_ramp(const struct draw *d, uint64_t i)
{
    const double index = (double)i, nearest = fma(d->b, index, d->a);
    if (d->type == ALLFOLD_F64)
        return nearest;
    /* what nearest lacks of the exact number: its sign is right, though it may itself be rounded */
    const double product = d->b * index, product_low = fma(d->b, index, -product);
    const double sum = product + d->a, part = sum - product;
    const double sum_low = (product - (sum - part)) + (d->a - part);
    const double lack = ((sum - nearest) + sum_low) + product_low;
    const uint64_t bits = f64_bits(nearest);
    if (lack == 0.0 || (bits & 1) != 0)
        return nearest;
    return f64_from_bits((lack > 0.0) == (nearest > 0.0) ? bits + 1 : bits - 1);
}

HOST_DEVICE uint64_t draw_wide(const struct draw *d, uint64_t h)
{
    const int exponent = (int)d->a + (int)draw_scaled(h, d->span);
    const uint64_t random = draw_again(h), negative = random >> 63;
    if (d->floating) {
        const uint64_t one = UINT64_C(1) << d->fraction_bits, fraction = random & (one - 1);
        const uint64_t magnitude = exponent >= d->exponent_min
                                       ? (uint64_t)(exponent - d->exponent_min + 1) << d->fraction_bits | fraction
                                       : (one | fraction) >> (d->exponent_min - exponent);
        return magnitude | (negative != 0 ? d->whole : 0);
    }
    const uint64_t top = exponent < 0 ? 0 : UINT64_C(1) << exponent;
    const uint64_t magnitude = exponent < 0 ? 0 : top | (random & (top - 1));
    return d->is_signed && negative != 0 ? 0 - magnitude : magnitude;
}

/* An element's bits, of one of the kinds that are drawn so. */
HOST_DEVICE uint64_t draw_bits(const struct draw *d, enum draw_kind kind, uint64_t index)
{
    if (kind == DRAW_UNIFORM_WHOLE)
        return d->whole + (d->span == 0 ? draw_hash(d, index) : draw_scaled(draw_hash(d, index), d->span));
    if (kind == DRAW_RAMP_WHOLE)
        return d->whole + d->span * index; /* the parser has seen that it does not wrap */
    return kind == DRAW_WIDE ? draw_wide(d, draw_hash(d, index)) : d->whole;
}

/* ---- real numbers to integers: in two's complement, rounded to nearest even and then kept within the type */
HOST_DEVICE uint64_t draw_whole(const struct draw *d, double x)
{
    /* below 2^52 adding and subtracting 2^52 leaves the nearest integer; above, every double is one */
    const double magnitude = fabs(x);
    const double near = magnitude < 0x1p52 ? copysign((magnitude + 0x1p52) - 0x1p52, x) : x;
    if (near >= d->greatest)
        return d->whole_greatest;
    if (near <= d->least)
        return d->whole_least;
    return d->is_signed ? (uint64_t)(int64_t)near : (uint64_t)near;
}
