/* The whole C interface of the CUDA kernels: what src/device/cuda/ and the benchmarks call. Launchers return at once
   with a cudaError_t (0: the work is under way) and take a cudaStream_t of the current device as void *. */
#pragma once

#include "base/base.h"
#include "fold/axis.h"
#include "fold/table.h"

struct draw;
struct order_work;
struct softmax_constants;

#ifdef __cplusplus
extern "C" {
#endif

/* A partial as kernels send it: in words that carry the launch id in their upper half (message.cuh), so that the host can see
   whether all of it has arrived. */
struct fold_message {
    __attribute__((aligned(16))) uint64_t words[PARTIAL_BYTES_MAX / 4];
};

/* Messages between kernels and the host, in memory that the device can write: mapped host memory if the host is to poll it. */
struct fold_mailbox {
    struct fold_message partial; /* a kernel's result */
    struct fold_message outcome; /* softmax_outcome reads it */
    __attribute__((aligned(128))) struct fold_message orders; /* softmax_order writes it: into one line, which one read brings */
};

/* The memory of a fold beside its input. Each queue has one: folds that share it must run one after the other. */
struct fold_space {
    int multiprocessors;          /* of the device; with n it fixes how the work is cut, and so the bits of the result */
    void *scratch;                /* device memory, fold_scratch_bytes, zeroed once before its first use */
    struct fold_mailbox *mailbox; /* where results go; its address on the device. Zeroed once, too */
    uint32_t launch_id;           /* of the last launch, 0 before the first; belongs to scratch and mailbox */
};
size_t fold_scratch_bytes(int multiprocessors);
/* The end of scratch, which folds do not use: room for a mailbox and constants that stay on the device. */
void *fold_scratch_end(const struct fold_space *space);
enum { FOLD_SCRATCH_END_BYTES = sizeof(struct fold_mailbox) + 256 };
/* Sets the id of the next launch, which no word in scratch or mailbox holds yet: when ids start again from 1, that memory is zeroed
   first. The launchers call it. */
int fold_launch_id_next(struct fold_space *space, void *stream);
/* The same for `count` ids that follow one another, of which space->launch_id becomes the last. */
int fold_launch_ids_next(struct fold_space *space, uint32_t count, void *stream);

/* Folds work->x (device memory, aligned to the element size; not read where there are no elements) into space->mailbox->partial. One
   launch, with the next id. */
int fold_launch(const struct work *work, struct fold_space *space, void *stream);
/* The same with the launch id that the last call of fold_launch_id_next gave, and to another mailbox, in any memory of the device. */
int fold_launch_to(struct fold_mailbox *mailbox, const struct work *work, const struct fold_space *space, void *stream);

/* Takes the partial, of `bytes` bytes, of launch `launch_id` from a mailbox that the host can read; false until all of it has arrived.
   Host only. */
bool fold_result(const struct fold_mailbox *mailbox, uint32_t launch_id, size_t bytes, struct partial *partial);

/* Starts a kernel in delivery->stream that waits for deliver_give, and then stores the values. The mailbox is that of a queue without
   softmax, which has `orders` for it. */
int deliver_launch(const struct fold_mailbox *mailbox, const struct delivery *delivery);
/* Gives the values of delivery->count results. Host only. */
void deliver_give(struct fold_mailbox *mailbox, const struct delivery *delivery, const struct delivered *values);

/* Makes the elements of that range of indices (base/draw.h) in device memory that is aligned to their size. */
int generate_launch(const struct draw *draw, struct range range, void *to, int multiprocessors, void *stream);

/* A pass of order statistics. shared_bytes: what a block may have of shared memory. answer: the work's, as an address on the device; where it is not NULL,
   a partial of ORDER_ANSWER_BYTES follows, in the space's mailbox, with the id that fold_launch_id_next gave. */
int order_launch(const struct order_work *work, uint64_t *answer, const struct fold_space *space, size_t shared_bytes, void *stream);
enum { ORDER_ANSWER_BYTES = 8 };

/* Copies elements in device memory, of which those that are written are none of those that are read. */
int strided_launch(const struct strided_copy *copy, int multiprocessors, void *stream);

/* The room in which elements may stay between the passes, in a launch whose blocks run at the same time and wait for each other. Nothing
   else may occupy the device for long meanwhile. */
struct softmax_capacity {
    size_t shared_bytes; /* of a block; 0: other ranks use the device, too, so no kernel may occupy it */
    size_t cache_bytes;  /* of the second-level cache, all of it */
    size_t block_bytes;  /* of shared memory for a block */
    bool is_hopper;      /* compute capability 9.0 or later: a kernel may start while the one before it ends, and blocks form clusters */
};

/* What the host sends to a kernel that waits between the passes. */
struct softmax_orders {
    uint32_t proceed; /* 0: leave y as it is, and end */
    uint32_t unused;
    double max, log_sum, log_low, inverse_high, inverse_low; /* of a struct softmax_constants, from which the others follow */
};

struct softmax_call {
    struct fold_space *space; /* as a fold's: it gets the partial, of softmax_monoid, unless single_rank is set */
    struct softmax_capacity capacity;
    bool single_rank; /* the partial of x is the global one: no host between the passes. Not for the logarithm */
    struct softmax_work work; /* of one row of neighbours */
};

int softmax_capacity_of(int device, struct softmax_capacity *capacity);
/* Once for each device, before the first softmax_launch_whole: it loads the kernels, which cannot be loaded while one waits for the host. */
int softmax_load(const struct softmax_capacity *capacity);
/* Both passes of x and y of one type: in one launch, whose blocks keep the elements in registers and shared memory (resident); or in
   several launches, made at the same time (chained). Between the passes the device computes the constants itself if single_rank is set;
   otherwise it waits for the host's orders. softmax_outcome tells the end. *launched is false, and nothing has happened, if neither fits:
   because of the size, the types, alignment to 16 bytes, or ranks that share the device. */
int softmax_launch_whole(const struct softmax_call *call, void *stream, bool *launched);
/* The two kinds of launch, and whether the call fits each. */
bool softmax_resident_fits(const struct softmax_call *call);
int softmax_resident_launch(const struct softmax_call *call, void *stream);
bool softmax_chained_fits(const struct softmax_call *call);
int softmax_chained_launch(const struct softmax_call *call, void *stream);
/* Tells the kernel of launch `launch_id`, which waits, to proceed with these constants; NULL: to end. After RESIDENT_WAIT_MILLISECONDS
   without orders the kernel ends by itself. Host only. */
void softmax_order(struct fold_mailbox *mailbox, uint32_t launch_id, const struct softmax_constants *constants);
/* Whether the kernel of launch `launch_id` has ended its work, and then whether y is written. Host only. */
bool softmax_outcome(const struct fold_mailbox *mailbox, uint32_t launch_id, bool *written);
enum { RESIDENT_WAIT_MILLISECONDS = 10 };

/* Folds along an axis (fold/axis.h): the partials of the results come to work->partials, or work->finish says what becomes of them. */
int axis_launch(const struct axis_work *work, int multiprocessors, void *stream);
/* The same of monoids with weights, of which axis_launch knows nothing: partials alone. */
int weighted_launch(const struct axis_work *work, int multiprocessors, void *stream);
/* Combines `parts` partials of each result, in their order. Partial p of result r lies at work->partials, at place p * outer * inner + r, or in the
   window. The combined ones come to the first outer * inner places, or work->finish says what becomes of them. x is not read. */
int axis_parts_launch(const struct axis_work *work, uint64_t parts, void *stream);
/* Copies the partials to the window, if there is one. */
int axis_send_launch(const struct axis_work *work, void *stream);
/* One of several arrays that one launch folds, a block each split: device memory, aligned to the element size. */
struct many_array {
    const void *x;
    uint64_t n, split;      /* elements, at least one; those of a split, a multiple of 16 */
    uint32_t first, splits; /* its first split, among those of all arrays */
    allfold_type type;
    int bytes_bits;         /* log2 of an element's bytes */
};
/* Sets split, splits and bytes_bits, which follow from n and type alone. */
void many_cut(struct many_array *array);
struct many_work {
    enum monoid monoid;
    enum value value;                /* of all types */
    const struct many_array *arrays; /* device memory */
    const uint32_t *owners;          /* device memory: the array of each split */
    uint32_t count, splits;          /* of all arrays */
    void *partials;                  /* device memory with room for those of the splits, partial_stride bytes each */
    void *results;                   /* memory that the device can write: gets the arrays' partials in order, likewise */
};
/* Folds the arrays, each by itself. */
int many_launch(const struct many_work *work, void *stream);
/* The constants of `count` results, from their partials at work->partials. Both are device memory. */
int axis_constants_launch(const struct axis_work *work, uint64_t count, struct softmax_constants *constants, void *stream);
/* The second pass of softmax. constants: device memory, of each row in order; NULL: those of the only row are `given`, in host memory. x and y are device memory,
   aligned to their element sizes; they are the same memory, of equal types and strides, or do not overlap. Computes in f32 if the value type of x is f32, y_type is
   not f64, and no logarithm is wanted; else in f64. Goes backwards through the arrays. */
int normalise_launch(const struct softmax_work *work, const struct softmax_constants *constants, const struct softmax_constants *given, int multiprocessors,
                     void *stream);

/* Fold rows, or columns, in one read and with little arithmetic, as axis_launch, and then do what logits_end_launch and
   axis_send_launch do. *launched is false, and nothing has happened, unless it is one of their monoids, elements are
   floating-point numbers of at most 4 bytes, and are many, and those of a long row are neighbours, or columns lie side by side
   in whole words that are aligned.
     logits_launch          level fast: logits of rows, sums of exponentials of rows and columns
     extremes_launch        argmin and argmax of rows and columns, if results are finished and NaN is one
     counted_rows_launch    level exact: logits and exponentials of long rows of bf16, by counting values
     exponentials_launch    level exact: logits of rows, sums of exponentials of rows and columns */
int logits_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched);
int extremes_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched);
int counted_rows_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched);
int exponentials_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched);
/* Folds as fold_launch_to. *launched is false, and nothing has happened, unless these are exact sums of exponentials of many elements of at most 4 bytes. */
int exact_whole_launch(const struct work *work, const struct fold_space *space, void *stream, bool *launched);
/* Gives partials of monoids with marks, at work->partials, the marks of their targets, and finishes results of them. */
int logits_end_launch(const struct axis_work *work, void *stream);
int gradient_launch(const struct gradient_work *work, int multiprocessors, void *stream);

/* Softmax along rows in one launch that reads each element once. */
struct row_softmax_call {
    struct fold_space *space;
    struct softmax_capacity capacity;
    struct softmax_work work; /* of any strides and types */
};
/* *launched is false, and nothing has happened, unless x and y are of one type, and a row fits; column_softmax_launch does it if rows lie side by side. */
int row_softmax_launch(const struct row_softmax_call *call, void *stream, bool *launched);
int column_softmax_launch(const struct row_softmax_call *call, void *stream, bool *launched);

/* 0 if this build has machine code, or PTX, for the current device; else the error that keeps its kernels from running, such as
   cudaErrorNoKernelImageForDevice. */
int kernels_check(void);

#ifdef __cplusplus
}
#endif
