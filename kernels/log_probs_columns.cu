/* Sums of exponentials of columns at level fast.

     columns_sumexp   a block has columns that lie side by side, or a split of them; a thread has one, or two of 16 bits, which share a word
         each thread: the sum of the terms of its elements, as of those of a row
         the block, a thread a column: combines what its members have, and finishes the result, or stores the partial

   Splits are combined by the kernels of axis_VALUE.cu. Columns at level exact: log_probs_exact.cu. All others are folded by axis_VALUE.cu. */
#include "kernels/log_probs_fast.cuh"

template <class Element, bool half>
static __global__ void __launch_bounds__(LOGITS_SHAPE.threads, LOGITS_SHAPE.blocks_columns)
columns_sumexp(const __grid_constant__ struct logits_columns cut, const __grid_constant__ struct logits_ends ends, enum terms terms)
{
    typedef column_words<Element> words;
    typedef fast_partial<false> Partial;
    typedef fast_row<Element, false, words::vectors, half> row;
    constexpr int side = words::side;
    __shared__ typename Partial::type found[LOGITS_SHAPE.threads * side];
    column_walk<Element> walk(cut);
    row of[side];
#pragma unroll
    for (int s = 0; s < side; s++)
        of[s].start(0);
    walk.for_each([&](int s, const uint4 *x) { of[s].take(x, 0); });
#pragma unroll
    for (int s = 0; s < side; s++) {
        const float max = of[s].template end<1>();
        typename Partial::type partial = Partial::of(of[s], max != max ? (double)-INFINITY : (double)max, 0);
        row::close(&partial, terms);
        found[threadIdx.x * side + s] = partial;
    }
    __syncthreads();
    columns_end(cut, walk, [&](uint32_t i) { return &found[i]; }, Partial::combine, [&](const typename Partial::type *partial, uint64_t r) {
        if constexpr (!half)
            if (ends.finishes && cut.rows.splits == 1)
                return result_finish<MONOID_sumexp_quick>(*partial, ends.finish, r);
        partial_store(*partial, cut.rows, r, walk.split);
        if (cut.rows.window != nullptr && cut.rows.splits == 1)
            partial_send(*partial, cut.rows.window, r);
    });
}

template <class Element, bool half> static cudaError_t type_start(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    typedef column_words<Element> words;
    constexpr uint32_t threads = LOGITS_SHAPE.threads;
    const uint64_t together = (uint64_t)multiprocessors * LOGITS_SHAPE.blocks_columns * threads;
    struct logits_columns cut;
    if (work->box.outer * work->box.length * work->box.inner < together * words::rows * words::side
        || !columns_cut<Element>(work, threads, LOGITS_SHAPE.rounds * together, PARTIAL_STRIDE<fast_partial<false>::type>, &cut))
        return cudaSuccess;
    const cudaLaunchConfig_t config = launch_config(cut.blocks * cut.rows.splits, threads, stream);
    *launched = true;
    const cudaError_t code = cudaLaunchKernelEx(&config, columns_sumexp<Element, half>, cut, ends_of(work), monoid_facts[work->monoid].terms);
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
