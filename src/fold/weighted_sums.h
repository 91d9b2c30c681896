/* What weighted folds keep: the exact sums of w x, of w and, for the variance, of w x^2, in words (exact.h). One layout for all value types,
   because all elements are taken as f64. */
#pragma once

#include "fold/exact.h"

#include <string.h>

/* Limbs from the product of the least f64 to the sum of 2^64 products of the largest. */
#define WEIGHTED_PRODUCT_LIMBS 133
#define WEIGHTED_PRODUCT_LOWEST -2148
#define WEIGHTED_WEIGHT_LIMBS 67
#define WEIGHTED_WEIGHT_LOWEST -1074
#define WEIGHTED_SQUARE_LIMBS 199
#define WEIGHTED_SQUARE_LOWEST -3222

struct weighted_sums {
    int64_t products[WEIGHTED_PRODUCT_LIMBS + EXACT_COUNTS];
    int64_t weights[WEIGHTED_WEIGHT_LIMBS + EXACT_COUNTS];
};
struct weighted_moments {
    struct weighted_sums sums;
    int64_t squares[WEIGHTED_SQUARE_LIMBS + EXACT_COUNTS];
};
enum {
    WEIGHTED_SUMS_WORDS = sizeof(struct weighted_sums) / sizeof(int64_t),
    WEIGHTED_MOMENTS_WORDS = sizeof(struct weighted_moments) / sizeof(int64_t)
};

/* The sinks of the words of either: the first `count`. */
HOST_DEVICE void weighted_sinks(struct exact_sink *sinks, int64_t *words, int count)
{
    sinks[0] = exact_sink_of(words, 1, WEIGHTED_PRODUCT_LIMBS, WEIGHTED_PRODUCT_LOWEST);
    sinks[1] = exact_sink_of(words + WEIGHTED_PRODUCT_LIMBS + EXACT_COUNTS, 1, WEIGHTED_WEIGHT_LIMBS, WEIGHTED_WEIGHT_LOWEST);
    if (count > 2)
        sinks[2] = exact_sink_of(words + WEIGHTED_SUMS_WORDS, 1, WEIGHTED_SQUARE_LIMBS, WEIGHTED_SQUARE_LOWEST);
}

HOST_DEVICE void weighted_normalise(int64_t *words, int count)
{
    struct exact_sink sinks[3];
    weighted_sinks(sinks, words, count);
    for (int i = 0; i < count; i++)
        exact_sink_normalise(&sinks[i]);
}

HOST_DEVICE void weighted_add(int64_t *a, const int64_t *b, int count)
{
    const int words = count > 2 ? WEIGHTED_MOMENTS_WORDS : WEIGHTED_SUMS_WORDS;
    for (int i = 0; i < words; i++)
        a[i] += b[i];
    weighted_normalise(a, count);
}

/* Adds w x^2 for any x and w, in four terms at most. */
HOST_DEVICE void weighted_add_square(const struct exact_sink *sink, double x, double w)
{
    int32_t x_exponent, w_exponent;
    if (!is_finite(x) || !is_finite(w)) {
        exact_add_special(sink, x * x * w);
        return;
    }
    const int64_t m = exact_integer(fabs(x), &x_exponent), k = exact_integer(w, &w_exponent);
    const uint64_t magnitude = (uint64_t)(k < 0 ? -k : k), mask = (UINT64_C(1) << 53) - 1;
    const uint128 square = (uint128)(uint64_t)m * (uint64_t)m;
    const uint64_t halves[2] = {(uint64_t)(square & mask), (uint64_t)(square >> 53)};
    if (m == 0 || k == 0)
        return;
    for (int i = 0; i < 2; i++) {
        const uint128 product = (uint128)halves[i] * magnitude;
        const int32_t exponent = 2 * x_exponent + w_exponent + 53 * i;
        exact_add_term(sink, negated_if((int64_t)(product & mask), k < 0), exponent);
        exact_add_term(sink, negated_if((int64_t)(product >> 53), k < 0), exponent + 53);
    }
}

#if defined(FOLD_FINISH) && !defined(__CUDACC__)
/* sum w x / sum w, rounded once; NaN if all weights are 0. */
FOLD_FINISH allfold_status weighted_mean(const struct finish *finish, const struct weighted_sums *sums)
{
    struct exact_total products, weights;
    exact_total_set(&products, sums->products, WEIGHTED_PRODUCT_LIMBS, WEIGHTED_PRODUCT_LOWEST);
    exact_total_set(&weights, sums->weights, WEIGHTED_WEIGHT_LIMBS, WEIGHTED_WEIGHT_LOWEST);
    if (exact_total_is_zero(&weights))
        return result_f64(finish, NAN);
    exact_total_quotient(&products, &weights);
    return result_f64(finish, exact_total_round(&products, true, finish->format));
}

/* (sum w x^2 * sum w - (sum w x)^2) / (sum w)^2, or its root, rounded once. The difference is not negative (Cauchy and Schwarz). */
FOLD_FINISH allfold_status weighted_variance(const struct finish *finish, const struct weighted_moments *moments, bool root)
{
    const int64_t *const specials = moments->sums.products + WEIGHTED_PRODUCT_LIMBS;
    struct exact_total products, weights, squares;
    exact_total_set(&products, moments->sums.products, WEIGHTED_PRODUCT_LIMBS, WEIGHTED_PRODUCT_LOWEST);
    exact_total_set(&weights, moments->sums.weights, WEIGHTED_WEIGHT_LIMBS, WEIGHTED_WEIGHT_LOWEST);
    exact_total_set(&squares, moments->squares, WEIGHTED_SQUARE_LIMBS, WEIGHTED_SQUARE_LOWEST);
    if (exact_total_is_zero(&weights) || specials[EXACT_NANS] + specials[EXACT_PLUS] + specials[EXACT_MINUS] != 0)
        return result_f64(finish, NAN);
    const struct exact_total left = exact_total_product(&squares, &weights), right = exact_total_product(&products, &products);
    const struct exact_total divisor = exact_total_product(&weights, &weights);
    struct exact_total variance = exact_total_difference(&left, &right);
    exact_total_quotient(&variance, &divisor);
    if (root)
        exact_total_root(&variance);
    return result_f64(finish, exact_total_round(&variance, false, finish->format));
}
#endif
