/* Described arrays on all ranks: what the program and liballfold-files share. */
#pragma once

#include "allfold.h"
#include "array/array.h"

/* Sends rank 0's description to all ranks, of which the others have none. *error may be this rank's alone; then it becomes everyone's. The
   caller releases the description on all. Collective. */
allfold_status describe_share(allfold_context *context, struct array_info *info, struct error *error);

/* Opens the array, and on the rank that described it refuses a file that was written to since. Local. */
allfold_status describe_open(const struct array_info *info, bool first_rank, struct source **source, struct error *error);

/* struct fold_call's place, of an array_info. */
void describe_place(const void *info, uint64_t index, char *text, size_t bytes);
