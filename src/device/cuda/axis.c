/* Folds and softmax along an axis, of elements in device memory. */
#include "device/cuda/cuda.h"

allfold_status cuda_fold_axis(struct queue *queue, const struct axis_work *work, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const folding = (struct cuda_queue *)queue;
    if (cuda_use(cuda, error) != ALLFOLD_OK)
        return error->status;
    folding->fold_last = false;
    return cuda_check(cuda, (cudaError_t)axis_launch(work, cuda->multiprocessors, folding->stream), error,
                      "launching the kernel that folds %s along an axis", allfold_type_name(work->type));
}

allfold_status cuda_constants_axis(struct queue *queue, const struct axis_work *work, uint64_t count,
                                   struct softmax_constants *constants, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const working = (struct cuda_queue *)queue;
    if (cuda_use(cuda, error) != ALLFOLD_OK)
        return error->status;
    working->fold_last = false;
    return cuda_check(cuda, (cudaError_t)axis_constants_launch(work, count, constants, working->stream), error,
                      "launching the kernel of softmax's constants");
}

allfold_status cuda_normalise_axis(struct queue *queue, const struct softmax_axis_work *work, const struct softmax_constants *constants,
                                   struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const working = (struct cuda_queue *)queue;
    if (cuda_use(cuda, error) != ALLFOLD_OK)
        return error->status;
    working->fold_last = false;
    return cuda_check(cuda, (cudaError_t)axis_normalise_launch(work, constants, cuda->multiprocessors, working->stream), error,
                      "launching the softmax kernel along an axis from %s to %s", allfold_type_name(work->x_type),
                      allfold_type_name(work->y_type));
}

bool cuda_softmax_axis(struct queue *queue, const struct softmax_axis_work *work, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const working = (struct cuda_queue *)queue;
    const struct row_softmax_call call = {&working->space, cuda->capacity, *work};
    bool launched = false;
    if (cuda_use(cuda, error) != ALLFOLD_OK)
        return true;
    const int code = row_softmax_launch(&call, working->stream, &launched);
    working->fold_last = false;
    return cuda_check(cuda, (cudaError_t)code, error, "launching the softmax kernel for rows of %s", allfold_type_name(work->x_type))
               != ALLFOLD_OK
           || launched;
}
