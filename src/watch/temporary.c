/* The temporary file that must not be left behind: see temporary.h. */
#include "watch/temporary.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static char temporary[PATH_MAX];
static atomic_bool remembered;

void temporary_remember(const char *path)
{
    atomic_store(&remembered, false);
    if (path == NULL || strlen(path) >= sizeof temporary)
        return;
    strcpy(temporary, path);
    atomic_store(&remembered, temporary[0] != '\0');
}

void temporary_remove(void)
{
    if (atomic_load(&remembered))
        unlink(temporary);
}
