/* Small messages among ranks that share memory: one hop, where messages would take several. Used by comm.c. */
#ifndef ALLFOLD_IN_HOST_H
#define ALLFOLD_IN_HOST_H

#include "base/base.h"

#include <mpi.h>

/* One rank, or each, reads everyone's message: from some number of ranks on a tree of messages is quicker. It is more than 16,
   which take a fifth of MPI's time, and 0.02 us for each further rank (docs/performance.md); more cores have not been tried. */
#define IN_HOST_RANKS_MOST 64

struct in_host {
    MPI_Comm progress; /* on which a rank that waits lets MPI go on */
    int rank, size;
    uint64_t round;    /* the last that began */
    char *memory;      /* of all ranks; NULL: not open */
    size_t slot_bytes; /* of each of a rank's two slots */
    int looks;         /* before a rank that waits lets others have its core */
};

/* For messages of up to `bytes` among the ranks of a communicator, which must share memory; it may be freed afterwards. On all
   ranks, or on none, and *error then says why. */
allfold_status in_host_open(struct in_host *in_host, MPI_Comm comm, MPI_Comm progress, size_t bytes, struct error *error);
/* Local, since others may still read what is theirs. */
void in_host_close(struct in_host *in_host);

/* Begins a round: where this rank's message in it belongs, aligned to 16. All ranks begin as many rounds. In each either all
   ranks give and all take everyone's message; or, in every second one, all give and rank 0 takes, and in the round after it
   rank 0 gives and the others take. */
void *in_host_begin(struct in_host *in_host);
/* The message is there. */
void in_host_give(struct in_host *in_host);
/* Waits for a rank's message of this round, which stays until this rank begins the next. Returns an MPI error code, since MPI
   goes on working meanwhile. */
int in_host_take(const struct in_host *in_host, int rank, const void **message);

#endif
