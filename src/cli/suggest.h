/* Suggests a known word for an unknown one. */
#pragma once

#include <stddef.h>

struct suggestion {
    char text[80];
};

/* " (did you mean X?)" for the name among `names` that is nearest to `found`, or nothing if none is near. */
struct suggestion suggest(const char *found, const char *const *names, size_t count, const char *prefix);
