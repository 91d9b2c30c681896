/* Log-probabilities of very long rows of bf16 at level exact: an element's term is a function of its 16 bits, and a row has few distinct values.

     counted_rows_fold
         the block: the terms, and weights, of all usual values, in shared memory; then rows, or splits, one after the other
         each thread, tile by tile: counts its elements, by value, in the block's memory; the few that have no counter are listed there
         each thread: the terms of some of the values, times how often they are in the row; then of listed elements
         the block: adds all sums, which are integers; the first place that has the maximum */
#include "kernels/log_probs.cuh"

static __device__ __forceinline__ int64_t bf16_bin(float x)
{
    return x == INFINITY ? -EXP_NO_BIN : x == -INFINITY ? EXP_NO_BIN : exp_bin_any((double)x, false);
}
/* The place of a value that has a counter: f32 arithmetic gives the same as f64 for all of them. */
static __device__ __forceinline__ int32_t bf16_place(float x)
{
    return (int32_t)(f32_bits(fmaf(x, 0x1.715476p0f * EXP_STEPS, EXP_SHIFT_F32 + EXP_OFFSET * EXP_STEPS)) - f32_bits(EXP_SHIFT_F32)) >> EXP_STEP_BITS;
}

/* Of the numbers from 2^-9 to 2^7, of either sign, and 0: terms, and how often they are in a row. Other elements of the row are listed. */
struct row_counts {
    static constexpr uint32_t least = (127 - 9) << 7, half = 16 << 7, sign = 0x8000, zero = 2 * half, values = zero + 1, nothing = 0xff80;
    static constexpr uint32_t threads = COUNTED_SHAPE.threads, tile = threads * COUNTED_SHAPE.vectors * 8, room = 512;
    uint64_t terms[values]; /* high 2^32 + low */
    uint32_t weights[values];
    uint32_t counts[values], listed;
    uint16_t list[room + tile];
    static __device__ __forceinline__ float value(uint32_t i)
    {
        const element_bf16 element = {(uint16_t)(i == zero ? 0 : (i % half + least) | i / half * sign)};
        return load_bf16(element);
    }
    __device__ __forceinline__ void make()
    {
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < values; i += threads) {
            uint64_t place;
            const double x = (double)value(i);
            const uint64_t term = exp_integer_f64(x, &place, NULL, false);
            terms[i] = (uint64_t)(term >> EXP_LOW_BITS) << 32 | (term & ((1u << EXP_LOW_BITS) - 1));
            weights[i] = exp_weight_near(x, term, exp_distance_shift((int32_t)(exp_place_f64(place) >> 5)));
            counts[i] = 0;
        }
        if (threadIdx.x == 0)
            listed = 0;
        __syncthreads();
    }
    __device__ __forceinline__ void take(uint32_t bits)
    {
        const uint32_t at = (bits & ~sign) - least;
        if (at < half)
            atomicAdd(&counts[at + bits / sign * half], 1u);
        else if ((bits & ~sign) == 0)
            atomicAdd(&counts[zero], 1u);
        else if (bits != nothing)
            list[atomicAdd(&listed, 1u)] = (uint16_t)bits;
    }
    /* Adds this thread's share of the listed elements. */
    __device__ __forceinline__ void add_listed(struct logits_exact *partial) const
    {
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < listed; i += threads) {
            const element_bf16 element = {list[i]};
            logits_exact_add(partial, (double)load_bf16(element));
        }
    }
    /* Adds this thread's share of the values that were counted, none larger than the partial's maximum, and clears their counters. */
    __device__ __forceinline__ void add_counted(struct logits_exact *partial)
    {
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < values; i += threads) {
            const uint64_t count = counts[i], term = terms[i];
            if (count == 0)
                continue;
            const int32_t place = bf16_place(value(i));
            const int64_t lower = partial->bins.bin - (place >> 5);
            exp_bins_take(&partial->bins, lower, (((uint128)((uint32_t)(term >> 32) * count) << EXP_LOW_BITS) + (uint32_t)term * count) << (place & 31));
            exp_bins_take(&partial->weights, lower, (uint128)(weights[i] * count) << (place & 31));
            counts[i] = 0;
        }
    }
};

/* The block's sums of one kind. */
template <int threads> static __device__ __forceinline__ void bins_share(struct exp_bins *bins)
{
    struct group_bins sums;
    memcpy(sums.of, bins->sums, sizeof sums);
    group_share_sums<threads>(&sums, threads);
    memcpy(bins->sums, sums.of, sizeof sums);
    __syncthreads(); /* the memory that was shared is used again */
}

static __global__ void __launch_bounds__(COUNTED_SHAPE.threads, COUNTED_SHAPE.blocks)
counted_rows_fold(const __grid_constant__ struct logits_rows rows, uint64_t index) /* along the axis, of x[0] */
{
    constexpr int threads = COUNTED_SHAPE.threads, vectors = COUNTED_SHAPE.vectors;
    typedef element<ALLFOLD_BF16> Element;
    extern __shared__ __align__(16) unsigned char bytes[];
    row_counts &own = *(row_counts *)bytes;
    own.make();
#pragma unroll 1
    for (uint64_t item = blockIdx.x; item < rows.results * rows.splits; item += gridDim.x) {
        const row_item<Element> of(rows, item);
        struct row_largest row = {-INFINITY, false, of.begin};
        struct logits_exact partial = logits_exact_of_nothing();
#pragma unroll 1
        for (uint32_t first = of.begin; first < of.end; first += threads * vectors) {
            const uint32_t v = first + threadIdx.x;
            uint4 x[vectors];
#pragma unroll
            for (int i = 0; i < vectors; i++)
                x[i] = v + i * threads < of.end ? of.elements.at(v + i * threads) : least_vector<Element>();
            float largest = -INFINITY;
            vectors_extreme<Element, vectors>(&largest, x);
            if (!(largest <= row.max)) {
                row.nan |= largest != largest;
                row.max = largest > row.max ? largest : row.max;
                row.best = v;
            }
#pragma unroll
            for (int i = 0; i < vectors * 8; i++)
                own.take(vector_element<uint16_t>(x[i / 8], i % 8));
            __syncthreads();
            const bool has_room = own.listed <= own.room;
            __syncthreads();
            if (has_room) /* for another tile */
                continue;
            own.add_listed(&partial);
            __syncthreads();
            if (threadIdx.x == 0)
                own.listed = 0;
            __syncthreads();
        }
        float max = row.nan ? (float)NAN : row.max;
        group_share<threads>(&max, threads, take_larger());
        if (max > -INFINITY)
            logits_exact_raise(&partial, (double)max, bf16_bin(max));
        own.add_listed(&partial);
        own.add_counted(&partial);
        bins_share<threads>(&partial.bins);
        bins_share<threads>(&partial.weights);
        const uint32_t place = group_place<threads>(of.elements, row, of.begin, of.end, max);
        if (threadIdx.x == 0) {
            own.listed = 0;
            partial.bins.nan = max != max;
            exact_partial<true>::close(&partial, place == UINT32_MAX ? ALLFOLD_NO_INDEX : index - of.elements.first + place);
            partial_store(partial, rows, of.row, of.split);
        }
        __syncthreads();
    }
}

/* Partials are finished by a kernel of their own, a thread a row. Without room for those of all rows, or for a block's table, other kernels fold. */
int counted_rows_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    constexpr size_t bytes = sizeof(struct row_counts), partial_bytes = PARTIAL_STRIDE<struct logits_exact>;
    const uint64_t blocks = (uint64_t)multiprocessors * COUNTED_SHAPE.blocks;
    *launched = false;
    if (work->monoid != MONOID_logits_exact || work->type != ALLFOLD_BF16 || work->box.length < COUNTED_SHAPE.least || !rows_fit(work) || work->bytes / partial_bytes < work->box.outer)
        return cudaSuccess;
    if (cudaFuncSetAttribute((const void *)counted_rows_fold, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes) != cudaSuccess) {
        cudaGetLastError(); /* the caller's program must not find it */
        return cudaSuccess;
    }
    const struct logits_rows rows = rows_cut(work, 2 * blocks, COUNTED_SHAPE.threads * COUNTED_SHAPE.vectors, partial_bytes);
    cudaLaunchConfig_t config = launch_config(u64_min(blocks, rows.results * rows.splits), COUNTED_SHAPE.threads, stream);
    config.dynamicSmemBytes = bytes;
    *launched = true;
    const int code = cudaLaunchKernelEx(&config, counted_rows_fold, rows, work->first);
    return code == cudaSuccess ? rows_end(work, rows.splits, stream) : code;
}
