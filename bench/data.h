/* The benchmark's elements: functions of the index, unpredictable, the same on host and GPU, each an integer times a power
   of two, so that the exact sum and the largest one are found in integers. Floating-point ones fill [-8, 8), int32
   [-2^30, 2^30). */
#pragma once

#include "measure/numbers.h"

/* X(ID, name, bits): the integers lie in [-2^(bits - 1), 2^(bits - 1)), and the type holds each of them exactly. */
#define BENCH_TYPES(X) X(F32, f32, 24) X(F64, f64, 53) X(BF16, bf16, 8) X(F16, f16, 11) X(INT32, int32, 31)

HOST_DEVICE int64_t bench_number(uint64_t i, int bits) { return numbers_at(i, UINT64_MAX, bits); }

/* What an element is of its integer. */
HOST_DEVICE double bench_unit(int bits, bool floating) { return numbers_unit(bits, floating) * (floating ? 8.0 : 1.0); }

/* The integer, times its unit, as an element. */
HOST_DEVICE element_f32 bench_make_f32(double x) { return round_f32(x); }
HOST_DEVICE element_f64 bench_make_f64(double x) { return round_f64(x); }
HOST_DEVICE element_f16 bench_make_f16(double x) { return round_f16(x); }
HOST_DEVICE element_bf16 bench_make_bf16(double x) { return round_bf16(x); }
HOST_DEVICE element_int32 bench_make_int32(double x) { return (element_int32)x; }

/* What is known of elements: the sum of their integers as high 2^32 + low, the largest integer, and the sum of exp(x),
   which no element of these is too large for (0 for int32). */
struct bench_known {
    int64_t high, max;
    uint64_t low; /* of fewer than 2^32 elements it does not overflow */
    double sumexp;
};
