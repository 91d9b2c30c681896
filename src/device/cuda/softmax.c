/* Takes softmax of elements in device memory: begin, finish (device.h). Both passes are launched together
   if the kernels can do that (kernels.h); otherwise the host launches the second one. */
#include "device/cuda/cuda.h"

/* The fold of the first pass. */
static struct work first_pass(const struct softmax_work *work)
{
    return (struct work){softmax_monoid(work->x_type, work->y_type, work->logarithm, work->level), work->x_type, work->x,
                         work->box.length, 0, NULL, NULL};
}

allfold_status cuda_softmax_load(struct cuda_device *cuda, struct error *error)
{
    if (!cuda->softmax_is_loaded)
        cuda_check(cuda, (cudaError_t)softmax_load(&cuda->capacity), error, "loading the softmax kernels");
    cuda->softmax_is_loaded = error->status == ALLFOLD_OK;
    return error->status;
}

allfold_status cuda_softmax_begin(struct queue *queue, const struct softmax_work *work, bool single_rank, struct error *error)
{
    struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const begins = (struct cuda_queue *)queue;
    const struct work first = first_pass(work);
    const bool on_device = single_rank && !work->logarithm;
    const struct softmax_call call = {&begins->space, cuda->capacity, on_device, *work};
    bool launched = false;
    if (cuda_ready(queue, error) != ALLFOLD_OK || cuda_softmax_load(cuda, error) != ALLFOLD_OK
        || cuda_check(cuda, (cudaError_t)softmax_launch_whole(&call, begins->stream, &launched), error,
                      "launching the softmax kernel for %s", allfold_type_name(work->x_type))
               != ALLFOLD_OK
        || (!launched && cuda_fold(queue, &first, error) != ALLFOLD_OK))
        return error->status;
    begins->state = !launched ? SOFTMAX_HOST_LAUNCHES : on_device ? SOFTMAX_ON_DEVICE : SOFTMAX_AWAITS_ORDERS;
    begins->single_rank = single_rank;
    begins->softmax = *work;
    begins->awaited = begins->state == SOFTMAX_ON_DEVICE ? 0 : monoid_bytes(first.monoid, first.type);
    begins->last = QUEUE_MESSAGE;
    return single_rank ? ALLFOLD_OK : cuda_watch(begins, cuda_take_partial, error);
}

/* Takes the outcome of kernels that were launched together, if they have ended. */
static bool take_outcome(struct cuda_queue *queue)
{
    return softmax_outcome(queue->mailbox, queue->space.launch_id, &queue->written);
}

/* Writes y by the ordinary kernel of the second pass, with the arithmetic of that level. */
static allfold_status write_by_host(struct cuda_queue *queue, allfold_level level, const struct softmax_constants *constants, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(&queue->queue);
    struct softmax_work work = queue->softmax;
    work.level = level;
    if (cuda_use(cuda, error) != ALLFOLD_OK
        || cuda_check(cuda, (cudaError_t)normalise_launch(&work, NULL, constants, cuda->multiprocessors, queue->stream), error,
                      "launching the softmax kernel from %s to %s", allfold_type_name(work.x_type), allfold_type_name(work.y_type))
               != ALLFOLD_OK)
        return error->status;
    return cuda_check(cuda, cudaStreamSynchronize(queue->stream), error, "cudaStreamSynchronize");
}

/* Kernels whose orders came too late have not written y: the ordinary kernel does, in their arithmetic, as bits must not depend on time. */
static allfold_status finish(struct cuda_queue *queue, const struct softmax_constants *constants, struct error *error)
{
    if (queue->state == SOFTMAX_HOST_LAUNCHES)
        return write_by_host(queue, queue->softmax.level, constants, error);
    if (queue->state == SOFTMAX_AWAITS_ORDERS) {
        softmax_order(queue->mailbox, queue->space.launch_id, constants);
        queue->state = SOFTMAX_ON_DEVICE; /* nothing waits for the host any more: the driver may be asked to wait */
    }
    if (cuda_watch(queue, take_outcome, error) != ALLFOLD_OK || queue->written)
        return error->status;
    if (constants == NULL)
        return error_set(error, ALLFOLD_DEVICE_ERROR, "CUDA device %d: the softmax kernel has not written its result",
                         cuda_of(&queue->queue)->index);
    return write_by_host(queue, ALLFOLD_LEVEL_EXACT, constants, error);
}

allfold_status cuda_softmax_finish(struct queue *queue, const struct softmax_constants *constants, struct error *error)
{
    struct cuda_queue *const ends = (struct cuda_queue *)queue;
    struct softmax_constants own;
    if (ends->single_rank && ends->state != SOFTMAX_ON_DEVICE && cuda_watch(ends, cuda_take_partial, error) == ALLFOLD_OK) {
        softmax_constants_set(first_pass(&ends->softmax).monoid, queue->partial, &own);
        constants = &own;
    }
    if (error->status == ALLFOLD_OK)
        finish(ends, constants, error);
    if (error->status == ALLFOLD_OK) { /* else wait ends what is under way in the caller's stream */
        ends->state = SOFTMAX_IDLE;
        ends->stream = ends->own;
    }
    return error->status;
}
