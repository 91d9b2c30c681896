/* What generate.c (the text of a generator) and draw.c (makes it ready to draw from) share. */
#pragma once

#include "array/array.h"

/* A floating-point type: bits of its significand, exponents of its smallest normal binade and of its largest. */
struct float_format {
    int precision, exponent_min, exponent_max;
    double largest;
};

/* The format of a floating-point type. */
const struct float_format *float_format_of(allfold_type type);
