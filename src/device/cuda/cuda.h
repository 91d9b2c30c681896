/* What the files of the CUDA backend share. Every call makes its device the thread's current one, because the caller's program may
   have chosen another, and does not change it back. Messages keep CUDA's own text. */
#pragma once

#include "device/device.h"
#include "fold/exponential.h"
#include "kernels/kernels.h"

#include <cuda_runtime_api.h>

struct cuda_device {
    struct device device;
    int index;
    int multiprocessors;
    struct softmax_capacity capacity;
    bool softmax_is_loaded;           /* its kernels are on the device */
    void *pinned;                     /* host memory, until the device is closed; NULL: none */
};

/* Softmax in a queue, and how its second pass begins. */
enum softmax_state {
    SOFTMAX_IDLE,          /* no softmax has begun */
    SOFTMAX_HOST_LAUNCHES, /* the host launches the second pass */
    SOFTMAX_AWAITS_ORDERS, /* the kernels of both passes are launched; those of the second wait for the host's constants */
    SOFTMAX_ON_DEVICE      /* the same, and they need nothing more from the host: x is the whole array, without the logarithm */
};

/* What a queue has started since the last wait, and last of all: nothing but copies of its staging buffer to the device, work of which the mailbox
   tells the end, or other work. */
enum queue_last { QUEUE_NOTHING, QUEUE_UPLOADS, QUEUE_MESSAGE, QUEUE_OTHER };

/* Folds of several arrays that are under way: many.c. */
struct cuda_many_launch {
    struct many_work work;
    const struct fold_item *items;
    uint64_t first;        /* the item of its first array; others between are of another kind */
    size_t stride, tables; /* bytes of a partial; of what goes to the device */
    char *host;            /* its memory */
};
enum { CUDA_MANY_LAUNCHES = 8 };
struct cuda_many {
    char *host, *device; /* memory: NULL until it is needed, then kept */
    size_t host_bytes, device_bytes, host_used, device_used;
    struct cuda_many_launch launch[CUDA_MANY_LAUNCHES];
    int launches;
};

struct cuda_queue {
    struct queue queue;
    cudaStream_t own;
    cudaStream_t stream;          /* where work goes: own, or the caller's, from enter to wait or softmax's end */
    cudaEvent_t followed;         /* what the caller's stream held when follow was called */
    cudaStream_t uploads, folds;  /* of all queues that were opened together: a copy that follows another in one stream begins sooner, the more so if
                                     kernels that wait for copies are in one, too */
    cudaEvent_t uploaded;
    struct fold_space space;
    struct fold_mailbox *mailbox; /* space.mailbox, as the host sees it */
    void *shared_host, *shared_device; /* of the first of some queues: the memory of all */
    bool registered;              /* shared_host: it was the host's before it was pinned */
    struct cuda_many many;
    size_t awaited;               /* bytes of the partial that the last fold will leave there; 0: wait has taken it */
    enum queue_last last;
    enum softmax_state state;
    bool single_rank;             /* of softmax */
    bool written;                 /* softmax's y, as the kernel's last message says */
    struct softmax_work softmax;
};

static inline struct cuda_device *cuda_of(const struct queue *queue) { return (struct cuda_device *)queue->device; }

/* check.c: ALLFOLD_OK, or the error of what `format` describes. */
__attribute__((format(printf, 4, 5))) allfold_status cuda_check(const struct cuda_device *cuda, cudaError_t code,
                                                                struct error *error, const char *format, ...);
allfold_status cuda_use(const struct cuda_device *cuda, struct error *error);

/* The same before work of a queue in its stream, which then waits for uploads. */
allfold_status cuda_ready(struct queue *queue, struct error *error);

/* The backend's functions on queues (queue.c) and softmax (softmax.c): see device.h. */
allfold_status cuda_queues_open(struct device *device, size_t bytes, int count, struct queue **queues, struct error *error);
void cuda_queue_close(struct queue *queue);
allfold_status cuda_enter(struct queue *queue, void *stream, struct error *error);
allfold_status cuda_follow(struct queue *queue, void *stream, struct error *error);
allfold_status cuda_copy(struct queue *queue, const void *from, void *to, size_t bytes, struct error *error);
allfold_status cuda_copy_strided(struct queue *queue, const struct strided_copy *copy, struct error *error);
allfold_status cuda_generate(struct queue *queue, const struct draw *draw, struct range range, void *to, struct error *error);
allfold_status cuda_fold(struct queue *queue, const struct work *work, struct error *error);
/* order.c */
allfold_status cuda_order(struct queue *queue, const struct order_work *work, struct error *error);
allfold_status cuda_wait(struct queue *queue, struct error *error);
/* Loads the kernels of softmax, if they are not there: before the first one, so that other programs start sooner. */
allfold_status cuda_softmax_load(struct cuda_device *cuda, struct error *error);
allfold_status cuda_softmax_begin(struct queue *queue, const struct softmax_work *work, bool single_rank, struct error *error);
allfold_status cuda_softmax_finish(struct queue *queue, const struct softmax_constants *constants, struct error *error);
/* deliver.c */
extern const struct deliverer cuda_deliverer;
/* many.c */
allfold_status cuda_fold_many(struct queue *queue, const struct fold_item *items, uint64_t count, bool last, struct error *error);
/* axis.c */
allfold_status cuda_fold_axis(struct queue *queue, const struct axis_work *work, struct error *error);
allfold_status cuda_gradient_axis(struct queue *queue, const struct gradient_work *work, struct error *error);
bool cuda_softmax_axis(struct queue *queue, const struct softmax_work *work, const struct softmax_constants *constants, enum place place,
                       struct error *error);

/* Watches the queue's mailbox until `take` finds what it looks for, or the driver says that the stream is done. If other work
   may follow the kernel that sends the message, the stream is polled in place of a driver synchronise, which would wait for that, too. */
allfold_status cuda_watch(struct cuda_queue *queue, bool (*take)(struct cuda_queue *queue), struct error *error);
/* Takes what the last fold has left, if all of it is there. */
bool cuda_take_partial(struct cuda_queue *queue);
