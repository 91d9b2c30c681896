/* Partials of arrays, one behind the other: appended where ranks, files or several arrays are folded as one. */
#pragma once

#include "fold/table.h"

/* *a, of `count` elements, becomes *a followed by *b, whose indices count from its own first element. *b is destroyed. */
static inline void monoid_append(enum monoid monoid, allfold_type type, struct partial *a, uint64_t count, struct partial *b)
{
    monoid_shift(monoid, type, b, count);
    monoid_combine(monoid, type, a, b);
}
