/* Arrays in chunks of several files (parts.h). */
#pragma once

#include "array/array.h"

/* Sets info->positions of an array in chunks of several files, or a slice of it. False: they are too many. */
bool joined_count(struct array_info *info);

/* Opens the array of one file. */
typedef allfold_status open_array(const struct array_info *info, struct source **source, struct error *error);
/* Opens such an array, whose files `open` opens. */
allfold_status joined_open(const struct array_info *info, open_array *open, struct source **source, struct error *error);
