/* Template of argmin and argmax: NAME, BEFORE(a, b), RISING(x), START as in extreme_template.h. One partial must be given tiles in
   ascending order of index; partials may be combined in any order. */
typedef FN(argextreme) FN(NAME);

HOST_DEVICE FN(NAME) NAME_FN(identity)(void)
{
    FN(NAME) extreme;
    memset(&extreme, 0, sizeof extreme);
    extreme.value = START;
    extreme.index = ALLFOLD_NO_INDEX;
    extreme.nan_index = ALLFOLD_NO_INDEX;
    return extreme;
}

HOST_DEVICE void NAME_FN(combine)(FN(NAME) * a, const FN(NAME) * b)
{
    if (BEFORE(b->value, a->value) || (b->value == a->value && b->index < a->index)) {
        a->value = b->value;
        a->index = b->index;
    }
    a->nans += b->nans;
    a->nan_index = b->nan_index < a->nan_index ? b->nan_index : a->nan_index;
}

HOST_DEVICE int NAME_FN(indices)(FN(NAME) * extreme, uint64_t *indices[])
{
    indices[0] = &extreme->index;
    indices[1] = &extreme->nan_index;
    return 2;
}

/* The best element that is not NaN, and the number of NaN. */
HOST_DEVICE V NAME_FN(best)(const V *x, uint32_t n, uint64_t *nan_count)
{
    V best[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++)
        best[lane] = START;
#if VALUE_FLOAT
    FN(counter) nans[FOLD_LANES] = {0};
    FOLD_FOR_LANES(n, i, lane, {
        best[lane] = BEFORE(x[i], best[lane]) ? x[i] : best[lane];
        nans[lane] += FN(is_nan)(x[i]);
    });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        *nan_count += (uint64_t)nans[lane];
#else
    (void)nan_count;
    FOLD_FOR_LANES(n, i, lane, { best[lane] = BEFORE(x[i], best[lane]) ? x[i] : best[lane]; });
#endif
    for (int lane = 1; lane < FOLD_LANES; lane++)
        best[0] = BEFORE(best[lane], best[0]) ? best[lane] : best[0];
    return best[0];
}

/* The place of the first element that equals *value, and that element, for -0.0 and 0.0 are equal. n: there is none. */
HOST_DEVICE uint32_t NAME_FN(place)(const V *x, uint32_t n, V *value)
{
    const V best = *value;
    uint32_t place = n;
#ifdef __CUDA_ARCH__ /* backwards, without a break or a place to look at: x stays in registers */
    for (uint32_t i = n; i-- > 0;) {
        place = x[i] == best ? i : place;
        *value = x[i] == best ? x[i] : *value;
    }
#else
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t at = x[i] == best ? i : n;
        place = at < place ? at : place;
    }
    if (place < n)
        *value = x[place];
#endif
    return place;
}

HOST_DEVICE void NAME_FN(tile_part)(FN(NAME) * extreme, const V *x, uint32_t n, uint64_t first)
{
    uint64_t nan_count = 0;
#if VALUE_FLOAT && VALUE_BITS == 32 && defined(__CUDA_ARCH__)
    V best = RISING(START);
    for (uint32_t i = 0; i < n; i++)
        best = larger_f32(RISING(x[i]), best);
    best = FN(is_nan)(best) ? NAME_FN(best)(x, n, &nan_count) : RISING(best);
#else
    const V best = NAME_FN(best)(x, n, &nan_count);
#endif

    if (BEFORE(best, extreme->value) || extreme->index == ALLFOLD_NO_INDEX) {
        V value = best;
        const uint32_t place = NAME_FN(place)(x, n, &value);
        if (place < n) {
            extreme->value = value;
            extreme->index = first + place;
        }
    }
    if (nan_count > 0 && extreme->nans == 0)
        for (uint32_t i = n; i-- > 0;)
            if (FN(is_nan)(x[i]))
                extreme->nan_index = first + i;
    extreme->nans += nan_count;
}

/* On the host in parts, few of which are searched for the place. */
HOST_DEVICE void NAME_FN(tile)(FN(NAME) * extreme, const V *x, uint32_t n, uint64_t first)
{
#ifdef __CUDA_ARCH__
    NAME_FN(tile_part)(extreme, x, n, first);
#else
    const uint32_t part = 1024;
    for (uint64_t start = 0; start < n; start += part)
        NAME_FN(tile_part)(extreme, x + start, n - start < part ? (uint32_t)(n - start) : part, first + start);
#endif
}

#ifdef FOLD_COLUMNS
/* count: of the elements that the lane was given. One that was given NaN holds nothing. */
HOST_DEVICE void NAME_FN(lane_step)(V *best, FN(counter) * place, FN(counter) * count, FN(counter) * nans, V x)
{
    const bool better = BEFORE(x, *best);
    *place = better ? *count : *place;
    *best = better ? x : *best;
    *nans += FN(is_nan)(x);
    *count += 1;
}
HOST_DEVICE bool NAME_FN(lane_settle)(FN(NAME) * extreme, V best, uint64_t index)
{
    const FN(NAME) other = {best, index, 0, ALLFOLD_NO_INDEX};
    NAME_FN(combine)(extreme, &other);
    return true;
}
#define LANE(F) F(V, best, START) F(FN(counter), place, 0) F(FN(counter), count, 0) F(FN(counter), nans, 0)
#define STEP(lane, x) NAME_FN(lane_step)(&(lane)->best, &(lane)->place, &(lane)->count, &(lane)->nans, x)
#define HOLDS(lane) (((lane)->nans == 0) & ((lane)->count > 0))
#define RESULT(lane) ((double)(lane)->place)
#define SETTLE(lane, extreme, first) (HOLDS(lane) && NAME_FN(lane_settle)(extreme, (lane)->best, (first) + (lane)->place))
#include "fold/columns_template.h"
#endif
#undef RISING
#undef NAME
#undef NAME_FN
#undef BEFORE
#undef START
