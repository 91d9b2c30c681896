/* Makes the elements of ladder and benchmark: functions of the index and the count, the same on host and GPU, so that the
   GPU makes the input and an oracle on the host needs no copy of it. Each is an integer, an unpredictable one, times a power
   of two, exactly: sums of them are exact in integers.

   One element, in another place for each count, is half as large again as any other: the first, the last, or one
   between. A kernel that drops the tail of the array loses it. */
#pragma once

#include "base/elements.h"

HOST_DEVICE uint64_t numbers_mix(uint64_t z) /* the finalizer of SplitMix64 */
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Where the large element of n (> 0) lies. */
HOST_DEVICE uint64_t numbers_peak(uint64_t n) { return n % 3 == 0 ? n - 1 : n % 3 == 1 ? 0 : numbers_mix(n) % n; }

HOST_DEVICE int64_t numbers_at(uint64_t i, uint64_t peak, int bits)
{
    const int64_t half = (int64_t)1 << (bits - 1);
    const int64_t drawn = (int64_t)(numbers_mix((i + 1) * 0x9e3779b97f4a7c15u) >> (64 - bits)) - half;
    return i == peak ? half + half / 2 : drawn;
}

/* What an element is of its number: a power of two. */
HOST_DEVICE double numbers_unit(int bits, bool floating)
{
    return floating ? 1.0 / (double)((int64_t)1 << (bits - 1)) : 1.0;
}
