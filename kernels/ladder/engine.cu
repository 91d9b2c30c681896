/* The engine: vector loads, many in flight, one launch. This is allfold's own kernel (kernels/fold.cuh), called as
   the library calls it.

   Idea: each thread starts several loads of 16 bytes before it uses the first, so that enough bytes are in flight to
   keep the memory busy with few threads; the grid is as large as the GPU holds and stays until the end, or, where the array is
   long, its blocks take a few rounds each and start in order, so that memory is read in order; and the second
   level needs no launch: each block leaves its partial in memory with the launch id beside every word of it, and
   the first block watches them arrive and combines them in a fixed order. The result's bits are the same from run to run.

   What it fixes: instructions per byte, idle memory, and the second launch, which is most of the time for a small
   array.
   What it leaves: the memory itself: it reads as fast as the memory gives.

   It does more work than the other rungs, and is faster: f32 elements are added in f64, f64 in twice its precision,
   int32 in 128 bits: a sum that wraps around would be an error, so here the oracle's exact sum must come out. */
#include "kernels/ladder/levels.h"

#include "kernels/fold.cuh"

/* How the engine cuts this fold, of more than a small array: it starts as many blocks a multiprocessor as __launch_bounds__ has
   promised to fit. */
struct engine_plan {
    struct fold_shape shape;
    uint64_t blocks;
};
template <enum monoid monoid, class Element> static struct engine_plan plan_at(const struct rung_reduction *r)
{
    typedef fold_of<monoid, typename Element::value> Fold;
    typedef fold_plan<Fold, Element> plan;
    const uint64_t multiprocessors = (uint64_t)r->gpu->device.multiprocessors;
    return {plan::shape, cut_of<Fold, Element, plan>(r->n / Element::per_vector, multiprocessors).blocks};
}

static struct engine_plan plan_of(const struct rung_reduction *r)
{
    switch (r->type) {
#define CASE(ID, T, bits)                                                              \
    case ALLFOLD_##ID:                                                                 \
        return r->fold == ALLFOLD_SUM ? plan_at<MONOID_sum, element<ALLFOLD_##ID>>(r)  \
                                      : plan_at<MONOID_max, element<ALLFOLD_##ID>>(r);
        LADDER_TYPES(CASE)
#undef CASE
    default:
        return {};
    }
}

static allfold_status plan(struct rung_reduction *r, struct error *error)
{
    const struct gpu_device *const device = &r->gpu->device;
    const struct engine_plan plan = plan_of(r);
    const uint64_t bytes = allfold_type_bytes(r->type), partial = monoid_bytes(fold_monoid(r->fold, ALLFOLD_LEVEL_FAST, r->type), r->type);
    const uint64_t threads = (uint64_t)plan.shape.threads;
    r->scratch_bytes = fold_scratch_bytes(device->multiprocessors);
    r->bytes_read = r->n * bytes + plan.blocks * partial;
    r->bytes_written = (plan.blocks + 1) * partial;
    r->occupancy = (double)plan.shape.threads * plan.shape.blocks / device->threads_per_multiprocessor;
    r->launches = 1;
    r->roundings = (double)(r->n / (plan.blocks * threads) + plan.blocks / threads) + 256.0;
    r->space = {};
    if (gpu_buffer(r->gpu, GPU_RESULT, sizeof(struct fold_mailbox), &r->result, error) == ALLFOLD_OK
        && gpu_buffer(r->gpu, GPU_SCRATCH, r->scratch_bytes, &r->scratch, error) == ALLFOLD_OK
        && gpu_fill(r->gpu, r->scratch, 0, r->scratch_bytes, error) == ALLFOLD_OK)
        gpu_fill(r->gpu, r->result, 0, sizeof(struct fold_mailbox), error);
    return error->status;
}

static cudaError_t start(void *argument, cudaStream_t stream)
{
    struct rung_reduction *const r = (struct rung_reduction *)argument;
    r->space.multiprocessors = r->gpu->device.multiprocessors;
    r->space.scratch = r->scratch;
    r->space.mailbox = (struct fold_mailbox *)r->result;
    const struct work work = {fold_monoid(r->fold, ALLFOLD_LEVEL_FAST, r->type), r->type, r->x, r->n, 0, NULL, NULL};
    return (cudaError_t)fold_launch(&work, &r->space, stream);
}

static allfold_status answer(struct rung_reduction *r, struct ladder_answer *answer, struct error *error)
{
    const size_t bytes = monoid_bytes(fold_monoid(r->fold, ALLFOLD_LEVEL_FAST, r->type), r->type);
    struct fold_mailbox mailbox;
    struct partial partial;
    struct fold_results result = {};
    if (gpu_fetch(r->gpu, &mailbox, r->result, sizeof mailbox, error) != ALLFOLD_OK)
        return error->status;
    if (!fold_result(&mailbox, r->space.launch_id, bytes, &partial))
        return error_set(error, ALLFOLD_DEVICE_ERROR, "the engine's kernel left no result");
    /* For the engine the maximum of nothing does not exist; one element, the smallest, makes it what it is here. */
    const uint64_t count = r->n == 0 && r->fold == ALLFOLD_MAX ? 1 : r->n;
    const struct fold_call call = {r->fold, ALLFOLD_LEVEL_FAST, ALLFOLD_NAN_PROPAGATE, ALLFOLD_TYPE_NONE};
    const struct folded whole = {r->type, count, &partial};
    if (fold_finish(&call, &whole, &result, error) == ALLFOLD_OK)
        *answer = {result.fields[0].value, false, r->roundings, 53};
    return error->status;
}

static const struct rung_driver engine_driver = {false, plan, start, answer};
extern const struct rung rung_engine;
const struct rung rung_engine = {&engine_driver, 1, 0, {}};
