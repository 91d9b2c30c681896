/* Finds ranks whose device or link is slow beside the others'. */
#include "bench/bench.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset;
    bool latency; /* less is better */
} health_facts[BENCH_HEALTH_FACTS] = {
    {"read", offsetof(struct bench_facts, read), false},
    {"copy", offsetof(struct bench_facts, copy), false},
    {"link_in", offsetof(struct bench_facts, link_in), false},
    {"link_out", offsetof(struct bench_facts, link_out), false},
    {"launch", offsetof(struct bench_facts, launch), true},
    {"message", offsetof(struct bench_facts, message), true},
};
const char *const bench_health_names[BENCH_HEALTH_FACTS] = {"read", "copy", "link_in", "link_out", "launch", "message"};

/* A rank's speed: a rate, or one over a latency. */
static double speed(const struct bench_facts *facts, int fact)
{
    const double number = *(const double *)(const void *)((const char *)facts + health_facts[fact].offset);
    return health_facts[fact].latency ? 1.0 / number : number;
}

/* Whether a rank's message goes to another host, which takes longer wherever that is so. */
static bool far(const struct bench_facts *facts, int ranks, int rank)
{
    return strcmp(facts[rank].host, facts[(rank + 1) % ranks].host) != 0;
}

/* The speed that half of the ranks reach, of messages those that go as far; of two, the faster's; of none that are known,
   NaN. Counts: no memory needed. */
static double median_speed(const struct bench_facts *facts, int ranks, int fact, bool to_far)
{
    const bool message = health_facts[fact].offset == offsetof(struct bench_facts, message);
    double best = NAN;
    for (int i = 0; i < ranks; i++) {
        const double mine = speed(&facts[i], fact);
        int faster = 0, known = 0;
        if (message && far(facts, ranks, i) != to_far)
            continue;
        for (int j = 0; j < ranks; j++) {
            if (message && far(facts, ranks, j) != to_far)
                continue;
            known += !isnan(speed(&facts[j], fact));
            faster += speed(&facts[j], fact) > mine || (j < i && speed(&facts[j], fact) == mine);
        }
        if (!isnan(mine) && faster == (known - 1) / 2)
            best = mine;
    }
    return best;
}

void bench_health(const struct bench_facts *facts, int ranks, double least_rate, struct bench_illness *ills)
{
    for (int fact = 0; fact < BENCH_HEALTH_FACTS; fact++) {
        const double medians[2] = {median_speed(facts, ranks, fact, false), median_speed(facts, ranks, fact, true)};
        const bool message = health_facts[fact].offset == offsetof(struct bench_facts, message);
        /* latencies spread more; a bound on rates that is lenient holds for them, too */
        const double least = health_facts[fact].latency ? fmin(BENCH_HEALTH_LATENCY, least_rate) : least_rate;
        for (int i = 0; i < ranks; i++) {
            ills[i].of_median[fact] = speed(&facts[i], fact) / medians[message && far(facts, ranks, i)];
            ills[i].slow[fact] = ills[i].of_median[fact] < least;
        }
    }
}
