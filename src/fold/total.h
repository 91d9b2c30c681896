/* The total: what is folded of several arrays as if they were one. */
#pragma once

#include "fold/table.h"

/* What was folded of one array, or of several as if they were one: the partial, and what it is of. */
struct total {
    allfold_fold fold;
    allfold_level level;
    allfold_type type; /* of the elements; ALLFOLD_TYPE_NONE: nothing was folded yet */
    uint64_t count;    /* elements in the partial */
    uint64_t length;   /* elements of the arrays, with those that were missing: what indices count */
    struct partial partial;
};

/* *total becomes *total followed by *next, which is destroyed; an error if they are not of one kind. */
allfold_status total_append(struct total *total, struct total *next, struct error *error);
/* Finishes the total. call->fold and call->level are ignored. */
allfold_status total_finish(const struct total *total, const struct fold_call *call, struct fold_results *result, struct error *error);
