/* Prepares MPI_Init, and opens the GPU beside it: see start.h. */
#include "cli/start.h"

#include "base/host.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MCA "OMPI_MCA_"
#define HWLOC_CHOICE "HWLOC_COMPONENTS", "HWLOC_PLUGINS_PATH"

/* One setting. The first row of a name that applies is taken. */
struct setting {
    const char *name, *value;
    const char *unless[2]; /* the user has set one of these */
    bool single_process; /* only without a launcher */
};

static const struct setting settings_of_start[] = {
    /* hwloc, for Open MPI: no search for GPUs through other libraries; one process needs to know nothing of the machine. */
    {"HWLOC_PLUGINS_PATH", "/nonexistent", {HWLOC_CHOICE}, true},
    {"HWLOC_COMPONENTS", "no_os,stop", {HWLOC_CHOICE}, true},
    {"HWLOC_PLUGINS_BLACKLIST",
     "hwloc_opencl.so,hwloc_cuda.so,hwloc_nvml.so,hwloc_gl.so,hwloc_rsmi.so,hwloc_levelzero.so", {HWLOC_CHOICE}, false},
    {"HWLOC_COMPONENTS", "-opencl,-cuda,-nvml,-gl,-rsmi,-levelzero", {HWLOC_CHOICE}, false},
    /* Open MPI 4: no daemon for one process, and no folder for what it would share. Two of such processes that start and end at
       the same time would remove each other's. */
    {MCA "ess_singleton_isolated", "1", {MCA "ess_singleton_isolated"}, true},
    {MCA "orte_create_session_dirs", "0", {MCA "orte_create_session_dirs"}, true},
    /* No network is opened for messages of a rank to itself. */
    {MCA "pml", "ob1", {MCA "pml"}, true},
    {MCA "btl", "self", {MCA "btl"}, true},
    {MCA "coll", "self,basic,libnbc", {MCA "coll"}, true},
    {MCA "osc", "^ucx,rdma,pt2pt,portals4", {MCA "osc"}, true},
};

/* Whether Open MPI's file of the user's own settings has a line "name = ...". */
static bool in_users_file(const char *name)
{
    const char *const home = getenv("HOME");
    char path[4096], line[4096];
    bool found = false;
    if (home == NULL || snprintf(path, sizeof path, "%s/.openmpi/mca-params.conf", home) >= (int)sizeof path)
        return false;
    FILE *const file = fopen(path, "r");
    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        const char *const word = line + strspn(line, " \t");
        const size_t length = strlen(name);
        found = strncmp(word, name, length) == 0 && strchr(" \t=", word[length]) != NULL && word[length] != '\0';
    }
    fclose(file);
    return found;
}

static bool set_by_user(const char *name)
{
    return name != NULL && (getenv(name) != NULL || (strncmp(name, MCA, strlen(MCA)) == 0 && in_users_file(name + strlen(MCA))));
}

void start_environment(const struct launch *launch)
{
    enum { ROWS = sizeof settings_of_start / sizeof *settings_of_start };
    bool applies[ROWS];
    for (int i = 0; i < ROWS; i++) { /* before any is set, which would look like the user's */
        const struct setting *const row = &settings_of_start[i];
        applies[i] = (launch->single_process || !row->single_process) && !set_by_user(row->unless[0]) && !set_by_user(row->unless[1]);
    }
    for (int i = 0; i < ROWS; i++)
        if (applies[i])
            setenv(settings_of_start[i].name, settings_of_start[i].value, 0);
}

void start_begin(struct start *start)
{
    struct timespec cpu = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    *start = (struct start){.begun = clock_seconds(), .loading = (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec};
}

/* ---- the device */

static struct {
    pthread_t thread;
    bool runs;
    allfold_backend backend;
    int local_rank;
    double seconds;
} device;

static void *prepare_device(void *nothing)
{
    const double begun = clock_seconds();
    (void)nothing;
    backend_prepare(device.backend, device.local_rank);
    device.seconds = clock_seconds() - begun;
    return NULL;
}

void start_device(const struct settings *settings, const struct launch *launch)
{
    sigset_t all, before;
    if (settings->command == NULL || settings->help || settings->command->works_on != WORKS_ON_DEVICE || launch->local_rank < 0
        || !backend_prepares(settings->context.backend))
        return;
    device.backend = settings->context.backend;
    device.local_rank = launch->local_rank;
    /* the thread reads the environment, to which MPI_Init adds meanwhile: see environment.c */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals go to the thread that works */
    device.runs = pthread_create(&device.thread, NULL, prepare_device, NULL) == 0; /* else the device is opened later */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void start_device_wait(struct start *start)
{
    const double before = clock_seconds();
    if (!device.runs)
        return;
    pthread_join(device.thread, NULL);
    device.runs = false;
    start->device = device.seconds;
    start->waiting = clock_seconds() - before;
}
