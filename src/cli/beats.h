/* Heartbeats between hosts: UDP datagrams between rank 0 and the first rank of every other host, apart from MPI, so that
   a host that is stopped, dead or cut off is noticed while MPI waits for it. */
#ifndef ALLFOLD_CLI_BEATS_H
#define ALLFOLD_CLI_BEATS_H

#include "base/phase.h"

#include <mpi.h>

#define HOST_WORDS_BYTES 160

/* What a host says of its ranks; rank 0's also says what it has heard from the others. */
struct beat {
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
    bool known;                   /* it has been heard at least once: where no datagram gets through, nobody is judged */
    double heard;                 /* when, in clock_seconds */
    struct beat last;
};

struct beats;

/* Collective over the first ranks of all hosts, rank 0 among them as 0; words says which ranks this one speaks for. NULL
   where there is but one host. Where this system allows no such socket the host stays unknown to the others. */
struct beats *beats_open(MPI_Comm leaders, const char words[HOST_WORDS_BYTES]);

/* Listens, then tells. After that `hosts` are those that this one hears: all others on rank 0, rank 0's elsewhere. */
void beats_exchange(struct beats *beats, const struct beat *mine, double now);
struct host *beats_hosts(struct beats *beats, int *count);

#endif
