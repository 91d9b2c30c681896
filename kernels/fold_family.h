/* Between fold.cu, which knows all types, and fold_VALUE.cu, which hold the kernels of the element types that start
   from that value type: apart so that they compile side by side. */
#pragma once

#include "kernels/kernels.h"

#define DECLARE_FAMILY(nothing, value) \
    int fold_launch_##value(const struct work *work, const struct fold_space *space, void *stream);
VALUES(DECLARE_FAMILY, )
#undef DECLARE_FAMILY
