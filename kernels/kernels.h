/* The whole C interface of the CUDA kernels: what src/device/cuda.c and the benchmarks call. Launchers return at once
   with a cudaError_t (0: the work is under way) and take a cudaStream_t of the current device as void *. */
#ifndef ALLFOLD_KERNELS_H
#define ALLFOLD_KERNELS_H

#include "base/base.h"
#include "fold/table.h"

struct softmax_constants;

#ifdef __cplusplus
extern "C" {
#endif

/* A partial as kernels write it: word by word, each with the number of the launch in its upper half (message.cuh), so
   that the host can watch it arrive. */
struct fold_message {
    __attribute__((aligned(16))) uint64_t words[PARTIAL_BYTES_MAX / 4];
};

/* What a fold works with beside its input. One for each queue: folds that share it must run one after the other. */
struct fold_space {
    int multiprocessors;         /* of the device; with n it fixes how the work is cut, and so the bits of the result */
    void *scratch;               /* device memory, fold_scratch_bytes, zeroed once before its first use */
    struct fold_message *result; /* where the result goes: any memory that the device can write, such as mapped host
                                    memory; its address there. Zeroed once, too */
    uint32_t number;             /* of the last launch, 0 before the first; belongs to scratch and result */
};
size_t fold_scratch_bytes(int multiprocessors);

/* Folds n elements at x (device memory, aligned to the element size; not read where n is 0), the first of which has the
   index `first`, into *space->result. One launch, with the next number. */
int fold_launch(enum monoid monoid, allfold_type type, const void *x, uint64_t n, uint64_t first,
                struct fold_space *space, void *stream);

/* Takes the partial, of so many bytes, of launch `number` from a message that the host can read, which may still be arriving:
   false until all of it is there. Host only. */
bool fold_result(const struct fold_message *message, uint32_t number, size_t bytes, struct partial *partial);

/* y[i] = softmax of x[i], or its logarithm. Both are device memory, aligned to their element sizes; they are the same
   memory, of equal types, or do not overlap. y_type is a floating-point type. Computes in f32 where x starts from f32
   and neither y_type nor the logarithm asks for more, else in f64. Goes backwards through the arrays. */
int softmax_launch(const struct softmax_constants *constants, bool logarithm, allfold_type x_type, const void *x,
                   allfold_type y_type, void *y, uint64_t n, int multiprocessors, void *stream);

/* 0 where this build has machine code, or code to compile, for the current device; else cudaErrorNoKernelImageForDevice
   or whatever else keeps its kernels from running. */
int kernels_check(void);

#ifdef __cplusplus
}
#endif
#endif
