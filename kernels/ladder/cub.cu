/* CUB, the library that comes with CUDA, for comparison (measure/cub.cu).

   Its kernels are internal to it, so their occupancy is not known here. It makes two launches, except for small arrays. Sums of
   int32 are computed as uint32, which wrap as the rungs' do. */
#include "kernels/ladder/levels.h"

#include "measure/cub.cuh"

/* Only writes to *scratch_bytes what it needs if scratch is NULL. */
static cudaError_t start_cub(const struct rung_reduction *r, void *scratch, size_t *scratch_bytes)
{
    const struct cub_call call = {r->fold == ALLFOLD_SUM ? CUB_SUM : CUB_MAX, r->type, r->n, 0, 0.0, 0.0, r->x, r->result, 0};
    return cub_start(&call, scratch, scratch_bytes, r->gpu->stream);
}

static cudaError_t start(void *argument, cudaStream_t stream)
{
    const struct rung_reduction *const r = (const struct rung_reduction *)argument;
    size_t bytes = r->scratch_bytes;
    (void)stream; /* the reduction has it */
    return start_cub(r, r->scratch, &bytes);
}

static allfold_status plan(struct rung_reduction *r, struct error *error)
{
    const uint64_t bytes = allfold_type_bytes(r->type);
    r->bytes_read = r->n * bytes; /* and its partials, whose number it keeps to itself */
    r->bytes_written = bytes;
    r->roundings = (double)(r->n / (256 * (uint64_t)r->gpu->device.multiprocessors)) + 256.0;
    if (gpu_buffer(r->gpu, GPU_RESULT, 16, &r->result, error) != ALLFOLD_OK
        || gpu_check(start_cub(r, NULL, &r->scratch_bytes), "asking CUB for its scratch space", error) != ALLFOLD_OK)
        return error->status;
    r->scratch_bytes = u64_max(r->scratch_bytes, 16);
    return gpu_buffer(r->gpu, GPU_SCRATCH, r->scratch_bytes, &r->scratch, error);
}

static const struct rung_driver cub_driver = {false, plan, start, reduction_answer_device};
extern const struct rung rung_cub;
const struct rung rung_cub = {&cub_driver, 1, 0, {}};
