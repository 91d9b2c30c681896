/* Template of the sums. NAME is the monoid. TERM(x) is added for element x. TERM_SIGNED says whether integer terms can be
   negative. TERM_ZERO is the identity. Included by sum.h and norm1.h, for each value type. */
#if VALUE_FLOAT
typedef struct {
    pair total;
} FN(NAME);

HOST_DEVICE FN(NAME) NAME_FN(identity)(void)
{
    FN(NAME) sum;
    sum.total.high = TERM_ZERO;
    sum.total.low = 0.0;
    return sum;
}

HOST_DEVICE void NAME_FN(combine)(FN(NAME) * a, const FN(NAME) * b) { pair_combine(&a->total, &b->total); }

HOST_DEVICE void NAME_FN(tile)(FN(NAME) * sum, const V *x, uint32_t n, uint64_t first)
{
    (void)first;
    double high[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++)
        high[lane] = TERM_ZERO;
#if VALUE_BITS == 64
    double low[FOLD_LANES] = {0.0};
    FOLD_FOR_LANES(n, i, lane, {
        double error;
        high[lane] = two_sum(high[lane], TERM(x[i]), &error);
        low[lane] += error;
    });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        sum->total.low += low[lane];
#else
    FOLD_FOR_LANES(n, i, lane, { high[lane] += TERM((double)x[i]); });
#endif
    for (int lane = 0; lane < FOLD_LANES; lane++)
        pair_add(&sum->total, high[lane]);
}

#else /* integers: exact */
typedef struct {
    int128 total;
} FN(NAME);

HOST_DEVICE FN(NAME) NAME_FN(identity)(void)
{
    FN(NAME) sum;
    sum.total = 0;
    return sum;
}

HOST_DEVICE void NAME_FN(combine)(FN(NAME) * a, const FN(NAME) * b) { a->total += b->total; }

/* Each lane adds halves of at most 32 bits, at most 2^32 of them: 64 bits cannot overflow. */
HOST_DEVICE void NAME_FN(tile)(FN(NAME) * sum, const V *x, uint32_t n, uint64_t first)
{
    (void)first;
#if TERM_SIGNED
    typedef int64_t half;
#else
    typedef uint64_t half;
#endif
    half high[FOLD_LANES] = {0};
#if VALUE_BITS == 64
    uint64_t low[FOLD_LANES] = {0};
    FOLD_FOR_LANES(n, i, lane, {
        const half term = TERM(x[i]);
        low[lane] += (uint32_t)term;
        high[lane] += term >> 32;
    });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        sum->total += (int128)high[lane] * ((int128)1 << 32) + (int128)low[lane];
#else
    FOLD_FOR_LANES(n, i, lane, { high[lane] += (half)TERM(x[i]); });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        sum->total += high[lane];
#endif
}
#endif
#undef NAME_FN
#undef NAME
#undef TERM
#undef TERM_SIGNED
#undef TERM_ZERO
