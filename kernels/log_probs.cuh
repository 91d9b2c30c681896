/* What the kernels of found.cuh, log_probs_exact.cu and log_probs_counted.cu share: partials, how rows and columns are cut among blocks, and where the maximum is. */
#pragma once

#include "kernels/axis_softmax_fast.cuh"
#include "kernels/columns.cuh"
#include "kernels/kernels.h"

/* What a thread has found of a row. */
struct row_largest {
    float max; /* -inf before there is any element above it */
    bool nan;
    uint32_t best; /* the first vector of the tile in which max is */
};

/* A row's elements in the vectors of memory, or what they are with other signs: `signs` has the bits of a word that are turned. What is before the row in the first vector, and
   behind its end in the last, is -inf. */
template <class Element, bool turns = false> struct row_vectors {
    typedef typename Element::stored stored;
    const stored *x; /* of the first vector */
    uint32_t first, end, signs; /* elements of these vectors; first: less than a vector has */
    __device__ __forceinline__ uint4 turned(const uint4 &x) const { return turns ? make_uint4(x.x ^ signs, x.y ^ signs, x.z ^ signs, x.w ^ signs) : x; }
    __device__ __forceinline__ uint4 load(const uint4 *at) const { return turned(load_read_only(at)); }
    __device__ __forceinline__ uint4 at(uint32_t v) const
    {
        constexpr uint32_t count = Element::per_vector;
        if (v * count >= first && (v + 1) * count <= end)
            return load((const uint4 *)(x + v * count));
        const uint4 least = turned(least_vector<Element>()); /* which is turned back below */
        if (v * count >= end)
            return turned(least);
        stored elements[count];
#pragma unroll
        for (uint32_t i = 0; i < count; i++)
            elements[i] = v * count + i >= first && v * count + i < end ? x[v * count + i] : vector_element<stored>(least, (int)i);
        return turned(vector_of(elements));
    }
};

/* The first of a thread's elements, in vectors that are `step` apart, that is_it. */
template <class Element, class IsIt>
static __device__ __forceinline__ uint32_t row_place(const row_vectors<Element> &row, uint32_t first, uint32_t end, uint32_t step, const IsIt &is_it)
{
    for (uint32_t v = first; v < end; v += step) {
        const uint4 x = row.at(v);
#pragma unroll
        for (uint32_t i = 0; i < Element::per_vector; i++)
            if (is_it(Element::load(vector_element<typename Element::stored>(x, (int)i))))
                return v * Element::per_vector + i;
    }
    return UINT32_MAX;
}

/* The first place of a group's maximum, or of its first NaN; UINT32_MAX: there is none above -inf. */
template <int group, class Element>
static __device__ __forceinline__ uint32_t group_place(const row_vectors<Element> &elements, const struct row_largest &row, uint32_t begin, uint32_t end, float max)
{
    uint32_t place = UINT32_MAX;
    if (max != max && row.nan)
        place = row_place(elements, begin + threadIdx.x % group, end, group, [](float x) { return x != x; });
    else if (max > -INFINITY && row.max == max)
        place = row_place(elements, row.best, end, group, [max](float x) { return x == max; });
    group_share<group>(&place, group, [](uint32_t *a, uint32_t b) { *a = b < *a ? b : *a; });
    return place;
}

/* Of both elements of 16 bits in a word: their bits, with the sign behind the others; the upper one's in the upper half. */
static __device__ __forceinline__ uint32_t halves_signs_last(uint32_t word) { return (word << 1 & 0xfffefffe) | (word >> 15 & 0x00010001); }

/* Partials at level exact: sums of exponentials alone, or all that log-probabilities need. */
template <bool weighted> struct exact_partial {
    typedef struct exp_bins type;
    static __device__ __forceinline__ type of_nothing() { return exp_bins_identity(); }
    static __device__ __forceinline__ struct exp_bins *bins(type *partial) { return partial; }
    static __device__ __forceinline__ struct exp_bins *weights(type *) { return nullptr; }
    static __device__ __forceinline__ void add(type *partial, double x) { exp_bins_add(partial, x, false); }
    static __device__ __forceinline__ void raise(type *partial, double max, int64_t bin) { exp_bins_raise(partial, max, bin); }
    static __device__ __forceinline__ void combine(type *a, const type *b) { exp_bins_combine(a, b); }
    static __device__ __forceinline__ void close(type *partial, uint64_t) { exp_bins_settle(partial); }
};
template <> struct exact_partial<true> {
    typedef struct logits_exact type;
    static __device__ __forceinline__ type of_nothing() { return logits_exact_of_nothing(); }
    static __device__ __forceinline__ struct exp_bins *bins(type *partial) { return &partial->bins; }
    static __device__ __forceinline__ struct exp_bins *weights(type *partial) { return &partial->weights; }
    static __device__ __forceinline__ void add(type *partial, double x) { logits_exact_add(partial, x); }
    static __device__ __forceinline__ void raise(type *partial, double max, int64_t bin) { logits_exact_raise(partial, max, bin); }
    static __device__ __forceinline__ void combine(type *a, const type *b) { logits_exact_combine(a, b); }
    static __device__ __forceinline__ void close(type *partial, uint64_t index)
    {
        exp_bins_settle(&partial->bins);
        if (partial->bins.nan != 0)
            partial->weights = partial->bins;
        partial->index = index;
    }
};

/* How rows are cut among blocks: `splits` of them have one row, `chunk` vectors each. */
struct logits_rows {
    const void *x;
    uint64_t results, stride; /* of rows, in elements */
    uint32_t length, splits, chunk;
    unsigned char *partials;
    unsigned char *window; /* NULL; or where partials of rows that are not split go, too */
};

/* A row, or a split, or a part of an array. */
template <class Element, bool turns = false> struct row_item {
    uint64_t row;
    uint32_t split, begin, end, whole; /* in vectors; whole: that end within the row, with the first */
    row_vectors<Element, turns> elements;
    __device__ __forceinline__ row_item(const void *x, uint32_t length)
    {
        row = split = begin = 0;
        end = (length + Element::per_vector - 1) / Element::per_vector;
        whole = length / Element::per_vector;
        elements = {(const typename Element::stored *)x, 0, length, 0};
    }
    __device__ __forceinline__ row_item(const struct logits_rows &rows, uint64_t item)
    {
        typedef typename Element::stored stored;
        row = rows.splits == 1 ? item : item / rows.splits;
        split = rows.splits == 1 ? 0 : (uint32_t)(item % rows.splits);
        const stored *const x = (const stored *)rows.x + row * rows.stride;
        const uint32_t first = elements_before(x), length = first + rows.length;
        const uint32_t all = (length + Element::per_vector - 1) / Element::per_vector;
        begin = split * rows.chunk;
        end = begin + rows.chunk < all ? begin + rows.chunk : all;
        whole = length / Element::per_vector;
        elements = {x - first, first, length, 0};
    }
    /* The tile of a group of lanes that begins with vector `begin`: this lane's vectors, the first of which is at `own`. */
    template <uint32_t lanes, uint32_t vectors> __device__ __forceinline__ void load(uint4 *x, uint32_t begin, const uint4 *own) const
    {
        if (begin * Element::per_vector >= elements.first && begin + lanes * vectors <= whole) {
#pragma unroll
            for (uint32_t i = 0; i < vectors; i++)
                x[i] = elements.load(own + i * lanes);
        } else {
#pragma unroll
            for (uint32_t i = 0; i < vectors; i++)
                x[i] = elements.at(begin + threadIdx.x % lanes + i * lanes);
        }
    }
};

template <class Partial> static __device__ __forceinline__ Partial *partial_place(const struct logits_rows &rows, uint64_t r, uint32_t split)
{
    return (Partial *)(rows.partials + (split * rows.results + r) * PARTIAL_STRIDE<Partial>);
}

/* To host memory, in few and long words. */
template <class Partial> static __device__ __forceinline__ void partial_send(const Partial &partial, unsigned char *window, uint64_t r)
{
    constexpr size_t words = PARTIAL_STRIDE<Partial> / sizeof(uint4);
    uint4 of[words] = {};
    memcpy(of, &partial, sizeof partial);
#pragma unroll
    for (size_t i = 0; i < words; i++)
        ((uint4 *)window)[r * words + i] = of[i];
}

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

static inline struct logits_ends ends_of(const struct axis_work *work)
{
    struct logits_ends ends = {work->targets, work->x, work->type, work->box, work->first, work->finish != nullptr, {}};
    if (ends.finishes)
        ends.finish = *work->finish;
    return ends;
}

static inline bool places_wanted(const struct axis_work *work)
{
    bool wanted = work->finish == nullptr;
    for (size_t i = 0; !wanted && i < work->finish->outputs; i++)
        wanted = work->finish->of[i].indices != nullptr;
    return wanted;
}

/* A block's memory. much: beyond what it has anyway. False: it is not there. */
static inline bool shared_make(bool much, const void *kernel, size_t bytes, cudaLaunchConfig_t *config)
{
    config->dynamicSmemBytes = bytes;
    if (!much
        || (cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared) == cudaSuccess
            && cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes) == cudaSuccess))
        return true;
    cudaGetLastError(); /* the caller's program must not find it */
    return false;
}

/* Rows whose elements lie side by side. */
static inline bool rows_fit(const struct axis_work *work)
{
    const struct box *const box = &work->box;
    return allfold_type_bytes(work->type) <= 4 && box->outer > 0 && box->inner == 1 && box->axis_stride == 1 && box->length < UINT32_MAX / 2;
}

/* Whether all rows begin at a vector of memory. */
static inline bool rows_aligned(const struct axis_work *work)
{
    return ((uintptr_t)work->x | (work->box.outer > 1 ? work->box.outer_stride * allfold_type_bytes(work->type) : 0)) % 16 == 0;
}

/* How rows are cut into splits of whole tiles, `wanted` of all rows together, or fewer: there is room for the partials. */
static inline struct logits_rows rows_cut(const struct axis_work *work, uint64_t wanted, uint32_t tile, size_t partial_bytes)
{
    const uint32_t per_vector = (uint32_t)(16 / allfold_type_bytes(work->type)), before = rows_aligned(work) ? 0 : per_vector - 1;
    const uint32_t vectors = (before + (uint32_t)work->box.length + per_vector - 1) / per_vector;
    const uint64_t room = work->bytes / (work->box.outer * partial_bytes * 2), most = u64_max(1, u64_min(wanted / work->box.outer, room));
    const uint32_t chunk = (uint32_t)(((vectors + most - 1) / most + tile - 1) / tile * tile);
    return {work->x, work->box.outer, work->box.outer_stride, (uint32_t)work->box.length, (vectors + chunk - 1) / chunk, chunk,
            (unsigned char *)work->partials, (unsigned char *)work->window.memory};
}

/* How columns are cut among blocks. `across` words lie side by side in one, a power of two; a column has `members` threads of it, which take elements in turns. Neighbouring
   blocks have the same split of neighbouring columns. */
struct logits_columns {
    struct logits_rows rows; /* chunk: in elements */
    struct box box;
    uint64_t words, blocks; /* of all columns */
    uint32_t across, members;
};

/* A thread's part of a column, or of columns that share a word, tile by tile. Behind the end, and behind the last column, elements are -inf. */
template <class Element> struct column_walk {
    typedef column_words<Element> words;
    typedef typename words::word word;
    uint32_t split, members, end;
    word signs; /* the sign bits that are turned; 0: none */
    uint64_t first, step; /* the block's first column; words between a thread's elements */
    int64_t left;         /* elements, but for the members'; all threads of a warp have as many, also those of no column */
    const word *next;
    __device__ __forceinline__ explicit column_walk(const struct logits_columns &cut)
    {
        const uint32_t at = threadIdx.x & (cut.across - 1), member = threadIdx.x / cut.across, length = cut.rows.length, chunk = cut.rows.chunk;
        split = (uint32_t)(blockIdx.x / cut.blocks);
        members = cut.members;
        signs = 0;
        const uint64_t column = (blockIdx.x - split * cut.blocks) * cut.across + at, stride = cut.box.axis_stride / words::side;
        const uint32_t begin = split * chunk, all = length - begin < chunk ? length - begin : chunk;
        end = begin + all;
        first = (column - at) * words::side;
        step = members * stride;
        left = column - threadIdx.x % 32 < cut.words ? (int64_t)all - member : 0;
        next = column < cut.words ? (const word *)cut.rows.x + column_at(cut.box, cut.box.outer_stride, column, words::side) + (begin + member) * stride : nullptr;
    }
    /* The next tile, turned: words of each column alone. */
    __device__ __forceinline__ words take()
    {
        words x;
        if (next != nullptr && left > (int64_t)((words::rows - 1) * members))
#pragma unroll
            for (int i = 0; i < words::rows; i++, next += step)
                x.of[i] = __ldg(next) ^ signs;
        else
#pragma unroll
            for (int i = 0; i < words::rows; i++)
                x.of[i] = next != nullptr && i * (int64_t)members < left ? __ldg(next + i * step) ^ signs : words::least();
        left -= words::rows * members;
        x.turn();
        return x;
    }
    /* take(s, vectors, index of the first), tile by tile, for each column s that shares the word. */
    template <class Take> __device__ __forceinline__ void for_each(const Take &take_column)
    {
#pragma unroll 1
        while (left > 0) {
            const uint32_t index = end - (uint32_t)left;
            const words x = take();
#pragma unroll
            for (int s = 0; s < words::side; s++) {
                uint4 vectors[words::vectors];
                x.vectors_of(s, vectors);
                take_column(s, vectors, index);
            }
        }
    }
};

/* A thread a column: the partials of its members, at(i), made one; then end(partial, result). */
template <class Element, class At, class Combine, class End>
static __device__ __forceinline__ void columns_end(const struct logits_columns &cut, const column_walk<Element> &walk, const At &at, const Combine &combine, const End &end)
{
    const uint32_t count = cut.across * column_words<Element>::side;
#pragma unroll 1
    for (uint32_t c = threadIdx.x; c < count && walk.first + c < cut.rows.results; c += blockDim.x) {
        auto partial = *at(c);
#pragma unroll 1
        for (uint32_t m = 1; m < cut.members; m++)
            combine(&partial, at(m * count + c));
        end(&partial, walk.first + c);
    }
}

/* As many columns side by side as a block has threads, but that a device has work for some times the threads that it has room for, `wanted`; then in splits. False: they do not lie
   as words, or leave many lanes of their warps without one, or are too short. */
template <class Element> static bool columns_cut(const struct axis_work *work, uint32_t threads, uint64_t wanted, size_t partial_bytes, struct logits_columns *cut)
{
    constexpr uint32_t side = column_words<Element>::side, rows = column_words<Element>::rows;
    struct box box = work->box;
    columns_turn(&box);
    const uint64_t length = box.length, results = box.outer * box.inner, words = results / side, lanes = (words + 31) / 32 * 32;
    const uint64_t room = work->bytes / (results * partial_bytes * 2);
    if (box.inner <= 1 || !columns_come_in(work->x, work->type, &box, side) || lanes * 3 > words * 4 || length < rows || length >= UINT32_MAX / 2)
        return false;
    *cut = {{work->x, results, 0, (uint32_t)length, 1, 0, (unsigned char *)work->partials, (unsigned char *)work->window.memory}, box, words, 0, threads, 1};
    while (cut->across > 32 && (words < cut->across || (words * cut->members < wanted && length >= 4 * rows * cut->members))) {
        cut->across /= 2;
        cut->members *= 2;
    }
    const uint64_t tile = rows * cut->members, useful = u64_min(wanted / (words * cut->members), length / (4 * tile)), splits = u64_max(1, u64_min(useful, room));
    cut->rows.chunk = (uint32_t)(((length + splits - 1) / splits + tile - 1) / tile * tile);
    cut->rows.splits = (uint32_t)((length + cut->rows.chunk - 1) / cut->rows.chunk);
    cut->blocks = (words + cut->across - 1) / cut->across;
    return cut->blocks * cut->rows.splits <= INT32_MAX;
}

/* Combines the splits of each row, and finishes the results, if they are wanted. Partials with marks get those of their targets, if there are any. Those that
   are wanted go to the window, too. */
static inline int rows_end(const struct axis_work *work, uint64_t splits, void *stream)
{
    const bool marked = monoid_has_mark(work->monoid);
    struct axis_work combining = *work;
    if (marked)
        combining.finish = nullptr;
    combining.window.memory = nullptr;
    int code = splits > 1 || combining.finish != nullptr ? axis_parts_launch(&combining, splits, stream) : (int)cudaSuccess;
    if (code == cudaSuccess && marked)
        code = logits_end_launch(work, stream);
    return code == cudaSuccess ? axis_send_launch(work, stream) : code;
}
