/* What a generated array's elements depend on beside their indices and type. array/generate.c parses it, draw.h makes elements of it. */
#pragma once

#include <stdint.h>

/* Each has a row in array/generate.c, with its parameters. */
enum distribution {
    DISTRIBUTION_UNIFORM,
    DISTRIBUTION_NORMAL,
    DISTRIBUTION_WIDE,
    DISTRIBUTION_LOGITS,
    DISTRIBUTION_CONSTANT,
    DISTRIBUTION_RAMP,
    DISTRIBUTION_COUNT
};

struct generator {
    uint32_t distribution; /* enum distribution */
    uint64_t seed;
    double a, b;               /* the distribution's own parameters */
    uint64_t whole_a, whole_b; /* the same for integer types, exact, in two's complement */
};
