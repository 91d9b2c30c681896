/* For LD_PRELOAD, by tests/mpi-launch: a rank that waits for another one sleeps now and then. Open MPI and the exchange within a host yield
   in a loop, and a core that many yield has little time for the rank that they wait for, and for other tests.
   And in a search for leaks plugins stay loaded: for every place in one that is gone it reads the list of what is loaded again, which takes
   most of a short run. (Then leaks that only such a plugin knows of, and uses of what it had, are not found: none is ours.) */
#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int sched_yield(void)
{
    static _Thread_local unsigned int times;
    if (++times % 16 != 0)
        return (int)syscall(SYS_sched_yield);
    return nanosleep(&(struct timespec){0, 50000}, NULL);
}

int dlclose(void *handle)
{
    if (getenv("LSAN_OPTIONS") != NULL)
        return 0;
    int (*close)(void *);
    *(void **)&close = dlsym(RTLD_NEXT, "dlclose");
    return close(handle);
}
