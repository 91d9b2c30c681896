/* exp and log in the widest arithmetic of the compiler (113 bits, or long double's), from their series: the oracle of the audit,
   which shares nothing with the program. Errors: some 2^-105. */
#pragma once

#include "tests/support.h"

#define WIDE_LN2 ((wide)0x1.62e42fefa39efp-1 + (wide)0x1.abc9e3b39803fp-56 + (wide)0x1.7b57a079a1934p-111)

static inline wide wide_magnitude(wide x) { return x < 0 ? -x : x; }

/* x 2^n */
static inline wide wide_scaled(wide x, int n)
{
    for (; n > 1000; n -= 1000)
        x *= (wide)0x1p1000;
    for (; n < -1000; n += 1000)
        x *= (wide)0x1p-1000;
    return x * (wide)ldexp(1.0, n);
}

/* exp(r) - 1 of a small r */
static inline wide wide_series(wide r)
{
    wide sum = 0;
    for (int i = 24; i > 0; i--)
        sum = (sum + 1) * r / i;
    return sum;
}

static inline wide wide_exp(wide x)
{
    if (x < -12000)
        return 0;
    const int n = (int)rint((double)(x / WIDE_LN2));
    wide q = wide_series((x - n * WIDE_LN2) / 64);
    for (int i = 0; i < 6; i++)
        q = q * (2 + q);
    return wide_scaled(1 + q, n);
}

/* log(1 + x), x >= 0, also where x is tiny: Newton's method from the C library's. */
static inline wide wide_log1p(wide x)
{
    if (x < (wide)0x1p-40)
        return x - x * x / 2 + x * x * x / 3;
    wide y = (wide)log1p((double)x);
    for (int i = 0; i < 2; i++)
        y += 2 * (1 + x - wide_exp(y)) / (1 + x + wide_exp(y));
    return y;
}

/* One unit in the last place of f32 or f64 at x, subnormal numbers included. */
static inline wide wide_ulp(wide x, allfold_type type)
{
    const double magnitude = fabs((double)x);
    int exponent = -5000;
    if (magnitude > 0)
        frexp(magnitude, &exponent);
    if (magnitude > 0 && wide_scaled(1, exponent - 1) > wide_magnitude(x)) /* it was rounded up */
        exponent--;
    const int least = type == ALLFOLD_F32 ? -149 : -1074, digits = type == ALLFOLD_F32 ? 24 : 53;
    return wide_scaled(1, exponent - digits > least ? exponent - digits : least);
}
