/* Ranks: the communicator, agreement on errors, and the exchange of partials. No other part of the library calls MPI. Every
   function is collective unless it says otherwise, and returns the same status on every rank. */
#pragma once

#include "base/phase.h"
#include "fold/table.h"

struct comm {
    int rank, size;
    int local_rank, local_size; /* among the ranks that share this host's memory */
    char host[256];
    char device[32];            /* the name of this rank's device in messages, set by core/; may be empty */
    bool different_calls;       /* that the ranks made, in the last exchange */
    int hosts;                  /* number of hosts that MPI_Allreduce combines: see comm_open */
    struct comm_mpi *mpi;       /* comm.c's own MPI state, so that only comm.c needs mpi.h */
    struct progress *progress;  /* where this rank publishes its phase: comm's own, or the program's */
    struct progress own;
};

/* mpi points to an MPI_Comm, which is duplicated. For exchanges a host is a row of neighbouring ranks that share memory. A rank
   that shares no memory, or whose exchange is ALLFOLD_EXCHANGE_MPI, is a host of its own. If *error holds a failure of this rank
   already, it becomes everyone's, and nothing is opened. */
allfold_status comm_open(const void *mpi, allfold_exchange exchange, struct comm *comm, struct error *error);
void comm_close(struct comm *comm);

/* Makes one rank's error every rank's. On return *error is that of the lowest rank that failed (its text then begins with that
   rank and host), or none. */
allfold_status comm_agree(struct comm *comm, struct error *error);
/* The same, and it is an error unless `call`, any number but UINT64_MAX, is the same on all ranks. */
allfold_status comm_agree_call(struct comm *comm, uint64_t call, struct error *error);

/* A rank's part of an exchange: input and result. */
struct comm_part {
    uint64_t call; /* identifies the call that the ranks make; any number below 2^63 - 1, and COMM_WHOLE_INDICES if it applies */
    enum monoid monoid;
    allfold_type type;
    uint64_t count;          /* elements: in, of this rank's part; out, of all */
    struct partial *partial; /* in, of this rank's part; out, of all; NULL: none, for an agreement */
};

/* In a call: the partials' indices are those of the whole array already. */
#define COMM_WHOLE_INDICES (UINT64_C(1) << 63)

/* part->partial becomes the ranks' partials combined in rank order, part->count the sum of their counts. The same exchange agrees
   on *error; on failure both stay as they were. Indices in a partial count from the rank's own first element before,
   unless the call says that they do not, and are global after. It is an error unless call, monoid and type are the same on all ranks. Ranks of one host combine through shared
   memory, hosts by one MPI_Allreduce (partials of more than 608 bytes: two). A failure costs one broadcast of the message. */
allfold_status comm_combine(struct comm *comm, struct comm_part *part, struct error *error);

/* Combines count > 0 parts in one exchange; they succeed or fail together. The sum of comm_bytes of all is at most
   COMM_BYTES_MOST. */
allfold_status comm_combine_all(struct comm *comm, struct comm_part *parts, int count, struct error *error);
enum { COMM_BYTES_MOST = 8192 };
size_t comm_bytes(const struct comm_part *part);
/* How many of the parts, from the first on, fit one exchange. Local. */
int comm_fit(const struct comm_part *parts, int count);
/* Combines any number of parts, in as many exchanges as they need room for. The first fails if a part of any rank has failed. The ranks'
   calls must differ if their numbers of parts do. Without parts, or with an error, it is an agreement. */
allfold_status comm_combine_many(struct comm *comm, struct comm_part *parts, uint64_t count, struct error *error);

/* Sends bytes of root's memory to all ranks. If root holds an error, it becomes every rank's instead. */
allfold_status comm_broadcast(struct comm *comm, int root, void *memory, size_t bytes, struct error *error);

/* Agrees on *error and gathers `bytes` > 0 of each rank, in rank order. Returns them on rank 0, which frees them. NULL on the
   other ranks, and after a failure. */
void *comm_gather(struct comm *comm, const void *memory, size_t bytes, struct error *error);
/* The same, on every rank. */
void *comm_gather_all(struct comm *comm, const void *memory, size_t bytes, struct error *error);
/* As comm_gather_all, with comm_agree_call as its agreement. */
void *comm_gather_call(struct comm *comm, uint64_t call, const void *memory, size_t bytes, struct error *error);

/* Counts the ranks that say yes, whatever *error holds. */
allfold_status comm_count(struct comm *comm, bool yes, int *count, struct error *error);
/* Counts the ranks that gave the same key (*same, this rank included) and the lower ranks among them (*before). */
allfold_status comm_same(struct comm *comm, uint64_t key, int *same, int *before, struct error *error);
