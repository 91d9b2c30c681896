/* Parses numbers as people write them: the only parser of options, of generators and of the benchmark's lists. Decimal only, no spaces,
   no hexadecimal, no plus sign in front. A text is taken as a whole or refused; if it is refused, nothing is written. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An integer below 2^64, never rounded: "1000", "1e9", "1.5e6", "2^30"; with a unit "64k" (k or K, M, G, T, P: thousands) or "64Mi"
   (Ki to Ei: powers of 1024). */
bool parse_count(const char *text, uint64_t *count);

/* A size in bytes: a count, with or without a final B: "1K", "1MiB", "512B". */
bool parse_size(const char *text, uint64_t *bytes);

/* The next item of a list, which has a separator between two. *text goes on behind it, and is NULL behind the last. False: the item is empty, or
   too long: then it is cut. */
bool parse_item(const char **text, char separator, char *item, size_t bytes);

/* A decimal number, "-1.5e-3", or inf, -inf, nan. Numbers beyond f64 are refused. */
bool parse_real(const char *text, double *value);
