/* How the host compares: blocks of pairs, in vectors, their differences as doubles. Blocks with NaN, infinities or large integers are looked at
   pair by pair; sums of bits that are too far apart go through windows. Included by compare.h. No sum in vectors is rounded, so their order does
   not matter. */
#ifndef COMPARE_HOST
#define COMPARE_HOST static __attribute__((unused))
#define COMPARE_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define COMPARE_SIMD(...) COMPARE_PRAGMA(omp simd __VA_ARGS__)
#endif

/* A value as a double; of 64-bit integers one that compare_fits allows, in operations that all instruction sets have as vectors. */
HOST_DEVICE double FN(compare_f64)(V x)
{
#if VALUE_FLOAT || VALUE_BITS == 32
    return (double)x;
#else
    return f64_from_bits((uint64_t)x + (UINT64_C(0x433) << 52 | UINT64_C(1) << 51)) - 0x1.8p52;
#endif
}

COMPARE_HOST bool FN(compare_fits)(const struct compare_rule *rule, FN(arrays) arrays, uint32_t n)
{
#if !VALUE_FLOAT && VALUE_BITS == 64
    const uint64_t least = VALUE_SIGNED ? UINT64_C(1) << 42 : 0;
    const uint64_t x_least = rule->a_unsigned ? 0 : least, y_least = rule->b_unsigned ? 0 : least;
    uint64_t beyond = 0;
    COMPARE_SIMD(reduction(| : beyond))
    for (uint32_t i = 0; i < n; i++)
        beyond |= ((uint64_t)arrays.x[i] + x_least) | ((uint64_t)arrays.y[i] + y_least);
    return beyond >> 43 == 0;
#else
    return (void)rule, (void)arrays, (void)n, true;
#endif
}

/* ---- counts, and the largest differences */

/* As compare_pair has it. */
#if VALUE_FLOAT
#define COMPARE_BITS(x) f64_bits((double)(x))
#else
#define COMPARE_BITS(x) ((uint64_t)(x))
#endif

#if VALUE_FLOAT
/* The largest distance in units of a type, from the bits of numbers; 0 of other types. */
#define COMPARE_UNITS(ID, word, top, bits)                                                                            \
    case ALLFOLD_##ID: {                                                                                              \
        u##word most = 0;                                                                                             \
        COMPARE_SIMD(reduction(max : most))                                                                           \
        for (uint32_t i = 0; i < n; i++) {                                                                            \
            const u##word a = bits(arrays.x[i]), b = bits(arrays.y[i]), mask = ((u##word)1 << (top)) - 1;             \
            const word difference = (word)(a & mask) - (word)(b & mask);                                              \
            const u##word same_sign = (u##word)(difference < 0 ? -difference : difference);                           \
            const u##word apart = ((a ^ b) >> (top) & 1) != 0 ? (a & mask) + (b & mask) : same_sign;                  \
            most = apart > most ? apart : most;                                                                       \
        }                                                                                                             \
        return most;                                                                                                  \
    }
#define COMPARE_F16(x) (VALUE_BITS == 64 ? round_f16((double)(x)).bits : f32_to_f16((float)(x)).bits)
#define COMPARE_BF16(x) (VALUE_BITS == 64 ? round_bf16((double)(x)).bits : f32_to_bf16((float)(x)).bits)
#define COMPARE_F32(x) f32_bits((float)(x))
#define COMPARE_F64(x) f64_bits((double)(x))
COMPARE_HOST uint64_t FN(compare_most_units)(const struct compare_rule *rule, FN(arrays) arrays, uint32_t n)
{
    switch (rule->ulp) {
        COMPARE_UNITS(F16, int32_t, 15, COMPARE_F16)
        COMPARE_UNITS(BF16, int32_t, 15, COMPARE_BF16)
        COMPARE_UNITS(F32, int32_t, 31, COMPARE_F32)
#if VALUE_BITS == 64
        COMPARE_UNITS(F64, int64_t, 63, COMPARE_F64)
#endif
    default: return 0;
    }
}
#undef COMPARE_UNITS
#undef COMPARE_F16
#undef COMPARE_BF16
#undef COMPARE_F32
#undef COMPARE_F64
#else
COMPARE_HOST uint64_t FN(compare_most_units)(const struct compare_rule *rule, FN(arrays) arrays, uint32_t n)
{
    return (void)rule, (void)arrays, (void)n, 0;
}
HOST_DEVICE uint64_t FN(compare_units)(const struct compare_rule *rule, V x, V y) { return (void)rule, (void)x, (void)y, 0; }
#endif

HOST_DEVICE double FN(compare_quotient)(V x, V y)
{
    const double difference = fabs(FN(compare_f64)(x) - FN(compare_f64)(y));
    return difference > 0.0 ? difference / fabs(FN(compare_f64)(y)) : 0.0;
}

COMPARE_HOST double FN(compare_most_quotient)(FN(arrays) arrays, uint32_t n)
{
    double most = 0.0;
    COMPARE_SIMD(reduction(max : most))
    for (uint32_t i = 0; i < n; i++) {
        const double quotient = FN(compare_quotient)(arrays.x[i], arrays.y[i]);
        most = quotient > most ? quotient : most;
    }
    return most;
}

/* Raises what a block has larger ones of, to their first places. keys: the largest of the block. */
COMPARE_HOST void FN(compare_raise_block)(struct compare_ends *ends, const struct compare_rule *rule, FN(arrays) arrays, uint32_t n, uint64_t first,
                                          const uint64_t keys[COMPARE_LARGEST])
{
    for (int which = 0; which < COMPARE_LARGEST; which++) {
        if (keys[which] <= ends->largest[which].key)
            continue;
        uint32_t i = 0;
        for (; i < n; i++) {
            const V x = arrays.x[i], y = arrays.y[i];
            const uint64_t key = which == COMPARE_ABS   ? f64_bits(fabs(FN(compare_f64)(x) - FN(compare_f64)(y)))
                                 : which == COMPARE_REL ? f64_bits(FN(compare_quotient)(x, y))
                                                        : FN(compare_units)(rule, x, y);
            if (key == keys[which])
                break;
        }
        const struct compare_pair pair = {first + i, COMPARE_BITS(arrays.x[i]), COMPARE_BITS(arrays.y[i])};
        compare_raise(&ends->largest[which], keys[which], &pair);
    }
}

COMPARE_HOST uint64_t FN(compare_outside)(const struct compare_rule *rule, FN(arrays) arrays, uint32_t n)
{
    const double atol = rule->atol, rtol = rule->rtol;
    double outside = 0.0;
    COMPARE_SIMD(reduction(+ : outside))
    for (uint32_t i = 0; i < n; i++) {
        const double b = FN(compare_f64)(arrays.y[i]), difference = fabs(FN(compare_f64)(arrays.x[i]) - b);
        /* of equal zeros an infinite rtol makes NaN */
        outside += difference > 0.0 && !(difference <= atol + rtol * fabs(b)) ? 1.0 : 0.0;
    }
    return (uint64_t)outside;
}

/* Counts the pairs of a block that differ, raises what they are larger than, and gives the largest difference. False, and nothing is done, if
   there is NaN or an infinity. A quotient is only computed if a product shows that it may be larger than all before. */
COMPARE_HOST bool FN(compare_count)(struct compare_ends *ends, const struct compare_rule *rule, FN(arrays) arrays, uint32_t n, uint64_t first,
                                    double *largest)
{
    const double ratio = f64_from_bits(ends->largest[COMPARE_REL].key), bound = ratio < 0x1p-900 ? 0.0 : ratio * (1.0 - 0x1p-49);
    double total = 0.0, different = 0.0, most = 0.0, excess = -1.0;
    COMPARE_SIMD(reduction(+ : total, different) reduction(max : most, excess))
    for (uint32_t i = 0; i < n; i++) {
        const double b = FN(compare_f64)(arrays.y[i]), difference = fabs(FN(compare_f64)(arrays.x[i]) - b);
        const double over = difference > 0.0 ? difference - bound * fabs(b) : -1.0;
        total += difference;
        different += difference > 0.0 ? 1.0 : 0.0;
        most = difference > most ? difference : most;
        excess = over > excess ? over : excess;
    }
    *largest = most;
    if (!is_finite(total))
        return false;
    if (most == 0.0)
        return true;
    const double quotient = excess >= 0.0 ? FN(compare_most_quotient)(arrays, n) : 0.0;
    const uint64_t keys[COMPARE_LARGEST] = {f64_bits(most), f64_bits(quotient), FN(compare_most_units)(rule, arrays, n)};
    FN(compare_raise_block)(ends, rule, arrays, n, first, keys);
    ends->different += (uint64_t)different;
    ends->outside += rule->atol == 0.0 && rule->rtol == 0.0              ? (uint64_t)different
                     : most <= rule->atol && rule->rtol < (double)INFINITY ? 0
                                                                           : FN(compare_outside)(rule, arrays, n);
    return true;
}

/* ---- the sums of a block's differences d, |d| < 2^t, and of their squares

   A difference is a sum of digits, integers of 21 bits and a sign (half of the last place may make them 2^21): times 2^(t-21), 2^(t-43), and for
   f64 2^(t-65) and 2^(t-87). Products of two digits are below 2^42; three of them, of 2^8 pairs, add up to less than 2^53 units. */

/* sum + x * y, of which nothing is rounded. */
#ifdef __FMA__
#define COMPARE_ADD(sum, x, y) fma(x, y, sum)
#else
#define COMPARE_ADD(sum, x, y) ((sum) + (x) * (y))
#endif

/* The sums of two digits: d itself, and the products. The second digit is all that is left of d. */
struct FN(compare_sums_2) {
    double d, first, cross, second;
};
COMPARE_HOST struct FN(compare_sums_2) FN(compare_sums_2)(FN(arrays) arrays, uint32_t n, int t)
{
    const double half = 1.5 * power_of_two(t + 31);
    double d = 0.0, first = 0.0, cross = 0.0, second = 0.0;
    COMPARE_SIMD(reduction(+ : d, first, cross, second))
    for (uint32_t i = 0; i < n; i++) {
        const double difference = FN(compare_f64)(arrays.x[i]) - FN(compare_f64)(arrays.y[i]);
        const double high = (difference + half) - half, low = difference - high;
        d += difference;
        first = COMPARE_ADD(first, high, high);
        cross = COMPARE_ADD(cross, high, low);
        second = COMPARE_ADD(second, low, low);
    }
    return (struct FN(compare_sums_2)){d, first, cross, second};
}

#if VALUE_FLOAT
#if VALUE_BITS == 64
#define COMPARE_WORD(x) f64_bits((double)(x))
#define COMPARE_NUMBER f64_from_bits
#define COMPARE_FRACTION 52
#else
#define COMPARE_WORD(x) f32_bits((float)(x))
#define COMPARE_NUMBER f32_from_bits
#define COMPARE_FRACTION 23
#endif
/* u: all values of a block are multiples of 2^u. At least one is not 0. `before` is the number before the least magnitude; that of 0 is NaN. */
COMPARE_HOST int FN(compare_lowest)(FN(arrays) arrays, uint32_t n)
{
    const FN(counter) mask = ~(FN(counter))0 >> 1;
    V before = (V)INFINITY;
    FN(counter) bits = (FN(counter))1 << COMPARE_FRACTION;
    COMPARE_SIMD(reduction(min : before) reduction(| : bits))
    for (uint32_t i = 0; i < n; i++) {
        const FN(counter) x = COMPARE_WORD(arrays.x[i]) & mask, y = COMPARE_WORD(arrays.y[i]) & mask;
        const V x_before = COMPARE_NUMBER(x - 1), y_before = COMPARE_NUMBER(y - 1);
        before = x_before < before ? x_before : before;
        before = y_before < before ? y_before : before;
        bits |= x | y;
    }
    const int exponent = (int)((COMPARE_WORD(before) + 1) >> COMPARE_FRACTION);
    return (exponent > 1 ? exponent : 1) - (VALUE_BITS == 64 ? 1075 : 150) + __builtin_ctzll(bits);
}
#undef COMPARE_WORD
#undef COMPARE_NUMBER
#undef COMPARE_FRACTION

/* Adds sum * 2^shift. */
HOST_DEVICE void FN(compare_add_sum)(const struct exact_sink *sink, double sum, int32_t shift)
{
    int32_t exponent;
    const int64_t total = exact_integer(sum, &exponent);
    exact_add_integer(sink, total, exponent + shift);
}

#if VALUE_BITS == 64
/* The same of four digits, where d is rounded; its error is added to what two digits leave over. */
COMPARE_HOST void FN(compare_add_4)(struct exact_sink sinks[2], FN(arrays) arrays, uint32_t n, int t)
{
    const double half = 1.5 * power_of_two(t + 9), quarter = 1.5 * power_of_two(t + 31), last = 1.5 * power_of_two(t - 13);
    double high_sum = 0.0, low_sum = 0.0, a = 0.0, b = 0.0, c = 0.0, d = 0.0, e = 0.0, f = 0.0, g = 0.0;
    COMPARE_SIMD(reduction(+ : high_sum, low_sum, a, b, c, d, e, f, g))
    for (uint32_t i = 0; i < n; i++) {
        double error;
        const double difference = two_sum(arrays.x[i], -arrays.y[i], &error);
        const double high = (difference + half) - half, low = (difference - high) + error;
        const double first = (high + quarter) - quarter, second = high - first, third = (low + last) - last, fourth = low - third;
        high_sum += high;
        low_sum += low;
        a = COMPARE_ADD(a, first, first);
        b = COMPARE_ADD(b, first, second);
        c = COMPARE_ADD(COMPARE_ADD(c, first + first, third), second, second);
        d = COMPARE_ADD(COMPARE_ADD(d, first, fourth), second, third);
        e = COMPARE_ADD(COMPARE_ADD(e, second + second, fourth), third, third);
        f = COMPARE_ADD(f, third, fourth);
        g = COMPARE_ADD(g, fourth, fourth);
    }
    const double sums[] = {high_sum, low_sum, a, c, e, g, b, d, f};
    for (int i = 0; i < 9; i++)
        FN(compare_add_sum)(&sinks[i >= 2], sums[i], i >= 6); /* the last three count twice */
}
#endif

/* False, and nothing is added, if the digits are too few. */
COMPARE_HOST bool FN(compare_add_block)(FN(compare_accumulator) * accumulator, struct exact_sink sinks[2], FN(arrays) arrays, uint32_t n,
                                        double largest)
{
    const int t = (int)(f64_bits(largest) >> 52) - 1022, bits = t - FN(compare_lowest)(arrays, n);
    if (t < -400 || t > 400 || bits > (VALUE_BITS == 64 ? 87 : 43))
        return false;
    accumulator->sum.not_minus_zero = accumulator->squares.not_minus_zero = true;
#if VALUE_BITS == 64
    if (bits > 43) {
        FN(compare_add_4)(sinks, arrays, n, t);
        return true;
    }
#endif
    const struct FN(compare_sums_2) sums = FN(compare_sums_2)(arrays, n, t);
    FN(compare_add_sum)(&sinks[0], sums.d, 0);
    FN(compare_add_sum)(&sinks[1], sums.first, 0);
    FN(compare_add_sum)(&sinks[1], sums.cross, 1);
    FN(compare_add_sum)(&sinks[1], sums.second, 0);
    return true;
}
#else
/* Differences of integers that fit are below 2^43, and their digits are integers. */
COMPARE_HOST bool FN(compare_add_block)(FN(compare_accumulator) * accumulator, struct exact_sink sinks[2], FN(arrays) arrays, uint32_t n,
                                        double largest)
{
    const struct FN(compare_sums_2) sums = FN(compare_sums_2)(arrays, n, 43);
    const int128 squares = (int128)(sums.first * 0x1p-44) * ((int128)1 << 44) + (int128)(sums.cross * 0x1p-22) * (1 << 23)
                           + (int128)sums.second;
    (void)sinks, (void)largest;
    accumulator->sum += (int64_t)sums.d;
    accumulator->squares.low += (uint64_t)squares;
    accumulator->squares.high += squares >> 64;
    return true;
}
#endif
#undef COMPARE_ADD
#undef COMPARE_BITS

COMPARE_HOST void FN(compare_block)(FN(compare_accumulator) * accumulator, struct exact_sink sinks[2], FN(arrays) arrays,
                                    const struct compare_rule *rule, uint32_t n, uint64_t first)
{
    double largest = 0.0;
    const bool counted = FN(compare_fits)(rule, arrays, n) && FN(compare_count)(&accumulator->ends, rule, arrays, n, first, &largest);
    if (counted && largest == 0.0)
        return;
    if (!counted)
        FN(compare_look_all)(accumulator, arrays, rule, n, first);
    if (!counted || !FN(compare_add_block)(accumulator, sinks, arrays, n, largest))
        FN(compare_sums_take)(accumulator, sinks, arrays, n);
}

/* Up to EXACT_TAKEN pairs: of a run that is not equal, in blocks, since few of them may differ. */
COMPARE_HOST void FN(compare_run)(FN(compare_accumulator) * accumulator, struct exact_sink sinks[2], FN(arrays) arrays,
                                  const struct compare_rule *rule, uint32_t n, uint64_t first)
{
    const bool as_stored = rule->a_unsigned == rule->b_unsigned;
    if (as_stored && FN(compare_equal)(arrays, n))
        return;
    for (uint32_t i = 0; i < n; i += COMPARE_BLOCK) {
        const FN(arrays) block = FN(arrays_from)(arrays, i);
        const uint32_t length = n - i < COMPARE_BLOCK ? n - i : (uint32_t)COMPARE_BLOCK;
        if (!as_stored || !FN(compare_equal)(block, length))
            FN(compare_block)(accumulator, sinks, block, rule, length, first + i);
    }
}

COMPARE_HOST void FN(compare_tile)(FN(compare) * compare, FN(arrays) arrays, uint32_t n, uint64_t first)
{
    struct compare_rule none;
    FN(compare_accumulator) accumulator;
    struct exact_sink sinks[2];
    memset(&none, 0, sizeof none);
    FN(compare_start)(&accumulator);
    accumulator.ends = compare->ends;
    FN(compare_sinks)(sinks, compare->sum.words, 1);
    for (uint32_t i = 0; i < n; i += EXACT_TAKEN)
        FN(compare_run)(&accumulator, sinks, FN(arrays_from)(arrays, i), arrays.rule != NULL ? arrays.rule : &none,
                        n - i < EXACT_TAKEN ? n - i : EXACT_TAKEN, first + i);
    FN(compare_flush)(&accumulator, sinks);
    compare->ends = accumulator.ends;
    FN(compare_normalise)(compare);
}
