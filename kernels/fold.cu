/* Launches a fold: finds the kernels of an element type, which are in fold_VALUE.cu. */
#include "kernels/fold.cuh"
#include "kernels/fold_family.h"

size_t fold_scratch_bytes(int multiprocessors)
{
    return (size_t)multiprocessors * FOLD_BLOCKS_MAX * sizeof(struct fold_message);
}

bool fold_result(const struct fold_message *message, uint32_t number, size_t bytes, struct partial *partial)
{
    for (size_t i = 0; i < bytes / 4; i++) {
        const uint64_t word = __atomic_load_n(&message->words[i], __ATOMIC_RELAXED);
        const uint32_t half = (uint32_t)word;
        if (word >> 32 != number)
            return false;
        memcpy(partial->bytes + 4 * i, &half, sizeof half);
    }
    return true;
}

/* A number that no word in scratch or result can have from before: after the last comes the first, on clean memory. */
static cudaError_t number_next(struct fold_space *space, cudaStream_t stream)
{
    if (++space->number != 0)
        return cudaSuccess;
    space->number = 1;
    const cudaError_t code = cudaMemsetAsync(space->result, 0, sizeof *space->result, stream);
    return code != cudaSuccess
               ? code
               : cudaMemsetAsync(space->scratch, 0, fold_scratch_bytes(space->multiprocessors), stream);
}

int fold_launch(enum monoid monoid, allfold_type type, const void *x, uint64_t n, uint64_t first,
                struct fold_space *space, void *stream)
{
    const struct fold_input input = {x, n, first};
    const cudaError_t code = number_next(space, (cudaStream_t)stream);
    if (code != cudaSuccess)
        return code;
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
