/* The fault hook, an object of tests/allfold-faulty alone: it looks in at phase_enter and does harm to one rank as it goes
   from one phase to the next, as ALLFOLD_FAULT says: "RANK:FROM>TO:KIND:COUNT", with KIND one of kill, segfault, stop, exit,
   error, usr1, sleep, lost (it waits for a message that nobody sends), touch (the file ALLFOLD_FAULT_STRUCK gets another time, from then
   on in each such step), and of stop-inside, hang-inside, stop-left and stop-last, which act
   later: in MPI_Finalize, after it, after all exit handlers. FROM may be *. COUNT, if given: the how manieth time.
   Before it does, it makes a file called ALLFOLD_FAULT_STRUCK, if that is set: whose time tells when. */
#include "base/phase.h"

#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    int rank, count, touched;
    char from[16], to[16], kind[16];
    bool last;
} fault;

static void stop(void) { raise(SIGSTOP); }

static int stop_attribute(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)value, (void)state;
    stop();
    return MPI_SUCCESS;
}

static int hang_attribute(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)value, (void)state;
    while (pause() != 0)
        ;
    return MPI_SUCCESS;
}

/* MPI_Finalize begins by deleting the attributes of MPI_COMM_SELF. */
static void act_inside(MPI_Comm_delete_attr_function *act)
{
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, act, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

__attribute__((destructor)) static void finish(void)
{
    if (fault.last)
        stop();
}

static void harm(void)
{
    static volatile int *volatile nowhere = NULL;
    const char *const struck = getenv("ALLFOLD_FAULT_STRUCK");
    if (struck != NULL)
        close(open(struck, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    if (strcmp(fault.kind, "kill") == 0)
        raise(SIGKILL);
    else if (strcmp(fault.kind, "segfault") == 0)
        *nowhere = 1;
    else if (strcmp(fault.kind, "stop") == 0)
        stop();
    else if (strcmp(fault.kind, "exit") == 0)
        exit(0);
    else if (strcmp(fault.kind, "error") == 0) { /* what a main does that finds an error on its own */
        MPI_Finalize();
        exit(3);
    } else if (strcmp(fault.kind, "usr1") == 0)
        raise(SIGUSR1);
    else if (strcmp(fault.kind, "touch") == 0 && struck != NULL) {
        const struct timespec time = {.tv_sec = ++fault.touched};
        utimensat(AT_FDCWD, struck, (const struct timespec[2]){time, time}, 0);
        fault.count = 1;
    } else if (strcmp(fault.kind, "sleep") == 0)
        sleep(1000);
    else if (strcmp(fault.kind, "stop-inside") == 0)
        act_inside(stop_attribute);
    else if (strcmp(fault.kind, "hang-inside") == 0)
        act_inside(hang_attribute);
    else if (strcmp(fault.kind, "stop-left") == 0)
        atexit(stop);
    else if (strcmp(fault.kind, "stop-last") == 0)
        fault.last = true;
    else if (strcmp(fault.kind, "lost") == 0)
        MPI_Recv(NULL, 0, MPI_INT, fault.rank, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void observe(enum phase left, enum phase entered)
{
    int rank;
    if (strcmp(fault.to, phase_name(entered)) != 0
        || (strcmp(fault.from, "*") != 0 && strcmp(fault.from, phase_name(left)) != 0))
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == fault.rank && --fault.count == 0)
        harm();
}

__attribute__((constructor)) static void install(void)
{
    const char *const text = getenv("ALLFOLD_FAULT");
    if (text == NULL)
        return;
    fault.count = 1;
    if (sscanf(text, "%d:%15[^>]>%15[^:]:%15[^:]:%d", &fault.rank, fault.from, fault.to, fault.kind, &fault.count) < 4)
        abort();
    phase_observer = observe;
}
