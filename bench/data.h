/* Makes the benchmark's elements: functions of the index, unpredictable, the same on host and GPU, each an integer times a
   power of two, so that the exact sum and the largest one are found in integers. Floating-point ones fill [-range, range),
   where range is a power of two; int32 [-2^30, 2^30). */
#pragma once

#include "measure/numbers.h"

#include <math.h>

/* X(ID, name, bits): the integers lie in [-2^(bits - 1), 2^(bits - 1)), and the type holds each of them exactly. */
#define BENCH_TYPES(X) X(F32, f32, 24) X(F64, f64, 53) X(BF16, bf16, 8) X(F16, f16, 11) X(INT32, int32, 31)

HOST_DEVICE int64_t bench_number(uint64_t i, int bits) { return numbers_at(i, UINT64_MAX, bits); }

/* The integer, times its unit, as an element. */
HOST_DEVICE element_f32 bench_make_f32(double x) { return round_f32(x); }
HOST_DEVICE element_f64 bench_make_f64(double x) { return round_f64(x); }
HOST_DEVICE element_f16 bench_make_f16(double x) { return round_f16(x); }
HOST_DEVICE element_bf16 bench_make_bf16(double x) { return round_bf16(x); }
HOST_DEVICE element_int32 bench_make_int32(double x) { return (element_int32)x; }

/* The same by the type's number. */
HOST_DEVICE int bench_bits(allfold_type type)
{
#define ROW(ID, name, bits) : type == ALLFOLD_##ID ? bits
    return 0 ? 0 BENCH_TYPES(ROW) : 0;
#undef ROW
}

/* What an element is of its integer. */
HOST_DEVICE double bench_unit_of(allfold_type type, int range)
{
    return numbers_unit(bench_bits(type), type != ALLFOLD_INT32) * (type != ALLFOLD_INT32 ? range : 1);
}

/* A row of elements: the integers number first, first + stride, ..., each beside that of the other operand, whose numbers lie
   `apart` behind. Without another operand apart is 0, and products are squares. */
struct bench_row_of {
    allfold_type type;
    int range;
    uint64_t first, stride, count, apart;
};
/* Where the numbers of a second operand begin. */
#define BENCH_SECOND (UINT64_C(1) << 62)
/* Where a second operand lies: behind the first, of `count` elements, aligned as that is. */
static inline uint64_t bench_second_place(uint64_t count) { return (count + 255) / 256 * 256; }

/* What is known of a row: the sum of its integers as high 2^32 + low, the largest integer, the sum of exp(x), which no element of
   these is too large for (0 for int32), and the sum of the products of integers, of which word i counts 2^(32 i). The low words of
   fewer than 2^32 elements do not overflow. */
struct bench_known {
    int64_t high, max, products_high;
    uint64_t low, products[3];
    double sumexp;
};

HOST_DEVICE struct bench_known bench_known_of_none(void)
{
    const struct bench_known none = {0, INT64_MIN, 0, 0, {0, 0, 0}, 0.0};
    return none;
}

/* Takes element i of the row into it. */
HOST_DEVICE void bench_know(struct bench_known *known, const struct bench_row_of *row, uint64_t i)
{
    const int bits = bench_bits(row->type);
    const int64_t number = bench_number(row->first + i * row->stride, bits);
    const int64_t other = row->apart == 0 ? number : bench_number(row->first + i * row->stride + row->apart, bits);
    const __int128 product = (__int128)number * other;
    known->high += number >> 32;
    known->low += (uint32_t)number;
    known->max = number > known->max ? number : known->max;
    for (int i = 0; i < 3; i++)
        known->products[i] += (uint32_t)(product >> 32 * i);
    known->products_high += (int64_t)(product >> 96);
    if (row->type != ALLFOLD_INT32)
        known->sumexp += exp((double)number * bench_unit_of(row->type, row->range));
}

/* What is known of two rows together. */
HOST_DEVICE void bench_known_add(struct bench_known *known, const struct bench_known *more)
{
    known->high += more->high;
    known->low += more->low;
    known->max = more->max > known->max ? more->max : known->max;
    for (int i = 0; i < 3; i++)
        known->products[i] += more->products[i];
    known->products_high += more->products_high;
    known->sumexp += more->sumexp;
}
