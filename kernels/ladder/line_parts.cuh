/* Pieces that several rungs for rows and columns have in common; the first rung that uses one explains it. */
#pragma once

#include "kernels/ladder/lines.h" /* first: it says that base/ is C */

#include "kernels/ladder/parts.cuh"

typedef sum_of<float> line_sum;

/* row_vectors.cu: one member's share of the sum of x[0 .. n), of `members` threads that stand side by side. No loop is unrolled, so that
   four vectors are in flight. */
template <unsigned int members>
static __device__ __forceinline__ float vector_share(const float *x, uint64_t n, unsigned int member)
{
    const uint64_t to_boundary = (0 - (uintptr_t)x / sizeof(float)) % 4, head = to_boundary < n ? to_boundary : n;
    const float4 *const vectors = (const float4 *)(x + head);
    const uint64_t count = (n - head) / 4;
    const auto sum = [](float4 v) { return (v.x + v.y) + (v.z + v.w); };
    float total = 0.0f;
#pragma unroll 1
    for (uint64_t i = member; i < head; i += members)
        total += x[i];
    uint64_t i = member;
#pragma unroll 1
    for (; i + 3 * members < count; i += 4 * members) {
        const float4 a = vectors[i], b = vectors[i + members], c = vectors[i + 2 * members], d = vectors[i + 3 * members];
        total += (sum(a) + sum(b)) + (sum(c) + sum(d));
    }
#pragma unroll 1
    for (; i < count; i += members)
        total += sum(vectors[i]);
#pragma unroll 1
    for (i = head + 4 * count + member; i < n; i += members)
        total += x[i];
    return total;
}

/* rows_a_warp.cu: each group of `members` lanes, a power of two up to 32, sums a row of the matrix at x. */
template <unsigned int members> static __global__ void group_a_row_kernel(const float *x, struct lines rows, float *sums)
{
    const uint64_t row = ((uint64_t)blockIdx.x * LINE_BLOCK + threadIdx.x) / members;
    const unsigned int member = threadIdx.x % members;
    float sum = row < rows.count ? vector_share<members>(x + row * rows.line_stride, rows.length, member) : 0.0f;
#pragma unroll
    for (unsigned int lanes = members / 2; lanes > 0; lanes /= 2)
        sum += shuffle_down(sum, (int)lanes);
    if (member == 0 && row < rows.count)
        sums[row] = sum;
}

template <unsigned int members>
static inline cudaError_t group_a_row(struct line_job *job, const float *x, const struct lines &rows, cudaStream_t stream)
{
    return line_launch(job, group_a_row_kernel<members>, line_blocks(rows.count, LINE_BLOCK / members), stream, x, rows, job->sums);
}

/* The last level of split_rows.cu, and all of rows_a_warp.cu. */
cudaError_t rows_a_warp(struct line_job *job, const float *x, const struct lines &rows, cudaStream_t stream);

/* column_vectors.cu: segments of at most as many rows as the rung's chunk, or of all; four columns a thread, each to
   sums[segment * columns + column]. */
cudaError_t column_segments(struct line_job *job, const float *x, const struct lines &columns, float *sums, cudaStream_t stream);
