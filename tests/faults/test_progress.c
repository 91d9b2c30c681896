/* When progress is shown in a log, and what: with a clock of the test's own. */
#define TAP_WITHOUT_MPI
#include "base/host.h"
#include "tests/tap.h"

static double now;
static double test_clock(void) { return now; }
#define clock_seconds test_clock
#include "cli/progress.c"
#undef clock_seconds

#include <stdlib.h>
#include <string.h>

int main(void)
{
    enum { MINUTES = 10 };
    const uint64_t total = 6000000000, per_second = 10000000;
    char text[8192] = "", line[80];
    FILE *const log = tmpfile();
    int lines = 0, wrong = 0;
    if (log == NULL || dup2(fileno(log), STDERR_FILENO) < 0)
        return 1;
    /* a quarter was done before, by another run */
    for (now = 1000; now <= 1000 + 60 * MINUTES; now += 0.5)
        progress_show(total / 4 + (uint64_t)((now - 1000) * (double)per_second), total);
    fflush(stderr);
    rewind(log);
    const size_t length = fread(text, 1, sizeof text - 1, log);
    for (const char *c = strchr(text, '\n'); c != NULL; c = strchr(c + 1, '\n'))
        lines++;
    tap_ok(length > 0 && lines == 7, "a line a minute while there is work: %d in 7.5 minutes of it", lines);
    for (int minute = 1; minute <= 7; minute++) {
        snprintf(line, sizeof line, "allfold: %.1f%% of 6 GB, 10 MB/s, ", 25.0 + 10.0 * minute);
        wrong += strstr(text, line) == NULL;
    }
    tap_ok(wrong == 0, "each with its percentage, and the rate of this run");
    tap_ok(strstr(text, "MB/s, 6 min 30 s left\n") != NULL && strstr(text, "MB/s, 30 s left\n") != NULL
               && strchr(text, '\r') == NULL, "and the time that is left");
    progress_end();
    now += 1000;
    progress_show(total / 2, total);
    fseek(log, 0, SEEK_END);
    tap_ok((size_t)ftell(log) == length, "nothing after the end");
    return tap_done();
}
