/* Log-probabilities of rows at level exact, or only sums of exponentials, of elements whose value type is f32. Long rows of
   bf16: log_probs_counted.cu.

     exact_rows_fold
         the block: powers of two in shared memory; then some rows, or splits of them, of which each warp takes one after the other
         each thread, tile by tile: terms in the warp's bin, which most elements of its rows lie in, are added to an integer in registers;
         of a tile that has others, these one by one to a partial of its own, in shared memory
         the warp: brings all bins to the maximum, and adds them; the first place that has the maximum
         partials are finished behind it, a thread a row (rows_end): that takes long
     exact_columns_fold
         the same of columns that lie side by side, of which each thread has one, or two of 16 bits, or a part of them; sums of exponentials alone
         each thread: its partials, to the places of those aside; a thread a column: combines what its members have, and finishes the result of columns that are not split
     exact_whole_fold
         the same of a whole array, of which each block has a part; blocks are combined as in fold.cuh */
#define EXACT_TOTAL_DIGITS 48
#define FAMILY f32
#include "kernels/axis_finish.cuh"
#include "kernels/fold.cuh"
#include "kernels/log_probs.cuh"

/* A sum in one bin; and what a tile adds to it, in two parts. */
struct bin_sum {
    uint64_t low, high;
    __device__ __forceinline__ uint128 value() const { return (uint128)high << 64 | low; }
    __device__ __forceinline__ void add(uint128 more)
    {
        const uint128 sum = value() + more;
        low = (uint64_t)sum;
        high = (uint64_t)(sum >> 64);
    }
};
template <int low_bits> struct bin_parts {
    uint64_t low, high;
    __device__ __forceinline__ void add(uint64_t integer, uint32_t power)
    {
        low = add_product(low, (uint32_t)integer & (UINT32_MAX >> (32 - low_bits)), power);
        high = add_product(high, (uint32_t)(integer >> low_bits), power);
    }
    __device__ __forceinline__ uint128 value() const { return ((uint128)high << low_bits) + low; }
};

static __device__ __forceinline__ struct bin_sum value_xor(const struct bin_sum &sum, uint32_t lanes)
{
    return {lane_xor((unsigned long long)sum.low, lanes), lane_xor((unsigned long long)sum.high, lanes)};
}
static __device__ __forceinline__ void sums_take(struct bin_sum *a, const struct bin_sum &b) { a->add(b.value()); }
/* The warp's sums of one kind. Most bins have none. */
static __device__ __forceinline__ void bins_share(struct exp_bins *bins)
{
#pragma unroll
    for (int i = 0; i < EXP_BINS; i++) {
        struct bin_sum sum = {(uint64_t)bins->sums[i], (uint64_t)(bins->sums[i] >> 64)};
        if (__ballot_sync(0xffffffffu, bins->sums[i] != 0) != 0)
            group_share_sums<32>(&sum, 32);
        bins->sums[i] = sum.value();
    }
}

/* What a warp knows of the bin in which it adds: elements from least to most are in it, whatever is rounded; those up to `wide` not in its last four places. */
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
static __device__ __forceinline__ int64_t bin_of_max(float max) { return max == INFINITY ? -EXP_NO_BIN : exp_bin_any((double)max, false); }
/* If this is true of a maximum, no element that counts is beyond EXP_LIMIT. */
static __device__ __forceinline__ bool is_near(float max) { return max >= EXP_BINS_RANGE - EXP_LIMIT && max <= EXP_LIMIT; }

/* What a thread has of a row. */
template <bool weighted> struct exact_row {
    typedef exact_partial<weighted> Partial;
    typename Partial::type *aside; /* of no meaning unless it is used. Its maximum may be of some tiles ago */
    bool used;
    float max;                     /* -inf before there is any element above it */
    uint32_t best;                 /* the first vector of the tile in which max is */
    struct bin_sum sum, weights;   /* in the warp's bin */

    __device__ __forceinline__ void start(uint32_t first)
    {
        used = false;
        max = -INFINITY;
        best = first;
        sum = weights = {0, 0};
    }
    /* new_max: NaN, or the maximum of what was taken and of what will be. */
    __device__ __forceinline__ void use_aside(float new_max)
    {
        if (!used)
            *aside = Partial::of_nothing();
        used = true;
        if ((double)new_max > Partial::bins(aside)->max)
            Partial::raise(aside, (double)new_max, bin_of_max(new_max));
    }
    /* To the partial's bin, if it has it. */
    static __device__ __forceinline__ void add_aside(typename Partial::type *partial, int64_t bin, uint128 more, uint128 more_weights)
    {
        const int64_t lower = Partial::bins(partial)->bin - bin;
        exp_bins_take(Partial::bins(partial), lower, more);
        if constexpr (weighted)
            exp_bins_take(&partial->weights, lower, more_weights);
    }
    /* Adds the terms in the warp's bin. masked: some elements are not, or may not be, in it; the mask tells those that are not below `floor`. */
    template <int low_bits, bool masked, int n>
    __device__ __forceinline__ uint32_t take_here(const float *x, const struct warp_bin &here, float floor = -INFINITY)
    {
        bin_parts<low_bits> terms = {0, 0}, weighed = {0, 0};
        uint32_t others = 0;
#pragma unroll
        for (int i = 0; i < n; i++) {
            uint64_t bits;
            const bool other = masked && !(x[i] >= here.least && x[i] <= here.most);
            const double element = (double)(other ? here.least : x[i]);
            const uint64_t term = exp_integer_f64(element, &bits, NULL, true);
            const uint32_t power = other ? 0 : 1u << ((uint32_t)bits >> EXP_STEP_BITS & 31);
            others |= (uint32_t)(other && x[i] >= floor) << i;
            terms.add(term, power);
            if constexpr (weighted)
                weighed.add(exp_weight_near(element, term, here.shift), power);
        }
        sum.add(terms.value());
        weights.add(weighed.value());
        return others;
    }
    /* Adds one element, up to EXP_LIMIT, aside. */
    __device__ __forceinline__ void add(float x)
    {
        struct exp_bins *const bins = Partial::bins(aside);
        uint64_t bits;
        const uint64_t term = exp_integer_f64((double)x, &bits, NULL, true);
        const int32_t place = (int32_t)(uint32_t)bits >> EXP_STEP_BITS, bin = place >> 5;
        const uint32_t power = 1u << (place & 31), lower = (uint32_t)((int32_t)bins->bin - bin);
        if (lower >= EXP_BINS)
            return;
        bins->sums[lower] += (uint128)term * power;
        if constexpr (weighted)
            aside->weights.sums[lower] += (uint128)exp_weight_near((double)x, term, exp_distance_shift(bin)) * power;
    }
    /* v: the tile's first vector. All lanes of a warp call it. */
    template <class Element, int vectors> __device__ __forceinline__ void take(const uint4 *vector, uint32_t v, struct warp_bin *here)
    {
        constexpr int n = vectors * Element::per_vector;
        constexpr uint32_t all = 0xffffffffu;
        float largest = -INFINITY, smallest = INFINITY, x[n];
        vectors_extreme<Element, vectors>(&largest, vector);
        vectors_extreme<Element, vectors, true>(&smallest, vector);
#pragma unroll
        for (int i = 0; i < n; i++)
            x[i] = Element::load(vector_element<typename Element::stored>(vector[i / Element::per_vector], i % Element::per_vector));
        const float new_max = largest <= max ? max : largest;
        if (__ballot_sync(all, !(smallest >= here->least && largest <= here->wide)) == 0) {
            take_here<32, false, n>(x, *here);
        } else if (__ballot_sync(all, !(smallest >= here->least && largest <= here->most)) == 0) {
            take_here<EXP_LOW_BITS, false, n>(x, *here);
        } else {
            const uint32_t outside = __ballot_sync(all, fabsf(x[0]) <= EXP_LIMIT && !(x[0] >= here->least && x[0] <= here->most));
            if (__popc(outside) > 16) { /* another bin is better */
                use_aside(max);
                add_aside(aside, here->bin, sum.value(), weights.value());
                sum = weights = {0, 0};
                *here = warp_bin(__shfl_sync(all, x[0], __ffs((int)outside) - 1));
            }
            const bool near = is_near(new_max);
            uint32_t left = near ? take_here<EXP_LOW_BITS, true, n>(x, *here, new_max - EXP_BINS_RANGE) : new_max == -INFINITY ? 0 : (1u << n) - 1;
            if (left != 0)
                use_aside(new_max);
#pragma unroll 1
            for (; left != 0; left &= left - 1) {
                const int at = __ffs((int)left) - 1;
                float element = x[0];
#pragma unroll
                for (int i = 1; i < n; i++)
                    element = i == at ? x[i] : element;
                if (near)
                    add(element);
                else
                    Partial::add(aside, (double)element);
            }
        }
        if (!(largest <= max)) {
            max = largest > max ? largest : max;
            best = v;
        }
    }
    __device__ __forceinline__ bool nan() const { return used && Partial::bins(aside)->nan != 0; }
    /* The partial of a warp, or of a thread alone, not closed, and its maximum, NaN where an element is. All lanes call it. */
    template <uint32_t members> __device__ __forceinline__ float end(const struct warp_bin &here, typename Partial::type *partial) const
    {
        float all_max = nan() ? (float)NAN : max;
        if constexpr (members > 1)
            lanes_share(&all_max, members, take_larger());
        *partial = used ? *aside : Partial::of_nothing();
        if (all_max > -INFINITY) {
            Partial::raise(partial, (double)all_max, bin_of_max(all_max));
            add_aside(partial, here.bin, sum.value(), weights.value());
        }
        if constexpr (members > 1)
            bins_share(Partial::bins(partial));
        if constexpr (members > 1 && weighted)
            bins_share(&partial->weights);
        Partial::bins(partial)->nan = all_max != all_max;
        return all_max;
    }
};

template <bool weighted> struct exact_rows_plan {
    static constexpr int threads = exact_rows_shape_of(weighted).threads, blocks = exact_rows_shape_of(weighted).blocks;
    static constexpr size_t bytes = sizeof(typename exact_partial<weighted>::type), room = bytes % 32 == 0 ? bytes + 16 : bytes; /* in other banks than its neighbours */
};

/* A tile is loaded while the one before it is folded: each lane's vectors come to a place of its own. */
template <class Element> struct tile_ahead {
    static constexpr uint32_t lanes = 32, vectors = 16 / Element::per_vector, tile = lanes * vectors;
    uint4 *stage; /* of this lane; its vectors are `lanes` apart */
    __device__ __forceinline__ void fetch(const row_item<Element> &item, uint32_t first) const
    {
        if (first + tile > item.whole || first >= item.end)
            return;
        const uint4 *const x = (const uint4 *)item.elements.x + first + threadIdx.x % lanes;
#pragma unroll
        for (uint32_t i = 0; i < vectors; i++)
            copy_async(stage + i * lanes, x + i * lanes);
        copy_commit();
    }
    /* The next tile may come to the place as soon as this one is in registers. */
    __device__ __forceinline__ void take(uint4 *x, const row_item<Element> &item, uint32_t first) const
    {
        const bool fetched = first + tile <= item.whole;
        copy_wait(0);
#pragma unroll
        for (uint32_t i = 0; i < vectors; i++)
            x[i] = fetched ? stage[i * lanes] : item.elements.at(first + threadIdx.x % lanes + i * lanes);
    }
};

template <class Element, bool weighted>
static __global__ void __launch_bounds__(exact_rows_plan<weighted>::threads, exact_rows_plan<weighted>::blocks)
exact_rows_fold(const __grid_constant__ struct logits_rows rows, uint32_t block_items, uint64_t index) /* along the axis, of x[0] */
{
    typedef exact_rows_plan<weighted> plan;
    typedef exact_partial<weighted> Partial;
    constexpr uint32_t lanes = 32, vectors = tile_ahead<Element>::vectors, tile = tile_ahead<Element>::tile;
    __shared__ __align__(16) unsigned char asides[plan::threads * plan::room];
    extern __shared__ __align__(16) unsigned char bytes[];
    __shared__ unsigned int next; /* of the block's items: warps need not take equally long */
    struct warp_bin here(0.0f);
    exact_row<weighted> row;
    const uint32_t lane = threadIdx.x % lanes;
    const uint64_t block_first = (uint64_t)blockIdx.x * block_items, items = rows.results * rows.splits - block_first;
    const uint32_t count = items < block_items ? (uint32_t)items : block_items;
    const tile_ahead<Element> ahead = {(uint4 *)bytes + threadIdx.x / lanes * tile + lane};
    /* The next item of this warp, whose first tile is fetched. */
    const auto claim = [&] {
        unsigned int i = 0;
        if (lane == 0)
            i = atomicAdd(&next, 1u);
        i = __shfl_sync(0xffffffffu, i, 0);
        if (i < count) {
            const row_item<Element> item(rows, block_first + i);
            ahead.fetch(item, item.begin);
        }
        return i;
    };
    row.aside = (typename Partial::type *)(asides + threadIdx.x * plan::room);
    if (threadIdx.x == 0)
        next = 0;
    exp_block_make();
    uint32_t own = claim();
#pragma unroll 1
    while (own < count) {
        const row_item<Element> item(rows, block_first + own);
        row.start(item.begin);
#pragma unroll 1
        for (uint32_t first = item.begin; first < item.end; first += tile) {
            uint4 x[vectors];
            ahead.take(x, item, first);
            ahead.fetch(item, first + tile);
            row.template take<Element, (int)vectors>(x, first + lane, &here);
        }
        own = claim();
        typename Partial::type partial;
        const float max = row.template end<lanes>(here, &partial);
        uint32_t place = UINT32_MAX;
        if constexpr (weighted)
            place = group_place<lanes>(item.elements, {row.max, row.nan(), row.best, 0.0, 0.0}, item.begin, item.end, max);
        if (lane == 0) {
            Partial::close(&partial, place == UINT32_MAX ? ALLFOLD_NO_INDEX : index + place);
            partial_store(partial, rows, item.row, item.split);
        }
    }
}

template <class Element> struct exact_columns_plan {
    static constexpr int side = column_words<Element>::side, threads = EXACT_COLUMNS_SHAPE.threads, blocks = side == 2 ? EXACT_COLUMNS_SHAPE.blocks_short : EXACT_COLUMNS_SHAPE.blocks;
    static constexpr size_t room = exact_rows_plan<false>::room;
};

/* Apart, because it takes many registers. */
static __device__ __noinline__ void column_result(const struct exp_bins *partial, const struct axis_finish *finish, uint64_t r)
{
    result_finish<MONOID_sumexp_f64_exact>(*partial, *finish, r);
}

template <class Element>
static __global__ void __launch_bounds__(exact_columns_plan<Element>::threads, exact_columns_plan<Element>::blocks)
exact_columns_fold(const __grid_constant__ struct logits_columns cut, const __grid_constant__ struct logits_ends ends)
{
    typedef exact_columns_plan<Element> plan;
    typedef exact_partial<false> Partial;
    typedef column_words<Element> words;
    constexpr int side = plan::side;
    __shared__ __align__(16) unsigned char asides[plan::threads * side * plan::room];
    struct exact_column {
        struct warp_bin here = warp_bin(0.0f);
        exact_row<false> row;
    } columns[side];
    column_walk<Element> walk(cut);
    const auto aside = [&](uint32_t i) { return (struct exp_bins *)(asides + i * plan::room); };
#pragma unroll
    for (int s = 0; s < side; s++) {
        columns[s].row.aside = aside(threadIdx.x * side + s);
        columns[s].row.start(0);
    }
    exp_block_make();
    walk.for_each([&](int s, const uint4 *x, uint32_t) { columns[s].row.template take<Element, words::vectors>(x, 0, &columns[s].here); });
#pragma unroll
    for (int s = 0; s < side; s++) {
        struct exp_bins partial;
        columns[s].row.template end<1>(columns[s].here, &partial);
        *columns[s].row.aside = partial;
    }
    __syncthreads();
    columns_end(cut, walk, aside, exp_bins_combine, [&](struct exp_bins *partial, uint64_t r) {
        Partial::close(partial, 0);
        if (ends.finishes && cut.rows.splits == 1)
            column_result(partial, &ends.finish, r);
        else
            partial_store(*partial, cut.rows, r, walk.split);
    });
}

/* chunk: elements of a block, whole tiles of all its warps, but for the last block. */
template <class Element>
static __global__ void __launch_bounds__(exact_rows_plan<false>::threads, exact_rows_plan<false>::blocks)
exact_whole_fold(const typename Element::stored *x, uint64_t n, uint32_t chunk, uint64_t *scratch, uint64_t *result, uint32_t launch_id)
{
    typedef exact_rows_plan<false> plan;
    typedef fold_of<MONOID_sumexp_f64_exact, float> fold;
    constexpr uint32_t lanes = 32, vectors = tile_ahead<Element>::vectors, tile = tile_ahead<Element>::tile, step = plan::threads / lanes * tile;
    __shared__ __align__(16) unsigned char asides[plan::threads * plan::room];
    extern __shared__ __align__(16) unsigned char bytes[];
    const uint64_t start = (uint64_t)blockIdx.x * chunk;
    const row_item<Element> item(x + start, n - start < chunk ? (uint32_t)(n - start) : chunk);
    const tile_ahead<Element> ahead = {(uint4 *)bytes + threadIdx.x / lanes * tile + threadIdx.x % lanes};
    struct warp_bin here(0.0f);
    exact_row<false> row;
    struct exp_bins partial;
    let_next_kernel_start();
    row.aside = (struct exp_bins *)(asides + threadIdx.x * plan::room);
    row.start(0);
    ahead.fetch(item, threadIdx.x / lanes * tile);
    exp_block_make();
#pragma unroll 1
    for (uint32_t first = threadIdx.x / lanes * tile; first < item.end; first += step) {
        uint4 vector[vectors];
        ahead.take(vector, item, first);
        ahead.fetch(item, first + step);
        row.template take<Element, (int)vectors>(vector, first + threadIdx.x % lanes, &here);
    }
    row.template end<lanes>(here, &partial);
    exp_bins_settle(&partial);
    if (threadIdx.x % lanes != 0)
        partial = exp_bins_identity();
    block_combine<fold, plan::threads>(&partial);
    __syncthreads();
    grid_combine<fold, plan::threads>(partial, scratch, result, launch_id);
}

/* A block's memory beyond what it has anyway. False: it is not there. */
template <class Element, class Kernel> static bool stage_make(Kernel kernel, int threads, size_t *bytes)
{
    *bytes = threads * (16 / Element::per_vector) * sizeof(uint4);
    if (cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared) == cudaSuccess
        && cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)*bytes) == cudaSuccess)
        return true;
    cudaGetLastError(); /* the caller's program must not find it */
    return false;
}

/* Few elements, whose time a second launch would double, and those without room for the partials of all rows, or for a block's memory, are for other
   kernels. */
template <class Element, bool weighted> static int exact_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    constexpr struct exact_rows_shape shape = exact_rows_shape_of(weighted);
    constexpr int warps = shape.threads / 32;
    constexpr size_t partial_bytes = PARTIAL_STRIDE<typename exact_partial<weighted>::type>;
    constexpr uint32_t tile = 32 * 16 / Element::per_vector;
    const uint64_t together = (uint64_t)multiprocessors * shape.blocks * warps;
    const auto kernel = exact_rows_fold<Element, weighted>;
    size_t stage_bytes;
    if (work->box.length < shape.shortest || work->box.outer * work->box.length < together * tile * Element::per_vector
        || work->bytes / partial_bytes < work->box.outer || !stage_make<Element>(kernel, shape.threads, &stage_bytes))
        return cudaSuccess;
    const struct logits_rows rows = rows_cut(work, shape.rounds * together, tile, partial_bytes);
    const uint64_t items = rows.results * rows.splits, each = u64_min(shape.tiles * tile / rows.chunk, items / (shape.rounds * together));
    const uint32_t block_items = (uint32_t)(warps * u64_max(1, each));
    cudaLaunchConfig_t config = launch_config((items + block_items - 1) / block_items, shape.threads, stream);
    config.dynamicSmemBytes = stage_bytes;
    *launched = true;
    const int code = cudaLaunchKernelEx(&config, kernel, rows, block_items, work->first);
    return code == cudaSuccess ? rows_end(work, rows.splits, stream) : code;
}

int exact_rows_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    *launched = false;
    if ((work->monoid != MONOID_logits_exact && work->monoid != MONOID_sumexp_f64_exact) || !rows_fit(work))
        return cudaSuccess;
    return with_element(work->type, [=](auto element) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (Element::is_floating && sizeof(typename Element::stored) <= 4)
            return (cudaError_t)(work->monoid == MONOID_logits_exact ? exact_launch<Element, true>(work, multiprocessors, stream, launched)
                                                                     : exact_launch<Element, false>(work, multiprocessors, stream, launched));
        return cudaSuccess;
    });
}

template <class Element> static cudaError_t columns_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    typedef exact_columns_plan<Element> plan;
    typedef column_words<Element> words;
    constexpr size_t partial_bytes = PARTIAL_STRIDE<struct exp_bins>;
    const uint64_t together = (uint64_t)multiprocessors * plan::blocks * plan::threads, results = work->box.outer * work->box.inner;
    const auto kernel = exact_columns_fold<Element>;
    struct logits_columns cut;
    if (results * work->box.length < together * words::rows * words::side
        || !columns_cut<Element>(work, plan::threads, EXACT_COLUMNS_SHAPE.rounds * together, partial_bytes, &cut))
        return cudaSuccess;
    const bool is_end = work->finish != nullptr && cut.rows.splits == 1;
    const cudaLaunchConfig_t config = launch_config(cut.blocks * cut.rows.splits, plan::threads, stream);
    if (cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared) != cudaSuccess)
        cudaGetLastError(); /* it is a hint */
    *launched = true;
    const cudaError_t code = cudaLaunchKernelEx(&config, kernel, cut, ends_of(work));
    return code == cudaSuccess && !is_end ? (cudaError_t)rows_end(work, cut.rows.splits, stream) : code;
}

int exact_columns_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    *launched = false;
    if (work->monoid != MONOID_sumexp_f64_exact)
        return cudaSuccess;
    return with_element(work->type, [=](auto element) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (Element::is_floating && sizeof(typename Element::stored) <= 4)
            return columns_launch<Element>(work, multiprocessors, stream, launched);
        return cudaSuccess;
    });
}

template <class Element> static cudaError_t whole_launch(const struct work *work, const struct fold_space *space, void *stream, bool *launched)
{
    typedef exact_rows_plan<false> plan;
    constexpr struct exact_rows_shape shape = exact_rows_shape_of(false);
    constexpr uint64_t step = plan::threads * 16; /* elements of a block's warps together */
    const auto kernel = exact_whole_fold<Element>;
    const uint64_t most = (uint64_t)space->multiprocessors * plan::blocks * shape.rounds, steps = (work->n + step - 1) / step;
    const uint64_t each = u64_max(1, (steps + most - 1) / most);
    cudaLaunchConfig_t config = launch_config((steps + each - 1) / each, plan::threads, stream);
    static_assert(plan::blocks * shape.rounds <= FOLD_BLOCKS_MAX, "room for messages");
    if (steps < most * shape.tiles / 2 || each * step > INT32_MAX || !stage_make<Element>(kernel, plan::threads, &config.dynamicSmemBytes))
        return cudaSuccess;
    *launched = true;
    return cudaLaunchKernelEx(&config, kernel, (const typename Element::stored *)work->x, work->n, (uint32_t)(each * step), (uint64_t *)space->scratch,
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
