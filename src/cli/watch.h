/* The watchdog: a thread in every rank that sees when another rank, or its host, is dead, stopped or cut off, and ends the
   job with a line that says who, and in which phase. It also hands a request to stop from one rank to all, and sees to it
   that a run which does not come to a safe point ends all the same. One for a process; it lives until the process ends. */
#ifndef ALLFOLD_CLI_WATCH_H
#define ALLFOLD_CLI_WATCH_H

#include "base/phase.h"

struct watch_settings {
    double timeout;            /* seconds of silence until a rank is given up; 0: never */
    void (*leaving)(void);     /* called before the watchdog ends the process; async-signal-safe */
    void (*show)(uint64_t done, uint64_t total); /* called on rank 0, now and then, while there is work; may be NULL */
};

/* Collective over MPI_COMM_WORLD; the same status on all ranks. */
allfold_status watch_open(const struct watch_settings *settings, struct error *error);

/* Where this rank shows its phase. Before watch_open: NULL. */
struct progress *watch_progress(void);

/* "rank 1 on n2", for messages. */
const char *watch_name(void);

/* From here on this process may end without that being a fault. */
void watch_finish(void);

/* The rest may be called by signal handlers. */

/* Asks all ranks to stop at their next safe point. */
void watch_stop(int signal);

/* The job ends with this exit status, on all ranks. True for the first on its host to say so, who then tells why. */
bool watch_claim(int status);

/* One line to standard error, of the words up to a NULL. */
void watch_say(const char *word, ...);

#endif
