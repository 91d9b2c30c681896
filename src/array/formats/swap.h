/* Byte order. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* to[i] = from[i] with its bytes in the other order, for count elements of `bytes` (1, 2, 4 or 8) bytes. Both are aligned to their
   elements' size, and are the same memory or do not overlap. */
void swap_bytes(void *to, const void *from, uint64_t count, size_t bytes);
