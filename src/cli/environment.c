/* setenv and putenv for the whole program and the libraries that it loads (environment.list exports them). A thread that opens a GPU reads the environment while
   MPI_Init, in another one, adds variables to it. glibc before 2.41 may then free the array that getenv is reading. This one only
   appends: an array that has become too short is replaced, and not freed. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of writers; readers need none */

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

static void publish(char **array, size_t i, char *variable)
{
    __atomic_store_n(&array[i], variable, __ATOMIC_RELEASE);
    __atomic_store_n(&environ, array, __ATOMIC_RELEASE);
}

static int set(const char *name, const char *value, int overwrite)
{
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
    publish(array, i, variable);
    return 0;
}

__attribute__((visibility("default"))) int setenv(const char *name, const char *value, int overwrite)
{
    if (name == NULL || name[0] == '\0' || strchr(name, '=') != NULL) {
        errno = EINVAL;
        return -1;
    }
    pthread_mutex_lock(&lock);
    const int code = set(name, value, overwrite);
    pthread_mutex_unlock(&lock);
    return code;
}

__attribute__((visibility("default"))) int putenv(char *variable)
{
    const char *const end = strchr(variable, '=');
    if (end == NULL)
        return unsetenv(variable);
    pthread_mutex_lock(&lock);
    const size_t i = place_of(variable, (size_t)(end - variable));
    char **const array = environ != NULL && environ[i] != NULL ? environ : array_with_room(i);
    if (array != NULL)
        publish(array, i, variable);
    pthread_mutex_unlock(&lock);
    return array != NULL ? 0 : -1;
}
