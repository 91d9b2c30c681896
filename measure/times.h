/* Takes the statistics of many measured times. C, without CUDA. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds. */
struct timing {
    double median, p10, p99;
    int runs;
};

/* Sorts seconds (runs > 0 of them) and takes their median, the mean of the two in the middle of an even number; and
   the 10th and 99th percentile by nearest rank: the smallest time that 10 or 99 of 100 runs do not exceed. */
struct timing timing_of(double *seconds, int runs);

/* What one measurement may take. */
struct timing_budget {
    double seconds;
    int least, most; /* runs, whatever they take */
};

/* How many runs of this many seconds each fit the budget. */
int timing_runs(const struct timing_budget *budget, double seconds);

#ifdef __cplusplus
}
#endif
