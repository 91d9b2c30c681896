/* Opens the GPU that is measured, for callers without CUDA. C. */
#pragma once

#include "base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a GPU is. Plain bytes: ranks exchange it. */
struct gpu_device {
    char name[128], uuid[64];
    int index, visible; /* among the devices that this process sees */
    int multiprocessors, threads_per_multiprocessor;
    int driver, runtime;  /* CUDA versions as 1000 * major + 10 * minor */
    uint64_t memory, l2;  /* bytes */
    bool emulated;        /* by the host: its results are right, and it has no times */
    double datasheet;     /* bytes a second: memory clock * bus width * 2; NaN if the device does not report it */
};

/* A GPU opened for measuring, with its stream, events and buffers (gpu.cuh). */
struct gpu;

/* Opens device local_rank modulo visible. In a build without CUDA, or without a device: ALLFOLD_UNSUPPORTED, with the reason. */
allfold_status gpu_open(int local_rank, struct gpu **gpu, struct error *error);
void gpu_close(struct gpu *gpu); /* NULL is allowed */
const struct gpu_device *gpu_device_of(const struct gpu *gpu);

#ifdef __cplusplus
}
#endif
