/* Log-probabilities of rows, and their gradient.

     logits_rows_fold   at level fast, rows whose elements lie side by side; a block has a row, or a split of it
         each thread, tile by tile: the maximum so far, and where it was; the sum of terms, and of terms times elements, relative to it
         the block: brings all sums to one maximum and adds them; the first place that has the maximum
     logits_end         each thread: marks the partial of a row with its target's element; the row's results
     gradient_*         constants of each row; then the second pass of softmax; then the targets' elements

   Rows at level exact: log_probs_exact.cu, log_probs_counted.cu. All others are folded by the kernels of axis_VALUE.cu. */
#define EXACT_TOTAL_DIGITS 48
#define FAMILY f32
#include "kernels/axis_finish.cuh"
#include "kernels/log_probs.cuh"

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
        vectors_extreme<Element, vectors>(&largest, x);
        if (!(largest <= row.max)) {
            row.nan |= largest != largest;
            row_rescale(&row, largest);
            row.max = largest > row.max ? largest : row.max;
            row.best = v;
        }
        tile_terms<Element, vectors>(&row, x);
    }
    float max = row.nan ? (float)NAN : row.max;
    group_share<threads>(&max, threads, take_larger());
    const bool nan = max != max;
    pair sums = {0.0, 0.0};
    if (is_finite((double)max) && !nan) {
        row_rescale(&row, max);
        sums = {row.max == -INFINITY ? 0.0 : row.sum, row.max == -INFINITY ? 0.0 : row.weighted};
    }
    group_share<threads>(&sums, threads, [](pair *a, const pair &b) { a->high += b.high; a->low += b.low; });
    const uint32_t place = group_place<threads>(elements, row, begin, end, max);
    if (threadIdx.x != 0)
        return;
    partial.max = nan ? (double)-INFINITY : (double)max;
    partial.sum = nan ? (double)NAN : sums.high;
    partial.weighted = sums.low;
    partial.index = place == UINT32_MAX ? ALLFOLD_NO_INDEX : ends.first + place;
    if (ends.finishes && rows.splits == 1)
        partial_end(partial, ends, r);
    else
        partial_store(partial, rows, r, split);
}

int logits_rows_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    *launched = work->monoid == MONOID_logits && work->box.length >= LOGITS_SHAPE.least && rows_fit(work);
    if (!*launched)
        return cudaSuccess;
    const uint64_t wanted = 2 * (uint64_t)multiprocessors * LOGITS_SHAPE.blocks;
    const struct logits_rows rows = rows_cut(work, wanted, LOGITS_SHAPE.threads * LOGITS_SHAPE.vectors, PARTIAL_STRIDE<struct logits>);
    const struct logits_ends ends = ends_of(work);
    const cudaLaunchConfig_t config = launch_config(rows.results * rows.splits, LOGITS_SHAPE.threads, stream);
    const int code = with_element(work->type, [=](auto element) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (Element::is_floating && sizeof(typename Element::stored) <= 4)
            return cudaLaunchKernelEx(&config, logits_rows_fold<Element>, rows, ends);
        return cudaErrorInvalidValue;
    });
    if (code != cudaSuccess || rows.splits == 1)
        return code;
    struct axis_work marked = *work;
    marked.targets.of = nullptr;
    return rows_end(&marked, rows.splits, stream);
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
