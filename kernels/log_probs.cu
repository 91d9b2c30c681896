/* Log-probabilities of rows, and their gradient; sums of exponentials of rows at level fast.

     logits_rows_fold   at level fast, rows whose elements lie side by side; a block has some of them, or a split of one
         each warp: takes a row after the other, or a part of each row, and adds its tiles
             each thread, tile by tile: the maximum so far, and where it was; the sum of terms, and of terms times distances, relative to an element near it
             the warp: brings all sums to one maximum and adds them; the first place that has the maximum
         the block, a thread a row: combines the parts, and finishes the result
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

/* Partials: sums of exponentials alone, or all that log-probabilities need. */
template <bool weighted> struct fast_partial {
    typedef sumexp_quick_f32 type;
    static __device__ __forceinline__ type of(const struct row_logits &row, double max, uint64_t) { return {max, {row.sum, 0.0}}; }
    static __device__ __forceinline__ void combine(type *a, type *b) { sumexp_quick_combine_f32(a, b); }
};
template <> struct fast_partial<true> {
    typedef struct logits type;
    static __device__ __forceinline__ type of(const struct row_logits &row, double max, uint64_t index)
    {
        return {max, row.sum, row.weights, index, MARK_NONE};
    }
    static __device__ __forceinline__ void raise(type *partial, double max)
    {
        if (partial->max == max)
            return;
        const double distance = max - partial->max, factor = is_finite(distance) ? (double)exp2_short(fmaxf((float)distance * -0x1.715476p0f, -200.0f)) : 0.0;
        partial->weighted = factor > 0.0 ? factor * fma(distance, partial->sum, partial->weighted) : 0.0;
        partial->sum *= factor;
        partial->max = max;
    }
    /* As logits_combine, but the factors are a GPU's own exp2. */
    static __device__ __forceinline__ void combine(type *a, type *b)
    {
        const double max = a->max > b->max ? a->max : b->max;
        logits_index(&a->index, a->sum != a->sum, a->max, b->index, b->sum != b->sum, b->max);
        raise(a, max);
        raise(b, max);
        a->sum += b->sum;
        a->weighted += b->weighted;
    }
};

/* Elements of 16 bits, `least` in place of smaller ones. */
template <class Element> static __device__ __forceinline__ uint4 vector_at_least(const uint4 &x, float least)
{
#ifdef HAVE_EXTREME_HALVES
    const uint32_t both = round_two<Element>(least, least);
    const auto at_least = [both](uint32_t two) { return extreme_halves<Element::type == ALLFOLD_F16, false>(two, both); };
    return make_uint4(at_least(x.x), at_least(x.y), at_least(x.z), at_least(x.w));
#else
    float y[8];
    for (int i = 0; i < 8; i++)
        y[i] = fmaxf(Element::load(vector_element<typename Element::stored>(x, i)), least);
    return vector_rounded<Element>(y);
#endif
}

/* What a thread has of a row. Its sums are relative to the reference of `from`, an element that no other is `far` above: a power of two, as in
   fold/exponential.h, or, if there are weights, exp(from), so that `from` has the weight 0. What is above it then has a negative one; that
   cancels little, as neither of the two has nearly all of the probability. */
template <class Element, bool weighted> struct fast_row : row_logits {
    typedef typename Element::stored stored;
    static constexpr int vectors = LOGITS_SHAPE.vectors, count = vectors * Element::per_vector;
    static constexpr bool is_short = sizeof(stored) == 2;
    static constexpr float far = weighted ? 2.0f : 32.0f;
    float from;
    struct exp_anchor_f32 anchor;

    static __device__ __forceinline__ float element(const uint4 *x, int i)
    {
        return Element::load(vector_element<stored>(x[i / Element::per_vector], i % Element::per_vector));
    }
    /* As exp_anchor_f32. */
    __device__ __forceinline__ void anchor_to(float to)
    {
        const bool near = !weighted && fabsf(to) <= EXP_WHOLE;
        const float whole = near ? fmaf(to, 0x1.715476p0f, EXP_SHIFT_F32) - EXP_SHIFT_F32 : 0.0f;
        from = to;
        anchor.base = near || fabsf(to) == INFINITY ? 0.0f : to;
        anchor.least = (whole - SOFTMAX_RANGE_F32) * EXP_LN2_F32;
        anchor.shift = EXP_SHIFT_F32 - whole;
    }
    __device__ __forceinline__ void start(uint32_t first)
    {
        max = -INFINITY;
        nan = false;
        best = first;
        sum = weights = 0.0;
        anchor_to(-INFINITY);
    }
    /* to: larger than from, or equal. The factor is exact, unless there are weights, or one of the two is far from 0, as the result then is. */
    __device__ __forceinline__ void raise(float to)
    {
        const struct exp_anchor_f32 old = anchor;
        const float before = from;
        double factor = 0.0;
        if (before == to)
            return;
        anchor_to(to);
        if (before > -INFINITY && to < INFINITY) {
            const float whole = anchor.shift - old.shift;
            const double y = fma((double)old.base - (double)anchor.base, 0x1.71547652b82fep0, (double)whole);
            factor = old.base == anchor.base ? power_of_two((int)fmaxf(whole, -1000.0f)) : (double)exp2_short(fmaxf((float)y, -200.0f));
        }
        if (weighted)
            weights = factor > 0.0 ? factor * fma((double)to - (double)before, sum, weights) : 0.0;
        sum *= factor;
    }
    /* In place of what is smaller: of 16 bits and finite. */
    static __device__ __forceinline__ float least_of(float base)
    {
        return Element::type == ALLFOLD_F16 ? -0x1.ffcp15f : base < -0x1p99f ? -0x1.fep127f : -0x1p100f;
    }
    /* By a GPU's own exp2. The term of what is below `least` is 0, as that of `least` is; -inf times 0 would be NaN. low: `least` is no further below the base:
       the lowest numbers there are, beside which -inf and the padding must count nothing. */
    template <bool low> __device__ __forceinline__ void take_short_weighted(const uint4 *x)
    {
        const float least = least_of(anchor.base);
        float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f}, weighed[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int i = 0; i < count; i += Element::per_vector) {
            const uint4 vector = low ? x[i / Element::per_vector] : vector_at_least<Element>(x[i / Element::per_vector], least);
#pragma unroll
            for (int k = 0; k < Element::per_vector; k++) {
                const float distance = element(&vector, k) - anchor.base, above = low ? fmaxf(distance, -200.0f) : distance;
                const float term = exp2_short(above * 0x1.715476p0f);
                sums[k % 4] += term;
                weighed[k % 4] = fmaf(term, above, weighed[k % 4]);
            }
        }
        sum += (double)((sums[0] + sums[1]) + (sums[2] + sums[3]));
        weights -= (double)((weighed[0] + weighed[1]) + (weighed[2] + weighed[3]));
    }
    __device__ __forceinline__ void take_short(const uint4 *x)
    {
        double sums[2] = {0.0, 0.0};
#pragma unroll
        for (int i = 0; i < count; i += Element::per_vector) {
            const uint4 vector = vector_at_least<Element>(x[i / Element::per_vector], anchor.least + 16.0f /* may be rounded by half of that */);
#pragma unroll
            for (int k = 0; k < Element::per_vector; k++)
                sums[k % 2] += (double)exp_without_rest_f32(element(&vector, k), &anchor);
        }
        sum = fma(sums[0] + sums[1], power_of_two(-SOFTMAX_UP_F32), sum);
    }
    __device__ __forceinline__ void take_any(const uint4 *x, const struct exp_anchor_f32 &anchor)
    {
        double sums[2] = {0.0, 0.0};
        float weighed[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int i = 0; i < count; i++) {
            const float term = exp_quick_f32(element(x, i), &anchor);
            sums[i % 2] += (double)term;
            if (weighted)
                weighed[i % 4] = fmaf(term, fminf(anchor.base - element(x, i), 200.0f), weighed[i % 4]);
        }
        sum = fma(sums[0] + sums[1], power_of_two(-SOFTMAX_UP_F32), sum);
        if (weighted)
            weights = fma((double)((weighed[0] + weighed[1]) + (weighed[2] + weighed[3])), power_of_two(-SOFTMAX_UP_F32), weights);
    }
    __device__ __forceinline__ void take(const uint4 *x, uint32_t v)
    {
        float largest = -INFINITY;
        vectors_extreme<Element, vectors>(&largest, x);
        if (!(largest <= max)) {
            nan |= largest != largest;
            if (largest > from + far)
                raise(largest);
            max = largest > max ? largest : max;
            best = v;
        }
        if constexpr (is_short && weighted)
            anchor.base - least_of(anchor.base) < 200.0f ? take_short_weighted<true>(x) : take_short_weighted<false>(x);
        else if constexpr (is_short)
            anchor.base == 0.0f ? take_short(x) : take_any(x, anchor);
        else if (weighted || anchor.base != 0.0f)
            take_any(x, anchor);
        else
            take_any(x, {0.0f, anchor.least, anchor.shift}); /* nothing is subtracted */
    }
    /* The warp's maximum, NaN where an element is; and its sums, relative to that. All lanes call it. */
    __device__ __forceinline__ float end()
    {
        float all_max = nan ? (float)NAN : max;
        lanes_share(&all_max, 32, take_larger());
        if (is_finite((double)all_max))
            raise(all_max);
        else
            sum = weights = all_max != all_max ? (double)NAN : 0.0;
#pragma unroll
        for (uint32_t lanes = 16; lanes > 0; lanes /= 2) {
            sum += lane_xor(sum, lanes);
            if (weighted)
                weights += lane_xor(weights, lanes);
        }
        return all_max;
    }
    /* Makes up for the rest of ln 2 in the terms of exp_without_rest_f32. The maximum gets the term that will be taken out. */
    template <class Partial> static __device__ __forceinline__ void close(Partial *partial)
    {
        if constexpr (is_short && !weighted) {
            const float max = (float)partial->max;
            const struct exp_anchor_f32 anchor = exp_anchor_f32(is_finite(partial->max) ? partial->max : 0.0, SOFTMAX_RANGE_F32);
            if (!(fabsf(max) <= EXP_WHOLE))
                return;
            const double down = power_of_two(-SOFTMAX_UP_F32), others = fma(-(double)exp_without_rest_f32(max, &anchor), down, partial->sum.high);
            const double rest = (double)(anchor.shift - EXP_SHIFT_F32) * (double)EXP_LN2_REST_F32;
            partial->sum.high = fma(others, rest, others) + (double)exp_quick_f32(max, &anchor) * down;
        }
    }
};

/* What a block has of the rows: `items` of them, or of their splits. Each is cut among 2^cut_bits of its warps. */
struct rows_block {
    uint32_t items, cut_bits;
};

template <class Element, bool weighted>
static __global__ void __launch_bounds__(LOGITS_SHAPE.threads, sizeof(typename Element::stored) == 2 ? LOGITS_SHAPE.blocks : LOGITS_SHAPE.blocks_f32)
logits_rows_fold(const __grid_constant__ struct logits_rows rows, const __grid_constant__ struct rows_block block,
                 const __grid_constant__ struct logits_ends ends)
{
    typedef fast_partial<weighted> Partial;
    constexpr uint32_t threads = LOGITS_SHAPE.threads, lanes = 32, vectors = LOGITS_SHAPE.vectors, tile = lanes * vectors;
    __shared__ typename Partial::type found[threads];
    const uint32_t lane = threadIdx.x % lanes, cut = 1u << block.cut_bits;
    const uint64_t first = (uint64_t)blockIdx.x * block.items, left = rows.results * rows.splits - first;
    const uint32_t items = left < block.items ? (uint32_t)left : block.items;
    const uint64_t at = first + threadIdx.x; /* the item that this thread will finish */
    uint64_t mark = MARK_NONE;
    if (weighted && threadIdx.x < items && rows.splits == 1 && ends.targets.of != nullptr) /* its loads are under way meanwhile */
        mark = target_mark(&ends.targets, at, ends.x, ends.type, &ends.box, ends.first);
#pragma unroll 1
    for (uint32_t part = threadIdx.x / lanes; part < items << block.cut_bits; part += threads / lanes) {
        const row_item<Element> item(rows, first + (part >> block.cut_bits));
        fast_row<Element, weighted> row;
        uint32_t begin = item.begin + part % cut * tile;
        const uint4 *next = (const uint4 *)item.elements.x + begin + lane;
        row.start(item.begin);
#pragma unroll 1
        for (; begin < item.end; begin += cut * tile, next += cut * tile) {
            uint4 x[vectors];
            if (begin + tile <= item.whole) {
#pragma unroll
                for (uint32_t i = 0; i < vectors; i++)
                    x[i] = load_read_only(next + i * lanes);
            } else {
#pragma unroll
                for (uint32_t i = 0; i < vectors; i++)
                    x[i] = item.elements.at(begin + lane + i * lanes);
            }
            row.take(x, begin + lane);
        }
        const float max = row.end();
        uint32_t place = UINT32_MAX;
        if constexpr (weighted)
            place = group_place<(int)lanes>(item.elements, row, item.begin, item.end, max);
        if (lane == 0)
            found[part] = Partial::of(row, max != max ? (double)-INFINITY : (double)max, place == UINT32_MAX ? ALLFOLD_NO_INDEX : ends.first + place);
    }
    __syncthreads();
    if (threadIdx.x >= items)
        return;
    typename Partial::type partial = found[threadIdx.x << block.cut_bits];
    fast_row<Element, weighted>::close(&partial);
#pragma unroll 1
    for (uint32_t part = 1; part < cut; part++) {
        typename Partial::type other = found[(threadIdx.x << block.cut_bits) + part];
        fast_row<Element, weighted>::close(&other);
        Partial::combine(&partial, &other);
    }
    if constexpr (weighted)
        partial.target = mark;
    if (ends.finishes && rows.splits == 1)
        return result_finish<weighted ? MONOID_logits : MONOID_sumexp_quick>(partial, ends.finish, at);
    partial_store(partial, rows, at / rows.splits, (uint32_t)(at % rows.splits));
    if (rows.window != nullptr && rows.splits == 1)
        partial_send(partial, rows.window, at);
}

/* A device has work for some times the warps that it has room for: so many that it does not matter when the last ones end, so few that blocks have
   several rows to finish, if these are short. */
template <class Element, bool weighted> static int rows_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    constexpr uint32_t warps = LOGITS_SHAPE.threads / 32, tile = 32 * LOGITS_SHAPE.vectors, rounds = 6;
    const uint64_t together = (uint64_t)multiprocessors * LOGITS_SHAPE.blocks * warps, elements = work->box.outer * work->box.length;
    if (work->box.length < LOGITS_SHAPE.least || (!weighted && elements < together * tile * Element::per_vector))
        return cudaSuccess;
    const struct logits_rows rows = rows_cut(work, rounds * together / warps, warps * tile, PARTIAL_STRIDE<typename fast_partial<weighted>::type>);
    const uint64_t items = rows.results * rows.splits;
    struct rows_block block = {1, 2};
    static_assert(warps == 4, "as many as a row is cut among");
    if (items >= rounds * together / 2 || work->box.length <= tile * Element::per_vector)
        block = {(uint32_t)(warps * u64_max(1, u64_min(32, items / (rounds * together)))), 0};
    const cudaLaunchConfig_t config = launch_config((items + block.items - 1) / block.items, LOGITS_SHAPE.threads, stream);
    *launched = true;
    const int code = cudaLaunchKernelEx(&config, logits_rows_fold<Element, weighted>, rows, block, ends_of(work));
    return code == cudaSuccess && rows.splits > 1 ? rows_end(work, rows.splits, stream) : code;
}

/* Of sums alone, few elements, whose time a second launch would double, are for other kernels. */
int logits_rows_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    *launched = false;
    if ((work->monoid != MONOID_logits && work->monoid != MONOID_sumexp_quick) || !rows_fit(work))
        return cudaSuccess;
    return with_element(work->type, [=](auto element) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (Element::is_floating && sizeof(typename Element::stored) <= 4)
            return (cudaError_t)(work->monoid == MONOID_logits ? rows_launch<Element, true>(work, multiprocessors, stream, launched)
                                                               : rows_launch<Element, false>(work, multiprocessors, stream, launched));
        return cudaSuccess;
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
        code = axis_normalise_launch(&work->softmax, work->constants, multiprocessors, stream);
    return code == cudaSuccess && work->targets.of != nullptr ? cudaLaunchKernelEx(&end, gradient_targets, *work, count) : code;
}
