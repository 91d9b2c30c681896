/* What each rank works with, gathered on rank 0. */
#ifndef ALLFOLD_CLI_RANKS_H
#define ALLFOLD_CLI_RANKS_H

#include "cli/cli.h"

#include <stdio.h>

struct rank_info {
    int rank, local_rank;
    char host[sizeof((struct comm *)NULL)->host];
    struct device_info device;
    uint64_t memory; /* the device budget; 0 where the backend has none */
    struct range range;
};

/* Collective. On rank 0 an array of one entry a rank, to be freed; NULL elsewhere and after an error, which is in
   session->error and agreed upon. */
struct rank_info *ranks_gather(struct session *session);

/* How many of the ranks use the same device as `rank` does, itself among them: those of its host with the device's
   UUID. 1 for the CPU, whose cores local ranks divide among them. */
int ranks_sharing(const struct rank_info *all, int count, int rank);

/* A line's worth about a rank and its device, without the newline. */
void ranks_print(FILE *file, const struct rank_info *all, int count, int rank);

/* Collective. Rank 0 writes a line for each rank to standard error: its device and its part of the input. */
void ranks_tell(struct session *session);

#endif
