/* Prepares MPI_Init, and opens the GPU beside it, so that a start takes no longer than it must. main.c calls these in this
   order. */
#pragma once

#include "cli/cli.h"
#include "cli/launch.h"

/* Seconds of the parts of a start. */
struct start {
    double begun;   /* when main began: clock_seconds */
    double loading; /* CPU seconds of this process before that: the dynamic linker */
    double mpi;     /* MPI_Init */
    double device;  /* what the backend prepared beside it; 0: nothing */
    double waiting; /* for the end of that, after MPI_Init */
};

/* First thing in main. */
void start_begin(struct start *start);

/* Settings for Open MPI and hwloc that leave out what allfold does not need. A setting of the user's own stays: one in the
   environment, or for Open MPI in ~/.openmpi/mca-params.conf. */
void start_environment(const struct launch *launch);

/* Begins to open the device in a thread, if the settings say that one will be used and the launcher says which. */
void start_device(const struct settings *settings, const struct launch *launch);
/* Waits for that thread, if there is one. Must be called before the device is opened and before the process exits. */
void start_device_wait(struct start *start);
