/* Data for test_reduce: arrays whose every element is made from its global index, so that each rank makes its own part
   and rank 0 the whole. Floating point and integer types have patterns of their own. */
#pragma once

#include "tests/support.h"

/* Where special elements stand. PLACE_RANK: first of the part of the rank in the middle. */
enum place_of { NOWHERE, FIRST, MIDDLE, LAST, RANK, FIRST_HALF, EVERYWHERE };

struct pattern {
    const char *name;
    double (*number)(uint64_t i, allfold_type type);  /* floating point */
    uint64_t (*bits)(uint64_t i, allfold_type type);  /* integers: the low bits count */
    double special[2];
    enum place_of place[2];
};

/* Magnitudes that the type, and sums and squares of what is used of it, have room for. */
static inline int exponent_room(allfold_type type) { return type == ALLFOLD_F16 ? 8 : type == ALLFOLD_F64 ? 900 : 100; }
static inline int least_exponent(allfold_type type)
{
    return type == ALLFOLD_F16 ? -24 : type == ALLFOLD_BF16 ? -133 : type == ALLFOLD_F32 ? -149 : -1074;
}

static inline double uniform_number(uint64_t i, allfold_type type) { return (void)type, 2.0 * unit_of(i, 1) - 1.0; }
static inline double wide_number(uint64_t i, allfold_type type)
{
    const int room = exponent_room(type);
    return ldexp(uniform_number(i, type), (int)(hash_of(i, 2) % (uint64_t)(2 * room)) - room);
}
static inline double cancelling_number(uint64_t i, allfold_type type)
{
    return i % 2 == 0 ? wide_number(i, type) : -wide_number(i - 1, type);
}
static inline double constant_number(uint64_t i, allfold_type type) { return (void)i, (void)type, 0.1; }
static inline double denormal_number(uint64_t i, allfold_type type)
{
    return ldexp((double)(hash_of(i, 3) % 1001) - 500.0, least_exponent(type));
}
static inline double far_number(uint64_t i, allfold_type type)
{
    return (type == ALLFOLD_F16 ? 1e3 : 1e9) + uniform_number(i, type);
}
static inline double near_one_number(uint64_t i, allfold_type type)
{
    return (1.0 + uniform_number(i, type) / 64.0) * (hash_of(i, 4) % 5 == 0 ? -1.0 : 1.0);
}
/* large, large, small, small: a product that is far outside the range on the way, and near 1 in the end */
static inline double cycle_number(uint64_t i, allfold_type type)
{
    const double large = type == ALLFOLD_F16 ? 0x1p14 : type == ALLFOLD_F64 ? 1e300 : 1e30;
    return i % 4 < 2 ? large : 1.0 / large;
}
static inline double huge_number(uint64_t i, allfold_type type)
{
    return uniform_number(i, type) * (type == ALLFOLD_F16 ? 6e4 : type == ALLFOLD_F64 ? 1e200 : 1e37);
}
static inline double tiny_number(uint64_t i, allfold_type type)
{
    return uniform_number(i, type) * (type == ALLFOLD_F16 ? 1e-4 : type == ALLFOLD_F64 ? 1e-200 : 1e-37);
}
static inline double minus_zero_number(uint64_t i, allfold_type type) { return (void)i, (void)type, -0.0; }
static inline double zeros_number(uint64_t i, allfold_type type)
{
    return (void)type, hash_of(i, 5) % 2 == 0 ? -0.0 : 0.0;
}

/* Smallest and largest of an integer type, as bits. */
static inline uint64_t type_largest(allfold_type type)
{
    const unsigned bits = 8u * (unsigned)allfold_type_bytes(type) - (type_kind(type) == 'i');
    return UINT64_MAX >> (64 - bits);
}
static inline uint64_t type_smallest(allfold_type type) { return type_kind(type) == 'i' ? ~type_largest(type) : 0; }

static inline uint64_t uniform_bits(uint64_t i, allfold_type type) { return (void)type, hash_of(i, 1); }
static inline uint64_t small_bits(uint64_t i, allfold_type type)
{
    return hash_of(i, 2) % 7 - (type_kind(type) == 'i' ? 3 : 0);
}
static inline uint64_t cancelling_bits(uint64_t i, allfold_type type)
{
    return i % 2 == 0 ? uniform_bits(i, type) : 0 - uniform_bits(i - 1, type);
}
static inline uint64_t limits_bits(uint64_t i, allfold_type type)
{
    return hash_of(i, 3) % 2 == 0 ? type_largest(type) : type_smallest(type);
}
static inline uint64_t largest_bits(uint64_t i, allfold_type type) { return (void)i, type_largest(type); }
static inline uint64_t smallest_bits(uint64_t i, allfold_type type) { return (void)i, type_smallest(type); }
static inline uint64_t far_bits(uint64_t i, allfold_type type)
{
    return type_largest(type) / 8 * 7 + hash_of(i, 4) % 8; /* int64: 2^60 and more, and a little */
}
static inline uint64_t ones_bits(uint64_t i, allfold_type type)
{
    return type_kind(type) == 'i' && hash_of(i, 5) % 2 == 0 ? UINT64_MAX : 1;
}
/* 2 or -2 in one of 20: products that fit, and that do not, in the sizes tested */
static inline uint64_t twos_bits(uint64_t i, allfold_type type)
{
    return i % 20 == 7 ? (type_kind(type) == 'i' && i % 3 == 0 ? (uint64_t)-2 : 2) : 1;
}
static inline uint64_t threes_bits(uint64_t i, allfold_type type) { return (void)i, (void)type, 3; }

static const struct pattern float_patterns[] = {
    {"uniform", uniform_number, NULL, {0}, {NOWHERE}},
    {"wide exponents", wide_number, NULL, {0}, {NOWHERE}},
    {"cancelling pairs", cancelling_number, NULL, {0}, {NOWHERE}},
    {"constant", constant_number, NULL, {0}, {NOWHERE}},
    {"denormal", denormal_number, NULL, {0}, {NOWHERE}},
    {"far from zero", far_number, NULL, {0}, {NOWHERE}},
    {"near one", near_one_number, NULL, {0}, {NOWHERE}},
    {"large and small in turn", cycle_number, NULL, {0}, {NOWHERE}},
    {"huge", huge_number, NULL, {0}, {NOWHERE}},
    {"tiny", tiny_number, NULL, {0}, {NOWHERE}},
    {"tiny and one huge", tiny_number, NULL, {3e4}, {MIDDLE}},
    {"-0.0", minus_zero_number, NULL, {0}, {NOWHERE}},
    {"-0.0 and one 0.0", minus_zero_number, NULL, {0.0}, {MIDDLE}},
    {"zeros", zeros_number, NULL, {0}, {NOWHERE}},
    {"a zero", near_one_number, NULL, {0.0}, {RANK}},
    {"+inf", uniform_number, NULL, {INFINITY}, {MIDDLE}},
    {"-inf", uniform_number, NULL, {-INFINITY}, {RANK}},
    {"both infinities", uniform_number, NULL, {INFINITY, -INFINITY}, {FIRST, LAST}},
    {"infinity and zero", near_one_number, NULL, {-INFINITY, 0.0}, {MIDDLE, LAST}},
    {"-inf first", uniform_number, NULL, {-INFINITY}, {FIRST_HALF}},
    {"nothing but -inf", uniform_number, NULL, {-INFINITY}, {EVERYWHERE}},
    {"nothing but +inf", uniform_number, NULL, {INFINITY}, {EVERYWHERE}},
    {"NaN first", uniform_number, NULL, {NAN}, {FIRST}},
    {"NaN last", uniform_number, NULL, {NAN}, {LAST}},
    {"two NaN", wide_number, NULL, {NAN, NAN}, {MIDDLE, LAST}},
    {"NaN on one rank", uniform_number, NULL, {NAN}, {RANK}},
    {"half NaN", far_number, NULL, {NAN}, {FIRST_HALF}},
    {"NaN and +inf", uniform_number, NULL, {INFINITY, NAN}, {FIRST, RANK}},
    {"NaN and -0.0", minus_zero_number, NULL, {NAN}, {MIDDLE}},
    {"nothing but NaN", uniform_number, NULL, {NAN}, {EVERYWHERE}},
};

static const struct pattern integer_patterns[] = {
    {"uniform", NULL, uniform_bits, {0}, {NOWHERE}},
    {"small", NULL, small_bits, {0}, {NOWHERE}},
    {"cancelling pairs", NULL, cancelling_bits, {0}, {NOWHERE}},
    {"limits", NULL, limits_bits, {0}, {NOWHERE}},
    {"nothing but the largest", NULL, largest_bits, {0}, {NOWHERE}},
    {"nothing but the smallest", NULL, smallest_bits, {0}, {NOWHERE}},
    {"far from zero", NULL, far_bits, {0}, {NOWHERE}},
    {"ones", NULL, ones_bits, {0}, {NOWHERE}},
    {"few twos", NULL, twos_bits, {0}, {NOWHERE}},
    {"threes", NULL, threes_bits, {0}, {NOWHERE}},
    {"threes and a zero last", NULL, threes_bits, {0}, {LAST}},
    {"threes and a zero on one rank", NULL, threes_bits, {0}, {RANK}},
    {"largest and a zero first", NULL, largest_bits, {0}, {FIRST}},
};

static inline bool stands_at(enum place_of place, uint64_t i, uint64_t count, uint64_t rank_first)
{
    switch (place) {
    case FIRST: return i == 0;
    case MIDDLE: return i == count / 2;
    case LAST: return i == count - 1;
    case RANK: return i == rank_first;
    case FIRST_HALF: return i <= count / 2;
    case EVERYWHERE: return true;
    default: return false;
    }
}

/* Elements [part.first, part.first + part.count) of an array of `count`. rank_first: where RANK is. */
static inline void pattern_fill(const struct pattern *pattern, allfold_type type, uint64_t count, uint64_t rank_first,
                                struct range part, void *elements)
{
    for (uint64_t at = 0; at < part.count; at++) {
        const uint64_t i = part.first + at;
        if (pattern->number != NULL)
            element_put(type, elements, at, pattern->number(i, type));
        else
            element_put_bits(type, elements, at, pattern->bits(i, type));
        for (int s = 0; s < 2; s++)
            if (stands_at(pattern->place[s], i, count, rank_first))
                element_put(type, elements, at, pattern->special[s]);
    }
}
