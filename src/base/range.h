/* Cuts ranges of the global index space into parts. */
#pragma once

#include <stdint.h>

struct range {
    uint64_t first;
    uint64_t count;
};

/* Part `part` of `parts` (> 0) of [0, count): contiguous, in order, sizes that differ by at most one, integers only. */
static inline struct range range_part(uint64_t count, uint64_t part, uint64_t parts)
{
    const uint64_t size = count / parts, longer = count % parts;
    const uint64_t first = part * size + (part < longer ? part : longer);
    return (struct range){first, size + (part < longer ? 1 : 0)};
}

static inline uint64_t u64_min(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline uint64_t u64_max(uint64_t a, uint64_t b) { return a > b ? a : b; }
