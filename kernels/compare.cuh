/* What a thread does with pairs of f32 values that are compared. Pairs mostly pass in a few operations each: the sums go to three windows,
   opened so that nothing is rounded, and a tile's largest differences are only compared with limits, which all blocks share. What is seldom needed lies
   in local memory. Its use is slow, as it waits behind all copies that the multiprocessor has under way: compare_raise_tile, of a pair that may
   be larger than all before, and compare_slow, of a tile that does not fit the windows. Included by exact_compare.cuh.

   Windows. base stands for j. Differences d are below 2^(j-8) and multiples of 2^(j-52), or the tile is slow. So d^2 is a multiple of 2^(2j-104):
   `high` takes its nearest multiple of 2^(2j-60), `low` the rest, which has 43 bits. Biases are 1.5 times 2^j, 2^(2j-8) and 2^(2j-52). A window
   that is half full before a tile could not leave its binade in it; it is emptied then. */
#pragma once

#include "fold/folds.h"
#include "kernels/ptx.cuh"

enum { COMPARE_TILE = 8, COMPARE_THREADS = 256 };

/* What is not needed for each tile, in memory. */
struct compare_aside {
    const struct compare_rule *rule; /* of the launch */
    uint32_t *most; /* of all blocks: most, units, ratio and base of their limits, each the largest */
    struct compare_ends ends;
    struct exact_sink sinks[2];
    bool uses_sinks;
};

/* Of a block: the largest keys of all its threads, and what is allowed, rounded down. Distances in units: those of f32 are counted, of the
   values times `scale`, and their lowest `shift` bits left out. So are f16's, since its subnormal numbers become those of f32. */
struct alignas(16) compare_limits {
    uint32_t most, units, ratio; /* upper half of a double; number, or all bits if there are no units; bits of an f32 */
    uint32_t base;               /* of the largest windows that a thread has opened */
    float scale;
    uint32_t shift, allows; /* allows: whether differences may be allowed */
    float atol, rtol;
    unsigned long long keys[2]; /* of the block's largest difference and ratio */
    struct compare_rule rule; /* here, as what lies elsewhere comes behind the copies that are under way */
};
static __device__ __forceinline__ struct compare_limits *block_limits()
{
    __shared__ struct compare_limits limits;
    return &limits;
}

/* A tile that is not quick: of this thread, in shared memory, element i of array k. */
static __device__ __forceinline__ float *tile_element(int k, uint32_t i)
{
    __shared__ float tiles[2][COMPARE_TILE][COMPARE_THREADS];
    return &tiles[k][i][threadIdx.x];
}

/* Of a thread: the upper half of its largest difference; 1 more than its largest distance in units; infinity if it has an infinite ratio, else 0. */
struct compare_own {
    uint32_t most, units;
    float ratio_from;
};

/* A vector or two of each array, of `each` pairs. The second begins `gap` behind the first. */
struct compare_tile {
    uint32_t n, each;
    uint64_t first, gap;
};

struct compare_windows {
    double sum, high, low;
    uint32_t base; /* (j + 1023) << 20: the upper half of 2^j; 0: windows are closed */
};

/* What stays in registers. */
struct compare_quick {
    struct compare_windows windows;
    uint32_t misses; /* slow tiles in a row that had bits below the windows */
    uint32_t different, outside; /* without NaN */
    uint32_t nan_a, nan_b, nan_both;
    struct compare_own own;
};

enum { COMPARE_ROOM = 8, COMPARE_SLACK = 2, COMPARE_LEAST = 1023 - 48 };

static __device__ __forceinline__ uint32_t larger_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
static __device__ __forceinline__ uint32_t high_word(double x) { return (uint32_t)(f64_bits(x) >> 32); }
/* The upper halves of the biases. */
static __device__ __forceinline__ uint32_t sum_bias(uint32_t base) { return base + 0x80000; }
static __device__ __forceinline__ uint32_t high_bias(uint32_t base) { return 2 * base - (1031u << 20) + 0x80000; }
static __device__ __forceinline__ uint32_t low_bias(uint32_t base) { return 2 * base - (1075u << 20) + 0x80000; }
static __device__ __forceinline__ double bias_of(uint32_t high) { return f64_from_bits((uint64_t)high << 32); }

static __device__ __forceinline__ bool windows_are_full(const struct compare_windows &windows)
{
    const uint32_t base = windows.base;
    const uint32_t all = (high_word(windows.sum) - sum_bias(base) + 0x40000) | (high_word(windows.high) - high_bias(base) + 0x40000)
                         | (high_word(windows.low) - low_bias(base) + 0x40000);
    return (base != 0) & (all >> 19 != 0);
}

/* The windows, as those of exact.h. */
static __device__ __forceinline__ void windows_of(const struct compare_windows &windows, struct exact_accumulator sums[2])
{
    const uint32_t base = windows.base;
    sums[0].sum[0][0] = windows.sum;
    sums[0].bias[0] = bias_of(base != 0 ? sum_bias(base) : 0);
    sums[1].sum[0][0] = windows.high;
    sums[1].bias[0] = bias_of(base != 0 ? high_bias(base) : 0);
    sums[1].sum[1][0] = windows.low;
    sums[1].bias[1] = bias_of(base != 0 ? low_bias(base) : 0);
    sums[0].not_minus_zero = sums[1].not_minus_zero = base != 0;
}

static __device__ __forceinline__ struct compare_windows windows_open(uint32_t base)
{
    if (base == 0)
        return {};
    return {bias_of(sum_bias(base)), bias_of(high_bias(base)), bias_of(low_bias(base)), base};
}

/* Adds the windows to the words. */
static __device__ __noinline__ void windows_add(struct compare_aside *aside, struct compare_windows windows)
{
    struct exact_accumulator sums[2];
    windows_of(windows, sums);
    aside->uses_sinks = true;
    exact_accumulator_flush(&sums[0], 1, &aside->sinks[0]);
    exact_accumulator_flush(&sums[1], 2, &aside->sinks[1]);
}

#ifdef __NVCC__
static __device__ __forceinline__ bool is_first_of_group() { return __activemask() << (31 - threadIdx.x % 32) == 1u << 31; }
static __device__ __forceinline__ uint32_t mask_if_different(float a, float b)
{
    uint32_t mask;
    asm("set.neu.u32.f32 %0, %1, %2;" : "=r"(mask) : "f"(a), "f"(b));
    return mask;
}
static __device__ __forceinline__ uint32_t apart_u32(uint32_t a, uint32_t b) { return __usad(a, b, 0); }
static __device__ __forceinline__ uint32_t apart_i32(int32_t a, int32_t b) { return __sad(a, b, 0); }
#else
static bool is_first_of_group() { return true; }
static uint32_t mask_if_different(float a, float b) { return a == b ? 0 : ~0u; }
static uint32_t apart_u32(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }
static uint32_t apart_i32(int32_t a, int32_t b) { return (uint32_t)compare_apart(a, b); }
#endif

/* The largest distance of a tile in units, or 1 more if a value is rounded first. */
static __device__ __forceinline__ uint32_t largest_steps(const struct compare_limits &limits, const arrays_f32 &x, uint32_t n)
{
    uint32_t signs = 0, steps = 0, bits = 0;
    FOLD_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t a = f32_bits(x.x[i]), b = f32_bits(x.y[i]), apart = apart_u32(a, b);
        signs |= a ^ b;
        steps = apart > steps ? apart : steps;
    }
    if ((signs >> 31 | limits.shift) == 0)
        return steps;
    steps = 0;
    FOLD_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        const float a = x.x[i] * limits.scale, b = x.y[i] * limits.scale;
        const uint32_t apart = apart_i32(compare_step_f32(a), compare_step_f32(b));
        bits |= f32_bits(a) | f32_bits(b);
        steps = apart > steps ? apart : steps;
    }
    return (steps >> limits.shift) + ((bits & ((1u << limits.shift) - 1)) != 0 ? 1 : 0);
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

static __device__ __forceinline__ struct compare_limits compare_limits_of(const struct compare_rule *rule)
{
    const bool has_units = rule->ulp == ALLFOLD_F16 || rule->ulp == ALLFOLD_BF16 || rule->ulp == ALLFOLD_F32;
    return {0, has_units ? 0 : ~0u, 0, 0, rule->ulp == ALLFOLD_F16 ? 0x1p-112f : 1.0f,
            rule->ulp == ALLFOLD_F16 ? 13u : rule->ulp == ALLFOLD_BF16 ? 16u : 0u, rule->atol != 0.0 || rule->rtol != 0.0,
            f32_below(rule->atol), f32_below(rule->rtol), {0, 0}, *rule};
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
static __device__ __forceinline__ bool compare_add_pair(struct compare_windows *q, struct exact_sink sinks[2], elements_f32 e)
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

/* Raises a limit of the block and that of all blocks to the largest key of the threads that come here together, and the former to the latter. */
static __device__ __forceinline__ void limit_raise(uint32_t *limit, uint32_t *most, uint32_t key)
{
    const uint32_t largest = group_largest(key);
    if (is_first_of_group() && largest > *limit)
        atomicMax(limit, larger_u32(atomicMax(most, largest), largest));
}

/* Opens windows for a tile's differences and larger ones: the first time, if these are too large, or if too few have fitted. */
static __device__ __forceinline__ void compare_open(struct compare_quick *q, struct compare_aside *aside, uint32_t n)
{
    double largest = 0.0;
    FOLD_ROLL
    for (uint32_t i = 0; i < n; i++) {
        const double d = fabs((double)*tile_element(0, i) - (double)*tile_element(1, i));
        largest = d > largest && d < (double)INFINITY ? d : largest;
    }
    const uint32_t exponent = group_largest(high_word(largest) >> 20) + 1 + COMPARE_SLACK + COMPARE_ROOM;
    const uint32_t base = (exponent < COMPARE_LEAST ? (uint32_t)COMPARE_LEAST : exponent) << 20;
    const bool large = (int32_t)high_word(largest) >= (int32_t)(q->windows.base - (COMPARE_ROOM << 20));
    if (largest == 0.0 || (!large && q->misses < 4))
        return;
    q->misses = 0;
    if (q->windows.base != 0)
        windows_add(aside, q->windows);
    q->windows = windows_open(base);
    limit_raise(&block_limits()->base, &aside->most[3], base);
}

/* Raises what this thread has found, and the limits. */
static __device__ __noinline__ struct compare_own compare_raise_tile(struct compare_aside *aside, struct compare_tile tile)
{
    struct compare_limits *const limits = block_limits();
    struct compare_largest *const largest = aside->ends.largest;
    uint64_t keys[COMPARE_LARGEST]; /* read at one time, as that takes long */
    FOLD_UNROLL
    for (int k = 0; k < COMPARE_LARGEST; k++)
        keys[k] = largest[k].key;
    FOLD_ROLL
    for (uint32_t i = 0; i < tile.n; i++) {
        const float x = *tile_element(0, i), y = *tile_element(1, i);
        const double a = (double)x, b = (double)y, difference = fabs(a - b);
        const struct compare_pair pair = {tile.first + i + (i < tile.each ? 0 : tile.gap - tile.each), f64_bits(a), f64_bits(b)};
        const uint64_t own[COMPARE_LARGEST] = {f64_bits(difference), f64_bits(compare_ratio(difference, fabs(b))), compare_units_f32(&limits->rule, x, y)};
        if (!(difference > 0.0))
            continue;
        FOLD_UNROLL
        for (int k = 0; k < COMPARE_LARGEST; k++)
            if (own[k] > keys[k]) {
                keys[k] = own[k];
                largest[k] = {own[k], pair.index, pair.a, pair.b};
            }
    }
    atomicMax(&limits->keys[0], (unsigned long long)keys[COMPARE_ABS]);
    atomicMax(&limits->keys[1], (unsigned long long)keys[COMPARE_REL]);
    const uint64_t ratio = keys[COMPARE_REL], units = keys[COMPARE_ULP];
    const uint32_t most = (uint32_t)(keys[COMPARE_ABS] >> 32), below = f32_bits(f32_below(f64_from_bits(ratio)));
    limit_raise(&limits->most, &aside->most[0], most);
    limit_raise(&limits->units, &aside->most[1], (uint32_t)units);
    limit_raise(&limits->ratio, &aside->most[2], below);
    return {most, (uint32_t)units + 1, f64_from_bits(ratio) == (double)INFINITY ? INFINITY : 0.0f};
}

/* Takes a tile pair by pair, but for the largest differences. */
static __device__ __noinline__ struct compare_quick compare_slow(struct compare_quick q, struct compare_aside *aside, uint32_t n)
{
    bool missed = false;
    aside->uses_sinks = true;
    compare_open(&q, aside, n);
    FOLD_ROLL
    for (uint32_t i = 0; i < n; i++) {
        const elements_f32 e = {*tile_element(0, i), *tile_element(1, i)};
        const double a = (double)e.x, b = (double)e.y;
        if (e.x == e.y)
            continue;
        q.different++;
        q.outside += compare_is_outside(&block_limits()->rule, fabs(a - b), fabs(b)) ? 1 : 0;
        if (is_finite(a) && is_finite(b)) {
            missed |= !compare_add_pair(&q.windows, aside->sinks, e);
        } else {
            compare_add_f32(&aside->sinks[0], e);
            compare_add_square_f32(&aside->sinks[1], e);
        }
    }
    q.misses = missed ? q.misses + 1 : 0;
    if (windows_are_full(q.windows)) {
        windows_add(aside, q.windows);
        q.windows = windows_open(q.windows.base);
    }
    return q;
}

/* Counts the pairs of a tile with NaN, and makes them equal. False if there is none. */
static __device__ __forceinline__ bool nans_take(struct compare_quick *q, float *a, float *b, uint32_t n)
{
    bool any = false;
    FOLD_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        const bool in_a = a[i] != a[i], in_b = b[i] != b[i];
        q->nan_a += in_a && !in_b ? 1 : 0;
        q->nan_b += in_b && !in_a ? 1 : 0;
        q->nan_both += in_a && in_b ? 1 : 0;
        a[i] = in_a || in_b ? 0.0f : a[i];
        b[i] = in_a || in_b ? 0.0f : b[i];
        any |= in_a || in_b;
    }
    return any;
}

/* Whether a pair of a tile is as large as the largest of the block, as a double, or may be. */
static __device__ __forceinline__ bool raises(const struct compare_limits *limits, const struct compare_quick *q, uint32_t steps, const float *x,
                                              const float *y, uint32_t n)
{
    const double largest = f64_from_bits(limits->keys[0]), ratio = f64_from_bits(limits->keys[1]) * (1.0 - 0x1p-50);
    bool may = steps >= larger_u32(limits->units, q->own.units);
    FOLD_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        const double difference = fabs((double)x[i] - (double)y[i]), size = fabs((double)y[i]);
        may |= (difference >= largest) | (size == 0.0 ? difference > (double)q->own.ratio_from : difference > ratio * size);
    }
    return may;
}

/* Takes a tile that is not equal. */
static __device__ __forceinline__ void compare_take_tile(struct compare_quick *q, struct compare_aside *aside, const struct compare_tile &tile,
                                                          float *x, float *y)
{
    const struct compare_limits *const limits = block_limits();
    const float ratio = f32_from_bits(limits->ratio);
    const uint32_t n = tile.n;
    struct compare_windows windows;
    double down;
    float most, over;
    uint32_t fractions, different;
    if (q->windows.base == 0)
        q->windows = windows_open(limits->base);
    do {
        windows = q->windows;
        down = windows.sum;
        most = over = 0.0f;
        fractions = different = 0;
        FOLD_UNROLL
        for (uint32_t i = 0; i < n; i++) {
            const float a = x[i], b = y[i];
            const double d_down = add_down((double)a, -(double)b), d = add_up((double)a, -(double)b), before = windows.high;
            down = add_down(down, d_down);
            windows.sum = add_up(windows.sum, d);
            windows.high = fma(d, d, before);
            windows.low += fma(d, d, before - windows.high);
            most = fmaxf(most, fabsf(f32_from_bits(high_word(d)))); /* has the order of the doubles */
            fractions |= (uint32_t)f64_bits(d);
            over = fmaxf(over, fmaf(-ratio, fabsf(b), fabsf(a - b)));
            different -= mask_if_different(a, b);
        }
    } while (!(windows.sum - down == 0.0) && nans_take(q, x, y, n)); /* of infinities it is NaN */
    const uint32_t steps = largest_steps(*limits, {x, y, NULL}, n), largest = f32_bits(most), own = q->own.most + (fractions != 0 ? 0 : 1);
    const int32_t room = (int32_t)(windows.base - (COMPARE_ROOM << 20));
    const bool slow = !(windows.sum - down == 0.0) | ((int32_t)largest >= (room > 1 ? room : 1)), full = windows_are_full(windows);
    const bool may_raise = (largest >= larger_u32(limits->most, own)) | (over > q->own.ratio_from) | (steps >= larger_u32(limits->units, q->own.units));
    if (slow | may_raise | full) {
        if (slow || raises(limits, q, steps, x, y, n)) {
            FOLD_UNROLL
            for (uint32_t i = 0; i < n; i++) {
                *tile_element(0, i) = x[i];
                *tile_element(1, i) = y[i];
            }
            q->own = compare_raise_tile(aside, tile);
        }
        if (slow) {
            *q = compare_slow(*q, aside, n);
            return;
        }
    }
    if (limits->allows) {
        float beyond = 0.0f;
        FOLD_UNROLL
        for (uint32_t i = 0; i < n; i++)
            beyond = fmaxf(beyond, fmaf(-limits->rtol, fabsf(y[i]), fabsf(x[i] - y[i])));
        q->outside += beyond > limits->atol ? count_outside(&limits->rule, {x, y, NULL}, n) : 0;
    }
    q->windows = windows;
    q->different += different;
    if (full) {
        windows_add(aside, windows);
        q->windows = windows_open(windows.base);
    }
}
