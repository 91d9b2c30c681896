/* Log-probabilities, and sums of exponentials, of long rows of bf16 at level exact: an element's term is a function of its 16 bits, and a row has few distinct values.

     counted_rows_fold
         the block: the terms, and weights, of all usual values, in shared memory; then rows, or splits, one after the other
         each warp, as long as there are tiles that no other has claimed: counts elements, by value, in the block's memory; the few that have no counter are listed there
         each thread: of listed elements the terms, or, if there are more, of those of the row that would be; then of some values, times how often these are in the row
         the block: adds all sums, which are integers; the first place that has the maximum */
#include "kernels/log_probs.cuh"

static __device__ __forceinline__ int64_t bf16_bin(float x)
{
    return x == INFINITY ? -EXP_NO_BIN : x == -INFINITY ? EXP_NO_BIN : exp_bin_any((double)x, false);
}

/* A block's memory. Of 0 and the numbers from 2^-18 to 2^6, of either sign, in the order of their magnitudes: terms, and how often they are in a row. Other elements of the row
   are listed, but for NaN and what is too small beside the largest so far to count. */
template <bool weighted> struct row_counts {
    typedef exact_partial<weighted> Partial;
    typedef typename Partial::type partial_type;
    static constexpr uint32_t threads = COUNTED_SHAPE.threads, warps = threads / 32, most_listed = 512;
    static constexpr uint32_t least = (127 - 18) << 8, values = 24 << 8, none = values + 1, each = values / threads; /* least: the first key (halves_signs_last); each: of a thread */
    static constexpr int kinds = weighted ? 2 : 1, place_bits = 8;
    static_assert(values % threads == 0, "threads have as many values");
    uint128 sums[kinds * EXP_BINS][warps];
    uint64_t terms[none + 1]; /* with their places, signed, below them */
    uint32_t weights[weighted ? none + 1 : 1];
    uint32_t counts[none + 1]; /* the first one of 0; the last one of what has none */
    struct {
        uint32_t next;   /* of the vectors that warps claim, so that all end together */
        uint32_t listed; /* elements */
        uint32_t last;   /* the bits of the first place of the maximum, turned; 0: there is none */
    } rows[2]; /* in turns: a row's are cleared while the next is counted */
    float largest[warps];
    uint16_t list[most_listed];
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
    /* Whether an element has no counter, though it counts beside that maximum. */
    static __device__ __forceinline__ bool lacks(float x, float max)
    {
        return x >= max - EXP_BINS_RANGE && x > -INFINITY && (fabsf(x) >= 0x1p6f || (fabsf(x) < 0x1p-18f && x != 0.0f));
    }
    /* Of keys of two elements at a time: the largest less that of -inf, and the smallest less that of the least number but 0. They show whether one may lack a counter,
       but for NaN. */
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
    /* used: vectors that the thread's warp has; all elements of others are -inf. max: of the thread's elements so far. counters: address_of(counts). */
    template <int vectors> __device__ __forceinline__ void take(const uint4 *x, uint32_t used, float max, shared_address counters, uint32_t *listed)
    {
        struct extremes all;
#pragma unroll
        for (int i = 0; i < 4 * vectors; i++) {
            if (i % 4 == 0 && (uint32_t)i / 4 >= used)
                break;
            const uint32_t keys = halves_signs_last(vector_element<uint32_t>(x[i / 4], i % 4));
            const uint32_t at = halves_sum_smaller(halves_larger(keys, halves<least - 1>), halves<1 - least>, halves<none>);
            all.take(keys);
            add_shared(counters + 4 * (at & 0xffff), 1);
            add_shared(counters + 4 * (at >> 16), 1);
        }
        if (all.some_lack())
#pragma unroll
            for (int i = 0; i < 4 * vectors; i++) {
                const uint32_t word = vector_element<uint32_t>(x[i / 4], i % 4);
                if (lacks(of_bits(word), max) || lacks(of_bits(word >> 16), max))
                    list_others(word, max, listed);
            }
    }
    static __device__ __forceinline__ float of_bits(uint32_t bits)
    {
        const element_bf16 element = {(uint16_t)bits};
        return load_bf16(element);
    }
    /* Of a word. Those that are smaller than what has a counter were counted as 0. */
    __device__ __noinline__ void list_others(uint32_t word, float max, uint32_t *listed)
    {
#pragma unroll 1
        for (int half = 0; half < 2; half++, word >>= 16) {
            const float x = of_bits(word);
            if (!lacks(x, max))
                continue;
            if (fabsf(x) < 1.0f)
                atomicAdd(&counts[0], ~0u);
            const uint32_t at = *listed > most_listed ? *listed : atomicAdd(listed, 1u);
            if (at < most_listed)
                list[at] = (uint16_t)word;
        }
    }
    /* This thread's share of the listed elements; or, if they are too many for the list, of those of the row that would be. */
    static __device__ __noinline__ void others_add(const uint16_t *list, uint32_t listed, const row_item<element<ALLFOLD_BF16>> item, float max, uint128 *of)
    {
        partial_type partial = Partial::of_nothing();
        const bool all = listed <= most_listed;
        for (uint32_t i = all ? threadIdx.x : item.begin * 8 + threadIdx.x; i < (all ? listed : item.end * 8); i += threads) {
            const bool is_in = all || (i >= item.elements.first && i < item.elements.end);
            const float x = is_in ? of_bits(all ? list[i] : item.elements.x[i].bits) : 0.0f;
            if (lacks(x, max))
                Partial::add(&partial, (double)x);
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
        uint64_t term[3] = {0, 0, 0}, weight[2] = {0, 0}; /* sums of their words, each times a count: a row has fewer than 2^31 elements */
        int32_t bin = 0;
        const auto add_value = [&](uint64_t found, uint32_t weight_found, uint32_t count) {
            const uint32_t low = (uint32_t)found & (~0u << place_bits), high = (uint32_t)(found >> 32), places = (uint32_t)found & 31;
            term[0] += (uint64_t)(low << places) * count;
            term[1] += (uint64_t)(uint32_t)(((uint64_t)high << 32 | low) << places >> 32) * count;
            term[2] += (uint64_t)(uint32_t)((uint64_t)high << places >> 32) * count;
            if constexpr (weighted) {
                weight[0] += (uint64_t)(weight_found << places) * count;
                weight[1] += (uint64_t)(uint32_t)((uint64_t)weight_found << places >> 32) * count;
            }
        };
        const auto end_bin = [&] {
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
            add_value(terms[0], weighted ? weights[0] : 0, counts[0]);
            counts[0] = 0;
        }
        uint32_t i = threadIdx.x / 32 * each * 32 + threadIdx.x % 32 + 1, count = counts[i];
        uint64_t found = terms[i];
        uint32_t weight_found = weighted ? weights[i] : 0;
#pragma unroll 1
        for (uint32_t k = 0; k < each; k++, i += 32) {
            const uint32_t counted = count, weight_taken = weight_found;
            const uint64_t taken = found;
            counts[i] = 0;
            if (k + 1 < each) { /* before the others are used */
                count = counts[i + 32];
                found = terms[i + 32];
                weight_found = weighted ? weights[i + 32] : 0;
            }
            if (warp_all(counted == 0))
                continue;
            if (counted != 0 && (int8_t)taken >> 5 != bin) {
                end_bin();
                bin = (int8_t)taken >> 5;
            }
            add_value(taken, weight_taken, counted);
        }
        end_bin();
    }
    /* Writes the partial of a row with that maximum. place(): of the maximum, once all threads have looked for it. All threads call it; those of other warps may count the next row's elements then. */
    template <class Place> __device__ __forceinline__ void store(const uint128 *of, float max, int64_t top, const Place &place, partial_type *to)
    {
#pragma unroll
        for (int i = 0; i < kinds * EXP_BINS; i++) {
            const uint128 sum = warp_all(of[i] == 0) ? 0 : lanes_sum(of[i]);
            if (threadIdx.x % 32 == 0)
                sums[i][threadIdx.x / 32] = sum;
        }
        __syncthreads();
        const bool nan = max != max;
        if (threadIdx.x < kinds * EXP_BINS) {
            struct exp_bins *const bins = threadIdx.x < EXP_BINS ? Partial::bins(to) : Partial::weights(to);
            uint128 sum = 0;
            for (uint32_t warp = 0; warp < warps; warp++)
                sum += sums[threadIdx.x][warp];
            bins->sums[threadIdx.x % EXP_BINS] = nan ? 0 : sum;
            if (threadIdx.x % EXP_BINS == 0) {
                bins->max = nan ? -INFINITY : (double)max;
                bins->bin = nan ? EXP_NO_BIN : top;
                bins->nan = nan;
                bins->unused = 0;
            }
            if constexpr (weighted)
                if (threadIdx.x == 0) {
                    to->index = place();
                    to->target = MARK_NONE;
                }
        }
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
    typedef row_counts<weighted> Counts;
    typedef exact_partial<weighted> Partial;
    extern __shared__ __align__(16) unsigned char bytes[];
    Counts &own = *(Counts *)bytes;
    const shared_address counters = address_of(own.counts);
    int turn = 0;
    own.make();
#pragma unroll 1
    for (uint64_t item = blockIdx.x; item < rows.results * rows.splits; item += gridDim.x, turn ^= 1) {
        auto &its = own.rows[turn];
        const row_item<Element> of(rows, item);
        struct row_largest row = {-INFINITY, false, of.begin};
        const auto claim = [&] {
            uint32_t claimed = 0;
            if (threadIdx.x % 32 == 0)
                claimed = atomicAdd(&its.next, 32u * vectors);
            return of.begin + __shfl_sync(0xffffffffu, claimed, 0);
        };
        uint32_t first = claim();
#pragma unroll 1
        while (first < of.end) {
            uint4 x[vectors];
            of.template load<32, vectors>(x, first, (const uint4 *)of.elements.x + first + threadIdx.x % 32);
            float largest = -INFINITY;
            vectors_extreme<Element, vectors>(&largest, x);
            if (!(largest <= row.max)) {
                row.nan |= largest != largest;
                row.max = largest > row.max ? largest : row.max;
                row.best = first + threadIdx.x % 32;
            }
            const uint32_t used = (of.end - first + 31) / 32;
            first = claim();
            own.template take<vectors>(x, used, row.max, counters, &its.listed);
        }
        float max = row.nan ? (float)NAN : row.max;
        lanes_share(&max, 32, take_larger());
        if (threadIdx.x % 32 == 0)
            own.largest[threadIdx.x / 32] = max;
        __syncthreads();
        for (uint32_t warp = 0; warp < Counts::warps; warp++)
            take_larger()(&max, own.largest[warp]);
        if (placed && (max != max || (max > -INFINITY && row.max == max))) {
            const bool nan = max != max;
            const auto is_it = [max](float x) { return max != max ? x != x : x == max; };
            atomicMax(&its.last, ~row_place(of.elements, nan ? of.begin + threadIdx.x : row.best, of.end, nan ? threads : 32, is_it));
        }
        uint128 sums[Counts::kinds * EXP_BINS] = {};
        if (its.listed > 0) {
            uint128 others[Counts::kinds * EXP_BINS]; /* in memory */
            Counts::others_add(own.list, its.listed, of, max, others);
            memcpy(sums, others, sizeof sums);
        }
        const int64_t top = max > -INFINITY ? bf16_bin(max) : EXP_NO_BIN;
        own.add_counted(sums, top);
        own.store(sums, max, top, [&] { return its.last == 0 ? ALLFOLD_NO_INDEX : index - of.elements.first + ~its.last; }, partial_place<typename Partial::type>(rows, of.row, of.split));
        if (threadIdx.x == 0)
            its = {};
    }
}

template <bool weighted> static cudaError_t counted_start(const struct axis_work *work, int multiprocessors, cudaStream_t stream, bool *launched)
{
    constexpr size_t bytes = sizeof(struct row_counts<weighted>), partial_bytes = PARTIAL_STRIDE<typename exact_partial<weighted>::type>;
    const uint64_t blocks = (uint64_t)multiprocessors * COUNTED_SHAPE.blocks;
    if (work->bytes / partial_bytes < work->box.outer)
        return cudaSuccess;
    const struct logits_rows rows = rows_cut(work, 2 * blocks, COUNTED_SHAPE.threads * COUNTED_SHAPE.vectors, partial_bytes);
    cudaLaunchConfig_t config = launch_config(u64_min(blocks, rows.results * rows.splits), COUNTED_SHAPE.threads, stream);
    if (!shared_make(true, (const void *)counted_rows_fold<weighted>, bytes, &config))
        return cudaSuccess;
    *launched = true;
    const cudaError_t code = cudaLaunchKernelEx(&config, counted_rows_fold<weighted>, rows, work->first, weighted && places_wanted(work));
    return code == cudaSuccess ? (cudaError_t)rows_end(work, rows.splits, stream) : code;
}

/* Partials are finished by a kernel of their own, a thread a row. Without room for those of all rows, or for a block's table, other kernels fold. */
int counted_rows_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    *launched = false;
    if (work->type != ALLFOLD_BF16 || !rows_fit(work))
        return cudaSuccess;
    if (work->monoid == MONOID_logits_exact && work->box.length >= COUNTED_SHAPE.least_weighted)
        return counted_start<true>(work, multiprocessors, (cudaStream_t)stream, launched);
    if (work->monoid == MONOID_sumexp_f64_exact && work->box.length >= COUNTED_SHAPE.least)
        return counted_start<false>(work, multiprocessors, (cudaStream_t)stream, launched);
    return cudaSuccess;
}
