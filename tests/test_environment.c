/* The program's setenv, unsetenv and putenv: as POSIX says, and an array that another thread may be reading stays as it was. */
#define TAP_WITHOUT_MPI
#include "tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

/* The array that is in use, and what it holds, when this is called. */
struct view {
    char **array, *held[4096];
    size_t count;
};

static struct view look(void)
{
    struct view view = {.array = environ};
    while (view.count < 4096 && environ[view.count] != NULL) {
        view.held[view.count] = environ[view.count];
        view.count++;
    }
    return view;
}

static bool is_same(const struct view *view)
{
    return memcmp(view->held, view->array, view->count * sizeof *view->held) == 0 && view->array[view->count] == NULL;
}

int main(void)
{
    enum { VARIABLES = 200 };
    char name[32];
    int right = 0, same = 0;
    for (int i = 0; i < VARIABLES; i++) {
        const struct view before = look();
        snprintf(name, sizeof name, "ALLFOLD_TEST_%d", i);
        right += setenv(name, "a", 0) == 0 && setenv(name, "b", 0) == 0 && strcmp(getenv(name), "a") == 0 && setenv(name, "", 1) == 0
                 && strcmp(getenv(name), "") == 0;
        same += is_same(&before);
    }
    tap_ok(right == VARIABLES, "%d variables are set, kept and replaced", right);
    tap_ok(same == VARIABLES, "every array of the environment stays as it was: %d", same);
    const struct view all = look();
    tap_ok(setenv("", "a", 1) == -1 && errno == EINVAL && setenv("A=B", "a", 1) == -1 && unsetenv("A=B") == -1 && unsetenv("ALLFOLD_TEST_1") == 0
               && getenv("ALLFOLD_TEST_1") == NULL && getenv("ALLFOLD_TEST_0") != NULL, "names that are none are refused, and unsetenv works");
    static char own[] = "ALLFOLD_TEST_OWN=1", other[] = "ALLFOLD_TEST_OWN=2", none[] = "ALLFOLD_TEST_OWN";
    const bool put = putenv(own) == 0 && getenv("ALLFOLD_TEST_OWN") == own + 17;
    const struct view first = look();
    tap_ok(put && putenv(other) == 0 && getenv("ALLFOLD_TEST_OWN") == other + 17 && putenv(none) == 0 && getenv("ALLFOLD_TEST_OWN") == NULL,
           "putenv takes the caller's own text");
    tap_ok(is_same(&all) && is_same(&first), "unsetenv and putenv leave the array that was in use as it was");
    return tap_done();
}
