/* A library for LD_PRELOAD whose MPI_Init puts handlers in the place of what the program has for signals, as an LLVM does that
   MPI's libraries load (hwloc's plugin for OpenCL). */
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

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
