/* The benchmark on a GPU: data made there, times between events, the plainest kernels as ceilings. (See
   measure/gpu.cuh.) */
#include "bench/cuda_machine.h"
#include "fold/softmax_constants.h"

#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 256, BLOCKS_OF_ONE = 8 };

template <allfold_type type> struct data;
#define DEFINE_DATA(ID, name, bits_)                                                                           \
    template <> struct data<ALLFOLD_##ID> {                                                                    \
        typedef element_##name stored;                                                                         \
        static constexpr int bits = bits_;                                                                     \
        static __device__ stored make(double x) { return bench_make_##name(x); }                               \
        static __device__ double load(stored x) { return (double)load_##name(x); }                             \
    };
BENCH_TYPES(DEFINE_DATA)
#undef DEFINE_DATA

template <allfold_type type> static __global__ void fill_kernel(typename data<type>::stored *x, uint64_t first, uint64_t n, double unit)
{
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < n; i += (uint64_t)gridDim.x * blockDim.x)
        x[i] = data<type>::make((double)bench_number(first + i, data<type>::bits) * unit);
}

/* Integer atomics cannot get the sums wrong; exponentials are added plainly, in f64. */
static __global__ void known_kernel(struct bench_row_of row, struct bench_known *known)
{
    struct bench_known own = bench_known_of_none();
    for (uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; i < row.count; i += (uint64_t)gridDim.x * blockDim.x)
        bench_know(&own, &row, i);
    atomicAdd((unsigned long long *)&known->high, (unsigned long long)own.high);
    atomicAdd((unsigned long long *)&known->low, (unsigned long long)own.low);
    atomicMax((long long *)&known->max, (long long)own.max);
    for (int i = 0; i < 3; i++)
        atomicAdd((unsigned long long *)&known->products[i], (unsigned long long)own.products[i]);
    atomicAdd((unsigned long long *)&known->products_high, (unsigned long long)own.products_high);
    atomicAdd(&known->sumexp, own.sumexp);
}

/* The largest relative error of y, as the bits of a double, which order as positive doubles do. What is not a number
   counts as infinite. */
template <allfold_type type>
static __global__ void error_kernel(struct softmax_found given, unsigned long long *bits)
{
    typedef typename data<type>::stored stored;
    const stored *const x = (const stored *)given.x, *const y = (const stored *)given.y;
    double most = 0;
    for (uint64_t k = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x; k < given.count; k += (uint64_t)gridDim.x * blockDim.x) {
        const uint64_t i = k * given.stride;
        const double expected = exp(data<type>::load(x[i])) / given.sumexp, found = data<type>::load(y[i]);
        /* 16-bit results may be subnormal, where only the absolute error is small */
        const double least = type == ALLFOLD_F16 ? 0x1p-14 : 0x1p-120;
        const double error = fabs(found - expected) / (expected > least ? expected : least);
        most = error <= most ? most : error == error ? error : INFINITY;
    }
    atomicMax(bits, f64_bits(most));
}

static __global__ void nothing_kernel() {}

template <int loads> static __global__ void copy_kernel(const uint4 *x, uint4 *y, uint64_t vectors)
{
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    uint64_t i = blockIdx.x * (uint64_t)blockDim.x + threadIdx.x;
    for (; i + (loads - 1) * stride < vectors; i += loads * stride) {
        uint4 some[loads];
#pragma unroll
        for (int k = 0; k < loads; k++)
            some[k] = __ldcs(x + i + k * stride);
#pragma unroll
        for (int k = 0; k < loads; k++)
            __stcs(y + i + k * stride, some[k]);
    }
    for (; i < vectors; i += stride)
        y[i] = x[i];
}

static allfold_status started(cudaError_t code, const char *what, struct error *error)
{
    return gpu_check(code != cudaSuccess ? code : cudaGetLastError(), what, error);
}

static unsigned int blocks_for(const struct cuda_machine *cuda, uint64_t n)
{
    return (unsigned int)u64_max(1, u64_min(n / THREADS + 1, BLOCKS_OF_ONE * (uint64_t)cuda->space.multiprocessors));
}

static void cuda_close(struct machine *machine)
{
    struct cuda_machine *const cuda = cuda_of(machine);
    if (cuda->gpu != NULL)
        cudaStreamSynchronize(cuda->gpu->stream);
    cudaFree(cuda->space.scratch);
    cudaFree(cuda->space.mailbox);
    cudaFreeHost(machine->host_x);
    cudaFreeHost(machine->taken);
    gpu_close(cuda->gpu);
    cudaGetLastError();
    free(cuda);
}

static allfold_status cuda_describe(struct machine *machine, struct bench_facts *facts, struct error *error)
{
    const struct gpu_device *const device = gpu_device_of(cuda_of(machine)->gpu);
    snprintf(facts->device, sizeof facts->device, "%s", device->name);
    snprintf(facts->uuid, sizeof facts->uuid, "%s", device->uuid);
    facts->index = device->index;
    facts->multiprocessors = device->multiprocessors;
    facts->driver = device->driver;
    facts->runtime = device->runtime;
    facts->memory = device->memory;
    facts->l2 = device->l2;
    facts->datasheet = device->datasheet;
    return error->status;
}

template <allfold_type type> static void fill_type(struct cuda_machine *cuda, const struct bench_data *made)
{
    typedef typename data<type>::stored stored;
    fill_kernel<type><<<blocks_for(cuda, made->count), THREADS, 0, cuda->gpu->stream>>>((stored *)cuda->machine.x + made->place,
                                                                                       made->first, made->count,
                                                                                       bench_unit_of(type, made->range));
}

static allfold_status cuda_fill(struct machine *machine, const struct bench_data *made, struct error *error)
{
    static const char what[] = "making the data";
    struct cuda_machine *const cuda = cuda_of(machine);
    const size_t offset = made->place * allfold_type_bytes(made->type), bytes = made->count * allfold_type_bytes(made->type);
    switch (made->type) {
#define CASE(ID, name, bits)                  \
    case ALLFOLD_##ID:                        \
        fill_type<ALLFOLD_##ID>(cuda, made);  \
        break;
        BENCH_TYPES(CASE)
#undef CASE
    default:
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "no data of type %d", (int)made->type);
    }
    if (started(cudaSuccess, what, error) != ALLFOLD_OK || gpu_wait(cuda->gpu, what, error) != ALLFOLD_OK || !made->in_host)
        return error->status;
    return gpu_check(cudaMemcpy((char *)machine->host_x + offset, (char *)machine->x + offset, bytes, cudaMemcpyDeviceToHost),
                     "making the data on the host", error);
}

static allfold_status cuda_known(struct machine *machine, const struct bench_row_of *row, struct bench_known *known,
                                 struct error *error)
{
    static const char what[] = "adding the data";
    struct cuda_machine *const cuda = cuda_of(machine);
    const cudaStream_t stream = cuda->gpu->stream;
    const struct bench_known none = bench_known_of_none();
    void *counter;
    if (gpu_buffer(cuda->gpu, GPU_COUNTER, sizeof none, &counter, error) != ALLFOLD_OK
        || started(cudaMemcpyAsync(counter, &none, sizeof none, cudaMemcpyHostToDevice, stream), what, error) != ALLFOLD_OK)
        return error->status;
    known_kernel<<<blocks_for(cuda, row->count), THREADS, 0, stream>>>(*row, (struct bench_known *)counter);
    if (started(cudaSuccess, what, error) == ALLFOLD_OK)
        gpu_fetch(cuda->gpu, known, counter, sizeof *known, error);
    return error->status;
}

static allfold_status cuda_fetch(struct machine *machine, const void *from, void *to, size_t bytes, struct error *error)
{
    return gpu_fetch(cuda_of(machine)->gpu, to, from, bytes, error);
}

template <allfold_type type>
static allfold_status error_of_type(struct cuda_machine *cuda, const struct softmax_found *found, double *worst, struct error *error)
{
    static const char what[] = "checking softmax";
    const cudaStream_t stream = cuda->gpu->stream;
    unsigned long long bits = 0;
    void *room;
    if (gpu_buffer(cuda->gpu, GPU_COUNTER, sizeof bits, &room, error) != ALLFOLD_OK
        || started(cudaMemsetAsync(room, 0, sizeof bits, stream), what, error) != ALLFOLD_OK)
        return error->status;
    error_kernel<type><<<blocks_for(cuda, found->count), THREADS, 0, stream>>>(*found, (unsigned long long *)room);
    if (started(cudaMemcpyAsync(&bits, room, sizeof bits, cudaMemcpyDeviceToHost, stream), what, error) != ALLFOLD_OK
        || gpu_wait(cuda->gpu, what, error) != ALLFOLD_OK)
        return error->status;
    *worst = f64_from_bits(bits);
    return ALLFOLD_OK;
}

static allfold_status cuda_softmax_error(struct machine *machine, const struct softmax_found *found, double *worst, struct error *error)
{
    switch (found->type) {
#define CASE(ID, name, bits) \
    case ALLFOLD_##ID:       \
        return error_of_type<ALLFOLD_##ID>(cuda_of(machine), found, worst, error);
        BENCH_TYPES(CASE)
#undef CASE
    default:
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "no data of type %d", (int)found->type);
    }
}

static allfold_status cuda_poison(struct machine *machine, uint64_t bytes, struct error *error)
{
    static const char what[] = "poisoning the output";
    struct gpu *const gpu = cuda_of(machine)->gpu;
    gpu_check(cudaMemsetAsync(machine->y, 0xff, bytes, gpu->stream), what, error);
    return gpu_wait(gpu, what, error);
}

static allfold_status cuda_clear(struct machine *machine, struct error *error)
{
    return gpu_check(gpu_clear(cuda_of(machine)->gpu), "clearing the caches", error);
}

static allfold_status cuda_wait(struct machine *machine, struct error *error)
{
    return gpu_wait(cuda_of(machine)->gpu, "running what is measured", error);
}

static allfold_status cuda_begin(struct machine *machine, struct error *error)
{
    struct gpu *const gpu = cuda_of(machine)->gpu;
    return gpu_check(cudaEventRecord(gpu->events[0], gpu->stream), "taking the time", error);
}

static allfold_status cuda_end(struct machine *machine, struct error *error)
{
    struct gpu *const gpu = cuda_of(machine)->gpu;
    return gpu_check(cudaEventRecord(gpu->events[1], gpu->stream), "taking the time", error);
}

static allfold_status cuda_elapsed(struct machine *machine, double *seconds, struct error *error)
{
    struct gpu *const gpu = cuda_of(machine)->gpu;
    float milliseconds = 0.0f;
    gpu_check(cudaEventElapsedTime(&milliseconds, gpu->events[0], gpu->events[1]), "taking the time", error);
    *seconds = 1e-3 * (double)milliseconds;
    return error->status;
}

static allfold_status cuda_read_prepare(struct machine *machine, uint64_t bytes, struct error *error)
{
    struct cuda_machine *const cuda = cuda_of(machine);
    const int slot = cuda->read_count < READS_MAX ? cuda->read_count : READS_MAX - 1;
    for (int i = 0; i < cuda->read_count; i++)
        if (cuda->reads[i].bytes == bytes)
            return ALLFOLD_OK;
    if (gpu_read_fastest(cuda->gpu, machine->x, bytes, &cuda->reads[slot], error) == ALLFOLD_OK)
        cuda->read_count = slot + 1;
    return error->status;
}

static allfold_status cuda_read(struct machine *machine, uint64_t bytes, struct error *error)
{
    struct cuda_machine *const cuda = cuda_of(machine);
    for (int i = 0; i < cuda->read_count; i++)
        if (cuda->reads[i].bytes == bytes)
            return gpu_check(gpu_read_start(&cuda->reads[i], cuda->gpu->stream), "reading", error);
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "reading %llu bytes was not prepared", (unsigned long long)bytes);
}

/* One way of copying: 0 the runtime's, then kernels. */
static cudaError_t copy_start(void *argument, cudaStream_t stream)
{
    const struct copy_job *const job = (const struct copy_job *)argument;
    const struct machine *const m = job->machine;
    if (job->loads == 0)
        return cudaMemcpyAsync(m->y, m->x, job->bytes, cudaMemcpyDeviceToDevice, stream);
    return gpu_launch(job->loads == 8 ? copy_kernel<8> : copy_kernel<4>, job->blocks, job->threads, 0, stream,
                         (const uint4 *)m->x, (uint4 *)m->y, job->bytes / 16);
}

static allfold_status cuda_copy_prepare(struct machine *machine, uint64_t bytes, struct error *error)
{
    static const int loads[] = {0, 4, 8}, threads[] = {256, 512, 1024}, blocks[] = {1, 2, 4, 8};
    struct cuda_machine *const cuda = cuda_of(machine);
    const int slot = cuda->copy_count < READS_MAX ? cuda->copy_count : READS_MAX - 1;
    double least = 0.0;
    struct copy_job best = {};
    for (int i = 0; i < cuda->copy_count; i++)
        if (cuda->copies[i].bytes == bytes)
            return ALLFOLD_OK;
    for (int l : loads)
        for (int t : threads)
            for (int b : blocks) {
                const uint64_t useful = bytes / 16 / (uint64_t)t + 1;
                struct copy_job job = {machine, bytes, l, t, (unsigned int)u64_min((uint64_t)b * cuda->space.multiprocessors, useful)};
                const struct gpu_work work = {copy_start, &job};
                struct timing times;
                if ((l == 0 && (t != threads[0] || b != blocks[0])) || b * t > 2048)
                    continue;
                if (gpu_time_quickly(cuda->gpu, &work, &times, error) != ALLFOLD_OK)
                    return error->status;
                if (least == 0.0 || times.median < least) {
                    least = times.median;
                    best = job;
                }
            }
    cuda->copies[slot] = best;
    cuda->copy_count = slot + 1;
    return ALLFOLD_OK;
}

static allfold_status cuda_copy(struct machine *machine, uint64_t bytes, struct error *error)
{
    struct cuda_machine *const cuda = cuda_of(machine);
    for (int i = 0; i < cuda->copy_count; i++)
        if (cuda->copies[i].bytes == bytes)
            return gpu_check(copy_start(&cuda->copies[i], cuda->gpu->stream), "copying", error);
    return error_set(error, ALLFOLD_BAD_ARGUMENT, "copying %llu bytes was not prepared", (unsigned long long)bytes);
}

static allfold_status cuda_fold(struct machine *machine, const struct work *work, struct error *error)
{
    struct cuda_machine *const cuda = cuda_of(machine);
    return gpu_check((cudaError_t)fold_launch(work, &cuda->space, cuda->gpu->stream), "launching the fold", error);
}

static allfold_status cuda_fold_taken(struct machine *machine, const struct work *work, struct partial *partial,
                                      struct error *error)
{
    static const char what[] = "taking the fold's result";
    struct cuda_machine *const cuda = cuda_of(machine);
    struct fold_mailbox mailbox;
    if (gpu_check(cudaMemcpyAsync(&mailbox, cuda->space.mailbox, sizeof mailbox, cudaMemcpyDeviceToHost,
                                    cuda->gpu->stream),
                    what, error)
            != ALLFOLD_OK
        || gpu_wait(cuda->gpu, what, error) != ALLFOLD_OK)
        return error->status;
    if (!fold_result(&mailbox, cuda->space.launch_id, monoid_bytes(work->monoid, work->type), partial))
        error_set(error, ALLFOLD_DEVICE_ERROR, "the fold's kernel left no result");
    return error->status;
}

/* The launches of the library on one rank; where the host would come between them, it has the constants beforehand. */
static allfold_status cuda_softmax(struct machine *machine, const struct softmax_work *work, const struct partial *partial,
                                   struct error *error)
{
    struct cuda_machine *const cuda = cuda_of(machine);
    const struct softmax_call call = {&cuda->space, cuda->capacity, true, *work};
    const struct work first = {softmax_monoid(work->x_type, work->y_type, false, work->level), work->x_type, work->x, work->box.length, 0};
    struct softmax_constants constants;
    bool launched = false;
    if (gpu_check((cudaError_t)softmax_launch_whole(&call, cuda->gpu->stream, &launched), "launching softmax", error)
            != ALLFOLD_OK
        || launched || cuda_fold(machine, &first, error) != ALLFOLD_OK)
        return error->status;
    softmax_constants_set(first.monoid, partial, &constants);
    return gpu_check((cudaError_t)normalise_launch(work, nullptr, &constants, cuda->space.multiprocessors, cuda->gpu->stream),
                       "launching softmax", error);
}

static allfold_status cuda_link(struct machine *machine, uint64_t bytes, bool in, struct error *error)
{
    const cudaStream_t stream = cuda_of(machine)->gpu->stream;
    return gpu_check(in ? cudaMemcpyAsync(machine->x, machine->host_x, bytes, cudaMemcpyHostToDevice, stream)
                          : cudaMemcpyAsync(machine->host_x, machine->x, bytes, cudaMemcpyDeviceToHost, stream),
                       "copying over the link", error);
}

static allfold_status cuda_nothing(struct machine *machine, struct error *error)
{
    return gpu_check(gpu_launch(nothing_kernel, 1, 32, 0, cuda_of(machine)->gpu->stream), "launching nothing", error);
}

static bool gives_many(const struct cub_call *call) { return call->work == CUB_SORT || call->work == CUB_BINS; }

/* The call, of the machine's data. */
static struct cub_call cub_call_of(const struct machine *machine, const struct cub_call *call)
{
    struct cub_call whole = *call;
    whole.x = machine->x;
    whole.result = call->work == CUB_NORMALISE || call->length > 0 || gives_many(call) ? machine->y : machine->result;
    return whole;
}

static allfold_status cuda_cub_prepare(struct machine *machine, const struct cub_call *call, struct error *error)
{
    struct cuda_machine *const cuda = cuda_of(machine);
    const size_t result_bytes = call->work == CUB_SORT ? call->count * allfold_type_bytes(call->type) : (size_t)call->bins * sizeof(uint32_t);
    size_t bytes = 0;
    void *scratch;
    if (call->work == CUB_NORMALISE || (gives_many(call) && gpu_buffer(cuda->gpu, GPU_WORK, result_bytes, &machine->y, error) != ALLFOLD_OK))
        return error->status;
    const struct cub_call whole = cub_call_of(machine, call);
    if (gpu_check(cub_start(&whole, NULL, &bytes, cuda->gpu->stream), "asking CUB for its scratch space", error) != ALLFOLD_OK)
        return error->status;
    cuda->scratch_bytes = u64_max(cuda->scratch_bytes, u64_max(bytes, 64));
    return gpu_buffer(cuda->gpu, GPU_SCRATCH, cuda->scratch_bytes, &scratch, error);
}

static allfold_status cuda_cub(struct machine *machine, const struct cub_call *call, struct error *error)
{
    struct cuda_machine *const cuda = cuda_of(machine);
    const struct cub_call whole = cub_call_of(machine, call);
    size_t bytes = cuda->scratch_bytes;
    return gpu_check(cub_start(&whole, cuda->gpu->buffers[GPU_SCRATCH], &bytes, cuda->gpu->stream), "running CUB", error);
}

static allfold_status cuda_cub_fetch(struct machine *machine, struct error *error)
{
    struct cuda_machine *const cuda = cuda_of(machine);
    return gpu_check(cudaMemcpyAsync(machine->taken, machine->result, 8, cudaMemcpyDeviceToHost, cuda->gpu->stream),
                     "copying CUB's result", error);
}

static const struct machine_ops cuda_ops = {
    .name = "cuda",
    .close = cuda_close,
    .describe = cuda_describe,
    .fill = cuda_fill,
    .known = cuda_known,
    .fetch = cuda_fetch,
    .poison = cuda_poison,
    .softmax_error = cuda_softmax_error,
    .clear = cuda_clear,
    .wait = cuda_wait,
    .begin = cuda_begin,
    .end = cuda_end,
    .elapsed = cuda_elapsed,
    .read_prepare = cuda_read_prepare,
    .read = cuda_read,
    .copy_prepare = cuda_copy_prepare,
    .copy = cuda_copy,
    .fold = cuda_fold,
    .fold_taken = cuda_fold_taken,
    .softmax = cuda_softmax,
    .link = cuda_link,
    .nothing = cuda_nothing,
    .cub_prepare = cuda_cub_prepare,
    .cub = cuda_cub,
    .cub_fetch = cuda_cub_fetch,
    .cub_value = cub_value,
    .cub_has_gpu_to_gpu = cub_has_gpu_to_gpu,
    .cub_has_rows = cub_has_rows,
};

static allfold_status open_memory(struct cuda_machine *cuda, const struct bench_bytes *bytes, struct error *error)
{
    static const char what[] = "preparing to measure";
    struct machine *const m = &cuda->machine;
    const int multiprocessors = gpu_device_of(cuda->gpu)->multiprocessors;
    cuda->space.multiprocessors = multiprocessors;
    if (gpu_buffer(cuda->gpu, GPU_INPUT, bytes->x, &m->x, error) != ALLFOLD_OK
        || (bytes->y > 0 && gpu_buffer(cuda->gpu, GPU_WORK, bytes->y, &m->y, error) != ALLFOLD_OK)
        || gpu_buffer(cuda->gpu, GPU_RESULT, 64, &m->result, error) != ALLFOLD_OK
        || (bytes->host > 0
            && gpu_check(cudaHostAlloc(&m->host_x, bytes->host, cudaHostAllocDefault), "pinned host memory for the data",
                           error)
                   != ALLFOLD_OK)
        || gpu_check(cudaHostAlloc(&m->taken, 64, cudaHostAllocDefault), what, error) != ALLFOLD_OK
        || gpu_check(cudaMalloc(&cuda->space.scratch, fold_scratch_bytes(multiprocessors)), what, error) != ALLFOLD_OK
        || gpu_check(cudaMemsetAsync(cuda->space.scratch, 0, fold_scratch_bytes(multiprocessors), cuda->gpu->stream),
                       what, error)
               != ALLFOLD_OK
        || gpu_check(cudaMalloc((void **)&cuda->space.mailbox, sizeof *cuda->space.mailbox), what, error) != ALLFOLD_OK
        || gpu_check(cudaMemsetAsync(cuda->space.mailbox, 0, sizeof *cuda->space.mailbox, cuda->gpu->stream), what,
                       error)
               != ALLFOLD_OK
        || gpu_check((cudaError_t)softmax_capacity_of(gpu_device_of(cuda->gpu)->index, &cuda->capacity), what, error) != ALLFOLD_OK
        || gpu_check((cudaError_t)softmax_load(&cuda->capacity), what, error) != ALLFOLD_OK)
        return error->status;
    return gpu_wait(cuda->gpu, what, error);
}

allfold_status machine_open_cuda(int local_rank, const struct bench_bytes *bytes, struct machine **machine, struct error *error)
{
    struct cuda_machine *const cuda = (struct cuda_machine *)calloc(1, sizeof *cuda);
    if (cuda == NULL)
        return error_set(error, ALLFOLD_NO_MEMORY, "no memory for the benchmark");
    cuda->machine.ops = &cuda_ops;
    if (gpu_open(local_rank, &cuda->gpu, error) == ALLFOLD_OK) {
        cuda->machine.stream = cuda->gpu->stream;
        open_memory(cuda, bytes, error);
    }
    if (error->status == ALLFOLD_OK)
        *machine = &cuda->machine;
    else
        cuda_close(&cuda->machine);
    return error->status;
}
