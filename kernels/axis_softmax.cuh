/* Sums of exponentials of a group of threads, of which every member needs the whole: for axis_softmax.cu. A group has a power of two of
   members, which are neighbours: a part of a warp, or whole warps of one block. */
#pragma once

#include "kernels/softmax.cuh"
#include "kernels/tuning.h"

template <class T> static __device__ __forceinline__ T lane_xor(T x, uint32_t lanes) { return __shfl_xor_sync(0xffffffffu, x, (int)lanes); }

/* A maximum, with what goes along with it. */
struct group_max {
    double max;
    int64_t bin; /* of exact sums: that of max */
    uint32_t nan;
};
static __device__ __forceinline__ void max_take(struct group_max *a, const struct group_max &b)
{
    a->bin = b.max > a->max ? b.bin : a->bin;
    a->max = b.max > a->max ? b.max : a->max;
    a->nan |= b.nan;
}

template <bool exact, int threads> static __device__ __forceinline__ void group_share_max(struct group_max *max, uint32_t members)
{
#pragma unroll 1
    for (uint32_t lanes = 1; lanes < members && lanes < 32; lanes *= 2) {
        struct group_max other = {lane_xor(max->max, lanes), 0, 0};
        if constexpr (exact) {
            other.bin = (int64_t)lane_xor((unsigned long long)max->bin, lanes);
            other.nan = lane_xor(max->nan, lanes);
        }
        max_take(max, other);
    }
    if constexpr (threads > 32) {
        __shared__ struct group_max shared[threads / 32];
        if (members <= 32)
            return;
        if (threadIdx.x % 32 == 0)
            shared[threadIdx.x / 32] = *max;
        __syncthreads();
        const uint32_t first = threadIdx.x / members * (members / 32);
        *max = shared[first];
#pragma unroll 1
        for (uint32_t warp = 1; warp < members / 32; warp++)
            max_take(max, shared[first + warp]);
    }
}

/* Sums that are relative to one maximum. */
struct group_bins {
    uint128 of[EXP_BINS];
};
static __device__ __forceinline__ struct group_bins sums_xor(const struct group_bins &sums, uint32_t lanes)
{
    unsigned long long words[sizeof sums / 8];
    struct group_bins other;
    memcpy(words, &sums, sizeof sums);
#pragma unroll
    for (unsigned long long &word : words)
        word = lane_xor(word, lanes);
    memcpy(&other, words, sizeof other);
    return other;
}
static __device__ __forceinline__ void sums_take(struct group_bins *a, const struct group_bins &b)
{
#pragma unroll
    for (int i = 0; i < EXP_BINS; i++)
        a->of[i] += b.of[i];
}
static __device__ __forceinline__ pair sums_xor(const pair &sum, uint32_t lanes) { return {lane_xor(sum.high, lanes), lane_xor(sum.low, lanes)}; }
static __device__ __forceinline__ void sums_take(pair *a, const pair &b) { pair_combine(a, &b); }
static __device__ __forceinline__ double sums_xor(double sum, uint32_t lanes) { return lane_xor(sum, lanes); }
static __device__ __forceinline__ void sums_take(double *a, double b) { *a += b; }

template <int threads, class Sums> static __device__ __forceinline__ void group_share_sums(Sums *sums, uint32_t members)
{
#pragma unroll 1
    for (uint32_t lanes = 1; lanes < members && lanes < 32; lanes *= 2) {
        const Sums other = sums_xor(*sums, lanes);
        sums_take(sums, other);
    }
    if constexpr (threads > 32) {
        __shared__ Sums shared[threads / 32];
        if (members <= 32)
            return;
        if (threadIdx.x % 32 == 0)
            shared[threadIdx.x / 32] = *sums;
        __syncthreads();
        const uint32_t first = threadIdx.x / members * (members / 32);
        *sums = shared[first];
#pragma unroll 1
        for (uint32_t warp = 1; warp < members / 32; warp++)
            sums_take(sums, shared[first + warp]);
    }
}

/* Each member gets the combined partial of its group. threads: of the block; 32: no
   group is larger than a warp. All threads of the block, or of the warp, call it. */
template <class Fold, int threads> static __device__ __forceinline__ void group_combine(typename Fold::partial *partial, uint32_t members)
{
    static_assert(Fold::scaled, "a sum of exponentials");
    if constexpr (Fold::exact) {
        struct group_max max = {partial->max, partial->bin, partial->nan != 0};
        struct group_bins sums;
        group_share_max<true, threads>(&max, members);
        exp_bins_raise(partial, max.max, max.bin);
        memcpy(sums.of, partial->sums, sizeof sums);
        group_share_sums<threads>(&sums, members);
        memcpy(partial->sums, sums.of, sizeof sums);
        partial->nan = max.nan;
        exp_bins_settle(partial);
    } else {
        struct group_max max = {partial->max, 0, 0};
        group_share_max<false, threads>(&max, members);
        Fold::rescale(partial, max.max);
        if constexpr (Fold::f32_terms) { /* f64 is precise enough for sums of f32 terms */
            double sum = pair_value(&partial->sum);
            group_share_sums<threads>(&sum, members);
            partial->sum = {sum, 0.0};
        } else {
            const int first = (int)(threadIdx.x % 32 / members * members); /* pairs of the lanes of a warp differ in their last bits */
            group_share_sums<threads>(&partial->sum, members);
            partial->sum = {__shfl_sync(0xffffffffu, partial->sum.high, first), __shfl_sync(0xffffffffu, partial->sum.low, first)};
        }
    }
}
