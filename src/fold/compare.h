/* The comparison of two arrays x and y: exact sums of the exact differences x[i] - y[i] and of their squares, counts, and the largest
   differences (compare_ends.h). Pairs that are equal, and those with NaN, add nothing to the sums. Floating-point differences mostly are
   doubles, which go to windows as those of sum_exact and norm2_exact do. Of others x[i] and -y[i] are added one by one, and in place of the
   square x[i]^2, y[i]^2 and twice -x[i] y[i]. Integers have at most 65 bits of difference, which threads add up in plain integers. */
#if VALUE_FLOAT
/* x - y if that is a double, else NaN. */
HOST_DEVICE double FN(compare_term)(FN(elements) e)
{
    double error;
    const double term = two_sum((double)e.x, -(double)e.y, &error);
    const double exact = error == 0.0 ? term : (double)NAN;
    return e.x == e.y || e.x != e.x || e.y != e.y ? 0.0 : exact;
}

/* Whether the difference of a pair is added; one that is not finite is counted here. */
HOST_DEVICE bool FN(compare_adds)(const struct exact_sink *sink, FN(elements) e, bool squares)
{
    const double difference = (double)e.x - (double)e.y;
    if (e.x == e.y || e.x != e.x || e.y != e.y)
        return false;
    if (is_finite((double)e.x) && is_finite((double)e.y))
        return true;
    exact_add_special(sink, squares ? difference * difference : difference);
    return false;
}

#if VALUE_BITS == 64
#define COMPARE_ADD exact_add_f64
#define COMPARE_PRODUCT exact_add_product_f64
#define COMPARE_SINGLE_WEIGHT 1
#else
#define COMPARE_ADD exact_add_f32
#define COMPARE_PRODUCT exact_add_product_f32
#define COMPARE_SINGLE_WEIGHT 4 /* as of sum_exact */
#endif
HOST_DEVICE void FN(compare_add)(const struct exact_sink *sink, FN(elements) e)
{
    if (!FN(compare_adds)(sink, e, false))
        return;
    COMPARE_ADD(sink, e.x, true);
    COMPARE_ADD(sink, -e.y, true);
}
HOST_DEVICE void FN(compare_add_square)(const struct exact_sink *sink, FN(elements) e)
{
    if (!FN(compare_adds)(sink, e, true))
        return;
    COMPARE_PRODUCT(sink, e.x, e.x, true);
    COMPARE_PRODUCT(sink, e.y, e.y, true);
    FOLD_ROLL
    for (int i = 0; i < 2; i++)
        COMPARE_PRODUCT(sink, e.x, -e.y, true);
}
HOST_DEVICE double FN(compare_square)(FN(elements) e)
{
    const double term = FN(compare_term)(e);
    return VALUE_BITS == 64 && term != 0.0 && fabs(term) < 0x1p-480 ? (double)NAN : term * term;
}
HOST_DEVICE double FN(compare_square_rest)(FN(elements) e, double square)
{
    const double term = FN(compare_term)(e);
    return fma(term, term, -square);
}

#define NAME compare_sum
#define NAME_FN(x) FN(compare_sum_##x)
#define TWO
#if VALUE_BITS == 64
#define LIMBS 67
#define LOWEST -1074
#else
#define LIMBS 12
#define LOWEST -202
#endif
#define WINDOWS 2
#define TERM(e) FN(compare_term)(e)
#define ADD(sink, e, finite) ((void)(finite), FN(compare_add)(sink, e))
#define WEIGHT (2 * COMPARE_SINGLE_WEIGHT)
#include "fold/exact_template.h"

#define NAME compare_squares
#define NAME_FN(x) FN(compare_squares_##x)
#define TWO
#if VALUE_BITS == 64
#define LIMBS 133
#define LOWEST -2148
#else
#define LIMBS 21
#define LOWEST -350
#endif
#define WINDOWS 4
#define OWN_WINDOWS 2
#define TERM(e) FN(compare_square)(e)
#define TERM_REST(e, term) FN(compare_square_rest)(e, term)
#define ADD(sink, e, finite) ((void)(finite), FN(compare_add_square)(sink, e))
#define WEIGHT 8
#include "fold/exact_template.h"
#undef COMPARE_ADD
#undef COMPARE_PRODUCT
#undef COMPARE_SINGLE_WEIGHT

typedef struct {
    struct exact_accumulator sum, squares;
    struct compare_ends ends;
} FN(compare_accumulator);

#else
enum {
    FN(compare_sum_limbs) = 6,
    FN(compare_sum_words) = 6 + EXACT_COUNTS,
    FN(compare_sum_lowest) = 0,
    FN(compare_squares_limbs) = 8,
    FN(compare_squares_words) = 8 + EXACT_COUNTS,
    FN(compare_squares_lowest) = 0
};
typedef struct {
    int64_t words[6 + EXACT_COUNTS];
} FN(compare_sum);
typedef struct {
    int64_t words[8 + EXACT_COUNTS];
} FN(compare_squares);

typedef struct {
    int128 sum;
    wide squares;
    struct compare_ends ends;
} FN(compare_accumulator);

HOST_DEVICE int128 FN(compare_integer)(V x, bool is_unsigned)
{
#if VALUE_BITS == 64 && VALUE_SIGNED
    return is_unsigned ? (int128)(uint64_t)x : (int128)x;
#else
    return (void)is_unsigned, (int128)x;
#endif
}

/* Adds an integer, digit by digit. */
HOST_DEVICE void FN(compare_add_digits)(const struct exact_sink *sink, uint128 digits, bool is_signed, int32_t exponent)
{
    FOLD_ROLL
    for (int i = 0; i < 4; i++, digits >>= 32) {
        const int64_t digit = i == 3 && is_signed ? (int64_t)(int32_t)(uint32_t)digits : (int64_t)(uint32_t)digits;
        if (digit != 0)
            exact_add_integer(sink, digit, exponent + 32 * i);
    }
}
#endif

typedef struct {
    FN(compare_sum) sum;
    FN(compare_squares) squares;
    struct compare_ends ends;
} FN(compare);

HOST_DEVICE FN(compare) FN(compare_identity)(void)
{
    FN(compare) compare;
    memset(&compare, 0, sizeof compare);
    compare.ends = compare_ends_identity();
    return compare;
}

/* The sinks of the two sums. Their words follow one another, stride apart. */
HOST_DEVICE void FN(compare_sinks)(struct exact_sink sinks[2], int64_t *words, uint32_t stride)
{
    sinks[0] = exact_sink_of(words, stride, FN(compare_sum_limbs), FN(compare_sum_lowest));
    sinks[1] = exact_sink_of(words + FN(compare_sum_words) * stride, stride, FN(compare_squares_limbs), FN(compare_squares_lowest));
}

HOST_DEVICE void FN(compare_normalise)(FN(compare) * compare)
{
    struct exact_sink sums = exact_sink_of(compare->sum.words, 1, FN(compare_sum_limbs), FN(compare_sum_lowest));
    struct exact_sink squares = exact_sink_of(compare->squares.words, 1, FN(compare_squares_limbs), FN(compare_squares_lowest));
    exact_sink_normalise(&sums);
    exact_sink_normalise(&squares);
}

HOST_DEVICE void FN(compare_combine)(FN(compare) * a, const FN(compare) * b)
{
    for (int i = 0; i < FN(compare_sum_words); i++)
        a->sum.words[i] += b->sum.words[i];
    for (int i = 0; i < FN(compare_squares_words); i++)
        a->squares.words[i] += b->squares.words[i];
    FN(compare_normalise)(a);
    compare_ends_combine(&a->ends, &b->ends);
}

HOST_DEVICE int FN(compare_indices)(FN(compare) * compare, uint64_t *indices[])
{
    for (int i = 0; i < COMPARE_LARGEST; i++)
        indices[i] = &compare->ends.largest[i].index;
    return COMPARE_LARGEST;
}

HOST_DEVICE void FN(compare_start)(FN(compare_accumulator) * accumulator)
{
#if VALUE_FLOAT
    FN(compare_sum_start)(&accumulator->sum);
    FN(compare_squares_start)(&accumulator->squares);
#else
    accumulator->sum = 0;
    accumulator->squares.high = 0;
    accumulator->squares.low = 0;
#endif
    accumulator->ends = compare_ends_identity();
}

/* Counts a pair that is not equal, and raises what it is larger than. */
HOST_DEVICE void FN(compare_look)(FN(compare_accumulator) * accumulator, const struct compare_rule *rule, V x, V y, uint64_t index)
{
    struct compare_pair pair;
    pair.index = index;
#if VALUE_FLOAT
    pair.a = f64_bits((double)x);
    pair.b = f64_bits((double)y);
    if (x != x || y != y)
        compare_take_nan(&accumulator->ends, rule, x != x, y != y);
    else
        compare_take_pair(&accumulator->ends, rule, fabs((double)x - (double)y), fabs((double)y), FN(compare_units)(rule, x, y), &pair);
#else
    const int128 a = FN(compare_integer)(x, rule->a_unsigned), b = FN(compare_integer)(y, rule->b_unsigned), difference = a - b;
    const uint128 magnitude = difference < 0 ? -(uint128)difference : (uint128)difference;
    const uint64_t low = (uint64_t)magnitude;
    const uint128 square = (uint128)low * low;
    pair.a = (uint64_t)a;
    pair.b = (uint64_t)b;
    if (difference == 0)
        return;
    accumulator->sum += difference;
    accumulator->squares.low += (uint64_t)square;
    accumulator->squares.high += (int128)(square >> 64) + (magnitude >> 64 != 0 ? (int128)low * 2 + ((int128)1 << 64) : 0);
    compare_take_pair(&accumulator->ends, rule, compare_real(magnitude), compare_real(b < 0 ? -(uint128)b : (uint128)b), 0, &pair);
#endif
}

/* Whether the pairs of a tile are all equal: those of NaN are not, and of integers as they are stored. Mostly the first tells if all differ. */
HOST_DEVICE bool FN(compare_equal)(FN(arrays) arrays, uint32_t n)
{
#ifndef __CUDACC__
    if (!(arrays.x[0] == arrays.y[0]))
        return false;
#endif
    uint32_t differ[FOLD_LANES] = {0};
    FOLD_FOR_LANES(n, i, lane, { differ[lane] |= arrays.x[i] == arrays.y[i] ? 0u : 1u; });
    for (int lane = 1; lane < FOLD_LANES; lane++)
        differ[0] |= differ[lane];
    return differ[0] == 0;
}

HOST_DEVICE void FN(compare_look_all)(FN(compare_accumulator) * accumulator, FN(arrays) arrays, const struct compare_rule *rule, uint32_t n,
                                      uint64_t first)
{
    const bool as_stored = rule->a_unsigned == rule->b_unsigned;
    FOLD_UNROLL
    for (uint32_t i = 0; i < n; i++)
        if (!as_stored || !(arrays.x[i] == arrays.y[i]))
            FN(compare_look)(accumulator, rule, arrays.x[i], arrays.y[i], first + i);
}

/* n is at most EXACT_TAKEN. */
HOST_DEVICE void FN(compare_sums_take)(FN(compare_accumulator) * accumulator, struct exact_sink sinks[2], FN(arrays) arrays, uint32_t n)
{
#if VALUE_FLOAT
    FN(compare_sum_take)(&accumulator->sum, &sinks[0], arrays, n);
    FN(compare_squares_take)(&accumulator->squares, &sinks[1], arrays, n);
#else
    (void)accumulator, (void)sinks, (void)arrays, (void)n;
#endif
}

/* A device's way. */
HOST_DEVICE void FN(compare_take)(FN(compare_accumulator) * accumulator, struct exact_sink sinks[2], FN(arrays) arrays,
                                  const struct compare_rule *rule, uint32_t n, uint64_t first)
{
    if (rule->a_unsigned == rule->b_unsigned && FN(compare_equal)(arrays, n))
        return;
    FN(compare_look_all)(accumulator, arrays, rule, n, first);
    FN(compare_sums_take)(accumulator, sinks, arrays, n);
}

/* What is not in the words yet; on the host. */
HOST_DEVICE void FN(compare_flush)(FN(compare_accumulator) * accumulator, struct exact_sink sinks[2])
{
#if VALUE_FLOAT
    FN(compare_sum_finish_accumulator)(&accumulator->sum, &sinks[0]);
    FN(compare_squares_finish_accumulator)(&accumulator->squares, &sinks[1]);
#else
    FN(compare_add_digits)(&sinks[0], (uint128)accumulator->sum, true, 0);
    FN(compare_add_digits)(&sinks[1], accumulator->squares.low, false, 0);
    FN(compare_add_digits)(&sinks[1], (uint128)accumulator->squares.high, true, 64);
#endif
}

#ifndef __CUDACC__
#include "fold/compare_blocks.h"
#endif

#ifdef FOLD_FINISH
/* The mean of the differences and the root of the mean of their squares, of pairs of numbers. */
FOLD_FINISH allfold_status FN(compare_finish)(const FN(compare) * compare, const struct finish *finish)
{
    const struct compare_ends *const ends = &compare->ends;
    const uint64_t count = finish->count - ends->nan_a - ends->nan_b - ends->nan_both;
    struct exact_total total;
    exact_total_set(&total, compare->sum.words, FN(compare_sum_limbs), FN(compare_sum_lowest));
    if (count > 0)
        exact_total_divide(&total, count);
    result_f64(finish, count > 0 ? exact_total_round(&total, false, ALLFOLD_F64) : (double)NAN);
    exact_total_set(&total, compare->squares.words, FN(compare_squares_limbs), FN(compare_squares_lowest));
    if (count > 0)
        exact_total_divide(&total, count);
    exact_total_root(&total);
    return result_f64(finish, count > 0 ? exact_total_round(&total, false, ALLFOLD_F64) : (double)NAN);
}
#endif
