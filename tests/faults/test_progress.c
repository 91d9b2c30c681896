/* When progress is shown in a log, and what: with a clock of the test's own. */
#define TAP_WITHOUT_MPI
#include "base/host.h"
#include "tests/tap.h"

static double now;
static double test_clock(void) { return now; }
#define clock_seconds test_clock
#include "cli/progress.c"
#undef clock_seconds

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* As standard output on the same terminal, which has a buffer of its own. */
static void must_write(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        abort();
}

/* What follows on a terminal, by whatever way, begins where the line was. */
static void test_terminal(void)
{
    const int ours = posix_openpt(O_RDWR | O_NOCTTY);
    char text[512] = "";
    if (ours < 0 || grantpt(ours) != 0 || unlockpt(ours) != 0 || dup2(open(ptsname(ours), O_RDWR | O_NOCTTY), STDERR_FILENO) < 0) {
        tap_ok(false, "a terminal");
        return;
    }
    progress.began = progress.shown = progress.ended = 0;
    tap_ok(strcmp(progress_eraser(), "") == 0, "without a line on the terminal there is nothing to remove");
    for (int second = 0; second < 3; second++, now += 1)
        progress_show((uint64_t)second + 1, 10);
    tap_ok(strcmp(progress_eraser(), "\r\033[K") == 0, "a message that cannot wait removes it first");
    progress_end();
    must_write("sum = 1");
    for (size_t length = 0; strstr(text, "= 1") == NULL && length < sizeof text - 1;)
        length += (size_t)read(ours, text + length, 1);
    tap_ok(strstr(text, " left\033[K\r\033[Ksum = 1") != NULL, "results do not follow the line");
}

int main(void)
{
    enum { MINUTES = 10 };
    const uint64_t total = 6000000000, per_second = 10000000;
    char text[8192] = "", line[80];
    FILE *const log = tmpfile();
    int lines = 0, wrong = 0;
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* as the program has it */
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
    test_terminal();
    return tap_done();
}
