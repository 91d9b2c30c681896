/* Passes of order statistics, over elements in device memory. */
#include "device/cuda/cuda.h"

allfold_status cuda_order(struct queue *queue, const struct order_work *work, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const working = (struct cuda_queue *)queue;
    if (cuda_ready(queue, error) != ALLFOLD_OK)
        return error->status;
    if (work->clear > 0 && cuda_check(cuda, cudaMemsetAsync(work->counts, 0, work->clear, working->stream), error, "cudaMemsetAsync") != ALLFOLD_OK)
        return error->status;
    uint64_t *answer = NULL;
    if (work->answer != NULL
        && (cuda_check(cuda, cudaHostGetDevicePointer((void **)&answer, work->answer, 0), error, "cudaHostGetDevicePointer") != ALLFOLD_OK
            || cuda_check(cuda, (cudaError_t)fold_launch_id_next(&working->space, working->stream), error, "cudaMemsetAsync") != ALLFOLD_OK))
        return error->status;
    if (cuda_check(cuda, (cudaError_t)order_launch(work, answer, &working->space, cuda->capacity.block_bytes, working->stream), error,
                   "launching the kernel of order statistics for %s", allfold_type_name(work->type)) == ALLFOLD_OK && answer != NULL) {
        working->awaited = ORDER_ANSWER_BYTES;
        working->last = QUEUE_MESSAGE;
    }
    return error->status;
}
