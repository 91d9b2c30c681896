/* Exact sums of exponentials: each term is an integer times a power of two that depends on its element alone, and integers are
   added. The method, its proofs and its sources: docs/numerics.md.

   exp(x) = 2^n (1 + q), n an integer and q from a polynomial, both functions of x. A term is M 2^(n - fraction), M an integer
   next to (1 + q) 2^fraction. Terms whose n + 16 agree except for the last 5 bits share a bin. A bin is the exact sum of its M
   2^(last 5 bits). A partial keeps the bin of the largest element and the three below it. The sum of all other bins is below the
   whole sum by a factor of 2^-95. When the largest element grows, bins that are no longer among the four are forgotten whole. So
   a partial is a function of the elements, whatever their order and wherever sums were cut.

   n + 16, the place of a term, is taken from the low bits of x log2(e) + a large constant. The 16 puts elements from -11 to 10
   into one bin. */
#pragma once

#include "fold/exponential.h"

enum {
    EXP_BINS = 4,
    EXP_OFFSET = 16,
    EXP_FRACTION_F32 = 27,
    EXP_FRACTION_F64 = 55, /* in two parts, the lower of 28 bits */
    EXP_LOW_BITS = 28
};
#define EXP_PLACE_F32 (EXP_SHIFT_F32 + EXP_OFFSET)
#define EXP_PLACE_F64 (EXP_SHIFT_F64 + EXP_OFFSET)
/* Up to EXP_LIMIT an element is reduced in the arithmetic of its terms, beyond by integers. From EXP_HUGE on, terms of different
   elements are never within the bins' range of each other. */
#define EXP_LIMIT 32768
#define EXP_HUGE 0x1p59
/* Elements below the largest by more than this are in none of the four bins: 4 * 32 ln 2 is 89. */
#define EXP_BINS_RANGE 256

/* The partial: sums of terms in units of 2^(32 (bin - i) - 16 - fraction). They have room for 2^41 terms in f64 and 2^69 in f32. */
struct exp_bins {
    double max;   /* -inf until an element above -inf was taken; never NaN */
    int64_t bin;  /* of max */
    uint64_t nan; /* not 0 once a NaN was taken */
    uint64_t unused;
    uint128 sums[EXP_BINS];
};
#define EXP_NO_BIN (-((int64_t)1 << 60)) /* the bin of -inf; that of +inf is its negative */

/* x = n ln 2 + d + rest, for finite x of any size; seldom called. |d| is at most a little more than ln 2 / 2. */
struct exp_whole {
    int64_t n;
    double d, rest;
};
HOST_DEVICE struct exp_whole exp_whole_of(double x)
{
    struct exp_whole parts;
    const double magnitude = fabs(x), sign = x < 0.0 ? -1.0 : 1.0;
    if (magnitude <= EXP_LIMIT) {
        const double whole = fma(x, 0x1.71547652b82fep0, EXP_SHIFT_F64) - EXP_SHIFT_F64;
        parts.n = (int64_t)whole;
        parts.d = fma(whole, -EXP_LN2, x); /* exact */
        parts.rest = whole * -EXP_LN2_REST;
        return parts;
    }
    if (magnitude >= EXP_HUGE) {
        parts.n = (x < 0.0 ? -1 : 1) * ((int64_t)1 << 61) - EXP_OFFSET;
        parts.d = parts.rest = 0.0;
        return parts;
    }
    /* the mantissa times log2(e) 2^127, 181 bits: high has those above the last 64, of which 57 to 100 belong to the fraction */
    const uint64_t bits = f64_bits(magnitude), mantissa = (bits & 0xfffffffffffffu) | (uint64_t)1 << 52;
    const int places = 127 - ((int)(bits >> 52) - 1075) - 64;
    const uint128 low = (uint128)mantissa * 0xbe87fed0691d3e89u;
    const uint128 high = (uint128)mantissa * 0xb8aa3b295c17f0bbu + (low >> 64), rest = high & (((uint128)1 << places) - 1);
    const uint64_t fraction = places >= 64 ? (uint64_t)(rest >> (places - 64))
                                           : (uint64_t)(rest << (64 - places)) | (uint64_t)low >> places;
    /* read as a signed number, it is the distance to the nearest integer, in two parts that are each exact */
    const double upper = sign * (double)((int64_t)fraction >> 11) * 0x1p-53, lower = sign * (double)(fraction & 2047) * 0x1p-64;
    parts.n = (int64_t)(high >> places) + (int64_t)(fraction >> 63);
    parts.n = x < 0.0 ? -parts.n : parts.n;
    parts.d = upper * EXP_LN2;
    parts.rest = fma(upper, EXP_LN2, -parts.d) + (upper * EXP_LN2_REST + lower * EXP_LN2);
    return parts;
}

/* 2^EXP_FRACTION_F32 q, for |x| <= EXP_LIMIT. The place of the term is in the low bits of *place, which also shows a NaN. */
HOST_DEVICE float exp_fraction_f32(float x, uint32_t *place)
{
    const float unit = (float)(1 << EXP_FRACTION_F32);
    const float shifted = fmaf(x, 0x1.715476p0f, EXP_PLACE_F32), n = shifted - EXP_PLACE_F32, d = fmaf(n, -EXP_LN2_F32, x);
    *place = f32_bits(shifted);
    return fmaf(d, unit, exp_low_f32(n, d, unit));
}
/* M. */
HOST_DEVICE uint32_t exp_integer_f32(float x, uint32_t *place)
{
    return (1u << EXP_FRACTION_F32) + (uint32_t)nearest_i32(exp_fraction_f32(x, place));
}

/* M = high 2^28 + low, of d + rest: rounded to the nearest integer by adding constants; M is then in their low bits. */
struct exp_integer {
    uint32_t high, low;
};
HOST_DEVICE struct exp_integer exp_integer_of(double d, double rest)
{
    const double above = 0x1.8p25 + 1.0 - 0x1p-27, below = 0x1.8p-3 + 0x1p-27; /* 1, and 2^28 units from high to low */
    const double low = exp_low_f64(d, rest), shifted = (d + low) + above;
    struct exp_integer integer;
    integer.high = (uint32_t)f64_bits(shifted);
    integer.low = (uint32_t)f64_bits(((d - (shifted - above)) + low) + below);
    return integer;
}
HOST_DEVICE struct exp_integer exp_integer_f64(double x, uint64_t *place)
{
    const double shifted = fma(x, 0x1.71547652b82fep0, EXP_PLACE_F64), whole = shifted - EXP_PLACE_F64;
    *place = f64_bits(shifted);
    return exp_integer_of(fma(whole, -EXP_LN2, x), whole * -EXP_LN2_REST);
}

/* The bits of *place for a NaN, which no place has. */
#define EXP_IS_NO_PLACE_F32(bits) (((bits) & 0x30000000u) != 0)
#define EXP_IS_NO_PLACE_F64(bits) (((bits) & ((uint64_t)0x3c << 56)) != 0)

/* The place itself. */
HOST_DEVICE int64_t exp_place_f32(uint32_t bits) { return (int64_t)bits - (int64_t)f32_bits(EXP_SHIFT_F32); }
HOST_DEVICE int64_t exp_place_f64(uint64_t bits) { return (int64_t)(bits - f64_bits(EXP_SHIFT_F64)); }

/* x, but at least -EXP_LIMIT. NaN gives NaN; in f32 on the device, -EXP_LIMIT. */
HOST_DEVICE float exp_at_least_limit_f32(float x)
{
#ifdef __CUDA_ARCH__
    return fmaxf(x, -EXP_LIMIT);
#else
    return x < -EXP_LIMIT ? -EXP_LIMIT : x;
#endif
}
HOST_DEVICE double exp_at_least_limit_f64(double x) { return x < -EXP_LIMIT ? -EXP_LIMIT : x; }

/* integer * 2^(the last 5 bits of place), or 0 if it is not `here`: what is quick on the device, and as vectors on the host. */
HOST_DEVICE uint64_t exp_shifted(uint32_t integer, uint32_t place, bool here)
{
#ifdef __CUDA_ARCH__
    return (uint64_t)integer * (here ? 1u << (place & 31) : 0);
#else
    return (uint64_t)(integer & (0 - (uint32_t)here)) << (place & 31);
#endif
}

/* Brings the sums to a new, larger maximum: each bin moves down, and those below the last are dropped. */
HOST_DEVICE void exp_bins_raise(struct exp_bins *bins, double max, int64_t bin)
{
    if (max == bins->max)
        return;
    int64_t steps = bin - bins->bin;
    if (fabs(max) >= EXP_HUGE)
        steps = EXP_BINS;
    FOLD_UNROLL
    for (int step = 0; step < EXP_BINS; step++)
        if (step < steps) {
            FOLD_UNROLL
            for (int i = EXP_BINS - 1; i > 0; i--)
                bins->sums[i] = bins->sums[i - 1];
            bins->sums[0] = 0;
        }
    bins->max = max;
    bins->bin = bin;
}

HOST_DEVICE struct exp_bins exp_bins_identity(void)
{
    struct exp_bins bins;
    bins.max = -INFINITY;
    bins.bin = EXP_NO_BIN;
    bins.nan = bins.unused = 0;
    for (int i = 0; i < EXP_BINS; i++)
        bins.sums[i] = 0;
    return bins;
}

/* Clears everything else once a NaN was taken, so that all partials with a NaN are the same. */
HOST_DEVICE void exp_bins_settle(struct exp_bins *bins)
{
    const bool nan = bins->nan != 0;
    if (nan)
        *bins = exp_bins_identity();
    bins->nan = nan;
}

HOST_DEVICE void exp_bins_combine(struct exp_bins *a, const struct exp_bins *b)
{
    struct exp_bins other = *b;
    if (a->max < b->max)
        exp_bins_raise(a, b->max, b->bin);
    else
        exp_bins_raise(&other, a->max, a->bin);
    FOLD_UNROLL
    for (int i = 0; i < EXP_BINS; i++)
        a->sums[i] += other.sums[i];
    a->nan |= b->nan;
    exp_bins_settle(a);
}

/* Adds to the sum of a bin, given by its distance below the first. Does nothing if it is not among the four. */
HOST_DEVICE void exp_bins_take(struct exp_bins *bins, int64_t lower, uint128 total)
{
    FOLD_UNROLL
    for (int i = 0; i < EXP_BINS; i++)
        if (i == lower)
            bins->sums[i] += total;
}

/* The term of a finite element: an integer and its place. f32_terms: terms of elements up to EXP_LIMIT are computed in f32. */
HOST_DEVICE uint128 exp_integer_any(double x, bool f32_terms, int64_t *place)
{
    if (f32_terms && fabs(x) <= EXP_LIMIT) {
        uint32_t bits;
        const uint128 integer = exp_integer_f32((float)x, &bits);
        *place = exp_place_f32(bits);
        return integer;
    }
    const struct exp_whole parts = exp_whole_of(x);
    const struct exp_integer both = exp_integer_of(parts.d, parts.rest);
    *place = parts.n + EXP_OFFSET;
    return (((uint128)both.high << EXP_LOW_BITS) + both.low) >> (f32_terms ? EXP_FRACTION_F64 - EXP_FRACTION_F32 : 0);
}

/* Adds the term of one element, whatever it is. */
HOST_DEVICE void exp_bins_add(struct exp_bins *bins, double x, bool f32_terms)
{
    if (x != x || fabs(x) == INFINITY) {
        bins->nan |= x != x;
        if (x > bins->max)
            exp_bins_raise(bins, x, -EXP_NO_BIN);
        return;
    }
    int64_t place;
    const uint128 integer = exp_integer_any(x, f32_terms, &place);
    if (x > bins->max)
        exp_bins_raise(bins, x, place >> 5);
    if (fabs(bins->max) >= EXP_HUGE && x != bins->max)
        return;
    exp_bins_take(bins, bins->bin - (place >> 5), integer << (place & 31));
}

/* The product, as precise as a pair is. */
HOST_DEVICE pair exp_pairs_multiply(pair a, pair b)
{
    pair product;
    product.high = a.high * b.high;
    product.low = fma(a.high, b.high, -product.high) + (a.high * b.low + a.low * b.high);
    return product;
}

/* Exact, unless there are bits beyond 2^96 and many below. */
HOST_DEVICE pair exp_bin_value(uint128 sum)
{
    const uint64_t part = ((uint64_t)1 << 48) - 1;
    pair value;
    value.high = two_sum((double)((uint64_t)(sum >> 48) & part) * 0x1p48, (double)((uint64_t)sum & part), &value.low);
    if (sum >> 96 != 0)
        pair_add(&value, (double)(uint32_t)(sum >> 96) * 0x1p96);
    return value;
}

/* The sum without the term of the largest element, whose integer is taken out, relative to the reference of max. NaN if a NaN was
   taken, 0 if the maximum is infinite. */
HOST_DEVICE pair exp_bins_others(const struct exp_bins *bins, bool f32_terms)
{
    const int fraction = f32_terms ? EXP_FRACTION_F32 : EXP_FRACTION_F64;
    pair others;
    others.high = bins->nan != 0 ? (double)NAN : 0.0;
    others.low = 0.0;
    if (others.high != others.high || !is_finite(bins->max))
        return others;
    int64_t place;
    const uint128 integer = exp_integer_any(bins->max, f32_terms, &place), own = integer << (place & 31);
    FOLD_UNROLL
    for (int i = EXP_BINS; i-- > 0;) {
        const uint128 sum = bins->sums[i] - (i == 0 ? own : 0);
        if (sum == 0) /* most are */
            continue;
        const pair value = pair_scaled(exp_bin_value(sum), -32 * i - EXP_OFFSET - fraction);
        if (others.high == 0.0)
            others = value;
        else
            pair_combine(&others, &value);
    }
    /* that is in units of 2^(32 bin) */
    const struct exp_reference reference = exp_reference(bins->max);
    if (reference.base == 0.0)
        return pair_scaled(others, (int)(32 * bins->bin - reference.whole));
    const struct exp_whole max = exp_whole_of(bins->max);
    return pair_scaled(exp_pairs_multiply(others, exp_near(-max.d, -max.rest)), (int)(32 * bins->bin - max.n));
}
