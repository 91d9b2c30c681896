/* Folds along an axis, for any monoid and value type. A group of threads of one block, its members, takes a row, or one split of a
   long row, tile by tile; rows that lie side by side (columns) are taken side by side, so that neighbouring threads read
   neighbouring elements in either case. Members combine their partials through shared memory; exact sums share words there, as in
   exact.cuh. Splits are combined by a second kernel. How the work is cut follows from sizes and the device alone, so the bits are the
   same run to run. Included by axis_family.cuh. */
#pragma once

#include "kernels/axis_element.cuh"
#include "kernels/exact.cuh"

/* The groups of a block, and the members of each: powers of two. */
struct axis_seats {
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
    struct axis_seats seats;
    bool aligned;            /* elements of a row are neighbours, and every split of a row is aligned to 16 bytes */
    bool finishes;           /* results are wanted, not partials */
    struct axis_finish finish;
};

/* A thread's place in its block. */
struct axis_seat {
    uint32_t group, member;
    bool taken; /* a block has at least a warp of threads, and more than it needs if there is little work */
};
static __device__ __forceinline__ struct axis_seat seat_of(const struct axis_seats &seats)
{
    const uint32_t low = threadIdx.x & ((1u << seats.low_bits) - 1), high = threadIdx.x >> seats.low_bits;
    if (seats.columns)
        return {low, high, high < seats.members};
    return {high, low, high < seats.groups};
}

/* Indices of a tile that was taken as if its elements were neighbours, from AXIS_MARK on. */
constexpr uint64_t AXIS_MARK = (uint64_t)1 << 63;
template <class Fold>
static __device__ __forceinline__ void indices_place(typename Fold::partial *partial, const struct axis_tile &tile, uint64_t first)
{
    uint64_t *places[MONOID_INDICES_MAX];
    const int count = partial_indices(partial, places, Fold());
#pragma unroll
    for (int i = 0; i < count; i++)
        if (*places[i] - AXIS_MARK < (uint64_t)AXIS_SHAPE.tile)
            *places[i] = first + tile_place(tile, (uint32_t)(*places[i] - AXIS_MARK));
}

/* The monoids whose partials are structs: all of a partial is ordered. */
template <class Fold> struct axis_struct {
    typedef typename Fold::value value;
    typedef typename Fold::partial ordered;
    static constexpr enum cost cost = Fold::cost;
    struct state {
        ordered partial;
    };
    struct whole {
        ordered end;
    };
    static constexpr int words = 0;
    static __device__ __forceinline__ void finish(const ordered &partial, const struct axis_finish &call, uint64_t r)
    {
        result_finish<Fold::monoid, value>(partial, call, r);
    }
    static constexpr bool is_ordered = true, has_rest = has_neutral<value>(Fold::monoid);
    static __device__ __forceinline__ value rest() { return neutral_of<Fold::monoid, value>(); }
    static __device__ __forceinline__ void start(state *s, int64_t *, bool) { s->partial = Fold::identity(); }
    static __device__ __forceinline__ void take(state *s, const value *x, uint32_t n, uint64_t first)
    {
        Fold::tile(&s->partial, x, n, first);
    }
    static __device__ __forceinline__ void place(state *s, const struct axis_tile &tile, uint64_t first)
    {
        if constexpr (Fold::indexed)
            indices_place<Fold>(&s->partial, tile, first);
    }
    static __device__ __forceinline__ void flush(state *, int64_t *, bool) {}
    static __device__ __forceinline__ void normalise(int64_t *) {}
    static __device__ __forceinline__ ordered end_of(const state &s) { return s.partial; }
    static __device__ __forceinline__ ordered end_identity() { return Fold::identity(); }
    static __device__ __forceinline__ void combine(ordered *a, const ordered *b) { Fold::combine(a, b); }
};

/* The extremes of exact stats; nothing of the other exact sums. */
template <class Value, bool indexed> struct axis_ends {
    typedef fold_of<MONOID_argmin, Value> least;
    typedef fold_of<MONOID_argmax, Value> largest;
    typename least::partial min;
    typename largest::partial max;
};
template <class Value> struct axis_ends<Value, false> {};

/* The monoids whose partials begin with words that are added. Members of a group add to the same words, by atomics. */
template <class Exact> struct axis_words {
    typedef typename Exact::value value;
    typedef axis_ends<value, Exact::indexed> ordered;
    typedef typename Exact::partial state;
    typedef typename Exact::whole partial;
    static constexpr enum monoid monoid = Exact::monoid;
    static constexpr enum cost cost = Exact::indexed ? COST_STATS : COST_MUCH;
    struct words_only {
        int64_t of[Exact::words];
    };
    struct words_and_ends {
        int64_t of[Exact::words];
        axis_ends<value, true> end;
    };
    typedef typename std::conditional<Exact::indexed, words_and_ends, words_only>::type whole;
    static constexpr int words = Exact::words;
    static constexpr bool is_ordered = Exact::indexed, has_rest = has_neutral<value>(Exact::monoid);
    static __device__ __forceinline__ value rest() { return neutral_of<Exact::monoid, value>(); }
    static __device__ __forceinline__ void sinks_place(struct exact_sink *sinks, int64_t *at, bool shared)
    {
        constexpr int count = sizeof(state::sinks) / sizeof(struct exact_sink);
        Exact::place(sinks, at, 1);
        for (int i = 0; i < count; i++)
            sinks[i].shared = shared;
    }
    static __device__ __forceinline__ void start(state *s, int64_t *at, bool shared)
    {
        Exact::start(s);
        sinks_place(s->sinks, at, shared);
    }
    static __device__ __forceinline__ void take(state *s, const value *x, uint32_t n, uint64_t first) { Exact::tile(s, x, n, first); }
    static __device__ __forceinline__ void place(state *s, const struct axis_tile &tile, uint64_t first)
    {
        if constexpr (Exact::indexed) {
            indices_place<typename ordered::least>(&s->accumulator.min, tile, first);
            indices_place<typename ordered::largest>(&s->accumulator.max, tile, first);
        }
    }
    /* Adds what a thread holds to the words. together: all threads of its warp have the same, and call it. */
    static __device__ __forceinline__ void flush(state *s, int64_t *at, bool together)
    {
        if (together) {
            struct exact_sink sinks[sizeof(state::sinks) / sizeof(struct exact_sink)];
            sinks_place(sinks, at, true);
            Exact::add(s, sinks);
        } else if constexpr (Exact::indexed) {
            Exact::sum::finish(&s->accumulator.sum, &s->sinks[0]);
            Exact::norm1::finish(&s->accumulator.norm1, &s->sinks[1]);
            Exact::norm2::finish(&s->accumulator.norm2, &s->sinks[2]);
        } else {
            Exact::finish(&s->accumulator, &s->sinks[0]);
        }
    }
    static __device__ __forceinline__ void normalise(int64_t *at)
    {
        struct exact_sink sinks[sizeof(state::sinks) / sizeof(struct exact_sink)];
        sinks_place(sinks, at, false);
        for (struct exact_sink &sink : sinks)
            exact_sink_normalise(&sink);
    }
    static __device__ __forceinline__ void finish(const ordered &, const struct axis_finish &, uint64_t) {} /* see words_finish */
    static __device__ __forceinline__ ordered end_identity()
    {
        ordered end;
        if constexpr (Exact::indexed) {
            end.min = ordered::least::identity();
            end.max = ordered::largest::identity();
        }
        return end;
    }
    static __device__ __forceinline__ ordered end_of(const state &s)
    {
        ordered end;
        if constexpr (Exact::indexed) {
            end.min = s.accumulator.min;
            end.max = s.accumulator.max;
        }
        return end;
    }
    static __device__ __forceinline__ void combine(ordered *a, const ordered *b)
    {
        if constexpr (Exact::indexed) {
            ordered::least::combine(&a->min, &b->min);
            ordered::largest::combine(&a->max, &b->max);
        }
    }
};

/* Sizes of a block, so that its shared memory fits every GPU. */
template <class Axis> struct axis_plan {
    static constexpr int threads = Axis::is_ordered && sizeof(typename Axis::ordered) > 96 ? AXIS_SHAPE.threads / 2 : AXIS_SHAPE.threads;
    static constexpr int blocks = axis_blocks(Axis::cost); /* of a multiprocessor at one time, by the registers that they need */
    static constexpr int most = Axis::words > 0 ? (int)(AXIS_SHAPE.words_bytes / (sizeof(int64_t) * (Axis::words + 1))) : threads;
    static constexpr int groups = most >= threads ? threads : most >= 64 ? 64 : most >= 32 ? 32 : most >= 16 ? 16 : most >= 8 ? 8 : 4;
    static_assert(most >= 4 && sizeof(typename Axis::ordered) * threads <= 40960, "shared memory for the smallest blocks");
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

/* Takes a member's elements of its group's split of a row, tile by tile in ascending order. Members take vectors in turns if a row's
   elements are neighbours, else elements in turns; or whole tiles, if elements are no neighbours and no element can stand for what is behind the end. */
template <class Axis>
static __device__ __forceinline__ void member_take(typename Axis::state *state, const void *x, const struct axis_cut &cut, uint64_t r,
                                                   uint64_t split, uint32_t member)
{
    typedef typename Axis::value value;
    constexpr uint32_t size = AXIS_SHAPE.tile;
    const uint64_t begin = split * cut.chunk, left = cut.box.length - begin, stride = cut.box.axis_stride;
    const struct axis_run run = {(const char *)x + ((row_at(cut.box, cut.from + r) + begin * stride) << cut.bytes_bits),
                                 left < cut.chunk ? left : cut.chunk, stride, cut.type, cut.aligned};
    const int run_bits = stride == 1 ? 4 - cut.bytes_bits : Axis::has_rest ? 0 : 4;
    struct axis_tile tile = {(uint64_t)member << run_bits, (uint64_t)cut.seats.members << run_bits, run_bits};
    static_assert(size == 16, "as many elements as a vector has bytes");
#pragma unroll 1
    for (; tile.first < run.length; tile.first += (uint64_t)size * cut.seats.members) {
        value values[size];
        axis_load_tile(values, run, tile, Axis::rest());
        if (Axis::has_rest || tile_place(tile, size - 1) < run.length) {
            Axis::take(state, values, size, AXIS_MARK);
            Axis::place(state, tile, cut.first + begin);
        } else if constexpr (!Axis::has_rest)
            runs_take<Axis>(state, values, tile, run.length, cut.first + begin);
    }
}

/* Combines the partials of a group's members in that of member 0; other threads get what is undefined. Threads of one group are
   `distance` apart. Takes whole blocks. */
template <class Axis>
static __device__ __forceinline__ void members_combine(typename Axis::ordered *mine, typename Axis::ordered *slots,
                                                       const struct axis_seat &seat, uint32_t members, uint32_t distance)
{
    uint32_t step = 1;
#pragma unroll 1
    for (; step < members && step * distance < 32; step *= 2) {
        const typename Axis::ordered other = partial_shuffle_down(*mine, (int)(step * distance));
        Axis::combine(mine, &other);
    }
    if (step >= members)
        return;
    const uint32_t warps = members / step; /* that have some of the group */
    if (seat.taken && seat.member % step == 0)
        slots[seat.group * warps + seat.member / step] = *mine;
    __syncthreads();
    if (!seat.taken || seat.member != 0)
        return;
#pragma unroll 1
    for (uint32_t warp = 1; warp < warps; warp++)
        Axis::combine(mine, &slots[seat.group * warps + warp]);
}

/* Partial of row r and split s: partials + (s * results + r) * stride. */
template <class Axis>
static __global__ void __launch_bounds__(axis_plan<Axis>::threads, axis_plan<Axis>::blocks)
axis_fold(const void *x, const __grid_constant__ struct axis_cut cut, unsigned char *partials)
{
    constexpr int threads = axis_plan<Axis>::threads, row_words = Axis::words > 0 ? Axis::words + 1 : 1; /* + 1: other banks */
    __shared__ typename Axis::ordered slots[Axis::is_ordered ? threads : 1];
    __shared__ int64_t words[Axis::words > 0 ? axis_plan<Axis>::groups * row_words : 1];
    const struct axis_seats &seats = cut.seats;
    const struct axis_seat seat = seat_of(seats);
    const uint32_t splits = (uint32_t)cut.splits, split = blockIdx.x % splits;
    const uint64_t r = (uint64_t)(blockIdx.x / splits) * seats.groups + seat.group;
    const bool is_row = seat.taken && r < cut.results;
    int64_t *const own = words + (Axis::words > 0 && seat.taken ? seat.group * row_words : 0);
    typename Axis::state state;
    if constexpr (Axis::words > 0) {
        for (uint32_t i = threadIdx.x; i < seats.groups * row_words; i += blockDim.x)
            words[i] = 0;
        __syncthreads();
    }
    Axis::start(&state, own, seats.members > 1);
    if (is_row)
        member_take<Axis>(&state, x, cut, r, split, seat.member);
    typename Axis::whole *const to = (typename Axis::whole *)(partials + (split * cut.results + r) * cut.stride);
    if constexpr (Axis::words > 0) {
        const bool together = seats.members >= 32 && !seats.columns;
        __syncwarp();
        if (together || is_row)
            Axis::flush(&state, own, together);
    }
    if constexpr (Axis::is_ordered) {
        typename Axis::ordered end = Axis::end_of(state);
        members_combine<Axis>(&end, slots, seat, seats.members, seats.columns ? seats.groups : 1);
        if (is_row && seat.member == 0) {
            if (Axis::words == 0 && cut.finishes && cut.splits == 1)
                Axis::finish(end, cut.finish, cut.from + r);
            else
                to->end = end;
        }
    }
    if constexpr (Axis::words > 0) {
        __syncthreads();
        if (is_row && seat.member == 0)
            Axis::normalise(own);
        __syncthreads();
        for (uint32_t i = seat.member; i < Axis::words && is_row; i += seats.members)
            to->of[i] = own[i];
    }
}

/* Combines the splits of each row in the first. A group of threads a row; words are added one by one. */
template <class Axis>
static __global__ void __launch_bounds__(axis_plan<Axis>::threads)
axis_combine(unsigned char *partials, const __grid_constant__ struct axis_cut cut, const __grid_constant__ struct axis_seats seats)
{
    __shared__ typename Axis::ordered slots[Axis::is_ordered ? axis_plan<Axis>::threads : 1];
    const struct axis_seat seat = seat_of(seats);
    const uint64_t r = (uint64_t)blockIdx.x * seats.groups + seat.group;
    const bool is_row = seat.taken && r < cut.results;
    const auto split_at = [&](uint64_t split) { return (typename Axis::whole *)(partials + (split * cut.results + r) * cut.stride); };
    if constexpr (Axis::is_ordered) {
        typename Axis::ordered end = Axis::end_identity();
#pragma unroll 1
        for (uint64_t split = is_row ? seat.member : cut.splits; split < cut.splits; split += seats.members)
            Axis::combine(&end, &split_at(split)->end);
        members_combine<Axis>(&end, slots, seat, seats.members, 1);
        if (is_row && seat.member == 0) {
            if (Axis::words == 0 && cut.finishes)
                Axis::finish(end, cut.finish, cut.from + r);
            else
                split_at(0)->end = end;
        }
    }
    if constexpr (Axis::words > 0)
#pragma unroll 1
        for (uint32_t i = seat.member; i < Axis::words && is_row; i += seats.members) {
            int64_t sum = 0; /* of carried limbs, and of counts */
#pragma unroll 4
            for (uint64_t split = 0; split < cut.splits; split++)
                sum += split_at(split)->of[i];
            split_at(0)->of[i] = sum;
        }
}

/* Finishes results of words: a thread a row, because it takes many steps. */
template <class Axis>
static __global__ void __launch_bounds__(AXIS_SHAPE.threads)
words_finish(const unsigned char *partials, const __grid_constant__ struct axis_cut cut)
{
    typedef typename Axis::partial partial;
    static_assert(sizeof(partial) == sizeof(typename Axis::whole), "one layout");
    const uint64_t r = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (r < cut.results)
        result_finish<Axis::monoid, typename Axis::value>(*(const partial *)(partials + r * cut.stride), cut.finish, cut.from + r);
}
