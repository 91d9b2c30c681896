/* Files of partials of version 2, in which integers had other partials. */
#pragma once

#include "store/partial_file.h"

/* Makes total->partial, of `bytes` bytes, of fold, level and type, what later versions have in its place. False: version 2 has no such partial. */
bool partial_from_version_2(struct total *total, uint64_t bytes);
