/* Sums of exponentials of columns at level fast.

     columns_sumexp   a block has columns that lie side by side, or a split of them; a thread has one, or two of 16 bits, which share a word
         each thread: the sum of the terms of its elements, as of those of a row
         the block, a thread a column: combines what its members have, and finishes the result, or stores the partial

   Splits are combined by the kernels of axis_VALUE.cu, which fold all other columns, too. */
#include "kernels/columns.cuh"
#include "kernels/log_probs_fast.cuh"

/* `across` words lie side by side in a block. A column has `members` threads of it, which take elements in turns. */
struct columns_cut {
    struct logits_rows rows; /* chunk: in elements */
    struct box box;
    uint64_t words, blocks; /* of all columns */
    uint32_t across, members;
    enum terms terms; /* of the monoid */
};

template <class Element, bool half>
static __global__ void __launch_bounds__(LOGITS_SHAPE.threads, LOGITS_SHAPE.blocks_columns)
columns_sumexp(const __grid_constant__ struct columns_cut cut, const __grid_constant__ struct logits_ends ends)
{
    typedef column_words<Element> words;
    typedef typename words::word word;
    typedef fast_partial<false> Partial;
    typedef fast_row<Element, false, words::vectors, half> row;
    constexpr int side = words::side, rows = words::rows;
    __shared__ typename Partial::type found[LOGITS_SHAPE.threads * side];
    const uint32_t split = (uint32_t)(blockIdx.x / cut.blocks), at = threadIdx.x & (cut.across - 1), member = threadIdx.x / cut.across;
    const uint64_t group = blockIdx.x - split * cut.blocks, column = group * cut.across + at, stride = cut.box.axis_stride / side;
    const uint32_t begin = split * cut.rows.chunk + member, left = cut.rows.length - split * cut.rows.chunk, step = rows * cut.members;
    const word *next = (const word *)cut.rows.x + column_at(cut.box, cut.box.outer_stride, column, side) + begin * stride;
    row of[side];
#pragma unroll
    for (int s = 0; s < side; s++)
        of[s].start(0);
#pragma unroll 1
    for (int64_t rest = column < cut.words ? (int64_t)(left < cut.rows.chunk ? left : cut.rows.chunk) - member : 0; rest > 0; rest -= step) {
        words x;
        if (rest > (int64_t)(step - cut.members))
#pragma unroll
            for (int i = 0; i < rows; i++, next += cut.members * stride)
                x.of[i] = __ldg(next);
        else
#pragma unroll
            for (int i = 0; i < rows; i++, next += cut.members * stride)
                x.of[i] = i * (int64_t)cut.members < rest ? __ldg(next) : words::least();
        x.turn();
#pragma unroll
        for (int s = 0; s < side; s++) {
            uint4 vectors[words::vectors];
            x.vectors_of(s, vectors);
            of[s].take(vectors, 0);
        }
    }
#pragma unroll
    for (int s = 0; s < side; s++) {
        const float max = of[s].template end<1>();
        typename Partial::type partial = Partial::of(of[s], max != max ? (double)-INFINITY : (double)max, 0);
        row::close(&partial, cut.terms);
        found[threadIdx.x * side + s] = partial;
    }
    __syncthreads();
    const uint32_t columns = cut.across * side;
#pragma unroll 1
    for (uint32_t c = threadIdx.x; c < columns; c += LOGITS_SHAPE.threads) {
        const uint64_t r = group * columns + c;
        if (r >= cut.rows.results)
            return;
        typename Partial::type partial = found[c];
#pragma unroll 1
        for (uint32_t m = 1; m < cut.members; m++)
            Partial::combine(&partial, &found[m * columns + c]);
        if (ends.finishes && cut.rows.splits == 1) {
            result_finish<MONOID_sumexp_quick>(partial, ends.finish, r);
            continue;
        }
        partial_store(partial, cut.rows, r, split);
        if (cut.rows.window != nullptr && cut.rows.splits == 1)
            partial_send(partial, cut.rows.window, r);
    }
}

/* As many side by side as a block has threads, but that a device has work for some times the blocks that it has room for; then in splits. */
template <class Element, bool half> static cudaError_t type_start(const struct axis_work *work, const struct box *box, int multiprocessors, void *stream, bool *launched)
{
    typedef column_words<Element> words;
    constexpr uint32_t threads = LOGITS_SHAPE.threads, rounds = 6;
    constexpr size_t stride = PARTIAL_STRIDE<fast_partial<false>::type>;
    const uint64_t together = (uint64_t)multiprocessors * LOGITS_SHAPE.blocks_columns * threads, length = box->length, results = box->outer * box->inner;
    if (!columns_come_in(work->x, work->type, box, words::side) || length < words::rows || results * length < together * words::rows * words::side)
        return cudaSuccess;
    struct columns_cut cut = {{work->x, results, 0, (uint32_t)length, 1, 0, (unsigned char *)work->partials, (unsigned char *)work->window.memory},
                              *box, results / words::side, 0, threads, 1, monoid_facts[work->monoid].terms};
    while (cut.across > 32 && (cut.words < cut.across || (cut.words * cut.members < rounds * together && length >= 4 * words::rows * cut.members))) {
        cut.across /= 2;
        cut.members *= 2;
    }
    const uint64_t tile = words::rows * cut.members, most = u64_min(rounds * together / (cut.words * cut.members), work->bytes / (results * stride * 2));
    const uint64_t splits = u64_max(1, u64_min(most, length / (4 * tile)));
    cut.rows.chunk = (uint32_t)(((length + splits - 1) / splits + tile - 1) / tile * tile);
    cut.rows.splits = (uint32_t)((length + cut.rows.chunk - 1) / cut.rows.chunk);
    cut.blocks = (cut.words + cut.across - 1) / cut.across;
    if (cut.blocks * cut.rows.splits > INT32_MAX)
        return cudaSuccess;
    const cudaLaunchConfig_t config = launch_config(cut.blocks * cut.rows.splits, threads, stream);
    *launched = true;
    const cudaError_t code = cudaLaunchKernelEx(&config, columns_sumexp<Element, half>, cut, ends_of(work));
    return code == cudaSuccess && cut.rows.splits > 1 ? (cudaError_t)rows_end(work, cut.rows.splits, stream) : code;
}

int logits_columns_launch(const struct axis_work *work, int multiprocessors, void *stream, bool *launched)
{
    struct box box = work->box;
    *launched = false;
    columns_turn(&box);
    if ((!sums_taken(work) && work->monoid != MONOID_sumexp_half) || box.outer == 0 || box.inner <= 1 || box.length >= UINT32_MAX / 2)
        return cudaSuccess;
    return with_element(work->type, [&](auto element) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (Element::is_floating && sizeof(typename Element::stored) == 2)
            if (work->monoid == MONOID_sumexp_half)
                return type_start<Element, true>(work, &box, multiprocessors, stream, launched);
        if constexpr (Element::is_floating && sizeof(typename Element::stored) <= 4)
            return type_start<Element, false>(work, &box, multiprocessors, stream, launched);
        return cudaSuccess;
    });
}
