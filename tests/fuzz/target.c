/* What libFuzzer calls: `make fuzz` builds it once for each format, whose name is FUZZ_FORMAT. */
#include "tests/fuzz/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    fuzz_parse(&FUZZ_FORMAT, bytes, count);
    return 0;
}
