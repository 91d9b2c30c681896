/* Column vectors: a thread takes four neighbouring columns, by one load of 16 bytes a row, four rows before it adds.

   Idea: neighbouring columns are neighbours in memory, so a vector is a piece of a row, and each of its four elements belongs to
   another sum. Nothing is combined between threads.

   The rows begin at multiples of 16 bytes only if the number of columns is a multiple of 4. Otherwise a thread takes four columns that
   are a block's width apart, so that its loads of 4 bytes stay coalesced.

   What it fixes: a quarter of the load instructions, and 64 bytes in flight a thread.
   What it leaves: a quarter of the threads. Of few columns there are too few: 1,024 columns are one block. */
#include "kernels/ladder/line_parts.cuh"

constexpr uint64_t TILE = 4 * LINE_BLOCK; /* columns of a block */

/* What a block takes: TILE columns from `column` on, rows [begin, end). */
struct column_tile {
    uint64_t column, segment, begin, end;
};
static __device__ __forceinline__ struct column_tile tile_of(const struct lines &columns, uint64_t chunk)
{
    const uint64_t tiles = (columns.count + TILE - 1) / TILE, segment = blockIdx.x / tiles, next = (segment + 1) * chunk;
    return {blockIdx.x % tiles * TILE, segment, segment * chunk, next < columns.length ? next : columns.length};
}

static __global__ void column_vectors_kernel(const float *x, struct lines columns, uint64_t chunk, float *sums)
{
    const struct column_tile tile = tile_of(columns, chunk);
    const uint64_t column = tile.column + 4 * threadIdx.x;
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
    if (column >= columns.count)
        return;
#pragma unroll 4
    for (uint64_t row = tile.begin; row < tile.end; row++) {
        const float4 v = *(const float4 *)(x + row * columns.place_stride + column);
        sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
    }
    *(float4 *)(sums + tile.segment * columns.count + column) = sum;
}

static __global__ void column_fours_kernel(const float *x, struct lines columns, uint64_t chunk, float *sums)
{
    const struct column_tile tile = tile_of(columns, chunk);
    const uint64_t column = tile.column + threadIdx.x;
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll 4
    for (uint64_t row = tile.begin; row < tile.end; row++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[i] += column + i * LINE_BLOCK < columns.count ? x[row * columns.place_stride + column + i * LINE_BLOCK] : 0.0f;
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (column + i * LINE_BLOCK < columns.count)
            sums[tile.segment * columns.count + column + i * LINE_BLOCK] = sum[i];
}

cudaError_t column_segments(struct line_job *job, const float *x, const struct lines &columns, float *sums, cudaStream_t stream)
{
    const uint64_t chunk = job->rung->chunk > 0 ? job->rung->chunk : columns.length;
    const auto kernel = columns.count % 4 == 0 ? column_vectors_kernel : column_fours_kernel;
    const unsigned int blocks = line_blocks(columns.count, TILE) * (unsigned int)line_segments(columns.length, chunk);
    return line_launch(job, kernel, blocks, stream, x, columns, chunk, sums);
}

static cudaError_t start(struct line_job *job, cudaStream_t stream)
{
    return column_segments(job, job->x, job->lines, job->sums, stream);
}

extern const struct line_rung line_column_vectors;
const struct line_rung line_column_vectors = {start, 0, nullptr, nullptr};
