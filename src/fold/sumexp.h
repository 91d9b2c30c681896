/* (max, sum of exponentials): logsumexp, and the first pass of softmax. sumexp computes the terms in the value's own
   precision (f32 for f32 values, f64 for all others), sumexp_f64 always in f64. One exponential an element: each tile
   is taken relative to the larger of its own maximum and the maximum so far. */
#define NAME sumexp
#define NAME_FN(x) FN(sumexp_##x)
#if VALUE_FLOAT && VALUE_BITS == 32
#define REAL float
#define REAL_BITS 32
#define EXP_ANCHOR exp_anchor_f32
#define EXP_ANCHOR_TYPE struct exp_anchor_f32
#define EXP_RANGE EXP_TERM_RANGE_F32
#define EXP_LARGER larger_f32
#else
#define REAL double
#define REAL_BITS 64
#define EXP_ANCHOR exp_anchor_f64
#define EXP_ANCHOR_TYPE struct exp_anchor_f64
#define EXP_RANGE EXP_TERM_RANGE_F64
#define EXP_LARGER larger_f64
#endif
#include "fold/sumexp_template.h"

#define NAME sumexp_f64
#define NAME_FN(x) FN(sumexp_f64_##x)
#define REAL double
#define REAL_BITS 64
#define EXP_ANCHOR exp_anchor_f64
#define EXP_ANCHOR_TYPE struct exp_anchor_f64
#define EXP_RANGE EXP_TERM_RANGE_F64
#define EXP_LARGER larger_f64
#include "fold/sumexp_template.h"

/* The same at level exact (exact_exponential.h). */
#define NAME sumexp_exact
#define NAME_FN(x) FN(sumexp_exact_##x)
#if VALUE_FLOAT && VALUE_BITS == 32
#define REAL float
#define REAL_BITS 32
#define EXP_PLACE uint32_t
#define EXP_PLACE_BITS f32_bits(0x1.8p23f)
#define EXP_PLACE_OF exp_place_f32
#define EXP_IS_NO_PLACE EXP_IS_NO_PLACE_F32
#define EXP_INTEGER exp_integer_f32
#define EXP_INTEGER_TYPE uint32_t
#define EXP_AT_LEAST_LIMIT exp_at_least_limit_f32
#define EXP_LARGER larger_f32
#define EXP_SMALLER smaller_f32
#else
#define REAL double
#define REAL_BITS 64
#define EXP_PLACE uint64_t
#define EXP_PLACE_BITS f64_bits(0x1.8p52)
#define EXP_PLACE_OF exp_place_f64
#define EXP_IS_NO_PLACE EXP_IS_NO_PLACE_F64
#define EXP_INTEGER exp_integer_f64
#define EXP_INTEGER_TYPE struct exp_integer
#define EXP_AT_LEAST_LIMIT exp_at_least_limit_f64
#define EXP_LARGER larger_f64
#define EXP_SMALLER smaller_f64
#endif
#include "fold/sumexp_exact_template.h"

#define NAME sumexp_f64_exact
#define NAME_FN(x) FN(sumexp_f64_exact_##x)
#define REAL double
#define REAL_BITS 64
#define EXP_PLACE uint64_t
#define EXP_PLACE_BITS f64_bits(0x1.8p52)
#define EXP_PLACE_OF exp_place_f64
#define EXP_IS_NO_PLACE EXP_IS_NO_PLACE_F64
#define EXP_INTEGER exp_integer_f64
#define EXP_INTEGER_TYPE struct exp_integer
#define EXP_AT_LEAST_LIMIT exp_at_least_limit_f64
#define EXP_LARGER larger_f64
#define EXP_SMALLER smaller_f64
#include "fold/sumexp_exact_template.h"

#ifdef FOLD_HOST
/* scipy.special.logsumexp's conventions: -inf for nothing, or nothing but -inf; +inf where +inf is; NaN where NaN is. */
static allfold_status FN(logsumexp_finish)(const FN(sumexp_f64) * partial, const struct finish *finish,
                                           allfold_result *result, struct error *error)
{
    (void)finish;
    (void)error;
    return result_f64(result, partial->max + sumexp_log(&partial->sum));
}
static allfold_status FN(logsumexp_exact_finish)(const FN(sumexp_f64_exact) * partial, const struct finish *finish,
                                                 allfold_result *result, struct error *error)
{
    (void)finish;
    (void)error;
    const pair sum = exp_bins_sum(partial, EXP_FRACTION_F64);
    if (sum.high == 0.0 || sum.high != sum.high)
        return result_f64(result, partial->nan != 0 ? NAN : partial->max);
    const pair log = log_pair(sum);
    double lost;
    const double value = two_sum(partial->max, log.high, &lost);
    return result_f64(result, value + (lost + log.low));
}
#endif
