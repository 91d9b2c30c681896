/* Thread granularity: how much work one thread should do.

   Idea: a thread has costs before it adds anything. Its block is scheduled, its addresses are computed, and the
   block's tree of log2(block) steps is paid once a thread, for one element or for 32. So fewer threads with more
   elements each do less work in all. A thread that starts its loads together also keeps memory busier. There is a limit: the
   loaded elements are held in registers, and registers limit how many threads a multiprocessor holds (occupancy.cu).

   Shown by one kernel with 1 to 32 elements a thread, a block's width apart, so that every load is coalesced. Its levels are
   those of the ladder. */
#include "kernels/ladder/experiment.cuh"
#include "kernels/ladder/levels.h"

#include <stdio.h>

template <int elements, int block>
static __global__ void __launch_bounds__(block) granularity_kernel(const int32_t *x, uint64_t n, int32_t *partials)
{
    const uint64_t first = (uint64_t)blockIdx.x * (elements * block);
    int32_t some[elements], sum = 0;
    x += first + threadIdx.x;
    if (n >= first + elements * block) { /* as many loads under way together as the compiler has registers for */
#pragma unroll
        for (int k = 0; k < elements; k++)
            some[k] = x[k * block];
#pragma unroll
        for (int k = 0; k < elements; k++)
            sum = int_sum::combine(sum, some[k]);
    } else {
#pragma unroll 1
        for (uint64_t i = first + threadIdx.x; i < n; i += block, x += block)
            sum = int_sum::combine(sum, *x);
    }
    sum = block_shuffles<int_sum, block>(sum);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

template <int elements, int block> static cudaError_t granularity_start(const struct level *level)
{
    return rung_start(granularity_kernel<elements, block>, level, 0);
}

/* Sums of int32 only: the other variants are never asked for. */
#define VARIANT(elements, block) {granularity_start<elements, block>, (const void *)granularity_kernel<elements, block>}
#define GRANULARITY(elements)                                                                       \
    {nullptr, elements, 0, {{{VARIANT(elements, 64), VARIANT(elements, 128), VARIANT(elements, 256), \
                              VARIANT(elements, 512), VARIANT(elements, 1024)}}}}
static const struct rung rungs[] = {GRANULARITY(1), GRANULARITY(2),  GRANULARITY(4),
                                    GRANULARITY(8), GRANULARITY(16), GRANULARITY(32)};

static allfold_status measure(struct experiment *experiment, const struct ladder_request *request, const struct rung *rung,
                              struct error *error)
{
    struct rung_reduction r = {};
    r.gpu = experiment->gpu;
    r.x = experiment->x;
    if (reduction_plan(rung, request, &r, error) != ALLFOLD_OK)
        return error->status;
    experiment->partials = (int32_t *)experiment->gpu->buffers[GPU_PARTIALS]; /* planning may have moved them */
    experiment->result = (int32_t *)r.result;
    struct table *const table = experiment->table;
    if (table_row(table, error) != ALLFOLD_OK)
        return error->status;
    table_number(table, COLUMN_ELEMENTS, rung->elements);
    table_number(table, COLUMN_BLOCKS, r.levels[0].blocks);
    table_number(table, COLUMN_LAUNCHES, r.launches);
    table_number(table, COLUMN_REGISTERS, r.registers);
    table_number(table, COLUMN_OCCUPANCY, r.occupancy);
    const struct gpu_work work = {levels_driver.start, &r};
    return experiment_measure(experiment, &work, error);
}

allfold_status ladder_granularity(struct gpu *gpu, const struct ladder_request *request, struct table *table, struct error *error)
{
    static const enum table_column columns[] = {COLUMN_ELEMENTS, COLUMN_BLOCKS, COLUMN_LAUNCHES, COLUMN_REGISTERS, COLUMN_OCCUPANCY};
    struct ladder_request sums = *request;
    struct experiment experiment;
    sums.type = ALLFOLD_INT32;
    sums.fold = ALLFOLD_SUM;
    snprintf(table->title, sizeof table->title, "1 to 32 elements a thread, sum of %llu int32, blocks of %d threads",
             (unsigned long long)request->count, request->block);
    table_add_columns(table, columns, sizeof columns / sizeof *columns);
    if (experiment_begin(&experiment, gpu, request->count, table, error) != ALLFOLD_OK)
        return error->status;
    for (const struct rung &rung : rungs)
        if (measure(&experiment, &sums, &rung, error) != ALLFOLD_OK)
            break;
    return error->status;
}
