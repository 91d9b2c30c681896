/* Turns big-endian elements into little-endian ones, faster than a core reads them. */
#include "array/formats/swap.h"

#include <string.h>

/* The loops, which the compiler turns into shuffles of vectors where the instruction set has them. */
#define LOOP(name, bits, attribute)                                                         \
    attribute static void name##bits(void *to, const void *from, uint64_t count)            \
    {                                                                                       \
        uint##bits##_t *const y = to;                                                       \
        const uint##bits##_t *const x = from;                                               \
        for (uint64_t i = 0; i < count; i++)                                                \
            y[i] = __builtin_bswap##bits(x[i]);                                             \
    }
#define LOOPS(name, attribute) LOOP(name, 16, attribute) LOOP(name, 32, attribute) LOOP(name, 64, attribute)

LOOPS(swap_base, )

typedef void loop(void *to, const void *from, uint64_t count);

#if ALLFOLD_HAVE_X86_ISA
LOOPS(swap_avx2, __attribute__((target("avx2"))))
static loop *choose(loop *base, loop *avx2) { return __builtin_cpu_supports("avx2") ? avx2 : base; }
#define CHOOSE(bits) choose(swap_base##bits, swap_avx2##bits)
#else
#define CHOOSE(bits) swap_base##bits
#endif

void swap_bytes(void *to, const void *from, uint64_t count, size_t bytes)
{
    switch (bytes) {
    case 2: CHOOSE(16)(to, from, count); break;
    case 4: CHOOSE(32)(to, from, count); break;
    case 8: CHOOSE(64)(to, from, count); break;
    default:
        if (to != from)
            memcpy(to, from, count);
    }
}
