/* Folds along an axis, for any monoid and value type. A group of threads of one block, its members, takes a row, or one split of a
   long row, tile by tile; rows that lie side by side (columns) are taken side by side, so that neighbouring threads read
   neighbouring elements in either case. Members combine their partials through shared memory; exact sums share words there, as in
   exact.cuh. Splits are combined by a second kernel. How the work is cut follows from sizes and the device alone, so the bits are the
   same run to run. Included by axis_family.cuh. */
#pragma once

#include "kernels/axis_element.cuh"
#include "kernels/exact.cuh"

/* How a box is cut into groups: the same for all kernels. */
struct axis_cut {
    struct box box;
    allfold_type type;
    uint64_t results, first;
    uint64_t splits, chunk;  /* of the length, in elements */
    uint64_t stride;         /* of partials, in bytes */
    uint32_t groups, members; /* of a block: powers of two */
    bool columns;            /* neighbouring threads belong to neighbouring groups */
    bool aligned;            /* elements of a row are neighbours, and every tile is aligned to 16 bytes */
};

/* The monoids whose partials are structs: all of a partial is ordered. */
template <class Fold> struct axis_struct {
    typedef typename Fold::value value;
    typedef typename Fold::partial ordered;
    struct state {
        ordered partial;
    };
    struct whole {
        ordered end;
    };
    static constexpr int words = 0;
    static constexpr bool is_ordered = true;
    static __device__ __forceinline__ void start(state *s, int64_t *, bool) { s->partial = Fold::identity(); }
    static __device__ __forceinline__ void take(state *s, const value *x, uint32_t n, uint64_t first)
    {
        Fold::tile(&s->partial, x, n, first);
    }
    static __device__ __forceinline__ void flush(state *) {}
    static __device__ __forceinline__ void normalise(int64_t *) {}
    static __device__ __forceinline__ ordered end_of(const state &s) { return s.partial; }
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
    struct words_only {
        int64_t of[Exact::words];
    };
    struct words_and_ends {
        int64_t of[Exact::words];
        axis_ends<value, true> end;
    };
    typedef typename std::conditional<Exact::indexed, words_and_ends, words_only>::type whole;
    static constexpr int words = Exact::words;
    static constexpr bool is_ordered = Exact::indexed;
    static __device__ __forceinline__ void place(struct exact_sink *sinks, int64_t *at, bool shared)
    {
        constexpr int count = sizeof(state::sinks) / sizeof(struct exact_sink);
        Exact::place(sinks, at, 1);
        for (int i = 0; i < count; i++)
            sinks[i].shared = shared;
    }
    static __device__ __forceinline__ void start(state *s, int64_t *at, bool shared)
    {
        Exact::start(s);
        place(s->sinks, at, shared);
    }
    static __device__ __forceinline__ void take(state *s, const value *x, uint32_t n, uint64_t first) { Exact::tile(s, x, n, first); }
    static __device__ __forceinline__ void flush(state *s)
    {
        if constexpr (Exact::indexed) {
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
        place(sinks, at, false);
        for (struct exact_sink &sink : sinks)
            exact_sink_normalise(&sink);
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
    static constexpr int most = Axis::words > 0 ? (int)(AXIS_SHAPE.words_bytes / (sizeof(int64_t) * (Axis::words + 1))) : threads;
    static constexpr int groups = most >= threads ? threads : most >= 64 ? 64 : most >= 32 ? 32 : most >= 16 ? 16 : most >= 8 ? 8 : 4;
    static_assert(most >= 4 && sizeof(typename Axis::ordered) * threads <= 40960, "shared memory for the smallest blocks");
};

/* The first element of row r of the box. */
static __device__ __forceinline__ uint64_t row_at(const struct box &box, uint64_t r)
{
    return box.inner == 1 ? r * box.outer_stride : r / box.inner * box.outer_stride + r % box.inner;
}

/* Takes a member's elements of its group's split of a row: whole tiles first, then single elements, in ascending order. */
template <class Axis>
static __device__ __forceinline__ void member_take(typename Axis::state *state, const void *x, const struct axis_cut &cut, uint64_t r,
                                                   uint64_t split, uint32_t member)
{
    typedef typename Axis::value value;
    constexpr int tile = AXIS_SHAPE.tile;
    const uint64_t begin = split * cut.chunk, left = cut.box.length - begin, n = left < cut.chunk ? left : cut.chunk, tiles = n / tile;
    const uint64_t stride = cut.box.axis_stride, at = row_at(cut.box, r) + begin * stride;
    value values[tile];
#pragma unroll 1
    for (uint64_t i = member; i < tiles; i += cut.members) {
        axis_load_tile(values, x, at + i * tile * stride, stride, cut.type, cut.aligned);
        Axis::take(state, values, tile, cut.first + begin + i * tile);
    }
#pragma unroll 1
    for (uint64_t i = tiles * tile + member; i < n; i += cut.members) {
        values[0] = axis_load<value>(x, at + i * stride, cut.type);
        Axis::take(state, values, 1, cut.first + begin + i);
    }
}

/* Combines the members' partials in the slot of member 0. Takes whole blocks. */
template <class Axis>
static __device__ __forceinline__ void members_combine(typename Axis::ordered *slots, uint32_t member, uint32_t members)
{
#pragma unroll 1
    for (uint32_t step = 1; step < members; step *= 2) {
        __syncthreads();
        if (member % (2 * step) == 0)
            Axis::combine(&slots[member], &slots[member + step]);
    }
    __syncthreads();
}

/* Partial of row r and split s: partials + (s * results + r) * stride. */
template <class Axis>
static __global__ void __launch_bounds__(axis_plan<Axis>::threads)
axis_fold(const void *x, const __grid_constant__ struct axis_cut cut, unsigned char *partials)
{
    constexpr int threads = axis_plan<Axis>::threads, row_words = Axis::words > 0 ? Axis::words + 1 : 1; /* + 1: other banks */
    __shared__ typename Axis::ordered slots[Axis::is_ordered ? threads : 1];
    __shared__ int64_t words[Axis::words > 0 ? axis_plan<Axis>::groups * row_words : 1];
    const uint32_t group = cut.columns ? threadIdx.x % cut.groups : threadIdx.x / cut.members;
    const uint32_t member = cut.columns ? threadIdx.x / cut.groups : threadIdx.x % cut.members;
    const uint64_t split = blockIdx.x % cut.splits, r = blockIdx.x / cut.splits * cut.groups + group;
    typename Axis::state state;
    if constexpr (Axis::words > 0) {
        for (uint32_t i = threadIdx.x; i < cut.groups * row_words; i += blockDim.x)
            words[i] = 0;
        __syncthreads();
    }
    Axis::start(&state, words + (Axis::words > 0 ? group * row_words : 0), cut.members > 1);
    if (r < cut.results)
        member_take<Axis>(&state, x, cut, r, split, member);
    Axis::flush(&state);
    typename Axis::whole *const to = (typename Axis::whole *)(partials + (split * cut.results + r) * cut.stride);
    if constexpr (Axis::is_ordered) {
        slots[group * cut.members + member] = Axis::end_of(state);
        members_combine<Axis>(slots + group * cut.members, member, cut.members);
        if (member == 0 && r < cut.results)
            to->end = slots[group * cut.members];
    }
    if constexpr (Axis::words > 0) {
        __syncthreads();
        if (member == 0)
            Axis::normalise(words + group * row_words);
        __syncthreads();
        for (uint32_t i = member; i < Axis::words && r < cut.results; i += cut.members)
            to->of[i] = words[group * row_words + i];
    }
}

/* Combines the splits of each row, in order, in the first. A thread a row. */
template <class Axis>
static __global__ void __launch_bounds__(AXIS_SHAPE.threads)
axis_combine(unsigned char *partials, const __grid_constant__ struct axis_cut cut)
{
    const uint64_t r = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= cut.results)
        return;
    typename Axis::whole *const all = (typename Axis::whole *)(partials + r * cut.stride);
#pragma unroll 1
    for (uint64_t split = 1; split < cut.splits; split++) {
        const typename Axis::whole *const next = (const typename Axis::whole *)(partials + (split * cut.results + r) * cut.stride);
        if constexpr (Axis::is_ordered)
            Axis::combine(&all->end, &next->end);
        if constexpr (Axis::words > 0) {
#pragma unroll 1
            for (int i = 0; i < Axis::words; i++)
                all->of[i] += next->of[i];
            Axis::normalise(all->of);
        }
    }
}
