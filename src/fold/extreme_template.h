/* Template of the extremes. NAME is the monoid. TERM(x), of type EXTREME_TYPE, is compared. BEFORE(a, b) says whether a is the
   better answer. RISING(x) grows as x becomes better, and RISING(RISING(x)) is x. START is the worst answer. Included by extreme.h and
   norminf.h, for each value type. */
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

HOST_DEVICE void NAME_FN(step)(EXTREME_TYPE *best, FN(counter) * nans, V x)
{
    const EXTREME_TYPE term = TERM(x);
    *best = BEFORE(term, *best) ? term : *best;
#if VALUE_FLOAT
    *nans += term != term;
#else
    (void)nans;
#endif
}

HOST_DEVICE void NAME_FN(settle)(FN(NAME) * extreme, EXTREME_TYPE best, FN(counter) nans)
{
    extreme->value = BEFORE(best, extreme->value) ? best : extreme->value;
    extreme->nans += (uint64_t)nans;
}

HOST_DEVICE void NAME_FN(tile)(FN(NAME) * extreme, const V *x, uint32_t n, uint64_t first)
{
    (void)first;
#if VALUE_FLOAT && VALUE_BITS == 32 && defined(__CUDA_ARCH__)
    EXTREME_TYPE largest = RISING(START); /* NaN if there is one: then elements are looked at one by one */
    for (uint32_t i = 0; i < n; i++)
        largest = larger_f32(RISING(TERM(x[i])), largest);
    if (largest == largest) {
        NAME_FN(settle)(extreme, RISING(largest), 0);
        return;
    }
#endif
    EXTREME_TYPE best[FOLD_LANES];
    FN(counter) nans[FOLD_LANES] = {0};
    for (int lane = 0; lane < FOLD_LANES; lane++)
        best[lane] = START;
    FOLD_FOR_LANES(n, i, lane, { NAME_FN(step)(&best[lane], &nans[lane], x[i]); });
    for (int half = FOLD_LANES / 2; half > 0; half /= 2) /* one after the other, each would wait for the one before */
        FOLD_SIMD
        for (int lane = 0; lane < half; lane++) {
            best[lane] = BEFORE(best[lane + half], best[lane]) ? best[lane + half] : best[lane];
            nans[lane] += nans[lane + half];
        }
    NAME_FN(settle)(extreme, best[0], nans[0]);
}

#ifdef FOLD_COLUMNS
#if VALUE_FLOAT
#define LANE(F) F(EXTREME_TYPE, best, START) F(FN(counter), nans, 0)
#define STEP(lane, x) NAME_FN(step)(&(lane)->best, &(lane)->nans, x)
#define SETTLE(lane, extreme, first) (NAME_FN(settle)(extreme, (lane)->best, (lane)->nans), true)
#define RESULT(lane) ((lane)->nans != 0 ? (double)NAN : (double)(lane)->best + 0.0) /* a zero is +0 */
#define HOLDS(lane) ((void)(lane), true)
#else
#define LANE(F) F(EXTREME_TYPE, best, START)
#define STEP(lane, x) NAME_FN(step)(&(lane)->best, NULL, x)
#define SETTLE(lane, extreme, first) (NAME_FN(settle)(extreme, (lane)->best, 0), true)
#endif
#include "fold/columns_template.h"
#if VALUE_FLOAT
static bool NAME_FN(row_result)(const void *x, uint32_t n, double *result)
{
    FN(NAME) extreme = NAME_FN(identity)();
    NAME_FN(tile)(&extreme, x, n, 0);
    *result = extreme.nans != 0 ? (double)NAN : (double)extreme.value + 0.0;
    return true;
}
#endif
#endif
#undef NAME
#undef NAME_FN
#undef EXTREME_TYPE
#undef TERM
#undef BEFORE
#undef RISING
#undef START
