/* Between axis.cu, which knows all types, and axis_VALUE.cu, which hold the kernels of the element types that start from that value
   type: apart so that they compile side by side. */
#pragma once

#include "kernels/kernels.h"

#define DECLARE_FAMILY(nothing, value)                                                           \
    int axis_launch_##value(const struct axis_work *work, int multiprocessors, void *stream);  \
    int axis_parts_launch_##value(const struct axis_work *work, uint64_t parts, void *stream);
VALUES(DECLARE_FAMILY, )
#undef DECLARE_FAMILY
