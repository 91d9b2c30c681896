/* Folds and softmax along an axis, of elements in device memory. */
#include "device/cuda/cuda.h"

/* The most results of which the end of each is told in the mailbox, in 8 bytes of a message. */
enum { TOLD_MOST = sizeof(struct partial) / 8 };
/* Bytes of partials that a kernel reads in the window: it takes longer for more than a copy does. */
enum { READ_IN_WINDOW = 512 << 10 };

/* The kernel tells the end of its results in the mailbox, which the host sees sooner than the driver does. */
static cudaError_t tell_end(struct cuda_queue *queue, struct axis_finish *finish, uint64_t results)
{
    const cudaError_t code = (cudaError_t)fold_launch_id_next(&queue->space, queue->stream);
    finish->done = queue->space.mailbox->partial.words;
    finish->launch_id = queue->space.launch_id;
    queue->awaited = code == cudaSuccess ? results * 8 : 0;
    queue->last = QUEUE_MESSAGE;
    return code;
}

/* Of partials in the window, those that are many are copied to their place on the device first. */
static cudaError_t combine_launch(struct axis_work *work, void *stream)
{
    const size_t bytes = work->box.outer * work->box.inner * partial_stride(work->monoid, work->type);
    cudaError_t code = cudaSuccess;
    if (work->window.memory != NULL && (work->parts - 1) * bytes > READ_IN_WINDOW) {
        for (uint64_t part = 0; part < work->parts && code == cudaSuccess; part++)
            if (part != work->window.own)
                code = cudaMemcpyAsync((char *)work->partials + part * bytes, (const char *)work->window.memory + part * work->window.step, bytes,
                                       cudaMemcpyDefault, (cudaStream_t)stream);
        work->window.memory = NULL;
    }
    return code == cudaSuccess ? (cudaError_t)axis_parts_launch(work, work->parts, stream) : code;
}

/* Some rows and columns have kernels of their own. Partials that hold marks are finished behind the fold. */
static cudaError_t fold_launch_axis(struct axis_work *work, int multiprocessors, void *stream)
{
    const bool marked = monoid_has_mark(work->monoid);
    struct axis_work fold = *work;
    bool launched = false;
    cudaError_t code = cudaSuccess;
    if (work->parts > 0)
        return combine_launch(work, stream);
    if (marked)
        fold.finish = NULL;
    static int (*const special[])(const struct axis_work *, int, void *, bool *) = {logits_launch, extremes_launch, counted_rows_launch, exponentials_launch};
    for (size_t i = 0; i < sizeof special / sizeof *special && code == cudaSuccess && !launched; i++)
        code = (cudaError_t)special[i](work, multiprocessors, stream, &launched);
    if (code != cudaSuccess || launched)
        return code;
    code = (cudaError_t)axis_launch(&fold, multiprocessors, stream);
    if (code == cudaSuccess && marked)
        code = (cudaError_t)logits_end_launch(work, stream);
    return code == cudaSuccess ? (cudaError_t)axis_send_launch(work, stream) : code;
}

allfold_status cuda_fold_axis(struct queue *queue, const struct axis_work *work, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const folding = (struct cuda_queue *)queue;
    const uint64_t results = work->box.outer * work->box.inner;
    struct axis_work own = *work;
    struct axis_finish finish;
    cudaError_t code = cudaSuccess;
    if (cuda_ready(queue, error) != ALLFOLD_OK)
        return error->status;
    if (work->window.memory != NULL)
        code = cudaHostGetDevicePointer(&own.window.memory, work->window.memory, 0);
    if (code == cudaSuccess && work->finish != NULL && results <= TOLD_MOST) {
        finish = *work->finish;
        own.finish = &finish;
        code = tell_end(folding, &finish, results);
    }
    if (code == cudaSuccess)
        code = work->weights.at != NULL ? (cudaError_t)weighted_launch(&own, cuda->multiprocessors, folding->stream)
                                        : fold_launch_axis(&own, cuda->multiprocessors, folding->stream);
    if (code == cudaSuccess && work->constants != NULL)
        code = (cudaError_t)axis_constants_launch(&own, results, work->constants, folding->stream);
    return cuda_check(cuda, code, error, "launching the kernel that folds %s along an axis", allfold_type_name(work->type));
}

allfold_status cuda_gradient_axis(struct queue *queue, const struct gradient_work *work, struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const working = (struct cuda_queue *)queue;
    if (cuda_ready(queue, error) != ALLFOLD_OK)
        return error->status;
    return cuda_check(cuda, (cudaError_t)gradient_launch(work, cuda->multiprocessors, working->stream), error,
                      "launching the gradient's kernels along an axis of %s", allfold_type_name(work->softmax.x_type));
}

bool cuda_softmax_axis(struct queue *queue, const struct softmax_work *work, const struct softmax_constants *constants, enum place place,
                       struct error *error)
{
    const struct cuda_device *const cuda = cuda_of(queue);
    struct cuda_queue *const working = (struct cuda_queue *)queue;
    const struct row_softmax_call rows = {&working->space, cuda->capacity, *work};
    bool launched = constants != NULL;
    if (cuda_ready(queue, error) != ALLFOLD_OK)
        return true;
    const int code = constants == NULL ? row_softmax_launch(&rows, working->stream, &launched)
                                       : normalise_launch(work, place == PLACE_HOST ? NULL : constants, constants, cuda->multiprocessors, working->stream);
    return cuda_check(cuda, (cudaError_t)code, error, "launching the softmax kernel from %s to %s along an axis", allfold_type_name(work->x_type),
                      allfold_type_name(work->y_type))
               != ALLFOLD_OK
           || launched;
}
