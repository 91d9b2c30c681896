/* Shows the progress of work that takes longer than two seconds: one line that is overwritten on a terminal, a line a minute
   in the log of a batch job. */
#include "cli/progress.h"

#include "base/host.h"
#include "base/base.h"
#include "cli/number.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define FIRST 2.0           /* seconds after the work began */
#define EACH_TERMINAL 0.5   /* seconds between two */
#define EACH_LOG 60.0

static struct {
    pthread_mutex_t mutex;
    double began, shown;
    uint64_t done_before; /* when it began: the part from a checkpoint took no time */
    atomic_bool line;     /* one is on the terminal */
    bool ended;           /* nothing more is to be shown */
} progress = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void duration(double seconds, char text[32])
{
    const uint64_t s = (uint64_t)(seconds + 0.5);
    if (s < 60)
        snprintf(text, 32, "%d s", (int)s);
    else if (s < 3600)
        snprintf(text, 32, "%d min %02d s", (int)(s / 60), (int)(s % 60));
    else
        snprintf(text, 32, "%d h %02d min", (int)(s / 3600 % 100000), (int)(s / 60 % 60));
}

static void show(uint64_t done, uint64_t total, double seconds, bool terminal)
{
    const double rate = (double)(done - progress.done_before) / seconds;
    char left[32] = "unknown";
    if (rate > 0)
        duration((double)(total - done) / rate, left);
    fprintf(stderr, "%sallfold: %.1f%% of %s, %s/s, %s left%s", terminal ? "\r" : "",
            100.0 * (double)done / (double)total, number_bytes((double)total).text, number_bytes(rate).text, left,
            terminal ? "\033[K" : "\n");
    fflush(stderr);
    progress.line = terminal;
}

void progress_show(uint64_t done, uint64_t total)
{
    const double now = clock_seconds();
    const bool terminal = isatty(STDERR_FILENO) != 0;
    pthread_mutex_lock(&progress.mutex);
    if (progress.began == 0) {
        progress.began = now;
        progress.done_before = done;
    }
    const double each = terminal ? EACH_TERMINAL : EACH_LOG, first = terminal ? FIRST : EACH_LOG;
    if (!progress.ended && done > progress.done_before && done < total && now - progress.began >= first
        && now - progress.shown >= each) {
        show(done, total, now - progress.began, terminal);
        progress.shown = now;
    }
    pthread_mutex_unlock(&progress.mutex);
}

const char *progress_eraser(void) { return atomic_load(&progress.line) ? "\r\033[K" : ""; }

void progress_end(void)
{
    pthread_mutex_lock(&progress.mutex);
    fputs(progress_eraser(), stderr);
    fflush(stderr); /* before what follows on standard output */
    progress.line = false;
    progress.ended = true;
    pthread_mutex_unlock(&progress.mutex);
}
