/* Makes the constants of softmax's second pass from a (max, sum of exponentials): on the host, and in kernels that keep their
   elements on the chip between the passes. */
#pragma once

#include "fold/arithmetic.h"
#include "fold/exact_exponential.h"
#include "fold/exponential.h"

/* The logarithm of a positive pair, low at most half an ulp of high, in operations that are the same everywhere. Its error is
   within 2^-60 of itself or of 1. */
HOST_DEVICE pair log_pair(pair x)
{
    const struct log_parts parts = log_parts(x.high);
    /* 2 atanh z, z = (m + low - 1) / (m + low + 1), |z| < 0.172 */
    double lost;
    const double low = x.low * parts.down, below = two_sum(parts.m, 1.0, &lost), above = parts.m - 1.0;
    const double z = above / below, rest = (fma(-z, below, above) + (low - z * (lost + low))) / below, square = z * z;
    double p = fma(fma(fma(fma(1.0 / 25, square, 1.0 / 23), square, 1.0 / 21), square, 1.0 / 19), square, 1.0 / 17);
    p = fma(fma(fma(fma(p, square, 1.0 / 15), square, 1.0 / 13), square, 1.0 / 11), square, 1.0 / 9); /* no loop, of which compilers make no vectors */
    p = fma(fma(fma(p, square, 1.0 / 7), square, 1.0 / 5), square, 1.0 / 3);
    pair log;
    log.high = two_sum(parts.k * 0x1.62e42fefa38p-1, 2.0 * z, &lost);
    log.high = two_sum(log.high, parts.k * 0x1.ef35793c7673p-45 + (lost + 2.0 * fma(z * square, p, rest)), &log.low);
    return log;
}

/* log of the sum of exp(x - max), from the sum without the term of max, relative to the reference of max. That term is exactly 1,
   so near 0 the logarithm has the same relative precision as the rest of the sum (Blanchard, Higham and Higham, 2021). Both are finite. */
HOST_DEVICE pair log_of_others_finite(double max, pair others)
{
    const pair ratio = exp_pairs_multiply(others, exp_of_max(max, -1.0));
    double lost;
    pair sum;
    sum.high = two_sum(1.0, ratio.high, &lost);
    sum.high = two_sum(sum.high, lost + ratio.low, &sum.low);
    return log_pair(sum);
}
HOST_DEVICE pair log_of_others(double max, pair others)
{
    return is_finite(max) && others.high == others.high ? log_of_others_finite(max, others) : others;
}

/* The constants that follow from max and inverse_high. */
HOST_DEVICE void softmax_constants_derive(struct softmax_constants *c)
{
    const double reference = c->max != c->max ? 0.0 : c->max, scaled = c->inverse_high * power_of_two(SOFTMAX_UP_F64 - SOFTMAX_UP_F32);
    c->anchor = exp_anchor_f64(reference, SOFTMAX_RANGE_F64);
    c->anchor_f32 = exp_anchor_f32(reference, SOFTMAX_RANGE_F32);
    c->inverse_high_f32 = (float)scaled;
    c->inverse_low_f32 = (float)(scaled - (double)c->inverse_high_f32);
}

/* The sum of all terms, from that of the others, relative to the reference as that is: the term of max is added as exactly as possible, so that the only element of
   an array gives 1. */
HOST_DEVICE pair softmax_total(double max, pair others)
{
    const pair own = exp_of_max(is_finite(max) ? max : 0.0, 1.0);
    pair_combine(&others, &own);
    return others;
}
/* The same of an exact sum of f32 terms. Up to EXP_WHOLE it has the term of max as it was summed, which is so near to its result, before that is rounded, that the only
   element gives 1 all the same (docs/numerics.md). */
HOST_DEVICE pair softmax_total_f32(const struct exp_bins *bins)
{
    return fabs(bins->max) <= EXP_WHOLE ? exp_bins_less(bins, true, 0) : softmax_total(bins->max, exp_bins_others(bins, true));
}

/* All but the logarithm. total: the sum of all terms, relative to the reference. Both are finite. */
HOST_DEVICE void softmax_constants_finite(double max, const pair *total, struct softmax_constants *c)
{
    const double sum = pair_value(total), inverse = 1.0 / sum, down = power_of_two(-SOFTMAX_UP_F64);
    c->max = max;
    c->inverse_high = inverse * down;
    c->inverse_low = (-fma(inverse, sum, -1.0) * inverse - inverse * inverse * (total->high - sum + total->low)) * down;
    c->log_sum = c->log_low = 0.0;
    softmax_constants_derive(c);
}
/* The same of any. */
HOST_DEVICE void softmax_constants_from(double max, const pair *total, struct softmax_constants *c)
{
    const bool nan = !is_finite(max) || total->high != total->high;
    pair sum;
    sum.high = nan ? 1.0 : total->high;
    sum.low = nan ? 0.0 : total->low;
    softmax_constants_finite(nan ? 0.0 : max, &sum, c);
    if (nan) {
        c->max = c->inverse_high = c->inverse_low = NAN;
        softmax_constants_derive(c);
    }
}

/* The logarithm, which log-softmax needs. */
HOST_DEVICE void softmax_constants_log(double max, const pair *others, struct softmax_constants *c)
{
    const pair log = log_of_others(max, *others);
    c->log_sum = log.high;
    c->log_low = log.low;
}

/* What a partial of a monoid of exponentials begins with at level fast; at level exact it is a struct exp_bins. */
struct exp_partial {
    double max;
    pair sum;
};

/* All of them, from a partial, or all but the logarithm. f32_terms: terms are not in f64. */
HOST_DEVICE void softmax_constants_of(const void *partial, bool exact, bool f32_terms, bool logarithm, struct softmax_constants *c)
{
    const struct exp_bins *const bins = (const struct exp_bins *)partial;
    const struct exp_partial *const fast = (const struct exp_partial *)partial;
    const double max = exact ? bins->max : fast->max;
    pair others = pair_identity();
    if (logarithm || !exact || !f32_terms)
        others = exact ? exp_bins_others(bins, f32_terms) : exp_others(max, &fast->sum, f32_terms ? EXP_TERMS_F32 : EXP_TERMS_F64);
    const pair total = exact && f32_terms ? softmax_total_f32(bins) : softmax_total(max, others);
    softmax_constants_from(max, &total, c);
    if (logarithm)
        softmax_constants_log(max, &others, c);
}
