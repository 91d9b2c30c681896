/* Log-probabilities of rows, and their gradient.

     logits_rows_fold   at level fast, rows whose elements lie side by side; a block has a row, or a split of it
         each thread, tile by tile: the maximum so far, and where it was; the sum of terms, and of terms times elements, relative to it
         the block: brings all sums to one maximum and adds them; the first place that has the maximum
     logits_end         each thread: marks the partial of a row with its target's element; the row's results
     gradient_*         constants of each row; then the second pass of softmax; then the targets' elements

     logits_counted_fold   the same of bf16 at level exact: an element's term is a function of its 16 bits, and a row has few distinct values
         each thread, tile by tile: counts its elements, by value, in the block's memory; the few that have no counter are listed there
         each thread: the terms and weights of some of the values, times how often they are in the row; then of listed elements
         the block: adds all sums, which are integers; the first place that has the maximum
   All other rows are folded by the kernels of axis_VALUE.cu. */
#define EXACT_TOTAL_DIGITS 48
#define FAMILY f32
#include "kernels/axis_finish.cuh"
#include "kernels/axis_softmax_fast.cuh"
#include "kernels/kernels.h"

#include "fold/targets.h"

/* ---- partials become results */

/* What becomes of the partials of some rows: they get their marks, if there are targets, and results are made of them, or they are stored. */
struct logits_ends {
    struct axis_targets targets;
    const void *x;
    allfold_type type;
    struct box box;
    uint64_t first; /* the index along the axis of x[0] */
    bool finishes;
    struct axis_finish finish;
};

static struct logits_ends ends_of(const struct axis_work *work)
{
    struct logits_ends ends = {work->targets, work->x, work->type, work->box, work->first, work->finish != nullptr, {}};
    if (ends.finishes)
        ends.finish = *work->finish;
    return ends;
}

static __device__ __forceinline__ allfold_status partial_results(const struct logits &partial, const struct finish *finish)
{
    return log_probs_finish_f32(&partial, finish);
}
static __device__ __forceinline__ allfold_status partial_results(const struct logits_exact &partial, const struct finish *finish)
{
    return log_probs_exact_finish_f32(&partial, finish);
}

template <class Partial> static __device__ __forceinline__ void partial_mark(Partial *partial, const struct logits_ends &ends, uint64_t r)
{
    if (ends.targets.of != nullptr)
        mark_combine(&partial->target, target_mark(&ends.targets, r, ends.x, ends.type, &ends.box, ends.first));
}

template <class Partial> static __device__ __forceinline__ void partial_end(const Partial &partial, const struct logits_ends &ends, uint64_t r)
{
    const struct axis_finish &call = ends.finish;
    struct fold_results found;
    struct error error;
    const uint64_t place = call.first + result_place(r, call.run, call.step);
    const struct finish finish = {call.count, call.nan, call.ddof, call.format, false, &found, &error, nullptr, nullptr};
    found.field_count = 0;
    if (partial_results(partial, &finish) != ALLFOLD_OK)
        *call.refused = 1;
    else
#pragma unroll
        for (int i = 0; i < 4; i++)
            result_store(&found.fields[i], &call.of[i], place);
    result_tell(call, r);
}

template <class Partial>
static __global__ void __launch_bounds__(AXIS_SHAPE.threads)
logits_end(unsigned char *partials, size_t stride, uint64_t count, const __grid_constant__ struct logits_ends ends)
{
    const uint64_t r = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= count)
        return;
    Partial *const partial = (Partial *)(partials + r * stride);
    partial_mark(partial, ends, r);
    if (ends.finishes)
        partial_end(*partial, ends, r);
}

template <class Partial> static int end_start(const struct axis_work *work, void *stream)
{
    const uint64_t count = work->box.outer * work->box.inner;
    const cudaLaunchConfig_t config = launch_config((count + AXIS_SHAPE.threads - 1) / AXIS_SHAPE.threads, AXIS_SHAPE.threads, stream);
    return cudaLaunchKernelEx(&config, logits_end<Partial>, (unsigned char *)work->partials, partial_bytes_aligned(sizeof(Partial)), count,
                              ends_of(work));
}

int logits_end_launch(const struct axis_work *work, void *stream)
{
    if (work->box.outer * work->box.inner == 0 || (work->targets.of == nullptr && work->finish == nullptr))
        return cudaSuccess;
    return work->monoid == MONOID_logits ? end_start<struct logits>(work, stream) : end_start<struct logits_exact>(work, stream);
}

/* ---- rows at level fast */

/* A thread's sums, relative to exp(max). */
struct row_logits {
    float max; /* -inf before there is any element above it */
    bool nan;
    uint32_t best; /* the first vector of the tile in which max is */
    double sum, weighted;
};

/* Adds the terms of a tile, of which none is larger than the maximum: of 16 bits by a GPU's own exp2. What is further below than 2^-200 adds
   nothing. */
template <class Element, int vectors>
static __device__ __forceinline__ void tile_terms(struct row_logits *row, const uint4 *x)
{
    typedef typename Element::stored stored;
    constexpr int count = vectors * Element::per_vector;
    const float from = is_finite((double)row->max) ? row->max : 0.0f;
    float weighted[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    if constexpr (sizeof(stored) == 2) {
        float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int i = 0; i < count; i++) {
            const float y = (Element::load(vector_element<stored>(x[i / Element::per_vector], i % Element::per_vector)) - from) * 0x1.715476p0f;
            const float below = fmaxf(y, -200.0f), term = exp2_short(below);
            sum[i % 4] += term;
            weighted[i % 4] = fmaf(term, below, weighted[i % 4]);
        }
        row->sum += (double)((sum[0] + sum[1]) + (sum[2] + sum[3]));
        row->weighted -= (double)((weighted[0] + weighted[1]) + (weighted[2] + weighted[3])) * EXP_LN2;
    } else {
        struct exp_anchor_f32 anchor = exp_anchor_f32(0.0, SOFTMAX_RANGE_F32);
        double sum = 0.0;
        anchor.base = from;
#pragma unroll
        for (int i = 0; i < count; i++) {
            const float element = Element::load(vector_element<stored>(x[i / Element::per_vector], i % Element::per_vector));
            const float term = exp_quick_f32(element, &anchor);
            sum += (double)term;
            weighted[i % 4] = fmaf(term, fminf(from - element, 200.0f), weighted[i % 4]);
        }
        row->sum += sum * power_of_two(-SOFTMAX_UP_F32);
        row->weighted += (double)((weighted[0] + weighted[1]) + (weighted[2] + weighted[3])) * power_of_two(-SOFTMAX_UP_F32);
    }
}

/* Brings the sums to a maximum that is no smaller. */
static __device__ __forceinline__ void row_rescale(struct row_logits *row, float max)
{
    const double below = (double)row->max - (double)max;
    const float factor = row->max == max ? 1.0f : exp2_short(fmaxf((row->max - max) * 0x1.715476p0f, -200.0f));
    if (row->max == max || row->max == -INFINITY)
        return;
    row->weighted = (double)factor * (row->weighted - (factor > 0.0f ? below : 0.0) * row->sum);
    row->sum *= (double)factor;
}

/* A row's elements in vectors; in the last, what is behind the end is -inf. */
template <class Element> struct row_vectors {
    const typename Element::stored *x;
    uint32_t length;
    __device__ __forceinline__ uint4 at(uint32_t v) const
    {
        constexpr uint32_t count = Element::per_vector;
        if ((v + 1) * count <= length)
            return load_read_only(x + v * count);
        uint4 vector = least_vector<Element>();
        if (v * count >= length)
            return vector;
        typename Element::stored elements[count];
#pragma unroll
        for (uint32_t i = 0; i < count; i++)
            elements[i] = v * count + i < length ? x[v * count + i] : vector_element<typename Element::stored>(vector, (int)i);
        return vector_of(elements);
    }
};

/* The first of a thread's elements, in `vectors` vectors that are `step` apart, that is the maximum, or NaN. */
template <class Element>
static __device__ __forceinline__ uint32_t row_place(const row_vectors<Element> &row, uint32_t first, uint32_t end, uint32_t step, float max)
{
    for (uint32_t v = first; v < end; v += step) {
        const uint4 x = row.at(v);
#pragma unroll
        for (uint32_t i = 0; i < Element::per_vector; i++) {
            const float element = Element::load(vector_element<typename Element::stored>(x, (int)i));
            if (max != max ? element != element : element == max)
                return v * Element::per_vector + i;
        }
    }
    return UINT32_MAX;
}

/* The first place of a block's maximum, or of its first NaN; UINT32_MAX: there is none above -inf. */
template <int threads, class Element>
static __device__ __forceinline__ uint32_t block_place(const row_vectors<Element> &elements, const struct row_logits &row, uint32_t begin, uint32_t end, float max)
{
    uint32_t place = UINT32_MAX;
    if (max != max && row.nan)
        place = row_place(elements, begin + threadIdx.x, end, threads, NAN);
    else if (max > -INFINITY && row.max == max)
        place = row_place(elements, row.best, end, threads, max);
    group_share<threads>(&place, threads, [](uint32_t *a, uint32_t b) { *a = b < *a ? b : *a; });
    return place;
}

/* How rows are cut among blocks: `splits` of them have one row, `chunk` vectors each. */
struct logits_rows {
    const void *x;
    uint64_t results, stride; /* of rows, in elements */
    uint32_t length, splits, chunk;
    unsigned char *partials;
};

template <class Partial> constexpr size_t PARTIAL_STRIDE = partial_bytes_aligned(sizeof(Partial));

/* A block has its row's partial, or that of a split. */
template <class Partial>
static __device__ __forceinline__ void block_end(const Partial &partial, const struct logits_rows &rows, const struct logits_ends &ends, uint64_t r, uint32_t split)
{
    if (ends.finishes && rows.splits == 1)
        partial_end(partial, ends, r);
    else
        *(Partial *)(rows.partials + (split * rows.results + r) * PARTIAL_STRIDE<Partial>) = partial;
}

template <class Element>
static __global__ void __launch_bounds__(LOGITS_SHAPE.threads, sizeof(typename Element::stored) == 2 ? LOGITS_SHAPE.blocks : LOGITS_SHAPE.blocks_f32)
logits_rows_fold(const __grid_constant__ struct logits_rows rows, const __grid_constant__ struct logits_ends ends)
{
    constexpr int threads = LOGITS_SHAPE.threads, vectors = LOGITS_SHAPE.vectors;
    const uint64_t r = blockIdx.x / rows.splits;
    const uint32_t split = blockIdx.x % rows.splits, all = (rows.length + Element::per_vector - 1) / Element::per_vector;
    const uint32_t begin = split * rows.chunk, end = begin + rows.chunk < all ? begin + rows.chunk : all;
    const row_vectors<Element> elements = {(const typename Element::stored *)rows.x + r * rows.stride, rows.length};
    struct row_logits row = {-INFINITY, false, begin, 0.0, 0.0};
    struct logits partial = logits_of_nothing();
    if (threadIdx.x == 0 && split == 0) /* its loads are under way meanwhile */
        partial_mark(&partial, ends, r);
#pragma unroll 1
    for (uint32_t v = begin + threadIdx.x; v < end; v += threads * vectors) {
        uint4 x[vectors];
#pragma unroll
        for (int i = 0; i < vectors; i++)
            x[i] = v + i * threads < end ? elements.at(v + i * threads) : least_vector<Element>();
        float largest = -INFINITY;
        vectors_max<Element, vectors>(&largest, x);
        if (!(largest <= row.max)) {
            row.nan |= largest != largest;
            row_rescale(&row, largest);
            row.max = largest > row.max ? largest : row.max;
            row.best = v;
        }
        tile_terms<Element, vectors>(&row, x);
    }
    float max = row.nan ? (float)NAN : row.max;
    group_share<threads>(&max, threads, [](float *a, float b) { *a = larger_f32(b, *a); });
    const bool nan = max != max;
    pair sums = {0.0, 0.0};
    if (is_finite((double)max) && !nan) {
        row_rescale(&row, max);
        sums = {row.max == -INFINITY ? 0.0 : row.sum, row.max == -INFINITY ? 0.0 : row.weighted};
    }
    group_share<threads>(&sums, threads, [](pair *a, const pair &b) { a->high += b.high; a->low += b.low; });
    const uint32_t place = block_place<threads>(elements, row, begin, end, max);
    if (threadIdx.x != 0)
        return;
    partial.max = nan ? (double)-INFINITY : (double)max;
    partial.sum = nan ? (double)NAN : sums.high;
    partial.weighted = sums.low;
    partial.index = place == UINT32_MAX ? ALLFOLD_NO_INDEX : ends.first + place;
    block_end(partial, rows, ends, r, split);
}

/* ---- rows of bf16 at level exact */

/* The elements that are counted: from 2^-9 to 2^7, of either sign, and 0. Others are listed. */
constexpr uint32_t COUNTED_LEAST = (127 - 9) << 7, COUNTED = 16 << 7, SIGN = 0x8000, LEAST_BF16 = 0xff80;
static __device__ __forceinline__ double bf16_value(uint32_t bits)
{
    float value;
    bits <<= 16;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}
struct row_counts {
    static constexpr uint32_t tile = LOGITS_EXACT_SHAPE.threads * LOGITS_EXACT_SHAPE.vectors * 8, room = 512;
    uint32_t counts[2 * COUNTED + 1], listed; /* the last counter is that of 0 */
    uint16_t list[room + tile];
    __device__ __forceinline__ void take(uint32_t bits)
    {
        const uint32_t at = (bits & ~SIGN) - COUNTED_LEAST;
        if (at < COUNTED)
            atomicAdd(&counts[at + (bits & SIGN) / SIGN * COUNTED], 1u);
        else if ((bits & ~SIGN) == 0)
            atomicAdd(&counts[2 * COUNTED], 1u);
        else if (bits != LEAST_BF16)
            list[atomicAdd(&listed, 1u)] = (uint16_t)bits;
    }
    /* Adds this thread's share of the listed elements. */
    __device__ __forceinline__ void add_listed(struct logits_exact *partial) const
    {
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i < listed; i += LOGITS_EXACT_SHAPE.threads)
            logits_exact_add(partial, bf16_value(list[i]));
    }
    /* Adds this thread's share of the values that were counted, none larger than the partial's maximum. */
    __device__ __forceinline__ void add_counted(struct logits_exact *partial) const
    {
        const auto times = [](struct exp_integer integer, uint32_t n) {
            return ((uint128)((uint64_t)integer.high * n) << EXP_LOW_BITS) + (uint64_t)integer.low * n;
        };
#pragma unroll 1
        for (uint32_t i = threadIdx.x; i <= 2 * COUNTED; i += LOGITS_EXACT_SHAPE.threads) {
            if (counts[i] == 0)
                continue;
            const double x = i == 2 * COUNTED ? 0.0 : bf16_value((i % COUNTED + COUNTED_LEAST) | i / COUNTED * SIGN);
            uint64_t place;
            const struct exp_integer term = exp_integer_f64(x, &place), weight = exp_weight_f64(x, term, place);
            const int64_t lower = partial->bins.bin - (exp_place_f64(place) >> 5);
            exp_bins_take(&partial->bins, lower, times(term, counts[i]) << (place & 31));
            exp_bins_take(&partial->weights, lower, times(weight, counts[i]) << (place & 31));
        }
    }
};

/* Brings a partial to a maximum that is no smaller. */
static __device__ __forceinline__ void partial_raise(struct logits_exact *partial, float max)
{
    if (max > -INFINITY)
        logits_exact_raise(partial, (double)max, max == INFINITY ? -EXP_NO_BIN : (exp_whole_of((double)max).n + EXP_OFFSET) >> 5);
}

/* The block's sums of one kind. */
template <int threads> static __device__ __forceinline__ void bins_share(struct exp_bins *bins)
{
    struct group_bins sums;
    memcpy(sums.of, bins->sums, sizeof sums);
    group_share_sums<threads>(&sums, threads);
    memcpy(bins->sums, sums.of, sizeof sums);
    __syncthreads(); /* the memory that was shared is used again */
}

template <class Element>
static __global__ void __launch_bounds__(LOGITS_EXACT_SHAPE.threads, LOGITS_EXACT_SHAPE.blocks)
logits_counted_fold(const __grid_constant__ struct logits_rows rows, const __grid_constant__ struct logits_ends ends)
{
    constexpr int threads = LOGITS_EXACT_SHAPE.threads, vectors = LOGITS_EXACT_SHAPE.vectors;
    __shared__ struct row_counts own;
    const uint64_t r = blockIdx.x / rows.splits;
    const uint32_t split = blockIdx.x % rows.splits, all = (rows.length + Element::per_vector - 1) / Element::per_vector;
    const uint32_t begin = split * rows.chunk, end = begin + rows.chunk < all ? begin + rows.chunk : all;
    const row_vectors<Element> elements = {(const typename Element::stored *)rows.x + r * rows.stride, rows.length};
    struct row_logits row = {-INFINITY, false, begin, 0.0, 0.0};
    struct logits_exact partial = logits_exact_of_nothing();
    if (threadIdx.x == 0 && split == 0)
        partial_mark(&partial, ends, r);
    for (uint32_t i = threadIdx.x; i <= 2 * COUNTED; i += threads)
        own.counts[i] = 0;
    if (threadIdx.x == 0)
        own.listed = 0;
    __syncthreads();
#pragma unroll 1
    for (uint32_t first = begin; first < end; first += threads * vectors) {
        const uint32_t v = first + threadIdx.x;
        uint4 x[vectors];
#pragma unroll
        for (int i = 0; i < vectors; i++)
            x[i] = v + i * threads < end ? elements.at(v + i * threads) : least_vector<Element>();
        float largest = -INFINITY;
        vectors_max<Element, vectors>(&largest, x);
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
    group_share<threads>(&max, threads, [](float *a, float b) { *a = larger_f32(b, *a); });
    const uint32_t place = block_place<threads>(elements, row, begin, end, max);
    if (max == max) {
        partial_raise(&partial, max);
        own.add_listed(&partial);
        own.add_counted(&partial);
        bins_share<threads>(&partial.bins);
        bins_share<threads>(&partial.weights);
    }
    if (threadIdx.x != 0)
        return;
    partial.bins.nan = max != max;
    exp_bins_settle(&partial.bins);
    if (max != max)
        partial.weights = partial.bins;
    partial.index = place == UINT32_MAX ? ALLFOLD_NO_INDEX : ends.first + place;
    block_end(partial, rows, ends, r, split);
}

/* ---- the launch of both */

/* Rows that lie as vectors, and are long enough for a block each. */
static bool rows_fit(const struct axis_work *work, uint64_t least)
{
    const struct box *const box = &work->box;
    const size_t bytes = allfold_type_bytes(work->type);
    return bytes <= 4 && box->inner == 1 && box->axis_stride == 1 && box->length >= least && box->length < UINT32_MAX / 2
           && (uintptr_t)work->x % 16 == 0 && (box->outer == 1 || box->outer_stride * bytes % 16 == 0);
}

template <class Element>
static cudaError_t rows_start(const cudaLaunchConfig_t *config, bool exact, const struct logits_rows &rows, const struct logits_ends &ends)
{
    if constexpr (Element::type == ALLFOLD_BF16)
        if (exact)
            return cudaLaunchKernelEx(config, logits_counted_fold<Element>, rows, ends);
    if constexpr (Element::is_floating && sizeof(typename Element::stored) <= 4)
        return cudaLaunchKernelEx(config, logits_rows_fold<Element>, rows, ends);
    return cudaErrorInvalidValue;
}

int logits_rows_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    const bool exact = work->monoid == MONOID_logits_exact;
    const struct logits_shape shape = exact ? LOGITS_EXACT_SHAPE : LOGITS_SHAPE;
    *launched = false;
    if ((exact && work->type != ALLFOLD_BF16) || !rows_fit(work, shape.least))
        return cudaSuccess;
    const size_t partial_bytes = exact ? PARTIAL_STRIDE<struct logits_exact> : PARTIAL_STRIDE<struct logits>;
    const uint32_t each = shape.threads * shape.vectors, per_vector = (uint32_t)(16 / allfold_type_bytes(work->type));
    const uint32_t vectors = ((uint32_t)work->box.length + per_vector - 1) / per_vector;
    const uint64_t wanted = 2 * (uint64_t)multiprocessors * shape.blocks, room = work->bytes / (work->box.outer * partial_bytes * 2);
    uint64_t splits = u64_min(u64_max(1, wanted / work->box.outer), (vectors + each - 1) / each);
    splits = u64_max(1, u64_min(splits, room));
    struct logits_rows rows = {work->x, work->box.outer, work->box.outer_stride, (uint32_t)work->box.length, (uint32_t)splits,
                               (uint32_t)((vectors + splits - 1) / splits), (unsigned char *)work->partials};
    const struct logits_ends ends = ends_of(work);
    const cudaLaunchConfig_t config = launch_config(work->box.outer * splits, shape.threads, stream);
    *launched = true;
    int code = with_element(work->type, [=](auto element) { return rows_start<decltype(element)>(&config, exact, rows, ends); });
    if (code != cudaSuccess || splits == 1)
        return code;
    struct axis_work combining = *work;
    combining.finish = nullptr;
    combining.targets.of = nullptr;
    code = axis_parts_launch(&combining, splits, stream);
    combining.finish = work->finish;
    return code == cudaSuccess ? logits_end_launch(&combining, stream) : code;
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
        code = axis_normalise_launch(&work->softmax, work->constants, multiprocessors, stream);
    return code == cudaSuccess && work->targets.of != nullptr ? cudaLaunchKernelEx(&end, gradient_targets, *work, count) : code;
}
