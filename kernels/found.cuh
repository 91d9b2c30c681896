/* Kernels that read rows, or columns, once, and find something of each: what Found says.

     rows_find      a block has some rows, or a split of one
         each group of lanes: takes a row after the other, or a warp a part of each row; each thread takes its elements, tile by tile; the group combines what they have
         the block, a thread a row: combines the parts, and finishes the result, or stores the partial
     columns_find   a block has columns that lie side by side, or a split of them; a thread has one, or two of 16 bits, which share a word
         each thread: takes its elements, as those of a row
         the block, a thread a column: combines what its members have, and finishes the result, or stores the partial

   Where Found has a trial, a cheaper way comes first, and rows, or a block's columns, for which it does not suffice are taken again. Splits are combined by the kernels of axis_VALUE.cu.

   Found has Element; the shape of its blocks; the least length of rows, and of those that begin within vectors; begin(): what a block does first; placed(): whether places are looked for; Partial: its type, and combine(); row<vectors>, and column<vectors>:
   what a thread has found, how it takes a tile, what becomes of all that a warp has, and how a partial is closed; trial, and tried<vectors>, which is a row or column of the cheaper way; place() and column_place(): where that
   was; of(), which makes the partial. */
#pragma once

#define EXACT_TOTAL_DIGITS 48
#define FAMILY f32
#include "kernels/axis_finish.cuh"
#include "kernels/log_probs.cuh"

#include "fold/targets.h"

/* No trial. */
struct never {
    static constexpr bool tries = false;
    bool wanted;
    static never of(const struct axis_work *, uint64_t) { return {false}; }
};

/* What is found with little memory, and finished with little code. */
template <class Of> struct found_quick {
    typedef Of Element;
    static constexpr struct found_shape shape = found_shape_of(sizeof(typename Element::stored));
    static constexpr bool is_long = false; /* blocks have much memory, and a result takes long, and many registers */
    static constexpr bool stays = false;   /* a block takes some rows after the other: what it begins with takes long */
    static constexpr bool votes = false;   /* all lanes of a warp take their tiles together */
    static constexpr size_t rows_bytes = 0, columns_bytes = 0; /* of shared memory */
    static __device__ __forceinline__ void begin() {}
};

/* How something is found. signs: of a vector's words, which are turned. placed: places are wanted. */
template <class Found> struct finder {
    enum terms terms;
    uint32_t signs;
    bool placed;
    typename Found::trial trial;
};

/* How many parts to cut rows into, where there is room for `room` at a time: for once, if few of these stay empty and blocks end together; or for some times that. */
template <class Found> static inline uint64_t parts_wanted(uint64_t rows, uint64_t room)
{
    return !Found::is_long && 4 * (room - room % rows) >= 3 * room ? room : Found::shape.rounds * room;
}

/* ---- rows */

/* What a block has of the rows: `items` of them, or of their splits. Each is cut among 2^cut_bits of its groups of lanes. */
struct rows_block {
    uint32_t items, cut_bits;
};

/* What the block's warps find of the items that are wanted. least: of a trial. */
template <class Found, class Row, uint32_t lanes, class Wanted>
static __device__ __forceinline__ void rows_take(const struct logits_rows &rows, const struct rows_block &block, const struct finder<Found> &finder, uint64_t first, uint32_t items,
                                                 uint64_t index, float least, typename Found::Partial::type *found, const Wanted &wanted)
{
    constexpr uint32_t vectors = Found::shape.vectors, tile = lanes * vectors, groups = 32 / lanes;
    const uint32_t lane = threadIdx.x % lanes, cut = 1u << block.cut_bits, parts = items << block.cut_bits;
#pragma unroll 1
    for (uint32_t of_warp = threadIdx.x / 32 * groups; of_warp < parts; of_warp += Found::shape.threads / lanes) {
        const uint32_t of_group = of_warp + threadIdx.x % 32 / lanes, part = groups == 1 || of_group < parts ? of_group : parts - 1; /* a warp's lanes go on together */
        const bool is_wanted = (groups == 1 || of_group < parts) && wanted(part >> block.cut_bits);
        if (__ballot_sync(0xffffffff, is_wanted) == 0)
            continue;
        row_item<typename Found::Element, Found::turns> item(rows, first + (part >> block.cut_bits));
        item.elements.signs = finder.signs;
        Row row;
        uint32_t begin = item.begin + part % cut * tile;
        const uint4 *own = (const uint4 *)item.elements.x + begin + lane;
        row.start(item.begin, (typename Found::Partial::type *)nullptr, 0);
#pragma unroll 1
        for (; groups > 1 && Found::votes ? !warp_all(begin >= item.end) : begin < item.end; begin += cut * tile, own += cut * tile) {
            uint4 x[vectors];
            item.template load<lanes, vectors>(x, begin, own);
            row.template take<lanes>(x, begin + lane, least);
            if (Row::ends_at_nan && row.nan)
                break;
        }
        const float max = row.template end<lanes>();
        const uint32_t place = finder.placed ? Found::template place<lanes>(row, item, max) : UINT32_MAX, before = item.elements.first;
        if (lane == 0 && is_wanted) /* where all elements are -inf, so is what is before them */
            found[part] = Found::of(row, max, place < before ? before : place, index - before);
    }
    __syncthreads();
}

/* The parts of an item, combined. */
template <class Found, class Row>
static __device__ __forceinline__ typename Found::Partial::type item_partial(const typename Found::Partial::type *found, uint32_t item, uint32_t cut_bits, enum terms terms)
{
    found += item << cut_bits;
    typename Found::Partial::type partial = found[0];
    Row::close(&partial, terms);
#pragma unroll 1
    for (uint32_t part = 1; part < 1u << cut_bits; part++) {
        typename Found::Partial::type other = found[part];
        Row::close(&other, terms);
        Found::Partial::combine(&partial, &other);
    }
    return partial;
}

/* The partial of a row, or of its split, becomes a result, or is stored. */
template <class Found>
static __device__ __forceinline__ void found_end(typename Found::Partial::type partial, const struct logits_rows &rows, const struct finder<Found> &finder,
                                                 const struct logits_ends &ends, uint64_t r, uint32_t split)
{
    if constexpr (Found::turns)
        Found::turn(&partial, finder.signs);
    if (Found::is_long && ends.finishes && rows.splits == 1)
        return result_apart<Found::monoid>(&partial, &ends.finish, r);
    if (Found::finishes && ends.finishes && rows.splits == 1)
        return Found::turns && finder.signs != 0 ? result_finish<Found::monoid_turned>(partial, ends.finish, r) : result_finish<Found::monoid>(partial, ends.finish, r);
    *partial_place<typename Found::Partial::type>(rows, r, split) = partial;
    if (rows.window != nullptr && rows.splits == 1)
        partial_send(partial, rows.window, r);
}

template <class Found, uint32_t lanes>
static __global__ void __launch_bounds__(Found::shape.threads, Found::shape.blocks)
rows_find(const __grid_constant__ struct logits_rows rows, const __grid_constant__ struct rows_block block, const __grid_constant__ struct finder<Found> finder,
          const __grid_constant__ struct logits_ends ends)
{
    typedef typename Found::Partial::type partial_type;
    typedef typename Found::template row<Found::shape.vectors> row;
    __shared__ partial_type found[Found::shape.parts];
    uint64_t first = (uint64_t)blockIdx.x * block.items;
    Found::begin();
    do {
        const uint64_t left = rows.results * rows.splits - first, at = first + threadIdx.x; /* the item that this thread will finish */
        const uint32_t items = left < block.items ? (uint32_t)left : block.items;
        bool unfinished = threadIdx.x < items;
        uint64_t mark = MARK_NONE;
        if (Found::marked && unfinished && rows.splits == 1 && ends.targets.of != nullptr) /* its loads are under way meanwhile */
            mark = target_mark(&ends.targets, at, ends.x, ends.type, &ends.box, ends.first);
        const auto end = [&](partial_type partial) {
            if constexpr (Found::marked)
                partial.target = mark;
            found_end<Found>(partial, rows, finder, ends, at / rows.splits, (uint32_t)(at % rows.splits));
        };
        const auto all = [](uint32_t) { return true; };
        if constexpr (Found::trial::tries) {
            typedef typename Found::template tried<Found::shape.vectors> tried;
            __shared__ bool again[Found::shape.threads];
            if (finder.trial.wanted) {
                rows_take<Found, tried, lanes>(rows, block, finder, first, items, ends.first, finder.trial.least(), found, all);
                if (unfinished) {
                    const partial_type partial = item_partial<Found, tried>(found, threadIdx.x, block.cut_bits, finder.terms);
                    unfinished = !finder.trial.suffices(partial);
                    if (!unfinished)
                        end(partial);
                }
            }
            again[threadIdx.x] = unfinished;
            __syncthreads();
            rows_take<Found, row, lanes>(rows, block, finder, first, items, ends.first, -INFINITY, found, [&](uint32_t item) { return again[item]; });
        } else {
            rows_take<Found, row, lanes>(rows, block, finder, first, items, ends.first, -INFINITY, found, all);
        }
        if (unfinished)
            end(item_partial<Found, row>(found, threadIdx.x, block.cut_bits, finder.terms));
        if (Found::stays)
            __syncthreads(); /* what was found is read */
        first += (uint64_t)gridDim.x * block.items;
    } while (Found::stays && first < rows.results * rows.splits);
}

/* A device has work for some times the warps that it has room for: enough that it does not matter when the last ones end, and so few that blocks have
   several rows to finish, if these are short. Few rows are split (parts_wanted). Without marks, few elements, whose time a second
   launch would double, are for other kernels. */
template <class Found> static cudaError_t rows_launch(const struct axis_work *work, int multiprocessors, uint32_t signs, void *stream, bool *launched)
{
    typedef typename Found::Element Element;
    constexpr struct found_shape shape = Found::shape;
    constexpr uint32_t threads = shape.threads, warps = threads / 32, tile = 32 * shape.vectors, few = shape.lanes;
    constexpr uint64_t rounds = shape.rounds;
    const uint64_t room = (uint64_t)multiprocessors * shape.blocks, together = room * warps, elements = work->box.outer * work->box.length;
    if (!rows_fit(work) || work->box.length < (rows_aligned(work) ? Found::least : Found::least_unaligned) || (!Found::marked && elements < together * tile * Element::per_vector))
        return cudaSuccess;
    /* of rows that are too few for each warp to have one, a part has four warps */
    const struct logits_rows rows = rows_cut(work, parts_wanted<Found>(work->box.outer, room * (warps / 4)), 4 * tile, PARTIAL_STRIDE<typename Found::Partial::type>);
    const uint64_t items = rows.results * rows.splits;
    const struct finder<Found> finder = {monoid_facts[work->monoid].terms, signs, Found::placed(work), Found::trial::of(work, u64_min(rows.length, (uint64_t)rows.chunk * Element::per_vector))};
    /* what a row ends with takes as long as a tile: several short ones share a warp, if there are enough of them, or they would leave lanes without a vector */
    const bool shared = rows.length <= 2 * tile * Element::per_vector && (items >= 2 * room * (threads / few) || rows.length <= tile / 2 * Element::per_vector);
    const auto kernel = shared ? rows_find<Found, few> : rows_find<Found, 32>;
    struct rows_block block = {warps / 4, 2};
    static_assert(warps % 4 == 0, "as many as a part is cut among");
    if (shared || items >= rounds * together / 2 || rows.length <= tile * Element::per_vector) {
        const uint32_t groups = shared ? threads / few : warps;
        block = {groups * (uint32_t)u64_max(1, u64_min(shape.parts / groups, items / ((Found::stays ? 4 * rounds : rounds) * room * groups))), 0};
    }
    const uint64_t blocks = (items + block.items - 1) / block.items;
    cudaLaunchConfig_t config = launch_config(Found::stays ? u64_min(blocks, room) : blocks, threads, stream);
    if (!shared_make(Found::is_long, (const void *)kernel, Found::rows_bytes, &config))
        return cudaSuccess;
    *launched = true;
    struct logits_ends ends = ends_of(work);
    /* a kernel of its own finishes faster, if there is room for the partials */
    const bool apart = Found::is_long && ends.finishes && work->window.memory == nullptr && work->bytes / PARTIAL_STRIDE<typename Found::Partial::type> >= work->box.outer;
    if (apart) {
        ends.finishes = false;
        ends.targets.of = nullptr;
    }
    const cudaError_t code = cudaLaunchKernelEx(&config, kernel, rows, block, finder, ends);
    return code == cudaSuccess && (rows.splits > 1 || apart) ? (cudaError_t)rows_end(work, rows.splits, stream) : code;
}

/* ---- columns */

/* What the block's threads find of its columns. least: of a trial. */
template <class Found, class Row>
static __device__ __forceinline__ column_walk<typename Found::Element> columns_take(const struct logits_columns &cut, const struct finder<Found> &finder, uint64_t index, float least,
                                                                                    typename Found::Partial::type *found)
{
    typedef column_words<typename Found::Element> words;
    constexpr int side = words::side;
    column_walk<typename Found::Element> walk(cut);
    Row of[side];
#pragma unroll
    for (int s = 0; s < side; s++)
        of[s].start(0, found, (uint32_t)s);
    if constexpr (Found::turns)
        walk.signs = finder.signs;
    walk.for_each([&](int s, uint4 *x, uint32_t first) {
        of[s].template take<1>(x, first, least);
        if (Row::ends_at_nan && of[0].nan && of[side - 1].nan)
            walk.left = 0;
    });
    typename Found::Partial::type partials[side];
#pragma unroll
    for (int s = 0; s < side; s++) {
        const float max = of[s].template end<1>();
        partials[s] = Found::of(of[s], max, Found::column_place(of[s], cut.members), index);
        Row::close(&partials[s], finder.terms);
    }
    __syncthreads(); /* all threads have read what lay there */
    memcpy(&found[threadIdx.x * side], partials, sizeof partials);
    __syncthreads();
    return walk;
}

template <class Found>
static __global__ void __launch_bounds__(Found::shape.columns_threads, Found::shape.columns_blocks)
columns_find(const __grid_constant__ struct logits_columns cut, const __grid_constant__ struct finder<Found> finder, const __grid_constant__ struct logits_ends ends)
{
    typedef column_words<typename Found::Element> words;
    typedef typename Found::Partial::type partial_type;
    extern __shared__ __align__(16) unsigned char bytes[];
    partial_type *const found = (partial_type *)(bytes + Found::columns_bytes);
    const auto part = [&](uint32_t i) { return &found[i]; };
    const auto combine = [](partial_type *a, partial_type *b) { Found::Partial::combine(a, b); };
    uint32_t ended = 0; /* a bit for each of the thread's columns that a trial sufficed for */
    const auto bit_of = [](const auto &walk, uint64_t r) { return 1u << ((uint32_t)(r - walk.first) / Found::shape.columns_threads); };
    Found::begin();
    if constexpr (Found::trial::tries)
        if (finder.trial.wanted) {
            __shared__ bool again;
            if (threadIdx.x == 0)
                again = false;
            const auto walk = columns_take<Found, typename Found::template tried<words::vectors>>(cut, finder, ends.first, finder.trial.least(), found);
            columns_end(cut, walk, part, combine, [&](const partial_type *partial, uint64_t r) {
                if (finder.trial.suffices(*partial)) {
                    found_end<Found>(*partial, cut.rows, finder, ends, r, walk.split);
                    ended |= bit_of(walk, r);
                } else
                    again = true;
            });
            __syncthreads();
            if (!again)
                return;
        }
    const auto walk = columns_take<Found, typename Found::template column<words::vectors>>(cut, finder, ends.first, -INFINITY, found);
    columns_end(cut, walk, part, combine, [&](const partial_type *partial, uint64_t r) {
        if ((ended & bit_of(walk, r)) == 0)
            found_end<Found>(*partial, cut.rows, finder, ends, r, walk.split);
    });
}

template <class Found> static cudaError_t columns_launch(const struct axis_work *work, int multiprocessors, uint32_t signs, void *stream, bool *launched)
{
    typedef column_words<typename Found::Element> words;
    constexpr uint32_t threads = Found::shape.columns_threads;
    const uint64_t room = (uint64_t)multiprocessors * Found::shape.columns_blocks * threads, columns = work->box.outer * work->box.inner / words::side;
    struct logits_columns cut;
    if (columns == 0 || columns * work->box.length < room * words::rows
        || !columns_cut<typename Found::Element>(work, threads, parts_wanted<Found>(columns, room), PARTIAL_STRIDE<typename Found::Partial::type>, &cut))
        return cudaSuccess;
    struct finder<Found> finder = {monoid_facts[work->monoid].terms, signs, Found::placed(work), Found::trial::of(work, cut.rows.chunk)};
    finder.trial.wanted = finder.trial.wanted && cut.rows.chunk >= LEAST_TRIED;
    cudaLaunchConfig_t config = launch_config(cut.blocks * cut.rows.splits, threads, stream);
    if (!shared_make(Found::is_long, (const void *)columns_find<Found>, Found::columns_bytes + threads * words::side * sizeof(typename Found::Partial::type), &config))
        return cudaSuccess;
    *launched = true;
    const cudaError_t code = cudaLaunchKernelEx(&config, columns_find<Found>, cut, finder, ends_of(work));
    return code == cudaSuccess && cut.rows.splits > 1 ? (cudaError_t)rows_end(work, cut.rows.splits, stream) : code;
}

/* Rows that lie as vectors, or columns. */
template <class Found> static cudaError_t find_launch(const struct axis_work *work, int multiprocessors, uint32_t signs, void *stream, bool *launched)
{
    const cudaError_t code = rows_launch<Found>(work, multiprocessors, signs, stream, launched);
    return code != cudaSuccess || *launched ? code : columns_launch<Found>(work, multiprocessors, signs, stream, launched);
}
