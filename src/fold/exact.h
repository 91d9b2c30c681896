/* Exact sums: a number held in fixed point, as wide as sums of its terms can be, and a cheap way to add terms to it. The method,
   its proofs and its sources: docs/numerics.md.

   Words. A partial is a row of 64-bit integers that are only ever added. First come limbs: each is worth 2^32 times the one
   before, and carries are left in place. Then come counts of what no limb can hold. So partials are combined by adding word to
   word, in any order, by anything that can add integers.

   Windows. Terms do not go to the limbs one by one. sum starts as bias = 1.5 * 2^k, whose last bit is worth 2^(k-52). As long as
   sum stays in [2^k, 2^(k+1)), adding a term to it takes exactly the term's nearest multiple of 2^(k-52). The rest goes to the
   next window. The rest after the last window must be 0; otherwise the whole run of terms is undone and goes to the limbs. In one
   binade doubles are equally spaced: the difference of the bits of sum and bias counts multiples of 2^(k-52), and a flush adds
   that number to the limbs. The choice of windows cannot show in the result. */
#pragma once

#include "fold/arithmetic.h"

/* The words behind the limbs. */
enum exact_count {
    EXACT_NANS,
    EXACT_PLUS,  /* +inf */
    EXACT_MINUS, /* -inf */
    EXACT_NOT_MINUS_ZERO, /* not 0 if some term was not -0.0 */
    EXACT_COUNTS
};

#define EXACT_WINDOWS_MAX 4
/* Bits between the largest term that a window is opened for and half of the window's capacity. More bits mean fewer flushes and
   less room for small terms. Several windows have room enough. */
#define EXACT_GROWTH(windows) ((windows) > 1 ? 12 : 8)
/* Terms of one lane between two checks of how full the windows are: 2^8 / 4 of the largest would fit. */
#define EXACT_RUN 32

/* Bins: one thread puts single f32 terms there. Bin b, a double, is the sum of terms whose biased exponents are 16 b to
   16 b + 15: multiples of 2^(16 b - 150), its unit, and below 2^39 units. So 2^13 of them add up exactly, before what is a
   multiple of the next bin's unit must be carried there; the last bin has room for the carries of 2^31 of the largest terms.
   NaN and infinities go to bin 15 and stay there. */
#define EXACT_BINS 17
#define EXACT_BIN_CAPACITY 8192
struct exact_bins {
    double *at; /* bin b at at[b * stride] */
    uint32_t stride, capacity_left;
    bool ready;
};

/* Where words lie: word i at words[i * stride]. shared: other threads add to them, too. ready: they hold values. A device sets
   words that are not shared to 0 when they are first needed. */
struct exact_sink {
    int64_t *words;
    uint32_t stride;
    bool shared, ready;
    uint32_t limbs;
    int32_t lowest; /* bit 0 of limb 0 is worth 2^lowest */
    uint32_t capacity_left; /* in single terms, until carries must be propagated; never runs out for shared words */
    bool has_bins; /* single terms go there */
    struct exact_bins bins;
};

HOST_DEVICE struct exact_sink exact_sink_of(int64_t *words, uint32_t stride, uint32_t limbs, int32_t lowest)
{
    struct exact_sink sink;
    sink.words = words;
    sink.stride = stride;
    sink.shared = false;
    sink.ready = true;
    sink.limbs = limbs;
    sink.lowest = lowest;
    sink.capacity_left = 0;
    sink.has_bins = false;
    sink.bins.at = NULL;
    sink.bins.stride = sink.bins.capacity_left = 0;
    sink.bins.ready = false;
    return sink;
}

/* The largest number of the threads that come here together. So threads of a warp mostly open the same windows: these are added
   up faster, and later terms fit them better. */
HOST_DEVICE uint32_t group_largest(uint32_t x)
{
#if defined(__NVCC__) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_max_sync(__activemask(), x);
#else
    return x;
#endif
}

/* Single terms between two normalisations, by weight: a term of weight w changes a limb by less than w * 2^53. 896 * 2^53 leaves
   room in 63 bits for 2^28 additions of at most 2^32. Those are flushes of windows, and there are far fewer of them. */
#define EXACT_CAPACITY 896

HOST_DEVICE void exact_sink_prepare(struct exact_sink *sink)
{
    if (sink->ready)
        return;
    if (!sink->shared) {
        FOLD_ROLL
        for (uint32_t i = 0; i < sink->limbs + EXACT_COUNTS; i++)
            sink->words[i * sink->stride] = 0;
    }
    sink->ready = true;
    sink->capacity_left = EXACT_CAPACITY;
}

HOST_DEVICE void exact_word_add(const struct exact_sink *sink, uint32_t word, int64_t value)
{
    int64_t *const at = &sink->words[word * sink->stride];
#ifdef __CUDA_ARCH__
    if (sink->shared) { /* in halves: shared memory adds 32 bits in one operation; 64 bits would take a compare-and-swap loop */
        unsigned int *const halves = (unsigned int *)at, low = (unsigned int)value;
        const unsigned int carry = atomicAdd(&halves[0], low) + low < low, high = (unsigned int)(value >> 32) + carry;
        if (high != 0)
            atomicAdd(&halves[1], high);
        return;
    }
#endif
    *at += value;
}

HOST_DEVICE void exact_count(const struct exact_sink *sink, enum exact_count which, int64_t count)
{
    exact_word_add(sink, sink->limbs + which, count);
}

/* Propagates carries. Limbs are then from 0 to 2^32 - 1, except the last, which has the sign. */
HOST_DEVICE void exact_sink_normalise(struct exact_sink *sink)
{
    int64_t carry = 0;
    FOLD_ROLL
    for (uint32_t i = 0; i < sink->limbs; i++) {
        int64_t *const at = &sink->words[i * sink->stride];
        const int64_t limb = *at + carry;
        *at = i + 1 < sink->limbs ? limb & 0xffffffff : limb;
        carry = limb >> 32;
    }
    sink->capacity_left = EXACT_CAPACITY;
}

/* Makes room for single terms of this weight, at most EXACT_CAPACITY. */
HOST_DEVICE void exact_sink_reserve(struct exact_sink *sink, uint32_t weight)
{
    if (sink->shared)
        return;
    if (sink->capacity_left < weight)
        exact_sink_normalise(sink);
    sink->capacity_left -= weight;
}

/* Adds value * 2^exponent, which must be a multiple of 2^lowest that the limbs have room for. No word changes by more than
   2^32: 2^30 such additions fit between two normalisations. */
HOST_DEVICE void exact_add_integer(const struct exact_sink *sink, int64_t value, int32_t exponent)
{
    int32_t position = exponent - sink->lowest;
    if (position < 0) { /* the bits shifted out are 0 */
        value >>= -position;
        position = 0;
    }
    const uint32_t limb = (uint32_t)position / 32, shift = (uint32_t)position % 32;
    const int64_t rest = value >> (32 - shift);
    exact_word_add(sink, limb, (int64_t)(((uint64_t)value << shift) & 0xffffffffu));
    exact_word_add(sink, limb + 1, rest & 0xffffffff);
    exact_word_add(sink, limb + 2, rest >> 32);
}

/* The same for a single term, of |value| < 2^53, for which room must have been reserved. Shared words get no more than 2^32 at a
   time, because carries cannot be propagated there. Of other words both are read before one is written: they are seldom in
   registers. */
HOST_DEVICE void exact_add_term(const struct exact_sink *sink, int64_t value, int32_t exponent)
{
    const uint32_t position = (uint32_t)(exponent - sink->lowest), limb = position / 32, shift = position % 32;
    const int64_t low = (int64_t)(((uint64_t)value << shift) & 0xffffffffu), rest = value >> (32 - shift);
    if (sink->shared) {
        exact_word_add(sink, limb, low);
        exact_word_add(sink, limb + 1, rest & 0xffffffff);
        exact_word_add(sink, limb + 2, rest >> 32);
        return;
    }
    int64_t *const at = &sink->words[limb * sink->stride];
    const int64_t first = at[0], second = at[sink->stride];
    at[0] = first + low;
    at[sink->stride] = second + rest;
}

/* The same for |value| < 2^24. */
HOST_DEVICE void exact_add_small(const struct exact_sink *sink, int64_t value, int32_t exponent)
{
    const uint32_t position = (uint32_t)(exponent - sink->lowest), limb = position / 32, shift = position % 32;
    const int64_t shifted = (int64_t)((uint64_t)value << shift);
    exact_word_add(sink, limb, sink->shared ? shifted & 0xffffffff : shifted);
    if (sink->shared)
        exact_word_add(sink, limb + 1, shifted >> 32);
}

/* -x if sign is 1, without a branch: random signs would be mispredicted. */
HOST_DEVICE int64_t negated_if(int64_t x, uint64_t sign) { return (int64_t)(((uint64_t)x ^ (0 - sign)) + sign); }

/* A finite double as an integer times 2^*exponent. */
HOST_DEVICE int64_t exact_integer(double x, int32_t *exponent)
{
    const uint64_t bits = f64_bits(x), fraction = bits & 0xfffffffffffffu;
    const int32_t biased = (int32_t)(bits >> 52 & 0x7ff);
    const int64_t magnitude = (int64_t)(biased != 0 ? fraction | 1ull << 52 : fraction);
    *exponent = magnitude == 0 ? 0 : (biased != 0 ? biased : 1) - 1075; /* 0 is a multiple of everything */
    return negated_if(magnitude, bits >> 63);
}

/* Counts x, which is NaN or infinite. */
HOST_DEVICE void exact_add_special(const struct exact_sink *sink, double x)
{
    exact_count(sink, x != x ? EXACT_NANS : x > 0.0 ? EXACT_PLUS : EXACT_MINUS, 1);
}

/* Adds one term to the words. finite: the term is known to be finite. lowest is -1074. */
HOST_DEVICE void exact_add_f64(const struct exact_sink *sink, double x, bool finite)
{
    if (!finite && !is_finite(x)) {
        exact_add_special(sink, x);
        return;
    }
    const uint64_t bits = f64_bits(x), fraction = bits & 0xfffffffffffffu;
    const int32_t biased = (int32_t)(bits >> 52 & 0x7ff);
    const int64_t magnitude = (int64_t)(biased != 0 ? fraction | 1ull << 52 : fraction);
    exact_add_term(sink, negated_if(magnitude, bits >> 63), (biased != 0 ? biased : 1) - 1075);
}

HOST_DEVICE uint32_t exact_bin_of(float x) { return f32_bits(x) >> 27 & 15; }

HOST_DEVICE double exact_bin_unit(int b) { return power_of_two(16 * b - 150); }

HOST_DEVICE void exact_bin_add(const struct exact_bins *bins, uint32_t b, double x) { bins->at[b * bins->stride] += x; }

/* Carries the nearest multiple of the next bin's unit from each bin to the next. Bins are then at most 2^37 units: a remainder of
   half the next bin's unit, and a carry. */
HOST_DEVICE void exact_bins_normalise(struct exact_bins *bins)
{
    double carry = 0.0;
    FOLD_ROLL
    for (int b = 0; b < EXACT_BINS; b++) {
        double *const at = &bins->at[(uint32_t)b * bins->stride];
        const double sum = *at + carry, big = 0x1.8p52 * exact_bin_unit(b + 1);
        carry = b + 1 < EXACT_BINS && is_finite(sum) ? (sum + big) - big : 0.0;
        *at = sum - carry;
    }
    bins->capacity_left = EXACT_BIN_CAPACITY;
}

HOST_DEVICE void exact_bins_prepare(struct exact_bins *bins)
{
    if (bins->ready)
        return;
    FOLD_ROLL
    for (uint32_t b = 0; b < EXACT_BINS; b++)
        bins->at[b * bins->stride] = 0.0;
    bins->ready = true;
    bins->capacity_left = EXACT_BIN_CAPACITY;
}

/* Makes room for n terms, at most EXACT_BIN_CAPACITY. 2^13 terms of 2^39 units and the contents of a bin after carrying stay below
   2^53. */
HOST_DEVICE void exact_bins_reserve(struct exact_bins *bins, uint32_t n)
{
    if (bins->capacity_left < n)
        exact_bins_normalise(bins);
    bins->capacity_left -= n;
}

/* Adds what a window holds: an f32's multiple of 2^(k-52), |sum| <= 2^(k-1), k <= 137. In two parts: the multiple of the unit two
   bins up, at most 2^34 of it, and the rest, at most 2^31 of the lower bin's. */
HOST_DEVICE void exact_bins_take(struct exact_bins *bins, double sum, int32_t k)
{
    const int32_t lower = k + 98 > 0 ? (k + 98) / 16 : 0;
    const double big = 0x1.8p52 * exact_bin_unit(lower + 2), high = (sum + big) - big;
    exact_bins_prepare(bins);
    exact_bins_reserve(bins, 1);
    exact_bin_add(bins, (uint32_t)lower, sum - high);
    exact_bin_add(bins, (uint32_t)lower + 2, high);
}

/* The contents of bin b, in its units. NaN and infinities are counted in the words of the sink instead. */
HOST_DEVICE int64_t exact_bin_integer(const struct exact_sink *sink, int b, double sum)
{
    if (is_finite(sum))
        return (int64_t)(sum * power_of_two(150 - 16 * b));
    exact_add_special(sink, sum);
    return 0;
}

/* Empties the bins into the words. */
HOST_DEVICE void exact_bins_flush(struct exact_sink *sink)
{
    if (!sink->has_bins || !sink->bins.ready)
        return;
    FOLD_ROLL
    for (int b = 0; b < EXACT_BINS; b++)
        exact_add_integer(sink, exact_bin_integer(sink, b, sink->bins.at[(uint32_t)b * sink->bins.stride]), 16 * b - 150);
    sink->bins.ready = false;
}

/* The same for a term that is an f32; lowest is at most -149. */
HOST_DEVICE void exact_add_f32(const struct exact_sink *sink, float x, bool finite)
{
    const uint32_t bits = f32_bits(x), fraction = bits & 0x7fffffu;
    if (sink->has_bins) {
        exact_bin_add(&sink->bins, exact_bin_of(x), (double)x);
        return;
    }
    const int32_t biased = (int32_t)(bits >> 23 & 0xff);
    if (!finite && biased == 0xff) {
        exact_add_special(sink, (double)x);
        return;
    }
    const int64_t magnitude = (int64_t)(biased != 0 ? fraction | 1u << 23 : fraction);
    exact_add_small(sink, negated_if(magnitude, bits >> 31), (biased != 0 ? biased : 1) - 150);
}

/* Adds x * y, exactly: the lower 53 bits of its magnitude and the upper ones. lowest is -2148. */
HOST_DEVICE void exact_add_product_f64(const struct exact_sink *sink, double x, double y, bool finite)
{
    const uint64_t x_bits = f64_bits(x), y_bits = f64_bits(y), sign = (x_bits ^ y_bits) >> 63;
    const int32_t x_biased = (int32_t)(x_bits >> 52 & 0x7ff), y_biased = (int32_t)(y_bits >> 52 & 0x7ff);
    if (!finite && (x_biased == 0x7ff || y_biased == 0x7ff)) {
        exact_add_special(sink, x * y);
        return;
    }
    const uint64_t x_magnitude = (x_bits & 0xfffffffffffffu) | (uint64_t)(x_biased != 0) << 52;
    const uint64_t y_magnitude = (y_bits & 0xfffffffffffffu) | (uint64_t)(y_biased != 0) << 52;
    const int32_t exponent = (x_biased != 0 ? x_biased : 1) + (y_biased != 0 ? y_biased : 1) - 2 * 1075;
    const int128 product = (int128)x_magnitude * y_magnitude;
    exact_add_term(sink, negated_if((int64_t)(product & ((1ull << 53) - 1)), sign), exponent);
    exact_add_term(sink, negated_if((int64_t)(product >> 53), sign), exponent + 53);
}

/* Adds the product of two f32, which has 48 bits; lowest is at most -298. */
HOST_DEVICE void exact_add_product_f32(const struct exact_sink *sink, float x, float y, bool finite)
{
    const uint32_t x_bits = f32_bits(x), y_bits = f32_bits(y), sign = (x_bits ^ y_bits) >> 31;
    const int32_t x_biased = (int32_t)(x_bits >> 23 & 0xff), y_biased = (int32_t)(y_bits >> 23 & 0xff);
    if (!finite && (x_biased == 0xff || y_biased == 0xff)) {
        exact_add_special(sink, (double)x * (double)y);
        return;
    }
    const int64_t x_magnitude = (int64_t)((x_bits & 0x7fffffu) | (uint32_t)(x_biased != 0) << 23);
    const int64_t y_magnitude = (int64_t)((y_bits & 0x7fffffu) | (uint32_t)(y_biased != 0) << 23);
    const int32_t exponent = (x_biased != 0 ? x_biased : 1) + (y_biased != 0 ? y_biased : 1) - 2 * 150;
    exact_add_term(sink, negated_if(x_magnitude * y_magnitude, sign), exponent);
}

/* Terms that the host may add without windows: what the bits of their f32 elements have in common. `before` is the magnitude less
   1, which is large for 0. */
#define EXACT_PLAIN 2048
#ifdef __CUDA_ARCH__
#define EXACT_TAKEN EXACT_RUN
#else
#define EXACT_TAKEN EXACT_PLAIN
#endif
struct exact_span {
    uint32_t largest[FOLD_LANES], before[FOLD_LANES], all[FOLD_LANES];
};
HOST_DEVICE void exact_span_start(struct exact_span *span)
{
    for (int lane = 0; lane < FOLD_LANES; lane++) { /* memset would be an instruction that takes long to start */
        span->largest[lane] = span->all[lane] = 0;
        span->before[lane] = ~0u;
    }
}
#define EXACT_SPAN_TAKE(span, lane, x)                                                              \
    do {                                                                                            \
        const uint32_t magnitude = f32_bits(x) & 0x7fffffffu, before = magnitude - 1;               \
        (span).largest[lane] = magnitude > (span).largest[lane] ? magnitude : (span).largest[lane]; \
        (span).before[lane] = before < (span).before[lane] ? before : (span).before[lane];          \
        (span).all[lane] |= magnitude;                                                              \
    } while (0)

/* Whether no sum of them, EXACT_PLAIN at most, is rounded. They are multiples of 2^u, u from the lowest bit that is set in any of
   them, and less than 2^t. If t + 11 - u is at most 53, a sum of 2^11 of them has no more bits than a double. True also of zeros
   alone, and false if there is NaN or an infinity. */
HOST_DEVICE bool exact_bits_are_narrow(uint32_t largest, uint32_t before, uint32_t all)
{
    const uint32_t fractions = all | 1u << 23, lowest = fractions & (0 - fractions);
    const int32_t zeros = (int32_t)(f32_bits((float)(int32_t)lowest) >> 23) - 127; /* trailing zeros that all fractions share */
    const int32_t biased = (int32_t)(largest >> 23), least = (int32_t)((before + 1) >> 23);
    const int32_t t = biased - 126, u = (least > 0 ? least : 1) - 150 + zeros; /* subnormal numbers are as if of 1 */
    return largest == 0 || (biased < 0xff && t + 11 - u <= 53);
}

/* As exact_bits_are_narrow, for the terms of some lanes. They are less than 2^*below. */
HOST_DEVICE bool exact_span_is_narrow(const struct exact_span *span, int32_t *below)
{
    uint32_t largest = 0, before = ~0u, all = 0;
    for (int lane = 0; lane < FOLD_LANES; lane++) {
        largest = span->largest[lane] > largest ? span->largest[lane] : largest;
        before = span->before[lane] < before ? span->before[lane] : before;
        all |= span->all[lane];
    }
    *below = (int32_t)(largest >> 23) - 126;
    return exact_bits_are_narrow(largest, before, all);
}

/* The windows of one thread, each in as many lanes as the thread has. Closed while bias[0] is 0. */
struct exact_accumulator {
    double sum[EXACT_WINDOWS_MAX][FOLD_LANES];
    double bias[EXACT_WINDOWS_MAX];
    bool not_minus_zero;             /* as EXACT_NOT_MINUS_ZERO */
    uint32_t failures, skip; /* runs in a row that windows did not hold; coming runs that skip the windows */
};

HOST_DEVICE void exact_accumulator_close(struct exact_accumulator *accumulator, int windows)
{
    FOLD_UNROLL
    for (int w = 0; w < windows; w++) {
        accumulator->bias[w] = 0.0;
        for (int lane = 0; lane < FOLD_LANES; lane++)
            accumulator->sum[w][lane] = 0.0;
    }
}

/* What a window holds, in units of 2^*exponent: at most 2^51 a lane. */
HOST_DEVICE int64_t exact_window_take(struct exact_accumulator *accumulator, int w, int32_t *exponent)
{
    const uint64_t bias = f64_bits(accumulator->bias[w]);
    int64_t total = 0;
    for (int lane = 0; lane < FOLD_LANES; lane++) {
        total += (int64_t)(f64_bits(accumulator->sum[w][lane]) - bias);
        accumulator->sum[w][lane] = accumulator->bias[w];
    }
    *exponent = (int32_t)(bias >> 52) - 1075;
    return total;
}

/* Makes room for n single terms of a weight. */
HOST_DEVICE void exact_reserve(struct exact_sink *sink, uint32_t n, uint32_t weight)
{
    if (sink->has_bins) {
        exact_bins_prepare(&sink->bins);
        exact_bins_reserve(&sink->bins, n);
    } else {
        exact_sink_prepare(sink);
        exact_sink_reserve(sink, n * weight);
    }
}

/* Empties the windows into the words, or into bins if other threads share the words. */
HOST_DEVICE void exact_accumulator_flush(struct exact_accumulator *accumulator, int windows, struct exact_sink *sink)
{
    const bool to_bins = sink->shared && sink->has_bins;
    if (!to_bins)
        exact_sink_prepare(sink);
    FOLD_UNROLL
    for (int w = 0; w < windows; w++) {
        int32_t exponent;
        const double sum = accumulator->sum[w][0] - accumulator->bias[w];
        const int64_t total = exact_window_take(accumulator, w, &exponent);
        if (to_bins) { /* a device's, of one lane */
            if (total != 0)
                exact_bins_take(&sink->bins, sum, exponent + 52);
            continue;
        }
        if (total != 0)
            exact_add_integer(sink, total, exponent);
    }
}

/* Opens empty windows for terms up to the largest one's biased exponent: the first `own` for terms, and the others, if there are any,
   for their rounding errors. Leaves them closed if a double has no room for them. */
HOST_DEVICE void exact_accumulator_open(struct exact_accumulator *accumulator, int windows, int own, uint32_t largest, int32_t lowest)
{
    const int32_t least = lowest + 52 > -1022 ? lowest + 52 : -1022, top = (int32_t)largest - 1023 + 2 + EXACT_GROWTH(windows);
    int32_t k = top;
    const bool room = k <= 1023;
    FOLD_UNROLL
    for (int w = 0; w < windows; w++) {
        k = w == own ? top - 53 : k;
        k = k < least ? least : k;
        accumulator->bias[w] = room ? 1.5 * power_of_two(k) : 0.0;
        for (int lane = 0; lane < FOLD_LANES; lane++)
            accumulator->sum[w][lane] = accumulator->bias[w];
        k = k - 52 + EXACT_GROWTH(windows);
    }
}

/* Whether a lane of some window is half full. */
HOST_DEVICE bool exact_accumulator_is_full(const struct exact_accumulator *accumulator, int windows)
{
    uint64_t full = 0;
    FOLD_UNROLL
    for (int w = 0; w < windows; w++)
        for (int lane = 0; lane < FOLD_LANES; lane++)
            full |= (f64_bits(accumulator->sum[w][lane]) - f64_bits(accumulator->bias[w]) + (1ull << 50)) >> 51;
    return full != 0;
}

/* Adds one term to one window. rest is the part of it that is left over. outside gathers bits whose upper 12 are 0 while sum
   stays in its binade. */
#define EXACT_STEP(total, bias, rest, outside)                  \
    do {                                                        \
        const double before = (total), after = before + (rest); \
        outside |= f64_bits(after) ^ f64_bits(bias);            \
        rest -= after - before;                                 \
        (total) = after;                                        \
    } while (0)

/* Adds it to the last window, which must leave no rest. A device adds twice instead, rounding down and rounding up. The exact sum
   lies between the two, so if they are equal at the end both are exact. */
#ifdef __CUDA_ARCH__
#define EXACT_LAST(total, up, bias, rest, outside) \
    do {                                           \
        (total) = add_down(total, rest);           \
        (up) = add_up(up, rest);                   \
    } while (0)
#define EXACT_SETTLE(total, up, bias, outside) (outside) |= (total) == (up) ? f64_bits(up) ^ f64_bits(bias) : ~0ull
#else
#define EXACT_LAST(total, up, bias, rest, outside) \
    do {                                           \
        EXACT_STEP(total, bias, rest, outside);    \
        outside |= (rest) != 0.0 ? ~0ull : 0;      \
    } while (0)
#define EXACT_SETTLE(total, up, bias, outside) (void)(up)
#endif
