/* Starts CUB's reductions and transforms (cub.h) for the .cu files of the ladder and of the benchmark. */
#pragma once

extern "C" {
#include "measure/cub.h"
}

#include <cuda_runtime.h>

/* Starts the call, or, if scratch is NULL, only writes to *scratch_bytes what it needs. Sums of 16-bit floating point are f32, sums of
   int32 are uint32, which wrap. The maximum of no elements is -infinity or INT32_MIN. */
cudaError_t cub_start(const struct cub_call *call, void *scratch, size_t *scratch_bytes, cudaStream_t stream);

/* The same of CUB_SORT and CUB_BINS (cub_order.cu), which cub_start passes on. */
cudaError_t cub_order_start(const struct cub_call *call, void *scratch, size_t *scratch_bytes, cudaStream_t stream);

/* Whether this CUB reduces segments of one length: CCCL 3.4. */
bool cub_has_rows(void);

/* A result of CUB_SUM, CUB_SUM_GPU_TO_GPU, CUB_MAX or CUB_SUMEXP, copied to the host. */
double cub_value(enum cub_work work, allfold_type type, const void *value);

/* Whether this CUB has CUB_SUM_GPU_TO_GPU: of f32 and f64, of fewer than 2^31. */
bool cub_has_gpu_to_gpu(void);
