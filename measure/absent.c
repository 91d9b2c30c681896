/* Stands in for the GPU to measure on in a build without CUDA. */
#include "measure/gpu.h"

allfold_status gpu_open(int local_rank, struct gpu **gpu, struct error *error)
{
    (void)local_rank;
    *gpu = NULL;
    return error_set(error, ALLFOLD_UNSUPPORTED,
                     "measuring a GPU needs a CUDA device, and this build has no CUDA: configure it --with-cuda");
}

void gpu_close(struct gpu *gpu) { (void)gpu; }

const struct gpu_device *gpu_device_of(const struct gpu *gpu)
{
    (void)gpu;
    return NULL;
}
