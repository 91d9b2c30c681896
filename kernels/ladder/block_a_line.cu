/* A block a line: its threads take the line's places side by side, then add their sums in shared memory.

   Idea: the reduction ladder's kernel (unrolled.cu), once for each line.

   Of rows it is coalesced, and a long row has 256 threads, not one. What it leaves: a row shorter than the block leaves most of its
   threads without work, and all of them go through the tree and its barriers; few long rows still are few blocks.

   Of columns it is the worst rung: the lanes of a warp now lie a whole row apart, as in thread_a_line.cu for rows. */
#include "kernels/ladder/line_parts.cuh"

static __global__ void block_a_line_kernel(const float *x, struct lines lines, float *sums)
{
    __shared__ float shared[LINE_BLOCK];
    const uint64_t line = blockIdx.x;
    float sum = 0.0f;
    for (uint64_t place = threadIdx.x; place < lines.length; place += LINE_BLOCK)
        sum += x[line * lines.line_stride + place * lines.place_stride];
    shared[threadIdx.x] = sum;
    __syncthreads();
    block_tree<line_sum, LINE_BLOCK>(shared, threadIdx.x);
    if (threadIdx.x == 0)
        sums[line] = shared[0];
}

static cudaError_t start(struct line_job *job, cudaStream_t stream)
{
    return line_launch(job, block_a_line_kernel, line_blocks(job->lines.count, 1), stream, job->x, job->lines, job->sums);
}

extern const struct line_rung line_block_a_row, line_block_a_column;
const struct line_rung line_block_a_row = {start, 0, nullptr, nullptr};
const struct line_rung line_block_a_column = {start, 0, nullptr, nullptr};
