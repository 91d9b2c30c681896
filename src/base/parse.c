/* Parses numbers as people write them: see parse.h. Counts are integers throughout, so they are never rounded. */
#include "base/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
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

/* Digits as an integer, at least one. If a point is allowed, *decimals counts the digits after it. */
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

/* An exponent, up to 64: a larger one makes no sense. */
static bool take_exponent(const char **at, unsigned *exponent)
{
    uint64_t value;
    if (!take_digits(at, &value, NULL) || value > 64)
        return false;
    *exponent = (unsigned)value;
    return true;
}

/* A unit, if there is one: "k" is 1000, "Ki" 1024. */
static bool take_unit(const char **at, uint64_t *value)
{
    static const char letters[] = "KMGTPE";
    const char *const letter = **at == '\0' ? NULL : strchr(letters, **at == 'k' ? 'K' : **at);
    const bool binary = letter != NULL && (*at)[1] == 'i';
    if (letter == NULL || (*letter == 'E' && !binary)) /* 1E is the beginning of 1E9 */
        return true;
    *at += binary ? 2 : 1;
    return scale(value, binary ? 1024 : 1000, (unsigned)(letter - letters) + 1);
}

bool parse_count(const char *text, uint64_t *count)
{
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
    } else if (!take_unit(&at, &value))
        return false;
    for (; decimals > 0; decimals--, value /= 10)
        if (value % 10 != 0)
            return false;
    if (*at != '\0')
        return false;
    *count = value;
    return true;
}

bool parse_size(const char *text, uint64_t *bytes)
{
    char count[64];
    size_t length = strlen(text);
    if (length >= sizeof count)
        return false;
    if (length > 1 && text[length - 1] == 'B' && text[length - 2] != '.')
        length--;
    memcpy(count, text, length);
    count[length] = '\0';
    return parse_count(count, bytes);
}

bool parse_item(const char **text, char separator, char *item, size_t bytes)
{
    const size_t length = strcspn(*text, (const char[]){separator, '\0'}), kept = length < bytes ? length : bytes - 1;
    memcpy(item, *text, kept);
    item[kept] = '\0';
    *text = (*text)[length] != '\0' ? *text + length + 1 : NULL;
    return length > 0 && kept == length;
}

bool parse_real(const char *text, double *value)
{
    const char *const digits = text + (*text == '-');
    char *end;
    if (strcmp(digits, "inf") != 0 && strcmp(text, "nan") != 0 && (*text == '+' || text[strspn(text, "0123456789.eE+-")] != '\0'))
        return false;
    errno = 0;
    const double parsed = strtod(text, &end);
    if (end == text || *end != '\0' || (errno == ERANGE && isinf(parsed)))
        return false;
    *value = parsed;
    return true;
}
