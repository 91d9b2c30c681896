/* The oracle: the elements' integers added and compared as integers, on the host. It has nothing in common with the
   rungs but the function that makes an element. */
#include "kernels/ladder/oracle.h"

#include "measure/numbers.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define CHUNK (UINT64_C(1) << 16) /* elements that one thread takes at a time */

static int type_bits(allfold_type type)
{
    switch (type) {
#define CASE(ID, c_type, bits) \
    case ALLFOLD_##ID:         \
        return bits;
        LADDER_TYPES(CASE)
#undef CASE
    default:
        return 0;
    }
}

struct totals {
    int128 sum, magnitudes;
    int64_t max;
};

static struct totals chunk_totals(uint64_t first, uint64_t end, uint64_t peak, int bits)
{
    struct totals totals = {0, 0, INT64_MIN};
    for (uint64_t i = first; i < end; i++) {
        const int64_t number = numbers_at(i, peak, bits);
        totals.sum += number;
        totals.magnitudes += number < 0 ? -number : number;
        totals.max = number > totals.max ? number : totals.max;
    }
    return totals;
}

void ladder_oracle_compute(allfold_type type, uint64_t n, struct ladder_oracle *oracle)
{
    const int bits = type_bits(type);
    const bool floating = type != ALLFOLD_INT32;
    const double unit = numbers_unit(bits, floating);
    const uint64_t peak = n > 0 ? numbers_peak(n) : 0;
    struct totals all = {0, 0, INT64_MIN};
#pragma omp parallel for schedule(static) if (n > 4 * CHUNK)
    for (uint64_t first = 0; first < n; first += CHUNK) {
        const struct totals some = chunk_totals(first, u64_min(first + CHUNK, n), peak, bits);
#pragma omp critical
        {
            all.sum += some.sum;
            all.magnitudes += some.magnitudes;
            all.max = some.max > all.max ? some.max : all.max;
        }
    }
    *oracle = (struct ladder_oracle){
        .type = type,
        .n = n,
        .sum = (long double)all.sum * unit,
        .magnitudes = (long double)all.magnitudes * unit,
        .integers = floating ? 0 : (int64_t)all.sum,
        .max = n > 0 ? (double)all.max * unit : floating ? -INFINITY : INT32_MIN,
    };
}

void ladder_oracle_line_sums(const struct ladder_lines *lines, int32_t *sums)
{
    const int bits = type_bits(ALLFOLD_INT32);
    const uint64_t peak = lines->n > 0 ? numbers_peak(lines->n) : 0;
#pragma omp parallel for schedule(static) if (lines->n > CHUNK)
    for (uint64_t line = 0; line < lines->count; line++) {
        uint32_t sum = 0;
        for (uint64_t place = 0; place < lines->length; place++)
            sum += (uint32_t)numbers_at(line * lines->line_stride + place * lines->place_stride, peak, bits);
        sums[line] = (int32_t)sum;
    }
}

int ladder_line_bits(uint64_t length)
{
    int bits = 24; /* 2^(24-bits) such integers have a sum of 2^23 at most; f32 holds all integers up to 2^24 */
    while (bits > 1 && length > (UINT64_C(1) << (24 - bits)))
        bits--;
    return bits;
}

void ladder_oracle_lines(const struct ladder_lines *lines, int bits, struct ladder_line *found)
{
    const uint64_t peak = lines->n > 0 ? numbers_peak(lines->n) : 0;
#pragma omp parallel for schedule(static) if (lines->n > CHUNK)
    for (uint64_t line = 0; line < lines->count; line++) {
        int64_t sum = 0, magnitudes = 0;
        for (uint64_t place = 0; place < lines->length; place++) {
            const int64_t number = numbers_at(line * lines->line_stride + place * lines->place_stride, peak, bits);
            sum += number;
            magnitudes += number < 0 ? -number : number;
        }
        found[line] = (struct ladder_line){(double)sum, (double)magnitudes};
    }
}

bool ladder_line_differs(const struct ladder_line *line, uint64_t length, double sum)
{
    const bool exact = line->magnitudes <= 0x1p24;
    const double tolerance = exact ? 0.0 : 1.01 * 0x1p-24 * (double)length * line->magnitudes;
    return !(fabs(sum - line->sum) <= tolerance); /* NaN differs */
}

static const char *integers_differ(int64_t found, int64_t expected, char *why, size_t why_bytes)
{
    if (found == expected)
        return NULL;
    snprintf(why, why_bytes, "found %" PRId64 ", expected %" PRId64, found, expected);
    return why;
}

static const char *reals_differ(double found, long double expected, long double tolerance, char *why, size_t why_bytes)
{
    /* NaN and infinities differ from every number; two equal infinities do not differ */
    if ((long double)found == expected || fabsl((long double)found - expected) <= tolerance)
        return NULL;
    snprintf(why, why_bytes, "found %.17g, expected %.17Lg, at most %.3Lg off", found, expected, tolerance);
    return why;
}

const char *ladder_oracle_differs(const struct ladder_oracle *oracle, allfold_fold fold,
                                  const struct ladder_answer *answer, char *why, size_t why_bytes)
{
    const bool integers = oracle->type == ALLFOLD_INT32;
    if (integers != (answer->value.kind == ALLFOLD_VALUE_I64)) {
        snprintf(why, why_bytes, "an answer of another type");
        return why;
    }
    if (integers && fold == ALLFOLD_MAX)
        return integers_differ(answer->value.i64, (int64_t)oracle->max, why, why_bytes);
    if (integers && answer->wraps)
        return integers_differ((int32_t)(uint32_t)(uint64_t)answer->value.i64,
                               (int32_t)(uint32_t)(uint64_t)oracle->integers, why, why_bytes);
    if (integers)
        return integers_differ(answer->value.i64, oracle->integers, why, why_bytes);
    if (fold == ALLFOLD_MAX)
        return reals_differ(answer->value.f64, oracle->max, 0.0L, why, why_bytes);
    const long double rounding = ldexpl(1.0L, -answer->precision);
    return reals_differ(answer->value.f64, oracle->sum, 1.01L * answer->roundings * rounding * oracle->magnitudes, why,
                        why_bytes);
}

static double logit(uint64_t i, uint64_t peak)
{
    const int bits = type_bits(ALLFOLD_F32);
    return (double)numbers_at(i, peak, bits) * numbers_unit(bits, true) * LADDER_LOGITS;
}

/* The distance from one f32 to the next, where x lies. */
static double f32_spacing(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1.0, (exponent > -125 ? exponent : -125) - 24);
}

void ladder_oracle_logits(uint64_t n, struct ladder_logits *logits)
{
    const uint64_t peak = n > 0 ? numbers_peak(n) : 0;
    const double max = n > 0 ? logit(peak, peak) : -INFINITY;
    double sum = 0.0;
#pragma omp parallel for schedule(static) reduction(+ : sum) if (n > 4 * CHUNK)
    for (uint64_t first = 0; first < n; first += CHUNK) {
        double part = 0.0;
        for (uint64_t i = first; i < u64_min(first + CHUNK, n); i++)
            part += exp(logit(i, peak) - max);
        sum += part;
    }
    *logits = (struct ladder_logits){n, peak, max, sum};
}

void ladder_oracle_softmax(const struct ladder_logits *logits, const float *y, const struct ladder_allowed *allowed,
                           double *worst, char why[TABLE_TEXT_BYTES])
{
    const uint64_t n = logits->n, peak = logits->peak;
    const double max = logits->max, sum = logits->sum;
    double largest = 0.0;
    uint64_t wrong = UINT64_MAX; /* the first one */
#pragma omp parallel for schedule(static) reduction(max : largest) reduction(min : wrong) if (n > 4 * CHUNK)
    for (uint64_t first = 0; first < n; first += CHUNK)
        for (uint64_t i = first; i < u64_min(first + CHUNK, n); i++) {
            const double below = max - logit(i, peak), expected = exp(-below) / sum;
            const double error = fabs((double)y[i] - expected) / f32_spacing(expected);
            largest = error > largest ? error : largest;
            if (!(error <= allowed->units + allowed->units_below * below) && i < wrong)
                wrong = i;
        }
    *worst = wrong == UINT64_MAX || isfinite(y[wrong]) ? largest : NAN;
    if (wrong != UINT64_MAX)
        snprintf(why, TABLE_TEXT_BYTES, "element %" PRIu64 ": found %.9g, expected %.9g", wrong, (double)y[wrong],
                 exp(logit(wrong, peak) - max) / sum);
}
