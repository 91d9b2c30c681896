/* The board: memory that the ranks of a host share. Each rank shows in it its phase, and that it is alive. What a rank wrote
   last can still be read when it is dead or stopped. */
#pragma once

#include "base/phase.h"

#include <mpi.h>
#include <sys/types.h>

enum slot_state { SLOT_RUNNING, SLOT_LEAVING, SLOT_ENDED }; /* see at_exit in watchdog.c */

/* A rank's place on the board. */
struct board_slot {
    struct progress progress;
    _Atomic uint64_t beats; /* counted up by the rank's watchdog while the process runs */
    _Atomic int state;      /* enum slot_state */
    int rank;
    pid_t pid;
    uint64_t pid_namespace; /* in which pid is valid; 0 if unknown */
};

struct board {
    _Atomic int verdict; /* how the job ends: 0 while it runs, else 1 + watch_end. The first rank to set it prints the reason */
    struct board_slot slots[]; /* by local rank */
};

/* Collective over the ranks of a host; all get the same status. Mapped for the life of the process, and without a name
   that could be left behind. */
allfold_status board_open(MPI_Comm local, int rank, struct board **board, struct error *error);

/* Whether the process of a slot is gone although it never announced its end. False if that cannot be determined. */
bool slot_died(const struct board_slot *slot, const struct board_slot *mine);
