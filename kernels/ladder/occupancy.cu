/* Occupancy: how many blocks a multiprocessor holds at one time, and what decides it.

   Idea: a multiprocessor has 65,536 registers and some shared memory (228 KiB on Hopper), and hands them out
   by the block. Blocks that no longer fit are not slowed down, they are not there: one register more in every thread, or
   one KiB more a block, and a whole block's threads are gone at once, with the loads they would have had in flight. That
   is the cliff.

   Shown by one kernel whose threads keep a single load of 16 bytes in flight (as in parallelism.cu), so that it lives
   from the number of threads alone:
       part 0, registers       more and more running sums, each in a register of its own, on both sides of each cliff
       part 1, register caps   one kernel that wants many registers, told by __launch_bounds__ to fit more and more
                               blocks: what does not fit into fewer registers goes to local memory, which is memory
       part 2, shared memory   the runtime's calculator is asked, KiB by KiB, where a block is lost; measured on both sides
   The blocks are the calculator's (cudaOccupancyMaxActiveBlocksPerMultiprocessor), and the grid is as large as it says fits:
   so the measured bandwidth should fall in proportion to the blocks, once there are too few to keep memory busy.

   What it does not say: that more occupancy is better. A kernel with several loads in flight a thread reaches the same
   bandwidth with a fraction of the threads. */
#include "kernels/ladder/experiment.cuh"

#include <stdio.h>

constexpr int BLOCK = 256;

static __device__ __forceinline__ int32_t sum_of_vector(int4 x)
{
    return int_sum::combine(int_sum::combine(x.x, x.y), int_sum::combine(x.z, x.w));
}

/* `sums` running sums a thread, all alive at all times, and at most as many registers as `blocks` blocks can have. No load
   starts before the last has come: its address depends on that, since the compiler does not know that `nothing` is 0. */
template <int sums, int blocks>
static __global__ void __launch_bounds__(BLOCK, blocks)
occupancy_kernel(const int32_t *x, uint64_t n, uint32_t nothing, int32_t *partials)
{
    const int4 *const from = (const int4 *)x;
    const uint64_t end = n / 4, stride = (uint64_t)gridDim.x * BLOCK;
    uint64_t i = (uint64_t)blockIdx.x * BLOCK + threadIdx.x;
    int32_t sum[sums];
#pragma unroll
    for (int k = 0; k < sums; k++)
        sum[k] = 0;
#pragma unroll 1
    while (i < end) {
#pragma unroll
        for (int k = 0; k < sums; k++)
            if (i < end) {
                const int4 some = from[i];
                sum[k] = int_sum::combine(sum[k], sum_of_vector(some));
                i += stride + ((uint32_t)sum[k] & nothing);
            }
    }
    int32_t all = blockIdx.x == 0 && threadIdx.x < n % 4 ? x[end * 4 + threadIdx.x] : 0;
#pragma unroll
    for (int k = 0; k < sums; k++)
        all = int_sum::combine(all, sum[k]);
    all = block_shuffles<int_sum, BLOCK>(all);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = all;
}

typedef void occupancy_function(const int32_t *x, uint64_t n, uint32_t nothing, int32_t *partials);

struct occupancy_variant {
    int sums, blocks; /* as the template's; 1 block: as many registers as the compiler likes */
    occupancy_function *kernel;
};
#define VARIANT(sums, blocks) {sums, blocks, occupancy_kernel<sums, blocks>}

/* Pairs that lie on both sides of a cliff with 256 threads a block: registers are handed out to a thread in eights, so
   32, 40, 48, 64, 80 and 128 are the last before one. Which number of sums makes them is the compiler's choice: these are
   nvcc 13.0's for sm_90. */
static const struct occupancy_variant by_registers[] = {VARIANT(1, 1),  VARIANT(21, 1), VARIANT(22, 1), VARIANT(29, 1), VARIANT(30, 1),
                                              VARIANT(37, 1), VARIANT(38, 1), VARIANT(53, 1), VARIANT(54, 1), VARIANT(69, 1),
                                              VARIANT(70, 1), VARIANT(117, 1), VARIANT(118, 1)};
static const struct occupancy_variant by_cap[] = {VARIANT(112, 1), VARIANT(112, 2), VARIANT(112, 3), VARIANT(112, 4),
                                        VARIANT(112, 5), VARIANT(112, 6), VARIANT(112, 8)};
static const struct occupancy_variant by_shared = VARIANT(2, 1); /* a kernel of its own: its limits are changed */

struct occupancy_job {
    const struct experiment *experiment;
    occupancy_function *kernel;
    unsigned int blocks;
    size_t dynamic_bytes;
};

static cudaError_t start(void *argument, cudaStream_t stream)
{
    const struct occupancy_job *const job = (const struct occupancy_job *)argument;
    const struct experiment *const e = job->experiment;
    const cudaError_t code =
        gpu_launch(job->kernel, job->blocks, BLOCK, job->dynamic_bytes, stream, e->x, e->n, 0, e->partials);
    return code != cudaSuccess ? code : experiment_finish(e, job->blocks, stream);
}

static allfold_status measure(struct experiment *experiment, const struct occupancy_variant *variant, size_t dynamic_bytes,
                              struct error *error)
{
    const struct gpu_device *const device = &experiment->gpu->device;
    struct kernel_needs needs;
    if (experiment_needs((const void *)variant->kernel, BLOCK, dynamic_bytes, &needs, error) != ALLFOLD_OK)
        return error->status;
    const double in_flight = (double)needs.blocks * BLOCK * sizeof(int4);
    struct occupancy_job job = {experiment, variant->kernel, (unsigned int)(needs.blocks * device->multiprocessors), dynamic_bytes};
    struct table *const table = experiment->table;
    if (table_row(table, error) != ALLFOLD_OK)
        return error->status;
    table_number(table, COLUMN_SUMS, variant->sums);
    table_number(table, COLUMN_BLOCKS_WANTED, variant->blocks);
    table_number(table, COLUMN_REGISTERS, needs.registers);
    table_number(table, COLUMN_LOCAL_BYTES, (double)needs.local_bytes);
    table_number(table, COLUMN_DYNAMIC_SHARED, (double)dynamic_bytes);
    table_number(table, COLUMN_BLOCKS_EACH, needs.blocks);
    table_number(table, COLUMN_OCCUPANCY, (double)needs.blocks * BLOCK / device->threads_per_multiprocessor);
    table_number(table, COLUMN_BYTES_IN_FLIGHT, in_flight);
    const struct gpu_work work = {start, &job};
    if (experiment_measure(experiment, &work, error) == ALLFOLD_OK)
        table_number(table, COLUMN_IN_FLIGHT, in_flight * device->multiprocessors / table_number_of(table, COLUMN_BANDWIDTH));
    return error->status;
}

template <int count>
static allfold_status measure_all(struct experiment *experiment, const struct occupancy_variant (&variants)[count],
                                  struct error *error)
{
    for (const struct occupancy_variant &variant : variants)
        if (measure(experiment, &variant, 0, error) != ALLFOLD_OK)
            break;
    return error->status;
}

/* How much dynamic shared memory a block of the kernel may have; allows it, and lets shared memory take what it needs of the
   memory that it shares with the first-level cache. */
static allfold_status allow_shared(const void *kernel, const struct gpu_device *device, size_t *most, struct error *error)
{
    static const char what[] = "allowing a kernel more shared memory";
    cudaFuncAttributes attributes;
    int limit = 0;
    if (gpu_check(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device->index), what, error)
            != ALLFOLD_OK
        || gpu_check(cudaFuncGetAttributes(&attributes, kernel), what, error) != ALLFOLD_OK)
        return error->status;
    *most = (size_t)limit - attributes.sharedSizeBytes;
    if (gpu_check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)*most), what, error)
        == ALLFOLD_OK)
        gpu_check(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                         cudaSharedmemCarveoutMaxShared), what, error);
    return error->status;
}

/* Two rows for each block that is lost on the way from no shared memory to the most that a block may have. */
static allfold_status measure_cliffs(struct experiment *experiment, struct error *error)
{
    const void *const kernel = (const void *)by_shared.kernel;
    struct kernel_needs needs, more;
    size_t most = 0;
    if (allow_shared(kernel, &experiment->gpu->device, &most, error) != ALLFOLD_OK
        || measure(experiment, &by_shared, 0, error) != ALLFOLD_OK
        || experiment_needs(kernel, BLOCK, 0, &needs, error) != ALLFOLD_OK)
        return error->status;
    for (size_t bytes = 0; bytes + 1024 <= most; bytes += 1024) {
        if (experiment_needs(kernel, BLOCK, bytes + 1024, &more, error) != ALLFOLD_OK)
            return error->status;
        if (more.blocks < needs.blocks && (measure(experiment, &by_shared, bytes, error) != ALLFOLD_OK
                                           || measure(experiment, &by_shared, bytes + 1024, error) != ALLFOLD_OK))
            return error->status;
        needs = more;
    }
    return ALLFOLD_OK;
}

allfold_status ladder_occupancy(struct gpu *gpu, const struct ladder_request *request, struct table *table, struct error *error)
{
    static const enum table_column columns[] = {COLUMN_SUMS,          COLUMN_BLOCKS_WANTED, COLUMN_REGISTERS,
                                                COLUMN_LOCAL_BYTES,   COLUMN_DYNAMIC_SHARED, COLUMN_BLOCKS_EACH,
                                                COLUMN_OCCUPANCY,     COLUMN_BYTES_IN_FLIGHT, COLUMN_IN_FLIGHT};
    static const char *const parts[] = {"registers", "register caps", "shared memory"};
    struct experiment experiment;
    snprintf(table->title, sizeof table->title,
             "occupancy, %s: sum of %llu int32, blocks of %d threads, 16 bytes in flight a thread", parts[request->part],
             (unsigned long long)request->count, BLOCK);
    table_add_columns(table, columns, sizeof columns / sizeof *columns);
    if (request->part != 2)
        table_hide(table, COLUMN_DYNAMIC_SHARED);
    else
        table_hide(table, COLUMN_SUMS);
    if (request->part != 1) {
        table_hide(table, COLUMN_BLOCKS_WANTED);
        table_hide(table, COLUMN_LOCAL_BYTES);
    }
    if (experiment_begin(&experiment, gpu, request->count, table, error) != ALLFOLD_OK)
        return error->status;
    snprintf(table_fact(table, COLUMN_FACT_PART)->text, TABLE_TEXT_BYTES, "%s", parts[request->part]);
    return request->part == 0   ? measure_all(&experiment, by_registers, error)
           : request->part == 1 ? measure_all(&experiment, by_cap, error)
                                : measure_cliffs(&experiment, error);
}
