/* A thread a line: each walks along its own row, or down its own column.

   Idea: lines are independent of each other, so the loop over lines becomes the threads, and the loop along a line stays a loop.

   Of rows it is the worst rung: at each step the 32 lanes of a warp read 32 elements that lie a whole row apart, 32 sectors for 128
   bytes. The other 28 bytes of a sector are wanted in the next seven steps. Whether they are still in the cache by then decides
   the speed. And a matrix of few long rows has few threads.

   Of columns the same code is coalesced: at each step neighbours read neighbours. What it leaves there: loads of 4 bytes, and
   few threads where there are few columns. */
#include "kernels/ladder/line_parts.cuh"

static __global__ void thread_a_line_kernel(const float *x, struct lines lines, float *sums)
{
    const uint64_t line = (uint64_t)blockIdx.x * LINE_BLOCK + threadIdx.x;
    float sum = 0.0f;
    if (line >= lines.count)
        return;
    for (uint64_t place = 0; place < lines.length; place++)
        sum += x[line * lines.line_stride + place * lines.place_stride];
    sums[line] = sum;
}

static cudaError_t start(struct line_job *job, cudaStream_t stream)
{
    return line_launch(job, thread_a_line_kernel, line_blocks(job->lines.count, LINE_BLOCK), stream, job->x, job->lines, job->sums);
}

extern const struct line_rung line_thread_a_row, line_thread_a_column;
const struct line_rung line_thread_a_row = {start, 0, nullptr, nullptr};
const struct line_rung line_thread_a_column = {start, 0, nullptr, nullptr};
