/* Template of the exact sums of exponentials. NAME is the monoid. Terms are computed in f32 or f64, as REAL_BITS says. With EXP_WEIGHTED, of
   f64, the partial is a struct logits_exact (log_probs.h): terms are also added with weights, and the place of the maximum is kept. */
#if REAL_BITS == 32
#define REAL float
#define EXP_BITS uint32_t
#define EXP_PLACE uint32_t
#define EXP_PLACE_BITS f32_bits(EXP_SHIFT_F32)
#define EXP_PLACE_OF exp_place_f32
#define EXP_IS_NO_PLACE EXP_IS_NO_PLACE_F32
#define EXP_INTEGER(x, bits, found) exp_integer_f32(x, bits)
#define EXP_INTEGER_TYPE uint32_t
#define EXP_AT_LEAST_LIMIT exp_at_least_limit_f32
#else
#define REAL double
#define EXP_BITS uint64_t
#ifdef __CUDA_ARCH__ /* the low half says it all */
#define EXP_PLACE int32_t
#define EXP_PLACE_BITS 0
#else
#define EXP_PLACE uint64_t
#define EXP_PLACE_BITS (f64_bits(EXP_SHIFT_F64) >> EXP_STEP_BITS)
#endif
#define EXP_PLACE_OF exp_place_f64
#define EXP_IS_NO_PLACE EXP_IS_NO_PLACE_F64
#define EXP_INTEGER(x, bits, found) exp_integer_f64(x, bits, found, VALUE_FLOAT && VALUE_BITS == 32)
#define EXP_INTEGER_TYPE uint64_t
#define EXP_AT_LEAST_LIMIT exp_at_least_limit_f64
#endif

#ifdef EXP_WEIGHTED
#define EXP_BINS_OF(partial) (&(partial)->bins)
#define EXP_ADD_ANY(partial, x) logits_exact_add(partial, x)
#define EXP_RAISE logits_exact_raise
typedef struct logits_exact FN(NAME);
HOST_DEVICE FN(NAME) NAME_FN(identity)(void) { return logits_exact_of_nothing(); }
HOST_DEVICE void NAME_FN(combine)(FN(NAME) * a, const FN(NAME) * b) { logits_exact_combine(a, b); }
#else
#define EXP_BINS_OF(partial) (partial)
#define EXP_ADD_ANY(partial, x) exp_bins_add(partial, x, REAL_BITS == 32)
#define EXP_RAISE exp_bins_raise
typedef struct exp_bins FN(NAME);

HOST_DEVICE FN(NAME) NAME_FN(identity)(void) { return exp_bins_identity(); }

HOST_DEVICE void NAME_FN(combine)(FN(NAME) * a, const FN(NAME) * b) { exp_bins_combine(a, b); }

/* Bins are not relative to the maximum. */
HOST_DEVICE void NAME_FN(rescale)(FN(NAME) * partial, double max) { (void)partial, (void)max; }
#endif

/* Adds elements one by one. On a device, which has x in registers, elements are shifted down to x[0], so that the code for one
   exists only once. */
HOST_DEVICE void NAME_FN(each)(FN(NAME) * partial, V *x, uint32_t n)
{
    FOLD_ROLL
    for (uint32_t i = 0; i < n; i++) {
#ifdef __CUDA_ARCH__
        const V next = x[0];
        FOLD_UNROLL
        for (uint32_t j = 1; j < n; j++)
            x[j - 1] = x[j];
#else
        const V next = x[i];
#endif
        EXP_ADD_ANY(partial, (double)next);
    }
}

/* Elements that a host takes at a time: as many as 64 bits can hold a lane's sum of, 32 (f32), or 16 of less than 2^59 or 2^60. */
#define EXP_PART ((REAL_BITS == 32 ? 32 : 16) * FOLD_LANES)

/* The lanes' sums of one bin. */
#if REAL_BITS == 32
typedef struct {
    uint64_t sum[FOLD_LANES];
} NAME_FN(bin);
#define EXP_BIN_ADD(bin, lane, integer, place, here, low_bits) \
    ((bin).sum[lane] = exp_add_shifted((bin).sum[lane], integer, (uint32_t)(place), here))
#define EXP_BIN_TOTAL(bin, low_bits) ((void)(low_bits), lanes_total_u64((bin).sum))
#else
typedef struct {
    uint64_t high[FOLD_LANES], low[FOLD_LANES];
} NAME_FN(bin);
#define EXP_BIN_ADD(bin, lane, integer, place, here, low_bits)                                                                    \
    ((bin).high[lane] = exp_add_shifted((bin).high[lane], (uint32_t)((integer) >> (low_bits)), (uint32_t)(place), here),           \
     (bin).low[lane] = exp_add_shifted((bin).low[lane], (uint32_t)(integer) & (UINT32_MAX >> (32 - (low_bits))), (uint32_t)(place), here))
#define EXP_BIN_TOTAL(bin, low_bits) ((lanes_total_u64((bin).high) << (low_bits)) + lanes_total_u64((bin).low))
#endif

/* Adds to one of the `count` bins. Of two: both to the first, of which one is taken away. */
#define EXP_BINS_ADD(bins, lane, integer, place, below, count, low_bits)                        \
    do {                                                                                        \
        EXP_BIN_ADD((bins)[0], lane, integer, place, (count) <= 2 || (below) == 0, low_bits);   \
        if ((count) > 1)                                                                        \
            EXP_BIN_ADD((bins)[1], lane, integer, place, (below) == 1, low_bits);               \
        if ((count) > 2) {                                                                      \
            EXP_BIN_ADD((bins)[2], lane, integer, place, (below) == 2, low_bits);               \
            EXP_BIN_ADD((bins)[3], lane, integer, place, (below) == 3, low_bits);               \
        }                                                                                       \
    } while (0)
#ifdef EXP_WEIGHTED
#define EXP_WEIGHTS_ADD(lane, element, integer, place, below, count, low_bits)                  \
    do {                                                                                        \
        const int32_t bin = (int32_t)first - ((count) == 1 ? 0 : (int32_t)(below));             \
        const uint64_t weight = exp_weight_near(element, integer, exp_distance_shift(bin));     \
        EXP_BINS_ADD(weights, lane, weight, place, below, count, low_bits);                     \
    } while (0)
#else
#define EXP_WEIGHTS_ADD(lane, element, integer, place, below, count, low_bits) (void)0
#endif

/* Adds the lanes' sums of the `count` bins from `first` downwards. Of two, the first has the second's, too. */
HOST_DEVICE void NAME_FN(settle)(struct exp_bins *sums, const NAME_FN(bin) * bins, int64_t first, const int count, const int low_bits)
{
    const int64_t lower = sums->bin - first;
    FOLD_UNROLL
    for (int i = 0; i < count; i++) {
        const uint128 total = EXP_BIN_TOTAL(bins[i], low_bits) - (count == 2 && i == 0 ? EXP_BIN_TOTAL(bins[1], low_bits) : 0);
        if (lower == 0)
            sums->sums[i] += total;
        else
            exp_bins_take(sums, i + lower, total);
    }
}

/* Adds the terms of elements up to EXP_LIMIT, none larger than the partial's maximum, to the `count` bins from `first` downwards.
   If count is one or two, all elements are in these bins, and none is below -EXP_LIMIT. low_bits: of the lower part of M, in f64; 32 where no place is
   among the last four of its bin. */
HOST_DEVICE void NAME_FN(terms)(FN(NAME) * partial, const V *x, uint32_t n, int64_t first, const int count, const int low_bits)
{
    NAME_FN(bin) bins[EXP_BINS];
    EXP_BITS all_bits[FOLD_LANES] = {0};
    const EXP_PLACE top = (EXP_PLACE)(EXP_PLACE_BITS >> 5) + (EXP_PLACE)first;
    memset(bins, 0, (size_t)count * sizeof *bins);
#ifdef EXP_WEIGHTED
    NAME_FN(bin) weights[EXP_BINS];
    memset(weights, 0, (size_t)count * sizeof *weights);
#endif
#define EXP_ELEMENT(i) (count <= 2 ? (REAL)x[i] : EXP_AT_LEAST_LIMIT((REAL)x[i]))
#if defined(__CUDA_ARCH__) || REAL_BITS == 32
#define EXP_FOUND(i) NULL
#else /* one by one, so that the other loops are made of vectors */
#define EXP_FOUND(i) &found[i]
    uint64_t found[EXP_PART];
    FOLD_FOR_LANES(n, i, lane, {
        double d;
        exp_steps_f64(EXP_ELEMENT(i), &d, &found[i]);
    });
    for (uint32_t i = 0; i < n; i++)
        found[i] = EXP_POWER(found[i] % EXP_STEPS);
#endif
    FOLD_FOR_LANES(n, i, lane, {
        EXP_BITS bits;
        const REAL element = EXP_ELEMENT(i);
        const EXP_INTEGER_TYPE integer = EXP_INTEGER(element, &bits, EXP_FOUND(i));
        const EXP_PLACE place = (EXP_PLACE)bits >> (REAL_BITS == 64 ? EXP_STEP_BITS : 0), below = top - (place >> 5);
        all_bits[lane] |= bits;
        EXP_BINS_ADD(bins, lane, integer, place, below, count, low_bits);
        EXP_WEIGHTS_ADD(lane, element, integer, place, below, count, low_bits);
    });
    EXP_BITS all = 0;
    for (int lane = 0; lane < FOLD_LANES; lane++)
        all |= all_bits[lane];
    if (EXP_IS_NO_PLACE(all))
        EXP_BINS_OF(partial)->nan = 1;
    NAME_FN(settle)(EXP_BINS_OF(partial), bins, first, count, low_bits);
#ifdef EXP_WEIGHTED
    NAME_FN(settle)(&partial->weights, weights, first, count, low_bits);
#endif
}
#undef EXP_ELEMENT
#undef EXP_FOUND
#undef EXP_BIN_ADD
#undef EXP_BIN_TOTAL
#undef EXP_BINS_ADD
#undef EXP_WEIGHTS_ADD

HOST_DEVICE int64_t NAME_FN(place_of)(REAL x)
{
    EXP_BITS bits;
    EXP_INTEGER(x, &bits, NULL);
    return EXP_PLACE_OF(bits);
}
HOST_DEVICE int64_t NAME_FN(bin_of)(REAL x) { return NAME_FN(place_of)(x) >> 5; }

#ifdef EXP_WEIGHTED
/* Keeps the place of a tile's first NaN, or of its maximum, if that is new. */
HOST_DEVICE void NAME_FN(keep_place)(FN(NAME) * partial, const V *x, uint32_t n, V largest, uint64_t first)
{
#if defined(__CUDA_ARCH__) && VALUE_BITS == 32
    const bool nan = largest != largest; /* larger_f32 passes NaN on */
#else
    const bool nan = FN(logits_have_nan)(x, n);
#endif
    if (partial->bins.nan == 0 && (nan || (double)largest > partial->bins.max))
        partial->index = first + FN(logits_place)(x, n, nan, largest);
}
#endif

/* Whether x is true for all active threads of the warp, so that they go the same way; else they would go one way after the other. On the host, x. */
#if defined(__NVCC__) && defined(__CUDA_ARCH__)
#define EXP_ALL_THREADS(x) (__ballot_sync(__activemask(), !(x)) == 0)
#else
#define EXP_ALL_THREADS(x) (x)
#endif

HOST_DEVICE void NAME_FN(tile_part)(FN(NAME) * partial, const V *x, uint32_t n, uint64_t index)
{
    struct exp_bins *const bins = EXP_BINS_OF(partial);
    EXP_ORDER largest[FOLD_LANES], smallest[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++) {
        largest[lane] = -INFINITY;
        smallest[lane] = INFINITY;
    }
    FOLD_FOR_LANES(n, i, lane, {
        largest[lane] = EXP_LARGER((EXP_ORDER)x[i], largest[lane]);
        smallest[lane] = EXP_SMALLER((EXP_ORDER)x[i], smallest[lane]);
    });
    for (int half = FOLD_LANES / 2; half > 0; half /= 2)
        for (int lane = 0; lane < half; lane++) {
            largest[lane] = EXP_LARGER(largest[lane + half], largest[lane]);
            smallest[lane] = EXP_SMALLER(smallest[lane + half], smallest[lane]);
        }
    const double max = (double)largest[0];
#ifdef EXP_WEIGHTED
    NAME_FN(keep_place)(partial, x, n, (V)largest[0], index);
#else
    (void)index;
#endif
    if (bins->max > max + EXP_BINS_RANGE) { /* no element counts, except NaN */
        bool nan = false;
        FOLD_UNROLL
        for (uint32_t i = 0; i < n; i++)
            nan |= FN(is_nan)(x[i]);
        bins->nan |= nan;
        return;
    }
    if (!(max >= EXP_BINS_RANGE - EXP_LIMIT && max <= EXP_LIMIT) || bins->max > EXP_LIMIT) {
        NAME_FN(each)(partial, (V *)x, n); /* the last use of x */
        return;
    }
    const int64_t place = NAME_FN(place_of)(largest[0]), bin = place >> 5;
    if (max > bins->max)
        EXP_RAISE(partial, max, bin);
    const int64_t range = smallest[0] >= -EXP_LIMIT ? bin - NAME_FN(bin_of)(smallest[0]) : (int64_t)EXP_BINS;
#ifdef __CUDA_ARCH__ /* of at most 16 elements in f64 */
    const bool low_places = REAL_BITS == 32 || (place & 31) < 28;
    const int low_bits = 32;
#else
    const bool low_places = true;
    const int low_bits = EXP_LOW_BITS;
#endif
    if (EXP_ALL_THREADS(range == 0 && low_places))
        NAME_FN(terms)(partial, x, n, bin, 1, low_bits);
    else if (EXP_ALL_THREADS(range <= 1))
        NAME_FN(terms)(partial, x, n, bin, 2, EXP_LOW_BITS);
    else
        NAME_FN(terms)(partial, x, n, bin, EXP_BINS, EXP_LOW_BITS);
}

HOST_DEVICE void NAME_FN(tile)(FN(NAME) * partial, const V *x, uint32_t n, uint64_t first)
{
#ifdef __CUDA_ARCH__
    NAME_FN(tile_part)(partial, x, n, first);
#else
    for (uint32_t start = 0; start < n; start += EXP_PART)
        NAME_FN(tile_part)(partial, x + start, n - start < EXP_PART ? n - start : EXP_PART, first + start);
    exp_bins_settle(EXP_BINS_OF(partial));
#endif
}
#undef NAME
#undef NAME_FN
#undef REAL
#undef REAL_BITS
#undef EXP_PART
#undef EXP_BITS
#undef EXP_PLACE
#undef EXP_PLACE_BITS
#undef EXP_PLACE_OF
#undef EXP_IS_NO_PLACE
#undef EXP_INTEGER
#undef EXP_AT_LEAST_LIMIT
#undef EXP_INTEGER_TYPE
#undef EXP_BINS_OF
#undef EXP_ADD_ANY
#undef EXP_RAISE
#undef EXP_ALL_THREADS
