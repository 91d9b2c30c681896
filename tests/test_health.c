/* Medians, percentiles, and who is slow: what the benchmark makes of times that are known. */
#define TAP_WITHOUT_MPI
#include "tests/tap.h"

#include "bench/bench.h"

#include <math.h>
#include <string.h>

static void test_times(void)
{
    double hundred[100], even[] = {4, 1, 3, 2}, one[] = {7};
    for (int i = 0; i < 100; i++)
        hundred[i] = (double)((i * 37) % 100 + 1); /* 1 to 100, in another order */
    const struct timing of_hundred = timing_of(hundred, 100), of_even = timing_of(even, 4);
    const struct timing of_one = timing_of(one, 1);
    tap_ok(of_hundred.median == 50.5 && of_hundred.p10 == 10 && of_hundred.p99 == 99 && of_hundred.runs == 100,
           "1 to 100: median %g, 10th percentile %g, 99th %g", of_hundred.median, of_hundred.p10, of_hundred.p99);
    tap_ok(of_even.median == 2.5 && of_even.p10 == 1 && of_even.p99 == 4, "four times: the mean of those in the middle");
    tap_ok(of_one.median == 7 && of_one.p10 == 7 && of_one.p99 == 7, "one time");
    const struct timing_budget budget = {1.0, 3, 20};
    tap_ok(timing_runs(&budget, 0.5) == 3 && timing_runs(&budget, 0.01) == 20 && timing_runs(&budget, 0.1) == 10,
           "runs within a budget");
}

/* Ranks of one kind; what a test changes is what is slow. */
static void make(struct bench_facts *facts, int ranks)
{
    memset(facts, 0, (size_t)ranks * sizeof *facts);
    for (int i = 0; i < ranks; i++)
        facts[i] = (struct bench_facts){.read = 4e12 + i * 1e10, .copy = 4e12, .link_in = 5e10, .link_out = 5e10,
                                        .launch = 8e-6, .message = 1e-6};
}

static int count_slow(const struct bench_illness *ills, int ranks)
{
    int count = 0;
    for (int i = 0; i < ranks; i++)
        for (int fact = 0; fact < BENCH_HEALTH_FACTS; fact++)
            count += ills[i].slow[fact];
    return count;
}

static void test_health(void)
{
    struct bench_facts facts[5];
    struct bench_illness ills[5];
    make(facts, 5);
    bench_health(facts, 5, BENCH_HEALTH_RATE, ills);
    tap_ok(count_slow(ills, 5) == 0, "five ranks nearly alike: none is slow");
    facts[3].read = 3.5e12;
    bench_health(facts, 5, BENCH_HEALTH_RATE, ills);
    tap_ok(count_slow(ills, 5) == 1 && ills[3].slow[0] && fabs(ills[3].of_median[0] - 3.5e12 / 4.01e12) < 1e-12,
           "a GPU that reads slowly is named: %.4f of the median", ills[3].of_median[0]);
    facts[0].link_in = 2e10;
    facts[4].message = 3e-6;
    bench_health(facts, 5, BENCH_HEALTH_RATE, ills);
    tap_ok(count_slow(ills, 5) == 3 && ills[0].slow[2] && ills[4].slow[5], "a slow link, and a slow way to the next rank");
    bench_health(facts, 5, 0.8, ills);
    tap_ok(count_slow(ills, 5) == 2 && !ills[3].slow[0], "another threshold");
    make(facts, 4);
    for (int i = 0; i < 4; i++)
        strcpy(facts[i].host, i < 2 ? "a" : "b");
    facts[1].message = facts[3].message = 1e-5; /* between the hosts */
    bench_health(facts, 4, BENCH_HEALTH_RATE, ills);
    tap_ok(count_slow(ills, 4) == 0, "a message to another host takes longer, and is no slow one for that");
    facts[3].message = 3e-5;
    bench_health(facts, 4, BENCH_HEALTH_RATE, ills);
    tap_ok(count_slow(ills, 4) == 1 && ills[3].slow[5], "but beside the others that go there");
    bench_health(facts, 4, 0.1, ills);
    tap_ok(count_slow(ills, 4) == 0, "who is lenient with rates is so with latencies");
    make(facts, 2);
    facts[1].copy = 3e12;
    bench_health(facts, 2, BENCH_HEALTH_RATE, ills);
    tap_ok(count_slow(ills, 2) == 1 && ills[1].slow[1], "of two ranks the faster is the measure");
    make(facts, 1);
    facts[0].link_in = facts[0].link_out = facts[0].launch = facts[0].message = NAN;
    bench_health(facts, 1, BENCH_HEALTH_RATE, ills);
    tap_ok(count_slow(ills, 1) == 0 && isnan(ills[0].of_median[5]), "one rank, and what is not known: nothing is slow");
}

int main(void)
{
    test_times();
    test_health();
    return tap_done();
}
