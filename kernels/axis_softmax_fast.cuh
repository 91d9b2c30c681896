/* Softmax along rows at level fast, of elements that are f32 or become f32: terms and results relative to the maximum, which is known
   first. Every exponential is computed once or twice, in f32, and the sum of a thread's terms is f64. docs/numerics.md has the bounds. */
#pragma once

#include "kernels/axis_softmax.cuh"

/* A part of a row. */
struct row_sum {
    float max;      /* NaN if an element is */
    uint32_t count; /* of the elements that equal max, if their terms are not in the sum */
    double sum;     /* of terms, relative to the reference of max (fold/exponential.h) */
};

/* The larger of the elements of two vectors, each of two, or the smaller; or NaN. */
template <class Element, bool smallest = false> static __device__ __forceinline__ uint4 vector_extremes(const uint4 &a, const uint4 &b)
{
#ifdef HAVE_EXTREME_HALVES
    if constexpr (sizeof(typename Element::stored) == 2) {
        const auto both = [](uint32_t x, uint32_t y) { return extreme_halves<Element::type == ALLFOLD_F16, smallest>(x, y); };
        return make_uint4(both(a.x, b.x), both(a.y, b.y), both(a.z, b.z), both(a.w, b.w));
    } else
#endif
    {
        typename Element::stored found[Element::per_vector];
#pragma unroll
        for (int i = 0; i < Element::per_vector; i++) {
            const float x = Element::load(vector_element<typename Element::stored>(a, i)), y = Element::load(vector_element<typename Element::stored>(b, i));
            round_to(&found[i], smallest ? smaller_f32(x, y) : larger_f32(x, y));
        }
        return vector_of(found);
    }
}
/* The largest element of vectors and *extreme, or the smallest; or NaN. */
template <class Element, int vectors, bool smallest = false> static __device__ __forceinline__ void vectors_extreme(float *extreme, const uint4 *x)
{
    typedef typename Element::stored stored;
    const auto take = [extreme](float element) { *extreme = smallest ? smaller_f32(element, *extreme) : larger_f32(element, *extreme); };
#ifdef HAVE_EXTREME_HALVES
    constexpr bool f16 = Element::type == ALLFOLD_F16;
    if constexpr (f16 || Element::type == ALLFOLD_BF16) {
        uint4 found = x[0];
#pragma unroll
        for (int i = 1; i < vectors; i++)
            found = vector_extremes<Element, smallest>(found, x[i]);
        found.x = extreme_halves<f16, smallest>(extreme_halves<f16, smallest>(found.x, found.y), extreme_halves<f16, smallest>(found.z, found.w));
        take(Element::load(vector_element<stored>(found, 0)));
        take(Element::load(vector_element<stored>(found, 1)));
    } else
#endif
#pragma unroll
        for (int i = 0; i < vectors * Element::per_vector; i++)
            take(Element::load(vector_element<stored>(x[i / Element::per_vector], i % Element::per_vector)));
}

/* Elements below `floor` become the floor, rounded. */
template <class Element, int vectors> static __device__ __forceinline__ void vectors_raise(uint4 *x, float floor)
{
    typename Element::stored of[Element::per_vector];
#pragma unroll
    for (int i = 0; i < Element::per_vector; i++)
        round_to(&of[i], floor);
    const uint4 floors = vector_of(of);
#pragma unroll
    for (int i = 0; i < vectors; i++)
        x[i] = vector_extremes<Element>(x[i], floors);
}

/* 1 / x to about 2^-45, for 2^-100 < x < 2^100. */
static __device__ __forceinline__ double quick_inverse(double x)
{
    const double near = (double)(1.0f / (float)x);
    return fma(near, fma(-x, near, 1.0), near);
}

/* Terms of f32: exp(x) relative to 2^N or, far from 0, to exp(max), as in fold/exponential.h, times 2^SOFTMAX_UP_F32. A term is kept and
   becomes the result. */
template <class Element, bool is_short = sizeof(typename Element::stored) == 2> struct row_terms {
    typedef uint4 kept;
    static constexpr bool counts = false;
    float max;
    struct exp_anchor_f32 anchor;
    double sum = 0.0;
    explicit __device__ __forceinline__ row_terms(float max) : max(max)
    {
        anchor = exp_anchor_f32(is_finite((double)max) ? (double)max : 0.0, SOFTMAX_RANGE_F32);
    }
    __device__ __forceinline__ uint4 take(const uint4 &x)
    {
        float e[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum += (double)(e[i] = exp_quick_f32(vector_element<float>(x, i), &anchor));
        return vector_of(e);
    }
    __device__ __forceinline__ double value() const { return sum * power_of_two(-SOFTMAX_UP_F32); }
};

/* Whether the type has numbers that a GPU's exp2 flushes to 0. */
template <class Element> constexpr bool has_subnormals_of_f32
    = float_format_of(Element::type).exponent_min - float_format_of(Element::type).precision + 1 < float_format_of(ALLFOLD_F32).exponent_min;

/* Of a vector of 16 bits: exp(x) relative to the reference of a maximum, by the GPU's own exp2; times 2^up, so that none that counts is flushed to 0.
   precise: with what f32 lacks of log2 e, 2^-26 of it. */
struct eight_terms {
    float e[8];
};
template <class Element, bool precise> struct short_exponentials {
    static constexpr int up = has_subnormals_of_f32<Element> ? 24 : 0;
    float base, whole;
    explicit __device__ __forceinline__ short_exponentials(float max)
    {
        const struct exp_reference reference = exp_reference(is_finite((double)max) ? (double)max : 0.0);
        base = (float)reference.base, whole = (float)(reference.whole - up);
    }
    __device__ __forceinline__ eight_terms of(const uint4 &x) const
    {
        eight_terms terms;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float u = Element::load(vector_element<typename Element::stored>(x, i)) - base, power = fmaf(u, 0x1.715476p0f, -whole);
            terms.e[i] = exp2_short(precise ? fmaf(u, 0x1.4ae0cp-26f, power) : power);
        }
        return terms;
    }
};
/* Terms of 16 bits. Of rows that stay in registers they are kept, of others the elements are. */
template <class Element> struct kept_terms {
    typedef eight_terms kept;
    static constexpr bool counts = false;
    typedef short_exponentials<Element, false> exponentials;
    float max, sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    exponentials exponential;
    explicit __device__ __forceinline__ kept_terms(float max) : max(max), exponential(max) {}
    __device__ __forceinline__ eight_terms take(const uint4 &x)
    {
        const eight_terms terms = exponential.of(x);
#pragma unroll
        for (int i = 0; i < 8; i++)
            sum[i % 4] += terms.e[i];
        return terms;
    }
    __device__ __forceinline__ double value() const { return (double)((sum[0] + sum[1]) + (sum[2] + sum[3])) * power_of_two(-exponentials::up); }
};
template <class Element> struct row_terms<Element, true> : kept_terms<Element> {
    typedef uint4 kept;
    explicit __device__ __forceinline__ row_terms(float max) : kept_terms<Element>(max) {}
    __device__ __forceinline__ uint4 take(const uint4 &x)
    {
        kept_terms<Element>::take(x);
        return x;
    }
};

/* The results, of what was kept of a part of a row, and of the whole row. */
template <class Element, bool is_short = sizeof(typename Element::stored) == 2> struct row_results {
    float high, low;
    __device__ __forceinline__ row_results(double factor, const struct row_sum &whole)
    {
        const double scale = is_finite((double)whole.max) ? factor * quick_inverse(whole.sum) : (double)NAN;
        high = (float)scale;
        low = (float)(scale - (double)high);
    }
    __device__ __forceinline__ uint4 of(const uint4 &kept) const
    {
        float y[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float e = vector_element<float>(kept, i);
            y[i] = fmaf(e, high, e * low) * (1.0f / (1 << SOFTMAX_UP_F32)); /* last: a factor far below 1 would make high subnormal */
        }
        return vector_of(y);
    }
};
template <class Element> struct kept_results {
    float scale;
    __device__ __forceinline__ kept_results(double factor, const struct row_sum &whole)
    {
        scale = is_finite((double)whole.max) ? (float)(factor * quick_inverse(whole.sum) * power_of_two(-short_exponentials<Element, false>::up)) : (float)NAN;
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
/* x, of which the compiler knows nothing: it would keep what it has computed of it before, for which there are no registers. */
static __device__ __forceinline__ float unknown(float x)
{
#ifdef __NVCC__
    asm volatile("" : "+f"(x));
#endif
    return x;
}
template <class Element> struct row_results<Element, true> : kept_results<Element> {
    short_exponentials<Element, false> exponential;
    __device__ __forceinline__ row_results(double, const struct row_sum &whole) : kept_results<Element>(1.0, whole), exponential(unknown(whole.max)) {}
    __device__ __forceinline__ uint4 of(const uint4 &x) const { return kept_results<Element>::of(exponential.of(x)); }
};

/* log-softmax: the elements that equal the maximum are counted, so that the sum of the others is relatively precise however small it is. In
   f32 terms are those of fold/exponential.h, in f64. */
template <class Element, bool is_short = sizeof(typename Element::stored) == 2> struct log_terms {
    typedef uint4 kept;
    static constexpr bool counts = true;
    float max, lowest; /* a term below is too small to count, and would be larger than it is */
    uint32_t count = 0;
    struct exp_anchor_f32 anchor;
    double sum = 0.0;
    explicit __device__ __forceinline__ log_terms(float max) : max(max), lowest(max - 88.0f)
    {
        anchor = exp_anchor_f32(is_finite((double)max) ? (double)max : 0.0, EXP_TERM_RANGE_F32);
    }
    __device__ __forceinline__ uint4 take(const uint4 &x)
    {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const float from = vector_element<float>(x, i);
            const double term = exp_term_f32(from, &anchor);
            if (from < max && from >= lowest)
                sum += term;
            count += from == max;
        }
        return x;
    }
    __device__ __forceinline__ double value() const { return sum; }
};
template <class Element> struct log_terms<Element, true> {
    typedef uint4 kept;
    static constexpr bool counts = true;
    float max, sum[2] = {0.0f, 0.0f};
    uint32_t count = 0;
    short_exponentials<Element, true> exponential;
    explicit __device__ __forceinline__ log_terms(float max) : max(max), exponential(max) {}
    __device__ __forceinline__ uint4 take(const uint4 &x)
    {
        const eight_terms terms = exponential.of(x);
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float element = Element::load(vector_element<typename Element::stored>(x, i));
            if (element < max)
                sum[i % 2] += terms.e[i];
            count += element == max;
        }
        return x;
    }
    __device__ __forceinline__ double value() const { return (double)(sum[0] + sum[1]) * power_of_two(-short_exponentials<Element, true>::up); }
};

/* What brings a sum from the reference of one maximum to that of another, no smaller one. */
static __device__ __forceinline__ double row_factor(float from, float to)
{
    if (from == to)
        return 1.0;
    return from == -INFINITY || !is_finite((double)to) ? 0.0 : exp_factor((double)from, (double)to).high;
}
static __device__ __forceinline__ void row_sum_raise(struct row_sum *a, float max)
{
    if (a->max == max)
        return;
    if (a->count != 0 && a->max != -INFINITY) /* those that equal -inf add nothing */
        a->sum += a->count * exp_of_max((double)a->max, 1.0).high;
    a->sum *= row_factor(a->max, max);
    a->count = 0;
    a->max = max;
}
static __device__ __forceinline__ void row_sum_add(struct row_sum *a, struct row_sum b)
{
    const float max = larger_f32(b.max, a->max);
    row_sum_raise(a, max);
    row_sum_raise(&b, max);
    a->sum += b.sum;
    a->count += b.count;
}

/* x - max - log of the sum relative to exp(max): in f64, or, with results of 16 bits, in f32. */
template <class Element> struct log_results {
    typedef std::conditional_t<sizeof(typename Element::stored) == 2, float, double> real;
    real max, log;
    __device__ __forceinline__ log_results(double, const struct row_sum &whole) : max((real)whole.max)
    {
        const double others = (double)(whole.count - 1) + whole.sum / exp_of_max(is_finite((double)whole.max) ? (double)whole.max : 0.0, 1.0).high;
        log = is_finite((double)whole.max) ? (real)log1p((real)others) : (real)NAN;
    }
    __device__ __forceinline__ real result(const uint4 &x, int i) const
    {
        return (real)Element::load(vector_element<typename Element::stored>(x, i)) - max - log;
    }
    __device__ __forceinline__ uint4 of(const uint4 &x) const
    {
        float y[Element::per_vector];
#pragma unroll
        for (int i = 0; i < Element::per_vector; i++)
            y[i] = (float)result(x, i);
        if constexpr (sizeof(typename Element::stored) == 2)
            return vector_rounded<Element>(y);
        else
            return vector_of(y);
    }
};

/* Of a block that has its rows alone: the row that its first thread has claimed, which all are told behind the next barrier. */
struct row_claims {
    uint32_t *rows; /* 2, in shared memory, in turns */
    uint32_t row, turn;
    __device__ __forceinline__ void tell() const
    {
        if (threadIdx.x == 0)
            rows[turn % 2] = row;
    }
    __device__ __forceinline__ uint32_t told_row() const { return rows[turn % 2]; }
};
/* What a block of a cluster is told by all of them, in its shared memory, in turns as row_messages. */
template <class Part> struct cluster_mail {
    __align__(16) Part parts[2][CLUSTER_BLOCKS];
    uint64_t rows[2]; /* that the first block has claimed */
#ifdef HAVE_CLUSTERS
    byte_barrier arrived[2];
#endif
};
template <class Part> struct row_cluster {
    struct cluster_mail<Part> *mail;
    uint64_t row; /* of the first block's first thread: it is told, too */
    uint32_t rank, count, turn;
    /* One thread calls it, in each turn. */
    __device__ __forceinline__ void expect() const
    {
#ifdef HAVE_CLUSTERS
        barrier_expect(&mail->arrived[turn % 2], count * (uint32_t)sizeof(Part) + (uint32_t)sizeof row);
#endif
    }
    /* All threads call it; the first warp knows the block's own. Returns when all blocks have told this one. */
    __device__ __forceinline__ void tell(const Part &own) const
    {
#ifdef HAVE_CLUSTERS
        byte_barrier *const arrived = &mail->arrived[turn % 2];
        if (threadIdx.x < 32) {
            uint64_t words[sizeof own / 8];
            static_assert(sizeof own % 16 == 0, "two words at a time");
            memcpy(words, &own, sizeof words);
            if (threadIdx.x < count)
#pragma unroll
                for (size_t i = 0; i < sizeof own / 8; i += 2)
                    peer_store((uint64_t *)&mail->parts[turn % 2][rank] + i, words + i, arrived, threadIdx.x);
            if (rank == 0) {
                const uint64_t claimed = __shfl_sync(0xffffffffu, (unsigned long long)row, 0);
                if (threadIdx.x < count)
                    peer_store(&mail->rows[turn % 2], claimed, arrived, threadIdx.x);
            }
        }
        barrier_wait(arrived, turn / 2);
#else
        (void)own;
#endif
    }
    __device__ __forceinline__ const Part &told(uint32_t block) const { return mail->parts[turn % 2][block]; }
    __device__ __forceinline__ uint32_t told_row() const { return (uint32_t)mail->rows[turn % 2]; }
};

/* The sum of a whole row, for all threads. Of messages each thread of the block takes some; of a cluster each warp has all parts. */
template <int threads, bool counts> static __device__ __forceinline__ struct row_sum row_sum_of(const struct row_sum &own, const struct row_messages &others)
{
    struct row_sum whole = {-INFINITY, 0, 0.0};
    others.tell(own);
#pragma unroll 1
    for (uint32_t block = threadIdx.x; block < others.count; block += threads)
        row_sum_add(&whole, others.told<struct row_sum>(block));
    float max = whole.max;
    block_share<threads>(&max, take_larger());
    row_sum_raise(&whole, max);
    block_share<threads>(&whole.sum, add_sums());
    if (counts)
        block_share<threads>(&whole.count, add_sums());
    return whole;
}
template <int threads, bool counts> static __device__ __forceinline__ struct row_sum row_sum_of(const struct row_sum &own, const struct row_cluster<struct row_sum> &others)
{
    const uint32_t lane = threadIdx.x % 32;
    others.tell(own);
    struct row_sum whole = {-INFINITY, 0, 0.0};
    if (lane < others.count)
        whole = others.told(lane);
    float max = whole.max;
    warp_share(&max, take_larger());
    row_sum_raise(&whole, max);
    warp_share(&whole.sum, add_sums());
    if (counts)
        warp_share(&whole.count, add_sums());
    return whole;
}

/* Rows at level fast whose terms are f32. */
template <class Element, class Terms, class Results> struct quick_row {
    typedef Element element;
    typedef float real;
    typedef Results results;
    typedef struct row_sum part;
    typedef typename Terms::kept kept;
    static constexpr bool heavy = false, missing_costs = false, in_shared = false, keeps_low = false, two_blocks = false, counts = Terms::counts;
    static constexpr int short_blocks = row_blocks(false, sizeof(typename Element::stored));
    template <int vectors> static __device__ __forceinline__ void take_max(float *max, const uint4 *x) { vectors_extreme<Element, vectors>(max, x); }
    struct terms : Terms {
        explicit __device__ __forceinline__ terms(float max) : Terms(max) {}
        /* k may be x. used: of no thread there are more vectors. */
        template <int vectors> __device__ __forceinline__ void take(const uint4 *x, kept *k, uint32_t used = vectors)
        {
#pragma unroll
            for (uint32_t i = 0; i < vectors; i++)
                if (i < used)
                    k[i] = Terms::take(x[i]);
        }
        template <int vectors, bool> __device__ __forceinline__ void take_part(uint4 *x, kept *k, int32_t, int32_t, int32_t) { take<vectors>(x, k); }
        /* share(&value, take): among the threads that have a row. */
        template <class Share> __device__ __forceinline__ struct row_sum sum_by(const Share &share) const
        {
            struct row_sum own = {this->max, 0, this->value()};
            share(&own.sum, add_sums());
            if constexpr (counts) {
                own.count = this->count;
                share(&own.count, add_sums());
            }
            return own;
        }
        /* The sum of a block of `warps` warps, for all threads. */
        template <int threads> __device__ __forceinline__ struct row_sum of_block(uint32_t warps) const
        {
            return sum_by([warps](auto *value, const auto &take) { block_share<threads>(value, take, warps); });
        }
        template <int threads> __device__ __forceinline__ Results results_of_group(const struct row_members &members) const
        {
            return Results(1.0, sum_by([members](auto *value, const auto &take) { group_share<threads>(value, members.first(), members.count, take); }));
        }
    };
    /* own: of this block. */
    static __device__ __forceinline__ Results results_of_block(const struct row_sum &own) { return Results(1.0, own); }
    template <int threads, class Others> static __device__ __forceinline__ Results results_of_part(const struct row_sum &own, const Others &others)
    {
        const struct row_sum whole = row_sum_of<threads, counts>(own, others);
        return Results(row_factor(own.max, whole.max), whole);
    }
};
