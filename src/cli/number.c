/* Writes numbers as text: see number.h. */
#include "cli/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool not_finite(double number, struct number_text *text)
{
    if (isfinite(number))
        return false;
    /* printf may write a NaN's sign, which means nothing */
    snprintf(text->text, sizeof text->text, "%s", isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
    return true;
}

/* The next decimal away from zero, with the same number of digits: "1.29e+05" -> "1.30e+05". False if it has one digit more. */
static bool raise_last_digit(char *decimal)
{
    for (char *digit = strchr(decimal, 'e') - 1; digit >= decimal && *digit != '-'; digit--) {
        if (*digit == '.')
            continue;
        if (*digit != '9') {
            ++*digit;
            return true;
        }
        *digit = '0';
    }
    return false;
}

struct number_text number_shortest(double number)
{
    struct number_text t;
    int decimals = 0;
    if (not_finite(number, &t))
        return t;
    for (; decimals < 17; decimals++) {
        snprintf(t.text, sizeof t.text, "%.*e", decimals, number);
        if (strtod(t.text, NULL) == number)
            break;
        /* a power of two is not in the middle of its rounding interval: the nearest decimal may miss it, and the next one hit it */
        if (raise_last_digit(t.text) && strtod(t.text, NULL) == number)
            break;
    }
    const int exponent = atoi(strchr(t.text, 'e') + 1);
    if (exponent >= -4 && exponent < 16)
        snprintf(t.text, sizeof t.text, "%.*f", decimals > exponent ? decimals - exponent : 1, number);
    return t;
}

struct number_text number_value(allfold_value value)
{
    struct number_text t;
    switch (value.kind) {
    case ALLFOLD_VALUE_I64: snprintf(t.text, sizeof t.text, "%" PRId64, value.i64); return t;
    case ALLFOLD_VALUE_U64: snprintf(t.text, sizeof t.text, "%" PRIu64, value.u64); return t;
    case ALLFOLD_VALUE_F64: break;
    }
    return number_shortest(value.f64);
}

struct number_text number_hex(double number)
{
    struct number_text t;
    if (!not_finite(number, &t))
        snprintf(t.text, sizeof t.text, "%a", number);
    return t;
}

struct number_text number_bytes(double bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    struct number_text t;
    size_t unit = 0;
    for (; bytes >= 1000 && unit + 1 < sizeof units / sizeof *units; unit++)
        bytes /= 1000;
    snprintf(t.text, sizeof t.text, unit == 0 ? "%.0f %s" : "%.3g %s", bytes, units[unit]);
    return t;
}
