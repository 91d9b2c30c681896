/* Makes the constants of softmax's second pass from a (max, sum of exponentials): on the host, and in the kernel that keeps its
   elements on the chip between the passes. */
#pragma once

#include "fold/arithmetic.h"
#include "fold/exponential.h"

/* The constants that follow from max and inverse_high. */
HOST_DEVICE void softmax_constants_derive(struct softmax_constants *c)
{
    const double reference = c->max != c->max ? 0.0 : c->max, scaled = c->inverse_high * power_of_two(SOFTMAX_UP_F64 - SOFTMAX_UP_F32);
    c->anchor = exp_anchor_f64(reference, SOFTMAX_RANGE_F64);
    c->anchor_f32 = exp_anchor_f32(reference, SOFTMAX_RANGE_F32);
    c->inverse_high_f32 = (float)scaled;
    c->inverse_low_f32 = (float)(scaled - (double)c->inverse_high_f32);
}

/* All but the logarithm, which only the host computes. others: the sum without the term of max, relative to the reference. That
   term is added here as exactly as possible, so that the only element of an array gives 1. */
HOST_DEVICE void softmax_constants_from(double max, const pair *others, struct softmax_constants *c)
{
    const bool nan = !is_finite(max) || others->high != others->high;
    pair total = *others;
    if (!nan) {
        const pair own = exp_of_max(max, 1.0);
        pair_combine(&total, &own);
    }
    const double sum = pair_value(&total);
    const double inverse = nan ? (double)NAN : 1.0 / sum, down = power_of_two(-SOFTMAX_UP_F64);
    c->max = nan ? (double)NAN : max;
    c->inverse_high = inverse * down;
    c->inverse_low = (-fma(inverse, sum, -1.0) * inverse - inverse * inverse * (total.high - sum + total.low)) * down;
    c->log_sum = c->log_low = 0.0;
    softmax_constants_derive(c);
}
