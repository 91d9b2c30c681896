/* Checks how the program was started: as one job, with the same arguments on all ranks. */
#pragma once

#include "base/base.h"

#include <mpi.h>

/* What the launcher says of the job. Must be read before MPI_Init, which may add to the environment. */
struct launch {
    const char *variable; /* the environment variable that says so; NULL if none does */
    char count[24];       /* how many tasks were started, as it says; or the beginning of that */
    long tasks, task;     /* the same as a number, if there is one so large, and which task this is */
    bool single_process;  /* no launcher started this process: MPI_Init will find one rank */
    int local_rank;       /* among the tasks of this host; -1: not known before MPI_Init */
    const char *unbind;   /* what to type so that ranks get more cores, with a %d for their number; NULL: no launcher */
};
struct launch launch_read(void);

/* Fails if a launcher started several tasks that MPI does not know to be one job: each would work alone and take its part for the
   whole. */
allfold_status launch_check(const struct launch *launch, int ranks, struct error *error);

/* The same before MPI_Init, if it is already certain that MPI will not know. */
allfold_status launch_check_early(const struct launch *launch, struct error *error);

/* Collective. Fails if ranks were given different arguments: they would wait for each other forever. */
allfold_status launch_compare(int argc, char **argv, struct error *error);
