/* The context, and the pipelines over all elements: fold a source, at once or in two phases, write its softmax or a copy of it to a sink.
   Used by the C library (api*.c) and by the commands (cli/). */
#pragma once

#include "array/array.h"
#include "comm/comm.h"
#include "core/resumable.h"
#include "device/device.h"
#include "fold/total.h"

#include <stdatomic.h>
#include <stdbool.h>

/* A fold that was begun. This rank's part is in the partial, or a kernel is under way. */
struct begun {
    uint64_t ticket; /* the caller's name of it, from 1; 0: free */
    /* The partial is of this rank, or of all; or the exchange failed, as one rank did or as the ranks made different calls. */
    enum { BEGUN_HERE, BEGUN_EVERYWHERE, BEGUN_FAILED, BEGUN_APART } state;
    struct fold_call call;
    allfold_type type;
    struct partial partial;
    uint64_t count; /* elements in it */
    bool under_way;
    struct queue *queue; /* for kernels; NULL until it is needed, then kept */
    struct error error;  /* of this rank, before the exchange; of all after it */
    enum phase phase;    /* in which that of this rank arose */
    bool delivered;      /* core_deliver was called for it */
    struct delivery delivery;
    atomic_bool delivering; /* the thread of deliver.c has it: what is above is not to be touched */
    atomic_bool abandoned;  /* its kernel has ended without a result, perhaps */
};
enum { BEGUN_MOST = 16 };

/* Device memory that is allocated when it is needed, and kept. */
struct kept_memory {
    void *memory;
    size_t bytes;
};

/* The context of allfold.h. */
struct allfold_context {
    struct comm comm;
    struct device *device;
    struct queue *queue;   /* for elements in place */
    struct queue **queues; /* that elements stream through: opened when they are needed, and kept */
    int queue_count;
    size_t queue_bytes;    /* of each of them */
    void *axis_memory;     /* device memory of folds along an axis: allocated by the first, and kept */
    struct kept_memory gathered; /* for elements that are copied together */
    struct kept_memory order;    /* for what order statistics keep */
    size_t order_clean;    /* bytes of their counters, behind axis_memory, that are 0 */
    struct {
        void *memory;   /* that the ranks share, for partials along an axis that they cut and for counters: opened by the first such call, and kept; or NULL */
        bool tried;
        bool pinned;    /* by all their devices, which write to it and read it; else partials take another way */
        uint64_t turns; /* exchanges through it so far: turns % 2 is the half that was used last */
    } window;
    allfold_level level; /* of the folds that have a choice */
    struct error error; /* of the last call that failed */
    void (*log)(void *user, const char *line); /* may be NULL */
    void *log_user;
    double opening; /* when allfold_open began */
    struct begun begun[BEGUN_MOST];
    struct deliveries *deliveries; /* deliver.c; NULL until it is needed, then kept */
    uint64_t tickets; /* given so far */
};

/* One line to the caller's log callback, if there is one. */
__attribute__((format(printf, 2, 3))) void core_log(const struct allfold_context *ctx, const char *format, ...);

/* One rank's part of a pipeline. */
struct job {
    allfold_type type;     /* of the elements */
    struct source *source; /* NULL on a rank that failed before (error then says why) */
    struct source *second; /* of a fold of two operands: the other one, of the same type, range and order, and without elements left out
                              unless it is a comparison; else NULL */
    const struct compare_rule *rule; /* of a comparison; else NULL */
    struct range range;    /* this rank's part of the source; the parts follow one another in rank order */
    uint64_t key;          /* of a source that a caller passes: differs if the ranks pass different ones; has no bits that call numbers use; else 0 */
    void *stream;          /* for resident data: see allfold_call */
    struct resumable *progress; /* NULL: none is kept */
    struct total *total;     /* of folds: NULL, or gets the whole array's total in place of a result; its length is its count */
};

/* Whether the device makes the elements itself. */
static inline bool job_is_generated(const struct allfold_context *ctx, const struct job *job)
{
    return job->source != NULL && job->source->draw != NULL && ctx->device->backend->own_memory;
}

/* Opens device and queues on top of ctx->comm. Collective. */
allfold_status core_open(struct allfold_context *ctx, const allfold_options *options, struct error *error);
void core_close(struct allfold_context *ctx);

/* Sees to it that ctx->queues has at least `count` queues of at least `bytes` bytes, a multiple of 4096. No queue may be in use. */
allfold_status core_queues(struct allfold_context *ctx, int count, size_t bytes, struct error *error);

/* Sees to it that the memory has at least `bytes` bytes, which are not those that were there; releases it. */
allfold_status core_keep(struct allfold_context *ctx, struct kept_memory *kept, size_t bytes, struct error *error);
void core_release(struct allfold_context *ctx, struct kept_memory *kept);

/* Folds the ranks' parts, at the context's level. If *error holds a failure of this rank already, it becomes everyone's.
   Collective. */
allfold_status core_reduce(struct allfold_context *ctx, const struct fold_call *call, const struct job *job,
                           struct fold_results *result, struct error *error);

/* This rank's parts of several arrays. */
struct many_job {
    const allfold_array *arrays;
    uint64_t count;
    void *stream;
    bool total; /* one result, of all arrays joined: then there is one, and all are of one type */
    struct source (*source_of)(const allfold_array *array, const struct error *error);
    allfold_result *results; /* of each array, or one: written on success only */
};
/* Folds each array, or all joined, at the context's level, to one value. As core_reduce otherwise. */
allfold_status core_reduce_many(struct allfold_context *ctx, const struct fold_call *call, const struct many_job *job, struct error *error);

/* A free place for a fold that is begun, with its ticket; NULL: there is none. The open fold of a ticket; NULL: there is none. Local. */
struct begun *begun_open(struct allfold_context *ctx);
struct begun *begun_find(struct allfold_context *ctx, uint64_t ticket);

/* Folds this rank's part, or starts its kernel. What fails, and what is in *given already, goes to begun->error, for the end to tell.
   Local, but in the same order on all ranks. */
void core_begin(struct allfold_context *ctx, const struct fold_call *call, const struct job *job, struct begun *begun,
                const struct error *given);

/* Ends a fold: if no exchange has had it, one takes all that are begun by now, which succeed or fail together. begun is NULL for a ticket
   that is not open: then *error says so, and if others may wait in an exchange, it becomes everyone's. Collective. */
allfold_status core_end(struct allfold_context *ctx, struct begun *begun, struct fold_results *result, struct error *error);

/* Has the results of a fold that was begun stored in `delivery`'s stream, whose memory the device can write: the exchange is made meanwhile,
   by a thread of the context. If the backend has no streams, it is made, and the results are stored, before this returns. The fold stays
   open; core_end tells what went wrong, in this call too, and then what was stored is NaN, 0 and -1. Collective. */
allfold_status core_deliver(struct allfold_context *ctx, struct begun *begun, const struct delivery *delivery, struct error *error);
/* Waits until the fold is out of the hands of that thread, as core_end needs it. Local. */
void core_delivered(struct allfold_context *ctx, struct begun *begun);
/* Waits for all of them, and ends the thread, before core_close. */
void core_deliveries_close(struct allfold_context *ctx);

/* Writes softmax (or its logarithm) of the ranks' parts to sink, in the sink's type, element i to place i. sink is NULL
   on a rank that failed before. The sink is not closed. On success every rank has written its part. Collective. */
allfold_status core_softmax(struct allfold_context *ctx, bool logarithm, const struct job *job, struct sink *sink,
                            struct error *error);

/* A sink in host memory of every rank, for an array of which each writes some: core_unite then gives all ranks all of it. */
struct memory_sink {
    struct sink sink;
    char *elements; /* of the caller's: of the sink's type */
    uint64_t count;
};
struct memory_sink core_memory_sink(const struct allfold_context *ctx, void *elements, uint64_t count, allfold_type type);
/* One for this rank's part alone, in memory that the device may write. */
struct memory_sink core_part_sink(void *elements, allfold_type type);
/* Agrees on *error. Collective. */
allfold_status core_unite(struct allfold_context *ctx, const struct memory_sink *sink, struct error *error);

/* Writes this rank's part to sink, of the same type, as it is. Local. */
allfold_status core_copy(struct allfold_context *ctx, const struct job *job, struct sink *sink, struct error *error);
