/* The fold kernel, for any monoid and element type: element -> thread -> warp -> block -> grid in one launch. Included by fold_family.cuh.

     each thread: partial = the identity
         for each round of its block: loads some vectors, then folds them into the partial, tile by tile
         of the vectors that are left, and of the elements behind them: its share, in the same way
     each block: lanes of a warp combine their partials by shuffles, warps by shared memory
     a block but the first: sends its partial to the first one, as a message (message.cuh)
     the first block: threads receive these messages and combine them; the block's partial is the result, which goes to the host as a message

   Which thread takes which element, and the order in which partials are combined, follow from n and the device alone,
   never from timing or from where x lies: the bits are the same run to run. A thread takes its elements in ascending
   order. */
#pragma once

#include "fold/folds.h"
#include "kernels/element.cuh"
#include "kernels/kernels.h"
#include "kernels/message.cuh"
#include "kernels/tuning.h"

/* The values of a tile, of one operand or two. */
template <class Value, int operands> struct values_of {
    typedef const Value *type;
};
#define DEFINE_VALUES(nothing, name)                 \
    template <> struct values_of<value_##name, 2> { \
        typedef arrays_##name type;                  \
    };
VALUES(DEFINE_VALUES, )
#undef DEFINE_VALUES

/* Two arrays of elements, and a vector of each. */
template <class Element> struct array_pair {
    const typename Element::stored *x, *y;
};
struct vector_pair {
    uint4 x, y;
};

/* What the kernel of a fold takes, and in what vectors it travels: of one operand plainly an array. */
template <class Element, int operands> struct input_of {
    typedef const typename Element::stored *array;
    typedef uint4 vector;
    static array of(const struct work *work) { return (array)work->x; }
};
template <class Element> struct input_of<Element, 2> {
    typedef array_pair<Element> array;
    typedef vector_pair vector;
    typedef const typename Element::stored *one;
    static array of(const struct work *work) { return {(one)work->x, (one)work->y}; }
};

/* What a kernel that takes elements of such a fold begins with: what their terms are looked up in is made. */
template <enum monoid monoid, class Value> static __device__ __forceinline__ void fold_begin()
{
    if constexpr (monoid_facts[monoid].cost == COST_BINS && monoid_facts[monoid].terms != TERMS_F32 && std::is_same<Value, float>::value)
        exp_block_make();
}

/* A monoid at a value type, as a type: fold_of<MONOID_sum, float>. scaled: its sum is relative to a maximum, and `rescale` brings it
   to another maximum, which may not be smaller. exact: it is scaled, and its sum is exact, in bins. */
template <enum monoid monoid, class Value> struct fold_of;
#define RESCALE(name, value_name)                                                    \
    static __device__ __forceinline__ void rescale(partial *scaled, double max)      \
    {                                                                                \
        name##_rescale_##value_name(scaled, max);                                    \
    }
#define DEFINE_FOLD(name, value_name, more)                                                                     \
    template <> struct fold_of<MONOID_##name, value_##value_name> {                                             \
        typedef name##_##value_name partial;                                                                    \
        typedef value_##value_name value;                                                                       \
        static constexpr enum monoid monoid = MONOID_##name;                                                    \
        static constexpr struct monoid_facts facts = monoid_facts[MONOID_##name];                               \
        static constexpr int operands = facts.operands;                                                         \
        static constexpr bool indexed = facts.indexed;                                                          \
        static constexpr bool scaled = facts.terms != TERMS_NONE;                                               \
        static constexpr bool exact = scaled && facts.level == ALLFOLD_LEVEL_EXACT;                             \
        static constexpr bool f32_terms = scaled && facts.terms != TERMS_F64;                                   \
        static constexpr enum cost cost = cost_of(facts.cost, VALUE_##value_name);                              \
        static constexpr bool cheap = cost == COST_LITTLE; /* its code is short: it may be unrolled */          \
        static __device__ __forceinline__ partial identity() { return name##_identity_##value_name(); }         \
        typedef values_of<value, operands>::type values;                                                        \
        static __device__ __forceinline__ void tile(partial *p, values x, uint32_t n, uint64_t first)           \
        {                                                                                                       \
            name##_tile_##value_name(p, x, n, first);                                                           \
        }                                                                                                       \
        static __device__ __forceinline__ void combine(partial *a, const partial *b)                            \
        {                                                                                                       \
            name##_combine_##value_name(a, b);                                                                  \
        }                                                                                                       \
        more                                                                                                    \
    };
#define DEFINE_NONE(name, value_name) DEFINE_FOLD(name, value_name, )
#define DEFINE_F32(name, value_name) DEFINE_FOLD(name, value_name, RESCALE(name, value_name))
#define DEFINE_F64 DEFINE_F32
#define DEFINE_SHORT DEFINE_F32
#define DEFINE_QUICK DEFINE_F32
#define DEFINE_FOLDS(name, values, operands, indexed, nan, level, cost, terms, ...) VALUES_##values(DEFINE_##terms, name)
STRUCT_MONOIDS(DEFINE_FOLDS)
#undef DEFINE_FOLDS
#undef DEFINE_NONE
#undef DEFINE_F32
#undef DEFINE_F64
#undef DEFINE_SHORT
#undef DEFINE_QUICK
#undef DEFINE_FOLD
#undef RESCALE

constexpr size_t CHEAP_PARTIAL_BYTES = 16; /* the most of a cheap fold's partial: such folds have more blocks, and each sends a message */

/* The places of a partial's indices, of monoids that have them: returns how many they are. */
#define DEFINE_INDICES_0(name, value_name)
#define DEFINE_INDICES_1(name, value_name)                                                                               \
    static __device__ __forceinline__ int partial_indices(name##_##value_name *partial, uint64_t *places[], fold_of<MONOID_##name, value_##value_name>) \
    {                                                                                                                    \
        return name##_indices_##value_name(partial, places);                                                             \
    }
#define DEFINE_INDICES(name, values, operands, indexed, ...) VALUES_##values(DEFINE_INDICES_##indexed, name)
STRUCT_MONOIDS(DEFINE_INDICES)
#undef DEFINE_INDICES
#undef DEFINE_INDICES_0
#undef DEFINE_INDICES_1

/* How a fold of an element type is cut, as a type. */
template <class Fold, class Element, bool small = false> struct fold_plan {
    static constexpr bool is_padded = Fold::scaled && Element::is_floating; /* incomplete tiles are, with -inf */
    static constexpr struct fold_shape shape = fold_shape_of(Fold::cost, sizeof(typename Element::stored), Fold::operands, Fold::f32_terms, is_padded, small);
    typedef input_of<Element, Fold::operands> input;
    static constexpr int threads = shape.threads, blocks = shape.blocks, vectors = vectors_of_each(shape.vectors, Fold::operands);
    static constexpr int vectors_per_tile = vectors_of_each(shape.vectors_per_tile, Fold::operands);
    static constexpr int least = vectors_of_each(shape.least, Fold::operands);
    static constexpr bool is_small = small;
    static constexpr int block_vectors = threads * vectors; /* of one block in one round */
    static_assert(threads % 32 == 0 && threads <= 1024 && blocks <= FOLD_BLOCKS_MAX, "a shape a kernel can take");
    static_assert(vectors_per_tile == 0 || vectors % vectors_per_tile == 0, "rounds are whole tiles");
    static_assert(!Fold::indexed || vectors_per_tile <= 1, "a tile's elements are neighbours");
    static_assert(!Fold::cheap || sizeof(typename Fold::partial) <= CHEAP_PARTIAL_BYTES, "room for a message from each of many blocks");
};

/* The whole rounds of each block: their number, and the steps from one block's first round to the next block's, and from a block's
   round to its next, in vectors. */
struct fold_rounds {
    uint64_t count, block_step, step;
};
struct fold_cut {
    uint64_t blocks;
    struct fold_rounds rounds;
};

/* Blocks that stay while the kernel runs, which go through the array side by side. */
template <class plan> static struct fold_cut cut_to_stay(uint64_t vectors, uint64_t blocks)
{
    const uint64_t side_by_side = blocks * plan::block_vectors;
    return {blocks, {vectors / side_by_side, (uint64_t)plan::block_vectors, side_by_side}};
}

/* Blocks that take adjacent rounds and end. As blocks start one after the other, they go through memory in order. Blocks that stay
   drift apart. */
template <class plan> static struct fold_cut cut_in_waves(uint64_t vectors, uint64_t multiprocessors)
{
    const uint64_t whole = vectors / plan::block_vectors, most = FOLD_WAVES.most * multiprocessors;
    const uint64_t count = u64_max(FOLD_WAVES.rounds, (whole + most - 1) / most);
    return {whole / count, {count, count * plan::block_vectors, (uint64_t)plan::block_vectors}};
}

/* A small array gets as many blocks as give each thread `least` vectors, at most one a multiprocessor; a larger one as many as have a
   whole round each, at most as many as run at a time. */
template <class Fold, class Element, class plan> static struct fold_cut cut_of(uint64_t vectors, uint64_t multiprocessors)
{
    const uint64_t least = (uint64_t)plan::threads * plan::least, whole = vectors / plan::block_vectors;
    const uint64_t some = u64_max(1, u64_min((vectors + least - 1) / least, multiprocessors));
    const uint64_t wave = multiprocessors * plan::blocks;
    static_assert(!(Fold::cheap && Fold::scaled), "padded_take's rest is less than a round of all blocks");
    if (Fold::cheap && !Fold::indexed && !plan::is_small && whole >= FOLD_WAVES.least * FOLD_WAVES.rounds * wave)
        return cut_in_waves<plan>(vectors, multiprocessors);
    struct fold_cut cut = cut_to_stay<plan>(vectors, u64_min(u64_max(some, whole), wave));
    if (plan::is_small)
        cut.rounds.count = 0;
    return cut;
}

/* The partial of the lane that is `lanes` lanes behind. */
template <class Partial>
static __device__ __forceinline__ Partial partial_shuffle_down(const Partial &partial, int lanes)
{
    static_assert(sizeof(Partial) % 8 == 0, "partials are whole words");
    unsigned long long words[sizeof(Partial) / 8];
    memcpy(words, &partial, sizeof partial);
#pragma unroll
    for (int i = 0; i < (int)(sizeof(Partial) / 8); i++)
        words[i] = __shfl_down_sync(0xffffffffu, words[i], lanes);
    Partial other;
    memcpy(&other, words, sizeof other);
    return other;
}

/* The largest of the warp's 32 numbers, none of which may be NaN. They are compared as integers of the same order. All lanes call it. */
static __device__ __forceinline__ double warp_max(double x)
{
    const uint64_t bits = f64_bits(x), key = (bits >> 63) != 0 ? ~bits : bits | (uint64_t)1 << 63;
    const uint32_t high = lanes_max((uint32_t)(key >> 32));
    const uint32_t low = lanes_max((uint32_t)(key >> 32) == high ? (uint32_t)key : 0);
    const uint64_t largest = (uint64_t)high << 32 | low;
    return f64_from_bits((largest >> 63) != 0 ? largest & ~((uint64_t)1 << 63) : ~largest);
}

/* Brings all lanes of a warp to one maximum and returns it; `before` is the one that they have shared so far. With a common maximum
   few tiles raise it. All lanes call it. */
template <class Fold>
static __device__ __forceinline__ double warp_share_max(typename Fold::partial *partial, double before)
{
    if (__ballot_sync(0xffffffffu, partial->max > before) == 0)
        return before;
    const double max = warp_max(partial->max);
    Fold::rescale(partial, max);
    return max;
}

/* The largest of a block's numbers, none of which may be NaN, for all its threads. All threads call it, with a __syncthreads between two
   calls. */
template <int threads> static __device__ __forceinline__ double block_max(double x)
{
    constexpr int warps = threads / 32;
    static_assert((warps & (warps - 1)) == 0, "a power of two");
    __shared__ double shared[warps];
    x = warp_max(x);
    if (threadIdx.x % 32 == 0)
        shared[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_max(shared[threadIdx.x % warps]);
}

/* warp_combine for bins: all lanes are brought to the largest maximum; then bins are integers to add. */
template <int count> static __device__ __forceinline__ void warp_combine_bins(struct exp_bins *bins)
{
    struct {
        uint128 of[EXP_BINS];
    } sums;
    const double max = warp_max(bins->max);
    const unsigned int largest = __ballot_sync(0xffffffffu, bins->max == max);
    const bool nan = __ballot_sync(0xffffffffu, bins->nan != 0) != 0;
    int leader = 0;
    while ((largest >> leader & 1) == 0)
        leader++;
    exp_bins_raise(bins, max, (int64_t)__shfl_sync(0xffffffffu, (unsigned long long)bins->bin, leader));
    memcpy(&sums, bins->sums, sizeof sums);
#pragma unroll 1
    for (int lanes = 1; lanes < count; lanes *= 2) {
        const auto other = partial_shuffle_down(sums, lanes);
#pragma unroll
        for (int i = 0; i < EXP_BINS; i++)
            sums.of[i] += other.of[i];
    }
    memcpy(bins->sums, &sums, sizeof sums);
    bins->nan = nan;
    exp_bins_settle(bins);
}

/* Lane 0 gets the combined partials, in order, of the warp's first `count` lanes, a power of two. What the other lanes get is undefined.
   Scaled partials, unless they are bins, must have one maximum. All lanes call it; those from `count` on with the identity. */
template <class Fold, int count> static __device__ __forceinline__ void warp_combine(typename Fold::partial *partial)
{
    if constexpr (Fold::exact) {
        warp_combine_bins<count>(partial);
    } else if constexpr (Fold::scaled && Fold::f32_terms) { /* f64 is precise enough for sums of f32 terms, and faster than pairs */
        double sum = pair_value(&partial->sum);
#pragma unroll
        for (int lanes = 1; lanes < count; lanes *= 2)
            sum += __shfl_down_sync(0xffffffffu, sum, lanes);
        partial->sum.high = sum;
        partial->sum.low = 0.0;
    } else if constexpr (Fold::scaled) {
#pragma unroll
        for (int lanes = 1; lanes < count; lanes *= 2) {
            const pair other = partial_shuffle_down(partial->sum, lanes);
            pair_combine(&partial->sum, &other);
        }
    } else {
#pragma unroll (Fold::cheap ? 5 : 1)
        for (int lanes = 1; lanes < count; lanes *= 2) {
            const typename Fold::partial other = partial_shuffle_down(*partial, lanes);
            Fold::combine(partial, &other);
        }
    }
}

/* Thread 0 gets the combined partials of its block, in order. What the other threads get is undefined. All threads call it, with a
   __syncthreads between two calls. */
template <class Fold, int threads> static __device__ __forceinline__ void block_combine(typename Fold::partial *partial)
{
    constexpr int warps = threads / 32;
    static_assert((warps & (warps - 1)) == 0, "a power of two");
    __shared__ typename Fold::partial shared[warps];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if constexpr (Fold::scaled && !Fold::exact) /* to one maximum, once: what is left are additions */
        Fold::rescale(partial, block_max<threads>(partial->max));
    warp_combine<Fold, 32>(partial);
    if (lane == 0)
        shared[warp] = *partial;
    __syncthreads();
    if (warp == 0) {
        *partial = Fold::identity();
        if (lane < warps)
            *partial = shared[lane];
        warp_combine<Fold, warps>(partial);
    }
}

/* Vector number `index` of x. */
template <class Element>
static __device__ __forceinline__ uint4 vector_load(const typename Element::stored *x, uint64_t index, bool aligned)
{
    typedef typename Element::stored stored;
    const stored *const at = x + index * Element::per_vector;
    if (aligned)
        return load_read_only(at);
    stored elements[Element::per_vector];
#pragma unroll
    for (int i = 0; i < Element::per_vector; i++)
        elements[i] = at[i];
    return vector_of(elements);
}

template <class Element>
static __device__ __forceinline__ vector_pair vector_load(const array_pair<Element> &arrays, uint64_t index, bool aligned)
{
    return {vector_load<Element>(arrays.x, index, aligned), vector_load<Element>(arrays.y, index, aligned)};
}

template <class Element>
static __device__ __forceinline__ bool is_vector_aligned(const array_pair<Element> &arrays)
{
    return is_vector_aligned(arrays.x) && is_vector_aligned(arrays.y);
}

/* Element i of some vectors, as a value. */
template <class Element> static __device__ __forceinline__ typename Element::value vectors_value(const uint4 &vector, int i)
{
    return Element::load(vector_element<typename Element::stored>(vector, i % Element::per_vector));
}

/* Gives `count` vectors to the fold as one tile. */
template <class Fold, class Element, int count>
static __device__ __forceinline__ void vectors_take(typename Fold::partial *partial, const uint4 *vectors,
                                                    uint64_t first)
{
    typename Element::value values[count * Element::per_vector];
#pragma unroll
    for (int i = 0; i < count * Element::per_vector; i++)
        values[i] = vectors_value<Element>(vectors[i / Element::per_vector], i);
    Fold::tile(partial, values, count * Element::per_vector, first);
}
template <class Fold, class Element, int count>
static __device__ __forceinline__ void vectors_take(typename Fold::partial *partial, const vector_pair *vectors,
                                                    uint64_t first)
{
    typename Element::value x[count * Element::per_vector], y[count * Element::per_vector];
#pragma unroll
    for (int i = 0; i < count * Element::per_vector; i++) {
        x[i] = vectors_value<Element>(vectors[i / Element::per_vector].x, i);
        y[i] = vectors_value<Element>(vectors[i / Element::per_vector].y, i);
    }
    Fold::tile(partial, {x, y, NULL}, count * Element::per_vector, first);
}

/* Gives it one element. */
template <class Fold, class Element>
static __device__ __forceinline__ void element_take(typename Fold::partial *partial, const typename Element::stored *x,
                                                    uint64_t index, uint64_t first)
{
    const typename Element::value value = Element::load(x[index]);
    Fold::tile(partial, &value, 1, first + index);
}
template <class Fold, class Element>
static __device__ __forceinline__ void element_take(typename Fold::partial *partial, const array_pair<Element> &arrays,
                                                    uint64_t index, uint64_t first)
{
    const typename Element::value x = Element::load(arrays.x[index]), y = Element::load(arrays.y[index]);
    Fold::tile(partial, {&x, &y, NULL}, 1, first + index);
}

/* One thread's vectors of a round. */
template <class Element, class plan>
static __device__ __forceinline__ void round_load(typename plan::input::vector *vectors, typename plan::input::array x,
                                                  uint64_t index, bool aligned)
{
    if (aligned) {
#pragma unroll
        for (int i = 0; i < plan::vectors; i++)
            vectors[i] = vector_load<Element>(x, index + i * plan::threads, true);
    } else {
#pragma unroll
        for (int i = 0; i < plan::vectors; i++)
            vectors[i] = vector_load<Element>(x, index + i * plan::threads, false);
    }
}

/* Gives the fold a thread's vectors of a round, tile by tile. Vector i begins with element first + i * step. If the fold's code is long, there is one copy of
   it, and vectors move down to the first tile. */
template <class Fold, class Element, class plan>
static __device__ __forceinline__ void tiles_take(typename Fold::partial *partial, typename plan::input::vector *vectors, uint64_t first, uint64_t step)
{
    constexpr int tile = plan::vectors_per_tile;
    constexpr bool once = code_is_long<Fold::cost>;
#pragma unroll (once ? 1 : plan::vectors)
    for (int i = 0; i < plan::vectors; i += tile) {
        vectors_take<Fold, Element, tile>(partial, vectors + (once ? 0 : i), first + i * step);
#pragma unroll
        for (int j = tile; j < (once ? plan::vectors : 0); j++)
            vectors[j - tile] = vectors[j];
    }
}

/* Rounds in which every thread of the grid has all its vectors, so that no bounds are checked. The vectors of one block and round are
   adjacent. */
template <class Fold, class Element, class plan>
static __device__ __forceinline__ void rounds_take(typename Fold::partial *partial, typename plan::input::array x,
                                                   uint64_t first, const struct fold_rounds &rounds, bool aligned)
{
    uint64_t index = blockIdx.x * rounds.block_step + threadIdx.x;
#pragma unroll 1
    for (uint64_t round = 0; round < rounds.count; round++) {
        typename plan::input::vector vectors[plan::vectors];
        round_load<Element, plan>(vectors, x, index, aligned);
        tiles_take<Fold, Element, plan>(partial, vectors, first + index * Element::per_vector, plan::threads * Element::per_vector);
        index += rounds.step;
    }
}

/* All vectors, in tiles, for folds to which -inf adds nothing: incomplete tiles are padded with it. The lanes of a warp share a
   maximum, so that few tiles raise it. */
template <class Fold, class Element, class plan>
static __device__ __forceinline__ void padded_take(typename Fold::partial *partial, const typename Element::stored *x,
                                                   const struct fold_rounds &rounds, uint64_t end, bool aligned)
{
    double shared_max = -INFINITY;
    uint64_t index = blockIdx.x * rounds.block_step + threadIdx.x;
    uint4 vectors[plan::vectors];
#pragma unroll 1
    for (uint64_t round = 0; round < rounds.count; round++) {
        round_load<Element, plan>(vectors, x, index, aligned);
        tiles_take<Fold, Element, plan>(partial, vectors, 0, 0);
        shared_max = warp_share_max<Fold>(partial, shared_max);
        index += rounds.step;
    }
    /* The rest, spread evenly over the grid, in tiles of at most 16 values, as many as the block needs. What is missing in a tile is -inf.
       The vectors move down, so that there is only one copy of a tile's code. */
    constexpr int tile_most = Fold::f32_terms ? 16 / Element::per_vector : 2;
    constexpr int tile = Fold::exact || plan::vectors_per_tile < tile_most ? plan::vectors_per_tile : tile_most;
    const uint64_t stride = (uint64_t)gridDim.x * plan::threads;
    index = rounds.count * gridDim.x * plan::block_vectors + (uint64_t)blockIdx.x * plan::threads + threadIdx.x;
#pragma unroll
    for (int i = 0; i < plan::vectors; i++)
        vectors[i] = index + i * stride < end ? vector_load<Element>(x, index + i * stride, aligned) : least_vector<Element>();
#pragma unroll 1
    for (int i = 0; i < plan::vectors && index - threadIdx.x + i * stride < end; i += tile) {
        vectors_take<Fold, Element, tile>(partial, vectors, 0);
#pragma unroll
        for (int j = tile; j < plan::vectors; j++)
            vectors[j - tile] = vectors[j];
    }
}

/* The vectors from `start` on, spread evenly over the grid. */
template <class Fold, class Element, class plan>
static __device__ __forceinline__ void remainder_take(typename Fold::partial *partial, typename plan::input::array x,
                                                 uint64_t first, uint64_t start, uint64_t end)
{
    const bool aligned = is_vector_aligned(x);
    const uint64_t stride = (uint64_t)gridDim.x * plan::threads;
    uint64_t index = start + (uint64_t)blockIdx.x * plan::threads + threadIdx.x;
    while (index < end) {
        typename plan::input::vector vectors[plan::vectors];
#pragma unroll
        for (int i = 0; i < plan::vectors; i++)
            vectors[i] = index + i * stride < end ? vector_load<Element>(x, index + i * stride, aligned)
                                                  : typename plan::input::vector{};
        if constexpr (Fold::cheap) {
            constexpr int tile = plan::vectors_per_tile > 0 ? plan::vectors_per_tile : 1;
            if (index + (plan::vectors - 1) * stride < end) {
#pragma unroll
                for (int i = 0; i < plan::vectors; i += tile)
                    vectors_take<Fold, Element, tile>(partial, vectors + i, first + (index + i * stride) * Element::per_vector);
            } else {
#pragma unroll
                for (int i = 0; i < plan::vectors; i++)
                    if (index + i * stride < end)
                        vectors_take<Fold, Element, 1>(partial, vectors + i,
                                                       first + (index + i * stride) * Element::per_vector);
            }
            index += plan::vectors * stride;
        } else {
            /* one at a time, by moving them down: only one copy of a tile's code */
#pragma unroll 1
            for (int i = 0; i < plan::vectors && index < end; i++) {
                vectors_take<Fold, Element, 1>(partial, vectors, first + index * Element::per_vector);
#pragma unroll
                for (int j = 1; j < plan::vectors; j++)
                    vectors[j - 1] = vectors[j];
                index += stride;
            }
        }
    }
}

/* All that this thread takes of x. */
template <class Fold, class Element, class plan>
static __device__ __forceinline__ typename Fold::partial thread_fold(typename plan::input::array x, uint64_t n,
                                                                     uint64_t first, const struct fold_rounds &rounds)
{
    const bool aligned = is_vector_aligned(x);
    const uint64_t vectors = n / Element::per_vector;
    typename Fold::partial partial = Fold::identity();
    if constexpr (plan::is_padded) {
        padded_take<Fold, Element, plan>(&partial, x, rounds, vectors, aligned);
    } else {
        uint64_t start = 0;
        if constexpr (plan::vectors_per_tile > 0 && !plan::is_small) {
            rounds_take<Fold, Element, plan>(&partial, x, first, rounds, aligned);
            start = rounds.count * gridDim.x * plan::block_vectors;
        }
        remainder_take<Fold, Element, plan>(&partial, x, first, start, vectors);
    }
    /* Less than a vector is left. Padded folds give -inf to the threads that have no element, so that warps do not diverge. */
    const uint64_t whole = vectors * Element::per_vector, last = whole + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && (plan::is_padded ? whole : last) < n) {
        if constexpr (plan::is_padded) {
            typename Element::stored stored = vector_element<typename Element::stored>(least_vector<Element>(), 0);
            if (last < n)
                stored = x[last];
            typename Element::value value = Element::load(stored);
            Fold::tile(&partial, &value, 1, first + last);
        } else {
            element_take<Fold, Element>(&partial, x, last, first);
        }
    }
    return partial;
}

/* Combines the blocks' partials, of which each is its first thread's: other blocks send theirs to the first one, which sends the result. scratch: room for
   a message from each block. Only the first block waits for messages, so the kernel ends however few blocks run at a time. */
template <class Fold, int threads>
static __device__ __forceinline__ void grid_combine(typename Fold::partial partial, uint64_t *scratch, uint64_t *result, uint32_t launch_id)
{
    typedef typename Fold::partial partial_type;
    constexpr int words = message_words<partial_type>::count;
    if (blockIdx.x > 0) {
        if (threadIdx.x == 0)
            message_send(scratch + (uint64_t)blockIdx.x * words, partial, launch_id);
        return;
    }
    if (gridDim.x > 1) {
        if (threadIdx.x > 0)
            partial = Fold::identity();
#pragma unroll 1
        for (uint32_t block = threadIdx.x > 0 ? threadIdx.x : threads; block < gridDim.x; block += threads) {
            const partial_type other = message_receive<partial_type>(scratch + (uint64_t)block * words, launch_id);
            Fold::combine(&partial, &other);
        }
        __syncthreads();
        block_combine<Fold, threads>(&partial);
    }
    if (threadIdx.x == 0)
        message_send(result, partial, launch_id);
}

template <class Fold, class Element, class plan>
static __global__ void __launch_bounds__(plan::threads, plan::blocks)
fold_kernel(typename plan::input::array x, uint64_t n, uint64_t first, const __grid_constant__ struct fold_rounds rounds,
            uint64_t *scratch, uint64_t *result, uint32_t launch_id)
{
    let_next_kernel_start();
    fold_begin<Fold::monoid, typename Fold::value>();
    typename Fold::partial partial = thread_fold<Fold, Element, plan>(x, n, first, rounds);
    block_combine<Fold, plan::threads>(&partial);
    grid_combine<Fold, plan::threads>(partial, scratch, result, launch_id);
}
