/* Devices: one interface, a folder for each backend, which is a struct of functions; backends.c lists and picks them.

   A device works through queues. Work in one queue runs in order; queues overlap where the backend can. A queue that elements
   stream through has a staging buffer (host memory, pinned for CUDA) and a device buffer of the same size (for the CPU: the same
   memory). Calls that take a queue return as soon as the work is under way; its effects may be looked at after wait. Different
   threads may use different queues at the same time. */
#pragma once

#include "base/base.h"
#include "fold/axis.h"
#include "fold/order.h"
#include "fold/table.h"

struct draw;
struct softmax_constants;

/* The devices that this process can see. */
struct visible {
    int count;
    int current; /* the calling thread's; 0 also if none was chosen */
};

struct device_info {
    char name[128];     /* "NVIDIA H200", or the processor's name */
    char uuid[64];      /* empty for the CPU */
    char pci[32];       /* PCI address, empty for the CPU */
    int index;          /* among the visible devices */
    int visible;        /* how many are visible to this process */
    int numa_node;      /* the device's; -1 where unknown */
    uint64_t memory_total, memory_free; /* bytes, when it was opened */
};

enum place { PLACE_HOST, PLACE_PINNED, PLACE_DEVICE };

struct queue {
    struct device *device;
    size_t bytes;            /* of staging and of buffer; 0: elements in place only, worked on by all of the device's host threads */
    void *staging, *buffer;
    struct partial *partial; /* host memory: what fold found, after wait */
};

struct device {
    const struct backend *backend;
    struct device_info info;
    uint64_t memory;      /* bytes of device memory this rank may use for elements, beside its queues */
    size_t shard_bytes;   /* of the elements that stream as one shard */
    size_t window_bytes;  /* of those that are read, and worked on, at a time: at most shard_bytes */
    uint64_t queue_memory; /* bytes of device memory for the buffers that elements stream through; 0: it is the host's */
    uint64_t generated_bytes; /* of elements that the device makes at a time, if it makes any; the same for any number of threads */
    int worker_queues;    /* of each thread that streams elements */
    int workers;          /* the most threads that stream elements */
    int threads;          /* host threads */
    int sharers;          /* ranks that use the same device, this one among them: as budget was told */
    bool first_sharer;    /* the lowest of them */
    char label[32];       /* "cpu", "CUDA device 2": for messages */
};

/* One of several arrays of at least one element, and where its partial goes: aligned to 16 bytes, of which monoid_bytes are written. */
struct fold_item {
    struct work work;
    struct partial *partial;
};

/* Of a backend whose streams go on while the host finds results of a fold. Not in a queue of softmax. */
struct deliverer {
    /* Starts work in delivery->stream that waits for give, and then stores what was given. */
    allfold_status (*deliver)(struct queue *queue, const struct delivery *delivery, struct error *error);
    /* Both call no driver, so that they wait for nothing, and any thread may call them. arrived: whether the fold's partial, which the queue
       awaits, is at *queue->partial now, as after wait. */
    void (*give)(struct queue *queue, const struct delivery *delivery, const struct delivered *values);
    bool (*arrived)(struct queue *queue);
    /* Whether the stream in which the queue's fold runs has nothing left to do. */
    bool (*is_done)(struct queue *queue);
};

struct backend {
    allfold_backend id;
    const char *name;    /* "cuda" */
    const char *devices; /* "CUDA": of its devices, in messages */
    bool own_memory;     /* its memory is not the host's, from which it copies quickest where that is pinned */
    bool combines;       /* fold_axis takes work->parts; else the host combines what ranks exchange */
    bool bits_by_model;  /* the bits of folds that round depend on the model of the device */
    /* Sees none where there is none or the backend is not in this build: why then says so. */
    struct visible (*visible)(struct error *why);
    /* Starts what makes open slow on the device that open will take, so that it can go on beside MPI_Init. May run in a thread of
       its own, before open and not beside it. What fails here fails in open again. If open takes another device, it undoes this.
       NULL: nothing is slow. */
    void (*prepare)(int local_rank);
    /* Opens device number modulo visible. The host's cores are shared with local_size processes. */
    allfold_status (*open)(int number, int local_size, const allfold_options *options, struct device **device,
                           struct error *error);
    /* Sets memory, shard_bytes, window_bytes, worker_queues and workers, now that device->sharers is known. */
    void (*budget)(struct device *device, const allfold_options *options);
    void (*close)(struct device *device);
    /* Where memory lies: on the device (or, for the CPU backend, in host memory) kernels use it in place; from pinned host
       memory copy takes it; other host memory goes through staging. Memory of another device is an error. */
    allfold_status (*locate)(struct device *device, const void *memory, enum place *place, struct error *error);
    allfold_status (*allocate)(struct device *device, size_t bytes, void **memory, struct error *error);
    void (*release)(struct device *device, void *memory);
    /* Of a backend that combines, once for a device: lets kernels write host memory and read it, if it can, as windows and answers need it. The memory
       must last until the device is closed. */
    bool (*pin)(struct device *device, void *memory, size_t bytes);
    /* Opens `count` queues of `bytes` bytes each: a multiple of 4096, to which their buffers are aligned. The first owns what they
       share, and is closed last. */
    allfold_status (*queues_open)(struct device *device, size_t bytes, int count, struct queue **queues, struct error *error);
    void (*queue_close)(struct queue *queue);
    /* Until the next wait, the queue's work runs in the caller's stream itself (cudaStream_t; NULL: the legacy default
       stream): in order with the caller's own work, at no cost. The queue must be idle. */
    allfold_status (*enter)(struct queue *queue, void *stream, struct error *error);
    /* From now on the queue's work is ordered after what is in the caller's stream now. For work that overlaps with that
       of other queues. */
    allfold_status (*follow)(struct queue *queue, void *stream, struct error *error);
    /* Between device memory and staging or pinned host memory, which stays as it is until wait; nothing to do where that is the same. At
       most the queue's bytes. */
    allfold_status (*copy)(struct queue *queue, const void *from, void *to, size_t bytes, struct error *error);
    /* Of a backend with own_memory: copies elements in device memory, or of the queue's staging buffer to it, with any strides. */
    allfold_status (*copy_strided)(struct queue *queue, const struct strided_copy *copy, struct error *error);
    /* Of the same: makes elements of a generator, of that range of indices (base/draw.h), in device memory. For others they are read
       like any other source's. */
    allfold_status (*generate)(struct queue *queue, const struct draw *draw, struct range range, void *to, struct error *error);
    /* Folds work->x (device memory) into *queue->partial, which is there after wait. */
    allfold_status (*fold)(struct queue *queue, const struct work *work, struct error *error);
    /* Folds several arrays in device memory, each by itself. After calls whose items stay as they are, the last one waits for all. */
    allfold_status (*fold_many)(struct queue *queue, const struct fold_item *items, uint64_t count, bool last, struct error *error);
    /* A pass of order statistics over work->x (device memory). What it counts and keeps is there after wait. */
    allfold_status (*order)(struct queue *queue, const struct order_work *work, struct error *error);
    /* Both passes, of x and y in device memory. What keeps the elements where between the passes is the backend's business.
       begin starts the first, and waits for its partial, that of softmax_monoid in *queue->partial; finish, with the constants of the
       global one, starts the second and waits until y is written. single_rank: x is the whole array; then begin does not wait, and
       finish takes NULL. wait in place of finish ends both. */
    allfold_status (*softmax_begin)(struct queue *queue, const struct softmax_work *work, bool single_rank, struct error *error);
    allfold_status (*softmax_finish)(struct queue *queue, const struct softmax_constants *constants, struct error *error);
    /* Folds along an axis, as the work says. What is wanted is there after wait. */
    allfold_status (*fold_axis)(struct queue *queue, const struct axis_work *work, struct error *error);
    /* Softmax along an axis. With the constants of each result, in order, the second pass: they lie on the device; or in host memory, if x and y
       are one row of neighbours. NULL: both passes, of whole rows; false where nothing was done: the caller does one after the other. */
    bool (*softmax_axis)(struct queue *queue, const struct softmax_work *work, const struct softmax_constants *constants, enum place place,
                         struct error *error);
    /* The gradient of log-probabilities, as the work says. */
    allfold_status (*gradient_axis)(struct queue *queue, const struct gradient_work *work, struct error *error);
    /* Until nothing of the queue is under way: also after a call that failed, and where nothing was begun. */
    allfold_status (*wait)(struct queue *queue, struct error *error);
    const struct deliverer *deliverer; /* NULL: the host waits for folds, and stores results itself */
};

/* Those of `threads` threads that make buffers, and copy to a device: its driver has threads of its own, which load kernels meanwhile. One that found no core would
   keep the others waiting. */
static inline int copying_threads(int threads) { return threads - threads / 8; }

/* A pass of order statistics over elements in host memory, by `threads` threads. Whatever the backend is. */
allfold_status host_order(const struct order_work *work, int threads, struct error *error);

extern const struct backend backend_cuda, backend_cpu;
/* All of them; auto is the first that sees a device. */
extern const struct backend *const backends[];
extern const int backend_count;

/* The backend of that choice. */
allfold_status backend_choose(allfold_backend choice, const struct backend **backend, struct error *error);

/* Whether a backend of that choice has something to prepare, and prepares what the choice takes. */
bool backend_prepares(allfold_backend choice);
void backend_prepare(allfold_backend choice, int local_rank);
