/* Sums of exponentials of a group of threads, of which every member needs the whole: for axis_softmax.cu. A group has a power of two of
   members, which are neighbours: a part of a warp, or whole warps of one block. */
#pragma once

#include "kernels/softmax.cuh"
#include "kernels/tuning.h"

template <class T> static __device__ __forceinline__ T lane_xor(T x, uint32_t lanes) { return __shfl_xor_sync(0xffffffffu, x, (int)lanes); }

/* A maximum: alone, which is never NaN, or of exact sums with what goes along with it. */
struct bins_max {
    double max;
    int64_t bin; /* that of max */
    uint32_t nan;
};
static __device__ __forceinline__ float value_xor(float x, uint32_t lanes) { return lane_xor(x, lanes); }
static __device__ __forceinline__ double value_xor(double x, uint32_t lanes) { return lane_xor(x, lanes); }
template <class Real> static __device__ __forceinline__ void max_take(Real *a, Real b) { *a = b > *a ? b : *a; }
static __device__ __forceinline__ struct bins_max value_xor(const struct bins_max &max, uint32_t lanes)
{
    return {lane_xor(max.max, lanes), (int64_t)lane_xor((unsigned long long)max.bin, lanes), lane_xor(max.nan, lanes)};
}
static __device__ __forceinline__ void max_take(struct bins_max *a, const struct bins_max &b)
{
    a->bin = b.max > a->max ? b.bin : a->bin;
    a->max = b.max > a->max ? b.max : a->max;
    a->nan |= b.nan;
}

/* Sums that are relative to one maximum. */
struct group_bins {
    uint128 of[EXP_BINS];
};
static __device__ __forceinline__ struct group_bins value_xor(const struct group_bins &sums, uint32_t lanes)
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
static __device__ __forceinline__ pair value_xor(const pair &sum, uint32_t lanes) { return {lane_xor(sum.high, lanes), lane_xor(sum.low, lanes)}; }
static __device__ __forceinline__ void sums_take(pair *a, const pair &b) { pair_combine(a, &b); }
static __device__ __forceinline__ void sums_take(double *a, double b) { *a += b; }

/* Each member gets what take(a, b) makes of the values of its group. Each operation has shared memory of its own. */
template <int threads, class Value, class Take>
static __device__ __forceinline__ void group_share(Value *value, uint32_t members, const Take &take)
{
#pragma unroll 1
    for (uint32_t lanes = 1; lanes < members && lanes < 32; lanes *= 2) {
        const Value other = value_xor(*value, lanes);
        take(value, other);
    }
    if constexpr (threads > 32) {
        __shared__ Value shared[threads / 32];
        if (members <= 32)
            return;
        if (threadIdx.x % 32 == 0)
            shared[threadIdx.x / 32] = *value;
        __syncthreads();
        const uint32_t first = threadIdx.x / members * (members / 32);
        *value = shared[first];
#pragma unroll 1
        for (uint32_t warp = 1; warp < members / 32; warp++)
            take(value, shared[first + warp]);
    }
}
template <int threads, class Max> static __device__ __forceinline__ void group_share_max(Max *max, uint32_t members)
{
    group_share<threads>(max, members, [](Max *a, const Max &b) { max_take(a, b); });
}
template <int threads, class Sums> static __device__ __forceinline__ void group_share_sums(Sums *sums, uint32_t members)
{
    group_share<threads>(sums, members, [](Sums *a, const Sums &b) { sums_take(a, b); });
}

/* Each member gets the combined partial of its group. threads: of the block; 32: no group is larger than a
   warp. All threads of the block, or of the warp, call it. */
template <class Fold, int threads> static __device__ __forceinline__ void group_combine(typename Fold::partial *partial, uint32_t members)
{
    static_assert(Fold::scaled, "a sum of exponentials");
    if constexpr (Fold::exact) {
        struct bins_max max = {partial->max, partial->bin, partial->nan != 0};
        struct group_bins sums;
        group_share_max<threads>(&max, members);
        exp_bins_raise(partial, max.max, max.bin);
        memcpy(sums.of, partial->sums, sizeof sums);
        group_share_sums<threads>(&sums, members);
        memcpy(partial->sums, sums.of, sizeof sums);
        partial->nan = max.nan;
        exp_bins_settle(partial);
    } else {
        std::conditional_t<Fold::f32_terms, float, double> max = partial->max; /* that of f32 elements is one of them */
        group_share_max<threads>(&max, members);
        Fold::rescale(partial, max);
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

/* Two results of 16 bits, none of which is NaN with a sign or a payload. */
template <class Element> static __device__ __forceinline__ uint32_t round_two(float low, float high)
{
#if defined(__NVCC__) && __CUDA_ARCH__ >= 800
    uint32_t both;
    if constexpr (Element::type == ALLFOLD_F16)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
#else
    typename Element::stored elements[2];
    round_to(&elements[0], low);
    round_to(&elements[1], high);
    return (uint32_t)elements[1].bits << 16 | elements[0].bits;
#endif
}

/* The second pass at level fast of results in f32: of the constants only what softmax_f32 needs. The term of the maximum is in the sum as
   rounded as the others are. */
template <class Element, class Fold> struct quick_softmax {
    struct softmax_constants c;
    __device__ __forceinline__ quick_softmax(const typename Fold::partial &partial)
    {
        const double sum = pair_value(&partial.sum), inverse = is_finite(partial.max) ? power_of_two(-SOFTMAX_UP_F32) / sum : (double)NAN;
        c.anchor_f32 = exp_anchor_f32(is_finite(partial.max) ? partial.max : 0.0, SOFTMAX_RANGE_F32);
        c.inverse_high_f32 = (float)inverse;
        c.inverse_low_f32 = (float)(inverse - (double)c.inverse_high_f32);
    }
    __device__ __forceinline__ uint4 of(const uint4 &x) const { return vector_softmax<softmax_in_f32, Element>(x, c); }
};

/* The same of results of 16 bits: 2^((x - max) log2 e - log2 of the sum relative to exp(max)), in f32, and by a GPU's own exp2, whose
   error is small compared with the rounding of the result (see sumexp.h). Up by 2^24, so that no result is flushed to 0. */
template <class Element, class Fold> struct short_softmax {
    float max, log;
    __device__ __forceinline__ short_softmax(const typename Fold::partial &partial)
    {
        const bool finite = is_finite(partial.max);
        const struct exp_reference reference = exp_reference(finite ? partial.max : 0.0);
        const double up = 24.0 + (partial.max - reference.base) * 0x1.71547652b82fep0 - (double)reference.whole;
        max = (float)partial.max;
        log = finite ? (float)(up - (double)log2f((float)pair_value(&partial.sum))) : (float)NAN;
    }
    __device__ __forceinline__ uint4 of(const uint4 &x) const
    {
        uint32_t words[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            float y[2];
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const float from = Element::load(vector_element<typename Element::stored>(x, 2 * i + j));
                y[j] = exp2_short(fmaf(from - max, 0x1.715476p0f, log)) * 0x1p-24f;
            }
            words[i] = round_two<Element>(y[0], y[1]);
        }
        return make_uint4(words[0], words[1], words[2], words[3]);
    }
};

/* The second pass as it is defined. */
template <class Element, class Fold, bool logarithm> struct whole_softmax {
    struct softmax_constants c;
    __device__ __forceinline__ whole_softmax(const typename Fold::partial &partial) { constants_from<Fold, logarithm>(partial, &c); }
    __device__ __forceinline__ uint4 of(const uint4 &x) const { return vector_softmax<softmax_arithmetic<Element, logarithm>, Element>(x, c); }
};

template <class Element, class Fold, bool logarithm, bool exact>
using row_arithmetic = std::conditional_t<exact || sizeof(typename Element::value) == 8, whole_softmax<Element, Fold, logarithm>,
                                          std::conditional_t<sizeof(typename Element::stored) == 2, short_softmax<Element, Fold>,
                                                             quick_softmax<Element, Fold>>>;
