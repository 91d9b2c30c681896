/* Rows a warp: short rows share a warp (group_a_row_kernel in line_parts.cuh).

   Idea: as many lanes take a row as it has vectors, rounded up to a power of two. A row of 32 elements has 8 lanes, so a warp has four
   rows. They are neighbours in memory, so the warp's load is 512 bytes side by side; and three shuffles add four rows at once. The
   number of lanes is a constant of the kernel, and the host chooses the kernel by the length.

   What it fixes: lanes without work, and shuffles: of rows of 32 elements there were 40 for eight rows, now there are 6.
   What it leaves: a lane of a short row has one load in flight and then ends, and starting blocks takes time; and few long rows. */
#include "kernels/ladder/line_parts.cuh"

cudaError_t rows_a_warp(struct line_job *job, const float *x, const struct lines &rows, cudaStream_t stream)
{
    const uint64_t vectors = (rows.length + 3) / 4;
    return vectors <= 1   ? group_a_row<1>(job, x, rows, stream)
           : vectors <= 2 ? group_a_row<2>(job, x, rows, stream)
           : vectors <= 4 ? group_a_row<4>(job, x, rows, stream)
           : vectors <= 8 ? group_a_row<8>(job, x, rows, stream)
           : vectors <= 16 ? group_a_row<16>(job, x, rows, stream)
                           : group_a_row<32>(job, x, rows, stream);
}

static cudaError_t start(struct line_job *job, cudaStream_t stream) { return rows_a_warp(job, job->x, job->lines, stream); }

extern const struct line_rung line_rows_a_warp;
const struct line_rung line_rows_a_warp = {start, 0, nullptr, nullptr};
