/* Softmax, many blocks: the same three kernels over the whole GPU.

   Idea: as many blocks as the GPU holds; each writes a partial where the single block wrote the result, and one more
   launch, of one block, reduces the partials. Five launches: maximum, of the partials; exponentials, sum of the
   partials; division.

   What it fixes: the whole GPU works.
   What it leaves: five trips through memory: x is read for the maximum; x is read and exp(x - max) written; that is
   read and written again for the division. Nothing is computed that takes as long as these trips. */
#include "kernels/ladder/softmax_steps.cuh"

static cudaError_t start(void *argument, cudaStream_t stream)
{
    const struct softmax_job *const job = (const struct softmax_job *)argument;
    float *const max = job->result, *const sum = job->result + 1;
    const unsigned int blocks = job->blocks;
    cudaError_t code = gpu_launch(softmax_reduce_kernel<max_of<float>>, blocks, SOFTMAX_BLOCK, 0, stream, job->x,
                                     job->n, job->partials);
    if (code == cudaSuccess)
        code = gpu_launch(softmax_reduce_kernel<max_of<float>>, 1, SOFTMAX_BLOCK, 0, stream, job->partials, blocks,
                             max);
    if (code == cudaSuccess)
        code = gpu_launch(softmax_exponentials_kernel, blocks, SOFTMAX_BLOCK, 0, stream, job->x, job->n, max, job->y,
                             job->partials);
    if (code == cudaSuccess)
        code = gpu_launch(softmax_reduce_kernel<sum_of<float>>, 1, SOFTMAX_BLOCK, 0, stream, job->partials, blocks,
                             sum);
    if (code == cudaSuccess)
        code = gpu_launch(softmax_divide_kernel, blocks, SOFTMAX_BLOCK, 0, stream, job->y, job->n, sum);
    return code;
}

extern const struct softmax_rung softmax_many_blocks;
const struct softmax_rung softmax_many_blocks = {start, 5, 0, 32.0, 1.0, 1.0};
