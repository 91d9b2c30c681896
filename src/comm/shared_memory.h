/* Opens memory that the ranks of a host share: for their exchange (in_host.c) and the program's board. */
#pragma once

#include "base/base.h"

#include <mpi.h>

/* Maps `bytes` of zeros at *memory, the same pages for all ranks of the communicator, which must be of one host. Collective:
   *memory is set on every rank, or on none, and *error then says why (or that another rank has failed). The pages are reserved,
   so touching them cannot fail. They have no name that could be left behind: they go with the last process that maps them. */
allfold_status shared_memory_open(MPI_Comm comm, size_t bytes, void **memory, struct error *error);

/* Unmaps it. Local: other ranks may still use theirs. Ignores NULL. */
void shared_memory_close(void *memory, size_t bytes);
