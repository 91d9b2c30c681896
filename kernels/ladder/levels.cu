/* The multi-level driver. One launch makes of n elements a partial for each block; a launch is the only barrier of the
   whole grid that classic CUDA has, so the next launch reduces the partials, and so on until one is left. No level runs
   on the host. An empty array is one level, too: a block that finds no elements and writes the identity. */
#include "kernels/ladder/levels.h"

#include <string.h>

static int block_index(int block)
{
    int index = 0;
    for (int size = 64; size < block; size *= 2)
        index++;
    return index;
}

static const struct rung_variant *variant_of(const struct rung_reduction *r)
{
    const int type = r->type == ALLFOLD_INT32 ? 0 : r->type == ALLFOLD_F32 ? 1 : 2;
    return &r->rung->variants[r->fold == ALLFOLD_SUM ? 0 : 1][type][block_index(r->block)];
}

/* What the runtime reports about the kernel; *wave is how many blocks the GPU holds at one time. */
static allfold_status ask_runtime(struct rung_reduction *r, const struct rung_variant *variant, uint64_t *wave,
                                  struct error *error)
{
    static const char what[] = "asking how many blocks fit";
    const struct gpu_device *const device = &r->gpu->device;
    const bool dynamic = (r->rung->flags & RUNG_DYNAMIC_SHARED) != 0;
    const size_t dynamic_bytes = dynamic ? (size_t)r->block * allfold_type_bytes(r->type) : 0;
    cudaFuncAttributes attributes;
    int blocks = 0;
    if (gpu_check(cudaFuncGetAttributes(&attributes, variant->kernel), what, error) != ALLFOLD_OK
        || gpu_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, variant->kernel, r->block, dynamic_bytes),
                       what, error)
               != ALLFOLD_OK)
        return error->status;
    r->registers = attributes.numRegs;
    r->shared_bytes = (double)(attributes.sharedSizeBytes + dynamic_bytes);
    r->occupancy = (double)blocks * r->block / device->threads_per_multiprocessor;
    *wave = (uint64_t)blocks * (uint64_t)device->multiprocessors;
    return ALLFOLD_OK;
}

/* How much one level reads, writes and rounds. */
static void count_level(struct rung_reduction *r, const struct level *level)
{
    const uint64_t n = level->n, bytes = allfold_type_bytes(r->type);
    const uint64_t threads = (uint64_t)level->blocks * (uint64_t)r->block;
    if ((r->rung->flags & RUNG_IN_GLOBAL) != 0) {
        /* each addition reads two and writes one; a block's result is read and written once more */
        r->bytes_read += (n > 0 ? 2 * n - level->blocks : 0) * bytes;
        r->bytes_written += u64_max(n, 1) * bytes;
    } else {
        r->bytes_read += n * bytes;
        r->bytes_written += level->blocks * bytes;
    }
    r->roundings += (double)(n / threads + 1) + 1.0;
    for (int size = 1; size < r->block; size *= 2)
        r->roundings += 1.0;
}

static allfold_status plan(struct rung_reduction *r, struct error *error)
{
    const struct rung_variant *const variant = variant_of(r);
    const size_t bytes = allfold_type_bytes(r->type);
    uint64_t wave = 0, n = r->n;
    const void *from = r->x;
    void *work = NULL;
    if (ask_runtime(r, variant, &wave, error) != ALLFOLD_OK)
        return error->status;
    if ((r->rung->flags & RUNG_IN_GLOBAL) != 0
        && gpu_buffer(r->gpu, GPU_WORK, u64_max(n, 1) * bytes, &work, error) != ALLFOLD_OK)
        return error->status;
    r->start = variant->start;
    do {
        struct level *const level = &r->levels[r->level_count++];
        const unsigned int blocks = rung_level_blocks(r->rung, n, r->block, wave);
        const enum gpu_buffers place = blocks == 1               ? GPU_RESULT
                                        : r->level_count % 2 == 1 ? GPU_PARTIALS
                                                                  : GPU_PARTIALS_2;
        *level = {from, n, NULL, work, blocks, r->block, r->gpu->stream};
        if (gpu_buffer(r->gpu, place, u64_max(blocks * bytes, 16), &level->to, error) != ALLFOLD_OK)
            return error->status;
        count_level(r, level);
        from = r->result = level->to;
        n = blocks;
    } while (n > 1);
    r->launches = r->level_count;
    return ALLFOLD_OK;
}

static cudaError_t start(void *argument, cudaStream_t stream)
{
    const struct rung_reduction *const r = (const struct rung_reduction *)argument;
    cudaError_t code = cudaSuccess;
    (void)stream; /* the levels have it */
    for (int i = 0; i < r->level_count && code == cudaSuccess; i++)
        code = r->start(&r->levels[i]);
    return code;
}

struct ladder_answer reduction_answer_at(const struct rung_reduction *r, const void *value)
{
    struct ladder_answer answer = {};
    answer.roundings = r->roundings;
    answer.precision = r->type == ALLFOLD_F32 ? 24 : 53;
    answer.wraps = true;
    if (r->type == ALLFOLD_INT32) {
        answer.value.kind = ALLFOLD_VALUE_I64;
        answer.value.i64 = *(const int32_t *)value;
    } else {
        answer.value.kind = ALLFOLD_VALUE_F64;
        answer.value.f64 = r->type == ALLFOLD_F32 ? (double)*(const float *)value : *(const double *)value;
    }
    return answer;
}

allfold_status reduction_answer_device(struct rung_reduction *r, struct ladder_answer *answer, struct error *error)
{
    double value[1];
    if (gpu_fetch(r->gpu, value, r->result, allfold_type_bytes(r->type), error) == ALLFOLD_OK)
        *answer = reduction_answer_at(r, value);
    return error->status;
}

const struct rung_driver levels_driver = {false, plan, start, reduction_answer_device};

allfold_status reduction_plan(const struct rung *rung, const struct ladder_request *request, struct rung_reduction *r, struct error *error)
{
    r->rung = rung;
    r->type = request->type;
    r->fold = request->fold;
    r->block = request->block;
    r->n = request->count;
    r->occupancy = r->registers = r->shared_bytes = r->launches = NAN;
    return reduction_driver(r)->plan(r, error);
}
