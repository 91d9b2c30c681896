/* Small messages among ranks that are all on one host, through memory that they share: one hop, where messages would take
   several. Used by comm.c, which has MPI do the same between hosts. */
#ifndef ALLFOLD_IN_HOST_H
#define ALLFOLD_IN_HOST_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Everyone reads everyone's message: from some number of ranks on a tree of messages is quicker. It is more than 16, where this
   takes a fifth of MPI's time, and 0.02 us for each further rank (docs/performance.md); more cores have not been tried. */
#define IN_HOST_RANKS_MOST 64

struct in_host {
    MPI_Comm comm;
    int rank, size;
    uint64_t round;    /* the last */
    char *memory;      /* of all ranks; NULL: not open */
    size_t slot_bytes; /* of each of a rank's two slots */
    int looks;         /* before a rank that waits lets others have its core */
};

/* For messages of up to `bytes`. Collective over comm, which must stay until in_host_close and whose ranks must all be on this
   host. Not open, on all ranks, where they are too many or there is no memory for it: MPI has to do then. */
void in_host_open(struct in_host *in_host, MPI_Comm comm, size_t bytes);
static inline bool in_host_is_open(const struct in_host *in_host) { return in_host->memory != NULL; }
/* Local, since others may still read what is theirs. */
void in_host_close(struct in_host *in_host);

/* Gives all ranks this one's message and waits for theirs, whose lengths may differ. Collective; it is a barrier, too. An MPI
   error code, since MPI goes on working meanwhile. */
int in_host_exchange(struct in_host *in_host, const void *message, size_t bytes);

/* What a rank has given in the last exchange: as many bytes as it gave, aligned to 8. It stays until this rank's next one. */
const void *in_host_message(const struct in_host *in_host, int rank);

#endif
