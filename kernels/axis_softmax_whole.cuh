/* Softmax along rows as a fold's partials define it: at level exact, and of f64. */
#pragma once

#include "kernels/axis_softmax_fast.cuh"

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
/* Results of 16 bits, of the elements or of their exponentials that were kept. */
template <class Element> struct whole_results_short {
    struct exp_anchor_f32 anchor;
    float scale;
    __device__ __forceinline__ void set(const struct softmax_constants &c) { anchor = c.anchor_f32, scale = c.inverse_high_f32; }
    __device__ __forceinline__ uint4 of(const uint4 &x) const
    {
        struct softmax_constants c;
        c.anchor_f32 = anchor, c.inverse_high_f32 = scale;
        return vector_softmax<softmax_short_in_f32, Element>(x, c);
    }
    __device__ __forceinline__ uint4 of(const eight_terms &kept) const
    {
        float y[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            y[i] = kept.e[i] * scale;
        return vector_rounded<Element>(y);
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

/* Adds the sums of a group's lanes of one warp, which are relative to one maximum. Most often all are in one bin, and below 2^64. */
static __device__ __forceinline__ void lanes_add(struct exp_bins *bins, uint32_t members)
{
    const bool more = (bins->sums[1] | bins->sums[2] | bins->sums[3]) != 0 || bins->sums[0] >> 64 != 0 || bins->nan != 0;
    if (__ballot_sync(0xffffffffu, more) == 0) {
#ifdef HAVE_WARP_REDUCTIONS
        if (members >= 32) {
            bins->sums[0] = warp_sum((uint64_t)bins->sums[0]);
            return;
        }
#endif
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
        if (is_finite(max))
            partial.bin = exp_bin_any(max, Fold::f32_terms);
    }
    return partial;
}

/* Exponentials that a thread keeps in its block's shared memory: each has 32 bytes a vector, its halves apart. */
template <int threads> struct shared_terms {
    uint4 *first; /* this thread's */
    __device__ __forceinline__ eight_terms operator[](int i) const
    {
        eight_terms terms;
        const uint4 halves[2] = {first[2 * i * threads], first[(2 * i + 1) * threads]};
        memcpy(&terms, halves, sizeof terms);
        return terms;
    }
    __device__ __forceinline__ void set(int i, const eight_terms &terms) const
    {
        uint4 halves[2];
        memcpy(halves, &terms, sizeof terms);
        first[2 * i * threads] = halves[0], first[(2 * i + 1) * threads] = halves[1];
    }
};

/* What is kept of the vectors from i on. */
static __device__ __forceinline__ uint4 *kept_from(uint4 *kept, int i) { return kept + i; }
template <int threads> static __device__ __forceinline__ shared_terms<threads> kept_from(const shared_terms<threads> &kept, int i)
{
    return {kept.first + 2 * i * threads};
}

/* Rows whose partials are those of a fold. The sums of a row are combined, and its constants computed, by one thread. keeps: of rows of 16 bits
   the exponentials are kept, in shared memory, not the elements. */
template <class Element_, bool logarithm, bool exact, bool keeps> struct whole_row {
    typedef Element_ element;
    typedef softmax_fold<element, logarithm, exact> Fold;
    typedef typename Fold::partial partial_type;
    typedef std::conditional_t<sizeof(typename element::value) == 4, float, double> real;
    static constexpr bool is_logarithm = logarithm, is_short = !logarithm && sizeof(typename element::stored) == 2;
    typedef std::conditional_t<logarithm, whole_results_log<element>,
                               std::conditional_t<is_short, whole_results_short<element>,
                                                  std::conditional_t<sizeof(typename element::value) == 4, whole_results<element>, whole_results_f64<element>>>> results;
    static constexpr bool in_shared = is_short && keeps;
    typedef uint4 kept;
    static constexpr bool heavy = true, missing_costs = exact && Fold::f32_terms;
    static constexpr int short_blocks = row_blocks(true, sizeof(typename element::value));
    template <int vectors> static __device__ __forceinline__ void take_max(real *max, const uint4 *x)
    {
        if constexpr (sizeof(real) == 4)
            vectors_extreme<element, vectors>(max, x);
        else
#pragma unroll
            for (int i = 0; i < vectors * element::per_vector; i++)
                take_larger()(max, (real)vectors_value<element>(x[i / element::per_vector], i));
    }
    struct terms {
        partial_type partial;
        struct exp_anchor_f32 anchor; /* in_shared */
        explicit __device__ __forceinline__ terms(real max) : partial(partial_of_max<Fold>((double)max))
        {
            if constexpr (in_shared)
                anchor = exp_anchor_f32(is_finite(partial.max) ? partial.max : 0.0, SOFTMAX_RANGE_F32);
        }
        /* k: shared_terms, or vectors, which may be x. */
        template <int vectors, class Kept> __device__ __forceinline__ void take(const uint4 *x, Kept k)
        {
            if constexpr (!in_shared)
#pragma unroll
                for (int i = 0; i < vectors; i++)
                    k[i] = x[i];
            if constexpr (exact && Fold::f32_terms)
                take_f32<vectors>(x, k);
            else
                vectors_take<Fold, element, vectors>(&partial, x, 0);
        }
        /* The same of the first `count` vectors. If any thread of the warp has fewer than all, they are taken one by one: what is missing is -inf, which
           would be a term in another bin. */
        template <int vectors, class Kept> __device__ __forceinline__ void take_some(const uint4 *x, Kept k, int count)
        {
            if constexpr (missing_costs)
                if (__ballot_sync(0xffffffffu, count < vectors) != 0) {
#pragma unroll
                    for (int i = 0; i < vectors; i++)
                        if (i < count)
                            take<1>(x + i, kept_from(k, i));
                    return;
                }
            take<vectors>(x, k);
        }
        /* The bins are those of the maximum, so only the smallest element is to be found. */
        template <int vectors, class Kept> __device__ __forceinline__ void take_f32(const uint4 *x, Kept k)
        {
            constexpr int count = vectors * element::per_vector;
            float values[count], smallest = INFINITY;
            vectors_extreme<element, vectors, true>(&smallest, x);
#pragma unroll
            for (int i = 0; i < count; i++)
                values[i] = vectors_value<element>(x[i / element::per_vector], i);
            const bool usual = partial.max >= EXP_BINS_RANGE - EXP_LIMIT && partial.max <= EXP_LIMIT;
            if (usual) {
                const int64_t range = smallest >= -EXP_LIMIT ? partial.bin - sumexp_exact_bin_of_f32(smallest) : (int64_t)EXP_BINS;
                if (range <= 0)
                    add_f32<count, 1>(values, k);
                else if (range == 1)
                    add_f32<count, 2>(values, k);
                else
                    add_f32<count, EXP_BINS>(values, k);
            }
            if constexpr (in_shared)
                if (!usual || anchor.base != 0.0f)
#pragma unroll
                    for (int i = 0; i < vectors; i++) {
                        struct eight_terms terms;
#pragma unroll
                        for (int j = 0; j < 8; j++)
                            terms.e[j] = exp_short_f32(values[8 * i + j], &anchor);
                        k.set(i, terms);
                    }
            if (!usual)
                sumexp_exact_each_f32(&partial, values, count);
        }
        /* Adds terms to the first `bins` bins; of one or two bins, all elements are in these. What is kept of an element comes with its term
           if the reference is a power of two. */
        template <int count, int bins, class Kept> __device__ __forceinline__ void add_f32(const float *values, Kept k)
        {
            const uint32_t top = (f32_bits(EXP_SHIFT_F32) >> 5) + (uint32_t)partial.bin;
            sumexp_exact_bin_f32 sums[bins] = {};
            struct eight_terms terms;
#pragma unroll
            for (int i = 0; i < count; i++) {
                uint32_t place;
                float x = values[i];
                if constexpr (bins > 2)
                    x = in_shared ? fmaxf(x, anchor.base + anchor.least) : exp_at_least_limit_f32(x);
                const float fraction = exp_fraction_f32(x, &place);
                const uint32_t integer = (1u << EXP_FRACTION_F32) + (uint32_t)nearest_i32(fraction), below = top - (place >> 5);
                sums[0].sum[0] = exp_add_shifted(sums[0].sum[0], integer, place, bins <= 2 || below == 0);
#pragma unroll
                for (int bin = 1; bin < bins; bin++)
                    sums[bin].sum[0] = exp_add_shifted(sums[bin].sum[0], integer, place, below == (uint32_t)bin);
                if constexpr (in_shared) {
                    const uint32_t down = f32_bits(anchor.shift) - (EXP_OFFSET + EXP_FRACTION_F32 - SOFTMAX_UP_F32);
                    terms.e[i % 8] = f32_from_bits(f32_bits((float)(1 << EXP_FRACTION_F32) + fraction) + ((place + down) << 23));
                    if (i % 8 == 7)
                        k.set(i / 8, terms);
                }
            }
            sumexp_exact_settle_f32(&partial, sums, partial.bin, bins, EXP_LOW_BITS);
        }
        /* Members of groups smaller than 8 each compute the constants, and need no barrier. */
        template <int threads> __device__ __forceinline__ results results_of_group(const struct row_members &members)
        {
            return results_of<threads, 8>(members, [](auto) {});
        }
        template <int threads> __device__ __forceinline__ results results_of_blocks(const struct row_messages &others)
        {
            return results_of<threads, threads>(row_members_of(threads, threads), [&](auto *terms) {
                if (others.count > 1 && threadIdx.x < 32)
                    terms->blocks_share(others);
            });
        }
        /* share(this): brings the first thread's partial to that of the whole row, where blocks share it; then each has one group. */
        template <int threads, int least, class Share>
        __device__ __forceinline__ results results_of(const struct row_members &members, const Share &share)
        {
            __shared__ partial_type parts[threads / (least < 32 ? least : 32)];
            __shared__ results of[threads / least];
            const bool together = members.count >= least, computes = !together || threadIdx.x < members.rows;
            lanes_add(&partial, members.count);
            if (together) {
                const uint32_t warps = members.count < 32 ? 1 : members.count / 32; /* that have some of a row */
                if (members.count < 32 ? threadIdx.x == members.first() : threadIdx.x % 32 == 0)
                    parts[members.count < 32 ? members.row() : threadIdx.x / 32] = partial;
                __syncthreads();
                if (computes)
                    partial = parts_sum(parts, threadIdx.x * warps, warps);
            }
            parts_settle(&partial);
            share(this);
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
            return of[members.row()];
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
        __device__ __forceinline__ void blocks_share(const struct row_messages &others)
        {
            others.tell(partial);
            partial = Fold::identity();
#pragma unroll 1
            for (uint32_t block = threadIdx.x; block < others.count; block += 32) {
                const partial_type other = others.told<partial_type>(block);
                Fold::combine(&partial, &other);
            }
            warp_combine<Fold>(&partial);
        }
    };
};

/* short_rows: in registers. */
template <class Element, bool short_rows>
using quick_row_of = std::conditional_t<short_rows && sizeof(typename Element::stored) == 2, quick_row<Element, kept_terms<Element>, kept_results<Element>>,
                                        quick_row<Element, row_terms<Element>, row_results<Element>>>;
template <class Element, bool logarithm, bool exact, bool short_rows>
using row_of = std::conditional_t<exact || sizeof(typename Element::value) == 8, whole_row<Element, logarithm, exact || logarithm, short_rows>,
                                  std::conditional_t<logarithm, quick_row<Element, log_terms<Element>, log_results<Element>>,
                                                     quick_row_of<Element, short_rows>>>;
