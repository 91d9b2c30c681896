/* Common statistics of an array in one pass: the partials of other monoids side by side, and of floating-point numbers the mean and
   squared deviations (M2) in the manner of Youngs and Cramer (1971) and of Chan, Golub and LeVeque (1979). A tile is taken relative to
   the mean so far, so no digits are lost to a large mean. NaNs are counted and left out everywhere. Their effect on the results is
   decided at the end. The variance is the population's (divided by the count). That of integers comes from their exact sums. */
typedef struct {
    FN(argmin) min; /* also counts the NaNs and finds the first */
    FN(argmax) max;
    FN(sum) sum;
    FN(norm1) norm1;
    FN(norm2) norm2;
#if VALUE_FLOAT
    double count, mean, m2; /* count of elements that are not NaN; mean and M2 of (x - origin) */
    V origin;               /* the first element: the digits of a large mean would crowd out those of the deviations */
#endif
} FN(stats);

HOST_DEVICE FN(stats) FN(stats_identity)(void)
{
    FN(stats) stats;
    memset(&stats, 0, sizeof stats);
    stats.min = FN(argmin_identity)();
    stats.max = FN(argmax_identity)();
    stats.sum = FN(sum_identity)();
    stats.norm1 = FN(norm1_identity)();
    stats.norm2 = FN(norm2_identity)();
    return stats;
}

#if VALUE_FLOAT
HOST_DEVICE void FN(stats_combine_moments)(FN(stats) * a, const FN(stats) * b)
{
    if (b->count == 0.0)
        return;
    if (a->count == 0.0) {
        a->count = b->count;
        a->mean = b->mean;
        a->m2 = b->m2;
        a->origin = b->origin;
        return;
    }
    const double count = a->count + b->count;
    const double delta = ((double)b->origin - (double)a->origin) + (b->mean - a->mean);
    a->m2 += b->m2 + delta * delta * (a->count / count) * b->count;
    a->mean += delta * (b->count / count);
    a->count = count;
}
#endif

HOST_DEVICE void FN(stats_combine)(FN(stats) * a, const FN(stats) * b)
{
    FN(argmin_combine)(&a->min, &b->min);
    FN(argmax_combine)(&a->max, &b->max);
    FN(sum_combine)(&a->sum, &b->sum);
    FN(norm1_combine)(&a->norm1, &b->norm1);
    FN(norm2_combine)(&a->norm2, &b->norm2);
#if VALUE_FLOAT
    FN(stats_combine_moments)(a, b);
#endif
}

HOST_DEVICE int FN(stats_indices)(FN(stats) * stats, uint64_t *indices[])
{
    const int count = FN(argmin_indices)(&stats->min, indices);
    return count + FN(argmax_indices)(&stats->max, indices + count);
}

#if VALUE_FLOAT
/* sum of x[i] - origin - mean and of their squares, of elements that are not NaN; all_numbers: no element is. A device subtracts once: then
   *mean is set to what was subtracted. */
HOST_DEVICE void FN(stats_deviations)(const FN(stats) * stats, const V *x, uint32_t n, bool all_numbers, double *mean, double sums[2])
{
    double sum[FOLD_LANES], squares[FOLD_LANES];
    for (int lane = 0; lane < FOLD_LANES; lane++)
        sum[lane] = squares[lane] = 0.0;
#ifdef __CUDA_ARCH__
    const double pivot = (double)stats->origin + *mean;
    *mean = pivot - (double)stats->origin;
    FOLD_FOR_LANES(n, i, lane, {
        const double deviation = !all_numbers && FN(is_nan)(x[i]) ? 0.0 : (double)x[i] - pivot;
        sum[lane] += deviation;
        squares[lane] = fma(deviation, deviation, squares[lane]);
    });
#else
    (void)all_numbers;
    FOLD_FOR_LANES(n, i, lane, {
        const double deviation = FN(is_nan)(x[i]) ? 0.0 : ((double)x[i] - (double)stats->origin) - *mean;
        sum[lane] += deviation;
        squares[lane] += deviation * deviation;
    });
#endif
    for (int lane = 1; lane < FOLD_LANES; lane++) {
        sum[0] += sum[lane];
        squares[0] += squares[lane];
    }
    sums[0] = sum[0];
    sums[1] = squares[0];
}

HOST_DEVICE void FN(stats_moments)(FN(stats) * stats, const V *x, uint32_t n, uint32_t count)
{
    if (stats->count == 0.0)
        for (uint32_t i = n; i-- > 0;)
            stats->origin = FN(is_nan)(x[i]) ? stats->origin : x[i];
    /* if the tile is most of what was taken, the mean so far may be far off: it is replaced by the tile's own first */
    double mean = stats->mean, sums[2], part = 0.0;
    for (int pass = stats->count < (double)count ? 0 : 1; pass < 2; pass++) {
        mean += part;
        if (count == n)
            FN(stats_deviations)(stats, x, n, true, &mean, sums);
        else
            FN(stats_deviations)(stats, x, n, false, &mean, sums);
        part = count == STATS_PART ? sums[0] * (1.0 / STATS_PART) : sums[0] / (double)count; /* a power of two */
    }
    const double total = stats->count + (double)count, weight = (double)count / total, delta = mean + part - stats->mean;
    stats->m2 += sums[1] - sums[0] * part + delta * delta * (stats->count * weight);
    stats->mean += delta * weight;
    stats->count = total;
}
#endif

HOST_DEVICE void FN(stats_tile_part)(FN(stats) * stats, const V *x, uint32_t n, uint64_t first)
{
    V kept[STATS_PART]; /* NaN replaced by a value that changes no sum */
    const uint64_t nans = stats->min.nans;
    FN(argmin_tile)(&stats->min, x, n, first);
    FN(argmax_tile)(&stats->max, x, n, first);
    const uint32_t count = n - (uint32_t)(stats->min.nans - nans);
    for (uint32_t i = 0; i < n; i++)
        kept[i] = x[i];
    if (count < n)
        for (uint32_t i = 0; i < n; i++)
            kept[i] = FN(is_nan)(x[i]) ? (V)ZERO_IDENTITY : x[i];
    FN(sum_tile)(&stats->sum, kept, n, first);
    FN(norm1_tile)(&stats->norm1, kept, n, first);
    FN(norm2_tile)(&stats->norm2, kept, n, first);
#if VALUE_FLOAT
    if (count > 0)
        FN(stats_moments)(stats, x, n, count);
#endif
}

HOST_DEVICE void FN(stats_tile)(FN(stats) * stats, const V *x, uint32_t n, uint64_t first)
{
    for (uint32_t start = 0; start < n; start += STATS_PART)
        FN(stats_tile_part)(stats, x + start, n - start < STATS_PART ? n - start : STATS_PART, first + start);
}

#ifdef FOLD_FINISH
FOLD_FINISH double FN(stats_variance)(const FN(stats) * stats, const struct finish *part, bool root)
{
#if VALUE_FLOAT /* squares that overflow make it infinite; only infinite elements make it NaN */
    const bool finite = is_finite((double)stats->min.value) && is_finite((double)stats->max.value);
    if (finite && stats->m2 != stats->m2)
        return INFINITY;
    const double variance = stats->m2 < 0.0 ? 0.0 : stats->m2 / (stats->count - (double)part->ddof);
    return root ? sqrt(variance) : variance;
#else
    return variance_of_integers(stats->norm2, stats->sum.total, part, root);
#endif
}

#define STATS stats
#define STATS_FN(x) FN(stats_##x)
#define STATS_SUM_FINISH FN(sum_finish)
#define STATS_MEAN_FINISH FN(mean_finish)
#define STATS_NORM1_FINISH FN(norm1_finish)
#define STATS_NORM2_FINISH FN(norm2_finish)
#define STATS_VARIANCE(stats, part, root) FN(stats_variance)(stats, &(part), root)
#include "fold/stats_finish.h"

FOLD_FINISH allfold_status FN(variance_finish)(const FN(stats) * stats, const struct finish *finish)
{
    return FN(stats_finish_variance)(stats, finish, "variance", false);
}
FOLD_FINISH allfold_status FN(std_finish)(const FN(stats) * stats, const struct finish *finish)
{
    return FN(stats_finish_variance)(stats, finish, "std", true);
}
#endif
