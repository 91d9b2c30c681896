/* setenv for the whole program and the libraries that it is linked with. A thread that opens a GPU reads the environment while
   MPI_Init, in another one, adds variables to it. glibc before 2.41 may then free the array that getenv is reading. This one only
   appends: an array that has become too short is replaced, and not freed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* The place of the variable, or the end of the array. */
static size_t place_of(const char *name, size_t length)
{
    size_t i = 0;
    while (environ != NULL && environ[i] != NULL && (strncmp(environ[i], name, length) != 0 || environ[i][length] != '='))
        i++;
    return i;
}

/* Room for one variable more, in place `i` and NULL behind it: in an array of our own, which may have it already. */
static char **array_with_room(size_t i)
{
    enum { SPARE = 64 };
    static char **own;
    static size_t capacity;
    if (environ == own && i + 1 < capacity)
        return own;
    char **const longer = calloc(1 + i + 2 + SPARE, sizeof *longer);
    if (longer == NULL)
        return NULL;
    longer[0] = (char *)own; /* before the first variable: what is not freed is not lost either */
    if (i > 0)
        memcpy(longer + 1, environ, i * sizeof *longer);
    own = longer + 1;
    capacity = i + 2 + SPARE;
    return own;
}

int setenv(const char *name, const char *value, int overwrite)
{
    if (name == NULL || name[0] == '\0' || strchr(name, '=') != NULL) {
        errno = EINVAL;
        return -1;
    }
    char *variable, **array = environ;
    const size_t i = place_of(name, strlen(name));
    char *const old = environ != NULL ? environ[i] : NULL;
    if (old != NULL && !overwrite)
        return 0;
    if (asprintf(&variable, "%*s%s=%s", (int)sizeof old, "", name, value) < 0)
        return -1;
    memcpy(variable, &old, sizeof old); /* what it replaces is not freed, and so not lost either */
    variable += sizeof old;
    if (old == NULL && (array = array_with_room(i)) == NULL) {
        free(variable - sizeof old);
        return -1;
    }
    __atomic_store_n(&array[i], variable, __ATOMIC_RELEASE);
    __atomic_store_n(&environ, array, __ATOMIC_RELEASE);
    return 0;
}
