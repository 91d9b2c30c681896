/* Sum and mean. Floating point: f32 values in f64 accumulators, f64 values in pairs of f64. Integers: exact, in 128 bits, and
   a mean that is rounded once. The result is -0.0 only if every element is -0.0. An empty sum is +0. */
#define NAME sum
#define NAME_FN(x) FN(sum_##x)
#define TERM(x) (x)
#define TERM_SIGNED VALUE_SIGNED
#define TERM_ZERO ZERO_IDENTITY
#include "fold/additive.h"

#ifdef FOLD_FINISH
FOLD_FINISH allfold_status FN(sum_finish)(const FN(sum) * sum, const struct finish *finish)
{
#if VALUE_FLOAT
    return result_f64(finish, finish->count == 0 ? 0.0 : pair_value(&sum->total));
#else
    return result_integer(finish, (struct integer){"the sum", sum->total, VALUE_SIGNED});
#endif
}

FOLD_FINISH allfold_status FN(mean_finish)(const FN(sum) * sum, const struct finish *finish)
{
    if (finish->count == 0)
        return finish_refuse(finish, ALLFOLD_NO_VALUE, "the mean of an empty array does not exist");
#if VALUE_FLOAT
    return result_f64(finish, pair_value(&sum->total) / (double)finish->count);
#else
    return result_ratio(finish, sum->total, finish->count);
#endif
}
#endif
