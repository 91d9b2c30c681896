/* Weighted sums, means and variances: two operands, elements and their weights, both taken as f64 (weighted_sums.h). An element that is missing
   has the weight 0. Products are those of dot_exact. x^2 is a rounded square and its rounding error, which are doubles if x is neither very
   large nor very small; other elements are added one by one. */
typedef struct weighted_sums FN(weighted);
typedef struct weighted_moments FN(weighted_squares);

#define WEIGHTED(NAME, COUNT)                                                                                  \
    HOST_DEVICE FN(NAME) FN(NAME##_identity)(void)                                                             \
    {                                                                                                          \
        FN(NAME) sums;                                                                                         \
        memset(&sums, 0, sizeof sums);                                                                         \
        return sums;                                                                                           \
    }                                                                                                          \
    HOST_DEVICE void FN(NAME##_combine)(FN(NAME) * a, const FN(NAME) * b)                                      \
    {                                                                                                          \
        weighted_add((int64_t *)a, (const int64_t *)b, COUNT);                                                 \
    }
WEIGHTED(weighted, 2)
WEIGHTED(weighted_squares, 3)
#undef WEIGHTED

#if VALUE_FLOAT && VALUE_BITS == 64
#define NAME weighted_square
#define NAME_FN(x) FN(weighted_square_##x)
#define TWO
#define LIMBS WEIGHTED_SQUARE_LIMBS
#define LOWEST WEIGHTED_SQUARE_LOWEST
#define WINDOWS 4
#define OWN_WINDOWS 2
#define TERM(e) dot_exact_product((e).x, (e).y)
#define TERM_REST(e, term) fma((e).x, (e).y, -(term))
#define ADD(sink, e, finite) exact_add_product_f64(sink, (e).x, (e).y, finite)
#define WEIGHT 2
#include "fold/exact_template.h"

/* The windows of one thread: for products, weights, squares, and rounding errors of these. */
struct weighted_accumulator {
    struct exact_accumulator products, weights, squares, rests;
};

HOST_DEVICE void weighted_start(struct weighted_accumulator *accumulator, int count)
{
    dot_exact_start_f64(&accumulator->products);
    sum_exact_start_f64(&accumulator->weights);
    if (count > 2) {
        weighted_square_start_f64(&accumulator->squares);
        weighted_square_start_f64(&accumulator->rests);
    }
}

HOST_DEVICE void weighted_take_squares(struct weighted_accumulator *accumulator, struct exact_sink *sink, arrays_f64 arrays, uint32_t n)
{
    double squares[EXACT_TAKEN], rests[EXACT_TAKEN];
    bool far = false, any = false;
    FOLD_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        const double x = arrays.x[i], magnitude = fabs(x);
        squares[i] = x * x;
        rests[i] = fma(x, x, -squares[i]);
        far |= !(magnitude < 0x1p500 && (magnitude > 0x1p-480 || x == 0.0));
        any |= rests[i] != 0.0;
    }
    if (far) {
        FOLD_ROLL
        for (uint32_t i = 0; i < n; i++) {
            exact_reserve(sink, 1, 4);
            weighted_add_square(sink, arrays.x[i], arrays.y[i]);
        }
        return;
    }
    arrays.x = squares;
    weighted_square_take_f64(&accumulator->squares, sink, arrays, n);
    arrays.x = rests;
    if (any)
        weighted_square_take_f64(&accumulator->rests, sink, arrays, n);
}

/* Adds n elements, at most EXACT_TAKEN. count: of the sinks. */
HOST_DEVICE void weighted_take(struct weighted_accumulator *accumulator, struct exact_sink *sinks, arrays_f64 arrays, uint32_t n, int count)
{
    dot_exact_take_f64(&accumulator->products, &sinks[0], arrays, n);
    sum_exact_take_f64(&accumulator->weights, &sinks[1], arrays.y, n);
    if (count > 2)
        weighted_take_squares(accumulator, &sinks[2], arrays, n);
}

HOST_DEVICE void weighted_finish(struct weighted_accumulator *accumulator, struct exact_sink *sinks, int count)
{
    dot_exact_finish_accumulator_f64(&accumulator->products, &sinks[0]);
    sum_exact_finish_accumulator_f64(&accumulator->weights, &sinks[1]);
    if (count > 2) {
        weighted_square_finish_accumulator_f64(&accumulator->squares, &sinks[2]);
        weighted_square_finish_accumulator_f64(&accumulator->rests, &sinks[2]);
    }
}

HOST_DEVICE void weighted_fold(int64_t *words, arrays_f64 arrays, uint32_t n, int count)
{
    struct exact_sink sinks[3];
    struct weighted_accumulator accumulator;
    weighted_sinks(sinks, words, count);
    weighted_start(&accumulator, count);
    for (uint32_t i = 0; i < n; i += EXACT_TAKEN)
        weighted_take(&accumulator, sinks, arrays_from_f64(arrays, i), n - i < EXACT_TAKEN ? n - i : EXACT_TAKEN, count);
    weighted_finish(&accumulator, sinks, count);
    for (int i = 0; i < count; i++)
        exact_sink_normalise(&sinks[i]);
}

HOST_DEVICE void weighted_tile_f64(weighted_f64 *sums, arrays_f64 arrays, uint32_t n, uint64_t first)
{
    (void)first;
    weighted_fold(sums->products, arrays, n, 2);
}
HOST_DEVICE void weighted_squares_tile_f64(weighted_squares_f64 *moments, arrays_f64 arrays, uint32_t n, uint64_t first)
{
    (void)first;
    weighted_fold(moments->sums.products, arrays, n, 3);
}
#endif

#if defined(FOLD_FINISH) && !defined(__CUDACC__)
FOLD_FINISH allfold_status FN(weighted_sum_finish)(const FN(weighted) * sums, const struct finish *finish)
{
    struct exact_total products;
    exact_total_set(&products, sums->products, WEIGHTED_PRODUCT_LIMBS, WEIGHTED_PRODUCT_LOWEST);
    return result_f64(finish, exact_total_round(&products, finish->count > 0, finish->format));
}
FOLD_FINISH allfold_status FN(weighted_mean_finish)(const FN(weighted) * sums, const struct finish *finish)
{
    return weighted_mean(finish, sums);
}
FOLD_FINISH allfold_status FN(weighted_variance_finish)(const FN(weighted_squares) * moments, const struct finish *finish)
{
    return weighted_variance(finish, moments, false);
}
FOLD_FINISH allfold_status FN(weighted_std_finish)(const FN(weighted_squares) * moments, const struct finish *finish)
{
    return weighted_variance(finish, moments, true);
}
#endif
