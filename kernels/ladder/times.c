/* Medians and percentiles of measured times. */
#include "kernels/ladder/times.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct ladder_times ladder_times_of(double *seconds, int runs)
{
    qsort(seconds, (size_t)runs, sizeof *seconds, compare);
    const struct ladder_times times = {
        .median = (seconds[(runs - 1) / 2] + seconds[runs / 2]) / 2,
        .p10 = seconds[(10 * runs + 99) / 100 - 1],
        .p99 = seconds[(99 * runs + 99) / 100 - 1],
        .runs = runs,
    };
    return times;
}

int ladder_runs_for(double budget, double seconds, int least, int most)
{
    return seconds * most <= budget ? most : seconds * least >= budget ? least : (int)(budget / seconds);
}
