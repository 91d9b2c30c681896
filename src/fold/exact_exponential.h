/* Exact sums of exponentials: each term is an integer times a power of two that depends on its element alone, and integers are
   added. The method, its proofs and its sources: docs/numerics.md.

   exp(x) = 2^n (1 + q), n an integer, both functions of x. A term is M 2^(n - fraction), M an integer next to (1 + q) 2^fraction. In f32 q is from
   a polynomial. In f64 1 + q is 2^(step / 64) exp(d): the power is from a table, and the polynomial short. Terms whose n + 16 agree except for the last 5 bits share a bin. A bin is the exact sum of its M
   2^(last 5 bits). A partial keeps the bin of the largest element and the three below it. The sum of all other bins is below the
   whole sum by a factor of 2^-95. When the largest element grows, bins that are no longer among the four are forgotten whole. So
   a partial is a function of the elements, whatever their order and wherever sums were cut.

   n + 16, the place of a term, is taken from the low bits of x log2(e) + a large constant, in f64 with the step below it. The 16 puts elements
   from -11 to 10 into one bin. */
#pragma once

#include "fold/exponential.h"
#include "fold/exponential_table.h"

enum {
    EXP_BINS = 4,
    EXP_OFFSET = 16,
    EXP_FRACTION_F32 = 27,
    EXP_FRACTION_F64 = 55,
    EXP_LOW_BITS = 28, /* M of f64 is added in two parts, this the lower's */
    EXP_STEP_BITS = 6,
    EXP_STEPS = 1 << EXP_STEP_BITS, /* of f64, of a power of two */
    EXP_COPIES = 8 /* of a power, in a GPU's shared memory */
};
#define EXP_PLACE_F32 (EXP_SHIFT_F32 + EXP_OFFSET)
#define EXP_PLACE_F64 (EXP_SHIFT_F64 + EXP_OFFSET * EXP_STEPS)
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

/* d and n, for |x| <= EXP_LIMIT. The place of the term is in the low bits of *place, which also shows a NaN. */
HOST_DEVICE float exp_placed_f32(float x, uint32_t *place, float *n)
{
    const float shifted = fmaf(x, 0x1.715476p0f, EXP_PLACE_F32);
    *place = f32_bits(shifted);
    *n = shifted - EXP_PLACE_F32;
    return fmaf(*n, -EXP_LN2_F32, x);
}
/* 2^EXP_FRACTION_F32 q, and what exp_low_f32 adds to it. */
HOST_DEVICE float exp_fraction_low_f32(float x, uint32_t *place, float *low)
{
    const float unit = (float)(1 << EXP_FRACTION_F32);
    float n;
    const float d = exp_placed_f32(x, place, &n);
    *low = exp_low_f32(n, d, unit);
    return fmaf(d, unit, *low);
}
HOST_DEVICE float exp_fraction_f32(float x, uint32_t *place)
{
    float low;
    return exp_fraction_low_f32(x, place, &low);
}
/* M. */
HOST_DEVICE uint32_t exp_integer_f32(float x, uint32_t *place)
{
    return (1u << EXP_FRACTION_F32) + (uint32_t)nearest_i32(exp_fraction_f32(x, place));
}

#ifdef __CUDACC__
static __device__ const uint64_t exp_device_powers[EXP_STEPS] = {EXP_POWERS};
#endif
#ifdef __CUDA_ARCH__
#define EXP_POWER(step) exp_device_powers[step]
#else
static const uint64_t exp_powers[EXP_STEPS] = {EXP_POWERS};
#define EXP_POWER(step) exp_powers[step]
#endif

/* 2^(step / 64): as an integer times 2^-55, and without the last three of its 56 bits. */
struct exp_power {
    double nearly;
    uint64_t integer;
};
HOST_DEVICE struct exp_power exp_power_of(uint64_t integer)
{
    struct exp_power power;
    power.integer = integer;
    power.nearly = f64_from_bits((integer >> 3) + ((uint64_t)1022 << 52));
    return power;
}

#ifdef __CUDACC__
/* A block's copies, in shared memory: of eight neighbouring lanes, which it serves together, each finds a power in banks of its own. */
static __device__ __forceinline__ struct exp_power *exp_block_powers(void)
{
    __shared__ __align__(16) struct exp_power powers[EXP_STEPS * EXP_COPIES];
    return powers;
}
/* All threads of a block that takes elements of f32 call this first. */
static __device__ __forceinline__ void exp_block_make(void)
{
    for (uint32_t i = threadIdx.x; i < EXP_STEPS * EXP_COPIES; i += blockDim.x)
        exp_block_powers()[i] = exp_power_of(exp_device_powers[i / EXP_COPIES]);
    __syncthreads();
}
#endif
#ifdef __CUDA_ARCH__
#define EXP_BLOCK_POWER(step) \
    *(const struct exp_power *)((const char *)exp_block_powers() \
                                + ((step) * (uint32_t)(EXP_COPIES * sizeof(struct exp_power)) | threadIdx.x % EXP_COPIES * (uint32_t)sizeof(struct exp_power)))
#else
#define EXP_BLOCK_POWER(step) exp_power_of(EXP_POWER(step))
#endif

/* M, of a power and what is left of x, |d| up to a little more than ln 2 / 128. The polynomial (Chebyshev interpolation) leaves an error below 2^-57.6.
   What M has beside the power's integer is rounded by adding a constant, and is then in the low bits. */
HOST_DEVICE uint64_t exp_integer_of(struct exp_power power, double d)
{
    const double shift = 0x1.8p-3;
    double p = 0x1.11111d92f1876p-7;
    p = fma(p, d, 0x1.55556b389e49dp-5);
    p = fma(p, d, 0x1.5555555555253p-3);
    p = fma(p, d, 0x1.ffffffffff579p-2);
    return (power.integer - f64_bits(shift)) + f64_bits(fma(power.nearly, fma(d * d, p, d), shift));
}

/* Of |x| <= EXP_LIMIT: x = k ln 2 / 64 + d. k + 16 * 64 is in the low 32 bits of *place, as a signed number; *place also shows a NaN. *d is exact, and does
   not have what the constant ln 2 lacks. origin is EXP_PLACE_F64; 64 n less makes every place n lower. */
HOST_DEVICE double exp_steps_from(double x, double origin, double *d, uint64_t *place)
{
    const double shifted = fma(x, 0x1.71547652b82fep0 * EXP_STEPS, origin), k = shifted - origin;
    *place = f64_bits(shifted);
    *d = fma(k, -EXP_LN2 / EXP_STEPS, x);
    return k;
}
HOST_DEVICE double exp_steps_f64(double x, double *d, uint64_t *place) { return exp_steps_from(x, EXP_PLACE_F64, d, place); }
/* M. With the power that was found before, if it was; else in_block: with one of the block's. */
HOST_DEVICE uint64_t exp_integer_from(double x, double origin, uint64_t *place, const uint64_t *found, const bool in_block)
{
    double d;
    const double k = exp_steps_from(x, origin, &d, place);
    const uint32_t step = (uint32_t)*place % EXP_STEPS;
    const struct exp_power power = found != NULL ? exp_power_of(*found) : in_block ? EXP_BLOCK_POWER(step) : exp_power_of(EXP_POWER(step));
    return exp_integer_of(power, fma(k, -EXP_LN2_REST / EXP_STEPS, d));
}
HOST_DEVICE uint64_t exp_integer_f64(double x, uint64_t *place, const uint64_t *found, const bool in_block)
{
    return exp_integer_from(x, EXP_PLACE_F64, place, found, in_block);
}

/* The bits of *place for a NaN, which no place has. */
#define EXP_IS_NO_PLACE_F32(bits) (((bits) & 0x30000000u) != 0)
#define EXP_IS_NO_PLACE_F64(bits) (((bits) & ((uint64_t)0x3c << 56)) != 0)

/* The place itself. */
HOST_DEVICE int64_t exp_place_f32(uint32_t bits) { return (int64_t)bits - (int64_t)f32_bits(EXP_SHIFT_F32); }
HOST_DEVICE int64_t exp_place_f64(uint64_t bits) { return (int32_t)(uint32_t)bits >> EXP_STEP_BITS; }

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

/* sum + integer * 2^(the last 5 bits of place), or the sum if it is not `here`: what is quick on the device, and as vectors on the host. */
HOST_DEVICE uint64_t exp_add_shifted(uint64_t sum, uint32_t integer, uint32_t place, bool here)
{
#ifdef __CUDA_ARCH__
    return add_product(sum, integer, here ? 1u << (place & 31) : 0);
#else
    return sum + ((uint64_t)(integer & (0 - (uint32_t)here)) << (place & 31));
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
    bins->max = max;
    bins->bin = bin;
    if (steps == 0) /* mostly */
        return;
    FOLD_UNROLL
    for (int step = 0; step < EXP_BINS; step++)
        if (step < steps) {
            FOLD_UNROLL
            for (int i = EXP_BINS - 1; i > 0; i--)
                bins->sums[i] = bins->sums[i - 1];
            bins->sums[0] = 0;
        }
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

/* The term of a finite element in f64: M, its place, and the step and what is left of x below it. */
struct exp_term {
    uint64_t integer;
    int64_t place;
    uint32_t step;
    double d;
};
HOST_DEVICE struct exp_term exp_term_any(double x)
{
    struct exp_term term;
    uint64_t bits;
    if (fabs(x) <= EXP_LIMIT) {
        exp_steps_f64(x, &term.d, &bits);
        term.integer = exp_integer_f64(x, &bits, NULL, false);
        term.place = exp_place_f64(bits);
    } else {
        const struct exp_whole parts = exp_whole_of(x);
        const double k = exp_steps_f64(parts.d, &term.d, &bits);
        term.integer = exp_integer_of(exp_power_of(EXP_POWER((uint32_t)bits % EXP_STEPS)), fma(k, -EXP_LN2_REST / EXP_STEPS, term.d) + parts.rest);
        term.place = parts.n + exp_place_f64(bits);
    }
    term.step = (uint32_t)bits % EXP_STEPS;
    return term;
}
/* An integer and its place. f32_terms: terms of elements up to EXP_LIMIT are computed in f32. */
HOST_DEVICE uint128 exp_integer_any(double x, bool f32_terms, int64_t *place)
{
    if (f32_terms && fabs(x) <= EXP_LIMIT) {
        uint32_t bits;
        const uint128 integer = exp_integer_f32((float)x, &bits);
        *place = exp_place_f32(bits);
        return integer;
    }
    const struct exp_term term = exp_term_any(x);
    *place = term.place;
    return term.integer >> (f32_terms ? EXP_FRACTION_F64 - EXP_FRACTION_F32 : 0);
}
HOST_DEVICE int64_t exp_bin_any(double x, bool f32_terms)
{
    int64_t place;
    exp_integer_any(x, f32_terms, &place);
    return place >> 5;
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

/* Of a sum below 2^96: exact; and rounded. */
HOST_DEVICE pair exp_bin_value_96(uint128 sum)
{
    const uint64_t part = ((uint64_t)1 << 48) - 1;
    pair value;
    value.high = two_sum((double)((uint64_t)(sum >> 48) & part) * 0x1p48, (double)((uint64_t)sum & part), &value.low);
    return value;
}
HOST_DEVICE double exp_bin_rounded_96(uint128 sum)
{
    const uint64_t part = ((uint64_t)1 << 48) - 1;
    return fma((double)((uint64_t)(sum >> 48) & part), 0x1p48, (double)((uint64_t)sum & part));
}
/* Exact, unless there are bits beyond 2^96 and many below. */
HOST_DEVICE pair exp_bin_value(uint128 sum)
{
    pair value = exp_bin_value_96(sum);
    if (sum >> 96 != 0)
        pair_add(&value, (double)(uint32_t)(sum >> 96) * 0x1p96);
    return value;
}

/* The sum, less `own` of the first bin, relative to the reference of max. NaN if a NaN was taken, 0 if the maximum is infinite. */
HOST_DEVICE pair exp_bins_less(const struct exp_bins *bins, bool f32_terms, uint128 own)
{
    const int fraction = f32_terms ? EXP_FRACTION_F32 : EXP_FRACTION_F64;
    pair total;
    total.high = bins->nan != 0 ? (double)NAN : 0.0;
    total.low = 0.0;
    if (total.high != total.high || !is_finite(bins->max))
        return total;
    FOLD_UNROLL
    for (int i = EXP_BINS; i-- > 0;) {
        const uint128 sum = bins->sums[i] - (i == 0 ? own : 0);
        if (sum == 0) /* most are */
            continue;
        const pair value = pair_scaled(exp_bin_value(sum), -32 * i - EXP_OFFSET - fraction);
        if (total.high == 0.0)
            total = value;
        else
            pair_combine(&total, &value);
    }
    /* that is in units of 2^(32 bin) */
    const struct exp_reference reference = exp_reference(bins->max);
    if (reference.base == 0.0)
        return pair_scaled(total, (int)(32 * bins->bin - reference.whole));
    const struct exp_whole max = exp_whole_of(bins->max);
    return pair_scaled(exp_pairs_multiply(total, exp_near(-max.d, -max.rest)), (int)(32 * bins->bin - max.n));
}
/* The sum without the term of the largest element, whose integer is taken out. */
HOST_DEVICE pair exp_bins_others(const struct exp_bins *bins, bool f32_terms)
{
    int64_t place;
    const double max = is_finite(bins->max) ? bins->max : 0.0;
    const uint128 integer = exp_integer_any(max, f32_terms, &place);
    return exp_bins_less(bins, f32_terms, integer << (place & 31));
}
