/* The error of every f32's exponential, in 2^-24 of itself, for the bounds of docs/numerics.md: as the sums take it, at both levels,
   as the second pass of softmax has it before it is multiplied, and as logsumexp at level fast takes it, and rows on a GPU keep it (elements up
   to 2048); in 2^-53, of terms in f64 at level exact; and whether softmax of one element alone is 1. Elements from 2^-12 to 32768 in magnitude: every one of them if ALLFOLD_AUDIT_STEP is 1 (make check-numerics), else some of them. */
#define TAP_WITHOUT_MPI
#include "tests/tap.h"

#include "base/elements.h"
#include "fold/exact_exponential.h"
#include "fold/softmax_constants.h"

#include <stdlib.h>

struct errors {
    double fast, exact, second, quick, wide;
    uint64_t not_one; /* softmax of the element alone, level exact */
};

static void raise_to(double *worst, double found, double exact)
{
    const double error = fabs(found / exact - 1.0) * 0x1p24;
    if (!(error <= *worst)) /* NaN counts as an error, and stays */
        *worst = error;
}

static void try_wide(float x, struct errors *worst)
{
    uint64_t bits;
    const long double term = (long double)exp_integer_f64((double)x, &bits, NULL, false) * 0x1p-55L;
    const double n = (double)(exp_place_f64(bits) - EXP_OFFSET);
    const long double exact = expl((long double)fma(n, -EXP_LN2, (double)x) - (long double)n * EXP_LN2_REST);
    const double error = (double)fabsl(term / exact - 1.0L) * 0x1p53;
    if (!(error <= worst->wide))
        worst->wide = error;
}

/* The terms of the 16-bit numbers of rows on a GPU, relative to what they are taken for. */
static double worst_of_short(void)
{
    double worst = 0.0;
    for (uint32_t bits = 0; bits < 1 << 16; bits++) {
        const float x[] = {load_f16((element_f16){(uint16_t)bits}), load_bf16((element_bf16){(uint16_t)bits})};
        for (int i = 0; i < 2; i++) {
            const struct exp_anchor_f32 own = exp_anchor_f32(fabsf(x[i]) <= EXP_WHOLE ? (double)x[i] : 0.0, SOFTMAX_RANGE_F32);
            const float n = exp_reduce_f32(x[i], &own).n;
            if (fabsf(x[i]) <= EXP_WHOLE)
                raise_to(&worst, (double)exp_without_rest_f32(x[i], &own) * power_of_two(-SOFTMAX_UP_F32), exp((double)x[i] - (double)n * (double)EXP_LN2_F32));
        }
    }
    return worst;
}

static void try_element(float x, struct errors *worst)
{
    const struct exp_anchor_f32 anchor = exp_anchor_f32(0.0, 0);
    const struct exp_parts_f32 parts = exp_reduce_f32(x, &anchor);
    const double n = (double)parts.n, exact = exp(fma(n, -EXP_LN2, (double)x) - n * EXP_LN2_REST); /* relative to 2^n */
    const float one = 1.0f + parts.d;
    uint32_t place;
    raise_to(&worst->fast, 1.0 + (double)exp_q_f32(&parts), exact);
    raise_to(&worst->exact, (double)exp_integer_f32(x, &place) * 0x1p-27, exact);
    raise_to(&worst->second, (double)one + (double)exp_less_f32(&parts, one), exact);
    if (fabsf(x) <= EXP_WHOLE) {
        const struct exp_anchor_f32 own = exp_anchor_f32((double)x, SOFTMAX_RANGE_F32);
        raise_to(&worst->quick, (double)exp_quick_f32(x, &own) * power_of_two(-SOFTMAX_UP_F32), exact);
    }
    try_wide(x, worst);
    struct exp_bins alone = exp_bins_identity();
    struct softmax_constants c;
    exp_bins_add(&alone, (double)x, true);
    softmax_constants_of(&alone, true, true, false, &c);
    worst->not_one += softmax_f32(x, &c) != 1.0f;
}

int main(void)
{
    const char *const text = getenv("ALLFOLD_AUDIT_STEP");
    const uint32_t step = text != NULL ? (uint32_t)strtoul(text, NULL, 10) : 61;
    const int64_t first = f32_bits(0x1p-12f), last = f32_bits(EXP_LIMIT);
    double fast = 0.0, exact = 0.0, second = 0.0, quick = 0.0, wide = 0.0;
    uint64_t not_one = 0;
#pragma omp parallel for reduction(max : fast, exact, second, quick, wide) reduction(+ : not_one)
    for (int64_t bits = first; bits <= last; bits += step) {
        struct errors worst = {fast, exact, second, quick, wide, 0};
        try_element(f32_from_bits((uint32_t)bits), &worst);
        try_element(f32_from_bits((uint32_t)bits | 0x80000000u), &worst);
        fast = worst.fast;
        exact = worst.exact;
        second = worst.second;
        quick = worst.quick;
        wide = worst.wide;
        not_one += worst.not_one;
    }
    tap_note("worst of one f32 in %u: terms %.4f, level exact %.4f; 1 + q of the second pass %.4f, kept on a GPU %.4f, in 2^-24; terms in f64 %.4f in 2^-53",
             step, fast, exact, second, quick, wide);
    tap_ok(fast <= 0.63, "terms of f32, level fast, are within 0.63 2^-24");
    tap_ok(exact <= 0.63, "terms of f32, level exact, are within 0.63 2^-24");
    tap_ok(second <= 0.29, "1 + q of softmax of f32 is within 0.29 2^-24");
    tap_ok(quick <= 1.76, "terms of f32 of logsumexp at level fast, and that rows on a GPU keep, are within 1.76 2^-24");
    tap_ok(not_one == 0, "softmax of one f32 alone is exactly 1 at level exact");
    const double of_short = worst_of_short();
    tap_note("terms of 16 bits, of rows on a GPU: %.4f", of_short);
    tap_ok(of_short <= 1.03, "terms of f16 and bf16 of logsumexp at level fast, of rows on a GPU, are within 1.03 2^-24");
    tap_ok(wide <= 0.31, "terms in f64, level exact, are within 0.31 2^-53");
    return tap_done();
}
