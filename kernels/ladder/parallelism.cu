/* Memory parallelism: how many bytes must be in flight.

   Idea: a load takes a time t to come back, hundreds of nanoseconds, whatever the code does. To read b bytes a second,
   b * t bytes must be in flight all the time (Little's law): for 4.8 TB/s, 132 multiprocessors and 600 ns, 21 KiB on
   each. It does not matter how they are requested: many threads with a load each, few threads with many loads, or wider loads.

   Shown by one kernel that sums, with 64 to 2048 threads on each multiprocessor, 1 to 8 loads in flight a thread, of 4 or
   of 16 bytes. The time in flight follows from Little's law: bytes in flight / bandwidth. It is nearly constant as long
   as memory waits for requests, and grows when requests wait for memory. From there on more requests gain nothing. */
#include "kernels/ladder/experiment.cuh"

#include <stdio.h>

constexpr int THREADS[] = {64, 256, 1024, 2048}; /* on a multiprocessor, in blocks of 1024 at most */

static __device__ __forceinline__ uint32_t first_word(int32_t x) { return (uint32_t)x; }
static __device__ __forceinline__ uint32_t first_word(int4 x) { return (uint32_t)x.x; }
static __device__ __forceinline__ int32_t sum_of_load(int32_t x) { return x; }
static __device__ __forceinline__ int32_t sum_of_load(int4 x)
{
    return int_sum::combine(int_sum::combine(x.x, x.y), int_sum::combine(x.z, x.w));
}

/* All loads of a round must be in flight before the first is used, and none of the next round may start before the last has
   come. Otherwise fewer or more are in flight than the table says. So a branch depends on all of them. `nothing` is 0 and the
   branch is never taken, but the compiler does not know that. */
template <class Load, int loads, int block>
static __global__ void __launch_bounds__(block)
parallelism_kernel(const int32_t *x, uint64_t n, uint32_t nothing, int32_t *partials)
{
    constexpr int per_load = sizeof(Load) / sizeof *x;
    const uint64_t end = n / per_load, stride = (uint64_t)gridDim.x * (loads * block);
    uint64_t i = (uint64_t)blockIdx.x * (loads * block) + threadIdx.x;
    const Load *from = (const Load *)x + i;
    int32_t sum = 0;
#pragma unroll 1
    for (; i + (loads - 1) * block < end; i += stride, from += stride) {
        Load some[loads];
        uint32_t seen = 0;
#pragma unroll
        for (int k = 0; k < loads; k++)
            some[k] = from[k * block];
#pragma unroll
        for (int k = 0; k < loads; k++)
            seen |= first_word(some[k]);
        if ((seen & nothing) != 0)
            break;
#pragma unroll
        for (int k = 0; k < loads; k++)
            sum = int_sum::combine(sum, sum_of_load(some[k]));
    }
#pragma unroll 1
    for (; i < end; i += block, from += block) /* this thread's part of the last round, as far as it goes */
        sum = int_sum::combine(sum, sum_of_load(*from));
    if (blockIdx.x == 0 && threadIdx.x < n % per_load) /* less than a load is left */
        sum = int_sum::combine(sum, x[end * per_load + threadIdx.x]);
    sum = block_shuffles<int_sum, block>(sum);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

typedef void parallelism_function(const int32_t *x, uint64_t n, uint32_t nothing, int32_t *partials);

struct parallelism_variant {
    int load_bytes, loads;
    parallelism_function *kernels[3]; /* in blocks of 64, 256, 1024 threads */
};
#define VARIANT(Load, loads) \
    {sizeof(Load), loads, {parallelism_kernel<Load, loads, 64>, parallelism_kernel<Load, loads, 256>, \
                           parallelism_kernel<Load, loads, 1024>}}
static const struct parallelism_variant variants[] = {VARIANT(int32_t, 1), VARIANT(int32_t, 2), VARIANT(int32_t, 4), VARIANT(int32_t, 8),
                                          VARIANT(int4, 1),    VARIANT(int4, 2),    VARIANT(int4, 4),    VARIANT(int4, 8)};

struct parallelism_job {
    const struct experiment *experiment;
    parallelism_function *kernel;
    unsigned int blocks;
    int block;
};

static cudaError_t start(void *argument, cudaStream_t stream)
{
    const struct parallelism_job *const job = (const struct parallelism_job *)argument;
    const struct experiment *const e = job->experiment;
    const cudaError_t code = gpu_launch(job->kernel, job->blocks, job->block, 0, stream, e->x, e->n, 0, e->partials);
    return code != cudaSuccess ? code : experiment_finish(e, job->blocks, stream);
}

/* If the threads do not fit, because of their registers, the row has only its parameters. */
static allfold_status measure(struct experiment *experiment, const struct parallelism_variant *variant, int size, struct error *error)
{
    const int multiprocessors = experiment->gpu->device.multiprocessors;
    const int threads = THREADS[size], block = threads < 1024 ? threads : 1024;
    const unsigned int blocks = (unsigned int)(threads / block * multiprocessors);
    const double in_flight = (double)threads * variant->loads * variant->load_bytes;
    struct parallelism_job job = {experiment, variant->kernels[size < 2 ? size : 2], blocks, block};
    struct kernel_needs needs;
    if (experiment_needs((const void *)job.kernel, block, 0, &needs, error) != ALLFOLD_OK)
        return error->status;
    struct table *const table = experiment->table;
    if (table_row(table, error) != ALLFOLD_OK)
        return error->status;
    table_number(table, COLUMN_THREADS_EACH, threads);
    table_number(table, COLUMN_LOADS, variant->loads);
    table_number(table, COLUMN_LOAD_BYTES, variant->load_bytes);
    table_number(table, COLUMN_BYTES_IN_FLIGHT, in_flight);
    if (needs.blocks * block < threads)
        return ALLFOLD_OK;
    const struct gpu_work work = {start, &job};
    if (experiment_measure(experiment, &work, error) == ALLFOLD_OK)
        table_number(table, COLUMN_IN_FLIGHT, in_flight * multiprocessors / table_number_of(table, COLUMN_BANDWIDTH));
    return error->status;
}

allfold_status ladder_parallelism(struct gpu *gpu, const struct ladder_request *request, struct table *table, struct error *error)
{
    static const enum table_column columns[] = {COLUMN_THREADS_EACH, COLUMN_LOADS, COLUMN_LOAD_BYTES, COLUMN_BYTES_IN_FLIGHT,
                                                COLUMN_IN_FLIGHT};
    struct experiment experiment;
    snprintf(table->title, sizeof table->title, "bandwidth against bytes in flight, sum of %llu int32",
             (unsigned long long)request->count);
    table_add_columns(table, columns, sizeof columns / sizeof *columns);
    if (experiment_begin(&experiment, gpu, request->count, table, error) != ALLFOLD_OK)
        return error->status;
    for (const struct parallelism_variant &variant : variants)
        for (int size = 0; size < (int)(sizeof THREADS / sizeof *THREADS); size++)
            if (measure(&experiment, &variant, size, error) != ALLFOLD_OK)
                return error->status;
    return ALLFOLD_OK;
}
