/* Largest absolute value; 0 for an empty array. For integers it is unsigned, so that the smallest integer has one. */
#define NAME norminf
#define NAME_FN(x) FN(norminf_##x)
#define BEFORE(a, b) ((a) > (b))
#define RISING(x) (x)
#define START 0
#if VALUE_FLOAT
#define EXTREME_TYPE V
#if VALUE_BITS == 32
#define TERM(x) fabsf(x)
#else
#define TERM(x) fabs(x)
#endif
#else
#define EXTREME_TYPE FN(counter)
#define TERM(x) FN(magnitude)(x)
#endif
#include "fold/extreme_template.h"

#ifdef FOLD_FINISH
FOLD_FINISH allfold_status FN(norminf_finish)(const FN(norminf) * norm, const struct finish *finish)
{
#if VALUE_FLOAT
    return result_f64(finish, norm->nans > 0 ? NAN : (double)norm->value);
#else
    return result_integer(finish, (struct integer){"the Linf norm", (int128)norm->value, false});
#endif
}
#endif
