/* Launches a fold by the kernels of its element type, which are in the files that fold_family.h names. */
#include "kernels/exact.cuh"
#include "kernels/fold.cuh"
#include "kernels/fold_family.h"
#include "kernels/message.cuh"

/* Scratch memory of folds, without its end. */
static size_t folds_bytes(int multiprocessors)
{
    const size_t bytes = fold_messages_bytes(multiprocessors) + EXACT_SCRATCH_BYTES
                         + (size_t)multiprocessors * FOLD_BLOCKS_MAX * EXACT_ENDS_BYTES;
    return (bytes + 255) / 256 * 256;
}

size_t fold_scratch_bytes(int multiprocessors) { return folds_bytes(multiprocessors) + FOLD_SCRATCH_END_BYTES; }

void *fold_scratch_end(const struct fold_space *space) { return (char *)space->scratch + folds_bytes(space->multiprocessors); }

bool fold_result(const struct fold_mailbox *mailbox, uint32_t launch_id, size_t bytes, struct partial *partial)
{
    return message_take(&mailbox->partial, launch_id, partial->bytes, bytes);
}

int fold_launch_id_next(struct fold_space *space, void *stream) { return fold_launch_ids_next(space, 1, stream); }

int fold_launch_ids_next(struct fold_space *space, uint32_t count, void *stream)
{
    if (UINT32_MAX - space->launch_id >= count) {
        space->launch_id += count;
        return cudaSuccess;
    }
    space->launch_id = count;
    const cudaError_t code = cudaMemsetAsync(space->mailbox, 0, sizeof *space->mailbox, (cudaStream_t)stream);
    return code != cudaSuccess
               ? code
               : cudaMemsetAsync(space->scratch, 0, fold_scratch_bytes(space->multiprocessors), (cudaStream_t)stream);
}

int fold_launch(const struct work *work, struct fold_space *space, void *stream)
{
    const int code = fold_launch_id_next(space, stream);
    return code != cudaSuccess ? code : fold_launch_to(space->mailbox, work, space, stream);
}

int fold_launch_to(struct fold_mailbox *mailbox, const struct work *work, const struct fold_space *space, void *stream)
{
    const struct fold_space there = {space->multiprocessors, space->scratch, mailbox, space->launch_id};
    bool launched = false;
    const int code = exact_whole_launch(work, &there, stream, &launched);
    if (launched || code != cudaSuccess)
        return code;
    switch (work->type) {
#define CASE(ID, name, ...) \
    case ALLFOLD_##ID:      \
        return fold_launch_##name(work, &there, stream);
        FLOAT_TYPES(CASE)
#undef CASE
    default:
        break;
    }
    switch (type_value(work->type)) {
#define CASE(nothing, value) \
    case VALUE_##value:      \
        return fold_launch_##value(work, &there, stream);
        VALUES_INTEGER(CASE, )
#undef CASE
    default:
        return cudaErrorInvalidValue;
    }
}
