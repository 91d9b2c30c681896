/* Launches folds of several arrays, whose kernels are in many_VALUE.cu. */
#include "kernels/many_family.h"
#include "kernels/tuning.h"

#include <cuda_runtime.h>

void many_cut(struct many_array *array)
{
    const uint64_t least = (array->n + MANY_SHAPE.most - 1) / MANY_SHAPE.most;
    array->split = (u64_max(least, MANY_SHAPE.split) + 15) / 16 * 16;
    array->splits = (uint32_t)((array->n + array->split - 1) / array->split);
    array->bytes_bits = 0;
    while ((size_t)1 << array->bytes_bits < allfold_type_bytes(array->type))
        array->bytes_bits++;
}

int many_launch(const struct many_work *work, void *stream)
{
#define ROW(nothing, value) many_launch_##value,
    static decltype(&many_launch_f32) const launches[] = {VALUES(ROW, )};
#undef ROW
    return work->count == 0 ? cudaSuccess : launches[work->value](work, stream);
}
