/* stats at level exact: the exact sums side by side, and the extremes. NaNs are counted and left out as in stats.h. The variance
   comes from the exact sums of elements and of squares, rounded once. */
typedef struct {
    FN(sum_exact) sum;
    FN(norm1_exact) norm1;
    FN(norm2_exact) norm2;
    FN(argmin) min; /* also counts the NaNs and finds the first */
    FN(argmax) max;
} FN(stats_exact);

/* The state of one thread. */
typedef struct {
    struct exact_accumulator sum, norm1, norm2;
    FN(argmin) min;
    FN(argmax) max;
} FN(stats_exact_accumulator);

HOST_DEVICE FN(stats_exact) FN(stats_exact_identity)(void)
{
    FN(stats_exact) stats;
    memset(&stats, 0, sizeof stats);
    stats.min = FN(argmin_identity)();
    stats.max = FN(argmax_identity)();
    return stats;
}

HOST_DEVICE void FN(stats_exact_combine)(FN(stats_exact) * a, const FN(stats_exact) * b)
{
    FN(sum_exact_combine)(&a->sum, &b->sum);
    FN(norm1_exact_combine)(&a->norm1, &b->norm1);
    FN(norm2_exact_combine)(&a->norm2, &b->norm2);
    FN(argmin_combine)(&a->min, &b->min);
    FN(argmax_combine)(&a->max, &b->max);
}

HOST_DEVICE int FN(stats_exact_indices)(FN(stats_exact) * stats, uint64_t *indices[])
{
    const int count = FN(argmin_indices)(&stats->min, indices);
    return count + FN(argmax_indices)(&stats->max, indices + count);
}

HOST_DEVICE void FN(stats_exact_start)(FN(stats_exact_accumulator) * accumulator)
{
    FN(sum_exact_start)(&accumulator->sum);
    FN(norm1_exact_start)(&accumulator->norm1);
    FN(norm2_exact_start)(&accumulator->norm2);
    accumulator->min = FN(argmin_identity)();
    accumulator->max = FN(argmax_identity)();
}

/* The sinks of the three sums. Their words follow one another, stride apart. */
HOST_DEVICE void FN(stats_exact_sinks)(struct exact_sink sinks[3], int64_t *words, uint32_t stride)
{
    sinks[0] = exact_sink_of(words, stride, FN(sum_exact_limbs), FN(sum_exact_lowest));
    words += FN(sum_exact_words) * stride;
    sinks[1] = exact_sink_of(words, stride, FN(norm1_exact_limbs), FN(norm1_exact_lowest));
    words += FN(norm1_exact_words) * stride;
    sinks[2] = exact_sink_of(words, stride, FN(norm2_exact_limbs), FN(norm2_exact_lowest));
}

/* n is at most EXACT_TAKEN. */
HOST_DEVICE void FN(stats_exact_take)(FN(stats_exact_accumulator) * accumulator, struct exact_sink sinks[3], const V *x,
                                      uint32_t n, uint64_t first)
{
    V without[EXACT_TAKEN]; /* NaN replaced by a value that changes no sum */
    const uint64_t nans = accumulator->min.nans;
    FN(argmin_tile)(&accumulator->min, x, n, first);
    FN(argmax_tile)(&accumulator->max, x, n, first);
    if (accumulator->min.nans != nans || EXACT_TAKEN == EXACT_RUN) { /* a device has x in registers in either case */
        FOLD_UNROLL
        for (uint32_t i = 0; i < n; i++)
            without[i] = FN(is_nan)(x[i]) ? (V)ZERO_IDENTITY : x[i];
        x = without;
    }
    FN(sum_exact_take)(&accumulator->sum, &sinks[0], x, n);
    FN(norm1_exact_take)(&accumulator->norm1, &sinks[1], x, n);
    FN(norm2_exact_take)(&accumulator->norm2, &sinks[2], x, n);
}

HOST_DEVICE void FN(stats_exact_tile)(FN(stats_exact) * stats, const V *x, uint32_t n, uint64_t first)
{
    FN(stats_exact_accumulator) accumulator;
    struct exact_sink sinks[3];
    FN(stats_exact_start)(&accumulator);
    accumulator.min = stats->min;
    accumulator.max = stats->max;
    sinks[0] = exact_sink_of(stats->sum.words, 1, FN(sum_exact_limbs), FN(sum_exact_lowest));
    sinks[1] = exact_sink_of(stats->norm1.words, 1, FN(norm1_exact_limbs), FN(norm1_exact_lowest));
    sinks[2] = exact_sink_of(stats->norm2.words, 1, FN(norm2_exact_limbs), FN(norm2_exact_lowest));
    for (uint32_t i = 0; i < n; i += EXACT_TAKEN)
        FN(stats_exact_take)(&accumulator, sinks, x + i, n - i < EXACT_TAKEN ? n - i : EXACT_TAKEN, first + i);
    FN(sum_exact_finish_accumulator)(&accumulator.sum, &sinks[0]);
    FN(norm1_exact_finish_accumulator)(&accumulator.norm1, &sinks[1]);
    FN(norm2_exact_finish_accumulator)(&accumulator.norm2, &sinks[2]);
    stats->min = accumulator.min;
    stats->max = accumulator.max;
    for (int i = 0; i < 3; i++)
        exact_sink_normalise(&sinks[i]);
}

#ifdef FOLD_FINISH
/* The fields of stats: the functions that finish sum, mean, variance and norms differ between the levels. */
FOLD_FINISH double FN(stats_exact_variance)(const FN(stats_exact) * stats, const struct finish *part, bool root)
{
    if (!is_finite((double)stats->min.value) || !is_finite((double)stats->max.value))
        return NAN;
    struct exact_total sum;
    exact_total_set(&sum, stats->sum.words, FN(sum_exact_limbs), FN(sum_exact_lowest));
    struct exact_total squares;
    exact_total_set(&squares, stats->norm2.words, FN(norm2_exact_limbs), FN(norm2_exact_lowest));
    struct exact_total variance = exact_total_variance(&squares, &sum, part->count, part->count - part->ddof);
    if (root)
        exact_total_root(&variance);
    return exact_total_round(&variance, false, part->format);
}
#define STATS stats_exact
#define STATS_FN(x) FN(stats_exact_##x)
#define STATS_SUM_FINISH FN(sum_exact_finish)
#define STATS_MEAN_FINISH FN(mean_exact_finish)
#define STATS_NORM1_FINISH FN(norm1_exact_finish)
#define STATS_NORM2_FINISH FN(norm2_exact_finish)
#define STATS_VARIANCE(stats, part, root) FN(stats_exact_variance)(stats, &(part), root)
#include "fold/stats_finish.h"

FOLD_FINISH allfold_status FN(variance_exact_finish)(const FN(stats_exact) * stats, const struct finish *finish)
{
    return FN(stats_exact_finish_variance)(stats, finish, "variance", false);
}
FOLD_FINISH allfold_status FN(std_exact_finish)(const FN(stats_exact) * stats, const struct finish *finish)
{
    return FN(stats_exact_finish_variance)(stats, finish, "std", true);
}
#endif
