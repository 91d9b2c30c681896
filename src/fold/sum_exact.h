/* Exact sum and mean, and the exact sum of absolute values. Limbs: f32 (f16, bf16) bits from 2^-202, the last bit of the
   smallest double that can stand for an f32, to 2^192, which is 2^64 of the largest; f64 from 2^-1074 to 2^1088. */
#if VALUE_BITS == 64
#define SUM_LIMBS 67
#define SUM_LOWEST -1074
#define SUM_WINDOWS 2
#define SUM_ADD exact_add_f64
#define SUM_WEIGHT 1
#else
#define SUM_LIMBS 12
#define SUM_LOWEST -202
#define SUM_WINDOWS 1
#define SUM_ADD exact_add_f32
#define SUM_WEIGHT 4 /* it is shifted into one limb */
#endif

#define NAME sum_exact
#define NAME_FN(x) FN(sum_exact_##x)
#define LIMBS SUM_LIMBS
#define LOWEST SUM_LOWEST
#define WINDOWS SUM_WINDOWS
#define TERM(x) ((double)(x))
#if VALUE_BITS == 32
#define BINS
#endif
#define ADD SUM_ADD
#define WEIGHT SUM_WEIGHT
#include "fold/exact_template.h"

#define NAME norm1_exact
#define NAME_FN(x) FN(norm1_exact_##x)
#define LIMBS SUM_LIMBS
#define LOWEST SUM_LOWEST
#define WINDOWS SUM_WINDOWS
#define TERM(x) fabs((double)(x))
#if VALUE_BITS == 32
#define BINS
#endif
#define ADD(sink, x, finite) SUM_ADD(sink, (V)fabs((double)(x)), finite)
#define WEIGHT SUM_WEIGHT
#include "fold/exact_template.h"

#undef SUM_LIMBS
#undef SUM_LOWEST
#undef SUM_WINDOWS
#undef SUM_ADD
#undef SUM_WEIGHT

#ifdef FOLD_FINISH
FOLD_FINISH allfold_status FN(sum_exact_finish)(const FN(sum_exact) * sum, const struct finish *finish)
{
    struct exact_total total;
    exact_total_set(&total, sum->words, FN(sum_exact_limbs), FN(sum_exact_lowest));
    return result_f64(finish, exact_total_round(&total, finish->count > 0, finish->format));
}

FOLD_FINISH allfold_status FN(mean_exact_finish)(const FN(sum_exact) * sum, const struct finish *finish)
{
    if (finish->count == 0)
        return finish_refuse(finish, ALLFOLD_NO_VALUE, "the mean of an empty array does not exist");
    struct exact_total total;
    exact_total_set(&total, sum->words, FN(sum_exact_limbs), FN(sum_exact_lowest));
    exact_total_divide(&total, finish->count);
    return result_f64(finish, exact_total_round(&total, true, finish->format));
}

FOLD_FINISH allfold_status FN(norm1_exact_finish)(const FN(norm1_exact) * sum, const struct finish *finish)
{
    struct exact_total total;
    exact_total_set(&total, sum->words, FN(norm1_exact_limbs), FN(norm1_exact_lowest));
    return result_f64(finish, exact_total_round(&total, false, finish->format));
}
#endif
