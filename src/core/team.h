/* A team: threads that work on a rank's part side by side, for reduce.c, softmax.c, copy.c and axis_stream*.c.

   The part is cut into shards. A worker (a thread) takes the next shard, and goes through it window by window: it reads a window's
   elements into the buffer of one of its queues and starts the work on it; meanwhile its other queues, if it has several, are at
   work on the windows before. No thread waits for another, except if it is so far ahead that its results would have no place.
   Shards and windows are cut by the numbers of elements alone, so what is computed of them does not depend on the threads. */
#pragma once

#include "core/core.h"

#include <pthread.h>

/* Elements that are read and worked on at a time. */
struct window {
    uint64_t shard;        /* its number, from 0 */
    struct range elements; /* of the source */
    uint64_t ahead;        /* elements of the same shard behind it */
};

/* One of a worker's queues, and the window that it is at work on. */
struct lane {
    struct queue *queue;
    bool busy;
    struct window window;
    struct piece piece;  /* what was read of it */
    const void *output;  /* softmax: what is to be written, once the queue has finished */
};

enum { LANES_MAX = 4 };

struct worker {
    struct team *team;
    struct reader *reader, *second; /* of the job's sources */
    struct lane lanes[LANES_MAX];
    uint64_t started;        /* windows; number i is, or was, in lane i modulo the lanes */
    uint64_t shard;          /* under way */
    struct range rest;       /* its elements that no window has had yet */
    struct partial *partial; /* folds: of the shard's windows that are finished */
    uint64_t count;          /* of the elements in it */
    struct error error;
};

/* What a team does with its windows. The worker's thread calls both; start returns when the work is under way. The windows of a
   worker are finished in the order of their starts. Both may be called by several threads, of different workers. */
struct team_work {
    allfold_status (*start)(struct worker *worker, struct lane *lane, struct error *error);
    allfold_status (*finish)(struct worker *worker, struct lane *lane, struct error *error);
};

struct team {
    struct allfold_context *ctx;
    const struct job *job;
    const struct team_work *work;
    void *user;               /* of the functions of work */
    uint64_t shard_elements;  /* of every shard but the last */
    uint64_t window_elements; /* of every window but the last of a shard: at most shard_elements */
    size_t queue_bytes;       /* of a queue's buffers */
    bool backwards;           /* the last shard first */
    uint64_t next, end;       /* shards that are to be taken: set by the caller; afterwards those that were not */
    double pause_at;          /* not 0: from this time on (clock_seconds) no shard is taken but the first */
    uint64_t slots;           /* not 0: shards may be taken only if less than so many before them are not done */
    /* From here on team_run's own. */
    uint64_t first;           /* shard that was to be taken */
    uint64_t done;            /* shards before this one are done: team_shards_done */
    int lanes;                /* of each worker */
    bool failed;
    enum phase failed_in;
    struct error error;       /* the first */
    pthread_mutex_t lock;     /* of next, end, done, failed, error */
    pthread_cond_t moved;
};

/* Elements of a shard of `bytes`, or of a window: whole granules of the source, at least one. */
uint64_t team_elements(const struct job *job, size_t bytes);

/* Elements of a window of `bytes`: no more than a shard, nor than this rank's part, in whole granules. */
uint64_t team_window(const struct job *job, uint64_t shard, size_t bytes);

/* Bytes of a queue's buffers that have room for a window of the job, as a reader needs it, and for `more` bytes. */
size_t team_queue_bytes(const struct allfold_context *ctx, const struct job *job, uint64_t window, uint64_t more);

/* How many threads would work on so many shards, with queues of so many bytes: as many as the device's host threads, the shards,
   its memory for queues and half of this rank's share of the host's memory allow. */
int team_workers(const struct allfold_context *ctx, uint64_t shards, size_t queue_bytes);

/* Queues of each worker: one for a single shard. */
int team_lanes(const struct team *team);

/* Opens the team's queues, and orders their work after what is in the job's stream now: for memory of the caller's that they use in
   place. */
allfold_status team_follow(const struct team *team, struct error *error);

/* Works on shards [next, end), and waits until nothing is under way. If the run was asked to stop, or is to pause, no further shard is
   taken, which is no error here. The first error of a worker is the team's. Local. */
allfold_status team_run(struct team *team, struct error *error);

/* Says, with the lock held, that the shards before `done` are done. */
void team_shards_done(struct team *team, uint64_t done);
void team_fail(struct team *team, const struct error *error);

/* Reads the lane's window: lane->piece then holds its elements, in host memory from which the device copies quickly. */
allfold_status lane_read(struct worker *worker, struct lane *lane, struct error *error);

/* The same; if the device has memory of its own, also starts their copy to `memory`, or to the queue's buffer if that
   is NULL; if it makes the elements itself, starts that instead. *x is where the device finds them. */
allfold_status lane_load(struct worker *worker, struct lane *lane, void *memory, const void **x, struct error *error);

/* The same of the second operand, through the other half of the queue's buffers: team_queue_bytes of twice the window's elements. */
allfold_status lane_load_second(struct worker *worker, struct lane *lane, const void **y, struct error *error);
