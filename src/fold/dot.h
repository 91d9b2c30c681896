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
#define NAME dot
#define NAME_FN(x) FN(dot_##x)
#define ARRAY FN(arrays)
#define LEFT(i) x.x[i]
#define RIGHT(i) x.y[i]
#define PRODUCT_SIGNED VALUE_SIGNED
#include "fold/products_template.h"
#endif

#ifdef FOLD_FINISH
FOLD_FINISH allfold_status FN(dot_finish)(const FN(dot) * dot, const struct finish *finish)
{
#if VALUE_FLOAT
    return result_f64(finish, finish->count == 0 ? 0.0 : pair_value(&dot->total));
#else
    const struct exact_total total = exact_total_of_wide(dot->high, dot->low);
    return result_total(finish, "the dot product", &total, VALUE_SIGNED);
#endif
}
#endif
