/* From a (max, sum of exponentials) to what the second pass of softmax needs: on the host, and in the kernel that keeps
   its elements on the chip between the passes. */
#ifndef ALLFOLD_SOFTMAX_CONSTANTS_H
#define ALLFOLD_SOFTMAX_CONSTANTS_H

#include "fold/arithmetic.h"
#include "fold/exponential.h"

/* All but log_sum, which only the logarithm needs and only the host computes. */
HOST_DEVICE void softmax_constants_from(double max, const pair *sum_pair, struct softmax_constants *c)
{
    const double sum = pair_value(sum_pair);
    const bool nan = !is_finite(max) || sum != sum;
    const double inverse = nan ? (double)NAN : 1.0 / sum;
    c->max = nan ? (double)NAN : max;
    c->inverse_high = inverse;
    c->inverse_low = -fma(inverse, sum, -1.0) * inverse - inverse * inverse * (sum_pair->high - sum + sum_pair->low);
    c->log_sum = 0.0;
    c->anchor = exp_anchor_f64(nan ? 0.0 : max, SOFTMAX_RANGE_F64);
    c->anchor_f32 = exp_anchor_f32(nan ? 0.0 : max, SOFTMAX_RANGE_F32);
    const double scaled = inverse * power_of_two(-SOFTMAX_UP_F32);
    c->inverse_high_f32 = (float)scaled;
    c->inverse_low_f32 = (float)(scaled - (double)c->inverse_high_f32);
}

#endif
