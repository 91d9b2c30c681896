/* Log-probabilities of rows, and sums of exponentials of rows, columns and whole arrays, at level exact, of elements whose value type is f32.

     rows_find, columns_find (found.cuh)
         each thread, tile by tile: the maximum so far; terms, and weights, are added to the thread's sums in shared memory, of the bin of the maximum and of those below it:
         by way of registers if, in each thread of the warp, elements that count are within 28 places of one bin; else one by one
         a warp: brings all sums to the bin of one maximum and adds them; the first place that has it
     exact_whole_fold
         the same of a whole array, of which each block has a part; blocks are combined as in fold.cuh */
#include "kernels/found.cuh"

#include "kernels/fold.cuh"

/* If this is true of a maximum, no element that counts is beyond EXP_LIMIT. */
static __device__ __forceinline__ bool is_near(float max) { return max >= EXP_BINS_RANGE - EXP_LIMIT && max <= EXP_LIMIT; }
/* Of elements up to EXP_LIMIT. */
static __device__ __forceinline__ int32_t bin_near(float x)
{
    double d;
    uint64_t bits;
    exp_steps_f64((double)x, &d, &bits);
    return (int32_t)exp_place_f64(bits) >> 5;
}
static __device__ __noinline__ int64_t bin_far(float max) { return fabsf(max) == INFINITY ? (max < 0.0f ? EXP_NO_BIN : -EXP_NO_BIN) : exp_bin_any((double)max, false); }
template <bool weighted> static __device__ __noinline__ void elements_add(typename exact_partial<weighted>::type *partial, const float *x, int count)
{
#pragma unroll 1
    for (int i = 0; i < count; i++)
        exact_partial<weighted>::add(partial, (double)x[i]);
}

/* Neighbouring places of a bin, so few that 64 bits have room for 16 terms. Elements from least to most are in them, however they are rounded. */
struct tile_places {
    static constexpr int count = 28, most_above = 32 - count;
    int32_t bin, above; /* above: the first place, less that of the bin: 0 or 4 */
    float least, most;
    double origin, shift; /* for terms, whose places are then relative to the first; and for weights */
    explicit __device__ __forceinline__ tile_places(float largest)
    {
        const float places = fmaf(largest, 0x1.715476p0f, (float)EXP_OFFSET), margin = 0x1p-4f;
        bin = (int32_t)floorf(places / 32);
        above = places > (float)(32 * bin + count) - margin ? most_above : 0;
        const int32_t first = 32 * bin + above;
        least = ((float)(first - EXP_OFFSET) + margin) * EXP_LN2_F32;
        most = ((float)(first + count - EXP_OFFSET) - margin) * EXP_LN2_F32;
        origin = EXP_PLACE_F64 - (double)(EXP_STEPS * first);
        shift = exp_distance_shift(bin);
    }
    __device__ __forceinline__ bool have(float smallest, float largest) const { return smallest >= least && largest <= most; }
};

/* The sum of 16 terms, relative to the first of these places, in two parts. */
struct tile_sum {
    uint64_t low, high;
    __device__ __forceinline__ void add(uint64_t integer, uint32_t power)
    {
        low = add_product(low, (uint32_t)integer, power);
        high = add_product(high, (uint32_t)(integer >> 32), power);
    }
    __device__ __forceinline__ uint128 value() const { return ((uint128)high << 32) + low; }
};
static __device__ __forceinline__ uint128 shifted(uint64_t integer, uint32_t places)
{
    return (uint128)((integer >> 32) << places >> 32) << 64 | integer << places;
}

/* Terms of bf16, of 0 and from 2^-17 up to 2^6, of either sign, by the elements' bits: a block has them in shared memory, and their places, signed, in the lower 8 bits. Behind them
   -2^6 has none. */
struct __align__(16) bf16_table {
    static constexpr uint32_t exponents = 23, least = 127 - 17, zero = (least << 8) - 1, none = (exponents << 8) + 2, entries = none + 1, place_bits = 8;
    static constexpr float most = 0x1p6f;
    uint64_t of[entries];
    __device__ __forceinline__ void make()
    {
        for (uint32_t i = threadIdx.x; i < entries; i += blockDim.x) {
            const uint32_t key = zero + i;
            const element_bf16 element = {(uint16_t)(i == 0 ? 0 : key >> 1 | key << 15)};
            uint64_t bits;
            const uint64_t term = exp_integer_f64((double)load_bf16(element), &bits, NULL, false);
            of[i] = i == none ? 0 : term << place_bits | (uint8_t)exp_place_f64(bits);
        }
        __syncthreads();
    }
    static __device__ __forceinline__ uint32_t keys(uint32_t word) { return halves_larger(halves_signs_last(word), zero << 16 | zero); }
    __device__ __forceinline__ uint64_t at(uint32_t key) const { return of[key - zero]; }
    /* Whether each element is 0 or no smaller than the smallest of the table. */
    template <int vectors> static __device__ __forceinline__ bool none_is_smaller(const uint4 *x)
    {
        uint32_t smallest = 0xffffffffu;
#pragma unroll
        for (int i = 0; i < 4 * vectors; i++)
            smallest = halves_sum_smaller(vector_element<uint32_t>(x[i / 4], i % 4) & 0x7fff7fff, 0xffffffff, smallest); /* 0 becomes the largest */
        return (smallest & 0xffff) >= (least << 7) - 1 && smallest >> 16 >= (least << 7) - 1;
    }
};

/* A block's memory for rows: the table, and each thread's sums, of terms and of weights, between which is one of what does not count. */
template <class Element, bool weighted, int threads> struct exact_room {
    static constexpr int kinds = weighted ? 2 : 1;
    static constexpr bool has_table = Element::type == ALLFOLD_BF16;
    struct none {};
    std::conditional_t<has_table, struct bf16_table, struct none> table;
    uint128 sums[kinds * EXP_BINS + 1][threads];
    static __device__ __forceinline__ exact_room &own()
    {
        extern __shared__ __align__(16) unsigned char bytes[];
        return *(exact_room *)bytes;
    }
};

/* A thread's row; or column, whose sums are where its block's partials will be. */
template <class Element, bool weighted, int vectors, int threads, bool is_column> struct exact_row : row_largest {
    typedef exact_partial<weighted> Partial;
    typedef typename Partial::type partial_type;
    typedef exact_room<Element, weighted, threads> Room;
    static constexpr int kinds = Room::kinds, per_vector = Element::per_vector;
    static constexpr int at_once = 16, step = at_once / per_vector; /* elements, and vectors, that are added to the sums together */
    static constexpr int next = threads * (is_column ? column_words<Element>::side : 1); /* sum of a thread, from one */
    static constexpr bool ends_at_nan = false, has_table = Room::has_table;
    static constexpr int32_t top_far = 1 << 24;
    static_assert(vectors % step == 0, "vectors");
    uint128 *sums;
    int32_t top; /* the maximum's bin, or top_far */
    struct tile_places here = tile_places(0.0f);

    /* The thread's sums in the bin of the maximum, or `below` it; EXP_BINS: of what does not count. */
    __device__ __forceinline__ uint128 &term_sum(uint32_t below) const { return sums[below * next]; }
    __device__ __forceinline__ uint128 &weight_sum(uint32_t below) const { return sums[(2 * EXP_BINS - below) * next]; }
    __device__ __forceinline__ void start(uint32_t first, partial_type *partials, uint32_t side)
    {
        sums = (is_column ? (uint128 *)partials : Room::own().sums[0]) + side * threads + threadIdx.x;
        static_assert(!is_column || ((kinds * EXP_BINS + 1) * sizeof *sums <= sizeof *partials), "room for the sums");
#pragma unroll
        for (int i = 0; i < kinds * EXP_BINS + 1; i++)
            sums[i * next] = 0;
        max = -INFINITY;
        nan = false;
        best = first;
        top = top_far;
    }
    /* To a larger maximum: sums move to lower bins, and are forgotten below the last. */
    __device__ __forceinline__ void raise(float to)
    {
        const int32_t to_top = is_near(to) ? bin_near(to) : top_far;
        int64_t bins = to_top - top;
        if (max == -INFINITY)
            bins = 0;
        else if (to_top == top_far || top == top_far)
            bins = fabsf(to) >= (float)EXP_HUGE ? (int64_t)EXP_BINS : bin_far(to) - bin_far(max);
        max = to;
        top = to_top;
        if (bins > 0)
#pragma unroll
            for (int i = EXP_BINS; i-- > 0;) {
                term_sum(i) = i >= bins ? term_sum(i - bins) : 0;
                if constexpr (weighted)
                    weight_sum(i) = i >= bins ? weight_sum(i - bins) : 0;
            }
    }
    /* The partial of what there is; `largest` has the bin `top`. */
    __device__ __forceinline__ partial_type partial_of(float largest) const
    {
        partial_type partial = Partial::of_nothing();
        if (largest > -INFINITY) {
            Partial::raise(&partial, (double)largest, top == top_far ? bin_far(largest) : top);
            for (int i = 0; i < EXP_BINS; i++) {
                Partial::bins(&partial)->sums[i] = term_sum(i);
                if constexpr (weighted)
                    Partial::weights(&partial)->sums[i] = weight_sum(i);
            }
        }
        return partial;
    }
    /* Elements of which one is far from 0; the maximum is known. */
    __device__ __forceinline__ void take_far(const uint4 *x)
    {
        partial_type all = partial_of(max);
        float elements[vectors * per_vector]; /* in memory */
        for (int i = 0; i < vectors * per_vector; i++)
            elements[i] = at(x, i);
        elements_add<weighted>(&all, elements, vectors * per_vector);
        for (int i = 0; i < EXP_BINS; i++) {
            term_sum(i) = Partial::bins(&all)->sums[i];
            if constexpr (weighted)
                weight_sum(i) = Partial::weights(&all)->sums[i];
        }
    }
    __device__ __forceinline__ uint32_t below_of(int32_t bin) const
    {
        const uint32_t below = (uint32_t)(top - bin);
        return below < EXP_BINS ? below : (uint32_t)EXP_BINS;
    }
    static __device__ __forceinline__ uint32_t word_at(const uint4 *x, int i) { return vector_element<uint32_t>(x[i / 4], i % 4); }
    static __device__ __forceinline__ float at(const uint4 *x, int i) { return Element::load(vector_element<typename Element::stored>(x[i / per_vector], i % per_vector)); }
    /* Adds the terms, and weights, of elements that are in the places `here`; what does not count is elsewhere. in_table: all of the warp's are there. is_added: of this thread's. */
    template <bool in_table> __device__ __forceinline__ void add_together(const uint4 *vector, bool is_added)
    {
        uint4 x[vectors];
        memcpy(x, vector, sizeof x);
#pragma unroll 1
        for (int v = 0; v < vectors; v += step) {
            struct tile_sum terms = {}, weights = {};
            uint32_t keys = 0; /* of two elements */
#pragma unroll
            for (int i = 0; i < at_once; i++) {
                uint64_t term, bits;
                uint32_t power;
                keys = i % 2 == 0 ? bf16_table::keys(word_at(x, i / 2)) : keys >> 16;
                if constexpr (in_table) {
                    const uint64_t found = Room::own().table.at(keys & 0xffff);
                    term = found >> bf16_table::place_bits;
                    terms.add(found & (~UINT64_C(0) << bf16_table::place_bits), power = 1u << (((uint32_t)found - here.above) & 31));
                } else {
                    term = exp_integer_from((double)at(x, i), here.origin, &bits, NULL, true);
                    terms.add(term, power = shifted_left(1, (uint32_t)exp_place_f64(bits))); /* 0 elsewhere */
                }
                if constexpr (weighted)
                    weights.add(exp_weight_near((double)at(x, i), term, here.shift), power);
            }
            if (is_added) {
                const uint32_t below = below_of(here.bin);
                uint128 sum = terms.value(), weight = weights.value();
                if (here.above != 0)
                    sum <<= tile_places::most_above, weight <<= tile_places::most_above;
                term_sum(below) += sum >> (in_table ? bf16_table::place_bits : 0);
                if constexpr (weighted)
                    weight_sum(below) += weight;
            }
            shift_down(x);
        }
    }
    /* The same of elements up to EXP_LIMIT in any bins: each to a sum in memory, without branches, and without registers for four bins. */
    template <bool in_table> __device__ __forceinline__ void add_each(const uint4 *vector)
    {
        uint4 x[vectors];
        memcpy(x, vector, sizeof x);
#pragma unroll 1
        for (int v = 0; v < vectors; v += step) {
            uint32_t keys = 0;
#pragma unroll
            for (int i = 0; i < at_once; i++) {
                uint64_t term, bits;
                int32_t place;
                keys = i % 2 == 0 ? bf16_table::keys(word_at(x, i / 2)) : keys >> 16;
                if constexpr (in_table) {
                    const uint64_t found = Room::own().table.at(keys & 0xffff);
                    term = found >> bf16_table::place_bits;
                    place = (int8_t)found;
                } else {
                    term = exp_integer_f64((double)at(x, i), &bits, NULL, true);
                    place = (int32_t)exp_place_f64(bits);
                }
                const uint32_t below = below_of(place >> 5), places = place & 31;
                term_sum(below) += shifted(term, places);
                if constexpr (weighted)
                    weight_sum(below) += shifted(exp_weight_near((double)at(x, i), term, exp_distance_shift(place >> 5)), places);
            }
            shift_down(x);
        }
    }
    static __device__ __forceinline__ void shift_down(uint4 *x)
    {
#pragma unroll
        for (int i = 0; i < vectors - step; i++)
            x[i] = x[i + step];
    }
    /* The smallest element that is not below the floor. */
    static __device__ __forceinline__ float smallest_from(float floor, const uint4 *x)
    {
        float smallest = INFINITY;
#pragma unroll
        for (int i = 0; i < vectors * per_vector; i++)
            smallest = fminf(smallest, at(x, i) >= floor ? at(x, i) : INFINITY);
        return smallest;
    }
    /* Whether all elements of a warp that count are in the table. */
    static __device__ __forceinline__ bool in_table(const uint4 *x, float smallest, float largest)
    {
        if constexpr (has_table)
            return warp_all(smallest > -bf16_table::most && largest < bf16_table::most && bf16_table::none_is_smaller<vectors>(x));
        return false;
    }
    /* All lanes of a warp call it, and take the same way: else it would take one after the other. */
    template <uint32_t> __device__ __forceinline__ void take(uint4 *x, uint32_t v, float)
    {
        float largest = -INFINITY, smallest = INFINITY;
        vectors_extreme<Element, vectors>(&largest, x);
        vectors_extreme<Element, vectors, true>(&smallest, x);
        if (!(largest <= max)) {
            nan |= largest != largest;
            best = v;
            if (largest > max)
                raise(largest);
        }
        const bool is_added = largest > -INFINITY; /* else there is nothing, or NaN */
        const auto are_here = [&] { return warp_all(!is_added || here.have(smallest, largest)); };
        bool together = are_here(), found = in_table(x, smallest, largest);
        if (!together) {
            /* places stay away from the limit: if the maximum is beyond it, nothing in them counts */
            if (!here.have(smallest, largest) && fabsf(largest) <= EXP_LIMIT - 2 * EXP_BINS_RANGE)
                here = tile_places(largest);
            together = are_here();
        }
        if (!together || found != has_table) {
            if (!warp_all(max == -INFINITY || top != top_far))
                return take_far(x);
            const float floor = fmaxf(max - EXP_BINS_RANGE, -EXP_LIMIT); /* what is below does not count */
            if (!warp_all(smallest >= floor)) {
                smallest = smallest_from(floor, x);
                found = in_table(x, smallest, largest);
                vectors_raise<Element, vectors>(x, found ? -bf16_table::most : floor);
                together = are_here();
            }
        }
        if (found != has_table)
            add_each<false>(x);
        else if (together)
            add_together<has_table>(x, is_added);
        else
            add_each<has_table>(x);
    }
    /* The maximum of a group of lanes, or of a thread alone, NaN where an element is; the sums become those of the group. All lanes of a warp call it. */
    template <uint32_t members> __device__ __forceinline__ float end()
    {
        const float own = max;
        float all_max = nan ? (float)NAN : max;
        lanes_share(&all_max, members, take_larger());
        if (all_max > max)
            raise(all_max);
        max = own;
        if constexpr (members > 1)
#pragma unroll 1
            for (int i = 0; i < kinds * EXP_BINS; i++) {
                uint128 &of_thread = i < EXP_BINS ? term_sum(i) : weight_sum(i - EXP_BINS);
                uint128 sum = of_thread;
                if (warp_all(sum == 0))
                    continue;
#pragma unroll
                for (uint32_t lanes = members / 2; lanes > 0; lanes /= 2)
                    sum += (uint128)lane_xor((unsigned long long)(sum >> 64), lanes) << 64 | lane_xor((unsigned long long)sum, lanes);
                of_thread = sum;
            }
        return all_max;
    }
    static __device__ __forceinline__ void close(partial_type *, enum terms) {}
};

template <class Of, bool weighted> struct exact_found {
    typedef Of Element;
    typedef exact_partial<weighted> Partial;
    typedef struct never trial;
    static constexpr struct found_shape shape = exponentials_shape_of(Element::type, weighted);
    typedef exact_room<Element, weighted, shape.threads> Room;
    template <int vectors> using row = exact_row<Element, weighted, vectors, shape.threads, false>;
    template <int vectors> using column = exact_row<Element, weighted, vectors, shape.columns_threads, true>;
    static constexpr bool turns = false, marked = weighted, finishes = true, is_long = true, stays = Room::has_table, votes = true;
    static constexpr size_t rows_bytes = sizeof(Room), columns_bytes = Room::has_table ? sizeof Room::table : 0;
    static constexpr uint64_t least = EXACT_LEAST, least_unaligned = weighted ? EXACT_LEAST : EXACT_LEAST_UNALIGNED;
    static constexpr enum monoid monoid = weighted ? MONOID_logits_exact : MONOID_sumexp_f64_exact, monoid_turned = monoid;
    static __device__ __forceinline__ void begin()
    {
        exp_block_make();
        if constexpr (Room::has_table)
            Room::own().table.make();
    }
    static bool placed(const struct axis_work *work) { return weighted && places_wanted(work); }
    template <uint32_t lanes, class Row, class Item> static __device__ __forceinline__ uint32_t place(const Row &row, const Item &item, float max)
    {
        return weighted ? group_place<lanes>(item.elements, row, item.begin, item.end, max) : UINT32_MAX;
    }
    template <class Row> static __device__ __forceinline__ uint32_t column_place(const Row &, uint32_t) { return UINT32_MAX; }
    template <class Row> static __device__ __forceinline__ typename Partial::type of(const Row &row, float max, uint32_t place, uint64_t first)
    {
        typename Partial::type partial = row.partial_of(max);
        Partial::bins(&partial)->nan = max != max;
        Partial::close(&partial, place == UINT32_MAX ? ALLFOLD_NO_INDEX : first + place);
        return partial;
    }
};

/* Of rows log-probabilities; sums of exponentials of rows and columns. */
int exponentials_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    *launched = false;
    if (work->monoid != MONOID_logits_exact && work->monoid != MONOID_sumexp_f64_exact)
        return cudaSuccess;
    return with_element(work->type, [=](auto element) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (Element::is_floating && sizeof(typename Element::stored) <= 4)
            return work->monoid == MONOID_logits_exact ? rows_launch<exact_found<Element, true>>(work, multiprocessors, 0, stream, launched)
                                                       : find_launch<exact_found<Element, false>>(work, multiprocessors, 0, stream, launched);
        return cudaSuccess;
    });
}

/* ---- whole arrays */

template <class Element> struct exact_whole {
    static constexpr int vectors = exact_found<Element, false>::shape.vectors;
    typedef exact_row<Element, false, vectors, EXACT_WHOLE_SHAPE.threads, false> row;
    static constexpr size_t bytes = sizeof(typename row::Room);
};

/* chunk: vectors of a block, whole tiles of all its warps, but for the last block. */
template <class Element>
static __global__ void __launch_bounds__(EXACT_WHOLE_SHAPE.threads, 1)
exact_whole_fold(const typename Element::stored *x, uint64_t n, uint32_t chunk, uint64_t *scratch, uint64_t *result, uint32_t launch_id)
{
    typedef exact_whole<Element> whole;
    typedef exact_found<Element, false> Found;
    typedef fold_of<MONOID_sumexp_f64_exact, float> fold;
    constexpr uint32_t threads = EXACT_WHOLE_SHAPE.threads, vectors = whole::vectors, tile = 32 * vectors;
    __shared__ unsigned int next; /* of the block's tiles, which warps claim, so that all end together */
    const uint64_t start = (uint64_t)blockIdx.x * chunk * Element::per_vector, left = n - start;
    const row_item<Element> item(x + start, left < chunk * Element::per_vector ? (uint32_t)left : chunk * Element::per_vector);
    typename whole::row row;
    const auto claim = [&] {
        unsigned int claimed = 0;
        if (threadIdx.x % 32 == 0)
            claimed = atomicAdd(&next, tile);
        return __shfl_sync(0xffffffffu, claimed, 0);
    };
    let_next_kernel_start();
    if (threadIdx.x == 0)
        next = 0;
    row.start(0, nullptr, 0);
    Found::begin();
    uint32_t first = claim();
#pragma unroll 1
    while (first < item.end) {
        uint4 vector[vectors];
        item.template load<32, vectors>(vector, first, (const uint4 *)item.elements.x + first + threadIdx.x % 32);
        first = claim();
        row.template take<32>(vector, 0, 0.0f);
    }
    const float max = row.template end<32>();
    struct exp_bins partial = threadIdx.x % 32 == 0 ? Found::of(row, max, UINT32_MAX, 0) : exp_bins_identity();
    block_combine<fold, threads>(&partial);
    __syncthreads();
    grid_combine<fold, threads>(partial, scratch, result, launch_id);
}

/* Few elements, whose time a second launch would double, are for other kernels. */
template <class Element> static cudaError_t whole_launch(const struct work *work, const struct fold_space *space, void *stream, bool *launched)
{
    typedef exact_whole<Element> whole;
    constexpr uint64_t step = (uint64_t)EXACT_WHOLE_SHAPE.threads * whole::vectors, each_vector = Element::per_vector; /* step: vectors of a block's warps together */
    const uint64_t most = (uint64_t)space->multiprocessors;
    const uint64_t steps = (work->n + step * each_vector - 1) / (step * each_vector), each = u64_max(1, (steps + most - 1) / most);
    cudaLaunchConfig_t config = launch_config((steps + each - 1) / each, EXACT_WHOLE_SHAPE.threads, stream);
    if (steps < most * EXACT_WHOLE_SHAPE.tiles || each * step * each_vector > INT32_MAX || !shared_make(true, (const void *)exact_whole_fold<Element>, whole::bytes, &config))
        return cudaSuccess;
    *launched = true;
    return cudaLaunchKernelEx(&config, exact_whole_fold<Element>, (const typename Element::stored *)work->x, work->n, (uint32_t)(each * step), (uint64_t *)space->scratch,
                              (uint64_t *)&space->mailbox->partial, space->launch_id);
}

int exact_whole_launch(const struct work *work, const struct fold_space *space, void *stream, bool *launched)
{
    *launched = false;
    if (work->monoid != MONOID_sumexp_f64_exact || (uintptr_t)work->x % 16 != 0)
        return cudaSuccess;
    return with_element(work->type, [=](auto element) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (Element::is_floating && sizeof(typename Element::stored) <= 4)
            return whole_launch<Element>(work, space, stream, launched);
        return cudaSuccess;
    });
}
