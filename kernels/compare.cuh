/* What a thread does with pairs of f32 values that are compared. Pairs mostly pass in a few operations each: the sums go to three windows,
   opened so that nothing is rounded, and a tile's largest differences are only compared with limits. A tile for which that does not do, or of
   which a pair may be larger than all before, is taken by compare_slow, with all that is found kept in memory. Included by exact.cuh.

   Windows. base stands for j. Differences d are below 2^(j-8) and multiples of 2^(j-52), or the tile is slow. So d^2 is a multiple of 2^(2j-104):
   `high` takes its nearest multiple of 2^(2j-60), `low` the rest, which has 43 bits. Biases are 1.5 times 2^j, 2^(2j-8) and 2^(2j-52). A window
   that is half full before a tile could not leave its binade in it; it is emptied then. */
#pragma once

#include "fold/folds.h"
#include "kernels/ptx.cuh"

/* What is not needed for each tile, in memory. */
struct compare_aside {
    const struct compare_rule *rule;
    struct compare_ends ends;
    struct exact_sink sinks[2];
};

/* Of a block: the largest keys of all its threads, and what is allowed, rounded down. */
struct compare_limits {
    uint32_t most, ratio, units; /* upper half of a double; bits of an f32; number */
    float atol, rtol;
    allfold_type ulp;
};
static __device__ __forceinline__ struct compare_limits *block_limits()
{
    __shared__ struct compare_limits limits;
    return &limits;
}

/* What stays in registers. */
struct compare_quick {
    double sum, high, low;
    uint32_t base;   /* (j + 1023) << 20: the upper half of 2^j; 0: windows are closed */
    uint32_t misses; /* slow tiles in a row that had bits below the windows */
    uint32_t different, outside;
    uint32_t most;  /* the upper half of this thread's largest difference */
    uint32_t units; /* 1 more than its largest distance in units */
    float ratio_from; /* infinity if it has an infinite ratio, or else 0 */
};

enum { COMPARE_ROOM = 8, COMPARE_SLACK = 2, COMPARE_LEAST = 1023 - 48 };

static __device__ __forceinline__ uint32_t high_word(double x) { return (uint32_t)(f64_bits(x) >> 32); }
/* The upper halves of the biases. */
static __device__ __forceinline__ uint32_t sum_bias(uint32_t base) { return base + 0x80000; }
static __device__ __forceinline__ uint32_t high_bias(uint32_t base) { return 2 * base - (1031u << 20) + 0x80000; }
static __device__ __forceinline__ uint32_t low_bias(uint32_t base) { return 2 * base - (1075u << 20) + 0x80000; }
static __device__ __forceinline__ double bias_of(uint32_t high) { return f64_from_bits((uint64_t)high << 32); }

static __device__ __forceinline__ bool windows_are_full(double sum, double high, double low, uint32_t base)
{
    const uint32_t all = (high_word(sum) - sum_bias(base) + 0x40000) | (high_word(high) - high_bias(base) + 0x40000)
                         | (high_word(low) - low_bias(base) + 0x40000);
    return all >> 19 != 0;
}

/* The windows, as those of exact.h. */
static __device__ __forceinline__ void windows_of(const struct compare_quick *q, struct exact_accumulator sums[2])
{
    sums[0].sum[0][0] = q->sum;
    sums[0].bias[0] = bias_of(q->base != 0 ? sum_bias(q->base) : 0);
    sums[1].sum[0][0] = q->high;
    sums[1].bias[0] = bias_of(q->base != 0 ? high_bias(q->base) : 0);
    sums[1].sum[1][0] = q->low;
    sums[1].bias[1] = bias_of(q->base != 0 ? low_bias(q->base) : 0);
    sums[0].not_minus_zero = sums[1].not_minus_zero = false;
}

static __device__ __forceinline__ void windows_open(struct compare_quick *q, uint32_t base)
{
    q->base = base;
    q->sum = bias_of(sum_bias(base));
    q->high = bias_of(high_bias(base));
    q->low = bias_of(low_bias(base));
}

static __device__ __forceinline__ void windows_flush(struct compare_quick *q, struct exact_sink sinks[2])
{
    struct exact_accumulator sums[2];
    if (q->base == 0)
        return;
    windows_of(q, sums);
    exact_accumulator_flush(&sums[0], 1, &sinks[0]);
    exact_accumulator_flush(&sums[1], 2, &sinks[1]);
    windows_open(q, q->base);
}

static __device__ __forceinline__ uint32_t steps_apart(int32_t a, int32_t b) { return a > b ? (uint32_t)a - (uint32_t)b : (uint32_t)b - (uint32_t)a; }

/* The largest distance of a tile in units of the rule's type, or 1 more if values of it are rounded first. */
static __device__ __forceinline__ uint32_t largest_steps(allfold_type ulp, const arrays_f32 &x, uint32_t n)
{
    uint32_t signs = 0, bits = 0, steps = 0;
    if (ulp == ALLFOLD_F16) {
        FOLD_UNROLL
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t apart = steps_apart(compare_step_short(f32_to_f16(x.x[i]).bits), compare_step_short(f32_to_f16(x.y[i]).bits));
            steps = apart > steps ? apart : steps;
        }
        return steps;
    }
    FOLD_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t a = f32_bits(x.x[i]), b = f32_bits(x.y[i]), apart = (a - b) >> 31 != 0 ? b - a : a - b;
        signs |= a ^ b;
        bits |= a | b;
        steps = apart > steps ? apart : steps;
    }
    if (signs >> 31 != 0) {
        steps = 0;
        FOLD_UNROLL
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t apart = steps_apart(compare_step_f32(x.x[i]), compare_step_f32(x.y[i]));
            steps = apart > steps ? apart : steps;
        }
    }
    return ulp == ALLFOLD_F32 ? steps : ulp == ALLFOLD_BF16 ? (steps >> 16) + ((bits & 0xffff) != 0 ? 1 : 0) : 0;
}

/* The pairs that are outside: of a tile whose differences are doubles. */
static __device__ __forceinline__ uint32_t count_outside(const struct compare_rule *rule, const arrays_f32 &x, uint32_t n)
{
    uint32_t outside = 0;
    FOLD_UNROLL
    for (uint32_t i = 0; i < n; i++)
        outside += x.x[i] != x.y[i] && compare_is_outside(rule, fabs((double)x.x[i] - (double)x.y[i]), fabs((double)x.y[i])) ? 1 : 0;
    return outside;
}

/* Rounded down, and a little less. */
static __device__ __forceinline__ float f32_below(double x)
{
    const double less = x * (1.0 - 0x1p-20);
    return less < 0x1p-100 ? 0.0f : less < 0x1p127 ? f32_from_bits(f32_bits((float)less) - 1) : 0x1p127f;
}

/* Takes a tile that is not equal. False, and nothing is done, if it is slow. */
static __device__ __forceinline__ bool compare_quick_take(struct compare_quick *q, const struct compare_aside *aside, const arrays_f32 &x, uint32_t n)
{
    const volatile struct compare_limits *const limits = block_limits();
    const uint32_t least = limits->most, units = limits->units;
    const float ratio = f32_from_bits(limits->ratio), rtol = limits->rtol;
    double down = q->sum, up = q->sum, high = q->high, low = q->low;
    float most = 0.0f, over = 0.0f, beyond = 0.0f;
    uint32_t fractions = 0, different = 0;
    FOLD_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        const float a = x.x[i], b = x.y[i], size = fabsf(b), difference = fabsf(a - b);
        const double d_down = add_down((double)a, -(double)b), d = add_up((double)a, -(double)b), before = high;
        down = add_down(down, d_down);
        up = add_up(up, d);
        high = fma(d, d, before);
        low += fma(d, d, before - high);
        most = fmaxf(most, fabsf(f32_from_bits(high_word(d)))); /* has the order of the doubles */
        fractions |= (uint32_t)f64_bits(d);
        over = fmaxf(over, fmaf(-ratio, size, difference));
        beyond = fmaxf(beyond, fmaf(-rtol, size, difference));
        different += a != b ? 1 : 0;
    }
    const uint32_t steps = largest_steps(limits->ulp, x, n), largest = f32_bits(most);
    const bool raises = (largest >= least && largest + (fractions != 0 ? 1 : 0) > q->most) || over > q->ratio_from
                        || (steps >= units && steps >= q->units);
    if (!(down == up) || (int32_t)largest >= (int32_t)(q->base - (COMPARE_ROOM << 20)) || raises || windows_are_full(up, high, low, q->base))
        return false;
    q->sum = up;
    q->high = high;
    q->low = low;
    q->different += different;
    q->outside += beyond > limits->atol ? count_outside(aside->rule, x, n) : 0;
    return true;
}

/* Adds a finite pair to the words: its difference, if that is an f32. */
static __device__ __forceinline__ void compare_singly(struct exact_sink sinks[2], elements_f32 e, double d, bool exact)
{
    const float single = (float)d;
    if (exact && (double)single == d) {
        exact_add_f32(&sinks[0], single, true);
        exact_add_product_f32(&sinks[1], single, single, true);
        return;
    }
    compare_add_f32(&sinks[0], e);
    compare_add_square_f32(&sinks[1], e);
}

/* Adds a pair of numbers that differ to the windows, if they take it, or else to the words: false then, if it has bits below the windows. */
static __device__ __forceinline__ bool compare_add_pair(struct compare_quick *q, struct exact_sink sinks[2], elements_f32 e)
{
    double error;
    const double d = two_sum((double)e.x, -(double)e.y, &error), sum = q->sum + d, before = q->high;
    const bool small = (int32_t)(high_word(d) & 0x7fffffffu) < (int32_t)(q->base - (COMPARE_ROOM << 20));
    if (!small || error != 0.0 || sum - q->sum != d) {
        compare_singly(sinks, e, d, error == 0.0);
        return !small;
    }
    q->sum = sum;
    q->high = fma(d, d, before);
    q->low += fma(d, d, before - q->high);
    return true;
}

/* Opens windows for a tile's differences and larger ones: the first time, if these are too large, or if too few have fitted. */
static __device__ __forceinline__ void compare_open(struct compare_quick *q, struct compare_aside *aside, const arrays_f32 &x, uint32_t n)
{
    double largest = 0.0;
    FOLD_ROLL
    for (uint32_t i = 0; i < n; i++) {
        const double d = fabs((double)x.x[i] - (double)x.y[i]);
        largest = d > largest && d < (double)INFINITY ? d : largest;
    }
    const uint32_t exponent = group_largest(high_word(largest) >> 20) + 1 + COMPARE_SLACK + COMPARE_ROOM;
    const uint32_t base = (exponent < COMPARE_LEAST ? (uint32_t)COMPARE_LEAST : exponent) << 20;
    const bool large = (int32_t)high_word(largest) >= (int32_t)(q->base - (COMPARE_ROOM << 20));
    if (largest == 0.0 || (!large && q->misses < 4))
        return;
    q->misses = 0;
    windows_flush(q, aside->sinks);
    windows_open(q, base);
}

/* What this thread's largest differences are: limits of its own, and of its block. */
static __device__ __forceinline__ void limits_raise(struct compare_quick *q, const struct compare_aside *aside)
{
    const struct compare_largest *const largest = aside->ends.largest;
    const uint64_t ratio = largest[COMPARE_REL].key, units = largest[COMPARE_ULP].key;
    q->most = (uint32_t)(largest[COMPARE_ABS].key >> 32);
    q->units = (uint32_t)units + 1;
    q->ratio_from = f64_from_bits(ratio) == (double)INFINITY ? INFINITY : 0.0f;
    atomicMax(&block_limits()->most, q->most);
    atomicMax(&block_limits()->ratio, f32_bits(f32_below(f64_from_bits(ratio))));
    atomicMax(&block_limits()->units, (uint32_t)units);
}

/* Takes a tile pair by pair. */
static __device__ __noinline__ struct compare_quick compare_slow(struct compare_quick q, struct compare_aside *aside, const float *x, const float *y,
                                                                 uint32_t n, uint64_t first)
{
    bool missed = false;
    compare_open(&q, aside, {x, y, NULL}, n);
    FOLD_ROLL
    for (uint32_t i = 0; i < n; i++) {
        const elements_f32 e = {x[i], y[i]};
        const double a = (double)e.x, b = (double)e.y;
        const struct compare_pair pair = {first + i, f64_bits(a), f64_bits(b)};
        if (e.x == e.y)
            continue;
        if (e.x != e.x || e.y != e.y) {
            compare_take_nan(&aside->ends, aside->rule, e.x != e.x, e.y != e.y);
            continue;
        }
        compare_take_pair(&aside->ends, aside->rule, fabs(a - b), fabs(b), compare_units_f32(aside->rule, e.x, e.y), &pair);
        if (is_finite(a) && is_finite(b)) {
            missed |= !compare_add_pair(&q, aside->sinks, e);
        } else {
            compare_add_f32(&aside->sinks[0], e);
            compare_add_square_f32(&aside->sinks[1], e);
        }
    }
    q.misses = missed ? q.misses + 1 : 0;
    if (q.base != 0 && windows_are_full(q.sum, q.high, q.low, q.base))
        windows_flush(&q, aside->sinks);
    limits_raise(&q, aside);
    return q;
}
