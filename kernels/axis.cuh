/* Folds along an axis, for any monoid and value type. A group of threads of one block, its members, takes a row, or one split of a
   long row, tile by tile; rows that lie side by side (columns) are taken side by side, so that neighbouring threads read
   neighbouring elements in either case. Included by axis_kernels.cuh.

   The kernels are in axis_kernels.cuh. How the work is cut follows from sizes, addresses modulo 16 bytes and the device alone, so the bits are the same run to run. */
#pragma once

#include "kernels/axis_stats.cuh"
#include "kernels/axis_stage.cuh"

/* The groups of a block, and the members of each: powers of two. */
struct axis_block {
    uint32_t groups, members;
    int low_bits; /* log2 of what neighbouring threads are: members, or of columns groups */
    bool columns; /* neighbouring threads belong to neighbouring groups */
};

/* How a box is cut into groups: the same for all kernels. */
struct axis_cut {
    struct box box;
    allfold_type type;
    int bytes_bits;          /* log2 of an element's bytes */
    uint64_t results, from;  /* of this launch: their number, and the first */
    uint64_t first;          /* the index along the axis of x[0] */
    uint64_t splits, chunk;  /* of the length, in elements */
    uint64_t stride;         /* of partials, in bytes */
    struct axis_block block;
    struct axis_block word_block; /* for words, of which shared memory has room for some groups */
    uint32_t rows;           /* of a block: as many as it has groups, or several times that, columns that share words */
    bool aligned;            /* elements of a row are neighbours, and every split of a row is aligned to 16 bytes */
    bool framed;             /* they are not aligned, but a run begins with its first vector, `before` elements in front of the row */
    struct axis_stage stage;
    bool quick;              /* exact sums: plain additions are tried first, */
    bool in_pairs;           /* of pairs of doubles */
    bool apart;              /* and that by axis_splits and axis_combine, which fold nothing by words, */
    uint32_t *again;         /* NULL; or which of all rows these could not finish: a mark for each */
    bool finishes;           /* results are wanted, not partials */
    struct axis_finish finish;
};

/* Where partials lie that are combined: those of split s of all results, s * step behind memory; NULL, and of split `own`: where a launch leaves them. */
struct axis_parts {
    const unsigned char *memory;
    uint64_t step, own;
};

/* A thread's place in its block. */
struct axis_thread {
    uint32_t group, member;
    bool works; /* a block has at least a warp of threads, and more than it needs if there is little work */
};
static __device__ __forceinline__ struct axis_thread thread_of(const struct axis_block &block)
{
    const uint32_t low = threadIdx.x & ((1u << block.low_bits) - 1), high = threadIdx.x >> block.low_bits;
    if (block.columns)
        return {low, high, high < block.members};
    return {high, low, high < block.groups};
}

/* Bytes of what the members of a group combine in order. in_room: only what lies where a block's tiles were, or only what does not. */
constexpr size_t larger(size_t a, size_t b) { return a > b ? a : b; }
template <class Axis> constexpr size_t axis_slot_bytes(bool in_room)
{
    size_t bytes = Axis::is_ordered && Axis::slots_in_room == in_room ? sizeof(typename Axis::ordered) : 0;
    if constexpr (Axis::tries)
        if (Axis::quick::slots_in_room == in_room)
            bytes = larger(bytes, sizeof(typename Axis::quick::ordered));
    return bytes;
}
/* Bytes of the tiles that a thread keeps. */
template <class Axis> constexpr size_t axis_tile_bytes = Axis::takes_tiles || Axis::tries_tiles ? tiles_ends::bytes : 0;

/* Sizes of a block, so that its shared memory fits every GPU. */
template <class Axis> struct axis_plan {
    static constexpr size_t slot_bytes = axis_slot_bytes<Axis>(false), slot_in_room = axis_slot_bytes<Axis>(true);
    static constexpr int threads = larger(slot_bytes, slot_in_room) > 96 ? AXIS_SHAPE.threads / 2 : AXIS_SHAPE.threads;
    static constexpr size_t slots_bytes = larger(slot_bytes * threads, 16);
    /* of a multiprocessor at one time, by the registers that they need */
    static constexpr int blocks = axis_blocks(Axis::cost, Axis::words > 0) * (Axis::words > 0 ? AXIS_SHAPE.threads / threads : 1);
    static constexpr uint32_t row_words = sizeof(typename Axis::whole) / sizeof(int64_t) + 1; /* of a partial that begins with words; + 1: other banks */
    static constexpr int most = Axis::words > 0 ? (int)(AXIS_SHAPE.words_bytes / (sizeof(int64_t) * row_words)) : threads;
    static constexpr size_t tiles_bytes = threads * larger(axis_tile_bytes<Axis>, slot_in_room);
    static constexpr int groups = most >= threads ? threads : most >= 64 ? 64 : most >= 32 ? 32 : most >= 16 ? 16 : most >= 8 ? 8 : 4;
    static_assert(slot_in_room == 0 || threads == TILES_THREADS, "where tiles lie");
    static constexpr size_t staged_bytes = Axis::tries || Axis::staged_bytes > 0 ? AXIS_SHAPE.stage_bytes + 128 : 0;
    static constexpr size_t room_bytes = larger(larger(staged_bytes, tiles_bytes), Axis::words > 0 ? AXIS_SHAPE.words_bytes : 0); /* at most */
    static_assert(most >= 4 && slots_bytes <= 40960, "shared memory for the smallest blocks");
    static_assert(slots_bytes + room_bytes + 256 <= 48 << 10, "shared memory that a launch has without asking for it"); /* 256: for anything else */
};

/* The first element of row r of the box. */
static __device__ __forceinline__ uint64_t row_at(const struct box &box, uint64_t r)
{
    if (box.inner == 1)
        return r * box.outer_stride;
    return r < box.inner ? r : r / box.inner * box.outer_stride + r % box.inner; /* without divisions if there is one plane */
}

/* Takes the elements of a tile, of which some may be behind the end: in runs of neighbours that every tile has whole or in part. The code
   for a run exists once: runs are shifted down to the first. */
template <class Axis>
static __device__ __forceinline__ void runs_take(typename Axis::state *state, typename Axis::value *values, const struct axis_tile &tile,
                                                 uint64_t length, uint64_t first)
{
    constexpr uint32_t count = 16 / sizeof(typename Axis::value), all = AXIS_SHAPE.tile;
#pragma unroll 1
    for (uint32_t run = 0; run < all; run += count) {
        const uint64_t at = tile_place(tile, run);
        if (at + count <= length)
            Axis::take(state, values, count, first + at);
        else
#pragma unroll 1
            for (uint32_t i = 0; at + i < length; i++) {
                Axis::take(state, values, 1, first + at + i);
#pragma unroll
                for (uint32_t j = 1; j < count; j++)
                    values[j - 1] = values[j];
            }
#pragma unroll
        for (uint32_t j = count; j < all; j++)
            values[j - count] = values[j];
    }
}

/* Takes a whole tile, whose elements behind the end are Axis::rest(). */
template <class Axis>
static __device__ __forceinline__ void tile_take(typename Axis::state *state, const typename Axis::value *values, const struct axis_run &run,
                                                 const struct axis_tile &tile)
{
    typedef typename Axis::value value;
    if constexpr (Axis::words < 0)
        if constexpr (Axis::loads_again)
            return state->partial.tile_take(values, AXIS_SHAPE.tile, [&](uint32_t i) {
                const uint64_t at = tile_place(tile, i);
                return at >= run.before && at < run.length ? ((const value *)run.x)[at * run.stride] : Axis::rest();
            });
    Axis::take(state, values, AXIS_SHAPE.tile, AXIS_MARK);
}

/* Takes a member's tiles of aligned elements of 4 bytes or less, as long as all vectors are there that it loads at a time: those of one tile, or of
   several tiles of short elements, so that as many bytes of these are under way. */
template <class Axis, class Element>
static __device__ __forceinline__ void whole_vectors_take(typename Axis::state *state, const struct axis_run &run, struct axis_tile *tile, uint64_t step,
                                                          uint64_t first)
{
    typedef typename Element::stored stored;
    constexpr uint32_t size = AXIS_SHAPE.tile, count = Element::per_vector, of_tile = size / count, vectors = size / 4;
#pragma unroll 1
    while (tile->first + (vectors - 1) * tile->jump + count <= run.length) {
        const stored *const x = (const stored *)run.x + tile->first;
        uint4 loaded[vectors];
#pragma unroll
        for (uint32_t i = 0; i < vectors; i++)
            loaded[i] = __ldg((const uint4 *)(x + i * tile->jump));
#pragma unroll
        for (uint32_t from = 0; from < vectors; from += of_tile) {
            typename Axis::value values[size];
#pragma unroll
            for (uint32_t i = 0; i < size; i++)
                values[i] = Element::load(vector_element<stored>(loaded[from + i / count], i % count));
            front_fill<count>(values, run, *tile, Axis::rest());
            tile_take<Axis>(state, values, run, *tile);
            Axis::place(state, *tile, first);
            tile->first += step;
        }
    }
}

/* A member's part of the work. */
struct axis_place {
    uint64_t row, split;
    uint32_t member, members;
};

/* Takes a member's elements of its group's split of a row, tile by tile in ascending order. Members take vectors in turns if a row's
   elements are neighbours, else elements in turns; or whole tiles, if elements are no neighbours and no element can stand for what is behind
   the end. */
template <class Axis>
static __device__ __forceinline__ void member_take(typename Axis::state *state, const void *x, const struct axis_cut &cut,
                                                   const struct axis_place &place)
{
    typedef typename Axis::value value;
    constexpr uint32_t size = AXIS_SHAPE.tile;
    const uint64_t begin = place.split * cut.chunk, stride = cut.box.axis_stride;
    const char *row = (const char *)x + ((row_at(cut.box, cut.from + place.row) + begin * stride) << cut.bytes_bits);
    uint64_t left = cut.box.length - begin;
    uint32_t before = 0;
    bool aligned = cut.aligned;
    if constexpr (Axis::is_framed)
        if (cut.framed) {
            before = (uint32_t)((uintptr_t)row % 16) >> cut.bytes_bits; /* splits are whole vectors */
            row -= before << cut.bytes_bits;
            left = begin < before + cut.box.length ? before + cut.box.length - begin : 0;
            aligned = true;
        }
    struct axis_run run = {row, left < cut.chunk ? left : cut.chunk, stride, cut.type, aligned, place.split == 0 ? before : 0, nullptr};
    const int run_bits = stride == 1 ? 4 - cut.bytes_bits : Axis::has_rest ? 0 : 4;
    struct axis_tile tile = {(uint64_t)place.member << run_bits, (uint64_t)place.members << run_bits, run_bits};
    static_assert(size == 16, "as many elements as a vector has bytes");
    struct axis_copies copies = axis_copies_of(run, tile, cut.bytes_bits);
    uint32_t turn = 0;
    if constexpr (Axis::takes_tiles)
        if (run.aligned)
            copies.fetch(state->ends.ahead(0));
    if constexpr (Axis::is_light)
        if (run.aligned && (cut.bytes_bits < 2 || run.length >= LIGHT_LEAST))
            with_element_of<value>(cut.type, [&](auto element) {
                whole_vectors_take<Axis, decltype(element)>(state, run, &tile, (uint64_t)size * place.members, cut.first + begin);
            });
#pragma unroll 1
    for (; tile.first < run.length; tile.first += (uint64_t)size * place.members) {
        value values[size];
        if constexpr (Axis::takes_tiles) {
            if (run.aligned) {
                run.fetched = state->ends.ahead(turn);
                turn ^= 1;
                copies.fetch(state->ends.ahead(turn));
                copy_wait(1);
            }
        }
        axis_load_tile(values, run, tile, Axis::rest());
        if constexpr (Axis::takes_tiles) {
            Axis::take_tile(state, values, tile, run.length, cut.first + begin);
        } else if (Axis::has_rest || tile_place(tile, size - 1) < run.length) {
            tile_take<Axis>(state, values, run, tile);
            Axis::place(state, tile, cut.first + begin);
        } else if constexpr (!Axis::has_rest)
            runs_take<Axis>(state, values, tile, run.length, cut.first + begin);
    }
}

/* The same of columns that share words: a state each. */
template <class Axis, class Element>
static __device__ __forceinline__ void columns_take(typename Axis::state *states, const void *x, const struct axis_cut &cut, const struct axis_place &place)
{
    typedef typename Element::stored stored;
    constexpr uint32_t size = AXIS_SHAPE.tile, side = 4 / sizeof(stored);
    const uint64_t begin = place.split * cut.chunk, left = cut.box.length - begin, length = left < cut.chunk ? left : cut.chunk, stride = cut.box.axis_stride;
    const stored *const from = (const stored *)x + row_at(cut.box, cut.from + place.row) + begin * stride;
    const int run_bits = Axis::has_rest ? 0 : 4;
    struct axis_tile tile = {(uint64_t)place.member << run_bits, (uint64_t)place.members << run_bits, run_bits};
    const uint64_t step = (run_bits == 0 ? tile.jump : 1) * stride;
#pragma unroll 1
    for (; tile_place(tile, size - 1) < length; tile.first += (uint64_t)size * place.members) {
        const stored *const at = from + tile.first * stride;
        uint32_t words[size];
#pragma unroll
        for (uint32_t i = 0; i < size; i++)
            words[i] = __ldg((const uint32_t *)(at + i * step));
#pragma unroll
        for (uint32_t s = 0; s < side; s++) {
            typename Axis::value values[size];
#pragma unroll
            for (uint32_t i = 0; i < size; i++)
                values[i] = Element::load(vector_element<stored>(make_uint4(words[i], 0, 0, 0), s));
            Axis::take(&states[s], values, size, AXIS_MARK);
            Axis::place(&states[s], tile, cut.first + begin);
        }
    }
#pragma unroll 1
    for (uint32_t i = 0; i < size && tile_place(tile, i) < length; i++) {
        const uint64_t at = tile_place(tile, i);
        const uint4 word = make_uint4(__ldg((const uint32_t *)(from + at * stride)), 0, 0, 0);
#pragma unroll
        for (uint32_t s = 0; s < side; s++) {
            const typename Axis::value value = Element::load(vector_element<stored>(word, s));
            Axis::take(&states[s], &value, 1, cut.first + begin + at);
        }
    }
}

/* Combines the partials of the first `members` members of a group, those of one warp, in that of the first. */
template <class Axis>
static __device__ __forceinline__ void lanes_combine(typename Axis::ordered *mine, uint32_t members, uint32_t distance)
{
    if constexpr (Axis::shares)
        Axis::share_max(mine, members, distance);
#pragma unroll 1
    for (uint32_t step = 1; step < members && step * distance < 32; step *= 2) {
        const typename Axis::ordered other = partial_shuffle_down(*mine, (int)(step * distance));
        Axis::combine(mine, &other);
    }
}

/* Combines the partials of a group's members in that of member 0; other threads get what is undefined. Threads of one group are
   `distance` apart. All threads of a block call it. */
template <class Axis>
static __device__ __forceinline__ void members_combine(typename Axis::ordered *mine, typename Axis::ordered *slots,
                                                       const struct axis_thread &thread, uint32_t members, uint32_t distance)
{
    const uint32_t lanes = distance < 32 ? 32 / distance : 1, warps = members / lanes; /* members in a warp; warps that have some of the group */
    lanes_combine<Axis>(mine, members, distance);
    if (warps <= 1)
        return;
    if constexpr (Axis::takes_tiles) /* slots lie where tiles were */
        __syncthreads();
    if (thread.works && thread.member % lanes == 0)
        slots[thread.group * warps + thread.member / lanes] = *mine;
    __syncthreads();
    if constexpr (Axis::shares)
        if (distance == 1) { /* combining takes long: by lanes of the group's first warp */
            if (thread.member >= 32)
                return;
            *mine = thread.member < warps ? slots[thread.group * warps + thread.member] : Axis::end_identity();
            lanes_combine<Axis>(mine, warps, 1);
            return;
        }
    if (!thread.works || thread.member != 0)
        return;
#pragma unroll 1
    for (uint32_t warp = 1; warp < warps; warp++)
        Axis::combine(mine, &slots[thread.group * warps + warp]);
}

/* Takes a member's elements of a staged row, tile by tile in ascending order: quads in turns, or elements in turns. */
template <class Axis>
static __device__ __forceinline__ void staged_take(typename Axis::state *state, const struct axis_cut &cut, const struct stage_walk &walk,
                                                   uint32_t member)
{
    typedef typename Axis::value value;
    const uint32_t members = cut.block.members;
    const bool quads = cut.stage.quads;
    struct staged_tile tile = {quads ? STAGE_TILE * member : member, members, (uint32_t)cut.box.length, quads};
#pragma unroll 1
    for (; tile.first < tile.end; tile.first += STAGE_TILE * members) {
        value values[STAGE_TILE];
        staged_load(values, cut.type, walk, tile, Axis::rest());
        if (Axis::has_rest || quads || tile.first + (STAGE_TILE - 1) * members < tile.end) {
            Axis::take(state, values, STAGE_TILE, AXIS_MARK);
            Axis::place(state, {tile.first, members, quads ? 2 : 0}, cut.first);
        } else if constexpr (!Axis::has_rest) {
#pragma unroll 1
            for (uint32_t at = tile.first; at < tile.end; at += members) {
                Axis::take(state, values, 1, cut.first + at);
#pragma unroll
                for (uint32_t i = 1; i < STAGE_TILE; i++)
                    values[i - 1] = values[i];
            }
        }
    }
}

/* A block's rows: for each group one, or columns that share a word. Staged ones, and those of words, are taken in turns. */
struct axis_rows {
    uint64_t first, count;
    uint32_t split;
};
static __device__ __forceinline__ struct axis_rows rows_of(const void *x, const struct axis_cut &cut)
{
    if (cut.stage.rows > 0) {
        const struct staged part = staged_of(x, cut.stage, cut.box, nullptr);
        return {part.first, part.rows, 0};
    }
    const uint32_t splits = (uint32_t)cut.splits;
    const uint64_t first = (uint64_t)(blockIdx.x / splits) * cut.rows, left = cut.results - first;
    return {first, left < cut.rows ? left : cut.rows, blockIdx.x % splits};
}

/* The partial of row r and split s. */
template <class Axis>
static __device__ __forceinline__ typename Axis::whole *partial_at(unsigned char *partials, const struct axis_cut &cut, uint64_t r, uint32_t split)
{
    return (typename Axis::whole *)(partials + (split * cut.results + r) * cut.stride);
}

/* Those of a block's rows that accumulators without words could not finish: a bit for each, or for some neighbours of many. */
struct failed_rows {
    uint32_t any, bits[32];
    /* By all threads of a block, which wait for each other before another call. */
    __device__ __forceinline__ void clear()
    {
        if (threadIdx.x < 32)
            bits[threadIdx.x] = any = 0;
    }
    static __device__ __forceinline__ uint32_t bit_of(uint32_t row, uint32_t rows)
    {
        for (; rows > 32 * 32; rows = (rows + 1) / 2)
            row /= 2;
        return row;
    }
    __device__ __forceinline__ void add(uint32_t row, uint32_t rows)
    {
        any = 1;
        atomicOr(&bits[bit_of(row, rows) / 32], 1u << bit_of(row, rows) % 32);
    }
    __device__ __forceinline__ bool has(uint32_t row, uint32_t rows) const { return (bits[bit_of(row, rows) / 32] >> bit_of(row, rows) % 32 & 1) != 0; }
};

/* Finishes or stores the partial of row r. False if it could not be finished. */
template <class Axis>
static __device__ __forceinline__ bool ordered_end(const typename Axis::ordered &end, const struct axis_cut &cut, unsigned char *partials, uint64_t r,
                                                   uint32_t split)
{
    if constexpr (Axis::words >= 0 || !Axis::has_splits)
        if (cut.finishes && cut.splits == 1)
            return Axis::finish(end, cut.finish, cut.from + r);
    if constexpr (Axis::has_splits)
        partial_at<Axis>(partials, cut, r, split)->end = end;
    return true;
}

/* Folds a block's rows whose partials are all ordered. */
template <class Axis>
static __device__ __forceinline__ void ordered_fold(const void *x, const struct axis_cut &cut, unsigned char *partials, unsigned char *room,
                                                    typename Axis::ordered *slots, struct failed_rows *failed)
{
    const struct axis_block &block = cut.block;
    const struct axis_thread thread = thread_of(block);
    const struct axis_rows rows = rows_of(x, cut);
    const bool is_row = thread.works && thread.group < rows.count;
    typename Axis::state state;
    Axis::start(&state, room, false);
    if (is_row)
        member_take<Axis>(&state, x, cut, {rows.first + thread.group, rows.split, thread.member, block.members});
    typename Axis::ordered end = Axis::end_of(state);
    members_combine<Axis>(&end, slots, thread, block.members, block.columns ? block.groups : 1);
    if (is_row && thread.member == 0 && !ordered_end<Axis>(end, cut, partials, rows.first + thread.group, rows.split))
        failed->add(thread.group, (uint32_t)rows.count);
}

/* The same of columns that share words. */
template <class Axis, class Element>
static __device__ __forceinline__ void columns_fold_of(const void *x, const struct axis_cut &cut, unsigned char *partials, typename Axis::ordered *slots,
                                                    struct failed_rows *failed)
{
    constexpr uint32_t side = 4 / sizeof(typename Element::stored);
    const struct axis_block &block = cut.block;
    const struct axis_thread thread = thread_of(block);
    const struct axis_rows rows = rows_of(x, cut);
    const uint32_t row = thread.group * side;
    const bool is_row = thread.works && row < rows.count;
    typename Axis::state states[side];
#pragma unroll
    for (uint32_t s = 0; s < side; s++)
        Axis::start(&states[s], nullptr, false);
    if (is_row)
        columns_take<Axis, Element>(states, x, cut, {rows.first + row, rows.split, thread.member, block.members});
#pragma unroll 1
    for (uint32_t s = 0; s < side; s++) { /* states move down to the first: one copy of the code */
        typename Axis::ordered end = Axis::end_of(states[0]);
        if (s > 0)
            __syncthreads();
        members_combine<Axis>(&end, slots, thread, block.members, block.groups);
        if (is_row && thread.member == 0 && !ordered_end<Axis>(end, cut, partials, rows.first + row + s, rows.split))
            failed->add(row + s, (uint32_t)rows.count);
#pragma unroll
        for (uint32_t i = 1; i < side; i++)
            states[i - 1] = states[i];
    }
}
template <class Axis>
static __device__ __forceinline__ void columns_fold(const void *x, const struct axis_cut &cut, unsigned char *partials, typename Axis::ordered *slots,
                                                    struct failed_rows *failed)
{
    with_element_of<typename Axis::value>(cut.type, [&](auto element) {
        typedef decltype(element) Element;
        if constexpr (sizeof(typename Element::stored) < 4)
            columns_fold_of<Axis, Element>(x, cut, partials, slots, failed);
    });
}

/* The same of staged rows. */
template <class Axis>
static __device__ __forceinline__ void staged_fold(const void *x, const struct axis_cut &cut, unsigned char *partials, unsigned char *stage,
                                                   typename Axis::ordered *slots, struct failed_rows *failed)
{
    const struct axis_block &block = cut.block;
    const struct axis_thread thread = thread_of(block);
    const struct staged part = staged_of(x, cut.stage, cut.box, stage);
    stage_copy(part, cut.stage);
#pragma unroll 1
    for (uint32_t row = thread.group; row - thread.group < part.rows; row += block.groups) { /* more than once only if groups have one member */
        typename Axis::state state;
        Axis::start(&state, nullptr, false);
        if (row < part.rows)
            staged_take<Axis>(&state, cut, stage_walk_of(part, cut.stage, cut.box, row), thread.member);
        typename Axis::ordered end = Axis::end_of(state);
        if (block.members > 1)
            members_combine<Axis>(&end, slots, thread, block.members, block.columns ? block.groups : 1);
        if (row < part.rows && thread.member == 0 && !ordered_end<Axis>(end, cut, partials, part.first + row, 0))
            failed->add(row, part.rows);
    }
}

template <class Axis>
static __device__ __forceinline__ void any_fold(const void *x, const struct axis_cut &cut, unsigned char *partials, unsigned char *stage,
                                                typename Axis::ordered *slots, struct failed_rows *failed)
{
    if constexpr (Axis::is_light && Axis::words < 0) /* others have a kernel for these */
        if (cut.rows > cut.block.groups)
            return columns_fold<Axis>(x, cut, partials, slots, failed);
    if constexpr (Axis::staged_bytes > 0)
        if (cut.stage.rows > 0)
            return staged_fold<Axis>(x, cut, partials, stage, slots, failed);
    ordered_fold<Axis>(x, cut, partials, stage, slots, failed);
}
