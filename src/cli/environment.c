/* setenv, putenv and unsetenv of the whole program and of the libraries that it loads (environment.list exports them). A
   thread opens a GPU, and CUDA's driver reads the environment there, while MPI_Init adds variables to it in another
   thread. glibc before 2.41 may then free the array that getenv is reading. Which names MPI_Init adds depends on its
   version and its components, so they cannot be set beforehand. Here every change makes a new array, and no array that
   was in use changes or is freed. Usual environments need no memory for that: MPI_Init ends without a message if it runs
   out. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

extern char **environ;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of those who write; readers need none */

/* Memory for an array of `count` pointers. */
static char **array_allocate(size_t count)
{
    static char *pool[1 << 14]; /* 60 changes of 250 variables */
    static size_t used;
    if (count > sizeof pool / sizeof *pool - used)
        return calloc(count, sizeof *pool);
    used += count;
    return pool + used - count;
}

/* Without the variable of this name, and with `variable` unless that is NULL, at the end. */
static int change(const char *name, size_t length, char *variable)
{
    size_t count = 0, kept = 1;
    while (environ != NULL && environ[count] != NULL)
        count++;
    char **const array = array_allocate(count + 3);
    if (array == NULL)
        return -1;
    array[0] = (char *)environ; /* before the first variable: what is not freed is not lost either */
    for (size_t i = 0; i < count; i++)
        if (strncmp(environ[i], name, length) != 0 || environ[i][length] != '=')
            array[kept++] = environ[i];
    array[kept] = variable;
    __atomic_store_n(&environ, array + 1, __ATOMIC_RELEASE);
    return 0;
}

static bool is_name(const char *name)
{
    const bool fits = name != NULL && name[0] != '\0' && strchr(name, '=') == NULL;
    if (!fits)
        errno = EINVAL;
    return fits;
}

EXPORTED int setenv(const char *name, const char *value, int overwrite)
{
    char *variable;
    if (!is_name(name))
        return -1;
    pthread_mutex_lock(&lock);
    int code = 0;
    if (overwrite || getenv(name) == NULL)
        code = asprintf(&variable, "%s=%s", name, value) < 0 ? -1 : change(name, strlen(name), variable);
    pthread_mutex_unlock(&lock);
    return code;
}

EXPORTED int unsetenv(const char *name)
{
    if (!is_name(name))
        return -1;
    pthread_mutex_lock(&lock);
    const int code = getenv(name) != NULL ? change(name, strlen(name), NULL) : 0;
    pthread_mutex_unlock(&lock);
    return code;
}

EXPORTED int putenv(char *variable)
{
    const char *const end = strchr(variable, '=');
    if (end == NULL)
        return unsetenv(variable);
    pthread_mutex_lock(&lock);
    const int code = change(variable, (size_t)(end - variable), variable);
    pthread_mutex_unlock(&lock);
    return code;
}
