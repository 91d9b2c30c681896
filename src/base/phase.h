/* The phases of a rank's work, in one place: error messages, the watchdog, progress, profilers' ranges and the tests' fault
   hook all take them from here. */
#ifndef ALLFOLD_PHASE_H
#define ALLFOLD_PHASE_H

#include "base/base.h"

#include <stdatomic.h>

/* X(ID, name, what the rank does). */
#define PHASES(X)                                                     \
    X(START, start, "opens devices and files")                        \
    X(READ, read, "reads elements")                                   \
    X(UPLOAD, upload, "moves them to its device")                     \
    X(FOLD, fold, "folds them, or waits for its device to do so")     \
    X(EXCHANGE, exchange, "waits for the other ranks")                \
    X(NORMALISE, normalise, "computes the second pass of softmax")    \
    X(WRITE, write, "writes elements, or makes them durable")         \
    X(CHECKPOINT, checkpoint, "reads, writes or removes a checkpoint") \
    X(RENAME, rename, "gives the finished output its name")           \
    X(FINISH, finish, "has done its part and leaves")

enum phase {
#define PHASE_ENUM(ID, name, text) PHASE_##ID,
    PHASES(PHASE_ENUM)
#undef PHASE_ENUM
    PHASE_COUNT
};

/* The signals that ask a run to stop at its next safe point. */
#define STOP_SIGNALS(X) X(USR1) X(USR2) X(TERM) X(INT) X(HUP) X(XCPU)

/* What a rank shows of itself. Written by the thread that works, but for stop; read by others, also of other processes
   where it lies in shared memory. All zero is a rank that starts. */
struct progress {
    _Atomic uint32_t phase;     /* enum phase; through phase_enter */
    _Atomic uint32_t changes;   /* of phase: one that looks now and then sees whether anything has happened */
    _Atomic uint64_t done, total; /* bytes of input; total is 0 where there is nothing to tell */
    _Atomic int stop;           /* a signal that asked the run to stop, 0 where none has */
    double entered;             /* when the phase began, in clock_seconds */
    double seconds[PHASE_COUNT]; /* spent in the phases before */
};

const char *phase_name(enum phase phase);
const char *stop_name(int signal); /* "SIGUSR1" */

/* The phase is now this one; returns the one before. */
enum phase phase_enter(struct progress *progress, enum phase phase);

/* Called by phase_enter at each change, in the thread that works: where profilers and tests look in. NULL, or set once
   before the work begins by someone who calls the one that was there before. */
extern void (*phase_observer)(enum phase left, enum phase entered);

/* The work that begins now is so many bytes of input in all (of every pass). */
void progress_expect(struct progress *progress, uint64_t bytes);

/* At a safe point: ALLFOLD_STOPPED where the run was asked to stop. */
allfold_status progress_check(const struct progress *progress, struct error *error);

#endif
