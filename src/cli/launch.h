/* How the program was started: as one job, with the same arguments everywhere. */
#ifndef ALLFOLD_CLI_LAUNCH_H
#define ALLFOLD_CLI_LAUNCH_H

#include "base/base.h"

#include <mpi.h>

/* The launcher's word on the job; to be read before MPI_Init, which may add to the environment. */
struct launch {
    const char *variable; /* which environment variable says so; NULL where none does */
    long tasks, task;     /* how many tasks were started and which one this is */
};
struct launch launch_read(void);

/* Fails where a launcher started several tasks that MPI does not know to be one job: each would work alone and call its
   part the whole. */
allfold_status launch_check(const struct launch *launch, int ranks, struct error *error);

/* The same before MPI_Init, where it is certain already that MPI will not know. */
allfold_status launch_check_early(const struct launch *launch, struct error *error);

/* Collective. Fails where ranks were given different arguments: they would wait for each other for ever. */
allfold_status launch_compare(int argc, char **argv, struct error *error);

#endif
