/* Exact sums of rows whose elements fit the accumulators, which nearly all do: no words are needed. Two sums are kept, one rounded down and
   one rounded up, and the exact sum lies between them. Of f64, of squares, and of stats, the two are sums of the rounding errors of a third. A
   row's result is written if every number between rounds to it. Other rows, and those with infinities or sums of NaN, are folded again by way of
   words. Rows that are split are summed the same way, but for stats. Included by axis.cuh. */
#pragma once

#include "kernels/axis_ends.cuh"
#include "kernels/axis_finish.cuh"

/* x is the nearest to x + rest. Gives what rounds to fewer bits as x + rest does: the neighbour of x towards rest if x has an even last bit. */
static __device__ __forceinline__ double rounded_to_odd(double x, double rest)
{
    const uint64_t bits = f64_bits(x);
    if (rest == 0.0 || (bits & 1) != 0 || !is_finite(x))
        return x;
    return f64_from_bits((rest > 0.0) == (x > 0.0) ? bits + 1 : bits - 1);
}

/* A number that is not rounded yet: nearly value + rest, of which value is the nearest double. It is wrong by slack, at most. */
struct quick_real {
    double value, rest, slack;
};
constexpr double QUICK_SLACK = 0x1p-95; /* relative, of what is computed with two doubles, and is not exact; more than rounding a slack adds */
constexpr double QUICK_LEAST = 0x1p-400; /* of the numbers computed with: no rounding error of a product is too small for a double */

static __device__ __forceinline__ bool is_small(double x)
{
    return x != 0.0 && fabs(x) < QUICK_LEAST;
}

/* A number that rounds to the result's format as x does, which has no slack. */
static __device__ __forceinline__ double quick_exact(const struct quick_real &x, const struct finish *finish)
{
    return finish->format == ALLFOLD_F64 ? x.value : rounded_to_odd(x.value, x.rest);
}
/* The same of any x. Tells in *finish if what is wrong might change that. The bounds between two numbers of a shorter format are doubles whose last 28 bits are 0.
   Without branches: those of the numbers of stats would cost registers in the loop over elements. */
static __device__ __forceinline__ double quick_round(const struct quick_real &x, const struct finish *finish)
{
    const double least = add_down(x.rest, -x.slack), most = add_up(x.rest, x.slack), down = add_down(x.value, least), up = add_up(x.value, most);
    const bool same = down <= up && (f64_bits(down) ^ f64_bits(up)) >> 28 == 0 && f64_bits(down) << 36 != 0 && f64_bits(up) << 36 != 0;
    const bool is_certain = finish->format == ALLFOLD_F64 ? x.value + least == x.value && x.value + most == x.value : same || fabs(x.rest) > x.slack;
    if (x.slack != 0.0 && !is_certain)
        finish->error->status = ALLFOLD_UNSUPPORTED;
    return quick_exact(x, finish);
}

/* x divided by a positive integer. A quotient of 54 bits, which a power of two gives often, may lie in the middle of two doubles: it is known to be
   exact. */
static __device__ __forceinline__ struct quick_real quick_quotient(const struct quick_real &x, double divisor)
{
    struct quick_real quotient = x;
    if (x.value == 0.0)
        return quotient;
    const double first = x.value / divisor, over = fma(-first, divisor, x.value), left = over + x.rest, second = left / divisor;
    const bool is_exact = x.slack == 0.0 && (left == 0.0 || (over == 0.0 && fma(-second, divisor, left) == 0.0));
    quotient.value = two_sum(first, second, &quotient.rest);
    quotient.slack = is_exact ? 0.0 : fabs(quotient.value) * QUICK_SLACK + x.slack / divisor * 1.001;
    if (is_small(x.value))
        quotient.slack = INFINITY;
    return quotient;
}

static __device__ __forceinline__ struct quick_real quick_root(const struct quick_real &x)
{
    struct quick_real root = {fabs(x.value), 0.0, x.slack};
    if (x.value == 0.0)
        return root;
    const double first = sqrt(x.value), left = fma(-first, first, x.value) + x.rest;
    root.value = two_sum(first, left / (2.0 * first), &root.rest);
    root.slack = left == 0.0 && x.slack == 0.0 ? 0.0 : root.value * QUICK_SLACK + x.slack / root.value * 1.001;
    if (is_small(x.value))
        root.slack = INFINITY;
    return root;
}

/* The variance of `count` elements, (count * squares - sum * sum) / (count * (count - ddof)): the dividend is a sum of seven numbers, and nearly
   that of two once errors have been carried down six times. */
static __device__ __forceinline__ struct quick_real quick_variance(const struct quick_real &sum, const struct quick_real &squares, double count,
                                                                   double ddof)
{
    constexpr int last = 6;
    double parts[last + 1], slack = 0.0;
    parts[0] = -2.0 * sum.value * sum.rest;
    parts[1] = -(sum.value * sum.value);
    parts[2] = -fma(sum.value, sum.value, parts[1]);
    parts[3] = count * squares.rest;
    parts[4] = fma(count, squares.rest, -parts[3]);
    parts[5] = count * squares.value;
    parts[6] = fma(count, squares.value, -parts[5]);
#pragma unroll 1
    for (int pass = 0; pass < last; pass++)
#pragma unroll
        for (int i = 1; i <= last; i++)
            parts[i] = two_sum(parts[i], parts[i - 1], &parts[i - 1]);
#pragma unroll
    for (int i = 0; i < last - 1; i++)
        slack += fabs(parts[i]);
    const double wrong = fabs(sum.rest) + sum.slack; /* of the sum, but for parts[0]; that is wrong by 2^-52 of itself */
    slack += fabs(sum.value) * (2.0 * sum.slack + 0x1p-51 * fabs(sum.rest)) + wrong * wrong + count * squares.slack;
    struct quick_real variance = quick_quotient({parts[last], parts[last - 1], slack * 1.001}, count * (count - ddof));
    if (is_small(sum.value))
        variance.slack = INFINITY;
    return variance;
}

/* Stats, as their functions in fold/stats_finish.h take them. */
#define FN(name) FN_EXPAND(name, FAMILY)
#define V FN(value)
typedef struct {
    struct quick_real sum, norm1, norm2; /* norm2: the sum of squares */
    FN(argmin) min;
    FN(argmax) max;
} FN(stats_quick);

static __device__ __forceinline__ double quick_magnitude(const struct quick_real *x, const struct finish *finish)
{
    return fabs(quick_round(*x, finish));
}
#define STATS stats_quick
#define STATS_FN(x) FN(stats_quick_##x)
#define STATS_SUM_FINISH(sum, part) \
    result_f64(part, (part)->count > 0 ? quick_round(*(sum), part) : quick_magnitude(sum, part)) /* an empty sum is +0 */
#define STATS_MEAN_FINISH(sum, part) result_f64(part, quick_round(quick_quotient(*(sum), (double)(part)->count), part))
#define STATS_NORM1_FINISH(sum, part) result_f64(part, quick_magnitude(sum, part))
#define STATS_NORM2_FINISH(sum, part) result_f64(part, quick_round(quick_root(*(sum)), part))
#define STATS_VARIANCE(stats, part, root) FN(stats_quick_variance)(stats, &(part), root)
static __device__ __forceinline__ double FN(stats_quick_variance)(const FN(stats_quick) * stats, const struct finish *part, bool root)
{
    const struct quick_real variance = quick_variance(stats->sum, stats->norm2, (double)part->count, (double)part->ddof);
    return quick_round(root ? quick_root(variance) : variance, part);
}
#include "fold/stats_finish.h"
typedef FN(stats_quick) stats_quick;
static __device__ __forceinline__ bool stats_quick_results(const stats_quick *stats, const struct finish *finish, allfold_fold fold)
{
    if (fold == ALLFOLD_STATS)
        FN(stats_quick_finish)(stats, finish);
    else
        FN(stats_quick_finish_variance)(stats, finish, "", fold == ALLFOLD_STD);
    return finish->error->status == ALLFOLD_OK;
}
#undef FN
#undef V

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
    /* How far the exact sum is from `up`, at most; NaN if that is not known. */
    __device__ __forceinline__ double slack() const { return down == up ? 0.0 : add_up(up, -down); }
    /* -0.0 only if all elements are */
    __device__ __forceinline__ struct quick_real value() const { return {up, 0.0, slack()}; }
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
    /* A product of doubles that underflows is not that of two doubles: it lies between two numbers. */
    template <class Value> __device__ __forceinline__ void add_square(Value x)
    {
        const double product = (double)x * (double)x;
        add(product);
        if (sizeof(Value) == 8) {
            low.down = add_down(low.down, fma_down(x, x, -product));
            low.up = add_up(low.up, fma_up(x, x, -product));
        }
    }
    __device__ __forceinline__ void combine(const quick_pair &other)
    {
        add(other.high);
        low.combine(other.low);
    }
    __device__ __forceinline__ struct quick_real value() const
    {
        struct quick_real sum = {high, 0.0, low.slack()};
        if (low.up != 0.0)
            sum.value = two_sum(high, low.up, &sum.rest);
        return sum;
    }
};

/* One sum. in_pairs: of terms that single doubles hold, too. */
template <enum monoid of, class Value, bool in_pairs> struct quick_one {
    static constexpr bool in_doubles = !in_pairs && sizeof(Value) < 8 && of != MONOID_norm2_exact;
    typename std::conditional<in_doubles, quick_sum, quick_pair>::type sum;
    static __device__ __forceinline__ double term(Value x) { return of == MONOID_norm1_exact ? fabs((double)x) : (double)x; }
    __device__ __forceinline__ void start() { sum.start(); }
    __device__ __forceinline__ void take(const Value *x, uint32_t n, uint64_t)
    {
#pragma unroll
        for (uint32_t i = 0; i < n; i++)
            if constexpr (of == MONOID_norm2_exact)
                sum.add_square(x[i]);
            else
                sum.add(term(x[i]));
    }
    /* The same of a tile. If its own sum is not rounded, as nearly always, it is one term, which takes a third of the additions. Else each element is one. These are
       loaded again: registers that kept them made all tiles slower. */
    template <class Load> __device__ __forceinline__ void tile_take(const Value *x, uint32_t n, const Load &load)
    {
        quick_sum tile;
        tile.start();
#pragma unroll
        for (uint32_t i = 0; i < n; i++)
            tile.add(term(x[i]));
        if (tile.down == tile.up)
            return sum.add(tile.up);
#pragma unroll 8
        for (uint32_t i = 0; i < n; i++)
            sum.add(term(load(i)));
    }
    __device__ __forceinline__ void combine(const quick_one &other) { sum.combine(other.sum); }
    __device__ __forceinline__ bool finish(const struct finish *finish, allfold_fold fold) const
    {
        struct quick_real result = sum.value();
        if (of == MONOID_norm1_exact || finish->count == 0) /* an empty sum is +0 */
            result.value = fabs(result.value);
        if (of == MONOID_norm2_exact)
            result = quick_root(result);
        if (fold == ALLFOLD_MEAN)
            result = quick_quotient(result, (double)finish->count);
        result_f64(finish, result.slack == 0.0 ? quick_exact(result, finish) : quick_round(result, finish));
        return finish->error->status == ALLFOLD_OK;
    }
};

/* The sums of stats; NaN is left out, and counted by the extremes. */
template <class Value> struct quick_stats {
    quick_pair sum, norm1, norm2;
    axis_ends<Value> ends;
    __device__ __forceinline__ void start()
    {
        sum.start();
        norm1.start();
        norm2.start();
        ends.start();
    }
    __device__ __forceinline__ void add(Value x)
    {
        const Value number = x == x ? x : (Value)ZERO_IDENTITY;
        sum.add((double)number);
        norm1.add(fabs((double)number));
        norm2.add_square(number);
    }
    __device__ __forceinline__ void take(const Value *x, uint32_t n, uint64_t first)
    {
#pragma unroll
        for (uint32_t i = 0; i < n; i++)
            add(x[i]);
        ends.take(x, n, first);
    }
    __device__ __forceinline__ void combine(const quick_stats &other)
    {
        sum.combine(other.sum);
        norm1.combine(other.norm1);
        norm2.combine(other.norm2);
        ends.combine(other.ends);
    }
    __device__ __forceinline__ bool finish(const struct finish *finish, allfold_fold fold) const
    {
        const stats_quick found = {sum.value(), norm1.value(), norm2.value(), ends.min, ends.max};
        return stats_quick_results(&found, finish, fold);
    }
};

/* A thread's sums of the tiles of stats. `limit`, a power of two, is four times the largest magnitude so far or more. Magnitudes of a tile
   are added to 16 limits, rounded down and up. If both sums are equal, elements are multiples of 2^-48 limits, and no sum of 16 of them is
   rounded, nor is one of 16 rounding errors of squares that are added to less than 64 limits^2: docs/numerics.md. Else they are added one by one. */
struct quick_tiles {
    quick_stats<float> all;
    tiles_ends ends;
    double limit, squares; /* squares: limit^2 and more squares */
    __device__ __forceinline__ void start(void *room)
    {
        all.start();
        ends.start(room);
        limit = squares = 0.0;
    }
    __device__ __forceinline__ void set_limit(double to)
    {
        all.norm2.add(squares - limit * limit);
        limit = to;
        squares = to * to;
    }
    template <bool all_numbers> __device__ __forceinline__ void add(float *x)
    {
        const double base = 16.0 * limit, squares_before = squares;
        double down = base, up = base, part = ZERO_IDENTITY, errors = 0.0;
#pragma unroll
        for (uint32_t i = 0; i < AXIS_SHAPE.tile; i++) {
            const double number = all_numbers || x[i] == x[i] ? (double)x[i] : ZERO_IDENTITY, before = squares;
            part += number;
            down = add_down(down, fabs(number));
            up = add_up(up, fabs(number));
            squares = fma(number, number, before);
            errors += fma(number, number, before - squares);
        }
        if (down == up) {
            all.sum.add(part);
            all.norm1.add(up - base);
            all.norm2.low.add(errors);
            return;
        }
        squares = squares_before;
#pragma unroll 1
        for (uint32_t i = 0; i < AXIS_SHAPE.tile; i++) {
            all.add(x[0]);
#pragma unroll
            for (uint32_t j = 1; j < AXIS_SHAPE.tile; j++)
                x[j - 1] = x[j];
        }
    }
    /* May change x. */
    __device__ __forceinline__ void take(float *x, const struct axis_tile &tile, uint64_t length, uint64_t begin)
    {
        const uint32_t numbers = ends.take(x, tile, length, begin);
        const float largest = fabsf(fmaxf(-ends.value[tiles_ends::MIN], ends.value[tiles_ends::MAX]));
        if (4.0 * (double)largest > limit || squares > 48.0 * (limit * limit))
            set_limit(power_of_two((int)(f32_bits(largest) >> 23) - 127 + 3));
        if (numbers == AXIS_SHAPE.tile)
            add<true>(x);
        else
            add<false>(x);
    }
    __device__ __forceinline__ const quick_stats<float> &end()
    {
        set_limit(0.0);
        ends.find(tiles_ends::MIN, &all.ends.min);
        ends.find(tiles_ends::MAX, &all.ends.max);
        return all;
    }
};

/* In the shape of axis_struct. */
template <enum monoid of, class Value, bool in_pairs = false> struct axis_quick {
    typedef Value value;
    static constexpr bool is_stats = of == MONOID_stats_exact, takes_tiles = is_stats && sizeof(Value) == 4, slots_in_room = is_stats;
    static constexpr bool exists = of == MONOID_sum_exact || of == MONOID_norm1_exact || of == MONOID_norm2_exact || is_stats;
    typedef quick_one<of, Value, in_pairs> one;
    typedef typename std::conditional<is_stats, quick_stats<Value>, one>::type ordered;
    static constexpr bool in_doubles = !is_stats && one::in_doubles, loads_again = in_pairs;
    static constexpr bool has_rest = !is_stats || takes_tiles, is_light = !is_stats && sizeof(Value) == 4, is_framed = is_light;
    static constexpr size_t staged_bytes = axis_staged_bytes(is_stats ? COST_STATS : COST_LITTLE);
    static constexpr enum cost cost = is_stats ? COST_STATS : COST_LITTLE;
    static constexpr int words = -1; /* it has no partials, */
    static constexpr bool has_splits = false, can_split = !is_stats; /* but of splits: quick_splits */
    static constexpr bool is_ordered = true, tries = false, tries_tiles = false, shares_words = is_light && !in_pairs;
    struct whole {
        ordered end;
    };
    struct one_sum {
        ordered partial;
    };
    typedef typename std::conditional<takes_tiles, quick_tiles, one_sum>::type state;
    static __device__ __forceinline__ value rest() { return is_stats ? (value)NAN : (value)ZERO_IDENTITY; }
    static __device__ __forceinline__ ordered end_identity()
    {
        ordered end;
        end.start();
        return end;
    }
    static __device__ __forceinline__ void start(state *s, void *room, bool)
    {
        if constexpr (takes_tiles)
            s->start(room);
        else
            s->partial.start();
    }
    static __device__ __forceinline__ void take(state *s, const value *x, uint32_t n, uint64_t first) { s->partial.take(x, n, first); }
    static __device__ __forceinline__ void take_tile(state *s, value *x, const struct axis_tile &tile, uint64_t length, uint64_t begin)
    {
        s->take(x, tile, length, begin);
    }
    static __device__ __forceinline__ void place(state *s, const struct axis_tile &tile, uint64_t first)
    {
        if constexpr (is_stats && !takes_tiles)
            s->partial.ends.place(tile, first);
    }
    static __device__ __forceinline__ ordered end_of(state &s)
    {
        if constexpr (takes_tiles)
            return s.end();
        else
            return s.partial;
    }
    static constexpr bool shares = false;
    static __device__ __forceinline__ void combine(ordered *a, const ordered *b) { a->combine(*b); }
    /* False: the rounding of a result is not certain. It does not tell that the result is there: quick_fold does. */
    static __device__ __forceinline__ bool finish(const ordered &sums, const struct axis_finish &call, uint64_t r)
    {
        return results_write<is_stats>(call, r, [&](const struct finish *finish) { return sums.finish(finish, call.fold); });
    }
};

/* The same of splits: it leaves partials. */
template <class Quick> struct quick_splits : Quick {
    static constexpr bool has_splits = true;
};
