/* Log-probabilities of rows, and sums of exponentials of rows, columns and whole arrays, at level exact, of elements whose value type is f32.

     rows_find, columns_find (found.cuh)
         each thread, tile by tile: the maximum so far; terms, and weights, in the bin that most elements of the warp are in, are added in registers, and these to the
         thread's sums in shared memory, of the bin of the maximum and of those below it; terms in other bins to these one by one
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

/* The bin that most elements of a warp are in: those from least to most are, whatever is rounded; those up to `wide` not in its last four places. */
struct warp_bin {
    int32_t bin;
    float least, wide, most;
    double shift; /* for weights */
    explicit __device__ __forceinline__ warp_bin(float x)
    {
        const float place = floorf(fmaf(x, 0x1.715476p0f / 32, EXP_OFFSET / 32.0f)), margin = 0x1p-5f, middle = place * (32 * EXP_LN2_F32);
        bin = (int32_t)place;
        least = fmaxf(middle + (margin - EXP_OFFSET * EXP_LN2_F32), -EXP_LIMIT);
        wide = fminf(middle + ((28 - EXP_OFFSET) * EXP_LN2_F32 - margin), EXP_LIMIT);
        most = fminf(middle + ((32 - EXP_OFFSET) * EXP_LN2_F32 - margin), EXP_LIMIT);
        shift = exp_distance_shift(bin);
    }
};

/* What some terms add to a bin, in two parts. */
template <int low_bits> struct bin_parts {
    uint64_t low, high;
    __device__ __forceinline__ void add(uint64_t integer, uint32_t power)
    {
        low = add_product(low, (uint32_t)integer & (UINT32_MAX >> (32 - low_bits)), power);
        high = add_product(high, (uint32_t)(integer >> low_bits), power);
    }
    __device__ __forceinline__ uint128 value() const { return ((uint128)high << low_bits) + low; }
};

struct placed_term {
    uint64_t integer;
    int32_t place;
};
/* Of an element up to EXP_LIMIT. */
static __device__ __forceinline__ struct placed_term placed_term_of(float x)
{
    uint64_t bits;
    const uint64_t integer = exp_integer_f64((double)x, &bits, NULL, true);
    return {integer, (int32_t)exp_place_f64(bits)};
}

/* Terms of bf16, of 0 and from 2^-17 up to 2^6, of either sign, by the elements' bits: a block has them in shared memory, and their places, signed, in the upper 8 bits. */
struct __align__(16) bf16_table {
    static constexpr uint32_t exponents = 23, least = 127 - 17, zero = (least << 8) - 1, entries = (exponents << 8) + 1, place_bit = 56;
    static constexpr float most = 0x1p6f;
    uint64_t of[entries];
    __device__ __forceinline__ void make()
    {
        for (uint32_t i = threadIdx.x; i < entries; i += blockDim.x) {
            const uint32_t key = zero + i;
            const element_bf16 element = {(uint16_t)(i == 0 ? 0 : key >> 1 | key << 15)};
            uint64_t bits;
            const uint64_t term = exp_integer_f64((double)load_bf16(element), &bits, NULL, false);
            of[i] = term | (uint64_t)exp_place_f64(bits) << place_bit;
        }
        __syncthreads();
    }
    /* Of both elements of a word: their bits, with the sign behind the others; the upper one's in the upper half. */
    static __device__ __forceinline__ uint32_t keys(uint32_t word) { return halves_larger((word << 1 & 0xfffefffe) | (word >> 15 & 0x00010001), zero << 16 | zero); }
    __device__ __forceinline__ struct placed_term at(uint32_t key) const
    {
        const uint64_t found = of[key - zero];
        return {found & ((UINT64_C(1) << place_bit) - 1), (int32_t)((int64_t)found >> place_bit)};
    }
    /* Whether each element is 0 or no smaller than the smallest of the table. */
    template <int vectors> static __device__ __forceinline__ bool none_is_smaller(const uint4 *x)
    {
        uint32_t smallest = 0xffffffffu;
#pragma unroll
        for (int i = 0; i < 4 * vectors; i++)
            smallest = halves_less_one_smaller(vector_element<uint32_t>(x[i / 4], i % 4) & 0x7fff7fff, smallest);
        return (smallest & 0xffff) >= (least << 7) - 1 && smallest >> 16 >= (least << 7) - 1;
    }
};

/* A block's memory for rows: the table, and each thread's sums, of terms and of weights. */
template <class Element, bool weighted, int threads> struct exact_room {
    static constexpr int kinds = weighted ? 2 : 1;
    static constexpr bool has_table = Element::type == ALLFOLD_BF16;
    struct none {};
    struct of_thread {
        uint128 sums[kinds * EXP_BINS + 1]; /* neighbours begin in other banks */
    };
    std::conditional_t<has_table, struct bf16_table, struct none> table;
    struct of_thread threads_of[threads];
    static __device__ __forceinline__ exact_room &own()
    {
        extern __shared__ __align__(16) unsigned char bytes[];
        return *(exact_room *)bytes;
    }
};

/* A thread's row; or column, whose partial has its sums. */
template <class Element, bool weighted, int vectors, int threads, bool is_column> struct exact_row : row_largest {
    typedef exact_partial<weighted> Partial;
    typedef typename Partial::type partial_type;
    typedef exact_room<Element, weighted, threads> Room;
    static constexpr int kinds = Room::kinds, per_vector = Element::per_vector;
    static constexpr int together = 16, step = together / per_vector; /* elements, and vectors, that are added to the sums together */
    static constexpr bool ends_at_nan = false, has_table = Room::has_table;
    static constexpr int32_t top_far = 1 << 24;
    static_assert(vectors % step == 0, "vectors");
    uint128 *sums; /* of terms, then of weights */
    int32_t top;   /* the maximum's bin, or top_far */
    struct warp_bin here = warp_bin(0.0f);

    __device__ __forceinline__ void start(uint32_t first, partial_type *partial)
    {
        if constexpr (is_column)
            sums = partial->sums;
        else
            sums = Room::own().threads_of[threadIdx.x].sums;
#pragma unroll
        for (int i = 0; i < kinds * EXP_BINS; i++)
            sums[i] = 0;
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
            for (int i = kinds * EXP_BINS; i-- > 0;)
                sums[i] = i % EXP_BINS >= bins ? sums[i - bins] : 0;
    }
    /* The partial of what there is; `largest` has the bin `top`. */
    __device__ __forceinline__ partial_type partial_of(float largest) const
    {
        partial_type partial = Partial::of_nothing();
        if (largest > -INFINITY) {
            Partial::raise(&partial, (double)largest, top == top_far ? bin_far(largest) : top);
            for (int i = 0; i < EXP_BINS; i++) {
                Partial::bins(&partial)->sums[i] = sums[i];
                if constexpr (weighted)
                    Partial::weights(&partial)->sums[i] = sums[EXP_BINS + i];
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
            sums[i] = Partial::bins(&all)->sums[i];
            if constexpr (weighted)
                sums[EXP_BINS + i] = Partial::weights(&all)->sums[i];
        }
    }
    __device__ __forceinline__ void add_to(int32_t bin, uint128 more, uint128 more_weights)
    {
        const int32_t below = top - bin;
        if ((uint32_t)below >= EXP_BINS)
            return;
        sums[below] += more;
        if constexpr (weighted)
            sums[EXP_BINS + below] += more_weights;
    }
    /* keys: of the table, or nothing. */
    template <bool in_table> static __device__ __forceinline__ struct placed_term term_of(float x, uint32_t keys)
    {
        if constexpr (in_table)
            return Room::own().table.at(keys & 0xffff);
        else
            return placed_term_of(x);
    }
    template <bool in_table> __device__ __forceinline__ void add_other(float x)
    {
        const struct placed_term term = term_of<in_table>(x, bf16_table::keys(f32_bits(x) >> 16));
        const int32_t bin = term.place >> 5, by = term.place & 31;
        add_to(bin, (uint128)term.integer << by, weighted ? (uint128)exp_weight_near((double)x, term.integer, exp_distance_shift(bin)) << by : 0);
    }
    static __device__ __forceinline__ uint32_t word_at(const uint4 *x, int i) { return vector_element<uint32_t>(x[i / 4], i % 4); }
    template <int half> static __device__ __forceinline__ void halve(uint32_t *word, int i)
    {
#pragma unroll
        for (int k = 0; k < half; k++)
            word[k] = selected((i & half) != 0, word[k + half], word[k]);
    }
    /* Element i of the first that are added together. */
    static __device__ __forceinline__ float any_of(const uint4 *x, int i)
    {
        constexpr int side = per_vector / 4, words = together / side; /* elements of a word */
        uint32_t word[words];
#pragma unroll
        for (int k = 0; k < words; k++)
            word[k] = word_at(x, k);
        if constexpr (words == 16)
            halve<8>(word, i / side);
        halve<4>(word, i / side);
        halve<2>(word, i / side);
        halve<1>(word, i / side);
        const uint4 found = make_uint4(word[0] >> (i % side * 16), 0, 0, 0);
        return at(&found, 0);
    }
    static __device__ __forceinline__ float at(const uint4 *x, int i) { return Element::load(vector_element<typename Element::stored>(x[i / per_vector], i % per_vector)); }
    /* Adds terms, and weights, of a thread whose elements are added. all_here: none of these is outside of the warp's bin, or in its last four places. in_table: all of the warp's are there.
       All lanes of a warp call it. */
    template <bool all_here, bool in_table> __device__ __forceinline__ void add(const uint4 *vector, bool is_added)
    {
        constexpr int low_bits = all_here ? 32 : EXP_LOW_BITS;
        const float floor = fmaxf(max - EXP_BINS_RANGE, -EXP_LIMIT); /* what is below has no term, and neither has -inf */
        uint4 x[vectors];
        memcpy(x, vector, sizeof x);
#pragma unroll 1
        for (int v = 0; v < vectors; v += step) {
            bin_parts<low_bits> terms = {}, weights = {};
            uint32_t keys = 0, others = 0; /* of two elements; elements in other bins */
#pragma unroll
            for (int i = 0; i < together; i++) {
                const float value = at(x, i), least = fmaxf(value, -EXP_LIMIT);
                keys = i % 2 == 0 ? bf16_table::keys(word_at(x, i / 2)) : keys >> 16;
                const struct placed_term term = term_of<in_table>(all_here || in_table ? value : least, keys);
                const uint32_t above = (uint32_t)(term.place - 32 * here.bin), power = all_here ? 1u << (term.place & 31) : shifted_left(1, above);
                terms.add(term.integer, power);
                if constexpr (weighted)
                    weights.add(exp_weight_near((double)(all_here || in_table ? value : least), term.integer, here.shift), power);
                if constexpr (!all_here)
                    others |= above >= 32 && value >= floor ? 1u << i : 0;
            }
            if (is_added)
                add_to(here.bin, terms.value(), weights.value());
            if constexpr (!all_here)
#pragma unroll 1
                for (; others != 0; others &= others - 1)
                    add_other<in_table>(any_of(x, __ffs((int)others) - 1));
#pragma unroll
            for (int i = 0; i < vectors - step; i++)
                x[i] = x[i + step];
        }
    }
    /* All lanes of a warp call it. */
    template <uint32_t> __device__ __forceinline__ void take(const uint4 *x, uint32_t v, float)
    {
        constexpr uint32_t all = 0xffffffffu;
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
        const bool all_here = __ballot_sync(all, is_added && !(smallest >= here.least && largest <= here.wide)) == 0;
        bool in_table = false;
        if constexpr (has_table)
            in_table = __ballot_sync(all, !(smallest > -bf16_table::most && largest < bf16_table::most && bf16_table::none_is_smaller<vectors>(x))) == 0;
        if (all_here && (in_table || !has_table))
            return add<true, has_table>(x, is_added);
        if (!all_here) {
            if (__ballot_sync(all, max > -INFINITY && top == top_far) != 0)
                return take_far(x);
            const float first = at(x, 0);
            /* the bin stays where, beside a maximum that is not near, nothing counts */
            const uint32_t outside = __ballot_sync(all, fabsf(first) <= EXP_LIMIT - 2 * EXP_BINS_RANGE && !(first >= here.least && first <= here.most));
            if (__popc(outside) > 16) /* another bin is better */
                here = warp_bin(__shfl_sync(all, first, __ffs((int)outside) - 1));
        }
        if constexpr (has_table)
            if (in_table)
                return add<false, true>(x, is_added);
        add<false, false>(x, is_added);
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
                uint128 sum = sums[i];
                if (__ballot_sync(0xffffffffu, sum != 0) == 0)
                    continue;
#pragma unroll
                for (uint32_t lanes = members / 2; lanes > 0; lanes /= 2)
                    sum += (uint128)lane_xor((unsigned long long)(sum >> 64), lanes) << 64 | lane_xor((unsigned long long)sum, lanes);
                sums[i] = sum;
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
    template <int vectors> using column = exact_row<Element, weighted, vectors, shape.threads, true>;
    static constexpr bool turns = false, marked = weighted, finishes = true, is_long = true, stays = Room::has_table;
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
    row.start(0, nullptr);
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
    if (steps < most * EXACT_WHOLE_SHAPE.tiles || each * step * each_vector > INT32_MAX || !shared_make<exact_found<Element, false>>(exact_whole_fold<Element>, whole::bytes, &config))
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
