/* Template of the exact sums of products of integers: NAME is the monoid. ARRAY is what its tile takes as `x`; LEFT(i) * RIGHT(i), of 64 bits
   each, is added for element i. PRODUCT_SIGNED says whether that can be negative. Included by norm2.h and dot.h. */
#if PRODUCT_SIGNED
typedef int128 NAME_FN(product);
typedef int64_t NAME_FN(factor);
#else
typedef uint128 NAME_FN(product);
typedef uint64_t NAME_FN(factor);
#endif

typedef wide FN(NAME);

HOST_DEVICE FN(NAME) NAME_FN(identity)(void)
{
    FN(NAME) sum;
    sum.high = 0;
    sum.low = 0;
    return sum;
}

HOST_DEVICE void NAME_FN(combine)(FN(NAME) * a, const FN(NAME) * b)
{
    a->high += b->high;
    a->low += b->low;
}

HOST_DEVICE void NAME_FN(take)(FN(NAME) * sum, NAME_FN(product) product)
{
    sum->high += (int128)(product >> 64);
    sum->low += (uint64_t)product;
}

HOST_DEVICE void NAME_FN(tile)(FN(NAME) * sum, ARRAY x, uint32_t n, uint64_t first)
{
    (void)first;
#if VALUE_BITS == 64
    for (uint32_t i = 0; i < n; i++)
        NAME_FN(take)(sum, (NAME_FN(product))(NAME_FN(factor))LEFT(i) * (NAME_FN(factor))RIGHT(i));
#else
    NAME_FN(factor) high[FOLD_LANES] = {0};
    uint64_t low[FOLD_LANES] = {0};
    FOLD_FOR_LANES(n, i, lane, {
        const NAME_FN(factor) product = (NAME_FN(factor))LEFT(i) * (NAME_FN(factor))RIGHT(i);
        high[lane] += product >> 32;
        low[lane] += (uint32_t)product;
    });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        NAME_FN(take)(sum, (NAME_FN(product))high[lane] * ((NAME_FN(product))1 << 32) + low[lane]);
#endif
}
#undef NAME
#undef NAME_FN
#undef ARRAY
#undef LEFT
#undef RIGHT
#undef PRODUCT_SIGNED
