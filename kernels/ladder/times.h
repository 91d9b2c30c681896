/* The statistics of many measured times, used by the ladder and the benchmark. C, without CUDA. */
#ifndef ALLFOLD_LADDER_TIMES_H
#define ALLFOLD_LADDER_TIMES_H

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds. */
struct ladder_times {
    double median, p10, p99;
    int runs;
};

/* Sorts seconds (runs > 0 of them) and takes their median, the mean of the two in the middle of an even number; and
   the 10th and 99th percentile by nearest rank: the smallest time that so many of 100 runs do not exceed. */
struct ladder_times ladder_times_of(double *seconds, int runs);

/* How many runs of this many seconds each fit a budget of seconds: not fewer than least, not more than most. */
int ladder_runs_for(double budget, double seconds, int least, int most);

#ifdef __cplusplus
}
#endif
#endif
