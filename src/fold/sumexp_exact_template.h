/* Template of the exact sums of exponentials: NAME, and REAL, of REAL_BITS, the type in which terms are computed. */
typedef struct exp_bins FN(NAME);

HOST_DEVICE FN(NAME) NAME_FN(identity)(void) { return exp_bins_identity(); }

HOST_DEVICE void NAME_FN(combine)(FN(NAME) * a, const FN(NAME) * b) { exp_bins_combine(a, b); }

/* Adds elements one by one. */
HOST_DEVICE_APART void NAME_FN(singly)(FN(NAME) * partial, double x) { exp_bins_add(partial, x, REAL_BITS == 32); }
HOST_DEVICE void NAME_FN(each)(FN(NAME) * partial, const V *x, uint32_t n)
{
    FN(NAME) copy = *partial; /* which may be in memory while the partial is in registers */
    FOLD_UNROLL
    for (uint32_t i = 0; i < n; i++)
        NAME_FN(singly)(&copy, (double)x[i]);
    *partial = copy;
}

/* Adds the terms of a tile, all of whose elements above -EXP_LIMIT are up to EXP_LIMIT, and none larger than the partial's
   maximum. */
HOST_DEVICE void NAME_FN(terms)(FN(NAME) * partial, const V *x, uint32_t n)
{
    EXP_PLACE no_place[FOLD_LANES] = {0};
    const EXP_PLACE top = (EXP_PLACE)(EXP_PLACE_BITS >> 5) + (EXP_PLACE)partial->bin;
#if REAL_BITS == 32
    uint64_t sums[EXP_BINS][FOLD_LANES] = {{0}};
    FOLD_FOR_LANES(n, i, lane, {
        uint32_t place;
        const uint32_t integer = exp_integer_f32(at_least_f32((float)x[i], -EXP_LIMIT), &place);
        const uint32_t power = 1u << (place & 31);
        no_place[lane] |= place;
        for (uint32_t bin = 0; bin < EXP_BINS; bin++)
            exp_bin_add(&sums[bin][lane], place >> 5 == top - bin, integer, power);
    });
    for (int bin = 0; bin < EXP_BINS; bin++)
        for (int lane = 0; lane < FOLD_LANES; lane++)
            partial->sums[bin] += sums[bin][lane];
#else
    uint64_t high[EXP_BINS][FOLD_LANES] = {{0}}, low[EXP_BINS][FOLD_LANES] = {{0}};
    FOLD_FOR_LANES(n, i, lane, {
        uint64_t place;
        const double u = (double)x[i] < -EXP_LIMIT ? -EXP_LIMIT : (double)x[i];
        const struct exp_integer integer = exp_integer_f64(u, &place);
        const uint32_t power = 1u << (place & 31);
        no_place[lane] |= place;
        for (uint32_t bin = 0; bin < EXP_BINS; bin++) {
            exp_bin_add(&high[bin][lane], place >> 5 == top - bin, integer.high, power);
            exp_bin_add(&low[bin][lane], place >> 5 == top - bin, integer.low, power);
        }
    });
    for (int bin = 0; bin < EXP_BINS; bin++)
        for (int lane = 0; lane < FOLD_LANES; lane++)
            partial->sums[bin] += ((uint128)high[bin][lane] << EXP_LOW_BITS) + low[bin][lane];
#endif
    for (int lane = 1; lane < FOLD_LANES; lane++)
        no_place[0] |= no_place[lane];
    if (EXP_IS_NO_PLACE(no_place[0]))
        partial->nan = 1;
}

HOST_DEVICE void NAME_FN(tile_part)(FN(NAME) * partial, const V *x, uint32_t n)
{
    REAL lane_max[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++)
        lane_max[lane] = -INFINITY;
    FOLD_FOR_LANES(n, i, lane, { lane_max[lane] = EXP_LARGER((REAL)x[i], lane_max[lane]); });
    for (int lane = 1; lane < FOLD_LANES; lane++)
        lane_max[0] = lane_max[lane] > lane_max[0] ? lane_max[lane] : lane_max[0];
    const double max = (double)lane_max[0];
    if (partial->max > max + EXP_BINS_RANGE) { /* nothing counts, unless it is NaN */
        bool nan = false;
        FOLD_UNROLL
        for (uint32_t i = 0; i < n; i++)
            nan |= FN(is_nan)(x[i]);
        partial->nan |= nan;
        return;
    }
    if (!(max >= EXP_BINS_RANGE - EXP_LIMIT && max <= EXP_LIMIT) || partial->max > EXP_LIMIT) {
        NAME_FN(each)(partial, x, n);
        return;
    }
    EXP_PLACE place;
    EXP_INTEGER(lane_max[0], &place);
    if (max > partial->max)
        exp_bins_raise(partial, max, EXP_PLACE_OF(place) >> 5);
    NAME_FN(terms)(partial, x, n);
}

/* So many elements at a time that 64 bits hold a lane's sum of them: 32 (f32) or 16 of less than 2^59 or 2^60. */
HOST_DEVICE void NAME_FN(tile)(FN(NAME) * partial, const V *x, uint32_t n, uint64_t first)
{
    (void)first;
#ifdef __CUDA_ARCH__
    NAME_FN(tile_part)(partial, x, n);
#else
    const uint32_t part = (REAL_BITS == 32 ? 32 : 16) * FOLD_LANES;
    for (uint32_t start = 0; start < n; start += part)
        NAME_FN(tile_part)(partial, x + start, n - start < part ? n - start : part);
#endif
}
#undef NAME
#undef NAME_FN
#undef REAL
#undef REAL_BITS
#undef EXP_PLACE
#undef EXP_PLACE_BITS
#undef EXP_PLACE_OF
#undef EXP_IS_NO_PLACE
#undef EXP_INTEGER
#undef EXP_LARGER
