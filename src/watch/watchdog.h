/* The watchdog: a thread in every rank that notices when another rank, or its host, is dead, stopped or cut off. It ends the
   job with a line that names the rank and its phase. It also passes a request to stop from one rank to all, and ends a run that
   reaches no safe point. One for each process; it lives until the process ends. */
#pragma once

#include "base/phase.h"

/* How the watchdog ends a job. */
enum watch_end { WATCH_FAILED, WATCH_STOPPED, WATCH_ENDS };

struct watch_settings {
    const char *program;       /* its name, with which messages begin; not copied */
    int statuses[WATCH_ENDS];  /* the process's exit status, by watch_end */
    double timeout;            /* seconds of silence until a rank is given up; 0: never */
    void (*show)(uint64_t done, uint64_t total); /* called on rank 0, now and then, while there is work; may be NULL */
    const char *(*eraser)(void); /* what to print before a message, in a signal handler, too; may be NULL */
};

/* Called before MPI_Init. Open MPI's MPI_Finalize then does not wait for other ranks: if two ranks that wait there end, mpirun may
   lock up (PMIx 4.2). */
void watch_begin(void);

/* Collective over MPI_COMM_WORLD; the same status on all ranks. */
allfold_status watch_open(const struct watch_settings *settings, struct error *error);

/* Where this rank shows its phase. Before watch_open: NULL. */
struct progress *watch_progress(void);

/* "rank 1 on n2", for messages. */
const char *watch_name(void);

/* Collective, in place of MPI_Finalize, also if watch_open was not called. From here on this process may end without that
   being a fault. */
void watch_finish(void);

/* The rest may be called by signal handlers. */

/* Asks all ranks to stop at their next safe point. */
void watch_stop(int signal);

/* Ends the job in this way, on all ranks. True for the first rank of its host to claim it, which then prints the reason. */
bool watch_claim(enum watch_end end);
int watch_status(enum watch_end end); /* the exit status */

/* One line to standard error: the program's name, and the words up to a NULL. */
void watch_say(const char *word, ...);
