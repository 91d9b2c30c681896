/* Parses --axis, and finds the shape of the results. */
#pragma once

#include "cli/cli.h"
#include "core/pieces.h"

#include <json-c/json.h>

struct axes {
    uint64_t folded; /* bit d: dimension d of the array's shape is */
};
static inline bool axes_fold(const struct axes *axes, uint32_t dimension) { return (axes->folded >> dimension & 1) != 0; }

/* The axes of --axis ("1", "-1" or "0,1"; without it all) of the session's input, and the array without its source. Refuses axes that
   the input does not have, and options that do not go with --axis. The same on all ranks. */
allfold_status axes_take(struct session *session, struct axes *axes, struct axis_array *array);

/* Adds the axes, the three dimensions and the cut to a report. */
void axes_report(const struct axes *axes, const struct axis_array *array, struct json_object *report);

/* The array of results: the input's shape without the axes, or with lengths of 1 there. Its order is the input's. Its type is not set. */
void axes_result(const struct axes *axes, const struct array_info *input, bool keepdims, struct array_info *result);
