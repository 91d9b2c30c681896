/* What the fuzzer and the test of its corpus share. */
#pragma once

#include "array/formats/formats.h"

/* Lists and describes these bytes as a file of the format. Ends the process if an array that is accepted would not lie in the file, or
   if a refusal has no message. */
void fuzz_parse(const struct format *format, const uint8_t *bytes, size_t count);
