/* Shows the phase of a rank, and takes the request to stop: see phase.h. */
#include "base/phase.h"

#include "base/host.h"

#include <signal.h>

static const char *const names[] = {
#define ROW(ID, name, text) #name,
    PHASES(ROW)
#undef ROW
};

void (*phase_observer)(enum phase left, enum phase entered);

const char *phase_name(enum phase phase) { return phase < PHASE_COUNT ? names[phase] : "no phase"; }

const char *stop_name(int signal)
{
    switch (signal) {
#define CASE(name) case SIG##name: return "SIG" #name;
        STOP_SIGNALS(CASE)
#undef CASE
    default: return "a signal";
    }
}

/* This thread's clock, while it works beside others. */
static _Thread_local struct phase_clock *own_clock;

enum phase phase_of_thread(const struct progress *progress)
{
    return own_clock != NULL ? own_clock->phase : (enum phase)atomic_load_explicit(&progress->phase, memory_order_relaxed);
}

static void publish(struct progress *progress, enum phase left, enum phase entered)
{
    atomic_store_explicit(&progress->phase, (uint32_t)entered, memory_order_relaxed);
    atomic_fetch_add_explicit(&progress->changes, 1, memory_order_relaxed);
    if (phase_observer != NULL)
        phase_observer(left, entered);
}

static void clock_enter(struct phase_clock *clock, enum phase phase)
{
    const double now = clock_seconds();
    clock->seconds[clock->phase] += now - clock->entered;
    clock->entered = now;
    clock->phase = phase;
}

enum phase phase_enter(struct progress *progress, enum phase phase)
{
    const enum phase left = phase_of_thread(progress);
    if (left == phase)
        return left;
    if (own_clock != NULL) {
        clock_enter(own_clock, phase);
    } else {
        const double now = clock_seconds();
        if (progress->entered > 0)
            progress->seconds[left] += now - progress->entered;
        progress->entered = now;
    }
    publish(progress, left, phase);
    return left;
}

void phase_clock_start(struct phase_clock *clock, struct progress *progress, enum phase first)
{
    const double now = clock_seconds();
    *clock = (struct phase_clock){.phase = first, .begun = now, .entered = now};
    own_clock = clock;
    publish(progress, PHASE_COUNT, first);
}

void phase_clock_stop(void)
{
    const enum phase left = own_clock->phase;
    clock_enter(own_clock, left);
    own_clock = NULL;
    if (phase_observer != NULL)
        phase_observer(left, PHASE_COUNT);
}

void phase_clocks_add(struct progress *progress, const struct phase_clock *clocks, int count, enum phase before, enum phase now)
{
    if (progress->entered > 0)
        progress->seconds[before] += clocks[0].begun - progress->entered;
    progress->entered = clock_seconds();
    publish(progress, PHASE_COUNT, now);
    for (int i = 0; i < count; i++)
        for (int phase = 0; phase < PHASE_COUNT; phase++)
            progress->seconds[phase] += clocks[i].seconds[phase] / count;
}

void progress_expect(struct progress *progress, uint64_t bytes)
{
    atomic_store(&progress->done, 0);
    atomic_store(&progress->total, bytes);
}

allfold_status progress_check(const struct progress *progress, struct error *error)
{
    const int stop = atomic_load_explicit(&progress->stop, memory_order_relaxed);
    if (stop == 0 || error->status != ALLFOLD_OK)
        return error->status;
    const uint64_t done = atomic_load(&progress->done), total = atomic_load(&progress->total);
    return error_set(error, ALLFOLD_STOPPED, "stopped by %s after %.3g%% of the work", stop_name(stop),
                     total > 0 ? 100.0 * (double)done / (double)total : 0.0);
}
