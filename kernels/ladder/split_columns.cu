/* Split columns: a block takes at most 128 rows of its columns; the partials are the rows of a smaller matrix.

   Idea: as in split_rows.cu, but the partials of a segment are written side by side, a row of them, so that the next level
   sums columns again, with the same kernel and whole vectors.

   What it fixes: few columns; the number of threads now follows from the number of elements.
   What it leaves: where there are fewer than 1,024 columns the threads of a block to the right of the last one have no work; with 32
   columns that is 248 of 256. The engine puts such threads below one another, and adds their sums in shared memory. */
#include "kernels/ladder/line_parts.cuh"

constexpr uint64_t CHUNK = 128;

static cudaError_t start(struct line_job *job, cudaStream_t stream)
{
    const float *x = job->x;
    struct lines columns = job->lines;
    cudaError_t code = cudaSuccess;
    for (int level = 0; columns.length > CHUNK && code == cudaSuccess; level++) {
        float *const partials = job->partials[level % 2];
        code = column_segments(job, x, columns, partials, stream);
        x = partials;
        columns = line_partials(&columns, line_segments(columns.length, CHUNK));
    }
    return code == cudaSuccess ? column_segments(job, x, columns, job->sums, stream) : code;
}

extern const struct line_rung line_split_columns;
const struct line_rung line_split_columns = {start, CHUNK, nullptr, nullptr};
