/* Ranks: the communicator, agreement on errors, and the exchange of partials. The only part of the library that calls
   MPI. Every function is collective unless it says otherwise, and returns the same status on every rank. */
#ifndef ALLFOLD_COMM_H
#define ALLFOLD_COMM_H

#include "base/phase.h"
#include "fold/table.h"

struct comm {
    int rank, size;
    int local_rank, local_size; /* among the ranks that share this host's memory */
    char host[256];
    char device[32];            /* what core/ calls this rank's device in messages; may be empty */
    int hosts;                  /* between which MPI_Allreduce combines: see comm_open */
    struct comm_mpi *mpi;       /* what comm.c keeps of MPI; mpi.h stays there */
    struct progress *progress;  /* where this rank shows its phase: own, or the program's */
    struct progress own;
};

/* mpi points to an MPI_Comm, which is duplicated. To exchanges a host is a row of neighbouring ranks that share memory; a rank
   that has none to share, or whose exchange is ALLFOLD_EXCHANGE_MPI, is a host of its own. *error may hold a failure of this rank
   already; it becomes everyone's, and none is opened. */
allfold_status comm_open(const void *mpi, allfold_exchange exchange, struct comm *comm, struct error *error);
void comm_close(struct comm *comm);

/* Makes one rank's error every rank's: on return *error is that of the lowest rank that failed (its text then begins
   with that rank and host), or still none. */
allfold_status comm_agree(struct comm *comm, struct error *error);

/* What a rank brings to an exchange and takes from it. */
struct comm_part {
    uint32_t call; /* what the ranks are doing; any number but UINT32_MAX */
    enum monoid monoid;
    allfold_type type;
    uint64_t count;          /* elements: of this rank's part, then of all */
    struct partial *partial; /* of this rank's part, then of all */
};

/* part->partial becomes the ranks' partials combined in rank order, part->count their sum, and *error is agreed upon in the
   same exchange; on failure both stay. Indices in a partial count from the rank's own first element before, and are global
   after. An error unless call, monoid and type are the same on all. Ranks of one host combine through memory, hosts by one
   MPI_Allreduce (partials of more than 608 bytes: two); a failure costs one broadcast of the message. */
allfold_status comm_combine(struct comm *comm, struct comm_part *part, struct error *error);

/* bytes of root's memory to all. An error that root holds already becomes every rank's instead. */
allfold_status comm_broadcast(struct comm *comm, int root, void *memory, size_t bytes, struct error *error);

/* The ranks' memory of `bytes` each, in rank order, into all (size * bytes, significant on rank 0). */
allfold_status comm_gather(struct comm *comm, const void *memory, size_t bytes, void *all, struct error *error);
/* The same, into every rank's all. */
allfold_status comm_gather_all(struct comm *comm, const void *memory, size_t bytes, void *all, struct error *error);

/* How many ranks say yes, whatever *error holds. */
allfold_status comm_count(struct comm *comm, bool yes, int *count, struct error *error);
/* How many ranks gave the same key (*same, this one among them) and how many of those are lower ones (*before). */
allfold_status comm_same(struct comm *comm, uint64_t key, int *same, int *before, struct error *error);

#endif
