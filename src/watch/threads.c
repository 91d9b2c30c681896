/* Waits for the threads of MPI: see threads.h. A thread that was woken is runnable (R) until it sleeps again. */
#include "watch/threads.h"

#include "base/host.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { REMEMBERED_MAX = 32 };

static long remembered[REMEMBERED_MAX];
static int count;

void threads_remember(void)
{
    DIR *const folder = opendir("/proc/self/task");
    const struct dirent *entry;
    while (folder != NULL && count < REMEMBERED_MAX && (entry = readdir(folder)) != NULL) {
        const long thread = strtol(entry->d_name, NULL, 10);
        if (thread > 0 && thread != getpid())
            remembered[count++] = thread;
    }
    if (folder != NULL)
        closedir(folder);
}

static bool is_runnable(long thread)
{
    char name[64], text[200] = "";
    snprintf(name, sizeof name, "/proc/self/task/%ld/stat", thread);
    FILE *const file = fopen(name, "re");
    if (file == NULL)
        return false;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *const end = strrchr(text, ')'); /* of the program's name */
    return end != NULL && strncmp(end, ") R", 3) == 0;
}

void threads_rest(double seconds)
{
    const double start = clock_seconds();
    for (int looks = 0; looks < 2 && clock_seconds() - start < seconds; looks++) /* twice: one may have woken another */
        for (int i = 0; i < count; i++)
            if (is_runnable(remembered[i])) {
                nanosleep(&(struct timespec){0, 1000000}, NULL);
                looks = -1;
                break;
            }
}
