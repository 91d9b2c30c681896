/* Devices: one interface, two backends. A backend is a struct of functions (cpu.c, cuda.c); device.c picks one.

   A device works through queues. Work in one queue runs in order; queues overlap where the backend can. Each queue has
   a staging buffer (host memory, pinned for CUDA) and a device buffer of the same size (for the CPU: the same memory).
   Calls that take a queue return as soon as the work is under way; its effects may be looked at after wait. */
#ifndef ALLFOLD_DEVICE_H
#define ALLFOLD_DEVICE_H

#include "base/base.h"
#include "fold/table.h"

struct softmax_constants;

struct device_info {
    char name[128];     /* "NVIDIA H200", or the processor's name */
    char uuid[64];      /* empty for the CPU */
    char pci[32];       /* PCI address, empty for the CPU */
    int index;          /* among the visible devices */
    int visible;        /* how many are visible to this process */
    int numa_node;      /* the device's; -1 where unknown */
    int threads;        /* CPU threads in use */
    uint64_t memory_total, memory_free; /* bytes */
};

enum { LINK_BYTES = 16 };

enum place { PLACE_HOST, PLACE_PINNED, PLACE_DEVICE };

struct queue {
    struct device *device;
    size_t bytes;            /* of staging and of buffer */
    void *staging, *buffer;
    struct partial *partial; /* host memory: what fold found, after wait */
};

struct device {
    const struct backend *backend;
    uint64_t memory;      /* bytes of device memory this rank may use for elements, beside its queues */
    size_t staging_bytes; /* recommended size of a queue */
    int queue_count;      /* recommended number of queues */
    int threads;          /* host threads for filling and emptying staging buffers */
    int sharers;          /* ranks that use the same device, this one among them: as budget was told */
    bool first_sharer;    /* the lowest of them */
    char label[32];       /* "cpu", "CUDA device 2": for messages */
};

struct backend {
    const char *name;
    /* Devices this process can see; 0 where there is none or the backend is not in this build (why then says so). */
    int (*visible)(struct error *why);
    /* Opens device local_rank modulo visible. The host's cores are shared with local_size processes. */
    allfold_status (*open)(int local_rank, int local_size, const allfold_options *options, struct device **device,
                           struct error *error);
    /* Sets memory, staging_bytes and queue_count, now that device->sharers is known. */
    void (*budget)(struct device *device, const allfold_options *options);
    void (*close)(struct device *device);
    void (*describe)(const struct device *device, struct device_info *info);
    /* How this device reaches the one with that PCI address on the same host, in the words of nvidia-smi topo: "NV18"
       (NVLinks), "PIX", "PXB", "PHB", "NODE", "SYS"; "" where nobody says. */
    void (*link)(const struct device *device, const char *pci, char text[LINK_BYTES]);
    /* Where memory lies: on the device (or, for the CPU backend, in host memory) kernels use it in place; from pinned host
       memory upload takes it; other host memory goes through staging. Memory of another device is an error. */
    allfold_status (*locate)(struct device *device, const void *memory, enum place *place, struct error *error);
    allfold_status (*allocate)(struct device *device, size_t bytes, void **memory, struct error *error);
    void (*release)(struct device *device, void *memory);
    allfold_status (*queue_open)(struct device *device, size_t bytes, struct queue **queue, struct error *error);
    void (*queue_close)(struct queue *queue);
    /* Until the next wait, the queue's work runs in the caller's stream itself (cudaStream_t; NULL: the legacy default
       stream): in order with the caller's own work, at no cost. The queue must be idle. */
    allfold_status (*enter)(struct queue *queue, void *stream, struct error *error);
    /* From now on the queue's work is ordered after what is in the caller's stream now. For work that overlaps with that
       of other queues. */
    allfold_status (*follow)(struct queue *queue, void *stream, struct error *error);
    /* From staging, or from pinned host memory, which stays as it is until wait, to device memory; nothing to do where that is
       the same. At most the queue's bytes. */
    allfold_status (*upload)(struct queue *queue, const void *from, void *to, size_t bytes, struct error *error);
    /* Makes device memory readable by the host: at *host after wait (CUDA copies to staging; the CPU gives from). */
    allfold_status (*download)(struct queue *queue, const void *from, size_t bytes, const void **host,
                               struct error *error);
    /* Folds n elements at x (device memory), the first of which has the index first, into *queue->partial. */
    allfold_status (*fold)(struct queue *queue, enum monoid monoid, allfold_type type, const void *x, uint64_t n,
                           uint64_t first, struct error *error);
    /* y[i] = softmax (or its logarithm) of x[i], both device memory; x == y is allowed for equal types. y_type is a
       floating-point type. */
    allfold_status (*softmax)(struct queue *queue, const struct softmax_constants *constants, bool logarithm,
                              allfold_type x_type, const void *x, allfold_type y_type, void *y, uint64_t n,
                              struct error *error);
    /* Both passes of softmax in one piece, where the device can: it keeps the elements, or most, between them, or has the second
       one under way behind the first; else *begun is false and nothing has happened. Then wait gives *queue->partial, of
       softmax_monoid, and softmax with the same arguments goes on from there; another wait before it ends the matter instead.
       alone: the partial of x is the global one: the first wait is the last, and there is no partial. Not for the logarithm. */
    allfold_status (*softmax_begin)(struct queue *queue, bool alone, bool logarithm, allfold_level level, allfold_type x_type,
                                    const void *x, allfold_type y_type, void *y, uint64_t n, bool *begun,
                                    struct error *error);
    allfold_status (*wait)(struct queue *queue, struct error *error);
};

extern const struct backend backend_cpu, backend_cuda;

enum { THREADS_MAX = 4096 }; /* that a caller may ask for */

/* Bytes of this host's memory. */
uint64_t host_memory(void);

/* Threads that one of local_size processes of this host may use: OMP_NUM_THREADS where it is set, else the cores that
   the process is bound to, or its share of all where it is not bound. */
int host_threads(int local_size);

/* The CPUs that this process may run on, as "0-7,16", cut with "..." where they do not fit; and the NUMA node that they
   all belong to, or -1. */
void host_cpus(char *text, size_t bytes);
int host_numa_node(void);

/* The backend of that choice; auto is cuda where a device is visible, else cpu. */
allfold_status backend_choose(allfold_backend choice, const struct backend **backend, struct error *error);

#endif
