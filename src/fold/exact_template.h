/* Template of the exact sums of floating-point numbers. NAME is the monoid, LIMBS and LOWEST its limbs (exact.h). TWO, if defined: it has two
   operands; an element below is then an FN(elements), and an array an FN(arrays) (folds.h).

   WINDOWS is the number of windows. TERM(x) is what is added for element x as a double, rounded, or NaN if a double cannot hold it.
   TERM_REST(x, term), if defined, is the exact rounding error of TERM. OWN_WINDOWS: terms take this number of windows, the first ones, and rounding
   errors the others; if it is not defined, all take all. BINS, if defined: terms are f32 and may go to bins. SQUARES, if defined: terms are
   squares of f32. ADD(sink, x, finite) adds the term of x, which has WEIGHT (EXACT_CAPACITY); finite: x is known to be finite, for which
   FINITE(x) is the test. */
#ifdef TWO
#define ELEMENT FN(elements)
#define ARRAY FN(arrays)
#define AT(x, i) FN(arrays_at)(x, i)
#define FROM(x, i) FN(arrays_from)(x, i)
#define FINITE(e) ((e).x - (e).x == (V)0 && (e).y - (e).y == (V)0)
#else
#define ELEMENT V
#define ARRAY const V *
#define AT(x, i) ((x)[i])
#define FROM(x, i) ((x) + (i))
#define FINITE(e) ((e) - (e) == (V)0)
#endif
#ifdef BINS
enum { NAME_FN(bins) = EXACT_BINS };
#else
enum { NAME_FN(bins) = 0 };
#endif
enum { NAME_FN(limbs) = LIMBS, NAME_FN(words) = LIMBS + EXACT_COUNTS, NAME_FN(lowest) = LOWEST, NAME_FN(windows_of) = WINDOWS };

typedef struct {
    int64_t words[LIMBS + EXACT_COUNTS];
} FN(NAME);

HOST_DEVICE FN(NAME) NAME_FN(identity)(void)
{
    FN(NAME) sum;
    memset(&sum, 0, sizeof sum);
    return sum;
}

HOST_DEVICE void NAME_FN(combine)(FN(NAME) * a, const FN(NAME) * b)
{
    for (int i = 0; i < LIMBS + EXACT_COUNTS; i++)
        a->words[i] += b->words[i];
    struct exact_sink sink = exact_sink_of(a->words, 1, LIMBS, LOWEST);
    exact_sink_normalise(&sink);
}

HOST_DEVICE void NAME_FN(start)(struct exact_accumulator *accumulator)
{
    exact_accumulator_close(accumulator, WINDOWS);
    accumulator->not_minus_zero = false;
    accumulator->failures = accumulator->skip = 0;
}

/* Adds x[0 .. n) to the windows. False if they cannot hold it; they are then as before. */
HOST_DEVICE bool NAME_FN(windows)(struct exact_accumulator *accumulator, ARRAY x, uint32_t n)
{
    enum { LAST = WINDOWS - 1 };
    double sum[WINDOWS][FOLD_LANES], up[FOLD_LANES];
    uint64_t outside[FOLD_LANES] = {0};
    memcpy(sum, accumulator->sum, sizeof sum);
    memcpy(up, sum[LAST], sizeof up);
#ifdef OWN_WINDOWS
    double own_up[FOLD_LANES];
    memcpy(own_up, sum[OWN_WINDOWS - 1], sizeof own_up);
#endif
    FOLD_FOR_LANES(n, i, lane, {
        double rest = TERM(AT(x, i));
#ifdef TERM_REST
        double second = TERM_REST(AT(x, i), rest);
#endif
#ifdef OWN_WINDOWS
        EXACT_STEP(sum[0][lane], accumulator->bias[0], rest, outside[lane]);
        EXACT_LAST(sum[1][lane], own_up[lane], accumulator->bias[1], rest, outside[lane]);
        EXACT_STEP(sum[2][lane], accumulator->bias[2], second, outside[lane]);
        EXACT_LAST(sum[3][lane], up[lane], accumulator->bias[3], second, outside[lane]);
#else
#if WINDOWS > 1
        EXACT_STEP(sum[0][lane], accumulator->bias[0], rest, outside[lane]);
#endif
#if WINDOWS > 2
        EXACT_STEP(sum[1][lane], accumulator->bias[1], rest, outside[lane]);
#endif
#if WINDOWS > 3
        EXACT_STEP(sum[2][lane], accumulator->bias[2], rest, outside[lane]);
#endif
        EXACT_LAST(sum[LAST][lane], up[lane], accumulator->bias[LAST], rest, outside[lane]);
#ifdef TERM_REST
        EXACT_STEP(sum[1][lane], accumulator->bias[1], second, outside[lane]);
        EXACT_STEP(sum[2][lane], accumulator->bias[2], second, outside[lane]);
        EXACT_LAST(sum[LAST][lane], up[lane], accumulator->bias[LAST], second, outside[lane]);
#endif
#endif
    });
#ifdef OWN_WINDOWS
    EXACT_SETTLE(sum[OWN_WINDOWS - 1][0], own_up[0], accumulator->bias[OWN_WINDOWS - 1], outside[0]);
#endif
    EXACT_SETTLE(sum[LAST][0], up[0], accumulator->bias[LAST], outside[0]);
    for (int lane = 1; lane < FOLD_LANES; lane++)
        outside[0] |= outside[lane];
    if (outside[0] >> 52 != 0)
        return false;
    memcpy(accumulator->sum, sum, sizeof sum);
    return true;
}

/* Opens the windows for the largest finite term. They stay closed if all finite terms are 0. False if there is no other term. */
HOST_DEVICE bool NAME_FN(open)(struct exact_accumulator *accumulator, ARRAY x, uint32_t n)
{
    double largest[FOLD_LANES] = {0.0};
    uint64_t not_minus_zero[FOLD_LANES] = {0}, special[FOLD_LANES] = {0};
    FOLD_FOR_LANES(n, i, lane, {
        const double term = TERM(AT(x, i)), magnitude = fabs(term);
        const bool finite = magnitude < (double)INFINITY;
        not_minus_zero[lane] |= f64_bits(term) ^ 1ull << 63;
        special[lane] |= finite ? 0 : 1;
        largest[lane] = finite && magnitude > largest[lane] ? magnitude : largest[lane];
    });
    for (int lane = 1; lane < FOLD_LANES; lane++) {
        not_minus_zero[0] |= not_minus_zero[lane];
        special[0] |= special[lane];
        largest[0] = larger_f64(largest[lane], largest[0]);
    }
    accumulator->not_minus_zero = accumulator->not_minus_zero || not_minus_zero[0] != 0;
    const uint32_t exponent = group_largest((uint32_t)(f64_bits(largest[0]) >> 52));
    if (largest[0] != 0.0)
#ifdef OWN_WINDOWS
        exact_accumulator_open(accumulator, WINDOWS, OWN_WINDOWS, exponent, LOWEST);
#else
        exact_accumulator_open(accumulator, WINDOWS, WINDOWS, exponent, LOWEST);
#endif
    return largest[0] != 0.0 || special[0] != 0;
}

/* Adds terms to the words one by one. A device checks first whether all are finite, because branches would make its threads
   diverge. */
HOST_DEVICE void NAME_FN(singly)(struct exact_sink *sink, ARRAY x, uint32_t n)
{
#ifdef __CUDA_ARCH__
    bool finite = true;
    exact_reserve(sink, n, WEIGHT);
    if (!sink->has_bins) {
        FOLD_UNROLL
        for (uint32_t i = 0; i < n; i++)
            finite &= FINITE(AT(x, i));
    }
    if (finite) {
        FOLD_UNROLL
        for (uint32_t i = 0; i < n; i++)
            ADD(sink, AT(x, i), true);
    } else {
        ELEMENT elements[EXACT_RUN]; /* in memory, so that this code is there once */
        FOLD_UNROLL
        for (uint32_t i = 0; i < n; i++)
            elements[i] = AT(x, i);
        FOLD_ROLL
        for (uint32_t i = 0; i < n; i++)
            ADD(sink, elements[i], false);
    }
#else
#ifdef BINS
    if (sink->has_bins) { /* so that an addition need not wait for the one before, which may go to the same bin */
        double copies[4][EXACT_BINS] = {{0.0}};
        exact_reserve(sink, n, 1);
        for (uint32_t i = 0; i < n; i++)
            copies[i % 4][exact_bin_of(x[i])] += TERM(AT(x, i));
        for (uint32_t b = 0; b < EXACT_BINS; b++)
            for (int copy = 0; copy < 4; copy++)
                exact_bin_add(&sink->bins, b, copies[copy][b]);
        return;
    }
#endif
    for (uint32_t start = 0; start < n; start += EXACT_RUN) {
        const uint32_t end = n - start < EXACT_RUN ? n : start + EXACT_RUN;
        exact_reserve(sink, end - start, WEIGHT);
        for (uint32_t i = start; i < end; i++)
            ADD(sink, AT(x, i), false);
    }
#endif
}

/* Adds a run of terms: through the windows if they hold them, else one by one. If run after run is not held, more and more runs
   go without a trial, so that data that is spread too wide costs no more than that. */
HOST_DEVICE void NAME_FN(run)(struct exact_accumulator *accumulator, struct exact_sink *sink, ARRAY x, uint32_t n)
{
    if (accumulator->skip > 0) {
        accumulator->skip--;
        NAME_FN(singly)(sink, x, n);
        return;
    }
    if (accumulator->bias[0] == 0.0 && !NAME_FN(open)(accumulator, x, n))
        return; /* zeros only */
    if (accumulator->bias[0] != 0.0 && NAME_FN(windows)(accumulator, x, n)) {
        accumulator->failures = 0;
        if (exact_accumulator_is_full(accumulator, WINDOWS))
            exact_accumulator_flush(accumulator, WINDOWS, sink);
        return;
    }
    NAME_FN(singly)(sink, x, n);
    exact_accumulator_flush(accumulator, WINDOWS, sink);
    exact_accumulator_close(accumulator, WINDOWS); /* the next run may be of another size: windows are opened anew for it */
    accumulator->skip = (1u << 2 * accumulator->failures) - 1;
    accumulator->failures += accumulator->failures < 3;
}

HOST_DEVICE void NAME_FN(finish_accumulator)(struct exact_accumulator *accumulator, struct exact_sink *sink)
{
#ifndef __CUDA_ARCH__
    if (accumulator->bias[0] != 0.0) /* short arrays open none */
#endif
        exact_accumulator_flush(accumulator, WINDOWS, sink);
    exact_bins_flush(sink);
    if (accumulator->not_minus_zero)
        exact_count(sink, EXACT_NOT_MINUS_ZERO, 1);
}

#if (defined(BINS) || defined(SQUARES)) && !defined(__CUDA_ARCH__)
#ifdef SQUARES
enum { NAME_FN(parts) = 2 };
#else
enum { NAME_FN(parts) = 1 };
#endif
/* Adds terms as they are to sums that are exact, if the bits of elements show that none is rounded. n is at most EXACT_PLAIN. A sum of
   -0.0 alone is -0.0. Squares have twice the bits and two parts, t and u being as in exact_bits_are_narrow. The first parts are
   multiples of 2^(2t - 42), and 2^11 of them are below 2^(2t + 11). The second parts are the rest, at most 2^(2t - 43) each and
   multiples of 2^2u: 2t - 32 - 2u bits together. That is less than 53 if t + 11 - u is at most 53. */
HOST_DEVICE bool NAME_FN(plain_sums)(ARRAY x, uint32_t n, double total[NAME_FN(parts)])
{
    double sums[NAME_FN(parts)][FOLD_LANES];
    struct exact_span span;
    int32_t below;
    for (int lane = 0; lane < NAME_FN(parts) * FOLD_LANES; lane++)
        sums[lane / FOLD_LANES][lane % FOLD_LANES] = ZERO_IDENTITY;
    exact_span_start(&span);
    FOLD_FOR_LANES(n, i, lane, {
        EXACT_SPAN_TAKE(span, lane, x[i]);
#ifndef SQUARES
        sums[0][lane] += TERM(AT(x, i));
#endif
    });
    if (!exact_span_is_narrow(&span, &below))
        return false;
#ifdef SQUARES
    const double big = 1.5 * power_of_two(2 * below + 10);
    FOLD_FOR_LANES(n, i, lane, {
        const double term = TERM(AT(x, i)), high = (term + big) - big;
        sums[0][lane] += high;
        sums[1][lane] += term - high;
    });
#endif
    for (int part = 0; part < NAME_FN(parts); part++)
        total[part] = lanes_total(sums[part]);
    return true;
}

HOST_DEVICE bool NAME_FN(plain)(struct exact_accumulator *accumulator, struct exact_sink *sink, ARRAY x, uint32_t n)
{
    double sums[NAME_FN(parts)];
    int32_t exponent;
    if (!NAME_FN(plain_sums)(x, n, sums))
        return false;
    for (int part = 0; part < NAME_FN(parts); part++) {
        const int64_t total = exact_integer(sums[part], &exponent);
        exact_add_integer(sink, total, exponent);
    }
    accumulator->not_minus_zero |= f64_bits(sums[0]) != f64_bits(-0.0);
    return true;
}
#else
HOST_DEVICE bool NAME_FN(plain)(struct exact_accumulator *accumulator, struct exact_sink *sink, ARRAY x, uint32_t n)
{
    (void)accumulator, (void)sink, (void)x, (void)n;
    return false;
}
#endif

/* Adds n elements, at most EXACT_TAKEN. If plain additions will not do, the host takes runs of EXACT_RUN elements a lane. */
HOST_DEVICE void NAME_FN(take)(struct exact_accumulator *accumulator, struct exact_sink *sink, ARRAY x, uint32_t n)
{
#ifdef __CUDA_ARCH__
    NAME_FN(run)(accumulator, sink, x, n);
#else
    const uint32_t length = EXACT_RUN * FOLD_LANES;
    if (NAME_FN(plain)(accumulator, sink, x, n))
        return;
    for (uint32_t i = 0; i < n; i += length)
        NAME_FN(run)(accumulator, sink, FROM(x, i), n - i < length ? n - i : length);
#endif
}

/* On the host; n is at most 2^31. */
HOST_DEVICE void NAME_FN(tile)(FN(NAME) * sum, ARRAY x, uint32_t n, uint64_t first)
{
    struct exact_sink sink = exact_sink_of(sum->words, 1, LIMBS, LOWEST);
    struct exact_accumulator accumulator;
    (void)first;
#ifdef BINS
    double bins[EXACT_BINS];
    sink.has_bins = true;
    sink.bins.at = bins;
    sink.bins.stride = 1;
#endif
    NAME_FN(start)(&accumulator);
    for (uint32_t i = 0; i < n; i += EXACT_TAKEN)
        NAME_FN(take)(&accumulator, &sink, FROM(x, i), n - i < EXACT_TAKEN ? n - i : EXACT_TAKEN);
    NAME_FN(finish_accumulator)(&accumulator, &sink);
    exact_sink_normalise(&sink);
}

#if defined(FOLD_COLUMNS) && !defined(TWO) && WINDOWS <= 2
static void NAME_FN(lanes_close)(void *partial)
{
    struct exact_sink sink = exact_sink_of(((FN(NAME) *)partial)->words, 1, LIMBS, LOWEST);
    exact_sink_normalise(&sink);
}

#ifdef BINS
/* A lane has what `plain` needs: a sum, and what the bits of elements have in common. */
static bool NAME_FN(settle)(FN(NAME) *restrict partial, double sum)
{
    const struct exact_sink sink = exact_sink_of(partial->words, 1, LIMBS, LOWEST);
    int32_t exponent;
    const int64_t total = exact_integer(sum, &exponent);
    exact_add_integer(&sink, total, exponent);
    exact_count(&sink, EXACT_NOT_MINUS_ZERO, f64_bits(sum) != f64_bits(-0.0));
    return true;
}
#define LANE(F) F(double, sum, ZERO_IDENTITY) F(uint32_t, largest, 0) F(uint32_t, before, ~0u) F(uint32_t, all, 0)
#define STEP(lane, x)                                                                          \
    do {                                                                                       \
        const uint32_t magnitude = f32_bits(x) & 0x7fffffffu, before = magnitude - 1;          \
        (lane)->largest = magnitude > (lane)->largest ? magnitude : (lane)->largest;           \
        (lane)->before = before < (lane)->before ? before : (lane)->before;                    \
        (lane)->all |= magnitude;                                                              \
        (lane)->sum += TERM(x);                                                                \
    } while (0)
#define HOLDS(lane) exact_bits_are_narrow((lane)->largest, (lane)->before, (lane)->all)
#define SETTLE(lane, partial, first) (HOLDS(lane) && NAME_FN(settle)(partial, (lane)->sum))
#define RESULT(lane) ((lane)->sum)
#include "fold/columns_template.h"

static bool NAME_FN(row_result)(const void *x, uint32_t n, double *result)
{
    return n <= EXACT_PLAIN && NAME_FN(plain_sums)(x, n, result);
}

#else
/* A lane has two windows, opened for the largest of its first elements. */
enum { NAME_FN(least) = (LOWEST + 52 > -1022 ? LOWEST + 52 : -1022) + 1023 };
static double NAME_FN(bias)(double largest)
{
    const int64_t exponent = (int64_t)(f64_bits(largest) >> 52) + 2 + EXACT_GROWTH(WINDOWS);
    const int64_t least = exponent < NAME_FN(least) ? NAME_FN(least) : exponent;
    return f64_from_bits((uint64_t)(least > 2046 ? 2046 : least) << 52 | 1ull << 51);
}
/* The second window's. */
static double NAME_FN(low_bias)(double bias)
{
    const int64_t bits = (int64_t)f64_bits(bias) - ((int64_t)(52 - EXACT_GROWTH(WINDOWS)) << 52);
    const int64_t least = (int64_t)NAME_FN(least) << 52 | 1ll << 51;
    return f64_from_bits((uint64_t)(bits > least ? bits : least));
}
/* Adds what is between a window and its bias. */
static bool NAME_FN(add_window)(const struct exact_sink *sink, double sum, double bias)
{
    const int64_t total = (int64_t)(f64_bits(sum) - f64_bits(bias));
    exact_add_integer(sink, total, (int32_t)(f64_bits(bias) >> 52) - 1075);
    return total != 0;
}
/* False also for what may be a sum of -0.0 only. */
static bool NAME_FN(settle)(FN(NAME) * sum, const double windows[2], double bias, uint64_t outside, bool not_minus_zero)
{
    const struct exact_sink sink = exact_sink_of(sum->words, 1, LIMBS, LOWEST);
    if (outside >> 52 != 0)
        return false;
    bool any = NAME_FN(add_window)(&sink, windows[0], bias);
    any |= NAME_FN(add_window)(&sink, windows[1], NAME_FN(low_bias)(bias));
    exact_count(&sink, EXACT_NOT_MINUS_ZERO, any || not_minus_zero);
    return any || not_minus_zero;
}
#define PEEK(lane, x)                                                    \
    do {                                                                 \
        const double term = TERM(x), magnitude = fabs(term);             \
        (lane)->sum = magnitude > (lane)->sum ? magnitude : (lane)->sum; \
        (lane)->not_minus_zero |= f64_bits(term) ^ 1ull << 63;           \
    } while (0)
#define LANE(F) \
    F(double, sum, 0.0) F(double, low, 0.0) F(double, bias, 0.0) F(uint64_t, outside, 0) F(uint64_t, not_minus_zero, 0)
#define OPEN(lane) \
    ((lane)->bias = (lane)->sum = NAME_FN(bias)((lane)->sum), (lane)->low = NAME_FN(low_bias)((lane)->bias))
#define STEP(lane, x)                                                                           \
    do {                                                                                        \
        double rest = TERM(x);                                                                  \
        EXACT_STEP((lane)->sum, (lane)->bias, rest, (lane)->outside);                           \
        EXACT_LAST((lane)->low, , NAME_FN(low_bias)((lane)->bias), rest, (lane)->outside);      \
    } while (0)
#define SETTLE(lane, partial, first)                                                                     \
    NAME_FN(settle)(partial, (const double[2]){(lane)->sum, (lane)->low}, (lane)->bias, (lane)->outside, \
                    (lane)->not_minus_zero != 0)
#ifndef SQUARES /* windows hold multiples of their last bits that are doubles, so there is one rounding */
#define HOLDS(lane) ((lane)->outside >> 52 == 0 && (lane)->not_minus_zero != 0)
#define RESULT(lane) (((lane)->sum - (lane)->bias) + ((lane)->low - NAME_FN(low_bias)((lane)->bias)))
#endif
#include "fold/columns_template.h"

#endif
#endif

#undef ELEMENT
#undef ARRAY
#undef AT
#undef FROM
#undef FINITE
#undef NAME
#undef NAME_FN
#undef LIMBS
#undef LOWEST
#undef WINDOWS
#undef OWN_WINDOWS
#undef TERM
#undef TERM_REST
#undef TWO
#undef BINS
#undef SQUARES
#undef ADD
#undef WEIGHT
