/* Sums of exponentials of columns at level fast.

     columns_sumexp   a block has columns that lie side by side, or a split of them; a thread has one, or two of 16 bits, which share a word; logsumexp
                      takes the terms of sumexp_half first, and others if these do not suffice
         each thread: the sum of the terms of its elements, as of those of a row
         the block, a thread a column: combines what its members have, and finishes the result, or stores the partial

   Splits are combined by the kernels of axis_VALUE.cu. Columns at level exact: log_probs_exact.cu. All others are folded by axis_VALUE.cu. */
#include "kernels/log_probs_fast.cuh"

/* What the block's threads find of its columns; least: of a trial. */
template <class Element, class Row>
static __device__ __forceinline__ column_walk<Element> columns_take(const struct logits_columns &cut, float least, enum terms terms, fast_partial<false>::type *found)
{
    typedef column_words<Element> words;
    constexpr int side = words::side;
    column_walk<Element> walk(cut);
    Row of[side];
#pragma unroll
    for (int s = 0; s < side; s++)
        of[s].start(0);
    walk.for_each([&](int s, const uint4 *x) {
        of[s].take(x, 0, least);
        if (Row::ends_at_nan && of[0].nan && of[side - 1].nan)
            walk.left = 0;
    });
#pragma unroll
    for (int s = 0; s < side; s++) {
        const float max = of[s].template end<1>();
        fast_partial<false>::type partial = fast_partial<false>::of(of[s], max != max ? (double)-INFINITY : (double)max, 0);
        Row::close(&partial, terms);
        found[threadIdx.x * side + s] = partial;
    }
    __syncthreads();
    return walk;
}

template <class Element, bool half>
static __global__ void __launch_bounds__(LOGITS_SHAPE.threads, LOGITS_SHAPE.blocks_columns)
columns_sumexp(const __grid_constant__ struct logits_columns cut, const __grid_constant__ struct logits_ends ends, enum terms terms, bool tries,
               const struct trial trial)
{
    typedef column_words<Element> words;
    typedef fast_partial<false>::type partial_type;
    typedef fast_row<Element, false, words::vectors, half> row;
    __shared__ partial_type found[LOGITS_SHAPE.threads * words::side];
    const auto part = [&](uint32_t i) { return &found[i]; };
    const auto end = [&](const partial_type &partial, uint32_t split, uint64_t r) {
        if constexpr (!half)
            if (ends.finishes && cut.rows.splits == 1)
                return result_finish<MONOID_sumexp_quick>(partial, ends.finish, r);
        partial_store(partial, cut.rows, r, split);
        if (cut.rows.window != nullptr && cut.rows.splits == 1)
            partial_send(partial, cut.rows.window, r);
    };
    if constexpr (!half)
        if (tries) {
            __shared__ bool again;
            if (threadIdx.x == 0)
                again = false;
            const column_walk<Element> walk = columns_take<Element, fast_row<Element, false, words::vectors, true>>(cut, trial.least(), terms, found);
            columns_end(cut, walk, part, fast_partial<false>::combine, [&](const partial_type *partial, uint64_t r) {
                if (trial.suffices(*partial))
                    end(*partial, walk.split, r);
                else
                    again = true;
            });
            __syncthreads();
            if (!again)
                return;
        }
    const column_walk<Element> walk = columns_take<Element, row>(cut, -INFINITY, terms, found);
    columns_end(cut, walk, part, fast_partial<false>::combine, [&](const partial_type *partial, uint64_t r) { end(*partial, walk.split, r); });
}

template <class Element, bool half> static cudaError_t type_start(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    typedef column_words<Element> words;
    constexpr uint32_t threads = LOGITS_SHAPE.threads;
    const uint64_t together = (uint64_t)multiprocessors * LOGITS_SHAPE.blocks_columns * threads;
    struct logits_columns cut;
    if (work->box.outer * work->box.length * work->box.inner < together * words::rows * words::side
        || !columns_cut<Element>(work, threads, logits_wanted(work->box.outer * work->box.inner / words::side, together), PARTIAL_STRIDE<fast_partial<false>::type>, &cut))
        return cudaSuccess;
    const cudaLaunchConfig_t config = launch_config(cut.blocks * cut.rows.splits, threads, stream);
    *launched = true;
    const cudaError_t code = cudaLaunchKernelEx(&config, columns_sumexp<Element, half>, cut, ends_of(work), monoid_facts[work->monoid].terms,
                                                work->monoid == MONOID_sumexp_quick && cut.rows.chunk >= TRIAL_LEAST, trial{logf((float)cut.rows.chunk)});
    return code == cudaSuccess && cut.rows.splits > 1 ? (cudaError_t)rows_end(work, cut.rows.splits, stream) : code;
}

int logits_columns_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    *launched = false;
    if (!sums_taken(work))
        return cudaSuccess;
    return with_logits_element(work, [&](auto element, auto half) {
        return type_start<decltype(element), half.value>(work, multiprocessors, stream, launched);
    });
}
