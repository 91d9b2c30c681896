/* Arithmetic that folds share: sums with twice the precision of f64, and sums and products of integers that are exact.
   Sources: T. Ogita, S. Rump, S. Oishi, 'Accurate sum and dot product', SIAM J. Sci. Comput. 26 (2005), for two_sum,
   two_product and sums of pairs. The program is compiled without contraction; every fused operation is written out. */
#pragma once

#include "base/elements.h"

#include <fenv.h>
#include <math.h>

/* Independent accumulators in one thread: enough to fill the vector units of a CPU. A GPU has threads for that. The number is
   fixed, so that the order of additions, and with it the bits, do not depend on the instruction set. */
#ifdef __CUDA_ARCH__
#define FOLD_LANES 1
#else
#define FOLD_LANES 16
#endif

/* Runs a statement for i = 0 .. n-1 with lane = i % FOLD_LANES, in a shape that compilers turn into vectors. */
#define FOLD_FOR_LANES(n, i, lane, ...)                                                          \
    do {                                                                                         \
        size_t i##_base = 0;                                                                     \
        for (; (n) - i##_base >= FOLD_LANES; i##_base += FOLD_LANES) {                           \
            FOLD_SIMD                                                                            \
            for (uint32_t lane = 0; lane < FOLD_LANES; lane++) {                                 \
                const size_t i = i##_base + lane;                                                \
                __VA_ARGS__;                                                                     \
            }                                                                                    \
        }                                                                                        \
        for (uint32_t lane = 0; lane < FOLD_LANES && i##_base + lane < (n); lane++) {            \
            const size_t i = i##_base + lane;                                                    \
            __VA_ARGS__;                                                                         \
        }                                                                                        \
    } while (0)
#ifdef __CUDACC__
#define FOLD_SIMD
#define FOLD_PREFETCH(address) (void)0
#define FOLD_PREFETCH_FAR(address) (void)0
#else
#define FOLD_SIMD _Pragma("omp simd")
#define FOLD_PREFETCH(address) __builtin_prefetch(address)
#define FOLD_PREFETCH_FAR(address) __builtin_prefetch(address, 0, 2) /* not into the nearest cache */
#endif

/* The first unrolls a loop, so that a device's compiler keeps the arrays that it indexes in registers. The second keeps the code
   of a loop short. */
#if defined(__NVCC__) && defined(__CUDA_ARCH__)
#define FOLD_UNROLL _Pragma("unroll")
#define FOLD_ROLL _Pragma("unroll 1")
#else
#define FOLD_UNROLL
#define FOLD_ROLL
#endif

/* sum + x * x, where the product is exact: a device needs one operation. */
#ifdef __CUDA_ARCH__
#define FOLD_ADD_EXACT_SQUARE(sum, x) fma(x, x, sum)
#else
#define FOLD_ADD_EXACT_SQUARE(sum, x) ((sum) + (x) * (x))
#endif

/* Minus zero is the identity of floating-point addition: it leaves even -0.0 as it is. */
#define ZERO_IDENTITY (-0.0)

/* a + b and, in *error, its rounding error: their sum is exactly a + b (unless something overflowed). */
HOST_DEVICE double two_sum(double a, double b, double *error)
{
    const double sum = a + b, b_part = sum - a;
    *error = (a - (sum - b_part)) + (b - b_part);
    return sum;
}

#ifdef __CUDACC__
/* a + b, rounded down, or up. For devices. */
HOST_DEVICE double add_down(double a, double b)
{
#if defined(__NVCC__) && defined(__CUDA_ARCH__)
    return __dadd_rd(a, b);
#else
    double error;
    const double sum = two_sum(a, b, &error);
    return error < 0.0 ? nextafter(sum, -INFINITY) : sum;
#endif
}
HOST_DEVICE double add_up(double a, double b)
{
#if defined(__NVCC__) && defined(__CUDA_ARCH__)
    return __dadd_ru(a, b);
#else
    double error;
    const double sum = two_sum(a, b, &error);
    return error > 0.0 ? nextafter(sum, INFINITY) : sum;
#endif
}
/* x * y + z in the same way. */
HOST_DEVICE double fma_down(double x, double y, double z)
{
#if defined(__NVCC__) && defined(__CUDA_ARCH__)
    return __fma_rd(x, y, z);
#else
    fesetround(FE_DOWNWARD);
    const volatile double sum = fma(x, y, z);
    fesetround(FE_TONEAREST);
    return sum;
#endif
}
HOST_DEVICE double fma_up(double x, double y, double z)
{
#if defined(__NVCC__) && defined(__CUDA_ARCH__)
    return __fma_ru(x, y, z);
#else
    fesetround(FE_UPWARD);
    const volatile double sum = fma(x, y, z);
    fesetround(FE_TONEAREST);
    return sum;
#endif
}
#endif

/* A sum kept as two numbers, high + low; low gathers the rounding errors of high. An infinite or NaN high is the
   sum's value, whatever low is. */
typedef struct {
    double high, low;
} pair;

HOST_DEVICE pair pair_identity(void)
{
    pair sum;
    sum.high = ZERO_IDENTITY;
    sum.low = 0.0;
    return sum;
}
HOST_DEVICE void pair_add(pair *sum, double x)
{
    double error;
    sum->high = two_sum(sum->high, x, &error);
    sum->low += error;
}
HOST_DEVICE void pair_combine(pair *a, const pair *b)
{
    double error;
    a->high = two_sum(a->high, b->high, &error);
    a->low += error + b->low;
}
/* Adds x * y, both finite or not, without rounding the product first. */
HOST_DEVICE void pair_add_product(pair *sum, double x, double y)
{
    const double product = x * y;
    pair_add(sum, product);
    sum->low += fma(x, y, -product);
}
/* The sum of lanes without a carry between them, as vectors. */
HOST_DEVICE uint128 lanes_total_u64(const uint64_t sum[FOLD_LANES])
{
#if FOLD_LANES == 1
    return sum[0];
#else
    uint64_t low = 0, high = 0;
    for (int lane = 0; lane < FOLD_LANES; lane++) {
        low += (uint32_t)sum[lane];
        high += sum[lane] >> 32;
    }
    return ((uint128)high << 32) + low;
#endif
}
/* The sum of lanes, half to half: one after the other, each would wait for the one before. */
HOST_DEVICE double lanes_total(double sum[FOLD_LANES])
{
    for (int half = FOLD_LANES / 2; half > 0; half /= 2)
        FOLD_SIMD
        for (int lane = 0; lane < half; lane++)
            sum[lane] += sum[lane + half];
    return sum[0];
}
/* Adds the sums of lanes. Each is rounded as often as it has terms: four roundings more are few. */
HOST_DEVICE void pair_add_lanes(pair *sum, double lanes[FOLD_LANES]) { pair_add(sum, lanes_total(lanes)); }
HOST_DEVICE bool is_finite(double x) { return x - x == 0.0; }
HOST_DEVICE double pair_value(const pair *sum)
{
    return !is_finite(sum->high) || sum->low == 0.0 ? sum->high : sum->high + sum->low;
}

/* An exact sum of products of integers, high * 2^64 + low: each gathers halves of products and has room for 2^63 of them. */
typedef struct {
    int128 high;
    uint128 low;
} wide;

/* The larger of x and best; best is not NaN on the host. If x is NaN, the host gives best, and the device gives NaN: its f32
   instruction passes NaN on at no cost. */
HOST_DEVICE float larger_f32(float x, float best)
{
#if defined(__NVCC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    float larger;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(x), "f"(best));
    return larger;
#elif defined(__CUDA_ARCH__)
    return x != x || best != best ? x + best : x > best ? x : best;
#else
    return x > best ? x : best;
#endif
}
HOST_DEVICE double larger_f64(double x, double best) { return x > best ? x : best; }

/* The smaller of the two. If one of them is NaN, host and device need not agree. */
HOST_DEVICE float smaller_f32(float x, float best)
{
#ifdef __CUDA_ARCH__
    return fminf(x, best);
#else
    return x < best ? x : best;
#endif
}
HOST_DEVICE double smaller_f64(double x, double best) { return x < best ? x : best; }

#ifdef __CUDACC__
/* 2^x to about 2^-22, relatively; 0 if that would be subnormal. For devices. */
HOST_DEVICE float exp2_short(float x)
{
#if defined(__NVCC__) && defined(__CUDA_ARCH__)
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}
#endif

/* 2^n as f64, -1022 <= n <= 1023; 0 if n is -1023. */
HOST_DEVICE double power_of_two(int n) { return f64_from_bits((uint64_t)(n + 1023) << 52); }
HOST_DEVICE pair pair_scaled(pair x, int n)
{
    x.high *= power_of_two(n);
    x.low *= power_of_two(n);
    return x;
}

#ifdef __CUDACC__
/* sum + a b, which nvcc does not always make one instruction of. */
HOST_DEVICE uint64_t add_product(uint64_t sum, uint32_t a, uint32_t b)
{
#if defined(__NVCC__) && defined(__CUDA_ARCH__)
    uint64_t added;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(added) : "r"(a), "r"(b), "l"(sum));
    return added;
#else
    return sum + (uint64_t)a * b;
#endif
}
#endif

/* x to the nearest integer, |x| < 2^31; ties to even. */
HOST_DEVICE int32_t nearest_i32(float x)
{
#ifdef __NVCC__
#ifdef __CUDA_ARCH__
    return __float2int_rn(x);
#else
    return (int32_t)rintf(x);
#endif
#else
    return (int32_t)rintf(x);
#endif
}
