/* Log-probabilities of rows, and their gradient; sums of exponentials of rows at level fast; places of the extremes of rows of 16 bits.

     logits_rows_fold   at level fast, rows whose elements lie side by side; a block has some of them, or a split of one
         each warp: takes a row after the other, or a part of each row, and adds its tiles
             each thread, tile by tile: the maximum so far, and where it was; the sum of terms, and of terms times distances, relative to an element near it
             the warp: brings all sums to one maximum and adds them; the first place that has the maximum
         the block, a thread a row: combines the parts, and finishes the result; of logsumexp, takes rows again if the terms of sumexp_half do not suffice
     logits_end         each thread: marks the partial of a row with its target's element; the row's results
     gradient_*         constants of each row; then the second pass of softmax; then the targets' elements

   Columns: log_probs_columns.cu; level exact: log_probs_exact.cu, log_probs_counted.cu. All others are folded by the kernels of axis_VALUE.cu. */
#include "kernels/log_probs_fast.cuh"

/* ---- partials become results */

template <class Partial> static __device__ __forceinline__ void partial_mark(Partial *partial, const struct logits_ends &ends, uint64_t r)
{
    if (ends.targets.of != nullptr)
        mark_combine(&partial->target, target_mark(&ends.targets, r, ends.x, ends.type, &ends.box, ends.first));
}

template <enum monoid monoid, class Partial>
static __global__ void __launch_bounds__(AXIS_SHAPE.threads)
logits_end(unsigned char *partials, size_t stride, uint64_t count, const __grid_constant__ struct logits_ends ends)
{
    const uint64_t r = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= count)
        return;
    Partial *const partial = (Partial *)(partials + r * stride);
    partial_mark(partial, ends, r);
    if (ends.finishes)
        result_finish<monoid>(*partial, ends.finish, r);
}

template <enum monoid monoid, class Partial> static int end_start(const struct axis_work *work, void *stream)
{
    const uint64_t count = work->box.outer * work->box.inner;
    const cudaLaunchConfig_t config = launch_config((count + AXIS_SHAPE.threads - 1) / AXIS_SHAPE.threads, AXIS_SHAPE.threads, stream);
    return cudaLaunchKernelEx(&config, logits_end<monoid, Partial>, (unsigned char *)work->partials, partial_bytes_aligned(sizeof(Partial)), count,
                              ends_of(work));
}

int logits_end_launch(const struct axis_work *work, void *stream)
{
    if (work->box.outer * work->box.inner == 0 || (work->targets.of == nullptr && work->finish == nullptr))
        return cudaSuccess;
    return work->monoid == MONOID_logits ? end_start<MONOID_logits, struct logits>(work, stream)
                                         : end_start<MONOID_logits_exact, struct logits_exact>(work, stream);
}

/* ---- rows at level fast */

/* What is found of a row: how a thread takes elements, what becomes of a warp's part, and of the row. marked: partials get marks of targets. placed: the maximum's place
   is wanted. */
template <class Of, bool weighted, bool half> struct sums_found {
    typedef Of Element;
    typedef fast_partial<weighted> Partial;
    typedef fast_row<Element, weighted, LOGITS_SHAPE.vectors, half> row;
    typedef fast_row<Element, false, LOGITS_SHAPE.vectors, true> tried;
    static constexpr bool negative = false, lowest_counts = false, placed = weighted, marked = weighted, finishes = !half, tries = !weighted && !half;
    static constexpr uint64_t least = LOGITS_SHAPE.least;
    static constexpr enum monoid monoid = weighted ? MONOID_logits : MONOID_sumexp_quick;
    static __device__ __forceinline__ typename Partial::type of(const row_logits &row, const row_vectors<Element> &, float max, uint32_t place, uint64_t first)
    {
        return Partial::of(row, max != max ? (double)-INFINITY : (double)max, place == UINT32_MAX ? ALLFOLD_NO_INDEX : first + place);
    }
};

/* The largest element of 16 bits, or the smallest: the largest of all with the other sign. */
template <class Of, bool smallest> struct extreme_found {
    typedef Of Element;
    static constexpr bool negative = smallest, lowest_counts = true, placed = true, marked = false, finishes = true, tries = false;
    static constexpr uint64_t least = LOGITS_SHAPE.least_extreme;
    static constexpr enum monoid monoid = smallest ? MONOID_argmin : MONOID_argmax;
    struct Partial {
        typedef fold_of<monoid, float> fold;
        typedef typename fold::partial type;
        static __device__ __forceinline__ void combine(type *a, type *b) { fold::combine(a, b); }
    };
    struct row : row_logits {
        static constexpr bool ends_at_nan = false;
        __device__ __forceinline__ void start(uint32_t)
        {
            max = -INFINITY;
            nan = false;
            best = UINT32_MAX; /* a warp may have no tile of a short split */
        }
        __device__ __forceinline__ void take(const uint4 *x, uint32_t v, float)
        {
            float largest = -INFINITY;
            vectors_extreme<Element, LOGITS_SHAPE.vectors>(&largest, x);
            nan |= largest != largest;
            best = largest > max || best == UINT32_MAX ? v : best;
            max = largest > max ? largest : max;
        }
        template <uint32_t members> __device__ __forceinline__ float end() const
        {
            float all_max = nan ? (float)NAN : max;
            lanes_share(&all_max, members, take_larger());
            return all_max;
        }
        static __device__ __forceinline__ void close(typename Partial::type *, enum terms) {}
    };
    static __device__ __forceinline__ typename Partial::type of(const row &, const row_vectors<Element, negative> &elements, float max, uint32_t place, uint64_t first)
    {
        typename Partial::type partial = Partial::fold::identity();
        if (max != max) {
            partial.nans = 1;
            partial.nan_index = first + place;
        } else if (place != UINT32_MAX) {
            partial.value = Element::load(elements.x[place]);
            partial.index = first + place;
        }
        return partial;
    }
};

/* What a block has of the rows: `items` of them, or of their splits. Each is cut among 2^cut_bits of its warps. terms: of the monoid. */
struct rows_block {
    uint32_t items, cut_bits;
    enum terms terms;
    bool tries; /* terms of sumexp_half first */
    struct trial trial;
};

/* What the block's warps find of the items that are wanted. least: of a trial. */
template <class Found, class Row, class Wanted>
static __device__ __forceinline__ void rows_take(const struct logits_rows &rows, const struct rows_block &block, uint64_t first, uint32_t items, uint64_t index, float least,
                                                 typename Found::Partial::type *found, const Wanted &wanted)
{
    constexpr uint32_t threads = LOGITS_SHAPE.threads, lanes = 32, vectors = LOGITS_SHAPE.vectors, tile = lanes * vectors;
    const uint32_t lane = threadIdx.x % lanes, cut = 1u << block.cut_bits;
#pragma unroll 1
    for (uint32_t part = threadIdx.x / lanes; part < items << block.cut_bits; part += threads / lanes) {
        if (!wanted(part >> block.cut_bits))
            continue;
        const row_item<typename Found::Element, Found::negative> item(rows, first + (part >> block.cut_bits));
        Row row;
        uint32_t begin = item.begin + part % cut * tile;
        const uint4 *next = (const uint4 *)item.elements.x + begin + lane;
        row.start(item.begin);
#pragma unroll 1
        for (; begin < item.end; begin += cut * tile, next += cut * tile) {
            uint4 x[vectors];
            if (begin + tile <= item.whole) {
#pragma unroll
                for (uint32_t i = 0; i < vectors; i++)
                    x[i] = item.elements.load(next + i * lanes);
            } else {
#pragma unroll
                for (uint32_t i = 0; i < vectors; i++)
                    x[i] = item.elements.at(begin + lane + i * lanes);
            }
            row.take(x, begin + lane, least);
            if (Row::ends_at_nan && row.nan)
                break;
        }
        const float max = row.template end<lanes>();
        uint32_t place = UINT32_MAX;
        if constexpr (Found::placed)
            place = group_place<(int)lanes, Found::lowest_counts>(item.elements, row, item.begin, item.end, max);
        if (lane == 0)
            found[part] = Found::of(row, item.elements, max, place, index);
    }
    __syncthreads();
}

/* The parts of an item, combined. */
template <class Found, class Row>
static __device__ __forceinline__ typename Found::Partial::type item_partial(const typename Found::Partial::type *found, uint32_t item, const struct rows_block &block)
{
    found += item << block.cut_bits;
    typename Found::Partial::type partial = found[0];
    Row::close(&partial, block.terms);
#pragma unroll 1
    for (uint32_t part = 1; part < 1u << block.cut_bits; part++) {
        typename Found::Partial::type other = found[part];
        Row::close(&other, block.terms);
        Found::Partial::combine(&partial, &other);
    }
    return partial;
}

template <class Found>
static __global__ void __launch_bounds__(LOGITS_SHAPE.threads, sizeof(typename Found::Element::stored) == 2 ? LOGITS_SHAPE.blocks : LOGITS_SHAPE.blocks_f32)
logits_rows_fold(const __grid_constant__ struct logits_rows rows, const __grid_constant__ struct rows_block block,
                 const __grid_constant__ struct logits_ends ends)
{
    typedef typename Found::Partial::type partial_type;
    typedef typename Found::row row;
    __shared__ partial_type found[LOGITS_SHAPE.threads];
    const uint64_t first = (uint64_t)blockIdx.x * block.items, left = rows.results * rows.splits - first;
    const uint32_t items = left < block.items ? (uint32_t)left : block.items;
    const uint64_t at = first + threadIdx.x; /* the item that this thread will finish */
    bool unfinished = threadIdx.x < items;
    uint64_t mark = MARK_NONE;
    if (Found::marked && unfinished && rows.splits == 1 && ends.targets.of != nullptr) /* its loads are under way meanwhile */
        mark = target_mark(&ends.targets, at, ends.x, ends.type, &ends.box, ends.first);
    const auto end = [&](partial_type partial) {
        if constexpr (Found::marked)
            partial.target = mark;
        if (Found::finishes && ends.finishes && rows.splits == 1)
            return result_finish<Found::monoid>(partial, ends.finish, at);
        partial_store(partial, rows, at / rows.splits, (uint32_t)(at % rows.splits));
        if (rows.window != nullptr && rows.splits == 1)
            partial_send(partial, rows.window, at);
    };
    const auto all = [](uint32_t) { return true; };
    if constexpr (Found::tries) {
        typedef typename Found::tried tried;
        __shared__ bool again[LOGITS_SHAPE.threads];
        if (block.tries) {
            rows_take<Found, tried>(rows, block, first, items, ends.first, block.trial.least(), found, all);
            if (unfinished) {
                const partial_type partial = item_partial<Found, tried>(found, threadIdx.x, block);
                unfinished = !block.trial.suffices(partial);
                if (!unfinished)
                    end(partial);
            }
        }
        again[threadIdx.x] = unfinished;
        __syncthreads();
        rows_take<Found, row>(rows, block, first, items, ends.first, -INFINITY, found, [&](uint32_t item) { return again[item]; });
    } else {
        rows_take<Found, row>(rows, block, first, items, ends.first, -INFINITY, found, all);
    }
    if (unfinished)
        end(item_partial<Found, row>(found, threadIdx.x, block));
}

/* A device has work for some times the warps that it has room for: so many that it does not matter when the last ones end, so few that blocks have
   several rows to finish, if these are short. Few rows are split so that all blocks run at once, if they nearly fill the device. */
template <class Found> static cudaError_t rows_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    constexpr uint32_t warps = LOGITS_SHAPE.threads / 32, tile = 32 * LOGITS_SHAPE.vectors;
    constexpr uint64_t rounds = LOGITS_SHAPE.rounds, blocks = sizeof(typename Found::Element::stored) == 2 ? LOGITS_SHAPE.blocks : LOGITS_SHAPE.blocks_f32;
    const uint64_t room = (uint64_t)multiprocessors * blocks, together = room * warps, elements = work->box.outer * work->box.length;
    if (work->box.length < Found::least || (!Found::marked && elements < together * tile * Found::Element::per_vector))
        return cudaSuccess;
    const struct logits_rows rows = rows_cut(work, logits_wanted(work->box.outer, room), warps * tile, PARTIAL_STRIDE<typename Found::Partial::type>);
    const uint64_t items = rows.results * rows.splits;
    struct rows_block block = {1, 2, monoid_facts[work->monoid].terms, work->monoid == MONOID_sumexp_quick, {logf((float)rows.chunk * Found::Element::per_vector)}};
    static_assert(warps == 4, "as many as a row is cut among");
    if (items >= rounds * together / 2 || work->box.length <= tile * Found::Element::per_vector)
        block.items = (uint32_t)(warps * u64_max(1, u64_min(32, items / (rounds * together)))), block.cut_bits = 0;
    const cudaLaunchConfig_t config = launch_config((items + block.items - 1) / block.items, LOGITS_SHAPE.threads, stream);
    *launched = true;
    const cudaError_t code = cudaLaunchKernelEx(&config, logits_rows_fold<Found>, rows, block, ends_of(work));
    return code == cudaSuccess && rows.splits > 1 ? (cudaError_t)rows_end(work, rows.splits, stream) : code;
}

/* Places of extremes, where NaN is one, of 16 bits: for those of f32 the kernels of any axis are as fast. */
static bool is_extreme(const struct axis_work *work)
{
    return (work->monoid == MONOID_argmax || work->monoid == MONOID_argmin) && allfold_type_bytes(work->type) == 2 && work->finish != nullptr
           && work->finish->nan == ALLFOLD_NAN_PROPAGATE;
}

/* Without targets, few elements, whose time a second launch would double, are for other kernels. */
int logits_rows_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    *launched = false;
    if ((work->monoid != MONOID_logits && !sums_taken(work) && !is_extreme(work)) || !rows_fit(work))
        return cudaSuccess;
    return with_logits_element(work, [=](auto element, auto half) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (!half.value) {
            if (work->monoid == MONOID_logits)
                return rows_launch<sums_found<Element, true, false>>(work, multiprocessors, stream, launched);
            if constexpr (sizeof(typename Element::stored) == 2) {
                if (work->monoid == MONOID_argmax)
                    return rows_launch<extreme_found<Element, false>>(work, multiprocessors, stream, launched);
                if (work->monoid == MONOID_argmin)
                    return rows_launch<extreme_found<Element, true>>(work, multiprocessors, stream, launched);
            }
        }
        return rows_launch<sums_found<Element, false, half.value>>(work, multiprocessors, stream, launched);
    });
}

/* ---- the gradient */

static __global__ void __launch_bounds__(AXIS_SHAPE.threads) gradient_constants(const __grid_constant__ struct gradient_work work, uint64_t count)
{
    const uint64_t r = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (r < count)
        gradient_begin(&work, r);
}

/* A warp a row. */
static __global__ void __launch_bounds__(AXIS_SHAPE.threads) gradient_targets(const __grid_constant__ struct gradient_work work, uint64_t count)
{
    const uint64_t r = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / 32;
    if (r < count)
        gradient_end(&work, r, threadIdx.x % 32, 32);
}

int gradient_launch(const struct gradient_work *work, int multiprocessors, void *stream)
{
    const uint64_t count = work->softmax.box.outer * work->softmax.box.inner, threads = AXIS_SHAPE.threads;
    const cudaLaunchConfig_t begin = launch_config((count + threads - 1) / threads, (int)threads, stream);
    const cudaLaunchConfig_t end = launch_config((32 * count + threads - 1) / threads, (int)threads, stream);
    if (count == 0)
        return cudaSuccess;
    int code = cudaLaunchKernelEx(&begin, gradient_constants, *work, count);
    if (code == cudaSuccess)
        code = normalise_launch(&work->softmax, work->constants, nullptr, multiprocessors, stream);
    return code == cudaSuccess && work->targets.of != nullptr ? cudaLaunchKernelEx(&end, gradient_targets, *work, count) : code;
}
