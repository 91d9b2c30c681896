/* (max, sum of exponentials): logsumexp, and the first pass of softmax. sumexp_f64 computes the terms in f64. sumexp computes
   them in f32, and sumexp_quick does so with less accuracy; only f32 values have these. An element takes one exponential: each tile
   is taken relative to the larger of its own maximum and the maximum so far. */

/* The type in which elements are compared: f32 for f32 elements, whatever their terms are computed in. */
#if VALUE_FLOAT && VALUE_BITS == 32
#define EXP_ORDER float
#define EXP_LARGER larger_f32
#define EXP_SMALLER smaller_f32
#else
#define EXP_ORDER double
#define EXP_LARGER larger_f64
#define EXP_SMALLER smaller_f64
#endif

#define NAME sumexp_f64
#define NAME_FN(x) FN(sumexp_f64_##x)
#define REAL_BITS 64
#include "fold/sumexp_template.h"

/* The same at level exact (exact_exponential.h). */
#define NAME sumexp_f64_exact
#define NAME_FN(x) FN(sumexp_f64_exact_##x)
#define REAL_BITS 64
#include "fold/sumexp_exact_template.h"

#if VALUE_FLOAT && VALUE_BITS == 32
#define NAME sumexp
#define NAME_FN(x) FN(sumexp_##x)
#define REAL_BITS 32
#include "fold/sumexp_template.h"

/* Of logsumexp at level fast. A term costs less and is within 1.76 * 2^-24, not 0.63 (docs/numerics.md). GPUs take such terms for sumexp of many elements, too, but that of the
   maximum, which will be taken out, is sumexp's. */
#define NAME sumexp_quick
#define NAME_FN(x) FN(sumexp_quick_##x)
#define REAL_BITS 32
#define EXP_QUICK
#include "fold/sumexp_template.h"
#undef EXP_QUICK

#define NAME sumexp_exact
#define NAME_FN(x) FN(sumexp_exact_##x)
#define REAL_BITS 32
#include "fold/sumexp_exact_template.h"

/* sumexp for elements and results of 16 bits. An error of 2^-20 in a term is small compared with the rounding of the result. So a
   GPU's own exp2 is precise enough: 2^-22 by the PTX manual (ex2.approx). If the magnitude of the maximum is at most
   EXP_SHORT_MAX, so is log2 e in f32, which puts a term off by |x| 2^-26. Partials of the four can be combined. */
#define EXP_SHORT_MAX 32.0
typedef FN(sumexp) FN(sumexp_half);
HOST_DEVICE FN(sumexp_half) FN(sumexp_half_identity)(void) { return FN(sumexp_identity)(); }
HOST_DEVICE void FN(sumexp_half_rescale)(FN(sumexp_half) * partial, double max) { FN(sumexp_rescale)(partial, max); }
HOST_DEVICE void FN(sumexp_half_combine)(FN(sumexp_half) * a, const FN(sumexp_half) * b) { FN(sumexp_combine)(a, b); }
#ifdef __CUDACC__
HOST_DEVICE float FN(sumexp_half_term)(V x, float base, float whole, bool near)
{
    if (near)
        return exp2_short(fmaf(x, 0x1.715476p0f, -whole));
    return exp2_short(fmaf(x - base, 0x1.4ae0cp-26f, fmaf(x - base, 0x1.715476p0f, -whole)));
}
HOST_DEVICE double FN(sumexp_half_terms)(const V *x, uint32_t n, float base, float whole, bool near)
{
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    for (uint32_t i = 0; i < n; i++)
        sum[i % 4] += FN(sumexp_half_term)(x[i], base, whole, near);
    return (double)((sum[0] + sum[1]) + (sum[2] + sum[3]));
}
#endif
HOST_DEVICE void FN(sumexp_half_tile)(FN(sumexp_half) * partial, const V *x, uint32_t n, uint64_t first)
{
#ifdef __CUDA_ARCH__
    (void)first;
    float largest = -INFINITY;
    for (uint32_t i = 0; i < n; i++)
        largest = larger_f32(x[i], largest);
    if (!FN(sumexp_tile_begin)(partial, x, n, largest))
        return;
    const struct exp_reference reference = exp_reference(partial->max);
    const float base = (float)reference.base, whole = (float)reference.whole;
    const bool near = fabs(partial->max) <= EXP_SHORT_MAX; /* the usual case has code of its own */
    pair_add(&partial->sum, near ? FN(sumexp_half_terms)(x, n, base, whole, true)
                                 : FN(sumexp_half_terms)(x, n, base, whole, false));
#else
    FN(sumexp_tile)(partial, x, n, first);
#endif
}
#endif

#undef EXP_ORDER
#undef EXP_LARGER
#undef EXP_SMALLER

#ifdef FOLD_FINISH
/* scipy.special.logsumexp's conventions: -inf if there is nothing, or nothing but -inf; +inf if there is +inf; NaN if there is
   NaN. */
FOLD_FINISH allfold_status FN(logsumexp_finish)(const FN(sumexp_f64) * partial, const struct finish *finish)
{
    return result_logsumexp(finish, partial->max, exp_others(partial->max, &partial->sum, EXP_TERMS_F64));
}
#if VALUE_FLOAT && VALUE_BITS == 32
FOLD_FINISH allfold_status FN(logsumexp_quick_finish)(const FN(sumexp_quick) * partial, const struct finish *finish)
{
    const double max = partial->max;
    return result_f64(finish, is_finite(max) ? FN(sumexp_quick_logarithm)(max, partial->sum)
                                                  : max + (partial->sum.high == partial->sum.high ? 0.0 : partial->sum.high));
}
#endif
FOLD_FINISH allfold_status FN(logsumexp_exact_finish)(const FN(sumexp_f64_exact) * partial, const struct finish *finish)
{
    return result_logsumexp(finish, partial->max, exp_bins_others(partial, false));
}
#endif
