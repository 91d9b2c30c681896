/* A warp a row: eight rows a block.

   Idea: a warp is the smallest group of threads whose loads can be coalesced, and its lanes add through registers. So nothing of a
   row goes through shared memory, and no warp waits for another.

   What it fixes: barriers, and threads without work: a row of 32 elements has one for each lane.
   What it leaves: loads of 4 bytes; five shuffles for each row, also where a row has only 32 elements; and few
   long rows are fewer threads than before. */
#include "kernels/ladder/line_parts.cuh"

static __global__ void warp_a_row_kernel(const float *x, struct lines rows, float *sums)
{
    const uint64_t row = ((uint64_t)blockIdx.x * LINE_BLOCK + threadIdx.x) / 32;
    float sum = 0.0f;
    if (row >= rows.count) /* a whole warp, which no other waits for */
        return;
    for (uint64_t place = threadIdx.x % 32; place < rows.length; place += 32)
        sum += x[row * rows.line_stride + place];
    sum = warp_shuffles<line_sum>(sum);
    if (threadIdx.x % 32 == 0)
        sums[row] = sum;
}

static cudaError_t start(struct line_job *job, cudaStream_t stream)
{
    return line_launch(job, warp_a_row_kernel, line_blocks(job->lines.count, LINE_BLOCK / 32), stream, job->x, job->lines, job->sums);
}

extern const struct line_rung line_warp_a_row;
const struct line_rung line_warp_a_row = {start, 0, nullptr, nullptr};
