/* Counts as people write them: 1000, 1e9, 1.5e6, 2^30, 64Mi. Integers throughout, so that none is ever rounded. */
#include "array/array.h"

#include <string.h>

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* value *= base^exponent; false on overflow. */
static bool scale(uint64_t *value, uint64_t base, unsigned exponent)
{
    for (unsigned i = 0; i < exponent; i++)
        if (__builtin_mul_overflow(*value, base, value))
            return false;
    return true;
}

/* Digits as an integer, at least one; with a point allowed, *decimals counts those behind it. */
static bool take_digits(const char **at, uint64_t *value, unsigned *decimals)
{
    bool point = false, any = false;
    *value = 0;
    for (; is_digit(**at) || (**at == '.' && decimals != NULL && !point); (*at)++) {
        if (**at == '.') {
            point = true;
            continue;
        }
        any = true;
        if (!scale(value, 10, 1) || __builtin_add_overflow(*value, (uint64_t)(**at - '0'), value))
            return false;
        if (point)
            (*decimals)++;
    }
    return any;
}

/* An exponent: digits up to 64, more cannot be meant. */
static bool take_exponent(const char **at, unsigned *exponent)
{
    uint64_t value;
    if (!take_digits(at, &value, NULL) || value > 64)
        return false;
    *exponent = (unsigned)value;
    return true;
}

bool array_parse_count(const char *text, uint64_t *count)
{
    static const char units[] = "KMGTPE";
    const char *at = text;
    uint64_t value;
    unsigned decimals = 0, exponent;
    if (!take_digits(&at, &value, &decimals))
        return false;
    if ((*at == 'e' || *at == 'E') && at[1] != 'i') {
        at += at[1] == '+' ? 2 : 1;
        if (!take_exponent(&at, &exponent))
            return false;
        const unsigned shared = exponent < decimals ? exponent : decimals;
        decimals -= shared;
        if (value != 0 && !scale(&value, 10, exponent - shared))
            return false;
    } else if (*at == '^') {
        const uint64_t base = value;
        at++;
        value = 1;
        if (decimals != 0 || !take_exponent(&at, &exponent) || !scale(&value, base, exponent))
            return false;
    } else if (*at != '\0' && strchr(units, *at) != NULL && at[1] == 'i') {
        if (!scale(&value, 1024, (unsigned)(strchr(units, *at) - units) + 1))
            return false;
        at += 2;
    }
    for (; decimals > 0; decimals--, value /= 10)
        if (value % 10 != 0)
            return false;
    if (*at != '\0')
        return false;
    *count = value;
    return true;
}
