/* Every monoid for every value type. Included by the table, the CPU loops and the CUDA kernels. */
#pragma once

#include "base/elements.h"
#include "fold/arithmetic.h"
#include "fold/exact.h"
#include "fold/compare_ends.h"
#include "fold/exact_exponential.h"
#include "fold/exponential.h"
#include "fold/log_probs.h"
#include "fold/monoids.h"
#include "fold/weighted_sums.h"

#include <math.h>

#define FN_JOIN(a, b) a##_##b
#define FN_EXPAND(a, b) FN_JOIN(a, b)
#define FN(a) FN_EXPAND(a, VALUE)
#define V FN(value)

/* Limits and counters of the value types: the worst answers of min and max, and an unsigned integer of the same width. */
#define limit_largest_f32 INFINITY
#define limit_smallest_f32 (-INFINITY)
#define limit_largest_f64 ((double)INFINITY)
#define limit_smallest_f64 (-(double)INFINITY)
#define limit_largest_i32 INT32_MAX
#define limit_smallest_i32 INT32_MIN
#define limit_largest_i64 INT64_MAX
#define limit_smallest_i64 INT64_MIN
#define limit_largest_u32 UINT32_MAX
#define limit_smallest_u32 0u
#define limit_largest_u64 UINT64_MAX
#define limit_smallest_u64 ((uint64_t)0)
#define VALUE_LARGEST FN(limit_largest)
#define VALUE_SMALLEST FN(limit_smallest)
typedef uint32_t counter_f32, counter_i32, counter_u32;
typedef uint64_t counter_f64, counter_i64, counter_u64;

/* What integers and floating point answer differently. */
HOST_DEVICE bool is_nan_f32(float x) { return x != x; }
HOST_DEVICE bool is_nan_f64(double x) { return x != x; }
#define DEFINE_INTEGER(value, type, counter, signed_expression)                                           \
    HOST_DEVICE bool is_nan_##value(type x) { return (void)x, false; }                                    \
    HOST_DEVICE bool is_negative_##value(type x) { return (void)x, signed_expression; }                   \
    HOST_DEVICE counter magnitude_##value(type x) { return is_negative_##value(x) ? 0 - (counter)x : (counter)x; }
DEFINE_INTEGER(i32, int32_t, uint32_t, x < 0)
DEFINE_INTEGER(i64, int64_t, uint64_t, x < 0)
DEFINE_INTEGER(u32, uint32_t, uint32_t, false)
DEFINE_INTEGER(u64, uint64_t, uint64_t, false)
#undef DEFINE_INTEGER

/* Two arrays that a fold takes side by side, and two elements of theirs. */
#define DEFINE_ARRAYS(nothing, name)                                                           \
    typedef struct {                                                                           \
        const value_##name *x, *y;                                                             \
        const struct compare_rule *rule; /* of comparisons alone */                            \
    } arrays_##name;                                                                           \
    typedef struct {                                                                           \
        value_##name x, y;                                                                     \
    } elements_##name;                                                                         \
    HOST_DEVICE elements_##name arrays_at_##name(arrays_##name arrays, size_t i)               \
    {                                                                                          \
        elements_##name elements;                                                              \
        elements.x = arrays.x[i];                                                              \
        elements.y = arrays.y[i];                                                              \
        return elements;                                                                       \
    }                                                                                          \
    HOST_DEVICE arrays_##name arrays_from_##name(arrays_##name arrays, size_t i)               \
    {                                                                                          \
        arrays.x += i;                                                                         \
        arrays.y += i;                                                                         \
        return arrays;                                                                         \
    }
VALUES(DEFINE_ARRAYS, )
#undef DEFINE_ARRAYS

/* How many elements stats takes at a time: they fit the first-level cache of a CPU, or the registers of a GPU thread. */
#ifdef __CUDA_ARCH__
#define STATS_PART 16
#else
#define STATS_PART 512
#endif

#define VALUE f32
#define VALUE_FLOAT 1
#define VALUE_SIGNED 1
#define VALUE_BITS 32
#include "fold/monoids.h"
#undef VALUE
#undef VALUE_BITS
#define VALUE f64
#define VALUE_BITS 64
#include "fold/monoids.h"
#undef VALUE
#undef VALUE_FLOAT

#define VALUE i64
#define VALUE_FLOAT 0
#include "fold/monoids.h"
#undef VALUE
#undef VALUE_BITS
#define VALUE i32
#define VALUE_BITS 32
#include "fold/monoids.h"
#undef VALUE
#undef VALUE_SIGNED

#define VALUE u32
#define VALUE_SIGNED 0
#include "fold/monoids.h"
#undef VALUE
#undef VALUE_BITS
#define VALUE u64
#define VALUE_BITS 64
#include "fold/monoids.h"
#undef VALUE
#undef VALUE_BITS
#undef VALUE_FLOAT
#undef VALUE_SIGNED
#undef V
#undef FN
