/* What test_reduce expects of every fold, computed from the definitions, element after element, without src/fold:
   integers in 128 bits, floating point in 113 (or the widest there is), exponentials in long double. And the bounds:

       sum            f16, bf16, f32: 4e-15 * sum of |x|: thousands of roundings in f64, few of them alike. f64: n^2
                      2^-106 * sum of |x|, which is what pairs promise (Ogita, Rump, Oishi 2005). Beside an ulp.
       mean           as sum, divided by n, and half an ulp for the division
       norm1          as sum
       norm2          an ulp; f16, bf16, f32: 1.2e-13 of itself, where thousands of squares are equal and round alike
       prod           1 ulp
       logsumexp      an ulp, and 2^-53 if the maximum is negative; of f32 and 16 bits, level fast, 2^-23 of 1 or of itself
       variance       1e-13 of itself, and 16 squares of an ulp of the mean
       all others, and integers but for mean, norm2, logsumexp and variance: exact */
#pragma once

#include "tests/support.h"

#include <float.h>
#include <inttypes.h>

/* Sums and extremes leave out NaN, which is counted; sums leave out infinities, which are counted too. */
struct expected {
    allfold_type type;
    char kind;
    uint64_t count, nans, first_nan, zeros, minus_zeros, negatives, plus_infinities, minus_infinities;
    wide sum, absolute, square, mean, variance;
    wide product; /* times 2^product_exponent */
    int64_t product_exponent;
    int128 integer_sum;
    uint128 integer_absolute, integer_product; /* of magnitudes; stays above 64 bits once it is */
    long double min, max;
    uint64_t min_index, max_index;
    wide sumexp; /* relative to max */
};

static inline wide wide_magnitude(wide x) { return x < 0 ? -x : x; }

static inline void expect_product(struct expected *e, double x)
{
    int exponent;
    e->product *= (wide)frexp(x, &exponent);
    e->product_exponent += exponent;
    if (wide_magnitude(e->product) < 0x1p-60) { /* far from the end of the exponents */
        e->product *= 0x1p60;
        e->product_exponent -= 60;
    }
}

/* An element of an integer type, exact in long double's 64 bits. */
static inline void expect_integer(struct expected *e, int128 x)
{
    const uint128 magnitude = x < 0 ? (uint128)-x : (uint128)x;
    e->integer_sum += x;
    e->integer_absolute += magnitude;
    if (x != 0 && e->integer_product <= UINT64_MAX)
        e->integer_product *= magnitude;
}

static inline void expect_element(struct expected *e, long double x, uint64_t i)
{
    if (e->min_index == ALLFOLD_NO_INDEX || x < e->min) {
        e->min = x;
        e->min_index = i;
    }
    if (e->max_index == ALLFOLD_NO_INDEX || x > e->max) {
        e->max = x;
        e->max_index = i;
    }
    e->zeros += x == 0;
    e->minus_zeros += x == 0 && signbit(x);
    e->negatives += x < 0;
    e->plus_infinities += x > LDBL_MAX;
    e->minus_infinities += x < -LDBL_MAX;
    if (isinf(x))
        return;
    if (e->kind != 'f')
        expect_integer(e, (int128)x);
    else if (x != 0)
        expect_product(e, (double)x);
    const wide term = (wide)x;
    if (e->kind == 'f') {
        e->sum += term;
        e->absolute += wide_magnitude(term);
    }
    e->square += term * term;
}

static inline struct expected expect(allfold_type type, const void *elements, uint64_t count)
{
    struct expected e = {.type = type, .kind = type_kind(type), .count = count, .product = 1, .integer_product = 1};
    e.first_nan = e.min_index = e.max_index = ALLFOLD_NO_INDEX;
    for (uint64_t i = 0; i < count; i++) {
        const long double x = element_get(type, elements, i);
        if (x == x)
            expect_element(&e, x, i);
        else if (e.nans++ == 0)
            e.first_nan = i;
    }
    if (e.kind != 'f')
        e.sum = (wide)e.integer_sum;
    e.mean = count > e.nans ? e.sum / (wide)(count - e.nans) : 0;
    for (uint64_t i = 0; i < count; i++) {
        const long double x = element_get(type, elements, i);
        if (x != x || isinf(x))
            continue;
        e.variance += ((wide)x - e.mean) * ((wide)x - e.mean);
        if (x - e.max > -800)
            e.sumexp += (wide)expl(x - e.max);
    }
    e.variance /= count > e.nans ? (wide)(count - e.nans) : 1;
    return e;
}

/* What one comparison found: empty while all is well. */
struct verdict {
    char fault[300];
    double worst; /* largest error, as a part of its bound */
};

__attribute__((format(printf, 2, 3))) static inline void found(struct verdict *v, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (v->fault[0] == '\0')
        vsnprintf(v->fault, sizeof v->fault, format, arguments);
    va_end(arguments);
}

static inline double ulp_of(double x)
{
    const double magnitude = fabs(x);
    return magnitude >= DBL_MAX ? 0x1p971 : nextafter(magnitude, INFINITY) - magnitude;
}

/* A number within an ulp and allowance of the exact one; infinite and NaN as they must be. */
static inline void check_near(struct verdict *v, const char *name, allfold_value value, wide exact, wide allowance)
{
    const double rounded = (double)exact;
    if (value.kind != ALLFOLD_VALUE_F64)
        found(v, "%s is no f64", name);
    else if (rounded != rounded || isinf(rounded)) {
        if (rounded != rounded ? value.f64 == value.f64 : value.f64 != rounded)
            found(v, "%s is %.17g, not %g", name, value.f64, rounded);
    } else {
        const wide bound = (wide)ulp_of(rounded) + allowance, error = wide_magnitude((wide)value.f64 - exact);
        const double part = isfinite(value.f64) ? (double)(error / bound) : INFINITY;
        v->worst = part > v->worst ? part : v->worst;
        if (!(part <= 1.0))
            found(v, "%s is %.17g, not %.17g: %.3g of the bound", name, value.f64, rounded, part);
    }
}

static inline void check_exact(struct verdict *v, const char *name, allfold_value value, double exact)
{
    if (value.kind != ALLFOLD_VALUE_F64 || !(value.f64 == exact || (value.f64 != value.f64 && exact != exact)))
        found(v, "%s is %.17g, not %.17g", name, allfold_number(value), exact);
}

static inline bool fits(int128 value, bool is_signed)
{
    return is_signed ? value >= INT64_MIN && value <= INT64_MAX : value >= 0 && value <= UINT64_MAX;
}

/* One that does not fit is rounded: in stats, where it is no error. */
static inline void check_integer(struct verdict *v, const char *name, allfold_value value, int128 exact, bool is_signed)
{
    if (!fits(exact, is_signed)) {
        check_exact(v, name, value, (double)exact);
        return;
    }
    const bool right = is_signed ? value.kind == ALLFOLD_VALUE_I64 && value.i64 == exact
                                 : value.kind == ALLFOLD_VALUE_U64 && value.u64 == (uint128)exact;
    if (!right)
        found(v, "%s is %.17g (kind %d), not %.17g", name, allfold_number(value), (int)value.kind, (double)exact);
}

/* Sums of all terms, or of magnitudes, by way of infinities; counts, and so n, are of what is not NaN. */
static inline wide expected_sum(const struct expected *e, bool magnitudes)
{
    const uint64_t plus = e->plus_infinities, minus = e->minus_infinities;
    if (magnitudes ? plus + minus > 0 : plus > 0)
        return !magnitudes && minus > 0 ? (wide)NAN : (wide)INFINITY;
    return !magnitudes && minus > 0 ? -(wide)INFINITY : magnitudes ? e->absolute : e->sum;
}
static inline wide sum_allowance(const struct expected *e)
{
    const wide n = (wide)(e->count + 64);
    return e->type == ALLFOLD_F64 ? n * n * (wide)0x1p-106 * e->absolute : (wide)4e-15 * e->absolute;
}

static inline void check_sum(struct verdict *v, const struct expected *e, allfold_value value)
{
    if (e->kind != 'f') {
        check_integer(v, "sum", value, e->integer_sum, e->kind == 'i');
        return;
    }
    check_near(v, "sum", value, expected_sum(e, false), sum_allowance(e));
    const uint64_t numbers = e->count - e->nans;
    const bool minus_zero = numbers > 0 && e->minus_zeros == numbers;
    if (e->sum == 0 && e->zeros == numbers && (bool)signbit(value.f64) != minus_zero)
        found(v, "the zero sum has the wrong sign");
}

static inline void check_mean(struct verdict *v, const struct expected *e, allfold_value value)
{
    const wide n = (wide)(e->count - e->nans);
    const wide exact = e->kind != 'f' ? e->mean : expected_sum(e, false) / n, half = (wide)ulp_of((double)exact) / 2;
    check_near(v, "mean", value, exact, e->kind != 'f' ? half : half + sum_allowance(e) / n);
}

static inline void check_prod(struct verdict *v, const struct expected *e, allfold_value value)
{
    const bool negative = e->negatives % 2 != 0;
    if (e->kind != 'f') {
        const int128 magnitude = e->zeros > 0 ? 0 : (int128)e->integer_product;
        check_integer(v, "prod", value, negative ? -magnitude : magnitude, e->kind == 'i');
    } else if (e->plus_infinities + e->minus_infinities > 0)
        check_exact(v, "prod", value, e->zeros > 0 ? NAN : negative ? -INFINITY : INFINITY);
    else if (e->zeros > 0)
        check_exact(v, "prod", value, 0.0);
    else {
        const int64_t exponent = e->product_exponent;
        const int limited = (int)(exponent > 8000 ? 8000 : exponent < -8000 ? -8000 : exponent);
        check_near(v, "prod", value, (wide)ldexpl((long double)e->product, limited), 0);
    }
}

static inline void check_norm1(struct verdict *v, const struct expected *e, allfold_value value)
{
    if (e->kind != 'f')
        check_integer(v, "norm1", value, (int128)e->integer_absolute, false);
    else
        check_near(v, "norm1", value, expected_sum(e, true), sum_allowance(e));
}

static inline void check_norm2(struct verdict *v, const struct expected *e, allfold_value value)
{
    const bool infinite = e->plus_infinities + e->minus_infinities > 0;
    const wide root = infinite ? (wide)INFINITY : (wide)sqrtl((long double)e->square);
    check_near(v, "norm2", value, root, e->kind == 'f' && e->type != ALLFOLD_F64 && !infinite ? (wide)1.2e-13 * root : 0);
}

static inline void check_norminf(struct verdict *v, const struct expected *e, allfold_value value)
{
    const long double largest = e->count == e->nans ? 0 : fmaxl(fabsl(e->min), fabsl(e->max));
    if (e->kind != 'f')
        check_integer(v, "norminf", value, (int128)largest, false);
    else
        check_exact(v, "norminf", value, (double)largest);
}

static inline void check_logsumexp(struct verdict *v, const struct expected *e, allfold_value value, allfold_level level)
{
    if (e->plus_infinities > 0 || e->minus_infinities == e->count) {
        check_exact(v, "logsumexp", value, e->plus_infinities > 0 ? INFINITY : -INFINITY);
        return;
    }
    /* of integers beyond 2^53 the nearest f64 is taken: an ulp of the largest */
    const wide integers = e->kind == 'f' ? 0 : (wide)ulp_of((double)e->max);
    const wide exact = (wide)e->max + (wide)log1pl((long double)(e->sumexp - 1)), magnitude = wide_magnitude(exact);
    const wide quick = level == ALLFOLD_LEVEL_FAST && e->kind == 'f' && e->type != ALLFOLD_F64 ? (wide)0x1p-23 * (magnitude > 1 ? magnitude : 1) : 0;
    check_near(v, "logsumexp", value, exact, (e->max < 0 ? (wide)0x1p-53 : 0) + integers + quick);
}

static inline void check_variance(struct verdict *v, const struct expected *e, allfold_value value)
{
    if (e->plus_infinities + e->minus_infinities > 0)
        check_exact(v, "variance", value, NAN);
    else {
        const wide unit = (wide)ulp_of((double)e->mean);
        check_near(v, "variance", value, e->variance, (wide)1e-13 * e->variance + 16 * unit * unit);
    }
}

/* Of the root: half of the relative error. Near 0 the absolute one alone says something. */
static inline void check_std(struct verdict *v, const struct expected *e, allfold_value value)
{
    if (e->plus_infinities + e->minus_infinities > 0)
        check_exact(v, "std", value, NAN);
    else if (!isinf((double)e->variance) || !isinf(value.f64)) { /* level fast has no squares beyond f64's range */
        const wide unit = (wide)ulp_of((double)e->mean), root = (wide)sqrtl((long double)e->variance);
        check_near(v, "std", value, root, (wide)1e-13 * root + 4 * unit + (wide)0x1p-530); /* squares below that are 0 at level fast */
    }
}

static inline void check_extreme(struct verdict *v, const char *name, const struct expected *e, long double extreme,
                                 allfold_value value)
{
    if (e->kind != 'f')
        check_integer(v, name, value, (int128)extreme, e->kind == 'i');
    else
        check_exact(v, name, value, (double)extreme);
}

/* What a call gave, whichever way it was made. */
struct outcome {
    allfold_status status;
    char message[ALLFOLD_ERROR_BYTES];
    struct fold_results result;
};

static inline void check_index(struct verdict *v, const char *name, uint64_t index, uint64_t expected)
{
    if (index != expected)
        found(v, "the index of %s is %" PRIu64 ", not %" PRIu64, name, index, expected);
}

/* The status that the fold must end with; *text is then in the message. */
static inline allfold_status expected_status(allfold_fold fold, allfold_nan nan, const struct expected *e,
                                             const char **text)
{
    static char nan_text[128];
    const bool extreme = fold >= ALLFOLD_MIN && fold <= ALLFOLD_ARGMAX, is_signed = e->kind == 'i';
    const bool variance = fold == ALLFOLD_VARIANCE || fold == ALLFOLD_STD;
    if ((extreme || variance || fold == ALLFOLD_STATS) && nan == ALLFOLD_NAN_ERROR && e->nans > 0) {
        const int length
            = snprintf(nan_text, sizeof nan_text, "%" PRIu64 " of %" PRIu64 " elements are NaN", e->nans, e->count);
        if (fold != ALLFOLD_MIN && fold != ALLFOLD_MAX)
            snprintf(nan_text + length, sizeof nan_text - (size_t)length, ", the first at index %" PRIu64, e->first_nan);
        *text = nan_text;
        return ALLFOLD_NO_VALUE;
    }
    *text = "empty array";
    if ((extreme || variance || fold == ALLFOLD_MEAN) && e->count == 0)
        return ALLFOLD_NO_VALUE;
    *text = "left out";
    if ((extreme || variance) && nan == ALLFOLD_NAN_OMIT && e->nans == e->count)
        return ALLFOLD_NO_VALUE;
    *text = "cannot hold";
    if (e->kind != 'f' && fold == ALLFOLD_SUM && !fits(e->integer_sum, is_signed))
        return ALLFOLD_OVERFLOW;
    if (e->kind != 'f' && fold == ALLFOLD_NORM1 && !fits((int128)e->integer_absolute, false))
        return ALLFOLD_OVERFLOW;
    if (e->kind != 'f' && fold == ALLFOLD_PROD && e->zeros == 0) {
        *text = e->integer_product > UINT64_MAX ? "exceeds 64 bits" : "cannot hold";
        if (e->integer_product > UINT64_MAX
            || !fits(e->negatives % 2 != 0 ? -(int128)e->integer_product : (int128)e->integer_product, is_signed))
            return ALLFOLD_OVERFLOW;
    }
    *text = "";
    return ALLFOLD_OK;
}

static inline void check_stats(struct verdict *v, const struct expected *e, allfold_nan nan, const struct fold_results *result)
{
    static const char *const names[] = {"count", "nan_count", "sum",   "mean",  "variance",
                                        "min",   "max",       "norm1", "norm2", "norminf"};
    const bool empty = e->count == e->nans, all_nan = e->nans > 0 && nan == ALLFOLD_NAN_PROPAGATE;
    int field = 0;
    for (int name = 0; name < 10; name++) {
        if (name >= 3 && name <= 6 && empty && !all_nan)
            continue;
        if (field >= result->field_count || strcmp(result->fields[field].name, names[name]) != 0) {
            found(v, "stats has no %s at place %d", names[name], field);
            return;
        }
        const allfold_value value = result->fields[field].value;
        const uint64_t index = result->fields[field].index;
        field++;
        if (name == 5 || name == 6)
            check_index(v, names[name], index, all_nan ? e->first_nan : name == 5 ? e->min_index : e->max_index);
        else
            check_index(v, names[name], index, ALLFOLD_NO_INDEX);
        if (all_nan && name >= 2) {
            check_exact(v, names[name], value, NAN);
            continue;
        }
        switch (name) {
        case 0: check_integer(v, "count", value, (int128)e->count, false); break;
        case 1: check_integer(v, "nan_count", value, (int128)e->nans, false); break;
        case 2: check_sum(v, e, value); break;
        case 3: check_mean(v, e, value); break;
        case 4: check_variance(v, e, value); break;
        case 5: check_extreme(v, "min", e, e->min, value); break;
        case 6: check_extreme(v, "max", e, e->max, value); break;
        case 7: check_norm1(v, e, value); break;
        case 8: check_norm2(v, e, value); break;
        default: check_norminf(v, e, value); break;
        }
    }
    if (field != result->field_count)
        found(v, "stats has %d fields, not %d", result->field_count, field);
}

static inline void check_value(struct verdict *v, allfold_fold fold, allfold_nan nan, const struct expected *e,
                        const struct fold_results *result)
{
    const allfold_value value = result->fields[0].value;
    const bool low = fold == ALLFOLD_MIN || fold == ALLFOLD_ARGMIN;
    const bool indexed = fold == ALLFOLD_ARGMIN || fold == ALLFOLD_ARGMAX;
    const bool all_nan = e->nans > 0 && nan == ALLFOLD_NAN_PROPAGATE;
    if (fold == ALLFOLD_STATS) {
        check_stats(v, e, nan, result);
        return;
    }
    if (result->field_count != 1 || strcmp(result->fields[0].name, "value") != 0)
        found(v, "there is not one field, \"value\"");
    check_index(v, "the value", result->fields[0].index,
                !indexed ? ALLFOLD_NO_INDEX : all_nan ? e->first_nan : low ? e->min_index : e->max_index);
    if (all_nan) {
        check_exact(v, "the value", value, NAN);
        return;
    }
    switch (fold) {
    case ALLFOLD_SUM: check_sum(v, e, value); break;
    case ALLFOLD_PROD: check_prod(v, e, value); break;
    case ALLFOLD_MEAN: check_mean(v, e, value); break;
    case ALLFOLD_NORM1: check_norm1(v, e, value); break;
    case ALLFOLD_NORM2: check_norm2(v, e, value); break;
    case ALLFOLD_NORMINF: check_norminf(v, e, value); break;
    case ALLFOLD_LOGSUMEXP: check_logsumexp(v, e, value, result->level); break;
    case ALLFOLD_VARIANCE: check_variance(v, e, value); break;
    case ALLFOLD_STD: check_std(v, e, value); break;
    default: check_extreme(v, low ? "min" : "max", e, low ? e->min : e->max, value); break;
    }
    if ((fold == ALLFOLD_MIN || fold == ALLFOLD_MAX) && value.kind == ALLFOLD_VALUE_F64 && value.f64 == 0.0
        && signbit(value.f64))
        found(v, "a zero result is -0.0");
}

/* Judges what one call gave. */
static inline void check(struct verdict *v, allfold_fold fold, allfold_nan nan, const struct expected *e,
                         const struct outcome *outcome)
{
    const char *text;
    const allfold_status status = expected_status(fold, nan, e, &text);
    if (outcome->status != status)
        found(v, "\"%s\" (%s), where \"%s\" was due", allfold_status_text(outcome->status), outcome->message,
              allfold_status_text(status));
    else if (strstr(outcome->message, text) == NULL)
        found(v, "the message is \"%s\", without \"%s\"", outcome->message, text);
    else if (status == ALLFOLD_OK && outcome->result.count != e->count)
        found(v, "the count is %" PRIu64 ", not %" PRIu64, outcome->result.count, e->count);
    else if (status == ALLFOLD_OK)
        check_value(v, fold, nan, e, &outcome->result);
}
