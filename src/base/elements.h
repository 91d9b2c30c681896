/* Element types as C types, for host and device: element_f16 ... element_uint64 as they lie in memory, value_f32 ...
   value_u64 in which arithmetic starts, load_TYPE() from element to value (always exact), and round_TYPE() from f64
   to a floating-point element (rounded once, to nearest, ties to even). */
#pragma once

#include "base/base.h"

#include <string.h>

#ifdef __CUDACC__
#define HOST_DEVICE static __host__ __device__ __forceinline__
#else
#define HOST_DEVICE static inline __attribute__((always_inline, unused))
#endif

typedef struct {
    uint16_t bits;
} element_f16;
typedef struct {
    uint16_t bits;
} element_bf16;
typedef float element_f32;
typedef double element_f64;
typedef int8_t element_int8;
typedef int16_t element_int16;
typedef int32_t element_int32;
typedef int64_t element_int64;
typedef uint8_t element_uint8;
typedef uint16_t element_uint16;
typedef uint32_t element_uint32;
typedef uint64_t element_uint64;
typedef struct {
    uint8_t byte;
} element_bool;

typedef float value_f32;
typedef double value_f64;
typedef int32_t value_i32;
typedef int64_t value_i64;
typedef uint32_t value_u32;
typedef uint64_t value_u64;

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* The bits of a float and back. */
HOST_DEVICE uint32_t f32_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
HOST_DEVICE float f32_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
HOST_DEVICE uint64_t f64_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
HOST_DEVICE double f64_from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Without branches, so that loops vectorise. The half's exponent and fraction, moved into place, are a float that is too small by
   a factor of 2^112, subnormals included. Infinity and NaN then get the full exponent. */
HOST_DEVICE float load_f16(element_f16 x)
{
#if defined(__CUDA_ARCH__) && defined(__NVCC__)
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits)); /* the same, except that a NaN's payload is lost */
    return y;
#else
    const uint32_t magnitude = x.bits & 0x7fffu, sign = (uint32_t)(x.bits & 0x8000u) << 16;
    const uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
    return f32_from_bits(f32_bits(f32_from_bits(magnitude << 13) * 0x1p112f) | special | sign);
#endif
}
HOST_DEVICE float load_bf16(element_bf16 x) { return f32_from_bits((uint32_t)x.bits << 16); }
HOST_DEVICE float load_f32(element_f32 x) { return x; }
HOST_DEVICE double load_f64(element_f64 x) { return x; }
HOST_DEVICE int32_t load_int8(element_int8 x) { return x; }
HOST_DEVICE int32_t load_int16(element_int16 x) { return x; }
HOST_DEVICE int32_t load_int32(element_int32 x) { return x; }
HOST_DEVICE int64_t load_int64(element_int64 x) { return x; }
HOST_DEVICE uint32_t load_uint8(element_uint8 x) { return x; }
HOST_DEVICE uint32_t load_uint16(element_uint16 x) { return x; }
HOST_DEVICE uint32_t load_uint32(element_uint32 x) { return x; }
HOST_DEVICE uint64_t load_uint64(element_uint64 x) { return x; }
HOST_DEVICE uint32_t load_bool(element_bool x) { return x.byte != 0; }

/* f64 to f32 rounded to odd: the last bit is set if anything was lost. So a second rounding, to 22 bits or fewer, gives the right
   rounding of the original number (Boldo and Melquiond, 2008). */
HOST_DEVICE float f64_to_f32_odd(double x)
{
    const float nearest = (float)x;
    const uint32_t bits = f32_bits(nearest);
    if ((double)nearest == x || x != x || (bits & 1u) != 0)
        return nearest;
    /* nearest is even and inexact: the odd neighbour lies on x's side of it */
    const bool away = x > 0 ? (double)nearest < x : (double)nearest > x;
    return f32_from_bits(away ? bits + 1u : bits - 1u);
}

/* f32 to floating-point elements, to nearest, ties to even. NaN stays a (quiet) NaN. */
HOST_DEVICE element_bf16 f32_to_bf16(float x)
{
    const uint32_t bits = f32_bits(x);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    element_bf16 y;
    y.bits = (uint16_t)(x != x ? (bits >> 16) | 0x40u : rounded);
    return y;
}
HOST_DEVICE element_f16 f32_to_f16(float x)
{
    element_f16 y;
    const uint32_t sign = f32_bits(x) & 0x80000000u;
#if defined(__CUDA_ARCH__) && defined(__NVCC__)
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    y.bits = x != x ? (uint16_t)(0x7e00u | (sign >> 16)) : y.bits;
#else
    const uint32_t magnitude = f32_bits(x) & 0x7fffffffu;
    /* below 2^-14 the half is subnormal: adding 0.5 makes the float adder round to multiples of 2^-24 */
    const uint32_t subnormal = f32_bits(f32_from_bits(magnitude) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u)) >> 13;
    const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
    const uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u; /* from 65520 on: infinity, or NaN */
    y.bits = (uint16_t)((magnitude >= 0x477ff000u ? large : finite) | (sign >> 16));
#endif
    return y;
}

HOST_DEVICE element_f32 f32_to_f32(float x) { return x; }
HOST_DEVICE element_f64 f32_to_f64(float x) { return x; }

HOST_DEVICE element_f16 round_f16(double x) { return f32_to_f16(f64_to_f32_odd(x)); }
HOST_DEVICE element_bf16 round_bf16(double x) { return f32_to_bf16(f64_to_f32_odd(x)); }
HOST_DEVICE element_f32 round_f32(double x) { return (float)x; }
HOST_DEVICE element_f64 round_f64(double x) { return x; }

/* The format of a floating-point type. */
#ifdef __cplusplus
constexpr
#endif
HOST_DEVICE struct float_format float_format_of(allfold_type type)
{
    switch (type) {
#define FORMAT(ID, name, ...)                               \
    case ALLFOLD_##ID: {                                    \
        const struct float_format format = {__VA_ARGS__};   \
        return format;                                      \
    }
        FLOAT_TYPES(FORMAT)
#undef FORMAT
    default: {
        const struct float_format none = {0, 0, 0, 0};
        return none;
    }
    }
}

/* Stores x, rounded to a floating-point type, as element `place` of an array of that type. false: the type is another. */
HOST_DEVICE bool real_store(void *elements, uint64_t place, int type, double x)
{
    switch (type) {
#define STORE(ID, name, ...)                                    \
    case ALLFOLD_##ID:                                          \
        ((element_##name *)elements)[place] = round_##name(x); \
        return true;
        FLOAT_TYPES(STORE)
#undef STORE
    default: return false;
    }
}

/* The other way, exactly. */
HOST_DEVICE bool real_load(const void *elements, uint64_t place, int type, double *x)
{
    switch (type) {
#define LOAD(ID, name, ...)                                          \
    case ALLFOLD_##ID:                                               \
        *x = load_##name(((const element_##name *)elements)[place]); \
        return true;
        FLOAT_TYPES(LOAD)
#undef LOAD
    default: return false;
    }
}
