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
    bool exact;                 /* exact folds may be called: every exchange by MPI begins with a sum of words */
    struct comm_mpi *mpi;       /* what comm.c keeps of MPI; mpi.h stays there */
    struct progress *progress;  /* where this rank shows its phase: own, or the program's */
    struct progress own;
};

/* mpi points to an MPI_Comm, which is duplicated. */
allfold_status comm_open(const void *mpi, struct comm *comm, struct error *error);
void comm_close(struct comm *comm);

/* Makes one rank's error every rank's: on return *error is that of the lowest rank that failed (its text then begins
   with that rank and host), or still none. */
allfold_status comm_agree(struct comm *comm, struct error *error);

/* *partial (monoid, type) of *count elements becomes the ranks' partials combined in rank order, *count their sum, and
   *error is agreed upon in the same exchange. Indices in a partial count from the rank's own first element before, and
   are global after. call is a number, below 2^22, for what the ranks are doing; an error unless it, monoid and type are the
   same on all. One exchange, and on failure one broadcast of the message: through memory where all ranks are on one host, else
   one MPI_Allreduce. Where comm->exact is set that is a sum of integers, which exact folds of up to COMM_WORDS words need nothing
   but; wider ones then send the rest, ordered ones their record. */
#define COMM_WORDS 71 /* a sum of f64 */
allfold_status comm_combine(struct comm *comm, uint32_t call, enum monoid monoid, allfold_type type,
                            struct partial *partial, uint64_t *count, struct error *error);

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
