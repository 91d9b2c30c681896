/* Rows of the experiments: timed, checked, reported. */
#include "kernels/ladder/experiment.cuh"

#include <math.h>
#include <stdio.h>

enum { P99 = 1, RUNS, BANDWIDTH, OF_CEILING, OF_DATASHEET, VERDICT }; /* columns, behind experiment->time */

allfold_status experiment_begin(struct experiment *experiment, struct gpu *gpu, uint64_t n, struct ladder_table *table,
                                struct error *error)
{
    const void *x;
    *experiment = {};
    experiment->gpu = gpu;
    experiment->table = table;
    experiment->n = n;
    ladder_oracle_compute(ALLFOLD_INT32, n, &experiment->oracle);
    if (ladder_input(gpu, ALLFOLD_INT32, n, &x, error) != ALLFOLD_OK
        || gpu_buffer(gpu, GPU_PARTIALS, EXPERIMENT_PARTIALS * sizeof(int32_t), &experiment->partials, error) != ALLFOLD_OK
        || gpu_buffer(gpu, GPU_RESULT, 16, &experiment->result, error) != ALLFOLD_OK
        || gpu_read_ceiling(gpu, x, n * sizeof(int32_t), &experiment->ceiling, error) != ALLFOLD_OK)
        return error->status;
    experiment->x = (const int32_t *)x;
    ladder_table_fact(table, "count", "elements, int32", LADDER_INTEGER)->number = (double)n;
    ladder_facts(gpu, experiment->ceiling, table);
    return ALLFOLD_OK;
}

void experiment_columns(struct experiment *experiment)
{
    struct ladder_table *const table = experiment->table;
    experiment->time = ladder_table_column(table, "seconds", "time us", LADDER_SECONDS);
    ladder_table_column(table, "seconds_p99", "p99 us", LADDER_SECONDS);
    ladder_table_column(table, "runs", NULL, LADDER_INTEGER);
    ladder_table_column(table, "bytes_per_second", "GB/s", LADDER_BANDWIDTH);
    ladder_table_column(table, "of_read_ceiling", "% ceiling", LADDER_PERCENT);
    ladder_table_column(table, "of_datasheet", "% sheet", LADDER_PERCENT);
    ladder_table_column(table, "correct", "result", LADDER_VERDICT);
    table->compared = experiment->time;
}

allfold_status experiment_time(struct experiment *experiment, const struct gpu_work *work, double bytes,
                               struct ladder_cell *row, struct error *error)
{
    const double datasheet = experiment->gpu->device.datasheet;
    struct timing times;
    struct ladder_cell *const cells = row + experiment->time;
    if (gpu_time(experiment->gpu, work, &times, error) != ALLFOLD_OK)
        return error->status;
    const double rate = times.median > 0.0 ? bytes / times.median : NAN;
    cells[0].number = times.median;
    cells[P99].number = times.p99;
    cells[RUNS].number = times.runs;
    cells[BANDWIDTH].number = rate;
    cells[OF_CEILING].number = experiment->ceiling > 0.0 ? rate / experiment->ceiling : NAN;
    cells[OF_DATASHEET].number = datasheet > 0.0 ? rate / datasheet : NAN;
    return ALLFOLD_OK;
}

void experiment_verdict(struct experiment *experiment, struct ladder_cell *row, const char *why)
{
    ladder_table_verdict(experiment->table, &row[experiment->time + VERDICT], why);
}

allfold_status experiment_check_input(struct experiment *experiment, char why[LADDER_TEXT_BYTES], struct error *error)
{
    uint64_t changes = 0;
    if (ladder_input_changes(experiment->gpu, ALLFOLD_INT32, experiment->n, &changes, error) == ALLFOLD_OK && changes > 0)
        snprintf(why, LADDER_TEXT_BYTES, "changed %llu places of its input", (unsigned long long)changes);
    return error->status;
}

allfold_status experiment_check(struct experiment *experiment, const struct gpu_work *work, char why[LADDER_TEXT_BYTES],
                                struct error *error)
{
    struct gpu *const gpu = experiment->gpu;
    struct ladder_answer answer = {};
    int32_t found = 0;
    why[0] = '\0';
    if (ladder_poison(gpu, error) != ALLFOLD_OK
        || gpu_check(work->start(work->argument, gpu->stream), "starting what is checked", error) != ALLFOLD_OK
        || gpu_fetch(gpu, &found, experiment->result, sizeof found, error) != ALLFOLD_OK)
        return error->status;
    answer.value.kind = ALLFOLD_VALUE_I64;
    answer.value.i64 = found;
    answer.wraps = true;
    ladder_oracle_differs(&experiment->oracle, ALLFOLD_SUM, &answer, why, LADDER_TEXT_BYTES);
    return why[0] != '\0' ? ALLFOLD_OK : experiment_check_input(experiment, why, error);
}

allfold_status experiment_row(struct experiment *experiment, const struct gpu_work *work, struct ladder_cell *row,
                              struct error *error)
{
    char why[LADDER_TEXT_BYTES];
    if (experiment_check(experiment, work, why, error) == ALLFOLD_OK
        && experiment_time(experiment, work, (double)experiment->n * sizeof(int32_t), row, error) == ALLFOLD_OK)
        experiment_verdict(experiment, row, why);
    return error->status;
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
