/* Log-probabilities of rows, and their gradient; sums of exponentials of rows and columns at level fast.

     rows_find, columns_find   (found.cuh)
         each thread, tile by tile: the maximum so far, and where it was; the sum of terms, and of terms times distances, relative to an element near it; of logsumexp,
         terms of sumexp_half are tried first
         a warp: brings all sums to one maximum and adds them; the first place that has the maximum
     logits_end                each thread: marks the partial of a row with its target's element; the row's results
     gradient_*                constants of each row; then the second pass of softmax; then the targets' elements

   Level exact: log_probs_exact.cu, log_probs_counted.cu. All others are folded by the kernels of axis_VALUE.cu. */
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
    return cudaLaunchKernelEx(&config, logits_end<monoid, Partial>, (unsigned char *)work->partials, PARTIAL_STRIDE<Partial>, count,
                              ends_of(work));
}

int logits_end_launch(const struct axis_work *work, void *stream)
{
    if (work->box.outer * work->box.inner == 0 || (work->targets.of == nullptr && work->finish == nullptr))
        return cudaSuccess;
    return work->monoid == MONOID_logits ? end_start<MONOID_logits, struct logits>(work, stream)
                                         : end_start<MONOID_logits_exact, struct logits_exact>(work, stream);
}

/* ---- level fast */

template <class Element, bool weighted, bool half> struct sums_found : found_quick<Element> {
    typedef fast_partial<weighted> Partial;
    typedef std::conditional_t<weighted || half, struct never, struct half_trial> trial;
    template <int vectors> using row = fast_row<Element, weighted, vectors, half>;
    template <int vectors> using column = row<vectors>;
    template <int vectors> using tried = fast_row<Element, false, vectors, true>;
    static constexpr bool turns = false, marked = weighted, finishes = !half;
    static bool placed(const struct axis_work *work) { return weighted && places_wanted(work); }
    static constexpr uint64_t least = weighted ? 256 : LEAST_TRIED, least_unaligned = least;
    static constexpr enum monoid monoid = weighted ? MONOID_logits : MONOID_sumexp_quick, monoid_turned = monoid;
    template <uint32_t lanes, class Item> static __device__ __forceinline__ uint32_t place(const row_logits &row, const Item &item, float max)
    {
        return weighted ? group_place<lanes>(item.elements, row, item.begin, item.end, max) : UINT32_MAX;
    }
    static __device__ __forceinline__ uint32_t column_place(const row_logits &, uint32_t) { return UINT32_MAX; }
    static __device__ __forceinline__ typename Partial::type of(const row_logits &row, float max, uint32_t place, uint64_t first)
    {
        return Partial::of(row, max != max ? (double)-INFINITY : (double)max, place == UINT32_MAX ? ALLFOLD_NO_INDEX : first + place);
    }
};

/* Of rows log-probabilities; sums of exponentials those of logsumexp, and those of the first pass of softmax. */
int logits_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    const enum monoid monoid = work->monoid;
    *launched = false;
    return with_element(work->type, [&](auto element) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (Element::is_floating && sizeof(typename Element::stored) <= 4) {
            constexpr bool is_short = sizeof(typename Element::stored) == 2;
            if (monoid == MONOID_logits)
                return rows_launch<sums_found<Element, true, false>>(work, multiprocessors, 0, stream, launched);
            if constexpr (is_short)
                if (monoid == MONOID_sumexp_half)
                    return find_launch<sums_found<Element, false, true>>(work, multiprocessors, 0, stream, launched);
            if (monoid == MONOID_sumexp_quick || (monoid == MONOID_sumexp && !is_short))
                return find_launch<sums_found<Element, false, false>>(work, multiprocessors, 0, stream, launched);
        }
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

/* Some members of a warp a row: a power of two. */
static __global__ void __launch_bounds__(AXIS_SHAPE.threads) gradient_targets(const __grid_constant__ struct gradient_work work, uint64_t count, uint32_t members)
{
    const uint64_t r = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / members;
    if (r < count)
        gradient_end(&work, r, threadIdx.x % members, members);
}

int gradient_launch(const struct gradient_work *work, int multiprocessors, void *stream)
{
    const uint64_t count = work->softmax.box.outer * work->softmax.box.inner, threads = AXIS_SHAPE.threads;
    uint32_t members = 1;
    if (count == 0)
        return cudaSuccess;
    while (members < 32 && members * GRADIENT_EACH < work->softmax.box.length)
        members *= 2;
    const cudaLaunchConfig_t begin = launch_config((count + threads - 1) / threads, (int)threads, stream);
    const cudaLaunchConfig_t end = launch_config((members * count + threads - 1) / threads, (int)threads, stream);
    int code = cudaLaunchKernelEx(&begin, gradient_constants, *work, count);
    if (code == cudaSuccess)
        code = normalise_launch(&work->softmax, work->constants, nullptr, multiprocessors, stream);
    return code == cudaSuccess && work->targets.of != nullptr ? cudaLaunchKernelEx(&end, gradient_targets, *work, count, members) : code;
}
