/* Stores results that the host finds while a stream waits for them: see device.h. */
#include "device/cuda/cuda.h"

static allfold_status deliver(struct queue *queue, const struct delivery *delivery, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    const struct cuda_queue *const delivering = (const struct cuda_queue *)queue;
    struct delivery to = *delivery;
    to.stream = delivery->stream != NULL ? delivery->stream : (void *)cudaStreamLegacy;
    if (cuda_use(cuda, error) != ALLFOLD_OK)
        return error->status;
    return cuda_check(cuda, (cudaError_t)deliver_launch(delivering->space.mailbox, &to), error,
                      "launching the kernel that stores results");
}

static void give(struct queue *queue, const struct delivery *delivery, const struct delivered *values)
{
    deliver_give(((struct cuda_queue *)queue)->mailbox, delivery, values);
}

static bool arrived(struct queue *queue) { return cuda_take_partial((struct cuda_queue *)queue); }

static bool is_done(struct queue *queue)
{
    const bool done = cudaStreamQuery(((struct cuda_queue *)queue)->stream) != cudaErrorNotReady;
    cudaGetLastError(); /* the caller's program must not find it */
    return done;
}

const struct deliverer cuda_deliverer = {deliver, give, arrived, is_done};
