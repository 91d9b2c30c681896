/* Between many.cu, which knows all types, and many_VALUE.cu, which hold the kernels of the element types that start from that value
   type: apart so that they compile side by side. */
#pragma once

#include "kernels/kernels.h"

#define DECLARE_FAMILY(nothing, value) int many_launch_##value(const struct many_work *work, void *stream);
VALUES(DECLARE_FAMILY, )
#undef DECLARE_FAMILY
