/* Maxima and sums of a group of threads, of which every member needs the whole, and of the blocks of a row: for softmax along rows and columns. A group's
   members are neighbours: a power of two of them, which are a part of a warp, or whole warps of one block. */
#pragma once

#include "kernels/softmax.cuh"
#include "kernels/tuning.h"

/* All threads of a warp call it. */
static __device__ __forceinline__ bool warp_all(bool x) { return __ballot_sync(0xffffffffu, !x) == 0; }
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
static __device__ __forceinline__ uint32_t value_xor(uint32_t x, uint32_t lanes) { return lane_xor(x, lanes); }
static __device__ __forceinline__ void sums_take(uint32_t *a, uint32_t b) { *a += b; }

/* Vectors of memory in which a row lies, at most; 0: its elements do not lie side by side, or not so that each vector of x becomes one of y. */
static inline uint64_t row_vectors_most(const struct softmax_work *work)
{
    const struct box *const box = &work->box;
    const uint64_t bytes = allfold_type_bytes(work->x_type), per_vector = 16 / bytes;
    const uint64_t x_step = box->outer > 1 ? box->outer_stride : 0, y_step = box->outer > 1 ? work->y_outer_stride : 0;
    if (box->inner != 1 || box->axis_stride != 1 || work->y_axis_stride != 1 || work->x_type != work->y_type
        || ((uintptr_t)work->x - (uintptr_t)work->y) % 16 != 0 || (x_step - y_step) % per_vector != 0)
        return 0;
    const uint64_t starts = (uintptr_t)work->x / bytes | x_step | per_vector, common = starts & (0 - starts); /* the starts of rows are multiples of it */
    return (box->length + 2 * per_vector - 1 - common) / per_vector;
}

/* The larger of two elements, or NaN. */
struct take_larger {
    __device__ __forceinline__ void operator()(float *a, float b) const { *a = larger_f32(b, *a); }
    __device__ __forceinline__ void operator()(double *a, double b) const { *a = larger_f64(b, *a); }
};

struct add_sums {
    template <class Sums> __device__ __forceinline__ void operator()(Sums *a, const Sums &b) const { sums_take(a, b); }
};

/* Each lane of a warp gets what take(a, b) makes of the values of all; or each member of a group, of those members that are lanes of its warp. */
template <class Value, class Take> static __device__ __forceinline__ void warp_share(Value *value, const Take &take)
{
#pragma unroll (sizeof(Value) <= 16 ? 5 : 1)
    for (uint32_t lanes = 1; lanes < 32; lanes *= 2) {
        const Value other = value_xor(*value, lanes);
        take(value, other);
    }
}
template <class Value, class Take> static __device__ __forceinline__ void lanes_share(Value *value, uint32_t members, const Take &take)
{
#pragma unroll 1
    for (uint32_t lanes = 1; lanes < members && lanes < 32; lanes *= 2) {
        const Value other = value_xor(*value, lanes);
        take(value, other);
    }
}
#ifdef HAVE_WARP_REDUCTIONS
static __device__ __forceinline__ void warp_share(float *value, const take_larger &) { *value = warp_largest(*value); }
static __device__ __forceinline__ void lanes_share(float *value, uint32_t members, const take_larger &take)
{
    if (members >= 32)
        *value = warp_largest(*value);
    else
        lanes_share<float, take_larger>(value, members, take);
}
#endif

/* Each thread of a block of `warps` warps gets what take(a, b) makes of the values of all; or each member of a group, of its group. Each operation has shared
   memory of its own. */
template <int threads, class Value, class Take> static __device__ __forceinline__ void block_share(Value *value, const Take &take, uint32_t warps = threads / 32)
{
    __shared__ Value shared[threads / 32];
    warp_share(value, take);
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = *value;
    __syncthreads();
    *value = shared[0];
#pragma unroll (sizeof(Value) <= 16 ? threads / 32 : 1)
    for (uint32_t warp = 1; warp < warps; warp++)
        take(value, shared[warp]);
}
/* How a block's threads share out its rows: 1, 2, 4, ... 32 neighbours have one, or whole warps. */
struct row_members {
    uint32_t count, inverse, rows; /* inverse: 2^16 / count, rounded up */
    uint32_t vectors;              /* of each thread, at most */
    __device__ __forceinline__ uint32_t row() const { return threadIdx.x * inverse >> 16; } /* of at most 256 threads */
    __device__ __forceinline__ uint32_t first() const { return row() * count; }
};
static inline __host__ __device__ struct row_members row_members_of(uint32_t count, uint32_t threads, uint32_t vectors = 1)
{
    return {count, (65536 + count - 1) / count, threads / count, (vectors + count - 1) / count};
}

template <int threads, class Value, class Take>
static __device__ __forceinline__ void group_share(Value *value, uint32_t first_thread, uint32_t members, const Take &take)
{
    lanes_share(value, members, take);
    if constexpr (threads > 32) {
        __shared__ Value shared[threads / 32];
        if (members <= 32)
            return;
        if (threadIdx.x % 32 == 0)
            shared[threadIdx.x / 32] = *value;
        __syncthreads();
        const uint32_t first = first_thread / 32;
        *value = shared[first];
#pragma unroll 1
        for (uint32_t warp = 1; warp < members / 32; warp++)
            take(value, shared[first + warp]);
    }
}
/* Of a power of two of members. */
template <int threads, class Value, class Take>
static __device__ __forceinline__ void group_share(Value *value, uint32_t members, const Take &take)
{
    group_share<threads>(value, threadIdx.x & (0 - members), members, take);
}
template <int threads, class Max> static __device__ __forceinline__ void group_share_max(Max *max, uint32_t members)
{
    group_share<threads>(max, members, [](Max *a, const Max &b) { max_take(a, b); });
}
template <int threads, class Sums> static __device__ __forceinline__ void group_share_sums(Sums *sums, uint32_t members)
{
    group_share<threads>(sums, members, add_sums());
}

/* The first lane of a warp gets the combined partial of all. */
template <class Fold> static __device__ __forceinline__ void warp_combine(typename Fold::partial *partial)
{
    constexpr int threads = 32, members = 32;
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
        static_assert(!Fold::f32_terms, "those have a struct row_sum");
        double max = partial->max;
        group_share_max<threads>(&max, members);
        Fold::rescale(partial, max);
        group_share_sums<threads>(&partial->sum, members);
    }
}

/* How the blocks of a row tell each other their partials: here by messages through global memory. Things are told in turns, of which a block begins one when it
   has been told all of the one before; so there is room for two turns. */
constexpr uint32_t PART_WORDS = 32;
struct row_messages {
    uint64_t *of_turns; /* PART_WORDS for each block, twice */
    uint32_t first_id, rank, count, turn;
    __device__ __forceinline__ uint64_t *message(uint32_t block) const
    {
        return of_turns + (uint64_t)(turn % 2 * gridDim.x + blockIdx.x - rank + block) * PART_WORDS;
    }
    __device__ __forceinline__ uint32_t id() const { return first_id + turn / 2 % 2; }
    __device__ __forceinline__ void expect() const {}
    /* By the first thread. */
    template <class Partial> __device__ __forceinline__ void tell(const Partial &own) const
    {
        static_assert(message_words<Partial>::count <= PART_WORDS, "room for a partial");
        if (threadIdx.x == 0)
            message_send(message(rank), own, id());
    }
    template <class Partial> __device__ __forceinline__ Partial told(uint32_t block) const { return message_receive<Partial>(message(block), id()); }
};
