/* Smallest and largest element with its global index: the lowest index wins a tie (-0.0 and 0.0 tie), and the first
   NaN is found as well. */
typedef struct {
    V value;
    uint64_t index;     /* of the first element equal to value; ALLFOLD_NO_INDEX while there is none */
    uint64_t nans;
    uint64_t nan_index; /* of the first NaN, else ALLFOLD_NO_INDEX */
} FN(argextreme);

#define NAME argmin
#define NAME_FN(x) FN(argmin_##x)
#define BEFORE(a, b) ((a) < (b))
#define RISING(x) (-(x))
#define START VALUE_LARGEST
#include "fold/argextreme_template.h"

#define NAME argmax
#define NAME_FN(x) FN(argmax_##x)
#define BEFORE(a, b) ((a) > (b))
#define RISING(x) (x)
#define START VALUE_SMALLEST
#include "fold/argextreme_template.h"

#ifdef FOLD_FINISH
FOLD_FINISH allfold_status FN(argextreme_finish)(const char *name, const FN(argextreme) * extreme, const struct finish *finish)
{
    if (finish_nan(finish, name, extreme->nans, extreme->nan_index) != ALLFOLD_OK)
        return finish->error->status;
    const bool nan = extreme->nans > 0 && finish->nan == ALLFOLD_NAN_PROPAGATE;
    FN(result_value)(finish, nan, extreme->value);
    result_last(finish)->index = nan ? extreme->nan_index : extreme->index;
    return ALLFOLD_OK;
}
FOLD_FINISH allfold_status FN(argmin_finish)(const FN(argmin) * min, const struct finish *finish)
{
    return FN(argextreme_finish)("argmin", min, finish);
}
FOLD_FINISH allfold_status FN(argmax_finish)(const FN(argmax) * max, const struct finish *finish)
{
    return FN(argextreme_finish)("argmax", max, finish);
}
#endif
