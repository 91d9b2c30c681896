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
#define EXP_SMALLER smaller_f32
#define EXP_NEAR(anchor, smallest) ((anchor).base == 0.0f && smallest >= (anchor).near)
#else
#define REAL double
#define REAL_BITS 64
#define EXP_ANCHOR exp_anchor_f64
#define EXP_ANCHOR_TYPE struct exp_anchor_f64
#define EXP_RANGE EXP_TERM_RANGE_F64
#define EXP_LARGER larger_f64
#define EXP_SMALLER smaller_f64
#define EXP_NEAR(anchor, smallest) ((void)smallest, false) /* would save little */
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
#define EXP_SMALLER smaller_f64
#define EXP_NEAR(anchor, smallest) ((void)smallest, false) /* would save little */
#include "fold/sumexp_template.h"

#ifdef FOLD_HOST
/* scipy.special.logsumexp's conventions: -inf for nothing, or nothing but -inf; +inf where +inf is; NaN where NaN is. */
static allfold_status FN(logsumexp_finish)(const FN(sumexp_f64) * partial, const struct finish *finish,
                                           allfold_result *result, struct error *error)
{
    (void)finish;
    (void)error;
    return result_f64(result, partial->max + FN(sumexp_f64_log)(partial));
}
#endif
