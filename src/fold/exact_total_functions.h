/* Integers of a few thousand bits, with the operations that finish exact sums: exact_total.h. Included by exact_total.c, and by kernels. */
#pragma once

#include "fold/exact.h"

#include <math.h>

/* The highest bit that is set, x not 0. */
EXACT_TOTAL_PART int leading_bit(uint32_t x)
{
#if defined(__NVCC__) && defined(__CUDA_ARCH__)
    return 31 - __clz((int)x);
#else
    return 31 - __builtin_clz(x);
#endif
}

EXACT_TOTAL_PART int total_top(const struct exact_total *total) /* the highest bit that is set; -1 for 0 */
{
    for (int i = total->length; i-- > 0;)
        if (total->digits[i] != 0)
            return 32 * i + leading_bit(total->digits[i]);
    return -1;
}

/* The 32 bits from `bit` on, which may be negative. */
EXACT_TOTAL_PART uint32_t total_word(const struct exact_total *total, int bit)
{
    const int shifted = bit + 64, digit = shifted / 32 - 2, shift = shifted % 32;
    const uint64_t low = digit >= 0 && digit < total->length ? total->digits[digit] : 0;
    const uint64_t high = digit + 1 >= 0 && digit + 1 < total->length ? total->digits[digit + 1] : 0;
    return bit <= -64 ? 0 : (uint32_t)((high << 32 | low) >> shift);
}
EXACT_TOTAL_PART uint64_t total_long(const struct exact_total *total, int bit)
{
    return (uint64_t)total_word(total, bit + 32) << 32 | total_word(total, bit);
}

/* Whether there is anything below the bit. */
EXACT_TOTAL_PART bool total_below(const struct exact_total *total, int bit)
{
    bool below = total->sticky;
    for (int i = 0; i < total->length && 32 * i < bit && !below; i++)
        below = (bit - 32 * i >= 32 ? total->digits[i] : total->digits[i] & ((1u << (bit - 32 * i)) - 1)) != 0;
    return below;
}

EXACT_TOTAL void exact_total_set(struct exact_total *total, const int64_t *words, uint32_t limbs, int32_t lowest)
{
    const int64_t *const counts = words + limbs;
    uint32_t first = 0, end = limbs;
    int64_t carry = 0;
    while (first < end && words[first] == 0)
        first++;
    while (end > first && words[end - 1] == 0)
        end--;
    const uint32_t length = end - first + 2;
    for (uint32_t i = first; i < end; i++) {
        const int64_t limb = (int64_t)(uint32_t)words[i] + carry; /* a carry has 33 bits */
        total->digits[i - first] = (uint32_t)limb;
        carry = (limb >> 32) + (words[i] >> 32);
    }
    total->digits[length - 2] = (uint32_t)carry;
    total->digits[length - 1] = (uint32_t)(carry >> 32);
    total->length = (int)length;
    total->lowest = lowest + 32 * (int32_t)first;
    total->negative = carry < 0;
    total->sticky = false;
    if (total->negative) {
        uint64_t borrow = 1;
        for (uint32_t i = 0; i < length; i++) {
            borrow += (uint32_t)~total->digits[i];
            total->digits[i] = (uint32_t)borrow;
            borrow >>= 32;
        }
    }
    total->nans = counts[EXACT_NANS];
    total->plus = counts[EXACT_PLUS];
    total->minus = counts[EXACT_MINUS];
    total->not_minus_zero = counts[EXACT_NOT_MINUS_ZERO];
}

/* Divides, and returns whether anything is left. A divisor of at most 32 bits needs no long division. */
EXACT_TOTAL_PART bool divide_digits(struct exact_total *total, uint64_t divisor)
{
    if (divisor <= UINT32_MAX) {
        uint64_t remainder = 0;
        for (int i = total->length; i-- > 0;) {
            remainder = remainder << 32 | total->digits[i];
            total->digits[i] = (uint32_t)(remainder / divisor);
            remainder %= divisor;
        }
        return remainder != 0;
    }
    uint128 remainder = 0;
    for (int i = total->length; i-- > 0;) {
        remainder = remainder << 32 | total->digits[i];
        total->digits[i] = (uint32_t)(remainder / divisor);
        remainder %= divisor;
    }
    return remainder != 0;
}

EXACT_TOTAL void exact_total_divide(struct exact_total *total, uint64_t divisor)
{
    enum { MORE = 4 }; /* 128 bits: 64 that the divisor may take, and 64 */
    total->length = total_top(total) / 32 + 1 + MORE;
    for (int i = total->length; i-- > 0;)
        total->digits[i] = i < MORE ? 0 : total->digits[i - MORE];
    total->lowest -= 32 * MORE;
    total->sticky |= divide_digits(total, divisor);
}

EXACT_TOTAL void exact_total_root(struct exact_total *total)
{
    const int top = total_top(total);
    if (top < 0)
        return;
    /* 127 or 128 bits from `from` on, worth an even power of two */
    int from = top - 127;
    from += (from + total->lowest) % 2 != 0;
    const uint128 number = (uint128)total_long(total, from + 64) << 64 | total_long(total, from);
    uint128 root = 0;
    for (int bit = 63; bit >= 0; bit--) {
        const uint128 larger = root | (uint128)1 << bit;
        root = larger * larger <= number ? larger : root;
    }
    const bool sticky = root * root != number || total_below(total, from);
    total->digits[0] = (uint32_t)root;
    total->digits[1] = (uint32_t)(root >> 32);
    total->length = 2;
    total->lowest = (total->lowest + from) / 2;
    total->sticky = sticky;
}

EXACT_TOTAL struct exact_total exact_total_variance(const struct exact_total *squares, const struct exact_total *sum, uint64_t count,
                                        uint64_t divisor)
{
    struct exact_total variance = *squares, product;
    /* in units of the square of the sum's, with as many digits of 0 below the others as the squares need */
    const int above = 2 * sum->lowest - squares->lowest, zeros = above > 0 ? (above + 63) / 64 : 0;
    const int sum_digits = total_top(sum) / 32 + 1, shift = squares->lowest - 2 * (sum->lowest - 32 * zeros);
    const int least = 2 * (sum_digits + zeros), wide = (total_top(squares) + shift) / 32 + 4; /* 65 bits more, as count has 64 */
    uint128 carry = 0;
    variance.lowest = 2 * (sum->lowest - 32 * zeros);
    variance.length = wide > least ? wide : least;
    for (int i = 0; i < variance.length; i++) {
        carry += (uint128)total_word(squares, 32 * i - shift) * count;
        variance.digits[i] = (uint32_t)carry;
        carry >>= 32;
        product.digits[i] = 0;
    }
    for (int i = 0; i < sum_digits; i++) {
        uint64_t over = 0;
        for (int j = 0; j < sum_digits || over != 0; j++) {
            uint32_t *const digit = &product.digits[2 * zeros + i + j];
            over += (j < sum_digits ? (uint64_t)sum->digits[i] * sum->digits[j] : 0) + *digit;
            *digit = (uint32_t)over;
            over >>= 32;
        }
    }
    int64_t borrow = 0; /* the difference is not negative (Cauchy and Schwarz) */
    for (int i = 0; i < variance.length; i++) {
        borrow += (int64_t)variance.digits[i] - product.digits[i];
        variance.digits[i] = (uint32_t)borrow;
        borrow >>= 32;
    }
    exact_total_divide(&variance, count);
    exact_total_divide(&variance, divisor);
    return variance;
}

EXACT_TOTAL int exact_total_bits(const struct exact_total *total)
{
    const int top = total_top(total);
    return top < 0 ? 0 : top + total->lowest + 1;
}

EXACT_TOTAL int128 exact_total_integer(const struct exact_total *total)
{
    const uint128 magnitude = (uint128)total_long(total, 64 - total->lowest) << 64 | total_long(total, -total->lowest);
    return total->negative ? -(int128)magnitude : (int128)magnitude;
}

/* Without digits yet. */
EXACT_TOTAL_PART struct exact_total total_of_length(int length)
{
    struct exact_total total;
    total.length = length;
    total.lowest = 0;
    total.negative = total.sticky = false;
    total.nans = total.plus = total.minus = total.not_minus_zero = 0;
    return total;
}

EXACT_TOTAL struct exact_total exact_total_of_wide(int128 high, uint128 low)
{
    struct exact_total total = total_of_length(6);
    const int128 upper = high + (int128)(low >> 64);
    const bool negative = upper < 0;
    const uint128 lower = negative ? (uint128)-(uint64_t)low : (uint64_t)low; /* negated it borrows, unless it is 0 */
    uint128 magnitude = negative ? ~(uint128)upper + (lower == 0) : (uint128)upper;
    total.negative = negative;
    total.not_minus_zero = 1;
    total.digits[0] = (uint32_t)lower;
    total.digits[1] = (uint32_t)(lower >> 32);
    for (int i = 2; i < 6; i++, magnitude >>= 32)
        total.digits[i] = (uint32_t)magnitude;
    return total;
}

EXACT_TOTAL struct exact_total exact_total_of_integer(int128 value) { return exact_total_of_wide(value >> 64, (uint64_t)value); }

/* x 2^n, |x| < 2^53, where n is at least -1074: rounded only beyond the largest number, to infinity. */
EXACT_TOTAL_PART double scaled(double x, int n)
{
    const int down = n < -1000 ? 100 : 0;
    return x * power_of_two(n + down < 1023 ? n + down : 1023) * power_of_two(-down);
}

EXACT_TOTAL double exact_total_round(const struct exact_total *total, bool signed_zero, allfold_type type)
{
    if (total->nans > 0 || (total->plus > 0 && total->minus > 0))
        return NAN;
    if (total->plus > 0 || total->minus > 0)
        return total->plus > 0 ? INFINITY : -INFINITY;
    const struct float_format format = float_format_of(type);
    const int top = total_top(total);
    const double sign = total->negative ? -1.0 : 1.0;
    if (top < 0)
        return signed_zero && total->not_minus_zero == 0 ? -0.0 : 0.0;
    const int fits = top - format.precision + 1, least = format.exponent_min - format.precision + 1 - total->lowest;
    const int last = fits > least ? fits : least; /* the bit that the rounded number ends with */
    const uint64_t kept = top < last ? 0 : total_long(total, last) & ((1ull << format.precision) - 1);
    const bool half = top >= last - 1 && (total_word(total, last - 1) & 1) != 0;
    const bool up = half && ((kept & 1) != 0 || total_below(total, last - 1));
    const double rounded = scaled((double)(kept + up), last + total->lowest);
    return sign * (rounded > format.largest ? INFINITY : rounded);
}

EXACT_TOTAL double exact_round(double x, allfold_type type)
{
    struct exact_total total = total_of_length(2);
    int32_t exponent;
    if (!is_finite(x) || x == 0.0 || type == ALLFOLD_F64)
        return x;
    const uint64_t magnitude = (uint64_t)exact_integer(fabs(x), &exponent);
    total.lowest = exponent;
    total.negative = x < 0.0;
    total.digits[0] = (uint32_t)magnitude;
    total.digits[1] = (uint32_t)(magnitude >> 32);
    const double rounded = exact_total_round(&total, false, type);
    return rounded == 0.0 && x < 0.0 ? -0.0 : rounded;
}
