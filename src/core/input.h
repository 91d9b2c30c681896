/* Arrays that are described, and opened by each rank for each call: the allfold_source of allfold.h. src/files/ makes them, the calls take them
   (api_operand.c). */
#pragma once

#include "core/core.h"

struct allfold_source {
    struct array_info info; /* the same on all ranks, with details of its own */
    uint64_t key;           /* of the description, as in struct job */
    /* What formats do: opens the array; of an array whose packed elements a sum can take as they are, sets *info so, and returns their packing,
       or NULL; names the place of an element, as in struct fold_call. */
    allfold_status (*open)(const struct array_info *info, bool first_rank, struct source **source, struct error *error);
    const struct packing *(*keep_packed)(struct array_info *info);
    void (*place)(const void *info, uint64_t index, char *text, size_t bytes);
    const char *names[ARRAY_DIMENSIONS_MAX];
    char name[ARRAY_NAME_BYTES];
};
