/* What a comparison of two arrays keeps beside its exact sums, the same for all value types: counts, and the largest differences with their
   places. compare.h gives it pairs of values. */
#pragma once

#include "fold/exact.h"

/* What is to be found out. All zero: every difference is outside, and there are no units in the last place. */
struct compare_rule {
    double atol, rtol;
    bool equal_nan;
    bool a_unsigned, b_unsigned; /* of int64: the element stands for a uint64 of the same bits */
    allfold_type ulp;            /* the floating-point type whose units are counted, or ALLFOLD_TYPE_NONE */
};

/* Keys have the order of the numbers that they stand for, none of which is negative: the bits of a double, or an integer. */
struct compare_largest {
    uint64_t key;   /* 0: none is larger than 0, and there is no place */
    uint64_t index; /* the first, or ALLFOLD_NO_INDEX */
    uint64_t a, b;  /* both values: the bits of an f64, or of a 64-bit integer */
};
enum { COMPARE_BLOCK = 256 }; /* pairs that the host takes together if some differ */

enum { COMPARE_ABS, COMPARE_REL, COMPARE_ULP, COMPARE_LARGEST };
struct compare_ends {
    uint64_t different, outside; /* missing ones are not counted here */
    uint64_t nan_a, nan_b, nan_both;
    uint64_t missing_a, missing_b; /* in one array only */
    struct compare_largest largest[COMPARE_LARGEST];
};

/* A pair that differs: its place, and its values as compare_largest has them. */
struct compare_pair {
    uint64_t index, a, b;
};

HOST_DEVICE struct compare_ends compare_ends_identity(void)
{
    struct compare_ends ends;
    memset(&ends, 0, sizeof ends);
    for (int i = 0; i < COMPARE_LARGEST; i++)
        ends.largest[i].index = ALLFOLD_NO_INDEX;
    return ends;
}

HOST_DEVICE void compare_ends_combine(struct compare_ends *a, const struct compare_ends *b)
{
    a->different += b->different;
    a->outside += b->outside;
    a->nan_a += b->nan_a;
    a->nan_b += b->nan_b;
    a->nan_both += b->nan_both;
    a->missing_a += b->missing_a;
    a->missing_b += b->missing_b;
    FOLD_UNROLL
    for (int i = 0; i < COMPARE_LARGEST; i++)
        if (b->largest[i].key > a->largest[i].key || (b->largest[i].key == a->largest[i].key && b->largest[i].index < a->largest[i].index))
            a->largest[i] = b->largest[i];
}

HOST_DEVICE void compare_raise(struct compare_largest *largest, uint64_t key, const struct compare_pair *pair)
{
    if (key <= largest->key)
        return;
    largest->key = key;
    largest->index = pair->index;
    largest->a = pair->a;
    largest->b = pair->b;
}

/* A difference is outside if it is infinite, whatever is allowed. */
HOST_DEVICE bool compare_is_outside(const struct compare_rule *rule, double difference, double size)
{
    return !(difference <= rule->atol + rule->rtol * size) || difference == (double)INFINITY;
}

/* Whether difference / size may be larger than `largest`: false only if it is not. It costs no division. The product may be too large by a
   rounding, or lose all its bits where it is tiny. */
HOST_DEVICE bool compare_may_raise(double difference, double size, double largest)
{
    return difference > largest * size * (1.0 - 0x1p-50) || difference < 0x1p-900 || difference == (double)INFINITY;
}

HOST_DEVICE double compare_ratio(double difference, double size) { return difference == (double)INFINITY ? difference : difference / size; }

/* Takes a pair of numbers that differ: difference is |a - b| and size |b|, each rounded to f64. */
HOST_DEVICE void compare_take_pair(struct compare_ends *ends, const struct compare_rule *rule, double difference, double size,
                                   uint64_t units, const struct compare_pair *pair)
{
    ends->different++;
    ends->outside += compare_is_outside(rule, difference, size) ? 1 : 0;
    compare_raise(&ends->largest[COMPARE_ABS], f64_bits(difference), pair);
    if (compare_may_raise(difference, size, f64_from_bits(ends->largest[COMPARE_REL].key)))
        compare_raise(&ends->largest[COMPARE_REL], f64_bits(compare_ratio(difference, size)), pair);
    compare_raise(&ends->largest[COMPARE_ULP], units, pair);
}

/* Takes a pair of which one is NaN, or both are. */
HOST_DEVICE void compare_take_nan(struct compare_ends *ends, const struct compare_rule *rule, bool a, bool b)
{
    const bool differs = !(a && b && rule->equal_nan);
    ends->nan_a += a && !b ? 1 : 0;
    ends->nan_b += b && !a ? 1 : 0;
    ends->nan_both += a && b ? 1 : 0;
    ends->different += differs ? 1 : 0;
    ends->outside += differs ? 1 : 0;
}

/* A floating-point number's place among those of a type, 0 for 0: neighbours are 1 apart. A number of a wider type is rounded first. */
HOST_DEVICE int64_t compare_step_f64(double x) { return negated_if((int64_t)(f64_bits(x) & ~(UINT64_C(1) << 63)), f64_bits(x) >> 63); }
HOST_DEVICE int32_t compare_step_f32(float x)
{
    const int32_t magnitude = (int32_t)(f32_bits(x) & 0x7fffffffu);
    return f32_bits(x) >> 31 != 0 ? -magnitude : magnitude;
}
HOST_DEVICE int32_t compare_step_short(uint16_t bits) { return (bits & 0x8000u) != 0 ? -(int32_t)(bits & 0x7fffu) : (int32_t)bits; }

HOST_DEVICE uint64_t compare_apart(int64_t a, int64_t b) { return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a; }

/* How many steps two numbers are apart: in units in the last place of the rule's type. */
HOST_DEVICE uint64_t compare_units_f64(const struct compare_rule *rule, double a, double b)
{
    switch (rule->ulp) {
    case ALLFOLD_F64: return compare_apart(compare_step_f64(a), compare_step_f64(b));
    case ALLFOLD_F32: return compare_apart(compare_step_f32((float)a), compare_step_f32((float)b));
    case ALLFOLD_F16: return compare_apart(compare_step_short(round_f16(a).bits), compare_step_short(round_f16(b).bits));
    case ALLFOLD_BF16: return compare_apart(compare_step_short(round_bf16(a).bits), compare_step_short(round_bf16(b).bits));
    default: return 0;
    }
}
HOST_DEVICE uint64_t compare_units_f32(const struct compare_rule *rule, float a, float b)
{
    switch (rule->ulp) {
    case ALLFOLD_F32: return compare_apart(compare_step_f32(a), compare_step_f32(b));
    case ALLFOLD_F16: return compare_apart(compare_step_short(f32_to_f16(a).bits), compare_step_short(f32_to_f16(b).bits));
    case ALLFOLD_BF16: return compare_apart(compare_step_short(f32_to_bf16(a).bits), compare_step_short(f32_to_bf16(b).bits));
    default: return 0;
    }
}

/* a - b as integers, and |b|, each rounded once to f64. The magnitude has at most 65 bits. */
HOST_DEVICE double compare_real(uint128 magnitude)
{
    const uint64_t low = (uint64_t)magnitude;
    return magnitude >> 64 == 0 ? (double)low : 2.0 * (double)((uint64_t)(magnitude >> 1) | (low & 1));
}
