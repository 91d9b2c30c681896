/* Combines partials in another thread, beside the communicator's own exchange: see comm_beside_combine. */
#pragma once

#include "comm/comm.h"

struct comm_beside;

/* Opens it for the ranks of comm, which must share memory. What is wrong is every rank's error. Collective over comm, which it
   does not use afterwards. */
allfold_status comm_beside_open(struct comm *comm, struct comm_beside **beside, struct error *error);
/* Local. NULL is allowed. */
void comm_beside_close(struct comm_beside *beside);

/* As comm_combine, among the same ranks, through memory alone: it calls no function of MPI, so that a thread may call it whatever threads MPI
   allows. It waits for the other ranks' calls, and not for their calls on the communicator. */
allfold_status comm_beside_combine(struct comm_beside *beside, struct comm_part *part, struct error *error);
