/* Names the phases of a rank's work. Error messages, the watchdog, progress, profilers' ranges and the tests' fault hook all
   take them from here. */
#pragma once

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

/* The state that a rank publishes. The rank's own threads write it, except stop. Others read it, also other processes if it lies in
   shared memory. All zero is a rank that starts. */
struct progress {
    _Atomic uint32_t phase;     /* enum phase: the last that one of its threads entered, through phase_enter */
    _Atomic uint32_t changes;   /* of phase: a reader that polls sees whether it has changed */
    _Atomic uint64_t done, total; /* bytes of input; total is 0 if it is unknown */
    _Atomic int stop;           /* a signal that asked the run to stop, or 0 */
    double entered;             /* when the phase began, in clock_seconds; this and seconds belong to the main thread */
    double seconds[PHASE_COUNT]; /* spent in each phase before this one; if threads worked side by side, the mean of theirs */
};

const char *phase_name(enum phase phase);
const char *stop_name(int signal); /* "SIGUSR1" */

/* Sets the phase and returns the one before. */
enum phase phase_enter(struct progress *progress, enum phase phase);

/* The times of one of several threads that work for a rank side by side. */
struct phase_clock {
    enum phase phase;
    double begun, entered, seconds[PHASE_COUNT];
};
/* From start to stop, phase_enter in this thread counts on *clock, which begins in phase `first`. From stop to the next start, or to
   phase_clocks_add, the thread is in no phase. */
void phase_clock_start(struct phase_clock *clock, struct progress *progress, enum phase first);
void phase_clock_stop(void);
/* After all threads have stopped, in the main thread, whose clock is the first: adds the mean of their times to those of the rank, which was
   in phase `before` until they began, and is in phase `now`. */
void phase_clocks_add(struct progress *progress, const struct phase_clock *clocks, int count, enum phase before, enum phase now);
/* The phase that this thread is in. */
enum phase phase_of_thread(const struct progress *progress);

/* Called at each change, in the thread whose phase changes, for profilers and tests. PHASE_COUNT stands for no phase. NULL, or set
   once before the work begins. A new observer must call the one that it replaces. */
extern void (*phase_observer)(enum phase left, enum phase entered);

/* Announces the bytes of input of the work that begins, in all passes. */
void progress_expect(struct progress *progress, uint64_t bytes);

/* Called at safe points: ALLFOLD_STOPPED if the run was asked to stop. */
allfold_status progress_check(const struct progress *progress, struct error *error);
