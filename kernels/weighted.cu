/* Weighted folds along an axis (fold/weighted.h), of elements of any type as f64:

     a block has some results, or a split of them, and the exact words of each in shared memory
     each thread: takes tiles of elements of one result, and their weights, to its own windows
     what windows do not hold, and they at the end, goes to the words, by atomics
     the block adds its words to the partials, by atomics

   If results are neighbours in memory, so are the threads of neighbouring results; else those of one result. Integers are added, so no order
   shows in the sums. */
#include "fold/folds.h"
#include "kernels/element.cuh"
#include "kernels/kernels.h"
#include "kernels/tuning.h"

enum {
    TILE = 8,
    THREADS = WEIGHTED_SHAPE.threads,
    GROUPS_MAX = WEIGHTED_SHAPE.groups,
    SPLIT_LEAST = 32 * TILE /* elements of a thread, if a result is split */
};

struct weighted_cut {
    const void *x;
    allfold_type type;
    struct box box;
    struct box_weights weights;
    unsigned char *partials;
    uint64_t stride, results;
    uint64_t splits, chunk;   /* of the length */
    uint32_t groups, members; /* results of a block, and threads of each: powers of two */
    bool columns;             /* neighbouring threads have neighbouring results */
};

static __device__ __forceinline__ void load_f64(const void *x, allfold_type type, const uint64_t places[TILE], uint32_t n, double values[TILE])
{
    switch (type) {
#define CASE(ID, name, ...)                                                               \
    case ALLFOLD_##ID:                                                                    \
        _Pragma("unroll") for (uint32_t i = 0; i < TILE; i++)                             \
            values[i] = i < n ? (double)load_##name(((const element_##name *)x)[places[i]]) : -0.0; \
        break;
        ALLFOLD_TYPES(CASE)
#undef CASE
    default: break;
    }
}

/* Takes elements [begin, end) of a result, of which each member takes one in turn. Behind the end there are elements of -0.0 with weight 0. */
template <int count>
static __device__ __forceinline__ void result_take(struct weighted_accumulator *accumulator, struct exact_sink *sinks, const struct weighted_cut &cut,
                                                   uint64_t r, uint64_t begin, uint64_t end, uint32_t member)
{
    const struct box &box = cut.box;
    const uint64_t o = r / box.inner, i = r % box.inner;
    const double *const weights = cut.weights.at + o * cut.weights.outer + i * cut.weights.inner;
    const uint64_t at = o * box.outer_stride + i;
#pragma unroll 1
    for (uint64_t l = begin + member; l < end; l += (uint64_t)TILE * cut.members) {
        double x[TILE], w[TILE];
        uint64_t places[TILE];
        const uint64_t left = (end - l + cut.members - 1) / cut.members;
        const uint32_t n = left < TILE ? (uint32_t)left : (uint32_t)TILE;
#pragma unroll
        for (uint32_t k = 0; k < TILE; k++) {
            const uint64_t place = l + (uint64_t)k * cut.members;
            places[k] = at + place * box.axis_stride;
            w[k] = k < n ? weights[place * cut.weights.axis] : 0.0;
        }
        load_f64(cut.x, cut.type, places, n, x);
        arrays_f64 arrays;
        arrays.x = x;
        arrays.y = w;
        arrays.rule = nullptr;
        weighted_take(accumulator, sinks, arrays, TILE, count);
    }
}

template <int count>
static __device__ __forceinline__ void sinks_place(struct exact_sink sinks[3], int64_t *words, bool shared)
{
    weighted_sinks(sinks, words, count);
    for (int i = 0; i < count; i++)
        sinks[i].shared = shared;
}

template <int count, int words> __global__ void __launch_bounds__(THREADS) weighted_kernel(const __grid_constant__ struct weighted_cut cut)
{
    extern __shared__ __align__(16) unsigned char bytes[];
    int64_t *const all = (int64_t *)bytes;
    const uint64_t first = blockIdx.x / cut.splits * cut.groups, split = blockIdx.x % cut.splits, begin = split * cut.chunk;
    const uint64_t end = begin + cut.chunk < cut.box.length ? begin + cut.chunk : cut.box.length;
    const uint32_t group = cut.columns ? threadIdx.x % cut.groups : threadIdx.x / cut.members;
    const uint32_t member = cut.columns ? threadIdx.x / cut.groups : threadIdx.x % cut.members;
    const uint32_t there = cut.results - first < cut.groups ? (uint32_t)(cut.results - first) : cut.groups;
    struct exact_sink sinks[3];
    for (uint32_t i = threadIdx.x; i < cut.groups * words; i += THREADS)
        all[i] = 0;
    __syncthreads();
    if (group < there) {
        struct weighted_accumulator accumulator;
        sinks_place<count>(sinks, all + group * words, true);
        weighted_start(&accumulator, count);
        result_take<count>(&accumulator, sinks, cut, first + group, begin, end, member);
        weighted_finish(&accumulator, sinks, count);
    }
    __syncthreads();
    if (threadIdx.x < there)
        weighted_normalise(all + threadIdx.x * words, count);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < there * words; i += THREADS) {
        int64_t *const to = (int64_t *)(cut.partials + (first + i / words) * cut.stride) + i % words;
        if (cut.splits == 1)
            *to = all[i];
        else if (all[i] != 0)
            atomicAdd((unsigned long long *)to, (unsigned long long)all[i]);
    }
}

static __global__ void __launch_bounds__(THREADS) weighted_clear(int64_t *words, uint64_t count)
{
    for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < count; i += (uint64_t)gridDim.x * THREADS)
        words[i] = 0;
}

template <int count, int words> static cudaError_t weighted_start_kernel(const struct axis_work *work, int multiprocessors, void *stream)
{
    const struct box &box = work->box;
    const uint64_t results = box.outer * box.inner;
    const bool columns = box.inner > 1;
    const uint32_t tiles = power_up((box.length + TILE - 1) / TILE, THREADS);
    uint32_t groups = columns ? power_up(results, GROUPS_MAX) : power_up(results, THREADS / tiles < (uint32_t)GROUPS_MAX ? THREADS / tiles : (uint32_t)GROUPS_MAX);
    const uint64_t blocks = (results + groups - 1) / groups, wanted = (uint64_t)multiprocessors * WEIGHTED_SHAPE.blocks;
    const uint32_t members = THREADS / groups;
    uint64_t splits = blocks < wanted ? wanted / blocks : 1;
    splits = u64_min(splits, u64_max(box.length / ((uint64_t)members * SPLIT_LEAST), 1));
    splits = u64_max(splits, box.length >> WEIGHTED_SHAPE.chunk_bits); /* shared words have room for no more */
    struct weighted_cut cut = {work->x, work->type, box, work->weights, (unsigned char *)work->partials,
                               partial_bytes_aligned(words * sizeof(int64_t)), results, 1, 0, groups, members, columns};
    cut.chunk = u64_max((box.length + splits - 1) / u64_max(splits, 1), 1);
    cut.splits = u64_max((box.length + cut.chunk - 1) / cut.chunk, 1);
    if (blocks * cut.splits > INT32_MAX)
        return cudaErrorInvalidValue;
    if (cut.splits > 1) {
        const cudaLaunchConfig_t config = launch_config(u64_min((results * cut.stride / 8 + THREADS - 1) / THREADS, wanted), THREADS, stream);
        const cudaError_t code = cudaLaunchKernelEx(&config, weighted_clear, (int64_t *)work->partials, results * cut.stride / 8);
        if (code != cudaSuccess)
            return code;
    }
    cudaLaunchConfig_t config = launch_config(blocks * cut.splits, THREADS, stream);
    config.dynamicSmemBytes = groups * words * sizeof(int64_t);
    return cudaLaunchKernelEx(&config, weighted_kernel<count, words>, cut);
}

int weighted_launch(const struct axis_work *work, int multiprocessors, void *stream)
{
    static_assert(GROUPS_MAX * sizeof(struct weighted_moments) <= 48 << 10, "shared memory for the words of a block");
    return work->monoid == MONOID_weighted ? weighted_start_kernel<2, WEIGHTED_SUMS_WORDS>(work, multiprocessors, stream)
                                           : weighted_start_kernel<3, WEIGHTED_MOMENTS_WORDS>(work, multiprocessors, stream);
}
