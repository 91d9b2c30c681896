/* A source of values around a source of stored elements: leaves out what is missing, and unpacks. */
#pragma once

#include "array/array.h"

/* Whether elements of the array differ from those that are stored, or may have to be left out. */
bool encoded_needed(const struct array_info *info);

/* *source, of the stored elements, becomes one of values, which owns it. On an error *source is closed. name: of the array, for
   messages. */
allfold_status encoded_open(const char *name, const struct array_info *info, struct source **source, struct error *error);
