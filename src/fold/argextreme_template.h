/* Template of argmin and argmax: NAME, BEFORE(a, b), START as in extreme_template.h. One partial must be given tiles in
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

HOST_DEVICE void NAME_FN(tile)(FN(NAME) * extreme, const V *x, uint32_t n, uint64_t first)
{
    V best[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++)
        best[lane] = START;
    uint64_t nan_count = 0;
#if VALUE_FLOAT
    FN(counter) nans[FOLD_LANES] = {0};
    FOLD_FOR_LANES(n, i, lane, {
        best[lane] = BEFORE(x[i], best[lane]) ? x[i] : best[lane];
        nans[lane] += FN(is_nan)(x[i]);
    });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        nan_count += (uint64_t)nans[lane];
#else
    FOLD_FOR_LANES(n, i, lane, { best[lane] = BEFORE(x[i], best[lane]) ? x[i] : best[lane]; });
#endif
    for (int lane = 1; lane < FOLD_LANES; lane++)
        best[0] = BEFORE(best[lane], best[0]) ? best[lane] : best[0];

    /* Backwards, so that the lowest index remains. Without a break the device can keep x in registers. */
    if (BEFORE(best[0], extreme->value) || extreme->index == ALLFOLD_NO_INDEX)
        for (uint32_t i = n; i-- > 0;)
            if (x[i] == best[0]) {
                extreme->value = x[i];
                extreme->index = first + i;
            }
    if (nan_count > 0 && extreme->nans == 0)
        for (uint32_t i = n; i-- > 0;)
            if (FN(is_nan)(x[i]))
                extreme->nan_index = first + i;
    extreme->nans += nan_count;
}
#undef NAME
#undef NAME_FN
#undef BEFORE
#undef START
