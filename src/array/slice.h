/* Slices: a box of an array, whatever its format (--slice). */
#pragma once

#include "array/array.h"

/* Makes the array the slice of it that the text says, "time=0:120,lat=-10:" or "0=3": of each dimension that it names, or
   numbers, the indices from the first to the one before the last, by Python's rules. An index alone is the slice of
   length 1. */
allfold_status slice_take(const char *text, struct array_info *info, struct error *error);

/* *whole becomes the array of which *info is a slice. */
void slice_whole(const struct array_info *info, struct array_info *whole);

/* *source, of the whole array, which is not in chunks, becomes that of the slice, which owns it. On an error *source is
   closed. */
allfold_status slice_open(const struct array_info *info, struct source **source, struct error *error);
