/* Template of the extremes. NAME is the monoid. TERM(x), of type EXTREME_TYPE, is compared. BEFORE(a, b) says whether a is the
   better answer. START is the worst answer. Included by extreme.h and norminf.h, for each value type. */
typedef struct {
    EXTREME_TYPE value; /* the best that is not NaN; START if there is none */
    uint64_t nans;
} FN(NAME);

HOST_DEVICE FN(NAME) NAME_FN(identity)(void)
{
    FN(NAME) extreme;
    memset(&extreme, 0, sizeof extreme);
    extreme.value = START;
    return extreme;
}

HOST_DEVICE void NAME_FN(combine)(FN(NAME) * a, const FN(NAME) * b)
{
    a->value = BEFORE(b->value, a->value) ? b->value : a->value;
    a->nans += b->nans;
}

HOST_DEVICE void NAME_FN(tile)(FN(NAME) * extreme, const V *x, uint32_t n, uint64_t first)
{
    (void)first;
    EXTREME_TYPE best[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++)
        best[lane] = START;
#if VALUE_FLOAT
    FN(counter) nans[FOLD_LANES] = {0};
    FOLD_FOR_LANES(n, i, lane, {
        const EXTREME_TYPE term = TERM(x[i]);
        best[lane] = BEFORE(term, best[lane]) ? term : best[lane];
        nans[lane] += term != term;
    });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        extreme->nans += (uint64_t)nans[lane];
#else
    FOLD_FOR_LANES(n, i, lane, {
        const EXTREME_TYPE term = TERM(x[i]);
        best[lane] = BEFORE(term, best[lane]) ? term : best[lane];
    });
#endif
    for (int lane = 0; lane < FOLD_LANES; lane++)
        extreme->value = BEFORE(best[lane], extreme->value) ? best[lane] : extreme->value;
}
#undef NAME
#undef NAME_FN
#undef EXTREME_TYPE
#undef TERM
#undef BEFORE
#undef START
