/* Elements and exponentials by themselves: every half and bfloat16 both ways, rounding to odd, exp and softmax of single
   elements against the C library's long double, the cutting of index ranges. */
#define TAP_WITHOUT_MPI
#include "tests/tap.h"

#include "fold/folds.h"
#include "fold/softmax_constants.h"
#include "fold/table.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* clang before 15 knows _Float16's limits but not the type, on x86 without the newest instructions. */
#if defined(__FLT16_MANT_DIG__) && (!defined(__clang__) || __clang_major__ >= 15)
#define HAVE_FLOAT16 1
#else
#define HAVE_FLOAT16 0
#endif

static uint64_t hash(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double unit(uint64_t x) { return (double)(hash(x) >> 11) * 0x1p-53; }

/* The 16-bit formats, from their definition: a sign, exponent_bits, fraction_bits. */
struct format {
    int exponent_bits, fraction_bits;
};
static const struct format half_format = {5, 10}, bfloat_format = {8, 7};

/* The number that the magnitude bits mean; for the bits of infinity what they would mean as a finite number, which is
   what rounding compares with. */
static double decode(struct format format, uint32_t magnitude)
{
    const int bias = (1 << (format.exponent_bits - 1)) - 1;
    const int exponent = (int)(magnitude >> format.fraction_bits);
    const uint32_t fraction = magnitude & ((1u << format.fraction_bits) - 1u);
    if (exponent == 0)
        return ldexp(fraction, 1 - bias - format.fraction_bits);
    return ldexp((double)fraction + (double)(1u << format.fraction_bits), exponent - bias - format.fraction_bits);
}

static uint32_t infinity_bits(struct format format)
{
    return ((1u << format.exponent_bits) - 1u) << format.fraction_bits;
}

/* x, which is not NaN, to the nearest, ties to even: by search, with the same sequence of bits as the numbers'. */
static uint16_t nearest(struct format format, double x)
{
    const double magnitude = fabs(x);
    uint32_t low = 0, high = infinity_bits(format);
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (decode(format, middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    const double below = magnitude - decode(format, low), above = decode(format, high) - magnitude;
    const bool up = above < below || (above == below && (low & 1u) != 0);
    return (uint16_t)((up ? high : low) | (signbit(x) ? 0x8000u : 0u));
}

static void test_loads(void)
{
    int bad_half = 0, bad_bfloat = 0, bad_return = 0;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const uint32_t magnitude = bits & 0x7fffu;
        const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
        const double half = (double)load_f16((element_f16){(uint16_t)bits});
        const double bfloat = (double)load_bf16((element_bf16){(uint16_t)bits});
        if (magnitude > infinity_bits(half_format))
            bad_half += half == half;
        else if (magnitude == infinity_bits(half_format))
            bad_half += half != sign * INFINITY;
        else
            bad_half += f64_bits(half) != f64_bits(sign * decode(half_format, magnitude));
        if (magnitude > infinity_bits(bfloat_format))
            bad_bfloat += bfloat == bfloat;
        else if (magnitude == infinity_bits(bfloat_format))
            bad_bfloat += bfloat != sign * INFINITY;
        else
            bad_bfloat += f64_bits(bfloat) != f64_bits(sign * decode(bfloat_format, magnitude));
        /* there and back: the same bits, NaN stays some NaN */
        const uint16_t half_back = round_f16(half).bits, bfloat_back = round_bf16(bfloat).bits;
        bad_return += half == half ? half_back != bits : (half_back & 0x7fffu) <= infinity_bits(half_format);
        bad_return += bfloat == bfloat ? bfloat_back != bits : (bfloat_back & 0x7fffu) <= infinity_bits(bfloat_format);
    }
    tap_ok(bad_half == 0, "load_f16 is right for all 65536 patterns (%d wrong)", bad_half);
    tap_ok(bad_bfloat == 0, "load_bf16 is right for all 65536 patterns (%d wrong)", bad_bfloat);
    tap_ok(bad_return == 0, "every f16 and bf16 comes back from f64 as it went (%d wrong)", bad_return);
}

/* Counts what rounds wrongly among x and its neighbours, from f64 and from f32, both signs. */
static int wrong_around(double x)
{
    const float single = (float)x;
    const double doubles[] = {x, nextafter(x, INFINITY), nextafter(x, -INFINITY), x * (1 + 0x1p-30), x * (1 - 0x1p-30)};
    const float singles[] = {single, nextafterf(single, INFINITY), nextafterf(single, -INFINITY)};
    int wrong = 0;
    for (int sign = -1; sign <= 1; sign += 2) {
        for (int i = 0; i < 5; i++) {
            wrong += round_f16(sign * doubles[i]).bits != nearest(half_format, sign * doubles[i]);
            wrong += round_bf16(sign * doubles[i]).bits != nearest(bfloat_format, sign * doubles[i]);
        }
        for (int i = 0; i < 3; i++) {
            wrong += f32_to_f16((float)sign * singles[i]).bits != nearest(half_format, sign * (double)singles[i]);
            wrong += f32_to_bf16((float)sign * singles[i]).bits != nearest(bfloat_format, sign * (double)singles[i]);
        }
    }
    return wrong;
}

static void test_rounding(void)
{
    int half = 0, bfloat = 0, others = 0;
    for (uint32_t bits = 0; bits < infinity_bits(half_format); bits++)
        half += wrong_around((decode(half_format, bits) + decode(half_format, bits + 1)) / 2)
                + wrong_around(decode(half_format, bits));
    for (uint32_t bits = 0; bits < infinity_bits(bfloat_format); bits++)
        bfloat += wrong_around((decode(bfloat_format, bits) + decode(bfloat_format, bits + 1)) / 2)
                  + wrong_around(decode(bfloat_format, bits));
    for (uint64_t i = 0; i < 200000; i++) {
        const double x = f64_from_bits(hash(i));
        others += x == x ? wrong_around(x) : 0;
    }
    others += wrong_around(DBL_MAX) + wrong_around(DBL_TRUE_MIN) + wrong_around(1e39) + wrong_around(INFINITY);
    tap_ok(half == 0, "rounding is right at and around every f16 and every tie between two (%d wrong)", half);
    tap_ok(bfloat == 0, "rounding is right at and around every bf16 and every tie between two (%d wrong)", bfloat);
    tap_ok(others == 0, "rounding is right around 200000 random f64 and the limits (%d wrong)", others);
#if HAVE_FLOAT16
    int compiler = 0;
    for (uint64_t i = 0; i < 4000000; i++) {
        /* half the numbers in the range of f16, the others anywhere */
        const uint64_t bits = hash(i);
        const double x = i % 2 == 0 ? ldexp((double)(int64_t)bits, (int)(bits % 45) - 90) : f64_from_bits(bits);
        const _Float16 expected = (_Float16)x, expected_single = (_Float16)(float)x;
        uint16_t wanted, wanted_single;
        memcpy(&wanted, &expected, sizeof wanted);
        memcpy(&wanted_single, &expected_single, sizeof wanted_single);
        compiler += x == x && (round_f16(x).bits != wanted || f32_to_f16((float)x).bits != wanted_single);
    }
    tap_ok(compiler == 0, "4000000 random numbers become the compiler's _Float16 (%d wrong)", compiler);
#else
    tap_skip("this compiler has no _Float16 to compare with");
#endif
}

/* FLOAT_TYPES: what it says of the largest number and of -inf is what rounding gives. */
static void test_formats(void)
{
    bool right = true;
    for (int i = ALLFOLD_TYPE_NONE + 1; i < ALLFOLD_TYPE_COUNT; i++) {
        const allfold_type type = (allfold_type)i;
        const struct float_format format = float_format_of(type);
        const uint64_t mask = UINT64_MAX >> (64 - 8 * allfold_type_bytes(type)), infinity = type_real_bits(type, -INFINITY);
        right = right && (format.precision > 0) == (type_kind(type) == 'f');
        if (type_kind(type) == 'f')
            right = right && infinity == (mask & UINT64_MAX << (format.precision - 1))
                    && type_real_bits(type, -format.largest) == infinity - 1
                    && format.largest == ldexp(2.0 - ldexp(1.0, 1 - format.precision), format.exponent_max);
    }
    tap_ok(right, "the largest number of a floating-point type, and -inf, follow from its format");
}

/* Rounded to odd: what is representable stays; all else becomes the odd one of its two neighbours. */
static void test_odd(void)
{
    int wrong = 0;
    for (uint64_t i = 0; i < 2000000; i++) {
        const uint64_t bits = hash(i ^ 0x0dd);
        double x = f64_from_bits(bits);
        if (i % 4 == 1)
            x = (double)f32_from_bits((uint32_t)bits); /* representable */
        else if (i % 4 == 2)
            x = ldexp((double)(int64_t)bits, -140 - 63); /* among the subnormal f32 */
        else if (i % 4 == 3)
            x = nextafter((double)f32_from_bits((uint32_t)bits), x); /* just beside one */
        if (x != x)
            continue;
        const float odd = f64_to_f32_odd(x);
        const double got = (double)odd;
        if (got == x)
            continue;
        const double toward = (double)nextafterf(odd, got < x ? INFINITY : -INFINITY);
        const bool neighbours = got < x ? x < toward : toward < x;
        wrong += isinf(got) || (f32_bits(odd) & 1u) == 0 || !neighbours || (double)(float)x == x;
    }
    const float nan = f64_to_f32_odd(NAN);
    tap_ok(wrong == 0 && nan != nan && isinf(f64_to_f32_odd(INFINITY)),
           "f64_to_f32_odd gives the odd neighbour (%d wrong)", wrong);
}

/* A unit in the last place of the number's format, subnormal numbers included. */
static long double ulp(long double x, int digits, int least_exponent)
{
    int exponent;
    frexpl(x, &exponent);
    return ldexpl(1.0L, (exponent - 1 > least_exponent ? exponent - 1 : least_exponent) - digits + 1);
}
static long double ulp_f32(long double x) { return ulp(x, 24, -126); }
static long double ulp_f64(long double x) { return ulp(x, 53, -1022); }

static void raise(double *worst, long double error)
{
    if (!((double)error <= *worst)) /* NaN counts as an error, and stays */
        *worst = (double)error;
}

/* exp(x - reference of m) as the sums of exponentials take it: the sum of its parts. */
static long double term_f32(float x, float m)
{
    const struct exp_anchor_f32 anchor = exp_anchor_f32((double)m, EXP_TERM_RANGE_F32);
    return (long double)exp_term_f32(x, &anchor);
}
static long double term_f64(double x, double m)
{
    const struct exp_anchor_f64 anchor = exp_anchor_f64(m, EXP_TERM_RANGE_F64);
    const pair term = exp_term_f64(x, &anchor);
    return (long double)term.high + (long double)term.low;
}
/* exp(x - reference of m) from the C library, whose range and precision do for exp(x) itself where m is no base. */
static long double exact_term(double x, double m)
{
    const struct exp_reference reference = exp_reference(m);
    return reference.base != 0.0 ? expl((long double)x - (long double)m) : ldexpl(expl((long double)x), -reference.whole);
}

/* Differences that are not exact, below maxima of either sign, small and large. */
static void test_exp_terms(void)
{
    static const double spans[] = {1e-3, 1.0, 20.0, 2047.0, 2100.0, 30000.0};
    double f32 = 0.0, f64 = 0.0, factors = 0.0, references = 0.0, ignored = 0.0;
    const int steps = 2000000;
    for (int i = 0; i <= steps; i++) {
        const double m = (2.0 * unit((uint64_t)i) - 1.0) * spans[i % 6];
        const float m_f32 = (float)m, x_f32 = m_f32 - (float)(85.0 * i / steps);
        const double x = m - 706.0 * i / steps;
        const long double exact_f32 = exact_term((double)x_f32, (double)m_f32), exact = exact_term(x, m);
        raise(&f32, fabsl(term_f32(x_f32, m_f32) - exact_f32) / ulp_f32(exact_f32));
        const pair factor = exp_pair(x, m), between = exp_factor(x, m); /* their low parts are subnormal in the end */
        const long double exact_factor = expl((long double)x - (long double)m);
        raise(&f64, fabsl(term_f64(x, m) - exact) / ulp_f64(exact));
        raise(x - m < -600.0 ? &ignored : &factors,
              fabsl((long double)factor.high + (long double)factor.low - exact_factor) / exact_factor * 0x1p53L);
        /* a term relative to x's own reference, brought to that of m */
        const long double moved = exact_term(x, x) * ((long double)between.high + (long double)between.low);
        raise(x - m < -600.0 ? &ignored : &references, fabsl(moved - exact) / exact * 0x1p53L);
    }
    tap_note("worst errors: exp_term_f32 %.4f ulp, exp_term_f64 %.4f ulp, exp_pair %.4f and exp_factor %.4f 2^-53", f32, f64,
             factors, references);
    tap_ok(f32 <= 0.63 && f64 <= 0.3, "the terms of sums of exponentials are within 0.63 ulp (f32) and 0.3 (f64)");
    tap_ok(factors <= 1.0 && references <= 1.0, "the factors between such sums are within 2^-53");
}

static void test_exp_term_special(void)
{
    const float huge = 0x1p100f, below = nextafterf(huge, 0.0f);
    tap_ok(term_f32(huge, huge) == 1.0L && term_f32(0.0f, 0.0f) == 1.0L && term_f32(below, huge) < 1e-37L
               && term_f32(-huge, huge) < 1e-37L && term_f32(-INFINITY, 1.0f) < 1e-37L && isnan(term_f32(NAN, 1.0f)),
           "f32 terms of the maximum itself, of huge differences, of -inf and of NaN");
    tap_ok(term_f64(1e300, 1e300) == 1.0L && term_f64(0.0, 0.0) == 1.0L
               && term_f64(nextafter(1e300, 0.0), 1e300) < 1e-300L && term_f64(-DBL_MAX, DBL_MAX) < 1e-300L
               && term_f64(-INFINITY, -1e300) < 1e-300L
               && isnan(term_f64(NAN, 1.0)),
           "f64 terms of the maximum itself, of huge differences, of -inf and of NaN");
}

/* The constants of a row whose maximum, and sum relative to its reference, are given. */
static struct softmax_constants constants_of(double max, double sum_high, double sum_low)
{
    struct partial partial;
    struct softmax_constants constants;
    const sumexp_f64_f64 sumexp = {max, {sum_high, sum_low}};
    memset(&partial, 0, sizeof partial);
    memcpy(partial.bytes, &sumexp, sizeof sumexp);
    softmax_constants_set(MONOID_sumexp_f64, &partial, &constants);
    if (is_finite(max) && is_finite(sum_high)) { /* the sum is meant as it is, with the term of max as it should be */
        const double log_sum = constants.log_sum, log_low = constants.log_low;
        const pair total = {sum_high, sum_low};
        softmax_constants_from(max, &total, &constants);
        constants.log_sum = log_sum;
        constants.log_low = log_low;
    }
    return constants;
}

static void test_softmax_elements(void)
{
    double normal_f32 = 0.0, normal_f64 = 0.0, subnormal_f32 = 0.0, subnormal_f64 = 0.0, logarithm = 0.0;
    for (uint64_t row = 0; row < 200; row++) {
        const uint64_t random = hash(row ^ 0x50f7);
        const float max = row == 0 ? 0.0f : (float)ldexp((double)(int64_t)random, (int)(random % 40) - 75);
        const double sum = row % 3 == 0 ? 1.0 : 1.0 + ldexp((double)(random >> 11), (int)(row % 60) - 60);
        const double low = row % 2 == 0 ? 0.0 : sum * 0x1p-54;
        const struct softmax_constants c = constants_of((double)max, sum, low);
        const long double divisor = ((long double)sum + (long double)low) / exact_term((double)max, (double)max);
        for (uint64_t i = 0; i < 5000; i++) {
            const double u = unit(random + i);
            const float x = i == 0 ? max : (float)((double)max - 106.0 * u);
            const long double exact = expl((long double)x - (long double)max) / divisor;
            raise(exact < FLT_MIN ? &subnormal_f32 : &normal_f32,
                  fabsl((long double)softmax_f32(x, &c) - exact) / ulp_f32(exact));
            const double x_f64 = i == 0 ? (double)max : (double)max - 750.0 * u;
            const long double t = (long double)x_f64 - (long double)max, exact_f64 = expl(t) / divisor;
            raise(exact_f64 < DBL_MIN ? &subnormal_f64 : &normal_f64,
                  fabsl((long double)softmax_f64(x_f64, &c) - exact_f64) / ulp_f64(exact_f64));
            /* the logarithm of the sum is itself rounded, as is the term of the maximum by which the sum is divided */
            const long double log_sum = logl(divisor), exact_log = t - log_sum;
            raise(&logarithm, fabsl((long double)log_softmax_f64(x_f64, &c) - exact_log)
                                  / (ulp_f64(exact_log) + ulp_f64(log_sum) + 0x1p-53L));
        }
    }
    tap_note("worst errors in ulp: softmax_f32 %.4f, subnormal results %.4f; softmax_f64 %.4f, subnormal %.4f",
             normal_f32, subnormal_f32, normal_f64, subnormal_f64);
    tap_note("worst error of log_softmax_f64: %.4f of (ulp of the result + ulp of the logarithm of the sum + 2^-53)", logarithm);
    tap_ok(normal_f32 <= 0.8 && subnormal_f32 <= 0.9, "softmax_f32 of exact constants is within 0.8 ulp, subnormal results within 0.9");
    tap_ok(normal_f64 <= 0.9 && subnormal_f64 <= 0.9, "softmax_f64 of exact constants is within 0.9 ulp");
    tap_ok(logarithm <= 1.0, "log_softmax_f64 is within an ulp of the result, one of the logarithm and 2^-53");
}

/* Rows in which many terms are rounded alike, or are each too small to count beside a few large ones: up to three values,
   24 below the largest at most, and one to three elements that are the largest. */
static void test_softmax_rows(void)
{
    enum { MOST = 700 };
    static float x[MOST];
    static double x_f64[MOST];
    double sum_f32 = 0.0, sum_f64 = 0.0, f32 = 0.0, f64 = 0.0;
    for (uint64_t row = 0; row < 12000; row++) {
        const uint64_t random = hash(row ^ 0x3a1), n = 1 + random % MOST, kinds = 1 + random / MOST % 3;
        const double largest = (unit(random) - 0.5) * (row % 2 ? 40.0 : 4000.0);
        long double maximum = -INFINITY, maximum_f64 = -INFINITY, sum = 0.0L, sum_of_f64 = 0.0L;
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t kind = hash(random + i) % kinds;
            x_f64[i] = i % 233 == random % 233 ? largest : largest - 24.0 * unit(random ^ kind);
            x[i] = (float)x_f64[i];
            maximum = fmaxl(maximum, (long double)x[i]);
            maximum_f64 = fmaxl(maximum_f64, (long double)x_f64[i]);
        }
        for (uint64_t i = 0; i < n; i++) {
            sum += expl((long double)x[i] - maximum);
            sum_of_f64 += expl((long double)x_f64[i] - maximum_f64);
        }
        struct partial partial, partial_f64;
        struct softmax_constants c, c_f64;
        monoid_identity(MONOID_sumexp, ALLFOLD_F32, &partial);
        monoid_identity(MONOID_sumexp_f64, ALLFOLD_F64, &partial_f64);
        sumexp_tile_f32((void *)partial.bytes, x, (uint32_t)n, 0);
        sumexp_f64_tile_f64((void *)partial_f64.bytes, x_f64, (uint32_t)n, 0);
        const sumexp_f32 *const got = (const void *)partial.bytes;
        const sumexp_f64_f64 *const got_f64 = (const void *)partial_f64.bytes;
        const long double found = ((long double)got->sum.high + (long double)got->sum.low) / exact_term(got->max, got->max);
        const long double found_f64 = ((long double)got_f64->sum.high + (long double)got_f64->sum.low) / exact_term(got_f64->max, got_f64->max);
        raise(&sum_f32, fabsl(found - sum) / sum * 0x1p24L);
        raise(&sum_f64, fabsl(found_f64 - sum_of_f64) / sum_of_f64 * 0x1p53L);
        softmax_constants_set(MONOID_sumexp, &partial, &c);
        softmax_constants_set(MONOID_sumexp_f64, &partial_f64, &c_f64);
        for (uint64_t i = 0; i < n; i++) {
            const long double exact = expl((long double)x[i] - maximum) / sum;
            const long double exact_f64 = expl((long double)x_f64[i] - maximum_f64) / sum_of_f64;
            raise(&f32, fabsl((long double)softmax_f32(x[i], &c) - exact) / ulp_f32(exact));
            raise(&f64, fabsl((long double)softmax_f64(x_f64[i], &c_f64) - exact_f64) / ulp_f64(exact_f64));
        }
    }
    tap_note("worst errors: sum %.3f 2^-24 in f32, %.3f 2^-53 in f64; softmax %.3f and %.3f ulp", sum_f32, sum_f64, f32, f64);
    tap_ok(sum_f32 <= 0.63 && sum_f64 <= 0.3, "sums of exponentials that err alike are within 0.63 2^-24 and 0.3 2^-53");
    tap_ok(f32 <= 1.3 && f64 <= 1.3, "softmax of such rows is within 1.3 ulp");
}

static void test_softmax_special(void)
{
    const struct softmax_constants c = constants_of(2.5, 3.0, 0.0), nan = constants_of(NAN, 3.0, 0.0),
                                   none = constants_of(-INFINITY, 0.0, 0.0), infinite = constants_of(INFINITY, 1.0, 0.0),
                                   poisoned = constants_of(1.0, NAN, 0.0), far = constants_of(DBL_MAX, 1.0, 0.0);
    tap_ok(softmax_f32(-INFINITY, &c) == 0.0f && softmax_f64(-INFINITY, &c) == 0.0
               && log_softmax_f64(-INFINITY, &c) == -INFINITY,
           "-inf among finite elements gives 0, and -inf as logarithm");
    tap_ok(softmax_f32(-FLT_MAX, &c) == 0.0f && softmax_f64(-DBL_MAX, &far) == 0.0
               && log_softmax_f64(-DBL_MAX, &far) == -INFINITY,
           "elements below the range of f64 under the maximum give 0 and -inf");
    const struct softmax_constants *const undefined[] = {&nan, &none, &infinite, &poisoned};
    const double elements[] = {0.0, -INFINITY, INFINITY, 2.5, NAN};
    bool all_nan = true;
    for (int row = 0; row < 4; row++)
        for (int i = 0; i < 5; i++)
            all_nan = all_nan && isnan(softmax_f32((float)elements[i], undefined[row]))
                      && isnan(softmax_f64(elements[i], undefined[row]))
                      && isnan(log_softmax_f64(elements[i], undefined[row]));
    tap_ok(all_nan, "where the row has no softmax every element is NaN");
}

/* Terms in f64 are 128-bit integers of at most 2^86.6: of softmax, whatever the types, and of logsumexp. */
static void test_room(void)
{
    const uint64_t most = (uint64_t)1 << 41;
    bool right = true;
    for (int x = 0; x < ALLFOLD_TYPE_COUNT; x++)
        for (int logarithm = 0; logarithm < 2; logarithm++) {
            const bool f64 = type_value((allfold_type)x) != VALUE_f32;
            const enum monoid monoid = softmax_monoid((allfold_type)x, ALLFOLD_F32, logarithm != 0, ALLFOLD_LEVEL_EXACT);
            struct error error = {0}, more = {0};
            right = right && monoid_has_room(monoid, most, &error) == ALLFOLD_OK;
            right = right && (monoid_has_room(monoid, most + 1, &more) == ALLFOLD_OK) == !f64;
        }
    tap_ok(right, "more than 2^41 exact exponentials in f64 are refused, whatever type they come from");
}

static void test_range_part(void)
{
    const uint64_t counts[] = {0, 1, 2, 6, 7, 8, 1000003, (1ull << 32) + 3, (1ull << 53) + 1, UINT64_MAX - 1, UINT64_MAX};
    const uint64_t parts[] = {1, 2, 3, 5, 7, 64, 1021};
    int wrong = 0;
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
        for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
            uint64_t next = 0, least = UINT64_MAX, most = 0;
            for (uint64_t part = 0; part < parts[p]; part++) {
                const struct range range = range_part(counts[c], part, parts[p]);
                wrong += range.first != next;
                next += range.count;
                least = u64_min(least, range.count);
                most = u64_max(most, range.count);
            }
            wrong += next != counts[c] || most - least > 1;
        }
    tap_ok(wrong == 0, "range_part covers everything once, in order, in sizes that differ by at most one");
}

int main(void)
{
    test_loads();
    test_rounding();
    test_formats();
    test_odd();
    test_exp_terms();
    test_exp_term_special();
    test_softmax_elements();
    test_softmax_rows();
    test_softmax_special();
    test_room();
    test_range_part();
    return tap_done();
}
