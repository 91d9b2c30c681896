/* Softmax along rows as a fold's partials define it: of f64; and what level exact of other types (axis_softmax_exact.cuh) shares with that, which are results, parts of
   rows, and how those of a group's threads become results. */
#pragma once

#include "kernels/axis_softmax_fast.cuh"

/* Elements, and what exp_low_f32 made of them, in units of 2^-EXP_FRACTION_F32. */
struct vector_with_low {
    uint4 x, low;
};
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
    /* The same, if the anchor's base is 0 and no element is below its least. */
    __device__ __forceinline__ uint4 of(const struct vector_with_low &kept) const
    {
        const uint32_t up = f32_bits(anchor.shift) + (127u + SOFTMAX_UP_F32 - EXP_OFFSET);
        float y[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t place;
            float n;
            const float d = exp_placed_f32(vector_element<float>(kept.x, i), &place, &n), one = 1.0f + d;
            const float less = fmaf(vector_element<float>(kept.low, i), 1.0f / (1 << EXP_FRACTION_F32), d - (one - 1.0f));
            y[i] = fmaf(high, one, fmaf(high, less, low * one)) * f32_from_bits((place + up) << 23);
        }
        return vector_of(y);
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

/* The sum of x over a group's lanes of one warp. */
static __device__ __forceinline__ uint128 lanes_sum(uint64_t x, uint32_t members)
{
#ifdef HAVE_WARP_REDUCTIONS
    if (members >= 32)
        return warp_sum(x);
#endif
    uint32_t carry = 0;
#pragma unroll 1
    for (uint32_t lanes = 1; lanes < members && lanes < 32; lanes *= 2) {
        const uint32_t other_carry = lane_xor(carry, lanes);
        const uint64_t other = lane_xor((unsigned long long)x, lanes);
        x += other;
        carry += other_carry + (x < other);
    }
    return (uint128)carry << 64 | x;
}

/* Sums of terms, by bins, of a row with that maximum. more: some are not in the first. */
struct bin_sums {
    uint128 of[EXP_BINS];
    double max;
    uint32_t more, nan;
};
template <class Sum> static __device__ __forceinline__ struct bin_sums bin_sums_of(const Sum sums[EXP_BINS], double max, bool nan)
{
    struct bin_sums part;
    part.max = max;
    Sum more = 0;
#pragma unroll
    for (int i = 0; i < EXP_BINS; i++) {
        part.of[i] = sums[i];
        more |= i > 0 ? sums[i] : 0;
    }
    part.more = more != 0;
    part.nan = nan;
    return part;
}
/* Parts of a row: added over a group's lanes of one warp, and those of several warps. What is not in the first bin, or has more than 64 bits, has functions of its
   own, which need registers. */
static __device__ __noinline__ struct bin_sums lanes_sum_bins(struct bin_sums part, uint32_t members)
{
    uint64_t high = 0;
#pragma unroll
    for (int i = 0; i < EXP_BINS; i++)
        high |= (uint64_t)(part.of[i] >> 64);
    const bool wide = __ballot_sync(0xffffffffu, high != 0) != 0;
    part.more = __ballot_sync(0xffffffffu, part.more != 0) != 0;
    part.nan = __ballot_sync(0xffffffffu, part.nan != 0) != 0 ? (uint32_t)lanes_sum(part.nan, members) : 0;
#pragma unroll
    for (int i = 0; i < EXP_BINS; i++)
        if (i == 0 || part.more != 0) {
            high = (uint64_t)(part.of[i] >> 64);
            part.of[i] = lanes_sum((uint64_t)part.of[i], members);
            if (wide)
                part.of[i] += lanes_sum(high, members) << 64;
        }
    return part;
}
static __device__ __forceinline__ void lanes_add(struct bin_sums *part, uint32_t members)
{
    if (__ballot_sync(0xffffffffu, (part->more | part->nan | (uint64_t)(part->of[0] >> 64)) != 0) != 0)
        *part = lanes_sum_bins(*part, members);
    else
        part->of[0] = lanes_sum((uint64_t)part->of[0], members);
}
static __device__ __noinline__ struct bin_sums parts_sum_bins(struct bin_sums sum, const struct bin_sums *parts, uint32_t count)
{
#pragma unroll 1
    for (int bin = 1; bin < EXP_BINS; bin++)
#pragma unroll 8
        for (uint32_t i = 1; i < count; i++)
            sum.of[bin] += parts[i].of[bin];
    return sum;
}
static __device__ __forceinline__ struct bin_sums parts_sum(const struct bin_sums *parts, uint32_t count)
{
    struct bin_sums sum = parts[0];
#pragma unroll 4
    for (uint32_t i = 1; i < count; i++) {
        sum.of[0] += parts[i].of[0];
        sum.more |= parts[i].more;
        sum.nan |= parts[i].nan;
    }
    return sum.more != 0 ? parts_sum_bins(sum, parts, count) : sum;
}
template <class Partial> static __device__ __forceinline__ void lanes_add(Partial *partial, uint32_t members)
{
    const int first = members < 32 ? (int)(threadIdx.x % 32 & (0 - members)) : 0; /* pairs of the lanes of a warp differ in their last bits */
    group_share_sums<32>(&partial->sum, members < 32 ? members : 32);
    partial->sum = {__shfl_sync(0xffffffffu, partial->sum.high, first), __shfl_sync(0xffffffffu, partial->sum.low, first)};
}
template <class Partial> static __device__ __forceinline__ Partial parts_sum(const Partial *parts, uint32_t count)
{
    Partial sum = parts[0];
#pragma unroll 1
    for (uint32_t i = 1; i < count; i++)
        pair_combine(&sum.sum, &parts[i].sum);
    return sum;
}

template <class Fold> static __device__ __forceinline__ typename Fold::partial partial_of_part(const struct bin_sums &part)
{
    typename Fold::partial partial = partial_of_max<Fold>(part.max);
    memcpy(partial.sums, part.of, sizeof part.of);
    partial.nan |= part.nan;
    exp_bins_settle(&partial);
    return partial;
}
template <class Fold, class Partial> static __device__ __forceinline__ Partial partial_of_part(const Partial &part) { return part; }

/* The sum of bins, each below 2^96, less `own` of the first, as exp_bins_less makes it. */
static __device__ __noinline__ pair bins_total(struct bin_sums part, uint64_t own, int scale)
{
    pair total = pair_identity();
    part.of[0] -= own;
#pragma unroll
    for (int i = EXP_BINS; i-- > 0;) {
        const pair value = pair_scaled(exp_bin_value_96(part.of[i]), scale - 32 * i);
        if (total.high == 0.0)
            total = value;
        else if (part.of[i] != 0)
            pair_combine(&total, &value);
    }
    return total;
}
/* Results of a row, from its partial, or from its part, if that is all of it. Most often the maximum is near 0: then what constants_from does is short, and other
   threads wait less. */
template <class Row> static __device__ __forceinline__ typename Row::results results_of_partial(const typename Row::Fold::partial &partial)
{
    typename Row::results results;
    struct softmax_constants c;
    constants_from<typename Row::Fold, Row::is_logarithm>(partial, &c);
    results.set(c);
    return results;
}
template <class Row> static __device__ __forceinline__ typename Row::results results_of_row(const typename Row::part &part)
{
    if constexpr (Row::Fold::exact && Row::Fold::f32_terms)
        if (part.nan == 0 && fabs(part.max) <= EXP_WHOLE) {
            typename Row::results results;
            struct softmax_constants c;
            uint32_t place;
            const uint64_t integer = exp_integer_f32((float)part.max, &place), own = Row::is_logarithm ? integer << (place & 31) : 0;
            const int scale = -(int)(place & 31) - EXP_FRACTION_F32;
            pair sum;
            if (part.more != 0)
                sum = bins_total(part, own, scale);
            else if (Row::is_logarithm)
                sum = pair_scaled(exp_bin_value_96(part.of[0] - own), scale);
            else
                sum = {exp_bin_rounded_96(part.of[0]) * power_of_two(scale), 0.0}; /* results in f32 need no more */
            if constexpr (Row::is_logarithm) {
                c.max = part.max;
                softmax_constants_log(part.max, &sum, &c);
            } else {
                softmax_constants_finite(part.max, &sum, &c);
            }
            results.set(c);
            return results;
        }
    return results_of_partial<Row>(partial_of_part<typename Row::Fold>(part));
}

/* A group's results: one thread of it adds the parts of its warps, and computes them. own: of this thread. Of groups smaller than `least` every thread
   computes them, and there is no barrier. others: the blocks that share a row, which is then a block's only one. All threads of a block call it. */
template <class Row, int threads, int least>
static __device__ __forceinline__ typename Row::results group_results(typename Row::part own, const struct row_members &members,
                                                                      const struct row_messages *others = nullptr)
{
    typedef typename Row::part part;
    typedef typename Row::results results;
    typedef typename Row::Fold Fold;
    __shared__ part parts[threads / (least < 32 ? least : 32)];
    __shared__ results of[threads / least];
    const bool together = members.count >= least, computes = !together || threadIdx.x < members.rows;
    lanes_add(&own, members.count);
    if (together) {
        const uint32_t warps = members.count < 32 ? 1 : members.count / 32; /* that have some of a row */
        if (members.count < 32 ? threadIdx.x == members.first() : threadIdx.x % 32 == 0)
            parts[members.count < 32 ? members.row() : threadIdx.x / 32] = own;
        __syncthreads();
        if (computes)
            own = parts_sum(parts + threadIdx.x * warps, warps);
    }
    results found;
    if (others != nullptr && others->count > 1) {
        if (threadIdx.x < 32) {
            typename Fold::partial partial = partial_of_part<Fold>(own);
            others->tell(partial);
            partial = Fold::identity();
#pragma unroll 1
            for (uint32_t block = threadIdx.x; block < others->count; block += 32) {
                const typename Fold::partial other = others->template told<typename Fold::partial>(block);
                Fold::combine(&partial, &other);
            }
            warp_combine<Fold>(&partial);
            found = results_of_partial<Row>(partial);
        }
    } else if (computes)
        found = results_of_row<Row>(own);
    if (!together)
        return found;
    if (computes)
        of[threadIdx.x] = found;
    __syncthreads();
    return of[members.row()];
}

/* Rows of f64. */
template <class Element, bool logarithm, bool exact> struct whole_row {
    typedef Element element;
    typedef softmax_fold<element, logarithm, exact> Fold;
    typedef std::conditional_t<exact, struct bin_sums, typename Fold::partial> part;
    typedef std::conditional_t<logarithm, whole_results_log<element>, whole_results_f64<element>> results;
    typedef double real;
    typedef uint4 kept;
    static constexpr bool is_logarithm = logarithm, heavy = true, missing_costs = false, in_shared = false, keeps_low = false;
    static constexpr int short_blocks = row_blocks(true, sizeof(typename element::value)), least = results_least(logarithm, sizeof(typename element::value));
    template <int vectors> static __device__ __forceinline__ void take_max(real *max, const uint4 *x)
    {
#pragma unroll
        for (int i = 0; i < vectors * element::per_vector; i++)
            take_larger()(max, vectors_value<element>(x[i / element::per_vector], i));
    }
    struct terms {
        typename Fold::partial partial;
        explicit __device__ __forceinline__ terms(real max) : partial(partial_of_max<Fold>(max)) {}
        /* k may be x. */
        template <int vectors> __device__ __forceinline__ void take(const uint4 *x, uint4 *k)
        {
#pragma unroll
            for (int i = 0; i < vectors; i++)
                k[i] = x[i];
            vectors_take<Fold, element, vectors>(&partial, x, 0);
        }
        template <int vectors, bool> __device__ __forceinline__ void take_part(uint4 *x, uint4 *k, int32_t, int32_t, int32_t) { take<vectors>(x, k); }
        __device__ __forceinline__ part own() const
        {
            if constexpr (exact)
                return bin_sums_of(partial.sums, partial.max, partial.nan != 0);
            else
                return partial;
        }
        template <int threads> __device__ __forceinline__ results results_of_group(const struct row_members &members) const
        {
            return group_results<whole_row, threads, least>(own(), members);
        }
        template <int threads> __device__ __forceinline__ results results_of_blocks(const struct row_messages &others) const
        {
            return group_results<whole_row, threads, threads>(own(), row_members_of(threads, threads), &others);
        }
    };
};
