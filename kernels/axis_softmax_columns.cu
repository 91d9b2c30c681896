/* Softmax of columns: each element is read once and written once.

     softmax_columns   a block keeps columns that lie side by side in shared memory
         copies of all elements; the maximum of each thread's elements, then of each column
         terms of its elements; their sum, then that of each column
         a thread a column: what its results follow from
         results; all are stored

   Columns of a few elements: axis_softmax_few.cuh. Columns that do not fit are left to two passes: log_probs.cu or axis.cu, and normalise.cu. */
#include "kernels/axis_softmax_few.cuh"
#include "kernels/kernels.h"

/* `across` words lie side by side in a block. A column has `members` threads, which take elements in turns. Both are powers of two. */
struct columns_cut {
    struct softmax_work work;
    uint64_t words, of_plane; /* of all columns; of those of one plane, the last of which may have one column alone */
    uint32_t across, members, tiles;
    uint32_t used;  /* as columns_kept has it */
    bool vectors;   /* all is copied in vectors */
    bool elements;  /* it is loaded and stored an element at a time, because words are not aligned */
};

/* A block's columns in shared memory, row by row; a thread's words are those with its number, and every threads-th from there on. What is behind the end, or of no column, is
   -inf. */
template <class Element> struct columns_kept {
    typedef column_words<Element> words;
    typedef typename words::word word;
    static constexpr int threads = COLUMNS_SHAPE.threads;
    word *all;
    uint32_t tiles, used; /* used: vectors of a tile and column in which there is any element */
    __device__ __forceinline__ word *own(uint32_t tile) const { return all + (tile * words::rows * threads + threadIdx.x); }
    __device__ __forceinline__ words read(uint32_t tile) const
    {
        words x;
#pragma unroll
        for (int i = 0; i < words::rows; i++)
            x.of[i] = own(tile)[i * threads];
        return x;
    }
    __device__ __forceinline__ void write(uint32_t tile, const words &x) const
    {
#pragma unroll
        for (int i = 0; i < words::rows; i++)
            own(tile)[i * threads] = x.of[i];
    }
};

/* The largest of a thread's elements of each column, or NaN; of f64 the largest number. */
template <class Row, class Element> static __device__ __forceinline__ void columns_max(typename Row::real *max, const columns_kept<Element> &kept)
{
    typedef column_words<Element> words;
#pragma unroll
    for (int s = 0; s < words::side; s++)
        max[s] = -INFINITY;
#ifdef HAVE_EXTREME_HALVES
    if constexpr (words::side == 2) {
        typename words::word largest = words::least();
#pragma unroll 1
        for (uint32_t tile = 0; tile < kept.tiles; tile++) {
            const words x = kept.read(tile);
#pragma unroll
            for (int i = 0; i < words::rows; i++)
                largest = extreme_halves<Element::type == ALLFOLD_F16, false>(largest, x.of[i]);
        }
#pragma unroll
        for (int s = 0; s < 2; s++)
            max[s] = Element::load(vector_element<typename Element::stored>(make_uint4(largest, 0, 0, 0), s));
    } else
#endif
#pragma unroll 1
        for (uint32_t tile = 0; tile < kept.tiles; tile++) {
            words x = kept.read(tile);
            x.turn();
#pragma unroll
            for (int s = 0; s < words::side; s++) {
                uint4 of[words::vectors];
                x.vectors_of(s, of);
                Row::template take_max<words::vectors>(&max[s], of);
            }
        }
}

/* What threads have of their columns, made one: the first threads of the block get that of a column each. slots: one for each thread and column. */
struct columns_combine {
    uint32_t columns, members;
    uint4 *slots;
    template <int side, class Value, class Take> __device__ __forceinline__ Value operator()(const Value *value, const Take &take) const
    {
        Value *const all = (Value *)slots, found = value[0];
        static_assert(sizeof(Value) <= sizeof(uint4), "a slot");
        __syncthreads();
#pragma unroll
        for (int s = 0; s < side; s++)
            all[threadIdx.x * side + s] = value[s];
        __syncthreads();
        if (threadIdx.x < columns) {
            found = all[threadIdx.x];
#pragma unroll 4
            for (uint32_t m = 1; m < members; m++)
                take(&found, all[m * columns + threadIdx.x]);
        }
        return found;
    }
};

/* What the first threads get: results of a column each. max: of a thread's columns; own: of the column that it gets. */
template <class Row, class Element>
static __device__ __forceinline__ typename Row::results columns_quick(const typename Row::real *max, const columns_kept<Element> &kept, const struct columns_combine &combine)
{
    typedef column_words<Element> words;
    constexpr int side = words::side;
    typename Row::terms terms[2] = {typename Row::terms(max[0]), typename Row::terms(max[side - 1])};
    struct row_sum sums[side];
#pragma unroll 1
    for (uint32_t tile = 0; tile < kept.tiles; tile++) {
        words x = kept.read(tile);
        x.turn();
#pragma unroll
        for (int s = 0; s < side; s++) {
            uint4 of[words::vectors];
            x.vectors_of(s, of);
            terms[s].template take<words::vectors>(of, of, kept.used);
            if constexpr (side == 1)
#pragma unroll
                for (int v = 0; v < words::vectors; v++)
                    x.set(s, v, of[v]);
        }
        if constexpr (side == 1)
            kept.write(tile, x);
    }
#pragma unroll
    for (int s = 0; s < side; s++)
        sums[s] = terms[s].sum_by([](auto *, const auto &) {});
    return Row::results_of_block(combine.template operator()<side>(sums, [](struct row_sum *a, const struct row_sum &b) {
        a->sum += b.sum;
        a->count += b.count;
    }));
}

/* Sums of bins, and whether there is a NaN, of a column each. */
template <int side, class Part> static __device__ __forceinline__ void bins_combine(Part *whole, const Part *parts, const struct columns_combine &combine)
{
    __shared__ uint32_t bins; /* in which any thread has something; and whether any has a NaN, which is not always the maximum */
    uint32_t used = 1;
#pragma unroll
    for (int s = 0; s < side; s++) {
        used |= parts[s].nan != 0 ? 1u << EXP_BINS : 0;
#pragma unroll
        for (int i = 1; i < EXP_BINS; i++)
            used |= parts[s].of[i] != 0 ? 1u << i : 0;
    }
    if (threadIdx.x == 0)
        bins = 1;
    __syncthreads();
    if (used != 1)
        atomicOr(&bins, used);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < EXP_BINS; i++)
        if ((bins >> i & 1) != 0) {
            uint128 sums[side];
#pragma unroll
            for (int s = 0; s < side; s++)
                sums[s] = parts[s].of[i];
            whole->of[i] = combine.template operator()<side>(sums, [](uint128 *a, uint128 b) { *a += b; });
        }
    if ((bins >> EXP_BINS & 1) != 0) {
        uint32_t nan[side];
#pragma unroll
        for (int s = 0; s < side; s++)
            nan[s] = parts[s].nan;
        whole->nan = combine.template operator()<side>(nan, [](uint32_t *a, uint32_t b) { *a |= b; });
    }
    whole->more = (bins & ((1u << EXP_BINS) - 2)) != 0;
}

/* The same at level exact, and of f64, by partials that are relative to the maximum of the column. mine: elements of a thread's columns. */
template <class Row, class Element>
static __device__ __forceinline__ typename Row::results columns_whole(const typename Row::real *max, typename Row::real own, const columns_kept<Element> &kept, uint32_t mine,
                                                                      const struct columns_combine &combine)
{
    typedef column_words<Element> words;
    typedef typename Row::Fold Fold;
    constexpr int side = words::side;
    typename Row::part parts[side];
#pragma unroll
    for (int s = 0; s < side; s++) {
        typename Row::terms terms(max[s]);
#pragma unroll 1
        for (uint32_t tile = 0; tile < kept.tiles; tile++) {
            words x = kept.read(tile);
            uint4 of[words::vectors];
            x.turn();
            x.vectors_of(s, of);
            terms.template take_part<words::vectors, false>(of, of, 0, (int32_t)mine - (int32_t)(tile * words::rows), Element::per_vector);
        }
        parts[s] = terms.own();
    }
    typename Row::part whole = {};
    whole.max = (double)own;
    if constexpr (Fold::exact) {
        bins_combine<side>(&whole, parts, combine);
    } else {
        pair sums[side];
#pragma unroll
        for (int s = 0; s < side; s++)
            sums[s] = parts[s].sum;
        whole.sum = combine.template operator()<side>(sums, add_sums());
    }
    return results_of_row<Row>(whole);
}

/* A thread of a block, and what it moves: of terms a word of a row, of every members-th; of copies a vector of a row, of every step-th. */
template <class Element> struct columns_thread {
    typedef column_words<Element> words;
    typedef typename words::word word;
    typedef typename Element::stored stored;
    static constexpr int side = words::side, rows = words::rows, threads = COLUMNS_SHAPE.threads;
    static constexpr uint32_t of_vector = sizeof(uint4) / sizeof(word), per_vector = Element::per_vector;
    const struct columns_cut &cut;
    const columns_kept<Element> kept;
    const uint32_t at, member, wide, first, step;
    const uint64_t column, of_vectors;
    const uint32_t here, here_vectors; /* rows, or none */

    __device__ __forceinline__ columns_thread(const struct columns_cut &cut, unsigned char *bytes)
        : cut(cut), kept{(word *)bytes, cut.tiles, cut.used}, at(threadIdx.x & (cut.across - 1)), member(threadIdx.x / cut.across), wide(cut.across / of_vector), first(threadIdx.x / wide),
          step(threads / wide), column((uint64_t)blockIdx.x * cut.across + at), of_vectors((uint64_t)blockIdx.x * wide + (threadIdx.x & (wide - 1))),
          here(column < cut.words ? length() : 0), here_vectors(of_vectors < cut.words / of_vector ? length() : 0)
    {
    }
    __device__ __forceinline__ uint32_t length() const { return (uint32_t)cut.work.box.length; }
    __device__ __forceinline__ uint4 *vectors() const { return (uint4 *)kept.all + threadIdx.x; }
    __device__ __forceinline__ uint32_t mine() const { return length() > member ? (length() - member + cut.members - 1) / cut.members : 0; }
    __device__ __forceinline__ void load_vectors() const
    {
        const uint64_t stride = cut.work.box.axis_stride / per_vector;
        const uint4 *from = (const uint4 *)cut.work.x + column_at(cut.work.box, cut.work.box.outer_stride, of_vectors, per_vector) + first * stride;
        uint4 *to = vectors();
#pragma unroll 4
        for (uint32_t row = first; row < cut.tiles * rows * cut.members; row += step, from += step * stride, to += threads)
            if (row < here_vectors)
                copy_async_wide(to, from);
            else
                *to = least_vector<Element>();
        copy_commit();
        copy_wait(0);
        __syncthreads();
    }
    /* The thread's columns begin with that element. */
    __device__ __forceinline__ uint64_t start(uint64_t outer_stride) const
    {
        const uint64_t plane = column < cut.of_plane ? 0 : column / cut.of_plane;
        return plane * outer_stride + (column - plane * cut.of_plane) * side;
    }
    __device__ __forceinline__ bool is_pair() const { return column % cut.of_plane * side + side <= cut.work.box.inner; }
    /* Calls with_row(row, i) for each row of the tile that the thread has of its columns. */
    template <class WithRow> __device__ __forceinline__ void tile_rows(uint32_t tile, const WithRow &with_row) const
    {
#pragma unroll
        for (int i = 0; i < rows; i++)
            if (member + (tile * rows + i) * cut.members < here)
                with_row((uint64_t)(member + (tile * rows + i) * cut.members), i);
    }
    __device__ __forceinline__ void load_words() const
    {
        const uint64_t stride = cut.work.box.axis_stride / side;
        const word *from = (const word *)((const stored *)cut.work.x + start(cut.work.box.outer_stride)) + member * stride;
#pragma unroll 1
        for (uint32_t tile = 0; tile < cut.tiles; tile++) {
            words x;
#pragma unroll
            for (int i = 0; i < rows; i++, from += cut.members * stride)
                x.of[i] = member + (tile * rows + i) * cut.members < here ? __ldg(from) : words::least();
            kept.write(tile, x);
        }
    }
    __device__ __forceinline__ void load_elements() const
    {
        const stored *const from = (const stored *)cut.work.x + start(cut.work.box.outer_stride);
        const bool pair = is_pair();
#pragma unroll 1
        for (uint32_t tile = 0; tile < cut.tiles; tile++) {
            words x;
#pragma unroll
            for (int i = 0; i < rows; i++)
                x.of[i] = words::least();
            tile_rows(tile, [&](uint64_t row, int i) {
                const stored *const at = from + row * cut.work.box.axis_stride;
                x.of[i] = words::of_two(at[0], pair ? at[1] : vector_element<stored>(least_vector<Element>(), 0));
            });
            kept.write(tile, x);
        }
    }
    /* Results replace what is kept, or, without vectors, are stored. own: of the thread's columns. */
    template <class Results> __device__ __forceinline__ void make(const Results *own) const
    {
        const uint64_t stride = cut.work.y_axis_stride / side;
        stored *const begin = (stored *)cut.work.y + start(cut.work.y_outer_stride);
        word *y = (word *)begin + member * stride;
        const bool pair = is_pair();
#pragma unroll 1
        for (uint32_t tile = 0; tile < cut.tiles; tile++) {
            words x = kept.read(tile);
            x.turn();
#pragma unroll
            for (int s = 0; s < side; s++)
#pragma unroll
                for (uint32_t v = 0; v < words::vectors; v++)
                    if (v < cut.used)
                        x.set(s, v, own[s].of(x.vector(s, v)));
            x.turn();
            if (cut.vectors) {
                kept.write(tile, x);
                continue;
            }
            if constexpr (side == 2)
                if (cut.elements) {
                    tile_rows(tile, [&](uint64_t row, int i) {
                        stored *const at = begin + row * cut.work.y_axis_stride;
                        const uint4 both = make_uint4(x.of[i], 0, 0, 0);
                        at[0] = vector_element<stored>(both, 0);
                        if (pair)
                            at[1] = vector_element<stored>(both, 1);
                    });
                    continue;
                }
#pragma unroll
            for (int i = 0; i < rows; i++, y += cut.members * stride)
                if (member + (tile * rows + i) * cut.members < here)
                    __stcs(y, x.of[i]);
        }
    }
    __device__ __forceinline__ void store_vectors() const
    {
        const uint64_t stride = cut.work.y_axis_stride / per_vector;
        uint4 *to = (uint4 *)cut.work.y + column_at(cut.work.box, cut.work.y_outer_stride, of_vectors, per_vector) + first * stride;
        const uint4 *from = vectors();
        __syncthreads();
#pragma unroll 4
        for (uint32_t row = first; row < here_vectors; row += step, from += threads, to += step * stride)
            __stcs(to, *from);
    }
};

template <class Row> static __global__ void __launch_bounds__(COLUMNS_SHAPE.threads, Row::heavy ? COLUMNS_SHAPE.blocks_heavy : COLUMNS_SHAPE.blocks)
softmax_columns(const __grid_constant__ struct columns_cut cut)
{
    typedef typename Row::real real;
    typedef typename Row::results results;
    typedef columns_thread<typename Row::element> thread;
    constexpr int side = thread::side, threads = thread::threads;
    extern __shared__ __align__(16) unsigned char bytes[];
    __shared__ __align__(16) unsigned char slots[threads * (side * sizeof(uint4) > sizeof(results) ? side * sizeof(uint4) : sizeof(results))];
    __shared__ real maxima[threads];
    results *const found = (results *)slots; /* in the end */
    const struct columns_combine combine = {cut.across * side, cut.members, (uint4 *)slots};
    const thread own(cut, bytes);
    if (cut.vectors)
        own.load_vectors();
    else if (side == 1 || !cut.elements)
        own.load_words();
    else if constexpr (side == 2)
        own.load_elements();
    real max[side];
    columns_max<Row>(max, own.kept);
    max[0] = combine.template operator()<side>(max, take_larger());
    if (threadIdx.x < combine.columns)
        maxima[threadIdx.x] = max[0];
    __syncthreads();
    const auto results_of = [&] {
        if constexpr (Row::heavy)
            return columns_whole<Row>(maxima + own.at * side, threadIdx.x < combine.columns ? maxima[threadIdx.x] : (real)0, own.kept, own.mine(), combine);
        else
            return columns_quick<Row>(maxima + own.at * side, own.kept, combine);
    };
    const results result = results_of();
    __syncthreads();
    if (threadIdx.x < combine.columns)
        found[threadIdx.x] = result;
    __syncthreads();
    const results of_thread[2] = {found[own.at * side], found[own.at * side + side - 1]};
    own.make(of_thread);
    if (cut.vectors)
        own.store_vectors();
}

/* How columns are cut: as many side by side as fit, but no more than leave each multiprocessor some; at least
   COLUMNS_SHAPE.least bytes. False: they do not lie side by side, or are too long. */
template <class Element> static bool columns_cut_of(const struct softmax_work *work, int multiprocessors, struct columns_cut *cut)
{
    typedef column_words<Element> words;
    constexpr uint32_t threads = COLUMNS_SHAPE.threads, side = words::side, rows = words::rows;
    *cut = {};
    cut->work = *work;
    const struct box *const box = &cut->work.box;
    const auto tiles = [&](uint64_t across) { return (box->length * across + rows * threads - 1) / (rows * threads); };
    cut->across = COLUMNS_SHAPE.least / sizeof(typename words::word);
    cut->vectors = columns_come_in(&cut->work, Element::per_vector);
    cut->elements = !columns_come_in(&cut->work, side);
    if (box->inner == 1 || tiles(cut->across) > COLUMNS_SHAPE.tiles_most || (cut->elements && box->length > COLUMNS_SHAPE.elements_most))
        return false;
    cut->of_plane = (box->inner + side - 1) / side;
    cut->words = box->outer * cut->of_plane;
    while (cut->across < threads / side && tiles(cut->across * 2) <= COLUMNS_SHAPE.tiles && cut->words >= cut->across * 2 * (uint64_t)multiprocessors)
        cut->across *= 2;
    cut->members = threads / cut->across;
    cut->tiles = (uint32_t)tiles(cut->across);
    cut->used = (uint32_t)u64_min(words::vectors, (box->length + Element::per_vector * cut->members - 1) / (Element::per_vector * cut->members));
    return true;
}

constexpr uint32_t TILE_BYTES = 64 * COLUMNS_SHAPE.threads; /* of all threads */

/* The tiles that a block may have, after it is said to the device, whose blocks may have less shared memory. What is said is the same in every call, as other threads may launch the
   kernel between it and the launch. */
static uint32_t tiles_allowed(const void *kernel)
{
    const uint32_t sizes[] = {COLUMNS_SHAPE.tiles_most, COLUMNS_SHAPE.tiles};
    for (const uint32_t tiles : sizes) {
        if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(tiles * TILE_BYTES)) == cudaSuccess)
            return tiles;
        cudaGetLastError();
    }
    return 0;
}

template <class Row> static cudaError_t columns_start(const struct softmax_work *work, int multiprocessors, cudaStream_t stream, bool *launched)
{
    struct columns_cut cut;
    if (!columns_cut_of<typename Row::element>(work, multiprocessors, &cut))
        return cudaSuccess;
    const uint64_t blocks = (cut.words + cut.across - 1) / cut.across;
    cudaLaunchConfig_t config = launch_config(blocks, COLUMNS_SHAPE.threads, stream);
    config.dynamicSmemBytes = cut.tiles * TILE_BYTES;
    const void *const kernel = (const void *)softmax_columns<Row>;
    if (cut.tiles > tiles_allowed(kernel))
        return cudaSuccess;
    const cudaError_t code = cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
    if (code != cudaSuccess)
        return code;
    *launched = true;
    return blocks > INT32_MAX ? cudaErrorInvalidValue : cudaLaunchKernelEx(&config, softmax_columns<Row>, cut);
}

template <bool logarithm, bool exact> static cudaError_t type_start(const struct row_softmax_call *call, cudaStream_t stream, bool *launched)
{
    struct softmax_work turned = call->work;
    columns_turn(&turned);
    return with_element(call->work.x_type, [=](auto element) -> cudaError_t {
        typedef decltype(element) Element;
        if constexpr (Element::is_floating) {
            if constexpr (has_few_columns(logarithm, exact, sizeof(typename Element::stored)))
                if (turned.box.inner > 1 && turned.box.length <= FEW_SHAPE.most) {
                    *launched = true;
                    return few_start<Element, logarithm, exact>(&turned, stream);
                }
            return columns_start<row_of<Element, logarithm, exact, false>>(&turned, call->space->multiprocessors, stream, launched);
        }
        return cudaSuccess;
    });
}

int column_softmax_launch(const struct row_softmax_call *call, void *stream, bool *launched)
{
    const bool exact = call->work.level == ALLFOLD_LEVEL_EXACT;
    if (call->work.logarithm)
        return exact ? type_start<true, true>(call, (cudaStream_t)stream, launched) : type_start<true, false>(call, (cudaStream_t)stream, launched);
    return exact ? type_start<false, true>(call, (cudaStream_t)stream, launched) : type_start<false, false>(call, (cudaStream_t)stream, launched);
}
