/* The end of an exact sum, on the host and in kernels. The words of the whole array become one integer, with exact arithmetic. At the end it is
   rounded once to a floating-point number, to nearest, ties to even. */
#pragma once

#include "base/elements.h"

/* The square of the widest sum (variance), and what a division adds: of sums with weights on the host alone. Kernels that have no f64 define
   it as less. */
#ifndef EXACT_TOTAL_DIGITS
#ifdef __CUDACC__
#define EXACT_TOTAL_DIGITS 160
#else
#define EXACT_TOTAL_DIGITS 288
#endif
#endif

#ifdef __CUDACC__
#define EXACT_TOTAL static __device__ __noinline__ __attribute__((unused))
#define EXACT_TOTAL_PART static __device__ __forceinline__
#else
#define EXACT_TOTAL
#define EXACT_TOTAL_PART static
#endif

/* (-1)^negative * (digits + a part of one, if sticky) * 2^lowest; digits of 32 bits, the lowest first. Those from `length` on are 0 and
   not set, and those of 0 below the others are left out: most sums are a tenth of the widest. */
struct exact_total {
    uint32_t digits[EXACT_TOTAL_DIGITS];
    int length;
    int32_t lowest;
    bool negative, sticky;
    int64_t nans, plus, minus, not_minus_zero; /* counts of terms that are not finite, as in exact.h */
};

/* words has `limbs` limbs and EXACT_COUNTS counts, as exact.h defines them, normalised or not. */
EXACT_TOTAL void exact_total_set(struct exact_total *total, const int64_t *words, uint32_t limbs, int32_t lowest);

/* total / divisor (> 0), to 64 bits or more. */
EXACT_TOTAL void exact_total_divide(struct exact_total *total, uint64_t divisor);
/* The root of a total that is not negative, to 64 bits. */
EXACT_TOTAL void exact_total_root(struct exact_total *total);
/* (count * squares - sum * sum) / (count * divisor): the variance, not negative, from sums of squares and of elements. */
EXACT_TOTAL struct exact_total exact_total_variance(const struct exact_total *squares, const struct exact_total *sum, uint64_t count,
                                        uint64_t divisor);

#ifndef __CUDACC__
bool exact_total_is_zero(const struct exact_total *total);
/* a * b; and a - b, which is not negative, if the lowest bits of both differ by whole digits. No part of one is lost in a or b. */
struct exact_total exact_total_product(const struct exact_total *a, const struct exact_total *b);
struct exact_total exact_total_difference(const struct exact_total *a, const struct exact_total *b);
/* a / b to 128 bits or more, b > 0. */
void exact_total_quotient(struct exact_total *a, const struct exact_total *b);
#endif

/* Bits of the magnitude of an integer. */
EXACT_TOTAL int exact_total_bits(const struct exact_total *total);
/* The integer, which must have at most 127 bits. */
EXACT_TOTAL int128 exact_total_integer(const struct exact_total *total);
EXACT_TOTAL struct exact_total exact_total_of_integer(int128 value);
/* high * 2^64 + low; the sum of high and low / 2^64 fits 128 bits. */
EXACT_TOTAL struct exact_total exact_total_of_wide(int128 high, uint128 low);

/* Rounded to the floating-point type, as a double. NaN if a NaN was taken, or infinities of both signs; else the infinity that
   was taken; +-inf beyond the type. A zero is -0.0 if signed_zero allows it and all terms were -0.0. */
EXACT_TOTAL double exact_total_round(const struct exact_total *total, bool signed_zero, allfold_type type);

/* x rounded to the floating-point type, once, as a double. */
EXACT_TOTAL double exact_round(double x, allfold_type type);

#ifdef __CUDACC__
#include "fold/exact_total_functions.h"
#endif
