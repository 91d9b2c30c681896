/* Softmax along rows as a fold's partials define it: at level exact, and of f64. */
#pragma once

#include "kernels/axis_softmax.cuh"

/* Softmax's second pass in f32: of the constants what it needs. */
template <class Element> struct whole_results {
    struct exp_anchor_f32 anchor;
    float high, low;
    __device__ __forceinline__ void set(const struct softmax_constants &c) { anchor = c.anchor_f32, high = c.inverse_high_f32, low = c.inverse_low_f32; }
    __device__ __forceinline__ uint4 of(const uint4 &x) const
    {
        struct softmax_constants c;
        c.anchor_f32 = anchor, c.inverse_high_f32 = high, c.inverse_low_f32 = low;
        return vector_softmax<softmax_arithmetic<Element, false>, Element>(x, c);
    }
};
template <class Element> struct whole_results_f64 {
    struct exp_anchor_f64 anchor;
    double high, low;
    __device__ __forceinline__ void set(const struct softmax_constants &c) { anchor = c.anchor, high = c.inverse_high, low = c.inverse_low; }
    __device__ __forceinline__ uint4 of(const uint4 &x) const
    {
        struct softmax_constants c;
        c.anchor = anchor, c.inverse_high = high, c.inverse_low = low;
        return vector_softmax<softmax_in_f64, Element>(x, c);
    }
};
template <class Element> struct whole_results_log {
    double max, log_sum, log_low;
    __device__ __forceinline__ void set(const struct softmax_constants &c) { max = c.max, log_sum = c.log_sum, log_low = c.log_low; }
    __device__ __forceinline__ uint4 of(const uint4 &x) const
    {
        struct softmax_constants c;
        c.max = max, c.log_sum = log_sum, c.log_low = log_low;
        return vector_softmax<log_softmax_in_f64, Element>(x, c);
    }
};

template <int power> constexpr int power_bits = 1 + power_bits<power / 2>;
template <> constexpr int power_bits<1> = 0;

/* Adds the sums of a group's lanes of one warp, which are relative to one maximum. Most often all are in one bin, and below 2^64. */
static __device__ __forceinline__ void lanes_add(struct exp_bins *bins, uint32_t members)
{
    const bool more = (bins->sums[1] | bins->sums[2] | bins->sums[3]) != 0 || bins->sums[0] >> 64 != 0 || bins->nan != 0;
    if (__ballot_sync(0xffffffffu, more) == 0) {
        uint64_t sum = (uint64_t)bins->sums[0];
        uint32_t carry = 0;
#pragma unroll 1
        for (uint32_t lanes = 1; lanes < members && lanes < 32; lanes *= 2) {
            const uint32_t other_carry = lane_xor(carry, lanes);
            const uint64_t other = lane_xor((unsigned long long)sum, lanes);
            sum += other;
            carry += other_carry + (sum < other);
        }
        bins->sums[0] = (uint128)carry << 64 | sum;
        return;
    }
    struct group_bins sums;
    uint32_t nan = bins->nan != 0;
    memcpy(sums.of, bins->sums, sizeof sums);
#pragma unroll 1
    for (uint32_t lanes = 1; lanes < members && lanes < 32; lanes *= 2) {
        sums_take(&sums, value_xor(sums, lanes));
        nan |= lane_xor(nan, lanes);
    }
    memcpy(bins->sums, sums.of, sizeof sums);
    bins->nan = nan;
}
static __device__ __forceinline__ void parts_add(struct exp_bins *a, const struct exp_bins &b)
{
#pragma unroll
    for (int i = 0; i < EXP_BINS; i++)
        a->sums[i] += b.sums[i];
    a->nan |= b.nan;
}
template <class Partial> static __device__ __forceinline__ void lanes_add(Partial *partial, uint32_t members)
{
    const int first = members < 32 ? (int)(threadIdx.x % 32 & (0 - members)) : 0; /* pairs of the lanes of a warp differ in their last bits */
    group_share_sums<32>(&partial->sum, members < 32 ? members : 32);
    partial->sum = {__shfl_sync(0xffffffffu, partial->sum.high, first), __shfl_sync(0xffffffffu, partial->sum.low, first)};
}
template <class Partial> static __device__ __forceinline__ void parts_add(Partial *a, const Partial &b) { pair_combine(&a->sum, &b.sum); }
static __device__ __forceinline__ void parts_settle(struct exp_bins *bins) { exp_bins_settle(bins); }
template <class Partial> static __device__ __forceinline__ void parts_settle(Partial *) {}

/* A partial of nothing but a maximum, or a NaN. */
template <class Fold> static __device__ __forceinline__ typename Fold::partial partial_of_max(double max)
{
    typename Fold::partial partial = Fold::identity();
    if constexpr (Fold::exact)
        partial.nan = max != max;
    if (max != max)
        return partial;
    partial.max = max;
    if constexpr (Fold::exact) {
        partial.bin = max == -INFINITY ? EXP_NO_BIN : -EXP_NO_BIN;
        if (Fold::f32_terms && fabs(max) <= EXP_LIMIT)
            partial.bin = sumexp_exact_bin_of_f32((float)max);
        else if (is_finite(max))
            partial.bin = (exp_whole_of(max).n + EXP_OFFSET) >> 5;
    }
    return partial;
}

/* Rows whose partials are those of a fold. The sums of a row are combined, and its constants computed, by one thread. */
template <class Element_, bool logarithm, bool exact> struct whole_row {
    typedef Element_ element;
    typedef softmax_fold<element, logarithm, exact> Fold;
    typedef typename Fold::partial partial_type;
    typedef std::conditional_t<sizeof(typename element::value) == 4, float, double> real;
    typedef std::conditional_t<logarithm, whole_results_log<element>,
                               std::conditional_t<sizeof(typename element::value) == 4, whole_results<element>, whole_results_f64<element>>> results;
    typedef uint4 kept;
    static constexpr bool heavy = true, replaces = false;
    static constexpr int short_blocks = row_blocks(true, sizeof(typename element::value));
    static __device__ __forceinline__ void larger(float *a, float b) { *a = larger_f32(b, *a); }
    static __device__ __forceinline__ void larger(double *a, double b) { *a = larger_f64(b, *a); }
    template <int vectors> static __device__ __forceinline__ void take_max(real *max, const uint4 *x)
    {
#pragma unroll
        for (int i = 0; i < vectors * element::per_vector; i++)
            larger(max, (real)vectors_value<element>(x[i / element::per_vector], i));
    }
    struct terms {
        partial_type partial;
        explicit __device__ __forceinline__ terms(real max) : partial(partial_of_max<Fold>((double)max)) {}
        template <int vectors> __device__ __forceinline__ void take(const uint4 *x, uint4 *k)
        {
#pragma unroll
            for (int i = 0; i < vectors; i++)
                k[i] = x[i];
            if constexpr (exact && Fold::f32_terms)
                take_f32<vectors * element::per_vector>(x);
            else
                vectors_take<Fold, element, vectors>(&partial, x, 0);
        }
        /* The bins are those of the maximum, so only the smallest element is to be found. */
        template <int count> __device__ __forceinline__ void take_f32(const uint4 *x)
        {
            float values[count], smallest = INFINITY;
#pragma unroll
            for (int i = 0; i < count; i++) {
                values[i] = vectors_value<element>(x[i / element::per_vector], i);
                smallest = smaller_f32(values[i], smallest);
            }
            if (!(partial.max >= EXP_BINS_RANGE - EXP_LIMIT && partial.max <= EXP_LIMIT)) {
                sumexp_exact_each_f32(&partial, values, count);
                return;
            }
            const int64_t range = smallest >= -EXP_LIMIT ? partial.bin - sumexp_exact_bin_of_f32(smallest) : (int64_t)EXP_BINS;
            if (range <= 0)
                sumexp_exact_terms_f32(&partial, values, count, partial.bin, 1);
            else if (range == 1)
                sumexp_exact_terms_f32(&partial, values, count, partial.bin, 2);
            else
                sumexp_exact_terms_f32(&partial, values, count, partial.bin, EXP_BINS);
        }
        /* Members of groups smaller than 8 each compute the constants, and need no barrier. */
        template <int threads> __device__ __forceinline__ results results_of_group(uint32_t members_bits)
        {
            return results_of<threads, 3>(members_bits, {nullptr, 0, 0, 1});
        }
        template <int threads> __device__ __forceinline__ results results_of_blocks(const struct row_parts &others)
        {
            return results_of<threads, power_bits<threads>>(power_bits<threads>, others);
        }
        /* others: of the blocks that share a row; then each has one group. */
        template <int threads, int least_bits>
        __device__ __forceinline__ results results_of(uint32_t members_bits, const struct row_parts &others)
        {
            __shared__ partial_type parts[threads >> (least_bits < 5 ? least_bits : 5)];
            __shared__ results of[threads >> least_bits];
            const uint32_t members = 1u << members_bits, lanes_bits = members_bits < 5 ? members_bits : 5, row = threadIdx.x >> members_bits;
            const bool together = members_bits >= least_bits, computes = !together || threadIdx.x << members_bits < threads;
            lanes_add(&partial, members);
            if (together) {
                if ((threadIdx.x & ((1u << lanes_bits) - 1)) == 0)
                    parts[threadIdx.x >> lanes_bits] = partial;
                __syncthreads();
                if (computes)
                    partial = parts_sum(parts, threadIdx.x << (members_bits - lanes_bits), 1u << (members_bits - lanes_bits));
            }
            parts_settle(&partial);
            if (least_bits > 5 && others.count > 1 && threadIdx.x < 32)
                blocks_share(others);
            results found;
            if (computes) {
                struct softmax_constants c;
                constants_from<Fold, logarithm>(partial, &c);
                found.set(c);
            }
            if (!together)
                return found;
            if (computes)
                of[threadIdx.x] = found;
            __syncthreads();
            return of[row];
        }
        static __device__ __forceinline__ partial_type parts_sum(const partial_type *parts, uint32_t first, uint32_t count)
        {
            partial_type sum = parts[first];
#pragma unroll 1
            for (uint32_t i = 1; i < count; i++)
                parts_add(&sum, parts[first + i]);
            return sum;
        }
        /* The first warp gets the partial of the whole row; its first thread has this block's. */
        __device__ __forceinline__ void blocks_share(const struct row_parts &others)
        {
            if (threadIdx.x == 0)
                others.send(partial);
            partial = Fold::identity();
#pragma unroll 1
            for (uint32_t block = threadIdx.x; block < others.count; block += 32) {
                const partial_type other = others.receive<partial_type>(block);
                Fold::combine(&partial, &other);
            }
            warp_combine<Fold>(&partial);
        }
    };
};
