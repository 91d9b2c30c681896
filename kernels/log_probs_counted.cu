/* Log-probabilities, and sums of exponentials, of long rows of bf16 at level exact: an element's term is a function of its 16 bits, and a row has few distinct values.

     counted_rows_fold
         the block: the terms, and weights, of all usual values, in shared memory; then rows, or splits, one after the other
         each thread, tile by tile: counts its elements, by value, in the block's memory; the few that have no counter are listed there, or, if the list is full, added at once
         each thread: of listed elements the terms; then those of some values, times how often these are in the row
         the block: adds all sums, which are integers; the first place that has the maximum */
#include "kernels/log_probs.cuh"

static __device__ __forceinline__ int64_t bf16_bin(float x)
{
    return x == INFINITY ? -EXP_NO_BIN : x == -INFINITY ? EXP_NO_BIN : exp_bin_any((double)x, false);
}

/* A block's memory. Of 0 and the numbers from 2^-18 to 2^6, of either sign, in the order of their magnitudes: terms, and how often they are in a row. Other elements of the row
   are listed, but for -inf. */
template <bool weighted> struct row_counts {
    typedef exact_partial<weighted> Partial;
    typedef typename Partial::type partial_type;
    static constexpr uint32_t threads = COUNTED_SHAPE.threads, warps = threads / 32, room = 1024;
    static constexpr uint32_t least = (127 - 18) << 8, values = 24 << 8, none = values + 1, each = values / threads; /* least: the first key (halves_signs_last); each: of a thread */
    static constexpr int kinds = weighted ? 2 : 1, place_bits = 8;
    static_assert(values % threads == 0, "threads have as many values");
    uint128 sums[kinds * EXP_BINS][warps];
    uint64_t terms[none + 1]; /* with their places, signed, below them */
    uint32_t weights[weighted ? none + 1 : 1];
    uint32_t counts[none + 1]; /* the first one of 0; the last one of what has none */
    struct {
        uint32_t listed, last; /* last: the bits of the first place of the maximum, turned; 0: there is none */
    } rows[2]; /* in turns: a row's are cleared while the next is counted */
    float largest[warps];
    uint16_t list[room];
    static __device__ __forceinline__ float value(uint32_t i)
    {
        const uint32_t key = i - 1 + least;
        const element_bf16 element = {(uint16_t)(i == 0 ? 0 : key >> 1 | key << 15)};
        return load_bf16(element);
    }
    __device__ __forceinline__ void make()
    {
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i <= none; i += threads) {
            uint64_t bits;
            const double x = (double)value(i);
            const uint64_t term = exp_integer_f64(x, &bits, NULL, false);
            terms[i] = term << place_bits | (uint8_t)exp_place_f64(bits);
            if constexpr (weighted)
                weights[i] = exp_weight_near(x, term, exp_distance_shift((int32_t)(exp_place_f64(bits) >> 5)));
            counts[i] = 0;
        }
        if (threadIdx.x < 2)
            rows[threadIdx.x] = {};
        __syncthreads();
    }
    /* Whether an element, by its key, is neither 0 nor -inf, and has no counter. */
    static __device__ __forceinline__ bool lacks(uint32_t key) { return key > 1 && key - least >= values && key != 0xff01; }
    /* Of keys of two elements at a time: the largest less that of -inf, and the smallest less that of the least number but 0. They show whether one may lack a counter. */
    struct extremes {
        uint32_t largest = 0, smallest = 0xffffffff;
        __device__ __forceinline__ void take(uint32_t keys)
        {
            largest = halves_sum_larger(keys, halves<0x10000 - 0xff01>, largest);
            smallest = halves_sum_smaller(keys, halves<0x10000 - 2>, smallest);
        }
        __device__ __forceinline__ bool some_lack() const
        {
            constexpr uint32_t limit = least + values + 0xff;
            return (largest & 0xffff) >= limit || largest >> 16 >= limit || (smallest & 0xffff) < least - 2 || smallest >> 16 < least - 2;
        }
    };
    /* used: vectors that the thread's warp has. counters: address_of(counts). */
    template <int vectors> __device__ __forceinline__ void take(const uint4 *x, uint32_t used, shared_address counters, uint32_t *listed)
    {
        struct extremes all;
#pragma unroll
        for (int i = 0; i < 4 * vectors; i++) {
            if (i % 4 == 0 && (uint32_t)i / 4 >= used)
                break;
            const uint32_t keys = halves_signs_last(vector_element<uint32_t>(x[i / 4], i % 4));
            const uint32_t at = halves_sum_smaller(halves_sum_larger(keys, 0, halves<least - 1>), halves<1 - least>, halves<none>);
            all.take(keys);
            add_shared(counters + 4 * (at & 0xffff), 1);
            add_shared(counters + 4 * (at >> 16), 1);
        }
        if (all.some_lack())
#pragma unroll
            for (int i = 0; i < 4 * vectors; i++) {
                const uint32_t word = vector_element<uint32_t>(x[i / 4], i % 4);
                struct extremes of_word;
                of_word.take(halves_signs_last(word));
                if (of_word.some_lack())
                    list_others(word, listed);
            }
    }
    /* Of a word. Those that are smaller than what has a counter were counted as 0. */
    __device__ __noinline__ void list_others(uint32_t word, uint32_t *listed)
    {
#pragma unroll 1
        for (int half = 0; half < 32; half += 16) {
            const uint32_t key = halves_signs_last(word) >> half & 0xffff;
            if (!lacks(key))
                continue;
            if (key < least)
                atomicAdd(&counts[0], ~0u);
            const uint32_t at = atomicAdd(listed, 1u);
            if (at < room)
                list[at] = (uint16_t)(word >> half);
        }
    }
    static __device__ __forceinline__ void element_add(partial_type *partial, uint16_t bits)
    {
        const element_bf16 element = {bits};
        Partial::add(partial, (double)load_bf16(element));
    }
    /* This thread's share of the listed elements; or, if they are too many for the list, of those of the row that would be. */
    static __device__ __noinline__ void others_add(const uint16_t *list, uint32_t listed, const row_item<element<ALLFOLD_BF16>> item, float max, uint128 *of)
    {
        partial_type partial = Partial::of_nothing();
        if (listed <= room)
            for (uint32_t i = threadIdx.x; i < listed; i += threads)
                element_add(&partial, list[i]);
        else
            for (uint32_t i = item.begin * 8 + threadIdx.x; i < item.end * 8; i += threads) {
                const uint16_t bits = i >= item.elements.first && i < item.elements.end ? item.elements.x[i].bits : (uint16_t)0;
                if (lacks(halves_signs_last(bits) & 0xffff))
                    element_add(&partial, bits);
            }
        if (max > -INFINITY)
            Partial::raise(&partial, (double)max, bf16_bin(max));
        for (int i = 0; i < kinds * EXP_BINS; i++)
            of[i] = (i < EXP_BINS ? Partial::bins(&partial) : Partial::weights(&partial))->sums[i % EXP_BINS];
    }
    /* Adds this thread's share of the values that were counted, none larger than the maximum, whose bin is `top`, and clears their counters. As their magnitudes rise,
       many have the bin of the one before. */
    __device__ __forceinline__ void add_counted(uint128 *of, int64_t top)
    {
        constexpr uint32_t together = 4;
        uint64_t term[3] = {0, 0, 0}, weight[2] = {0, 0}; /* sums of their words, each times a count: a row has fewer than 2^31 elements */
        int32_t bin = 0;
        const auto take = [&](uint64_t found, uint32_t weight_found, uint32_t count) {
            const uint32_t low = (uint32_t)found & (~0u << place_bits), high = (uint32_t)(found >> 32), places = (uint32_t)found & 31;
            term[0] += (uint64_t)(low << places) * count;
            term[1] += (uint64_t)(uint32_t)(((uint64_t)high << 32 | low) << places >> 32) * count;
            term[2] += (uint64_t)(uint32_t)((uint64_t)high << places >> 32) * count;
            if constexpr (weighted) {
                weight[0] += (uint64_t)(weight_found << places) * count;
                weight[1] += (uint64_t)(uint32_t)((uint64_t)weight_found << places >> 32) * count;
            }
        };
        const auto add = [&] {
            const uint128 terms_sum = (((uint128)term[2] << 64) + ((uint128)term[1] << 32) + term[0]) >> place_bits, weights_sum = ((uint128)weight[1] << 32) + weight[0];
#pragma unroll
            for (int i = 0; i < EXP_BINS; i++)
                if (i == top - bin) {
                    of[i] += terms_sum;
                    if constexpr (weighted)
                        of[EXP_BINS + i] += weights_sum;
                }
            term[0] = term[1] = term[2] = weight[0] = weight[1] = 0;
        };
        if (threadIdx.x == 0) {
            take(terms[0], weights[0], counts[0]);
            counts[0] = 0;
        }
#pragma unroll 1
        for (uint32_t k = 0; k < each; k += together) {
            const uint32_t first = (threadIdx.x / 32 * each + k) * 32 + threadIdx.x % 32 + 1;
            uint32_t count[together], weight_found[together];
            uint64_t found[together];
#pragma unroll
            for (uint32_t j = 0; j < together; j++) {
                count[j] = counts[first + 32 * j];
                found[j] = terms[first + 32 * j];
                weight_found[j] = weighted ? weights[first + 32 * j] : 0;
            }
#pragma unroll
            for (uint32_t j = 0; j < together; j++) {
                counts[first + 32 * j] = 0;
                if (count[j] != 0 && (int8_t)found[j] >> 5 != bin) {
                    add();
                    bin = (int8_t)found[j] >> 5;
                }
                take(found[j], weight_found[j], count[j]);
            }
        }
        add();
    }
    /* The block's sums, in sums[...][0], for its first warp. All threads call it; those of other warps may count the next row's elements then. */
    __device__ __forceinline__ void share(const uint128 *of)
    {
#pragma unroll
        for (int i = 0; i < kinds * EXP_BINS; i++) {
            const uint128 sum = warp_all(of[i] == 0) ? 0 : lanes_sum(of[i]);
            if (threadIdx.x % 32 == 0)
                sums[i][threadIdx.x / 32] = sum;
        }
        __syncthreads();
        if (threadIdx.x < kinds * EXP_BINS) {
            uint128 sum = 0;
            for (uint32_t warp = 0; warp < warps; warp++)
                sum += sums[threadIdx.x][warp];
            sums[threadIdx.x][0] = sum;
        }
        __syncwarp();
    }
    /* The sum of a warp's numbers. */
    static __device__ __forceinline__ uint128 lanes_sum(uint128 x)
    {
#ifdef HAVE_WARP_REDUCTIONS
        constexpr int bits = 27; /* of which 32 numbers' sums fit 32 bits */
        uint128 sum = 0;
#pragma unroll
        for (int i = 0; i < 128; i += bits)
            sum += (uint128)__reduce_add_sync(0xffffffffu, (uint32_t)(x >> i) & ((1u << bits) - 1)) << i;
        return sum;
#else
        for (uint32_t lanes = 16; lanes > 0; lanes /= 2)
            x += (uint128)lane_xor((unsigned long long)(x >> 64), lanes) << 64 | lane_xor((unsigned long long)x, lanes);
        return x;
#endif
    }
};

template <bool weighted>
static __global__ void __launch_bounds__(COUNTED_SHAPE.threads, COUNTED_SHAPE.blocks)
counted_rows_fold(const __grid_constant__ struct logits_rows rows, uint64_t index, bool placed) /* index: along the axis, of x[0]. placed: places are wanted */
{
    constexpr int threads = COUNTED_SHAPE.threads, vectors = COUNTED_SHAPE.vectors;
    typedef element<ALLFOLD_BF16> Element;
    typedef row_counts<weighted> Room;
    typedef exact_partial<weighted> Partial;
    extern __shared__ __align__(16) unsigned char bytes[];
    Room &own = *(Room *)bytes;
    const shared_address counters = address_of(own.counts);
    int turn = 0;
    own.make();
#pragma unroll 1
    for (uint64_t item = blockIdx.x; item < rows.results * rows.splits; item += gridDim.x, turn ^= 1) {
        auto &its = own.rows[turn];
        const row_item<Element> of(rows, item);
        struct row_largest row = {-INFINITY, false, of.begin};
        const uint4 *at = (const uint4 *)of.elements.x + of.begin + threadIdx.x;
#pragma unroll 1
        for (uint32_t first = of.begin; first < of.end; first += threads * vectors, at += threads * vectors) {
            uint4 x[vectors];
            of.template load<threads, vectors>(x, first, at);
            float largest = -INFINITY;
            vectors_extreme<Element, vectors>(&largest, x);
            if (!(largest <= row.max)) {
                row.nan |= largest != largest;
                row.max = largest > row.max ? largest : row.max;
                row.best = first + threadIdx.x;
            }
            const uint32_t left = of.end - first, own_first = threadIdx.x / 32 * 32;
            own.template take<vectors>(x, left > own_first ? (left - own_first + threads - 1) / threads : 0, counters, &its.listed);
        }
        float max = row.nan ? (float)NAN : row.max;
        lanes_share(&max, 32, take_larger());
        if (threadIdx.x % 32 == 0)
            own.largest[threadIdx.x / 32] = max;
        __syncthreads();
        for (uint32_t warp = 0; warp < Room::warps; warp++)
            take_larger()(&max, own.largest[warp]);
        if (placed && (max != max ? row.nan : max > -INFINITY && row.max == max)) {
            const uint32_t begin = max != max ? of.begin + threadIdx.x : row.best;
            atomicMax(&its.last, ~row_place(of.elements, begin, of.end, threads, [max](float x) { return max != max ? x != x : x == max; }));
        }
        uint128 sums[Room::kinds * EXP_BINS] = {};
        if (its.listed > 0) {
            uint128 others[Room::kinds * EXP_BINS]; /* in memory */
            Room::others_add(own.list, its.listed, of, max, others);
            memcpy(sums, others, sizeof sums);
        }
        const int64_t top = max > -INFINITY ? bf16_bin(max) : EXP_NO_BIN;
        own.add_counted(sums, top);
        own.share(sums);
        if (threadIdx.x == 0) {
            typename Partial::type partial = Partial::of_nothing();
            if (max > -INFINITY)
                Partial::raise(&partial, (double)max, top);
            for (int i = 0; i < Room::kinds * EXP_BINS; i++)
                (i < EXP_BINS ? Partial::bins(&partial) : Partial::weights(&partial))->sums[i % EXP_BINS] = own.sums[i][0];
            Partial::bins(&partial)->nan = max != max;
            Partial::close(&partial, its.last == 0 ? ALLFOLD_NO_INDEX : index - of.elements.first + ~its.last);
            partial_store(partial, rows, of.row, of.split);
            its = {};
        }
    }
}

template <bool weighted> static cudaError_t counted_start(const struct axis_work *work, int multiprocessors, cudaStream_t stream, bool *launched)
{
    constexpr size_t bytes = sizeof(struct row_counts<weighted>), partial_bytes = PARTIAL_STRIDE<typename exact_partial<weighted>::type>;
    const uint64_t blocks = (uint64_t)multiprocessors * COUNTED_SHAPE.blocks;
    if (work->bytes / partial_bytes < work->box.outer)
        return cudaSuccess;
    if (cudaFuncSetAttribute((const void *)counted_rows_fold<weighted>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes) != cudaSuccess) {
        cudaGetLastError(); /* the caller's program must not find it */
        return cudaSuccess;
    }
    const struct logits_rows rows = rows_cut(work, 2 * blocks, COUNTED_SHAPE.threads * COUNTED_SHAPE.vectors, partial_bytes);
    cudaLaunchConfig_t config = launch_config(u64_min(blocks, rows.results * rows.splits), COUNTED_SHAPE.threads, stream);
    config.dynamicSmemBytes = bytes;
    *launched = true;
    const cudaError_t code = cudaLaunchKernelEx(&config, counted_rows_fold<weighted>, rows, work->first, weighted && places_wanted(work));
    return code == cudaSuccess ? (cudaError_t)rows_end(work, rows.splits, stream) : code;
}

/* Partials are finished by a kernel of their own, a thread a row. Without room for those of all rows, or for a block's table, other kernels fold. */
int counted_rows_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    *launched = false;
    if (work->type != ALLFOLD_BF16 || work->box.length < COUNTED_SHAPE.least || !rows_fit(work)
        || work->box.outer * work->box.length < (uint64_t)multiprocessors * COUNTED_SHAPE.least)
        return cudaSuccess;
    if (work->monoid == MONOID_logits_exact)
        return counted_start<true>(work, multiprocessors, (cudaStream_t)stream, launched);
    if (work->monoid == MONOID_sumexp_f64_exact)
        return counted_start<false>(work, multiprocessors, (cudaStream_t)stream, launched);
    return cudaSuccess;
}
