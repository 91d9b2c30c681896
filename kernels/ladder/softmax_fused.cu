/* Softmax, fused: the maximum and the sum of exponentials in one pass.

   Idea: a sum of exp(x - m) for one m becomes the sum for a larger m when it is multiplied by exp(old m - new m). So
   the pair (maximum so far, sum relative to it) can be kept while walking over x, and two such pairs can be combined:
   it is a fold like any other (Milakov and Gimelshein, 2018). The second pass makes each exponential again, and
   divides: arithmetic instead of a trip through memory.

   What it fixes: three trips through memory, not five: x is read; x is read and y written.
   What it leaves: a test for each element whether the maximum has grown, loads one element wide, and the second pass begins at
   the front again, where nothing that the first pass read is still in the cache. */
#include "kernels/ladder/parts.cuh"
#include "kernels/ladder/softmax.h"

struct max_sum {
    float max, sum;
};

/* Lanes hand it on in two parts: warp_shuffles finds this. */
static __device__ __forceinline__ struct max_sum shuffle_down(struct max_sum value, int lanes)
{
    return {shuffle_down(value.max, lanes), shuffle_down(value.sum, lanes)};
}

struct max_sum_of {
    typedef struct max_sum value;
    static __device__ __forceinline__ struct max_sum identity() { return {-INFINITY, 0.0f}; }
    /* Equal maxima, such as two -inf, are not subtracted: -inf - -inf is NaN. */
    static __device__ __forceinline__ float rescaled(const struct max_sum &a, float max)
    {
        return a.max == max ? a.sum : a.sum * expf(a.max - max);
    }
    static __device__ __forceinline__ struct max_sum combine(const struct max_sum &a, const struct max_sum &b)
    {
        const float max = a.max < b.max ? b.max : a.max;
        return {max, rescaled(a, max) + rescaled(b, max)};
    }
};

static __global__ void max_sum_kernel(const float *x, uint64_t n, struct max_sum *partials)
{
    const uint64_t stride = (uint64_t)gridDim.x * SOFTMAX_BLOCK;
    struct max_sum mine = max_sum_of::identity();
    for (uint64_t i = (uint64_t)blockIdx.x * SOFTMAX_BLOCK + threadIdx.x; i < n; i += stride)
        mine = max_sum_of::combine(mine, {x[i], 1.0f});
    mine = block_shuffles<max_sum_of, SOFTMAX_BLOCK>(mine);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = mine;
}

static __global__ void max_sum_partials_kernel(const struct max_sum *partials, uint64_t n, struct max_sum *result)
{
    const struct max_sum all =
        block_shuffles<max_sum_of, SOFTMAX_BLOCK>(grid_stride<max_sum_of, SOFTMAX_BLOCK>(partials, n));
    if (threadIdx.x == 0)
        *result = all;
}

static __global__ void max_sum_softmax_kernel(const float *x, uint64_t n, const struct max_sum *result, float *y)
{
    const uint64_t stride = (uint64_t)gridDim.x * SOFTMAX_BLOCK;
    const struct max_sum all = *result;
    for (uint64_t i = (uint64_t)blockIdx.x * SOFTMAX_BLOCK + threadIdx.x; i < n; i += stride)
        y[i] = expf(x[i] - all.max) / all.sum;
}

static cudaError_t start(void *argument, cudaStream_t stream)
{
    const struct softmax_job *const job = (const struct softmax_job *)argument;
    struct max_sum *const partials = (struct max_sum *)job->partials, *const all = (struct max_sum *)job->result;
    cudaError_t code = gpu_launch(max_sum_kernel, job->blocks, SOFTMAX_BLOCK, 0, stream, job->x, job->n, partials);
    if (code == cudaSuccess)
        code = gpu_launch(max_sum_partials_kernel, 1, SOFTMAX_BLOCK, 0, stream, partials, job->blocks, all);
    if (code == cudaSuccess)
        code =
            gpu_launch(max_sum_softmax_kernel, job->blocks, SOFTMAX_BLOCK, 0, stream, job->x, job->n, all, job->y);
    return code;
}

extern const struct softmax_rung softmax_fused;
const struct softmax_rung softmax_fused = {start, 3, 0, 64.0, 4.0, 1.0};
