/* Takes medians and percentiles of measured times: see times.h. */
#include "measure/times.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct timing timing_of(double *seconds, int runs)
{
    qsort(seconds, (size_t)runs, sizeof *seconds, compare);
    const struct timing times = {
        .median = (seconds[(runs - 1) / 2] + seconds[runs / 2]) / 2,
        .p10 = seconds[(10 * runs + 99) / 100 - 1],
        .p99 = seconds[(99 * runs + 99) / 100 - 1],
        .runs = runs,
    };
    return times;
}

int timing_runs(const struct timing_budget *budget, double seconds)
{
    return seconds * budget->most <= budget->seconds    ? budget->most
           : seconds * budget->least >= budget->seconds ? budget->least
                                                        : (int)(budget->seconds / seconds);
}
