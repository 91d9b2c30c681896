/* The exact sum of packed integers: see packed.h, and docs/numerics.md. */
#include "fold/packed.h"

#include "fold/exact_total.h"
#include "fold/folds.h"

/* Adds factor * magnitude, or takes it off. Products of 27 and 32 bits are exact in 64. */
static void add_product(struct exact_sink *sink, double factor, uint128 magnitude, bool negative)
{
    int32_t exponent;
    const int64_t significand = exact_integer(factor, &exponent);
    const int64_t sign = (significand < 0) != negative ? -1 : 1;
    const uint64_t bits = (uint64_t)(significand < 0 ? -significand : significand);
    for (int digit = 0; digit < 4; digit++) {
        const uint64_t part = (uint32_t)(magnitude >> 32 * digit);
        exact_add_integer(sink, sign * (int64_t)((bits & 0x7ffffff) * part), exponent + 32 * digit);
        exact_add_integer(sink, sign * (int64_t)((bits >> 27) * part), exponent + 32 * digit + 27);
    }
}

void packed_sum_unpack(const struct packing *packing, uint64_t count, struct partial *partial)
{
    sum_exact_f64 values = sum_exact_identity_f64();
    const int128 sum = ((const sum_i64 *)(const void *)partial->bytes)->total; /* the layout of all integer types */
    struct exact_sink sink = exact_sink_of(values.words, 1, sum_exact_limbs_f64, sum_exact_lowest_f64);
    add_product(&sink, packing->scale, sum < 0 ? -(uint128)sum : (uint128)sum, sum < 0);
    add_product(&sink, packing->offset, count, false);
    exact_sink_normalise(&sink);
    if (count > 0)
        exact_count(&sink, EXACT_NOT_MINUS_ZERO, 1);
    memcpy(partial->bytes, &values, sizeof values);
}
