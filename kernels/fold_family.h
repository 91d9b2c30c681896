/* Between fold.cu, which knows all types, and the files with their kernels: fold_TYPE.cu for each floating-point type, fold_VALUE.cu for the
   integers that start from a value type. They compile side by side; and a GPU loads all kernels of a file before the first of them
   starts, at some 3 ms for each MB. */
#pragma once

#include "kernels/kernels.h"

#define DECLARE(name) int fold_launch_##name(const struct work *work, const struct fold_space *space, void *stream);
#define DECLARE_FLOAT(ID, name, ...) DECLARE(name)
#define DECLARE_INTEGER(nothing, value) DECLARE(value)
FLOAT_TYPES(DECLARE_FLOAT)
VALUES_INTEGER(DECLARE_INTEGER, )
#undef DECLARE_INTEGER
#undef DECLARE_FLOAT
#undef DECLARE
