/* Packed integers: element x stands for scale * x + offset (NetCDF's scale_factor and add_offset). */
#pragma once

#include "fold/table.h"

/* *partial, of monoid sum over `count` integers, becomes sum_exact of f64 over the values for which they stand:
   scale * sum + offset * count, exactly. Scale and offset are of at most 2^900. */
void packed_sum_unpack(const struct packing *packing, uint64_t count, struct partial *partial);
