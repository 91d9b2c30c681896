/* Softmax, the engine: allfold's own two kernels (kernels/fold.cuh, kernels/normalise.cu), called as the library calls
   them where the host comes between them.

   Idea: as in softmax_fused.cu, (maximum, sum) in one pass and y in a second. But a thread takes a tile of 16 elements:
   their maximum first, then the exponentials relative to it, without a test for each; it loads 16 bytes at a time,
   several in flight; and the second pass walks backwards, so that its first reads find what the first pass, which ended
   there, has left in the second-level cache.

   What it fixes: arithmetic and instructions until the memory alone is the limit; one trip through memory in part,
   where the cache helps; and the error: the sum is kept in f64, and every output is within 2 units in the last place.
   What it leaves: the host takes the pair between the passes and launches the second one: some microseconds, which count here.
   (Of f32 the library launches both together; of several ranks the second waits for the host's word.) */
#include "kernels/ladder/input.h"
#include "kernels/ladder/softmax.h"

#include "fold/exponential.h"
#include "kernels/kernels.h"

static cudaError_t start(void *argument, cudaStream_t stream)
{
    struct softmax_job *const job = (struct softmax_job *)argument;
    const int multiprocessors = job->gpu->device.multiprocessors;
    const struct work first = {MONOID_sumexp, ALLFOLD_F32, job->x, job->n, 0, NULL, NULL};
    const struct softmax_work second = {job->x, job->y, ALLFOLD_F32, ALLFOLD_F32, box_of_row(job->n), job->n, 1, false, ALLFOLD_LEVEL_FAST};
    struct softmax_constants constants;
    struct partial partial;
    cudaError_t code = (cudaError_t)fold_launch(&first, &job->space, stream);
    if (code == cudaSuccess)
        code = cudaStreamSynchronize(stream);
    if (code != cudaSuccess)
        return code;
    if (!fold_result(job->space.mailbox, job->space.launch_id, monoid_bytes(MONOID_sumexp, ALLFOLD_F32), &partial))
        return cudaErrorUnknown;
    softmax_constants_set(MONOID_sumexp, &partial, &constants);
    return (cudaError_t)normalise_launch(&second, nullptr, &constants, multiprocessors, stream);
}

extern const struct softmax_rung softmax_engine;
const struct softmax_rung softmax_engine = {start, 3, 0, 2.0, 0.0, 0.0};
