/* Smallest and largest element. NaN is counted separately and never compared, so the answer cannot depend on its position. Its
   effect on the result is decided at the end. A zero result is +0: the order of -0.0 and 0.0 must not show. norminf.h uses the
   same template. */
#define NAME min
#define NAME_FN(x) FN(min_##x)
#define EXTREME_TYPE V
#define TERM(x) (x)
#define BEFORE(a, b) ((a) < (b))
#define RISING(x) (-(x))
#define START VALUE_LARGEST
#include "fold/extreme_template.h"

#define NAME max
#define NAME_FN(x) FN(max_##x)
#define EXTREME_TYPE V
#define TERM(x) (x)
#define BEFORE(a, b) ((a) > (b))
#define RISING(x) (x)
#define START VALUE_SMALLEST
#include "fold/extreme_template.h"

#ifdef FOLD_FINISH
FOLD_FINISH allfold_status FN(extreme_finish)(const char *name, V value, uint64_t nans, const struct finish *finish)
{
    if (finish_nan(finish, name, nans, ALLFOLD_NO_INDEX) != ALLFOLD_OK)
        return finish->error->status;
    return FN(result_value)(finish, nans > 0 && finish->nan == ALLFOLD_NAN_PROPAGATE, value + (V)0);
}
FOLD_FINISH allfold_status FN(min_finish)(const FN(min) * min, const struct finish *finish)
{
    return FN(extreme_finish)("min", min->value, min->nans, finish);
}
FOLD_FINISH allfold_status FN(max_finish)(const FN(max) * max, const struct finish *finish)
{
    return FN(extreme_finish)("max", max->value, max->nans, finish);
}
#endif
