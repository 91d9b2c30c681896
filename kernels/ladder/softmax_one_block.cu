/* Softmax, one block: three kernels, each of one block.

   Idea: a block can reduce by itself, so one block that walks over the whole array needs no partials and no levels: one
   kernel finds the maximum, the next writes exp(x - max) and adds them up, the third divides by the sum. The barrier
   between them is the launch.

   What it fixes: it is right, for any length. The tutorial that it comes from divides by the maximum instead of
   subtracting it: exp(x / max) is not softmax, and overflows when the maximum is small. Also, every block that is launched
   writes the one result. So its kernels are right for one block of one fixed size only, which they do not document.
   What it leaves: one multiprocessor of more than a hundred works. */
#include "kernels/ladder/softmax_steps.cuh"

static cudaError_t start(void *argument, cudaStream_t stream)
{
    const struct softmax_job *const job = (const struct softmax_job *)argument;
    float *const max = job->result, *const sum = job->result + 1;
    cudaError_t code =
        gpu_launch(softmax_reduce_kernel<max_of<float>>, 1, SOFTMAX_BLOCK, 0, stream, job->x, job->n, max);
    if (code == cudaSuccess)
        code =
            gpu_launch(softmax_exponentials_kernel, 1, SOFTMAX_BLOCK, 0, stream, job->x, job->n, max, job->y, sum);
    if (code == cudaSuccess)
        code = gpu_launch(softmax_divide_kernel, 1, SOFTMAX_BLOCK, 0, stream, job->y, job->n, sum);
    return code;
}

extern const struct softmax_rung softmax_one_block;
const struct softmax_rung softmax_one_block = {start, 5, 1, 32.0, 1.0, 1.0};
