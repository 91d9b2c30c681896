/* Exact sums of rows whose elements fit the accumulators, which nearly all do: no words are needed. Two sums are kept, one rounded down and
   one rounded up. The exact sum lies between them, so if they are equal at the end, nothing was rounded. Of f64, the two are sums of the rounding
   errors of a third. Rows with NaN, with infinities of f64 or of both signs, and with exponents too far apart end with sums that differ. They are
   folded again by way of words. Included by axis.cuh. */
#pragma once

#include "kernels/axis_element.cuh"
#include "kernels/axis_finish.cuh"

/* x is the nearest to x + rest. Gives what rounds to fewer bits as x + rest does: the neighbour of x towards rest if x has an even last bit. */
static __device__ __forceinline__ double rounded_to_odd(double x, double rest)
{
    const uint64_t bits = f64_bits(x);
    if (rest == 0.0 || (bits & 1) != 0 || !is_finite(x))
        return x;
    return f64_from_bits((rest > 0.0) == (x > 0.0) ? bits + 1 : bits - 1);
}

struct quick_sum {
    double down, up;
    __device__ __forceinline__ void start()
    {
        down = up = ZERO_IDENTITY;
    }
    __device__ __forceinline__ void add(double x)
    {
        down = add_down(down, x);
        up = add_up(up, x);
    }
    __device__ __forceinline__ void combine(const quick_sum &other)
    {
        down = add_down(down, other.down);
        up = add_up(up, other.up);
    }
    __device__ __forceinline__ bool is_exact() const { return down == up; }
    /* -0.0 only if all elements are */
    __device__ __forceinline__ double value(double *rest) const
    {
        *rest = 0.0;
        return up;
    }
};

struct quick_pair {
    double high;
    quick_sum low;
    __device__ __forceinline__ void start()
    {
        high = ZERO_IDENTITY;
        low.down = low.up = 0.0;
    }
    __device__ __forceinline__ void add(double x)
    {
        double error;
        high = two_sum(high, x, &error);
        low.add(error);
    }
    __device__ __forceinline__ void combine(const quick_pair &other)
    {
        add(other.high);
        low.combine(other.low);
    }
    __device__ __forceinline__ bool is_exact() const { return low.is_exact(); }
    __device__ __forceinline__ double value(double *rest) const
    {
        *rest = 0.0;
        return low.up == 0.0 ? high : two_sum(high, low.up, rest);
    }
};

/* In the shape of axis_struct. */
template <enum monoid of, class Value> struct axis_quick {
    typedef Value value;
    typedef typename std::conditional<sizeof(Value) == 8, quick_pair, quick_sum>::type ordered;
    static constexpr bool exists = of == MONOID_sum_exact || of == MONOID_norm1_exact;
    static constexpr bool has_rest = true;
    static constexpr size_t staged_bytes = axis_staged_bytes(COST_LITTLE);
    static constexpr int words = -1; /* it has no partials */
    struct state {
        ordered partial;
    };
    /* Whether a fold can be finished. A pair divided would be rounded twice. */
    static bool finishes(allfold_fold fold) { return fold == ALLFOLD_SUM || fold == ALLFOLD_NORM1 || (fold == ALLFOLD_MEAN && sizeof(Value) == 4); }
    static __device__ __forceinline__ value rest() { return (value)ZERO_IDENTITY; }
    static __device__ __forceinline__ void start(state *s, int64_t *, bool) { s->partial.start(); }
    static __device__ __forceinline__ void take(state *s, const value *x, uint32_t n, uint64_t)
    {
#pragma unroll
        for (uint32_t i = 0; i < n; i++)
            s->partial.add(of == MONOID_norm1_exact ? fabs((double)x[i]) : (double)x[i]);
    }
    static __device__ __forceinline__ void place(state *, const struct axis_tile &, uint64_t) {}
    static __device__ __forceinline__ ordered end_of(const state &s) { return s.partial; }
    static constexpr bool shares = false;
    static __device__ __forceinline__ void combine(ordered *a, const ordered *b) { a->combine(*b); }
    /* False: the sum is not exact. It does not tell that the result is there: if that of another row fails, the block writes it again. */
    static __device__ __forceinline__ bool finish(const ordered &sum, const struct axis_finish &call, uint64_t r)
    {
        double rest, x = sum.value(&rest);
        if (!sum.is_exact())
            return false;
        if (of == MONOID_norm1_exact || call.count == 0) /* an empty sum is +0 */
            x = fabs(x);
        if (call.fold == ALLFOLD_MEAN) {
            const double total = x;
            x = total / (double)call.count;
            rest = fma(-x, (double)call.count, total);
        }
        real_store(call.of[0].values, call.first + result_place(r, call.run, call.step), call.format,
                   call.format == ALLFOLD_F64 ? x : rounded_to_odd(x, rest)); /* rounded once */
        return true;
    }
};
