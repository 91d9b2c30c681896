/* Folds of logits: the sum of exponentials, with what entropy, argmax and log-probabilities need besides. log_probs.h has the partials, and what
   becomes of them. */
#if VALUE_FLOAT
HOST_DEVICE bool FN(logits_have_nan)(const V *x, uint32_t n)
{
    uint32_t nan = 0;
    for (uint32_t i = 0; i < n; i++)
        nan |= FN(is_nan)(x[i]);
    return nan != 0;
}
/* The first place of a NaN, or of an element. A device keeps x in registers, so there is no break. */
HOST_DEVICE uint32_t FN(logits_place)(const V *x, uint32_t n, bool nan, V element)
{
    uint32_t place = n;
    if (nan) {
        for (uint32_t i = n; i-- > 0;)
            place = FN(is_nan)(x[i]) ? i : place;
        return place;
    }
    for (uint32_t i = n; i-- > 0;)
        place = x[i] == element ? i : place;
    return place;
}

/* ---- level fast */

typedef struct logits FN(logits);
HOST_DEVICE FN(logits) FN(logits_identity)(void) { return logits_of_nothing(); }
HOST_DEVICE void FN(logits_combine)(FN(logits) * a, const FN(logits) * b) { logits_combine(a, b); }
HOST_DEVICE int FN(logits_indices)(FN(logits) * partial, uint64_t *indices[])
{
    indices[0] = &partial->index;
    return 1;
}

/* Terms are exp(x - max), up by 2^LOGITS_UP. x - max is rounded, which puts a term off by (max - x) / 2 units in the last place: little, where
   terms count. */
#if VALUE_BITS == 32
#define LOGITS_UP SOFTMAX_UP_F32
#define LOGITS_FAR 200.0f /* a term this far below is 0, whatever its weight */
#define LOGITS_ANCHOR struct exp_anchor_f32
#else
#define LOGITS_UP 0
#define LOGITS_FAR 1000.0
#define LOGITS_ANCHOR struct exp_anchor_f64
#endif
HOST_DEVICE V FN(logits_term)(V x, const LOGITS_ANCHOR *m)
{
#if VALUE_BITS == 32
    return exp_quick_f32(x, m);
#else
    const struct exp_parts_f64 parts = exp_reduce_f64(exp_clamp_f64(x, m), m, 0);
    return fma(parts.scale, parts.d + exp_low_f64(parts.d, parts.n * -EXP_LN2_REST), parts.scale);
#endif
}

HOST_DEVICE void FN(logits_terms)(FN(logits) * partial, const V *x, uint32_t n)
{
    double sum[FOLD_LANES] = {0.0}, weighted[FOLD_LANES] = {0.0};
    const V max = (V)partial->max;
#if VALUE_BITS == 32
    struct exp_anchor_f32 anchor = exp_anchor_f32(0.0, SOFTMAX_RANGE_F32);
#else
    struct exp_anchor_f64 anchor = exp_anchor_f64(0.0, EXP_TERM_RANGE_F64);
#endif
    anchor.base = max;
    FOLD_FOR_LANES(n, i, lane, {
        const V term = FN(logits_term)(x[i], &anchor);
        const V below = max - x[i];
        sum[lane] += (double)term;
        weighted[lane] += (double)(term * (below < LOGITS_FAR ? below : 0));
    });
    for (int lane = 1; lane < FOLD_LANES; lane++) {
        sum[0] += sum[lane];
        weighted[0] += weighted[lane];
    }
    partial->sum += sum[0] * power_of_two(-LOGITS_UP);
    partial->weighted += weighted[0] * power_of_two(-LOGITS_UP);
}

HOST_DEVICE void FN(logits_tile_part)(FN(logits) * partial, const V *x, uint32_t n, uint64_t first)
{
    V largest[FOLD_LANES];
    const bool nan = FN(logits_have_nan)(x, n);
    for (int lane = 0; lane < FOLD_LANES; lane++)
        largest[lane] = -INFINITY;
    FOLD_FOR_LANES(n, i, lane, { largest[lane] = x[i] > largest[lane] ? x[i] : largest[lane]; });
    for (int lane = 1; lane < FOLD_LANES; lane++)
        largest[0] = largest[lane] > largest[0] ? largest[lane] : largest[0];
    if (partial->sum != partial->sum)
        return;
    if (nan || (double)largest[0] > partial->max) {
        if (nan)
            partial->sum = NAN;
        else
            logits_rescale(partial, (double)largest[0]);
        partial->index = first + FN(logits_place)(x, n, nan, largest[0]);
    }
    if (partial->sum == partial->sum && is_finite(partial->max))
        FN(logits_terms)(partial, x, n);
}

/* The host works in parts of 16 KiB, which stay in the first-level cache between the passes over them. */
HOST_DEVICE void FN(logits_tile)(FN(logits) * partial, const V *x, uint32_t n, uint64_t first)
{
#ifdef __CUDA_ARCH__
    FN(logits_tile_part)(partial, x, n, first);
#else
    const uint32_t part = 16384 / sizeof *x;
    for (uint32_t start = 0; start < n; start += part)
        FN(logits_tile_part)(partial, x + start, n - start < part ? n - start : part, first + start);
#endif
}
#undef LOGITS_UP
#undef LOGITS_FAR
#undef LOGITS_ANCHOR

/* ---- level exact */

#define NAME logits_exact
#define NAME_FN(x) FN(logits_exact_##x)
#define REAL_BITS 64
#define EXP_WEIGHTED
#if VALUE_BITS == 32
#define EXP_ORDER float
#define EXP_LARGER larger_f32
#define EXP_SMALLER smaller_f32
#else
#define EXP_ORDER double
#define EXP_LARGER larger_f64
#define EXP_SMALLER smaller_f64
#endif
#include "fold/sumexp_exact_template.h"
#undef EXP_WEIGHTED
#undef EXP_ORDER
#undef EXP_LARGER
#undef EXP_SMALLER
HOST_DEVICE int FN(logits_exact_indices)(FN(logits_exact) * partial, uint64_t *indices[])
{
    indices[0] = &partial->index;
    return 1;
}

#ifdef FOLD_FINISH
/* In the order of the results: log_prob, logsumexp, entropy, and the largest with its index. Of a row of nothing but -inf it is the first. */
FOLD_FINISH allfold_status FN(log_probs_results)(const struct logits_found *found, uint64_t mark, uint64_t index, const struct finish *finish)
{
    if (mark == MARK_OUT_OF_RANGE && finish->count == 0)
        return finish_refuse(finish, ALLFOLD_BAD_ARGUMENT,
                             "its target is no index along the axis, which has no elements: expected the number that is ignored");
    if (mark == MARK_OUT_OF_RANGE)
        return finish_refuse(finish, ALLFOLD_BAD_ARGUMENT,
                             "its target is no index along the axis: expected 0 to %" PRIu64 ", or the number that is ignored", finish->count - 1);
    double lost;
    const double sum = two_sum(found->max, found->log.high, &lost);
    const double values[] = {logits_log_prob(found, mark), is_finite(sum) ? sum + (lost + found->log.low) : found->max + found->log.high,
                             logits_entropy(found), found->max};
    for (int which = 0; which < 4; which++) {
        result_f64(finish, values[which]);
        result_last(finish)->which = which;
    }
    result_last(finish)->index = index == ALLFOLD_NO_INDEX && finish->count > 0 ? 0 : index;
    return ALLFOLD_OK;
}
FOLD_FINISH allfold_status FN(log_probs_finish)(const FN(logits) * partial, const struct finish *finish)
{
    const struct logits_found found = logits_found(partial);
    return FN(log_probs_results)(&found, partial->target, partial->index, finish);
}
FOLD_FINISH allfold_status FN(log_probs_exact_finish)(const FN(logits_exact) * partial, const struct finish *finish)
{
    const struct logits_found found = logits_exact_found(partial);
    return FN(log_probs_results)(&found, partial->target, partial->index, finish);
}
#endif
#elif defined(FOLD_FINISH)
FOLD_FINISH allfold_status FN(log_probs_finish)(const void *partial, const struct finish *finish)
{
    (void)partial;
    return finish_refuse(finish, ALLFOLD_UNSUPPORTED, "logits are floating-point numbers");
}
#endif
