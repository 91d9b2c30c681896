/* Parses the text of generators, "normal?n=1e9&seed=1&sd=2": names, keys, defaults, and what is refused. */
#include "array/array.h"

#include "base/elements.h"
#include "base/parse.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_BYTES 64
#define RAMP_COUNT_MAX (UINT64_C(1) << 53) /* beyond it f64 does not hold every index */

enum parameter_kind {
    REAL,     /* a finite number, whatever the element type */
    VALUE,    /* a number that the element type holds */
    STEP,     /* a difference of such numbers */
    EXPONENT, /* of a power of two that the element type holds */
};

/* Defaults are texts too, one for floating-point and one for integer types; NULL is the lowest that the type has for a
   first parameter, the highest for a second. */
struct parameter {
    const char *name;
    enum parameter_kind kind;
    const char *real_default, *whole_default;
};

static const struct {
    const char *name;
    struct parameter parameters[2];
} distributions[DISTRIBUTION_COUNT] = {
    [DISTRIBUTION_UNIFORM] = {"uniform", {{"lo", VALUE, "0", NULL}, {"hi", VALUE, "1", NULL}}},
    [DISTRIBUTION_NORMAL] = {"normal", {{"mean", REAL, "0", "0"}, {"sd", REAL, "1", "1"}}},
    [DISTRIBUTION_WIDE] = {"wide", {{"emin", EXPONENT, NULL, NULL}, {"emax", EXPONENT, NULL, NULL}}},
    [DISTRIBUTION_LOGITS] = {"logits", {{"scale", REAL, "4", "4"}, {"outliers", REAL, "1e-4", "1e-4"}}},
    [DISTRIBUTION_CONSTANT] = {"constant", {{"value", VALUE, "1", "1"}}},
    [DISTRIBUTION_RAMP] = {"ramp", {{"start", VALUE, "0", "0"}, {"step", STEP, "1", "1"}}},
};

static const char help[] =
    "gen:DISTRIBUTION?n=COUNT[&dtype=TYPE][&seed=NUMBER][&PARAMETER=VALUE...]\n"
    "  COUNT is 1000, 1e9, 2^30 or 64Mi; dtype defaults to f32, seed to 0. An element depends on the text and its index\n"
    "  alone: not on the machine, the ranks or the threads. Values beyond the type become its largest.\n"
    "  uniform   lo=0 hi=1       lo <= x < hi; integers lo <= x <= hi, by default all that the type holds\n"
    "  normal    mean=0 sd=1     normal deviates\n"
    "  wide      emin= emax=     random sign, every power of two from 2^emin to 2^emax as likely as another; by default\n"
    "                            all that the type has, subnormals too (integers: emin=-1 is the value 0)\n"
    "  logits    scale=4 outliers=1e-4\n"
    "                            normal deviates times scale; with probability `outliers` 10 times as large, as\n"
    "                            language models have them\n"
    "  constant  value=1         also inf, -inf and nan\n"
    "  ramp      start=0 step=1  start + step * index, rounded once\n";

const char *generator_help(void) { return help; }

/* The text cut into its keys; a value that is not given is empty. */
enum { KEY_N, KEY_DTYPE, KEY_SEED, KEY_FIRST, KEY_SECOND, KEY_COUNT };
struct spec {
    const char *text; /* all of it */
    uint32_t distribution;
    char values[KEY_COUNT][VALUE_BYTES];
    struct error *error;
};

static const char *key_name(const struct spec *spec, int key)
{
    static const char *const common[] = {"n", "dtype", "seed"};
    return key < KEY_FIRST ? common[key] : distributions[spec->distribution].parameters[key - KEY_FIRST].name;
}

static bool refuse(const struct spec *spec, const char *key, const char *expected, const char *found)
{
    const char *quote = found[0] != '\0' ? "'" : "";
    error_set(spec->error, ALLFOLD_BAD_ARGUMENT, "%s: expected %s, found %s%.60s%s", key, expected, quote,
              found[0] != '\0' ? found : "nothing", quote);
    return false;
}

static bool find_distribution(struct spec *spec, size_t length)
{
    char known[120] = "one of", found[VALUE_BYTES];
    for (uint32_t i = 0; i < DISTRIBUTION_COUNT; i++) {
        const char *name = distributions[i].name;
        if (strlen(name) == length && memcmp(name, spec->text, length) == 0) {
            spec->distribution = i;
            return true;
        }
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s %s", i > 0 ? "," : "", name);
    }
    snprintf(found, sizeof found, "%.*s", (int)u64_min(length, sizeof found - 1), spec->text);
    return refuse(spec, "distribution", known, found);
}

/* Takes "key=value" of that length. */
static bool take_pair(struct spec *spec, const char *pair, size_t length)
{
    char known[120] = "one of", found[VALUE_BYTES];
    snprintf(found, sizeof found, "%.*s", (int)u64_min(length, sizeof found - 1), pair);
    const char *equals = memchr(pair, '=', length);
    const size_t key_length = equals != NULL ? (size_t)(equals - pair) : 0;
    for (int key = 0; key < KEY_COUNT; key++) {
        const char *name = key_name(spec, key);
        if (name == NULL)
            continue;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s %s", key > 0 ? "," : "", name);
        if (strlen(name) != key_length || memcmp(name, pair, key_length) != 0)
            continue;
        const size_t value_length = length - key_length - 1;
        if (spec->values[key][0] != '\0')
            return refuse(spec, name, "it once", found);
        if (value_length == 0 || value_length >= VALUE_BYTES)
            return refuse(spec, name, "a value of 1 to 63 characters", found);
        memcpy(spec->values[key], equals + 1, value_length);
        return true;
    }
    strncat(known, ", with =VALUE", sizeof known - strlen(known) - 1);
    return refuse(spec, "key", known, found);
}

static bool cut(struct spec *spec)
{
    const size_t name_length = strcspn(spec->text, "?");
    const char *at = spec->text + name_length;
    if (!find_distribution(spec, name_length))
        return false;
    while (*at != '\0') {
        const size_t length = strcspn(at + 1, "&");
        if (!take_pair(spec, at + 1, length))
            return false;
        at += 1 + length;
    }
    return true;
}

static bool find_type(const struct spec *spec, const struct array_hints *hints, allfold_type *type)
{
    const char *text = spec->values[KEY_DTYPE];
    *type = hints->type != ALLFOLD_TYPE_NONE ? hints->type : ALLFOLD_F32;
    if (text[0] == '\0')
        return true;
    allfold_type named;
    if (!type_by_name(text, &named))
        return refuse(spec, "dtype", "an element type such as f32, bf16 or int64", text);
    if (hints->type != ALLFOLD_TYPE_NONE && hints->type != named)
        return refuse(spec, "dtype", "the type that --dtype says, or one of the two alone", text);
    *type = named;
    return true;
}

/* An integer: its sign and magnitude. */
static bool parse_whole(const char *text, bool *negative, uint64_t *magnitude)
{
    const bool minus = *text == '-';
    if (!parse_count(minus ? text + 1 : text, magnitude))
        return false;
    *negative = minus && *magnitude != 0;
    return true;
}

/* A decimal number, inf or nan; also 2^20 and 64Mi. */
static bool parse_value(const char *text, double *value)
{
    bool negative;
    uint64_t magnitude;
    if (parse_real(text, value))
        return true;
    if (!parse_whole(text, &negative, &magnitude))
        return false;
    *value = negative ? -(double)magnitude : (double)magnitude;
    return true;
}

static bool whole_fits(allfold_type type, bool negative, uint64_t magnitude)
{
    return magnitude <= (negative ? 0 - type_whole_limit(type, false) : type_whole_limit(type, true));
}

/* Lowest or highest exponent that a type has. Integers: -1 is that of 0. */
static int exponent_limit(allfold_type type, bool highest)
{
    const struct float_format format = float_format_of(type);
    if (type_kind(type) == 'f')
        return highest ? format.exponent_max : format.exponent_min - format.precision + 1;
    return highest ? (int)type_number_bits(type) - (type_kind(type) == 'i' ? 2 : 1) : -1;
}

/* One parameter of a generator: as a real number, and exact for integer types. */
struct number {
    double real;
    uint64_t whole;
};

static bool evaluate_exponent(const struct spec *spec, const char *name, const char *text, allfold_type type,
                              struct number *number)
{
    char expected[64];
    const int lowest = exponent_limit(type, false), highest = exponent_limit(type, true);
    if (parse_value(text, &number->real) && number->real >= lowest && number->real <= highest &&
        number->real == floor(number->real))
        return true;
    snprintf(expected, sizeof expected, "an exponent of %s, %d to %d", allfold_type_name(type), lowest, highest);
    return refuse(spec, name, expected, text);
}

static bool evaluate_whole(const struct spec *spec, const struct parameter *p, const char *text, allfold_type type,
                           struct number *number)
{
    bool negative;
    uint64_t magnitude;
    char expected[64];
    const bool step = p->kind == STEP;
    snprintf(expected, sizeof expected, "an integer that %s holds", step ? "a 64-bit type" : allfold_type_name(type));
    if (!parse_whole(text, &negative, &magnitude) ||
        !(step ? magnitude <= UINT64_C(1) << 63 || !negative : whole_fits(type, negative, magnitude)))
        return refuse(spec, p->name, expected, text);
    number->whole = negative ? 0 - magnitude : magnitude;
    number->real = negative ? -(double)magnitude : (double)magnitude;
    return true;
}

static bool evaluate(const struct spec *spec, int index, allfold_type type, struct number *number)
{
    const struct parameter *p = &distributions[spec->distribution].parameters[index];
    const bool is_float = type_kind(type) == 'f';
    const char *text = spec->values[KEY_FIRST + index];
    if (p->name == NULL)
        return true;
    if (text[0] == '\0')
        text = is_float ? p->real_default : p->whole_default;
    if (text == NULL) {
        number->real = exponent_limit(type, index == 1);
        number->whole = type_whole_limit(type, index == 1);
        return true;
    }
    if (p->kind == EXPONENT)
        return evaluate_exponent(spec, p->name, text, type, number);
    if (!is_float && (p->kind == VALUE || p->kind == STEP))
        return evaluate_whole(spec, p, text, type, number);
    if (!parse_value(text, &number->real))
        return refuse(spec, p->name, "a number", text);
    if (spec->distribution == DISTRIBUTION_CONSTANT && !isfinite(number->real))
        return true;
    char expected[64];
    const double largest = float_format_of(p->kind == VALUE ? type : ALLFOLD_F64).largest;
    snprintf(expected, sizeof expected, "a number from -%.6g to %.6g", largest, largest);
    return fabs(number->real) <= largest || refuse(spec, p->name, expected, text);
}

/* Does the ramp stay within its type? */
static bool check_ramp(const struct spec *spec, const struct array_info *info)
{
    const struct generator *g = &info->generator;
    const char *n = spec->values[KEY_N];
    if (info->count <= 1)
        return true;
    if (type_kind(info->type) == 'f') {
        const double last = g->a + g->b * (double)(info->count - 1);
        if (info->count > RAMP_COUNT_MAX)
            return refuse(spec, "n", "at most 2^53 elements of a floating-point ramp", n);
        return fabs(last) <= float_format_of(info->type).largest ||
               refuse(spec, "n", "a ramp whose last element its type holds", n);
    }
    const bool falls = g->b < 0;
    const uint64_t stride = falls ? 0 - g->whole_b : g->whole_b;
    const uint64_t room = falls ? g->whole_a - type_whole_limit(info->type, false) : type_whole_limit(info->type, true) - g->whole_a;
    return stride == 0 || info->count - 1 <= room / stride ||
           refuse(spec, "n", "a ramp whose last element its type holds", n);
}

/* What the parameters say together. */
static bool check_parameters(const struct spec *spec, const struct array_info *info)
{
    const struct generator *g = &info->generator;
    const char *second = spec->values[KEY_SECOND][0] != '\0' ? spec->values[KEY_SECOND] : "its default";
    const bool falls = type_kind(info->type) == 'i'   ? (int64_t)g->whole_b < (int64_t)g->whole_a
                       : type_kind(info->type) != 'f' ? g->whole_b < g->whole_a
                                                      : g->b < g->a;
    switch ((enum distribution)g->distribution) {
    case DISTRIBUTION_UNIFORM: return !falls || refuse(spec, "hi", "no less than lo", second);
    case DISTRIBUTION_NORMAL: return g->b >= 0 || refuse(spec, "sd", "no negative number", second);
    case DISTRIBUTION_WIDE: return g->b >= g->a || refuse(spec, "emax", "no less than emin", second);
    case DISTRIBUTION_LOGITS: return (g->b >= 0 && g->b <= 1) || refuse(spec, "outliers", "0 to 1", second);
    case DISTRIBUTION_RAMP: return check_ramp(spec, info);
    case DISTRIBUTION_CONSTANT:
    case DISTRIBUTION_COUNT: break;
    }
    return true;
}

static bool parse_counts(const struct spec *spec, struct array_info *info)
{
    const char *n = spec->values[KEY_N], *seed = spec->values[KEY_SEED];
    if (!parse_count(n, &info->count))
        return refuse(spec, "n", "a count such as n=1000, n=1e9, n=2^30 or n=64Mi", n);
    if (info->count > (uint64_t)INT64_MAX / allfold_type_bytes(info->type))
        return refuse(spec, "n", "an array of less than 2^63 bytes", n);
    if (seed[0] != '\0' && !parse_count(seed, &info->generator.seed))
        return refuse(spec, "seed", "an integer from 0 to 2^64 - 1", seed);
    info->dimensions = 1;
    info->shape[0] = info->count;
    return true;
}

allfold_status generator_parse(const char *text, const struct array_hints *hints, struct array_info *info,
                               struct error *error)
{
    struct spec spec = {.text = text, .error = error};
    struct number a = {0}, b = {0};
    if (hints->has_offset || hints->has_count)
        return error_set(error, ALLFOLD_BAD_ARGUMENT,
                         "expected no --offset or --count (they are for files; say n=COUNT here), found --%s",
                         hints->has_offset ? "offset" : "count");
    if (!cut(&spec) || !find_type(&spec, hints, &info->type) || !parse_counts(&spec, info) ||
        !evaluate(&spec, 0, info->type, &a) || !evaluate(&spec, 1, info->type, &b))
        return error->status;
    info->generator.distribution = spec.distribution;
    info->generator.a = a.real;
    info->generator.b = b.real;
    info->generator.whole_a = a.whole;
    info->generator.whole_b = b.whole;
    return check_parameters(&spec, info) ? ALLFOLD_OK : error->status;
}
