/* A team: threads that work on a rank's part side by side (load.c, fold_pieces.c, softmax.c, copy.c).

   The part is cut into pieces (pieces.h), and some that follow one another are a shard. A worker (a thread) takes the next shard, and
   goes through it piece by piece: it reads a piece's elements into the buffer of one of its queues and starts the work on it; meanwhile
   its other queues, if it has several, are at work on the pieces before. No thread waits for another, except if it is so far ahead that
   its results would have no place. Pieces and shards follow from extents alone, and shards' results are taken in order, so nothing that
   is computed depends on the threads. */
#pragma once

#include "core/core.h"
#include "fold/axis.h"

#include <pthread.h>

/* Elements of an array of three dimensions: a box. */
struct part {
    uint64_t o, outer, l, length, i, inner;
};

/* One of a worker's queues, and the piece that it is at work on. */
struct lane {
    struct queue *queue;
    bool busy;
    uint64_t shard, number; /* of the piece, and of its shard */
    bool first;             /* piece of its shard */
    uint64_t ahead;         /* pieces of the same shard behind it */
    /* load.c */
    struct part part;
    const void *x, *y;      /* where the device has the elements, and those of the second operand */
    const char *second;     /* where the host has those of the second operand */
    uint64_t alone[2];      /* of a comparison: elements that only the first operand has, only the second */
    struct box box;         /* of the elements there: dense, unless the device uses them in place */
    struct box_weights weights;  /* of the elements in the box */
    struct part weighted;   /* of which it has these weights: all extents 0 if the weights are not to be used again */
    const char *host;       /* where the host has them; NULL: nowhere */
    uint64_t count;         /* elements that lie there */
    const uint64_t *kept;   /* which of them are there, if the others were left out and nothing stands in their places; else NULL */
    bool holes;             /* some are missing, and something stands in their places */
    const uint64_t *counts; /* of each result: elements that are not missing, in host memory; NULL: none is left out */
    /* what the work will leave, in host memory */
    const void *found;
};

enum { LANES_MAX = 4 };

struct worker {
    struct team *team;
    struct reader *reader, *second; /* of the pieces' sources */
    struct lane lanes[LANES_MAX];
    uint64_t started;     /* pieces; number i is, or was, in lane i modulo the lanes */
    uint64_t shard;       /* under way */
    struct range pieces;  /* of it that no lane has had yet */
    uint64_t failed;      /* the shard of its error */
    struct error error;
};

/* What a team does with its pieces. The worker's thread calls start and finish; start returns when the work is under way, and waits for
   nothing. The pieces of a worker are finished in the order of their starts. Both may be called by several threads, of different
   workers. */
struct team_work {
    allfold_status (*start)(struct worker *worker, struct lane *lane, struct error *error);
    allfold_status (*finish)(struct worker *worker, struct lane *lane, struct error *error);
    /* NULL, or takes what finish has left of a shard at team_result: in the order of the shards, by one thread at a time. */
    allfold_status (*take)(struct team *team, uint64_t shard, struct error *error);
};

struct pieces;
struct team {
    const struct pieces *pieces; /* and with them context, sources and queues */
    const struct team_work *work;
    void *user;              /* of the functions of work */
    uint64_t before, step;   /* the number of the first piece, and from one to the next */
    uint64_t run, runs;      /* the pieces are `runs` runs of `run` pieces each: shards end where runs end */
    size_t result_bytes;     /* of a shard's result, if shards are taken */
    bool backwards;          /* the last shard first */
    uint64_t next, end;      /* shards that are to be taken: set by the caller; afterwards those that were not */
    /* From here on team_run's own. */
    uint64_t done;           /* shards before this one are done */
    int lanes;               /* of each worker */
    char *results;           /* shard i has slot i modulo their number, and may be started only if fewer before it are not done */
    bool *full;              /* whether a slot's shard is done, and was not taken */
    uint64_t slots;          /* 0: shards are not taken */
    bool taking;             /* a thread is */
    bool failed;
    uint64_t failed_shard;   /* the first */
    enum phase failed_in;
    struct error error;
    pthread_mutex_t lock;    /* of next, end, done, full, taking, failed, error */
    pthread_cond_t moved;
};

/* The number of shards in `runs` runs; of pieces in the first `shards` shards. */
uint64_t team_shards(const struct team *team, uint64_t runs);
uint64_t team_pieces(const struct team *team, uint64_t shards);

static inline void *team_result(const struct team *team, uint64_t shard)
{
    return team->results + shard % team->slots * team->result_bytes;
}

/* Works on shards [next, end), and waits until nothing is under way. If the run was asked to stop no further shard is begun, which is
   no error here. The first error of a worker is the team's. Local. */
allfold_status team_run(struct team *team, struct error *error);
