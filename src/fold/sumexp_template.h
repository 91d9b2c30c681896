/* Template of the (max, sum of exponentials) monoids. NAME is the monoid. Terms are computed in f32 or f64, as REAL_BITS says. */
#if REAL_BITS == 32
#define REAL float
#define EXP_ANCHOR exp_anchor_f32
#define EXP_ANCHOR_TYPE struct exp_anchor_f32
#ifdef EXP_QUICK
#define EXP_RANGE SOFTMAX_RANGE_F32
#else
#define EXP_RANGE EXP_TERM_RANGE_F32
#endif
#else
#define REAL double
#define EXP_ANCHOR exp_anchor_f64
#define EXP_ANCHOR_TYPE struct exp_anchor_f64
#define EXP_RANGE EXP_TERM_RANGE_F64
#endif

typedef struct {
    double max; /* -inf until an element above -inf was taken; never NaN */
    pair sum;   /* of exp(x - reference), that of max: exponential.h; NaN once a NaN was taken; if max is +inf, the count
                   of +inf */
} FN(NAME);

HOST_DEVICE FN(NAME) NAME_FN(identity)(void)
{
    FN(NAME) partial;
    partial.max = -INFINITY;
    partial.sum.high = partial.sum.low = 0.0;
    return partial;
}

/* Brings the sum to a new, larger maximum. exp(-inf) is 0 here, so an empty partial adds nothing, exactly. Equal maxima, two of
   -inf included, are never subtracted. The factor is exact or a pair: if the maximum grows little by little, its rounding errors
   would add up. */
HOST_DEVICE void NAME_FN(rescale)(FN(NAME) * partial, double max)
{
    if (partial->max == max)
        return;
    pair scale;
    scale.high = scale.low = 0.0;
    if (partial->max != -INFINITY && max != INFINITY)
        scale = exp_factor(partial->max, max);
    const double high = partial->sum.high * scale.high;
    partial->sum.low = partial->sum.low * scale.high
                       + (partial->sum.high * scale.low + fma(partial->sum.high, scale.high, -high));
    partial->sum.high = high;
    partial->max = max;
}

HOST_DEVICE void NAME_FN(combine)(FN(NAME) * a, const FN(NAME) * b)
{
    FN(NAME) other = *b;
    const double max = a->max > other.max ? a->max : other.max;
    NAME_FN(rescale)(a, max);
    NAME_FN(rescale)(&other, max);
    pair_combine(&a->sum, &other.sum);
}

/* A tile whose maximum is infinite: +inf counts 1, -inf and finite elements count 0, NaN gives NaN. */
HOST_DEVICE void NAME_FN(tile_infinite)(FN(NAME) * partial, const V *x, uint32_t n, double max)
{
    double count = 0.0;
    for (uint32_t i = 0; i < n; i++)
        count += FN(is_nan)(x[i]) ? NAN : (double)x[i] == INFINITY ? 1.0 : 0.0;
    NAME_FN(rescale)(partial, max);
    pair_add(&partial->sum, count);
}

/* Adds the terms of a tile. m is the anchor of the partial's maximum, and no element is larger than `largest`. */
HOST_DEVICE void NAME_FN(terms)(FN(NAME) * partial, const V *x, uint32_t n, REAL largest, const EXP_ANCHOR_TYPE *m)
{
#if REAL_BITS == 64
    const struct exp_sum_anchor anchor = exp_sum_anchor(largest, m);
    double high[FOLD_LANES], low[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++) {
        high[lane] = EXP_SUM_BEGIN;
        low[lane] = 0.0;
    }
    FOLD_FOR_LANES(n, i, lane, { exp_sum_add(&high[lane], &low[lane], (REAL)x[i], &anchor.m); });
    for (int lane = 0; lane < FOLD_LANES; lane++) {
        const pair sum = exp_sum_value(high[lane], low[lane], &anchor);
        pair_combine(&partial->sum, &sum);
    }
#elif defined(EXP_QUICK)
    double sum[FOLD_LANES] = {0.0};
    (void)largest;
    FOLD_FOR_LANES(n, i, lane, {
        sum[lane] += (double)exp_quick_f32(x[i], m);
    });
    pair_add(&partial->sum, lanes_total(sum) * power_of_two(-SOFTMAX_UP_F32));
#else
    double sum[FOLD_LANES] = {0.0};
    size_t done = 0;
    (void)largest;
    for (; n - done >= 8 * FOLD_LANES; done += 8 * FOLD_LANES) {
        for (int line = 0; line < 8; line++)
            FOLD_PREFETCH(&x[done + line * FOLD_LANES] + 16384 / sizeof *x);
        FOLD_SIMD
        for (uint32_t lane = 0; lane < FOLD_LANES; lane++)
            sum[lane] += exp_8_terms_f32(&x[done + lane], FOLD_LANES, m);
    }
    FOLD_FOR_LANES(n - done, i, lane, {
        sum[lane] += exp_term_f32(x[done + i], m);
    });
    pair_add_lanes(&partial->sum, sum);
#endif
}

/* Brings the partial to the maximum of itself and a tile, whose largest element is given. False: there is nothing left to add. */
HOST_DEVICE bool NAME_FN(tile_begin)(FN(NAME) * partial, const V *x, uint32_t n, REAL largest)
{
    if ((double)largest <= partial->max && partial->max < INFINITY && partial->max > -INFINITY) /* nearly always */
        return true;
    if (largest != largest) { /* the device finds NaN here, the host finds it in the terms */
        partial->sum.high = NAN;
        return false;
    }
    const double max = partial->max > (double)largest ? partial->max : (double)largest;
    if (!is_finite(max)) {
        NAME_FN(tile_infinite)(partial, x, n, max);
        return false;
    }
    if (max > partial->max)
        NAME_FN(rescale)(partial, max);
    return true;
}

HOST_DEVICE void NAME_FN(tile_part)(FN(NAME) * partial, const V *x, uint32_t n)
{
    EXP_ORDER largest[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++)
        largest[lane] = -INFINITY;
    FOLD_FOR_LANES(n, i, lane, { largest[lane] = EXP_LARGER((EXP_ORDER)x[i], largest[lane]); });
    for (int lane = 1; lane < FOLD_LANES; lane++)
        largest[0] = largest[lane] > largest[0] ? largest[lane] : largest[0];
    if (!NAME_FN(tile_begin)(partial, x, n, largest[0]))
        return;
    const EXP_ANCHOR_TYPE anchor = EXP_ANCHOR(partial->max, EXP_RANGE);
    if (anchor.base != 0) {
        NAME_FN(terms)(partial, x, n, largest[0], &anchor);
        return;
    }
    EXP_ANCHOR_TYPE whole = anchor; /* the usual case, in which there is nothing to subtract: the compiler sees it */
    whole.base = 0;
    NAME_FN(terms)(partial, x, n, largest[0], &whole);
}

#ifdef EXP_QUICK
/* logsumexp, of a finite maximum. The sum without the term of the maximum, which is 1 relative to exp(max), to the logarithm. */
HOST_DEVICE double NAME_FN(logarithm)(double max, pair sum)
{
    const struct exp_anchor_f32 anchor = EXP_ANCHOR(max, EXP_RANGE);
    const double own = (double)exp_quick_f32((float)max, &anchor) * power_of_two(-SOFTMAX_UP_F32), others = sum.high - own + sum.low;
    return max + log_of_one_more(others * exp_of_max(max, -1.0).high);
}
#endif

/* The host works in parts of 16 KiB, which stay in the first-level cache between the two passes over them. */
HOST_DEVICE void NAME_FN(tile)(FN(NAME) * partial, const V *x, uint32_t n, uint64_t first)
{
    (void)first;
#ifdef __CUDA_ARCH__
    NAME_FN(tile_part)(partial, x, n);
#else
    const uint32_t part = 16384 / sizeof *x;
    for (uint32_t start = 0; start < n; start += part)
        NAME_FN(tile_part)(partial, x + start, n - start < part ? n - start : part);
#endif
}
#if defined(FOLD_COLUMNS) && REAL_BITS == 32
/* A lane's terms are relative to `from`, the largest of its first elements. Larger ones are so up to EXP_LANE_RISE above: an f32 holds their terms. */
#define EXP_LANE_RISE 64.0f
HOST_DEVICE void NAME_FN(lane_open)(float *from, float *least, float *shift)
{
    const bool near = fabsf(*from) <= EXP_WHOLE;
    const struct exp_anchor_f32 anchor = EXP_ANCHOR(near ? (double)*from : 0.0, EXP_RANGE);
    *from = near ? *from : NAN;
    *least = anchor.least;
    *shift = anchor.shift;
}
HOST_DEVICE double NAME_FN(lane_term)(V x, float least, float shift)
{
    const struct exp_anchor_f32 anchor = {0.0f, least, shift};
#ifdef EXP_QUICK
    return (double)exp_quick_f32(x, &anchor);
#else
    return exp_term_f32(x, &anchor);
#endif
}
HOST_DEVICE bool NAME_FN(lane_holds)(float max, float from, double sum) { return (max <= EXP_WHOLE) & (max - from < EXP_LANE_RISE) & (sum == sum); }
/* The sum, relative to the reference of max. */
HOST_DEVICE double NAME_FN(lane_sum)(float max, float shift, double sum)
{
    const float up = EXP_ANCHOR((double)max, EXP_RANGE).shift - shift;
#ifdef EXP_QUICK
    return sum * power_of_two((int)up - SOFTMAX_UP_F32);
#else
    return sum * power_of_two((int)up);
#endif
}
HOST_DEVICE bool NAME_FN(lane_settle)(FN(NAME) * partial, float max, float from, float shift, double sum)
{
    if (!NAME_FN(lane_holds)(max, from, sum))
        return false;
    const FN(NAME) other = {max, {NAME_FN(lane_sum)(max, shift, sum), 0.0}};
    NAME_FN(combine)(partial, &other);
    return true;
}
#ifdef EXP_QUICK
/* Of a lane that does not hold its elements, any number. */
HOST_DEVICE double NAME_FN(lane_result)(float max, float from, float shift, double sum)
{
    const float finite = NAME_FN(lane_holds)(max, from, sum) ? max : 0.0f;
    return NAME_FN(logarithm)((double)finite, (pair){NAME_FN(lane_sum)(finite, shift, sum), 0.0});
}
#endif
#define LANE(F) F(float, max, -INFINITY) F(float, from, -INFINITY) F(float, least, 0.0f) F(float, shift, 0.0f) F(double, sum, 0.0)
#define PEEK(lane, x) ((lane)->from = larger_f32(x, (lane)->from))
#define OPEN(lane) NAME_FN(lane_open)(&(lane)->from, &(lane)->least, &(lane)->shift)
#define STEP(lane, x) ((lane)->max = larger_f32(x, (lane)->max), (lane)->sum += NAME_FN(lane_term)(x, (lane)->least, (lane)->shift))
#define SETTLE(lane, partial, first) NAME_FN(lane_settle)(partial, (lane)->max, (lane)->from, (lane)->shift, (lane)->sum)
#ifdef EXP_QUICK
#define HOLDS(lane) NAME_FN(lane_holds)((lane)->max, (lane)->from, (lane)->sum)
#define RESULT(lane) NAME_FN(lane_result)((lane)->max, (lane)->from, (lane)->shift, (lane)->sum)
#endif
#include "fold/columns_template.h"
#endif
#undef NAME
#undef NAME_FN
#undef REAL
#undef REAL_BITS
#undef EXP_ANCHOR
#undef EXP_ANCHOR_TYPE
#undef EXP_RANGE
