/* Gathers the devices and cores of all ranks on rank 0, and checks how ranks share them. */
#pragma once

#include "cli/cli.h"

#include <stdio.h>

enum { LINKS_MAX = 16, LINK_BYTES = 16 };

struct rank_info {
    int rank, local_rank;
    char host[sizeof((struct comm *)NULL)->host];
    struct device_info device;
    int threads;        /* CPU threads in use */
    uint64_t memory;    /* the device budget; 0 if the backend has none */
    int sharers;        /* ranks on this device, this one among them */
    bool first_sharer;  /* the lowest of them */
    char cpus[128];     /* CPUs that the rank may run on: "0-7" */
    int cpu_node;       /* the NUMA node of them all, or -1 */
    struct range range;
    struct {            /* links from its device to those of other ranks of the host; see link_text */
        int rank;       /* the lowest on that device */
        char text[LINK_BYTES];
    } links[LINKS_MAX];
    int link_count;
};

/* Collective. On rank 0 an array of one entry a rank, which the caller frees. NULL on the other ranks and after an error, which
   is in session->error and agreed upon. links: look for the links between devices, too. */
struct rank_info *ranks_gather(struct session *session, bool links);

/* How devices of two PCI addresses reach one another, in the words of nvidia-smi topo: "NV18" (NVLinks), "PIX", "PXB", "PHB", "NODE",
   "SYS"; "" if that is not known. */
void link_text(const char *pci, const char *peer, char text[LINK_BYTES]);

/* Describes a rank and its device in one line, without the newline. */
void ranks_print(FILE *file, const struct rank_info *rank);

/* Collective. Rank 0 writes a line to standard error for each device that several ranks share, unless --quiet is given. */
void ranks_tell_shared(struct session *session);

/* Collective. If the launcher has bound ranks to fewer CPUs than their share of those that it has on their host, rank 0 writes
   one line to standard error that says so, and what to type, unless --quiet is given. */
void ranks_tell_bound(struct session *session);

/* The first fault in the binding of ranks to devices and cores, as an error: a device that several ranks share, cores that two
   ranks share, a GPU on another NUMA node than its rank's cores. On rank 0. */
allfold_status ranks_check(const struct rank_info *all, int count, struct error *error);

/* Collective. Rank 0 writes a line for each rank to standard error: its device and its part of the input. */
void ranks_tell(struct session *session);
