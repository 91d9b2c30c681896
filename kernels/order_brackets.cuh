/* What threads know of brackets of keys before they look at elements (order_brackets.cu): the brackets, which are the caller's, or made of what was found in a sample;
   the scale by which elements are compared with them; of several brackets a table of cells. Also what threads have in shared memory: counters and queues. */
#pragma once

#include "kernels/order.cuh"

constexpr int BRACKET_CELLS = 1 << 11, BRACKET_STEPS = 5;
static_assert(ORDER_BRACKETS_MOST < 1 << BRACKET_STEPS, "brackets are found in as many steps");
constexpr uint32_t FEW_BRACKETS = 7; /* a digit of 4 bits for what begins before each, and behind all */

/* What brings values to what lies between 0 and 1. Of one bracket, which may be open at an end, at * (sum - at) + product > 0 if `at` is inside. */
struct value_map {
    float scale, offset, sum, product;
    __device__ __forceinline__ float place_of(float x) const { return bounded(x, scale, offset); }
};

/* A count that is made of such numbers: of those that are 1. It has room for 2^23. */
constexpr float NONE_COUNTED = 0x1p23f;
static __device__ __forceinline__ float count_ones(float count, float x)
{
#ifdef __NVCC__
    return __fadd_rz(count, x); /* what is less than 1 is cut off */
#else
    return x == 1 ? count + 1 : count;
#endif
}

#define DEFINE(ID, name, ...) static __host__ __device__ double load(element_##name x) { return (double)load_##name(x); }
FLOAT_TYPES(DEFINE)
#undef DEFINE

/* How elements are looked at: by key, or floating-point ones by value, in f32, to which larger ones are rounded: that keeps their order. */
struct by_key {};
template <class Element> struct by_value {
    template <class Key> static __host__ __device__ double real_of(Key x)
    {
        typename Element::stored stored;
        memcpy(&stored, &x, sizeof stored);
        return (double)load(stored);
    }
    template <class Key> static __device__ __forceinline__ float value_of(Key x) { return (float)element_value<Element>(x); }
};
template <class Way> constexpr bool is_by_value = !std::is_same<Way, by_key>::value;

template <class Key> struct bracket_pass {
    const Key *x;
    uint64_t first, n;
    struct order_map map;
    Key last_number;
    bool has_nan;
    uint32_t multiprocessors;
    struct order_brackets brackets;
    struct order_chain *chain; /* NULL: the brackets are known. Else they are made of what a search in a sample has found */
    bool is_top, smallest;     /* that is one target, beyond which all is kept; else pairs */
    struct order_space space;
    struct order_ties ties;
    uint64_t limit, *counts, *taken; /* the last: see tiles_left */
    Key *keys;                       /* NULL: none is kept */
    uint64_t *indices, capacity, answer_room;
    struct order_end end;
};

/* Where elements are, seen from the brackets. */
template <class Key> struct bracket_scale {
    struct value_map values; /* by value */
    float side, limit;       /* of one bracket: what is less than the limit, times the side, which is 1 or -1, is not inside */
    Key origin;              /* of several, by key: cell c has the keys from origin + (c << shift) on */
    uint32_t shift;
    bool is_known; /* else the elements cannot be looked at in this way */
};
template <class Key> struct bracket_setup {
    struct order_brackets brackets;
    bracket_scale<Key> scale;
};

/* What is known and counted of several brackets. */
template <class Key> struct several_brackets {
    Key lows[1 << BRACKET_STEPS], widths[1 << BRACKET_STEPS];            /* from 1 on */
    uint16_t first_cells[1 << BRACKET_STEPS], last_cells[1 << BRACKET_STEPS];
    uint32_t cells[BRACKET_CELLS]; /* what is added for an element if the cell has no key of a bracket: of few 1 at the digit of those that begin before; else
                                      where their counter is, behind `from`; `mixed`: it has */
    uint32_t mixed;
    uint32_t inside[1 << BRACKET_STEPS][ORDER_COUNTS];
    uint32_t from[(1 << BRACKET_STEPS) + 1][32]; /* elements, by the number of brackets that begin before them, and by lane. The last ones, of mixed cells, tell nothing */
};
template <class Key, bool several> using bracket_table = typename std::conditional<several, several_brackets<Key>, char>::type;

/* Of few brackets, what a thread has counted: in digits of 4 bits, and of 8 bits of every second one. */
struct digit_counts {
    uint32_t digits, even, odd, tiles;
    __device__ __forceinline__ void widen()
    {
        even += digits & 0x0f0f0f0f;
        odd += digits >> 4 & 0x0f0f0f0f;
        digits = 0;
    }
    __device__ __forceinline__ void add_to(shared_address counters)
    {
        for (uint32_t b = 0; b <= FEW_BRACKETS; b++)
            add_shared(counters + b * (uint32_t)sizeof(several_brackets<uint32_t>::from[0]), (b % 2 == 0 ? even : odd) >> b / 2 * 8 & 255);
        even = odd = tiles = 0;
    }
};

/* Of a warp: element i of a lane is number 32 * i + lane. Places are in the tile. */
template <class Key, bool indexed> struct element_queue {
    static constexpr int loads = order_loads(sizeof(Key)), each = elements_of<Key, loads>; /* the latter: elements of a tile that a lane has */
    static constexpr int waiting = indexed ? 0 : each / 2; /* those that may wait for the next tile's; with indices none do */
    static constexpr int room = 32 * (each + waiting);
    Key elements[room];
    uint32_t places[indexed ? room : 1];
};

/* Whether elements can be looked at by value. One bracket, and a margin, is all that lies between 0 and 1; one that has all beyond an end is bounded there by a number
   that does not matter. Several begin a cell behind 0, and are each, with the numbers beside them, half a cell wide or more, so that few cells are mixed; or they are of
   one key, which many elements have then. What lies beyond the inner end of one that is open is in the first or last cell, or the next. */
template <class Way, class Key> static __host__ __device__ bool map_values(const struct order_brackets &brackets, const bracket_pass<Key> &pass, bool several, value_map *map)
{
    if (brackets.count == 0)
        return false;
    auto real = [&](uint64_t key) { return Way::template real_of<Key>(element_of_key((Key)key, pass.map)); };
    const struct order_bracket &first = brackets.list[0], &end = brackets.list[brackets.count - 1];
    double low = real(first.low), last = real(end.last), narrowest = 0x1p200;
    bool begins = isfinite(low), ends = isfinite(last);
    if (several) {
        for (uint32_t b = begins ? 0 : 1; b + !ends < brackets.count; b++)
            if (brackets.list[b].low < brackets.list[b].last)
                narrowest = fmin(narrowest, real(brackets.list[b].last + 1) - real(brackets.list[b].low - 1));
        low = begins ? low : real(first.last);
        last = ends ? last : real(end.low);
        begins = isfinite(low);
        ends = isfinite(last);
    }
    if (!(begins && ends) && (several || !(begins || ends)))
        return false;
    const double large = fmax(begins ? fabs(low) : 0, ends ? fabs(last) : 0), least = fmax(large * 0x1p-18, 0x1p-80);
    const double cell = (last - low) / (BRACKET_CELLS - 3), part = begins && ends ? (last - low) / 64 : 0;
    const double margin = several ? cell : fmax(part, least), width = begins && ends ? last - low + 2 * margin : margin * 256;
    map->scale = (float)(1 / width);
    map->offset = (float)(begins ? (margin - low) / width : 1 - (last + margin) / width);
    map->sum = begins && ends ? 1 : begins ? 2 : 0; /* at (1 - at); at (2 - at); 1 - at at */
    map->product = begins ? 0 : 1;
    const bool is_normal = map->scale >= 0x1p-100f && map->scale <= 0x1p100f && fabsf(map->offset) <= 0x1p100f;
    const bool holds = (!begins || fmaf((float)low, map->scale, map->offset) > 0) && (!ends || fmaf((float)last, map->scale, map->offset) < 1);
    return is_normal && pass.n < (uint64_t)pass.multiprocessors << 28 && (several ? narrowest * BRACKET_CELLS * 2 > width && fabsf(map->offset) < 256 : holds);
}

/* Called by one thread, which knows the brackets. Whether elements can be looked at in this way. */
template <class Way, bool several, class Key> static __device__ __forceinline__ bool set_scale(bracket_setup<Key> &setup, const bracket_pass<Key> &pass)
{
    const struct order_brackets &brackets = setup.brackets;
    const Key base = brackets.count > 0 ? (Key)brackets.list[0].low : 0, length = brackets.count > 0 ? (Key)brackets.list[brackets.count - 1].last - base : 0;
    uint32_t shift = 0;
    while (length >> shift >= BRACKET_CELLS - 2)
        shift++;
    setup.scale.shift = shift;
    setup.scale.origin = (Key)(base >> shift > 0 ? base - ((Key)1 << shift) : 0);
    if constexpr (is_by_value<Way>) {
        const bool ends = brackets.list[0].low == 0; /* else it begins, and has all above */
        const bool is_known = map_values<Way>(brackets, pass, several, &setup.scale.values);
        setup.scale.side = ends ? -1 : 1;
        setup.scale.limit = setup.scale.side * Way::value_of(element_of_key((Key)(ends ? brackets.list[0].last : brackets.list[0].low), pass.map));
        return is_known;
    }
    return brackets.count > 0;
}

/* Brings what is known of the brackets to all threads, which call it. scratch: shared memory. */
template <class Way, bool several, class Key> static __device__ __forceinline__ void set_up(bracket_setup<Key> &setup, const bracket_pass<Key> &pass, struct order_target *scratch)
{
    struct order_chain *const chain = pass.chain;
    for (uint32_t i = threadIdx.x; chain == NULL && i < pass.brackets.count; i += blockDim.x)
        setup.brackets.list[i] = pass.brackets.list[i];
    const uint32_t pairs = chain != NULL ? (uint32_t)chain->pairs : 0;
    for (uint32_t i = threadIdx.x; chain != NULL && i < 2 * pairs + pass.is_top; i += blockDim.x)
        scratch[i] = chain->targets[i];
    __syncthreads();
    if (threadIdx.x == 0) {
        setup.brackets.count = pass.brackets.count;
        setup.brackets.whole = pass.brackets.whole;
        if (pass.is_top) {
            setup.brackets.count = scratch->count <= scratch->room; /* else there are ties */
            setup.brackets.list[0] = order_side(&pass.space, pass.smallest ? scratch->last : scratch->low, pass.smallest, pass.space.most);
        } else if (chain != NULL) {
            order_brackets_take(&setup.brackets, scratch, pairs, chain->sampled, pass.last_number);
        }
        setup.scale.is_known = set_scale<Way, several>(setup, pass) || chain == NULL; /* else the host has seen that it is */
    }
    __syncthreads();
    if (chain == NULL || blockIdx.x > 0)
        return;
    for (uint32_t i = threadIdx.x; i < setup.brackets.count; i += blockDim.x)
        chain->brackets.list[i] = setup.brackets.list[i];
    if (threadIdx.x == 0) {
        chain->brackets.count = setup.brackets.count;
        chain->brackets.whole = setup.brackets.whole;
        chain->is_done = setup.scale.is_known;
    }
}

/* How many brackets begin at the key or before. */
template <class Key> static __device__ __forceinline__ uint32_t bracket_of(const several_brackets<Key> &several, Key key, uint32_t count)
{
    uint32_t b = 0;
#pragma unroll
    for (uint32_t step = 1 << (BRACKET_STEPS - 1); step > (FEW_BRACKETS + 1) / 2; step /= 2)
        if (count > FEW_BRACKETS)
            b += several.lows[b + step] <= key ? step : 0;
#pragma unroll
    for (uint32_t step = (FEW_BRACKETS + 1) / 2; step > 0; step /= 2)
        b += several.lows[b + step] <= key ? step : 0;
    return b < count ? b : count; /* behind the last one are the largest keys */
}

/* The cell of an element, which never falls as keys rise; of NaN the first, by value. By value there is more in the upper two bits, which no address keeps. */
template <class Way, class Key> static __device__ __forceinline__ uint32_t cell_of(Key x, const bracket_scale<Key> &scale, struct order_map map)
{
    if constexpr (is_by_value<Way>) {
        return f32_bits(fmaf(scale.values.place_of(Way::value_of(x)), (BRACKET_CELLS - 1) * 0x1p-22f, 2.0f));
    } else {
        const Key key = key_of(x, map), cell = (Key)((key > scale.origin ? key - scale.origin : 0) >> scale.shift);
        return cell < BRACKET_CELLS - 1 ? (uint32_t)cell : BRACKET_CELLS - 1;
    }
}

/* All threads call it, and then wait for each other. */
template <class Way, class Key> static __device__ __forceinline__ void make_table(several_brackets<Key> &table, const bracket_setup<Key> &setup, struct order_map map)
{
    constexpr uint32_t own = BRACKET_CELLS / ORDER_SHAPE.threads;
    const uint32_t count = setup.brackets.count;
    const bool few = count <= FEW_BRACKETS;
    const uint32_t mixed = few ? 0 : (1 << BRACKET_STEPS) * (uint32_t)sizeof table.from[0];
    table.mixed = mixed;
    for (uint32_t b = threadIdx.x; b < 1 << BRACKET_STEPS; b += blockDim.x) {
        const bool there = b >= 1 && b <= count;
        const struct order_bracket bracket = setup.brackets.list[there ? b - 1 : 0];
        table.lows[b] = there ? (Key)bracket.low : (Key)~(Key)0;
        table.widths[b] = (Key)(bracket.last - bracket.low);
        table.first_cells[b] = (uint16_t)cell_of<Way>(element_of_key((Key)bracket.low, map), setup.scale, map);
        table.last_cells[b] = (uint16_t)cell_of<Way>(element_of_key((Key)bracket.last, map), setup.scale, map);
    }
    for (uint32_t i = threadIdx.x; i < sizeof table.from / sizeof(uint32_t); i += blockDim.x)
        table.from[i / 32][i % 32] = 0;
    for (uint32_t i = threadIdx.x; i < sizeof table.inside / sizeof(uint32_t); i += blockDim.x)
        table.inside[i / ORDER_COUNTS][i % ORDER_COUNTS] = 0;
    __syncthreads();
    for (uint32_t cell = threadIdx.x * own, b = 0; cell < (threadIdx.x + 1) * own; cell++) {
        while (b < count && table.first_cells[b + 1] <= cell)
            b++;
        table.cells[cell] = b > 0 && cell <= table.last_cells[b] ? mixed : few ? 1u << 4 * b : b * (uint32_t)sizeof table.from[0];
    }
}
