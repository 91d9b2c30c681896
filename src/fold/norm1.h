/* Sum of absolute values, computed as sums are. */
#define NAME norm1
#define NAME_FN(x) FN(norm1_##x)
#if VALUE_FLOAT
#define TERM(x) fabs(x)
#else
#define TERM(x) FN(magnitude)(x)
#endif
#define TERM_SIGNED 0
#define TERM_ZERO 0.0
#include "fold/additive.h"

#ifdef FOLD_FINISH
FOLD_FINISH allfold_status FN(norm1_finish)(const FN(norm1) * sum, const struct finish *finish)
{
#if VALUE_FLOAT
    return result_f64(finish, pair_value(&sum->total));
#else
    return result_integer(finish, (struct integer){"the L1 norm", sum->total, false});
#endif
}
#endif
