/* What folds of logits find, and results make of it: log-probabilities, logsumexp, entropy, argmax. The monoids are in logits.h. A row's
   entropy is log S + W / S, S the sum of exp(x - m) and W that of (m - x) exp(x - m), m the largest: no term is negative, so nothing cancels.
   Bounds: docs/numerics.md. */
#pragma once

#include "fold/exact_exponential.h"
#include "fold/softmax_constants.h"

/* Level fast: sums relative to exp(max). */
struct logits {
    double max; /* -inf until an element above -inf was taken; never NaN */
    double sum, weighted; /* of exp(x - max), NaN once a NaN was taken; of (max - x) exp(x - max). Of no use if max is infinite */
    uint64_t index; /* of the first that is the largest, above -inf, or, once a NaN was taken, of the first NaN; else ALLFOLD_NO_INDEX */
    uint64_t target; /* a mark: below */
};

/* Level exact: the exact sum of exponentials, and that of weights, in bins of the same places. The weight of an element is its term times its
   distance from the bin: exp_weight. */
struct logits_exact {
    struct exp_bins bins, weights;
    uint64_t index, target;
};

/* ---- marks: what a partial knows of its row's target. Of two, the larger counts */

#define MARK_NONE UINT64_C(0)            /* the target is not among the elements */
#define MARK_OUT_OF_RANGE (~UINT64_C(1)) /* it is no index along the axis */
#define MARK_IGNORED (~UINT64_C(0))
/* Else it is the bits of the target's logit + 1, of which NaN has one sign. */
HOST_DEVICE uint64_t mark_of(double x) { return (x != x ? UINT64_C(0x7ff8) << 48 : f64_bits(x)) + 1; }
HOST_DEVICE double mark_logit(uint64_t mark) { return mark == MARK_NONE ? (double)NAN : f64_from_bits(mark - 1); }
HOST_DEVICE void mark_combine(uint64_t *a, uint64_t b) { *a = b > *a ? b : *a; }

/* The place of a row's target among `length` elements that begin at index `first` along an axis of `whole`; else the mark that says why it has
   none. */
HOST_DEVICE bool mark_place(int64_t target, int64_t ignore, uint64_t whole, uint64_t first, uint64_t length, uint64_t *place, uint64_t *mark)
{
    *place = (uint64_t)target - first;
    *mark = target == ignore ? MARK_IGNORED : target < 0 || (uint64_t)target >= whole ? MARK_OUT_OF_RANGE : MARK_NONE;
    return *mark == MARK_NONE && (uint64_t)target >= first && *place < length;
}

/* ---- level fast */

/* Brings the sums to a new, larger maximum. */
HOST_DEVICE void logits_rescale(struct logits *partial, double max)
{
    if (partial->max == max)
        return;
    const double factor = partial->max == -INFINITY || max == INFINITY ? 0.0 : exp_pair(partial->max, max).high;
    partial->weighted = factor > 0.0 ? factor * (partial->weighted + (max - partial->max) * partial->sum) : 0.0;
    partial->sum *= factor;
    partial->max = max;
}

HOST_DEVICE struct logits logits_of_nothing(void)
{
    struct logits partial;
    partial.max = -INFINITY;
    partial.sum = partial.weighted = 0.0;
    partial.index = ALLFOLD_NO_INDEX;
    partial.target = MARK_NONE;
    return partial;
}

/* The index of two parts: where NaN is, that of the first NaN, else that of the first of the largest. */
HOST_DEVICE void logits_index(uint64_t *index, bool nan, double max, uint64_t other, bool other_nan, double other_max)
{
    const bool equal = nan == other_nan && (nan || max == other_max);
    if (equal ? other < *index : nan == other_nan ? other_max > max : other_nan)
        *index = other;
}

HOST_DEVICE void logits_combine(struct logits *a, const struct logits *b)
{
    struct logits other = *b;
    const double max = a->max > other.max ? a->max : other.max;
    logits_index(&a->index, a->sum != a->sum, a->max, other.index, other.sum != other.sum, other.max);
    logits_rescale(a, max);
    logits_rescale(&other, max);
    a->sum += other.sum;
    a->weighted += other.weighted;
    mark_combine(&a->target, other.target);
}

/* ---- level exact */

/* The weight of a term: the term times the element's distance from where its bin begins and 1/2, which makes it positive, in units of 2^-26, rounded
   down. Below 2^32. distance: in units of 2^-27. */
HOST_DEVICE uint32_t exp_weight(uint64_t term, uint32_t distance) { return (uint32_t)((uint64_t)(uint32_t)(term >> 24) * distance >> 32); }
#define EXP_WEIGHT_UNITS 29 /* weights have this number of bits fewer than terms */

/* Of |x| <= EXP_LIMIT: x + this, which is rounded, has the distance in its low bits. */
HOST_DEVICE double exp_distance_shift(int32_t bin) { return fma((double)bin, -32 * EXP_LN2, 0x1.8p25 + 0.5 + EXP_OFFSET * EXP_LN2); }
HOST_DEVICE uint32_t exp_weight_near(double x, uint64_t term, double shift) { return exp_weight(term, (uint32_t)f64_bits(x + shift)); }

/* A finite element's weight and term. Far from 0 the distance is k ln 2 / 64 + d. */
HOST_DEVICE uint32_t exp_weight_any(double x, struct exp_term *term)
{
    *term = exp_term_any(x);
    if (fabs(x) <= EXP_LIMIT)
        return exp_weight_near(x, term->integer, exp_distance_shift((int32_t)(term->place >> 5)));
    const uint32_t k = ((uint32_t)term->place & 31) * EXP_STEPS + term->step;
    const uint32_t whole = (uint32_t)((uint64_t)k * 2977044472u >> (5 + EXP_STEP_BITS)); /* ln 2 2^32 */
    return exp_weight(term->integer, whole + (uint32_t)f64_bits(term->d + (0x1.8p25 + 0.5)));
}

HOST_DEVICE void logits_exact_raise(struct logits_exact *partial, double max, int64_t bin)
{
    exp_bins_raise(&partial->bins, max, bin);
    exp_bins_raise(&partial->weights, max, bin);
}

/* Adds one element, whatever it is. */
HOST_DEVICE void logits_exact_add(struct logits_exact *partial, double x)
{
    struct exp_bins *const bins = &partial->bins;
    struct exp_term term;
    exp_bins_add(bins, x, false);
    if (x == x)
        exp_bins_raise(&partial->weights, bins->max, bins->bin);
    if (x != x || !is_finite(x) || (fabs(bins->max) >= EXP_HUGE && x != bins->max))
        return;
    const uint128 weight = exp_weight_any(x, &term);
    exp_bins_take(&partial->weights, bins->bin - (term.place >> 5), weight << (term.place & 31));
}

HOST_DEVICE struct logits_exact logits_exact_of_nothing(void)
{
    struct logits_exact partial;
    partial.bins = partial.weights = exp_bins_identity();
    partial.index = ALLFOLD_NO_INDEX;
    partial.target = MARK_NONE;
    return partial;
}

HOST_DEVICE void logits_exact_combine(struct logits_exact *a, const struct logits_exact *b)
{
    logits_index(&a->index, a->bins.nan != 0, a->bins.max, b->index, b->bins.nan != 0, b->bins.max);
    exp_bins_combine(&a->bins, &b->bins);
    exp_bins_combine(&a->weights, &b->weights);
    mark_combine(&a->target, b->target);
}

/* ---- what follows from a row's partial */

struct logits_found {
    double max; /* NaN: the row has a NaN */
    pair log;   /* of the sum of exp(x - max); NaN as max is */
    double mean_distance; /* W / S; NaN if there is none */
};

HOST_DEVICE double bin_value(uint128 sum)
{
    double value = 0.0;
    for (int part = 4; part-- > 0;)
        value = value * 0x1p32 + (double)(uint32_t)(sum >> 32 * part);
    return value;
}

/* W / S of exact sums, in units of the largest bin's. The own term of the largest element is taken out of both sums, and its distance is what
   its weight says, so that elements that equal it have none. */
HOST_DEVICE double logits_mean_distance(const struct logits_exact *partial)
{
    struct exp_term term;
    const uint128 own_weight = exp_weight_any(partial->bins.max, &term), own = term.integer;
    const double largest = bin_value(own_weight << EXP_WEIGHT_UNITS) / bin_value(own);
    double weighted = 0.0, total = 0.0, unit = 1.0;
    for (int i = 0; i < EXP_BINS; i++, unit *= 0x1p-32) {
        const int shift = (int)(term.place & 31);
        const double others = bin_value(partial->bins.sums[i] - (i == 0 ? own << shift : 0));
        const double weights = bin_value(partial->weights.sums[i] - (i == 0 ? own_weight << shift : 0)) * (1 << EXP_WEIGHT_UNITS);
        weighted += fma(largest + 32 * i * EXP_LN2, others, -weights) * unit;
        total += (others + (i == 0 ? bin_value(own << shift) : 0.0)) * unit;
    }
    return weighted > 0.0 ? weighted / total : 0.0;
}

HOST_DEVICE struct logits_found logits_exact_found(const struct logits_exact *partial)
{
    struct logits_found found;
    const bool nan = partial->bins.nan != 0;
    found.max = nan ? (double)NAN : partial->bins.max;
    found.log = log_of_others(partial->bins.max, exp_bins_others(&partial->bins, false));
    found.mean_distance = nan || !is_finite(found.max) ? (double)NAN : logits_mean_distance(partial);
    return found;
}

HOST_DEVICE struct logits_found logits_found(const struct logits *partial)
{
    struct logits_found found;
    const bool nan = partial->sum != partial->sum, finite = !nan && is_finite(partial->max);
    pair sum;
    sum.high = finite ? 1.0 : nan ? (double)NAN : 0.0;
    sum.low = 0.0;
    if (finite)
        sum.high = two_sum(1.0, partial->sum - 1.0, &sum.low);
    found.max = nan ? (double)NAN : partial->max;
#ifdef __CUDA_ARCH__ /* a row is finished by one thread */
    sum.high = finite ? log(partial->sum) : sum.high;
    sum.low = 0.0;
    found.log = sum;
#else
    found.log = finite ? log_pair(sum) : sum;
#endif
    found.mean_distance = finite ? partial->weighted / partial->sum : (double)NAN;
    return found;
}

/* The results: as log-softmax, logsumexp, and the entropy of softmax. */
HOST_DEVICE double logits_log_prob(const struct logits_found *found, uint64_t mark)
{
    struct softmax_constants c;
    c.max = is_finite(found->max) ? found->max : (double)NAN;
    c.log_sum = found->log.high;
    c.log_low = found->log.low;
    return mark == MARK_IGNORED ? 0.0 : log_softmax_f64(mark_logit(mark), &c);
}
HOST_DEVICE double logits_entropy(const struct logits_found *found)
{
    return is_finite(found->max) ? found->log.high + found->mean_distance : (double)NAN;
}

/* ---- the gradient */

enum { SCALE_POWER_MOST = 60 };
/* Constants with which softmax's second pass gives scale * exp(x - logsumexp). What is below its range it takes for the range's end, which
   rounds to 0 as long as the factor is at most 1: so the power of two in a larger scale goes to the exponent. */
HOST_DEVICE void softmax_constants_scaled(double logsumexp, double scale, bool of_f64, struct softmax_constants *c)
{
    /* f32 arithmetic has `near` without rounding; elements of f32 are as near to it as to logsumexp, those of f64 need not be */
    const double down = power_of_two(-SOFTMAX_UP_F64), near = !of_f64 && is_finite((float)logsumexp) ? (double)(float)logsumexp : logsumexp;
    int power = 0;
    if (is_finite(scale))
        frexp(scale, &power);
    power = power < 0 ? 0 : power > SCALE_POWER_MOST ? SCALE_POWER_MOST : power;
    scale *= power_of_two(-power);
    pair inverse;
    inverse.high = inverse.low = (double)NAN;
    if (is_finite(logsumexp))
        inverse = exp_pairs_multiply(exp_of_max(near, -1.0), exp_pair(near, logsumexp));
    c->max = is_finite(logsumexp) ? near : (double)NAN;
    c->inverse_high = inverse.high * scale;
    c->inverse_low = (fma(inverse.high, scale, -c->inverse_high) + inverse.low * scale) * down;
    c->inverse_high *= down;
    c->log_sum = logsumexp - near - log(fabs(scale)) - power * EXP_LN2; /* as level fast takes it, of 16 bits */
    c->log_low = 0.0;
    softmax_constants_derive(c);
    c->anchor.least -= power * EXP_LN2;
    c->anchor.bias += (uint64_t)power << 52;
    c->anchor_f32.least -= (float)power * EXP_LN2_F32;
    c->anchor_f32.shift += (float)power;
}

/* scale * (exp(x - logsumexp) - 1): at the target. */
HOST_DEVICE double logits_slope_at(double x, double logsumexp, double scale)
{
    if (!is_finite(logsumexp) || x != x || x == INFINITY)
        return (double)NAN;
    const pair power = exp_pair(x, logsumexp);
    return scale * ((power.high - 1.0) + power.low);
}
