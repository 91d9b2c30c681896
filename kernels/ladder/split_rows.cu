/* Split rows: a block takes at most 4,096 elements of a row; the partials of a row are a row of a smaller matrix.

   Idea: with few long rows there are too few warps to keep the memory busy, so a row is cut into segments and each has a block.
   What is left is the same task, smaller: sum the rows of a matrix that has as many columns as a row has segments. It is done
   in the same way, level by level, as the reduction ladder does it. Rows that need no cut are those of the rung before.

   What it fixes: long rows; the number of threads now follows from the number of elements, not from the number of rows.
   What it leaves: short rows are as before. A launch for each level: here two for rows of up to 2^24 elements. */
#include "kernels/ladder/line_parts.cuh"

constexpr uint64_t CHUNK = 4096;

static __global__ void split_rows_kernel(const float *x, struct lines rows, uint64_t segments, float *partials)
{
    const uint64_t row = blockIdx.x / segments, first = blockIdx.x % segments * CHUNK, left = rows.length - first;
    const float *const from = x + row * rows.line_stride + first;
    const float sum = block_shuffles<line_sum, LINE_BLOCK>(vector_share<LINE_BLOCK>(from, left < CHUNK ? left : CHUNK, threadIdx.x));
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum; /* row * segments + segment */
}

static cudaError_t start(struct line_job *job, cudaStream_t stream)
{
    const float *x = job->x;
    struct lines rows = job->lines;
    cudaError_t code = cudaSuccess;
    for (int level = 0; rows.length > CHUNK && code == cudaSuccess; level++) {
        const uint64_t segments = line_segments(rows.length, CHUNK);
        float *const partials = job->partials[level % 2];
        code = line_launch(job, split_rows_kernel, line_blocks(rows.count * segments, 1), stream, x, rows, segments, partials);
        x = partials;
        rows = line_partials(&rows, segments);
    }
    return code == cudaSuccess ? rows_a_warp(job, x, rows, stream) : code;
}

extern const struct line_rung line_split_rows;
const struct line_rung line_split_rows = {start, CHUNK, nullptr, nullptr};
