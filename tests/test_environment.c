/* The program's setenv: as POSIX says, and an array that another thread may be reading stays as it was. */
#define TAP_WITHOUT_MPI
#include "tap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

int main(void)
{
    enum { VARIABLES = 200 };
    char name[32];
    int right = 0, same = 0;
    for (int i = 0; i < VARIABLES; i++) {
        char **const before = environ, *copy[4096];
        size_t count = 0;
        while (before[count] != NULL && count < 4095)
            copy[count] = before[count], count++;
        snprintf(name, sizeof name, "ALLFOLD_TEST_%d", i);
        right += setenv(name, "a", 0) == 0 && setenv(name, "b", 0) == 0 && strcmp(getenv(name), "a") == 0 && setenv(name, "", 1) == 0
                 && strcmp(getenv(name), "") == 0;
        same += memcmp(copy, before, count * sizeof *copy) == 0;
    }
    tap_ok(right == VARIABLES, "%d variables are set, kept and replaced", right);
    tap_ok(same == VARIABLES, "every array of the environment stays as it was: %d", same);
    tap_ok(setenv("", "a", 1) == -1 && errno == EINVAL && setenv("A=B", "a", 1) == -1 && unsetenv("ALLFOLD_TEST_1") == 0
               && getenv("ALLFOLD_TEST_1") == NULL && getenv("ALLFOLD_TEST_0") != NULL, "names that are none are refused, and unsetenv works");
    static char own[] = "ALLFOLD_TEST_OWN=1", other[] = "ALLFOLD_TEST_OWN=2", none[] = "ALLFOLD_TEST_OWN";
    char **const before = environ;
    const bool put = putenv(own) == 0 && getenv("ALLFOLD_TEST_OWN") == own + 17 && putenv(other) == 0 && getenv("ALLFOLD_TEST_OWN") == other + 17;
    tap_ok(put && before[0] != NULL && putenv(none) == 0 && getenv("ALLFOLD_TEST_OWN") == NULL, "putenv takes the caller's own text");
    return tap_done();
}
