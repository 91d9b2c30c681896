/* Prepares and measures experiments: see experiment.cuh. */
#include "kernels/ladder/experiment.cuh"

#include <stdio.h>

allfold_status experiment_begin(struct experiment *experiment, struct gpu *gpu, uint64_t n, struct table *table, struct error *error)
{
    static const enum table_column columns[] = {COLUMN_SECONDS,    COLUMN_P99,          COLUMN_RUNS,   COLUMN_BANDWIDTH,
                                                COLUMN_OF_CEILING, COLUMN_OF_DATASHEET, COLUMN_CORRECT};
    const void *x;
    *experiment = {};
    experiment->gpu = gpu;
    experiment->table = table;
    experiment->n = n;
    table_add_columns(table, columns, sizeof columns / sizeof *columns);
    ladder_oracle_compute(ALLFOLD_INT32, n, &experiment->oracle);
    if (ladder_input(gpu, ALLFOLD_INT32, n, &x, error) != ALLFOLD_OK
        || gpu_buffer(gpu, GPU_PARTIALS, EXPERIMENT_PARTIALS * sizeof(int32_t), &experiment->partials, error) != ALLFOLD_OK
        || gpu_buffer(gpu, GPU_RESULT, 16, &experiment->result, error) != ALLFOLD_OK)
        return error->status;
    experiment->x = (const int32_t *)x;
    table_fact(table, COLUMN_FACT_COUNT)->number = (double)n;
    return ladder_runner_begin(&experiment->runner, gpu, x, n * sizeof(int32_t), table, error);
}

allfold_status experiment_compare_input(struct experiment *experiment, char why[TABLE_TEXT_BYTES], struct error *error)
{
    uint64_t changes = 0;
    if (ladder_input_changes(experiment->gpu, ALLFOLD_INT32, experiment->n, &changes, error) == ALLFOLD_OK && changes > 0
        && why[0] == '\0')
        snprintf(why, TABLE_TEXT_BYTES, "changed %llu places of its input", (unsigned long long)changes);
    return error->status;
}

static allfold_status compare(void *argument, char why[TABLE_TEXT_BYTES], struct error *error)
{
    struct experiment *const experiment = (struct experiment *)argument;
    struct ladder_answer answer = {};
    int32_t found = 0;
    if (gpu_fetch(experiment->gpu, &found, experiment->result, sizeof found, error) != ALLFOLD_OK)
        return error->status;
    answer.value.kind = ALLFOLD_VALUE_I64;
    answer.value.i64 = found;
    answer.wraps = true;
    if (why[0] == '\0')
        ladder_oracle_differs(&experiment->oracle, ALLFOLD_SUM, &answer, why, TABLE_TEXT_BYTES);
    return experiment_compare_input(experiment, why, error);
}

allfold_status experiment_measure(struct experiment *experiment, const struct gpu_work *run, struct error *error)
{
    const struct ladder_work work = {*run, false, (double)experiment->n * sizeof(int32_t), experiment, NULL, compare};
    return ladder_runner_measure(&experiment->runner, &work, error);
}

static __global__ void __launch_bounds__(EXPERIMENT_THREADS)
finish_kernel(const int32_t *partials, unsigned int count, int32_t *result)
{
    int32_t sum = 0;
    for (unsigned int i = threadIdx.x; i < count; i += EXPERIMENT_THREADS)
        sum = int_sum::combine(sum, partials[i]);
    sum = block_shuffles<int_sum, EXPERIMENT_THREADS>(sum);
    if (threadIdx.x == 0)
        *result = sum;
}

cudaError_t experiment_finish(const struct experiment *experiment, unsigned int partials, cudaStream_t stream)
{
    return gpu_launch(finish_kernel, 1, EXPERIMENT_THREADS, 0, stream, experiment->partials, partials,
                         experiment->result);
}

allfold_status experiment_needs(const void *kernel, int threads, size_t dynamic_bytes, struct kernel_needs *needs,
                                struct error *error)
{
    static const char what[] = "asking what a kernel needs";
    cudaFuncAttributes attributes;
    if (gpu_check(cudaFuncGetAttributes(&attributes, kernel), what, error) != ALLFOLD_OK
        || gpu_check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&needs->blocks, kernel, threads, dynamic_bytes), what,
                       error) != ALLFOLD_OK)
        return error->status;
    needs->registers = attributes.numRegs;
    needs->local_bytes = attributes.localSizeBytes;
    return ALLFOLD_OK;
}
