/* Ranks: the communicator, agreement on errors, and the exchange of partials. The only part of the library that calls
   MPI. Every function is collective unless it says otherwise, and returns the same status on every rank. */
#ifndef ALLFOLD_COMM_H
#define ALLFOLD_COMM_H

#include "base/base.h"
#include "fold/table.h"

#include <mpi.h>

struct comm {
    MPI_Comm mpi; /* a duplicate of the caller's */
    int rank, size;
    int local_rank, local_size; /* among the ranks that share this host's memory */
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Datatype record_type; /* what the exchange sends: a record of this many bytes */
    size_t record_bytes;
    MPI_Op combine;
};

allfold_status comm_open(MPI_Comm mpi, struct comm *comm, struct error *error);
void comm_close(struct comm *comm);

/* Makes one rank's error every rank's: on return *error is that of the lowest rank that failed (its text then begins
   with that rank and host), or still none. */
allfold_status comm_agree(struct comm *comm, struct error *error);

/* *partial (monoid, type) of *count elements becomes the ranks' partials combined in rank order, *count their sum, and
   *error is agreed upon in the same exchange. Indices in a partial count from the rank's own first element before, and
   are global after. One MPI_Allreduce, and on failure one broadcast of the message. */
allfold_status comm_combine(struct comm *comm, enum monoid monoid, allfold_type type, struct partial *partial,
                            uint64_t *count, struct error *error);

/* bytes of root's memory to all. An error that root holds already becomes every rank's instead. */
allfold_status comm_broadcast(struct comm *comm, int root, void *memory, size_t bytes, struct error *error);

/* The ranks' memory of `bytes` each, in rank order, into all (size * bytes, significant on rank 0). */
allfold_status comm_gather(struct comm *comm, const void *memory, size_t bytes, void *all, struct error *error);

#endif
