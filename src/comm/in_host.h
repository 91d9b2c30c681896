/* Exchanges small messages among ranks that share memory, in one hop instead of several. comm.c and beside.c call it. */
#pragma once

#include "base/base.h"

#include <mpi.h>

/* One rank, or each, reads all messages. For many ranks a tree of messages is faster. Measured up to 16 ranks: a fifth
   of MPI's time, and 0.02 us more for each further rank (docs/performance.md). That it is still faster at 64 is an estimate. */
#define IN_HOST_RANKS_MOST 64

struct in_host {
    MPI_Comm progress; /* a waiting rank lets MPI make progress on it; MPI_COMM_NULL: MPI is not called */
    int rank, size;
    uint64_t round;    /* the last that began */
    char *memory;      /* of all ranks; NULL: not open */
    size_t slot_bytes; /* of each of a rank's two slots */
    int looks;         /* polls of a waiting rank before it yields its core */
};

/* Opens slots for messages of up to `bytes` among the ranks of a communicator, which must share memory. The communicator may be
   freed afterwards. Succeeds on all ranks or on none; *error then says why. */
allfold_status in_host_open(struct in_host *in_host, MPI_Comm comm, MPI_Comm progress, size_t bytes, struct error *error);
/* Local: other ranks may still read their slots. */
void in_host_close(struct in_host *in_host);

/* Begins a round and returns the place of this rank's message in it, aligned to 16. All ranks must begin the same number of
   rounds. Either all ranks give and all take all messages in every round. Or all give and rank 0 takes in one round, and rank 0
   gives and the others take in the next. */
void *in_host_begin(struct in_host *in_host);
/* Publishes the message, which must be complete. */
void in_host_give(struct in_host *in_host);
/* Waits for a rank's message of this round, which stays until this rank begins the next. MPI makes progress meanwhile: returns
   its error code. */
int in_host_take(const struct in_host *in_host, int rank, const void **message);
