/* Root of the sum of squares. f32: squares are exact in f64 and cannot overflow. f64: three sums, of large elements scaled down,
   of small ones scaled up, and of all others, so that nothing overflows or underflows unless the result does (E. Anderson,
   'Algorithm 978: Safe scaling in the level 1 BLAS', ACM TOMS 44 (2017), after J. Blue). Products are exact pairs. Integers:
   exact squares, exact sums, a root that is rounded once. */
#if VALUE_FLOAT && VALUE_BITS == 64
typedef struct {
    pair large, middle, small;
} FN(norm2);

#define NORM2_LARGE 0x1p486
#define NORM2_SMALL 0x1p-480 /* squares of larger elements are pairs without loss */
#define NORM2_LARGE_SCALE 0x1p-538
#define NORM2_SMALL_SCALE 0x1p537

HOST_DEVICE FN(norm2) FN(norm2_identity)(void)
{
    FN(norm2) norm;
    memset(&norm, 0, sizeof norm);
    return norm;
}

HOST_DEVICE void FN(norm2_combine)(FN(norm2) * a, const FN(norm2) * b)
{
    pair_combine(&a->large, &b->large);
    pair_combine(&a->middle, &b->middle);
    pair_combine(&a->small, &b->small);
}

HOST_DEVICE void FN(norm2_tile)(FN(norm2) * norm, const V *x, uint32_t n, uint64_t first)
{
    (void)first;
    double high[FOLD_LANES] = {0.0}, low[FOLD_LANES] = {0.0};
    uint64_t outside[FOLD_LANES] = {0};
    FOLD_FOR_LANES(n, i, lane, {
        const double magnitude = fabs(x[i]);
        const bool out = magnitude > NORM2_LARGE || magnitude < NORM2_SMALL;
        const double term = out ? 0.0 : magnitude;
        const double square = term * term;
        double error;
        high[lane] = two_sum(high[lane], square, &error);
        low[lane] += error + fma(term, term, -square);
        outside[lane] += out;
    });
    uint64_t out = 0;
    for (int lane = 0; lane < FOLD_LANES; lane++) {
        pair_add(&norm->middle, high[lane]);
        norm->middle.low += low[lane];
        out += outside[lane];
    }
    if (out == 0)
        return;
    for (uint32_t i = 0; i < n; i++) {
        const double magnitude = fabs(x[i]);
        if (magnitude > NORM2_LARGE)
            pair_add_product(&norm->large, magnitude * NORM2_LARGE_SCALE, magnitude * NORM2_LARGE_SCALE);
        else if (magnitude < NORM2_SMALL)
            pair_add_product(&norm->small, magnitude * NORM2_SMALL_SCALE, magnitude * NORM2_SMALL_SCALE);
    }
}

#elif VALUE_FLOAT
typedef struct {
    pair total;
} FN(norm2);

HOST_DEVICE FN(norm2) FN(norm2_identity)(void)
{
    FN(norm2) norm;
    norm.total.high = norm.total.low = 0.0;
    return norm;
}

HOST_DEVICE void FN(norm2_combine)(FN(norm2) * a, const FN(norm2) * b) { pair_combine(&a->total, &b->total); }

HOST_DEVICE void FN(norm2_tile)(FN(norm2) * norm, const V *x, uint32_t n, uint64_t first)
{
    (void)first;
    double sum[FOLD_LANES] = {0.0};
    FOLD_FOR_LANES(n, i, lane, {
        const double term = (double)x[i];
        sum[lane] = FOLD_ADD_EXACT_SQUARE(sum[lane], term);
    });
    pair_add_lanes(&norm->total, sum);
}

#ifdef FOLD_COLUMNS
#define NAME norm2
#define NAME_FN(x) FN(norm2_##x)
#define LANE(F) F(double, sum, 0.0)
#define STEP(lane, x) ((lane)->sum += (double)(x) * (double)(x))
#define SETTLE(lane, norm, first) (pair_add(&(norm)->total, (lane)->sum), true)
#include "fold/columns_template.h"
#undef NAME
#undef NAME_FN
#endif

#else
#define NAME norm2
#define NAME_FN(x) FN(norm2_##x)
#define ARRAY const V *
#define LEFT(i) FN(magnitude)(x[i])
#define RIGHT LEFT
#define PRODUCT_SIGNED 0
#include "fold/products_template.h"
#endif

#ifdef FOLD_FINISH
FOLD_FINISH allfold_status FN(norm2_finish)(const FN(norm2) * norm, const struct finish *finish)
{
#if VALUE_FLOAT && VALUE_BITS == 64
    if (norm->large.high != 0.0) /* small elements do not count next to large ones */
        return result_f64(finish, root_of_pairs(norm->large, norm->middle, NORM2_LARGE_SCALE) / NORM2_LARGE_SCALE);
    if (norm->middle.high != 0.0)
        return result_f64(finish, root_of_pairs(norm->middle, norm->small, 1.0 / NORM2_SMALL_SCALE));
    /* a root below 2^-1022 has fewer bits than a double: on the host more than those of a double are kept until it is rounded */
#ifdef __CUDACC__
    return result_f64(finish, sqrt(pair_value(&norm->small)) / NORM2_SMALL_SCALE);
#else
    return result_f64(finish, (double)(sqrtl((long double)norm->small.high + norm->small.low) / NORM2_SMALL_SCALE));
#endif
#elif VALUE_FLOAT
    return result_f64(finish, sqrt(pair_value(&norm->total)));
#else
    if (finish->format == ALLFOLD_F64 && norm->high == 0 && norm->low <= (uint128)EXACT_IN_F64)
        return result_f64(finish, sqrt((double)norm->low));
    struct exact_total total = exact_total_of_wide(norm->high, norm->low);
    exact_total_root(&total);
    return result_f64(finish, exact_total_round(&total, false, finish->format));
#endif
}
#endif
