/* A library for LD_PRELOAD whose MPI_Init puts handlers in the place of what the program has for signals, as an LLVM does that
   MPI's libraries load (hwloc's plugin for OpenCL). If ALLFOLD_LATE is set, the threads in which Open MPI 4 polls take that many seconds
   to look at what woke them, as on a loaded machine. */
#include <dlfcn.h>
#include <mpi.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int poll(struct pollfd *files, nfds_t count, int timeout)
{
    int (*const real)(struct pollfd *, nfds_t, int) = (int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll");
    const char *const late = getenv("OMPI_COMM_WORLD_RANK") != NULL ? getenv("ALLFOLD_LATE") : NULL;
    const int found = real(files, count, timeout);
    const double until = seconds() + (late != NULL && found > 0 && gettid() != getpid() ? atof(late) : 0);
    while (seconds() < until)
        ;
    return found;
}

static void on_signal(int number)
{
    (void)number;
    _exit(1);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    static const int numbers[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ};
    const int status = PMPI_Init_thread(argc, argv, required, provided);
    for (unsigned int i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        signal(numbers[i], on_signal);
    return status;
}
