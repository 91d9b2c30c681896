/* Template of the (max, sum of exponentials) monoids: NAME, REAL the type of a term, of REAL_BITS, EXP_TERM its
   exponential relative to a base. */
typedef struct {
    double max; /* -inf while nothing, or nothing but -inf, was taken; never NaN */
    pair sum;   /* of exp(x - max); NaN once a NaN was taken; where max is +inf, the count of +inf */
} FN(NAME);

HOST_DEVICE FN(NAME) NAME_FN(identity)(void)
{
    FN(NAME) partial;
    partial.max = -INFINITY;
    partial.sum.high = partial.sum.low = 0.0;
    return partial;
}

/* Brings the sum to a new, larger maximum. exp(-inf) is 0 here, so an empty partial adds nothing, exactly; and equal
   maxima, the two -inf included, never meet a subtraction. */
HOST_DEVICE void NAME_FN(rescale)(FN(NAME) * partial, double max)
{
    if (partial->max == max)
        return;
    const double scale = partial->max == -INFINITY || max == INFINITY ? 0.0 : exp_term_f64(partial->max - max);
    const double high = partial->sum.high * scale;
    partial->sum.low = partial->sum.low * scale + fma(partial->sum.high, scale, -high);
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

/* A tile whose maximum is infinite: +inf counts 1, -inf and all finite elements nothing, NaN is NaN. */
HOST_DEVICE void NAME_FN(tile_infinite)(FN(NAME) * partial, const V *x, uint32_t n, double max)
{
    double count = 0.0;
    for (uint32_t i = 0; i < n; i++)
        count += FN(is_nan)(x[i]) ? NAN : (double)x[i] == INFINITY ? 1.0 : 0.0;
    NAME_FN(rescale)(partial, max);
    pair_add(&partial->sum, count);
}

HOST_DEVICE void NAME_FN(tile_part)(FN(NAME) * partial, const V *x, uint32_t n)
{
    REAL lane_max[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++)
        lane_max[lane] = -INFINITY;
    FOLD_FOR_LANES(n, i, lane, { lane_max[lane] = (REAL)x[i] > lane_max[lane] ? (REAL)x[i] : lane_max[lane]; });
    for (int lane = 1; lane < FOLD_LANES; lane++)
        lane_max[0] = lane_max[lane] > lane_max[0] ? lane_max[lane] : lane_max[0];
    double max = (double)lane_max[0];
    max = partial->max > max ? partial->max : max;
    if (!is_finite(max)) {
        NAME_FN(tile_infinite)(partial, x, n, max);
        return;
    }
    if (max > partial->max)
        NAME_FN(rescale)(partial, max);
    const REAL base = (REAL)max;
    double sum[FOLD_LANES] = {0.0};
#if REAL_BITS == 64
    /* equal terms would all be rounded the same way: what is lost must be kept */
    double lost[FOLD_LANES] = {0.0};
    FOLD_FOR_LANES(n, i, lane, {
        double error;
        sum[lane] = two_sum(sum[lane], EXP_TERM((REAL)x[i], base), &error);
        lost[lane] += error;
    });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        partial->sum.low += lost[lane];
#else
    FOLD_FOR_LANES(n, i, lane, { sum[lane] += (double)EXP_TERM((REAL)x[i], base); });
#endif
    for (int lane = 0; lane < FOLD_LANES; lane++)
        pair_add(&partial->sum, sum[lane]);
}

/* On the host in parts that stay in the first-level cache between the two looks at them: 16 KiB. */
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
#undef NAME
#undef NAME_FN
#undef REAL
#undef REAL_BITS
#undef EXP_TERM
