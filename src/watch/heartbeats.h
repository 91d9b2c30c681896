/* Sends heartbeats between hosts: UDP datagrams between rank 0 and the first rank of every other host, apart from MPI, to
   notice a host that is stopped, dead or cut off while MPI waits for it. */
#pragma once

#include "base/phase.h"

#include <mpi.h>

#define HOST_WORDS_BYTES 160

/* What a host reports about its ranks; rank 0's also reports what it has heard from the others. */
struct heartbeat {
    uint64_t key; /* the job's: others are not listened to */
    uint32_t host;
    int32_t verdict;   /* as on the board */
    int32_t stop;      /* a signal that one of them got */
    uint32_t phase;    /* the earliest that one of them is in */
    uint32_t finished; /* all of them have done their part */
    float waiting;     /* seconds for which all of them have been in phase exchange */
    uint64_t done, total;
};

/* Another host. */
struct host {
    char words[HOST_WORDS_BYTES]; /* "ranks 4-7 on n2" */
    bool known;                   /* it has been heard at least once: if no datagram gets through, no host is judged */
    double heard;                 /* when, in clock_seconds */
    struct heartbeat last;
};

struct heartbeats;

/* Collective over the first ranks of all hosts, rank 0 among them as 0, with the same status on all; words says which ranks this
   one reports on. *opened is NULL if there is only one host. If this system allows no such socket, the host stays unknown to the others. */
allfold_status heartbeats_open(MPI_Comm leaders, const char words[HOST_WORDS_BYTES], struct heartbeats **opened,
                               struct error *error);

/* Receives, then sends. After that `hosts` are those that this host hears: on rank 0 all others, elsewhere rank 0's. */
void heartbeats_exchange(struct heartbeats *beats, const struct heartbeat *mine, double now);
struct host *heartbeats_hosts(struct heartbeats *beats, int *count);
