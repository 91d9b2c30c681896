/* Launches a fold: finds the kernels of an element type, which are in fold_VALUE.cu. */
#include "kernels/fold.cuh"
#include "kernels/fold_family.h"

size_t fold_scratch_bytes(int multiprocessors)
{
    return FOLD_TICKET_BYTES + (size_t)multiprocessors * FOLD_BLOCKS_MAX * sizeof(struct partial);
}

int fold_launch(enum monoid monoid, allfold_type type, const void *x, uint64_t n, uint64_t first,
                const struct fold_space *space, void *stream)
{
    const struct fold_input input = {x, n, first};
    switch (type) {
#define CASE(ID, name, numpy, bytes, kind, value) \
    case ALLFOLD_##ID:                            \
        return fold_launch_##value(monoid, type, &input, space, stream);
        ALLFOLD_TYPES(CASE)
#undef CASE
    case ALLFOLD_TYPE_COUNT:
        break;
    }
    return cudaErrorInvalidValue;
}
