/* Dot product: the sum of x[i] * y[i]. f32: products are exact in f64. f64: a product is a pair, exact by fused multiply-add unless
   it underflows, and so is the sum (Dot2 of Ogita, Rump and Oishi). Integers: exact products, exact sums. The result is -0.0 only if
   every product is. An empty one is +0. */
#if VALUE_FLOAT
typedef struct {
    pair total;
} FN(dot);

HOST_DEVICE FN(dot) FN(dot_identity)(void)
{
    FN(dot) dot;
    dot.total = pair_identity();
    return dot;
}

HOST_DEVICE void FN(dot_combine)(FN(dot) * a, const FN(dot) * b) { pair_combine(&a->total, &b->total); }

HOST_DEVICE void FN(dot_tile)(FN(dot) * dot, FN(arrays) arrays, uint32_t n, uint64_t first)
{
    (void)first;
    double high[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++)
        high[lane] = ZERO_IDENTITY;
#if VALUE_BITS == 64
    double low[FOLD_LANES] = {0.0};
    FOLD_FOR_LANES(n, i, lane, {
        const double product = arrays.x[i] * arrays.y[i];
        double error;
        high[lane] = two_sum(high[lane], product, &error);
        low[lane] += error + fma(arrays.x[i], arrays.y[i], -product);
    });
    for (int lane = 0; lane < FOLD_LANES; lane++)
        dot->total.low += low[lane];
#else
    FOLD_FOR_LANES(n, i, lane, { high[lane] += (double)arrays.x[i] * (double)arrays.y[i]; });
#endif
    for (int lane = 0; lane < FOLD_LANES; lane++)
        pair_add(&dot->total, high[lane]);
}

#else
typedef struct {
    int128 high; /* the sum is high * 2^64 + low: each gathers halves of products and has room for 2^63 of them */
    uint128 low;
} FN(dot);

HOST_DEVICE FN(dot) FN(dot_identity)(void)
{
    FN(dot) dot;
    dot.high = 0;
    dot.low = 0;
    return dot;
}

HOST_DEVICE void FN(dot_combine)(FN(dot) * a, const FN(dot) * b)
{
    a->high += b->high;
    a->low += b->low;
}

HOST_DEVICE void FN(dot_tile)(FN(dot) * dot, FN(arrays) arrays, uint32_t n, uint64_t first)
{
    (void)first;
#if VALUE_SIGNED
    typedef int128 wide;
    typedef int64_t narrow;
#else
    typedef uint128 wide;
    typedef uint64_t narrow;
#endif
#if VALUE_BITS == 64
    for (uint32_t i = 0; i < n; i++) {
        const wide product = (wide)(narrow)arrays.x[i] * (wide)(narrow)arrays.y[i];
        dot->high += (int128)(product >> 64);
        dot->low += (uint64_t)product;
    }
#else
    narrow high[FOLD_LANES] = {0};
    uint64_t low[FOLD_LANES] = {0};
    FOLD_FOR_LANES(n, i, lane, {
        const narrow product = (narrow)arrays.x[i] * (narrow)arrays.y[i];
        high[lane] += product >> 32;
        low[lane] += (uint32_t)product;
    });
    for (int lane = 0; lane < FOLD_LANES; lane++) {
        const wide total = (wide)high[lane] * ((wide)1 << 32) + low[lane];
        dot->high += (int128)(total >> 64);
        dot->low += (uint64_t)total;
    }
#endif
}
#endif

#ifdef FOLD_FINISH
FOLD_FINISH allfold_status FN(dot_finish)(const FN(dot) * dot, const struct finish *finish)
{
#if VALUE_FLOAT
    return result_f64(finish, finish->count == 0 ? 0.0 : pair_value(&dot->total));
#else
    enum { LIMBS = 9 };
    int64_t words[LIMBS + EXACT_COUNTS] = {0};
    const struct exact_sink sink = exact_sink_of(words, 1, LIMBS, 0);
    exact_add_wide(&sink, (int128)dot->low, 0);
    exact_add_wide(&sink, dot->high, 64);
    struct exact_total total;
    exact_total_set(&total, words, LIMBS, 0);
    return result_total(finish, "the dot product", &total, VALUE_SIGNED);
#endif
}
#endif
