/* Suggests known words: see suggest.h. */
#include "cli/suggest.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Levenshtein's distance, for names of a few letters. */
static size_t distance(const char *a, const char *b)
{
    size_t row[33];
    const size_t length = strlen(b);
    if (length >= sizeof row / sizeof *row)
        return SIZE_MAX;
    for (size_t j = 0; j <= length; j++)
        row[j] = j;
    for (size_t i = 0; a[i] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < length; j++) {
            const size_t replaced = diagonal + (a[i] != b[j]);
            const size_t kept = row[j] < row[j + 1] ? row[j] : row[j + 1];
            diagonal = row[j + 1];
            row[j + 1] = replaced < kept + 1 ? replaced : kept + 1;
        }
    }
    return row[length];
}

struct suggestion suggest(const char *found, const char *const *names, size_t count, const char *prefix)
{
    struct suggestion suggestion = {""};
    size_t best = (strlen(found) + 2) / 3 + 1; /* a name that is farther away is another word */
    for (size_t i = 0; i < count; i++) {
        const size_t d = distance(found, names[i]);
        if (d < best) {
            best = d;
            snprintf(suggestion.text, sizeof suggestion.text, " (did you mean %s%s?)", prefix, names[i]);
        }
    }
    return suggestion;
}
