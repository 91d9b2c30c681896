/* Smallest and largest element with its global index: the lowest index wins a tie (-0.0 and 0.0 tie), and the first
   NaN is found as well. */
#define NAME argmin
#define NAME_FN(x) FN(argmin_##x)
#define BEFORE(a, b) ((a) < (b))
#define START VALUE_LARGEST
#include "fold/argextreme_template.h"

#define NAME argmax
#define NAME_FN(x) FN(argmax_##x)
#define BEFORE(a, b) ((a) > (b))
#define START VALUE_SMALLEST
#include "fold/argextreme_template.h"

#ifdef FOLD_HOST
static allfold_status FN(argextreme_finish)(const char *name, V value, uint64_t index, uint64_t nans, uint64_t nan_index,
                                            const struct finish *finish, struct fold_results *result, struct error *error)
{
    if (finish_nan(finish, name, nans, nan_index, error) != ALLFOLD_OK)
        return error->status;
    const bool nan = nans > 0 && finish->nan == ALLFOLD_NAN_PROPAGATE;
    FN(result_value)(result, nan, value);
    result->fields[result->field_count - 1].index = nan ? nan_index : index;
    return ALLFOLD_OK;
}
static allfold_status FN(argmin_finish)(const FN(argmin) * min, const struct finish *finish, struct fold_results *result,
                                        struct error *error)
{
    return FN(argextreme_finish)("argmin", min->value, min->index, min->nans, min->nan_index, finish, result, error);
}
static allfold_status FN(argmax_finish)(const FN(argmax) * max, const struct finish *finish, struct fold_results *result,
                                        struct error *error)
{
    return FN(argextreme_finish)("argmax", max->value, max->index, max->nans, max->nan_index, finish, result, error);
}
#endif
