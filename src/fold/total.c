/* Appends and finishes the partials of whole arrays: see total.h. */
#include "fold/total.h"

#include <inttypes.h>

allfold_status total_append(struct total *total, struct total *next, struct error *error)
{
    if (total->type == ALLFOLD_TYPE_NONE) {
        *total = *next;
        return ALLFOLD_OK;
    }
    if (total->fold != next->fold || total->type != next->type || total->level != next->level)
        return error_set(error, ALLFOLD_BAD_INPUT, "expected a partial of %s of %s, %s, as the first, found %s of %s, %s",
                         allfold_fold_name(total->fold), allfold_type_name(total->type), level_name(total->level),
                         allfold_fold_name(next->fold), allfold_type_name(next->type), level_name(next->level));
    if (total->length > INT64_MAX || next->length > INT64_MAX - total->length)
        return error_set(error, ALLFOLD_BAD_INPUT, "expected no more than 2^63 - 1 elements in all, found %" PRIu64 " after %" PRIu64,
                         next->length, total->length);
    monoid_append(fold_monoid(total->fold, total->level, total->type), total->type, &total->partial, total->length, &next->partial);
    total->count += next->count;
    total->length += next->length;
    return ALLFOLD_OK;
}

allfold_status total_finish(const struct total *total, const struct fold_call *call, struct fold_results *result, struct error *error)
{
    struct fold_call own = *call;
    own.fold = total->fold;
    own.level = total->level;
    return fold_finish(&own, &(struct folded){total->type, total->count, &total->partial}, result, error);
}
