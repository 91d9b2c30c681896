/* Removes temporary files at an early end: see temporary.h. */
#include "watch/temporary.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MAX = 2 };

static struct {
    char path[PATH_MAX];
    atomic_bool remembered;
} files[FILES_MAX];

void temporary_forget(const char *path)
{
    for (int i = 0; i < FILES_MAX; i++)
        if (strcmp(files[i].path, path) == 0)
            atomic_store(&files[i].remembered, false);
}

void temporary_remember(const char *path)
{
    temporary_forget(path);
    for (int i = 0; i < FILES_MAX && path[0] != '\0' && strlen(path) < PATH_MAX; i++)
        if (!atomic_load(&files[i].remembered)) {
            strcpy(files[i].path, path);
            atomic_store(&files[i].remembered, true);
            return;
        }
}

void temporary_remove(void)
{
    for (int i = 0; i < FILES_MAX; i++)
        if (atomic_load(&files[i].remembered))
            unlink(files[i].path);
}
