/* The phase of a rank, and the request to stop: see phase.h. */
#include "base/phase.h"

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

enum phase phase_enter(struct progress *progress, enum phase phase)
{
    const enum phase left = (enum phase)atomic_load_explicit(&progress->phase, memory_order_relaxed);
    if (left == phase)
        return left;
    const double now = clock_seconds();
    if (progress->entered > 0)
        progress->seconds[left] += now - progress->entered;
    progress->entered = now;
    atomic_store_explicit(&progress->phase, (uint32_t)phase, memory_order_relaxed);
    atomic_fetch_add_explicit(&progress->changes, 1, memory_order_relaxed);
    if (phase_observer != NULL)
        phase_observer(left, phase);
    return left;
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
