/* Measures on one GPU, for the .cu files of the ladder and of the benchmark: memory, time, ceilings, errors. */
#pragma once

extern "C" {
#include "base/base.h"
#include "base/host.h"
}
#include "measure/gpu.h"
#include "measure/launch.cuh"
#include "measure/times.h"

/* Device memory, kept from one use to the next and grown if more is asked for. */
enum gpu_buffers {
    GPU_INPUT,
    GPU_WORK,       /* as large as the input, for rungs that work in global memory; softmax's output */
    GPU_PARTIALS,   /* of the odd levels */
    GPU_PARTIALS_2, /* of the even levels */
    GPU_RESULT,
    GPU_SCRATCH,    /* the engine's, CUB's */
    GPU_COUNTER,
    GPU_CLEAR,      /* read between runs, so that the caches hold nothing of the input */
    GPU_BUFFERS
};

enum { GPU_RUNS_MOST = 200 }; /* of one measurement */

struct gpu {
    struct gpu_device device;
    cudaStream_t stream;   /* all work goes here */
    cudaEvent_t *events;   /* two for each run */
    void *buffers[GPU_BUFFERS];
    size_t buffer_bytes[GPU_BUFFERS];
    void *host[2];         /* the same for host memory: the input, and a work space */
    size_t host_bytes[2];
    void *pinned;          /* host memory that kernels write to */
    size_t pinned_bytes;
    double barriers, exchanges; /* between threads of a block, and of a warp, that a thread met in the last timed run; known if emulated */
};

/* If code is an error: `what`, then CUDA's own text for the code. Returns the status. */
allfold_status gpu_check(cudaError_t code, const char *what, struct error *error);

/* At least `bytes` of device or host memory; what was in it is lost if it grows. */
allfold_status gpu_buffer(struct gpu *gpu, enum gpu_buffers which, size_t bytes, void **memory, struct error *error);
allfold_status gpu_host_buffer(struct gpu *gpu, int which, size_t bytes, void **memory, struct error *error);
/* The same for host memory that kernels write to. */
allfold_status gpu_pinned(struct gpu *gpu, size_t bytes, void **memory, struct error *error);

/* The same for elements of a type. */
template <class T>
static inline allfold_status gpu_buffer(struct gpu *gpu, enum gpu_buffers which, size_t bytes, T **memory, struct error *error)
{
    void *found = NULL;
    const allfold_status status = gpu_buffer(gpu, which, bytes, &found, error);
    *memory = (T *)found;
    return status;
}

/* Waits for the stream. */
allfold_status gpu_wait(struct gpu *gpu, const char *what, struct error *error);

/* Copies device memory to the host, and waits for it. */
static inline allfold_status gpu_fetch(struct gpu *gpu, void *to, const void *from, size_t bytes, struct error *error)
{
    static const char what[] = "copying what the GPU has found";
    if (gpu_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, gpu->stream), what, error) == ALLFOLD_OK)
        gpu_wait(gpu, what, error);
    return error->status;
}

/* Sets all bytes of device memory, on the stream. */
static inline allfold_status gpu_fill(struct gpu *gpu, void *memory, int byte, size_t bytes, struct error *error)
{
    return gpu_check(cudaMemsetAsync(memory, byte, bytes, gpu->stream), "clearing the GPU's memory", error);
}

/* Times work between two events on the GPU: warm-up, then 20 to 200 runs, by how long one takes, each after the caches
   were cleared. The runs are queued ahead, so that the host's time does not count, unless work itself waits for the
   GPU. */
allfold_status gpu_time(struct gpu *gpu, const struct gpu_work *work, struct timing *timing, struct error *error);
/* The same in 5 to 20 runs, to choose between ways of doing the same. */
allfold_status gpu_time_quickly(struct gpu *gpu, const struct gpu_work *work, struct timing *timing, struct error *error);
/* Times work that the calling thread does itself: 3 to 20 runs. */
allfold_status host_time(const struct gpu_work *work, struct timing *timing, struct error *error);

/* Reads other memory than the input's, more than the second-level cache holds: the caches then hold nothing of the
   input, and nothing that is still to be written back. */
cudaError_t gpu_clear(struct gpu *gpu);

/* A way of reading `bytes` at x, 16-byte aligned, and doing nothing else. */
struct gpu_read {
    const void *x;
    uint64_t bytes;
    void *sink;
    int loads, threads; /* a thread's in flight, a block's */
    int rounds;         /* of a block before it ends; 0: blocks stay */
    unsigned int blocks;
};
cudaError_t gpu_read_start(void *read, cudaStream_t stream); /* of a struct gpu_read */
/* The fastest of many such ways, each tried a few times. */
allfold_status gpu_read_fastest(struct gpu *gpu, const void *x, uint64_t bytes, struct gpu_read *read,
                                   struct error *error);
/* How fast this GPU reads so: bytes a second, launch included. 0 for less than 16 bytes. */
allfold_status gpu_read_ceiling(struct gpu *gpu, const void *x, uint64_t bytes, double *bytes_per_second,
                                   struct error *error);
