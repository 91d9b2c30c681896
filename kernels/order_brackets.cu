/* Counts the elements below, at the ends of, and in brackets of keys, and keeps those that are inside (fold/order.h). Of a chain, each block makes the brackets of
   what was found in the sample.

     of top-k, whose elements have indices, each thread first compares its elements of a tile with the bracket's end: in nearly all tiles none is inside
     each thread, for its elements of a tile:
         of one bracket: the key less the bracket's begin; is it behind that, and not beyond the end?
         of several: the key's cell; if that has no key of a bracket, the table says how many brackets begin before it: of few as a number with a digit
         for each, which the thread adds up, else as the place of a counter in shared memory
         of floating-point types the same by value, which multiplications do faster than comparisons: these bring the bracket, and little more, to what lies between
         0 and 1, all else to 0 or 1; NaN is told by what it leaves behind
         elements that may be inside go to the lane's queue: few
     if for many lanes of a warp a tile has many of these, or NaN, the next one is looked at element by element, by key: only what is kept goes to the queue
     where a queue is nearly full: the lanes of the warp look at what is in theirs: which bracket, which part of it; what is kept is moved together,
     and stored */
#include "kernels/order.cuh"

constexpr int BRACKET_WARPS = ORDER_SHAPE.threads / 32;
constexpr int BRACKET_CELLS = 1 << 11;
constexpr int BRACKET_STEPS = 5;
static_assert(ORDER_BRACKETS_MOST < 1 << BRACKET_STEPS, "brackets are found in as many steps");
constexpr uint32_t FEW_BRACKETS = 7; /* a digit of 4 bits for what begins before each, and behind all */

/* What brings values to what lies between 0 and 1. Of one bracket, which may be open at an end, at * (sum - at) + product > 0 if `at` is inside. */
struct value_map {
    float scale, offset, sum, product;
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
    uint64_t limit;
    uint64_t *counts, *taken; /* the latter: see tiles_left */
    Key *keys; /* NULL: none is kept */
    uint64_t *indices;
    uint64_t capacity;
    uint64_t answer_room;
    struct order_end end;
};

template <class Key, bool indexed> struct bracket_shape {
    static constexpr int loads = order_loads(sizeof(Key)), each = elements_of<Key, loads>;
    static constexpr int waiting = indexed ? 0 : each / 2; /* elements of a lane that wait for those of the next tile; with indices none do */
    static constexpr int room = 32 * (each + waiting), ahead = 4;
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

/* Of a warp: element i of a lane is number 32 * i + lane. Places are in the tile. */
template <class Key, bool indexed> struct element_queue {
    Key elements[bracket_shape<Key, indexed>::room];
    uint32_t places[indexed ? bracket_shape<Key, indexed>::room : 1];
};

/* What is known and counted of several brackets. */
template <class Key> struct several_brackets {
    Key lows[1 << BRACKET_STEPS], widths[1 << BRACKET_STEPS];            /* from 1 on */
    uint16_t first_cells[1 << BRACKET_STEPS], last_cells[1 << BRACKET_STEPS];
    uint32_t cells[BRACKET_CELLS]; /* what is added for an element if the cell has no key of a bracket: of few 1 at the digit of those that begin before; else
                                      where their counter is, behind `from`; `mixed`: it has */
    uint32_t mixed;
    uint32_t inside[1 << BRACKET_STEPS][ORDER_COUNTS];
    uint32_t from[(1 << BRACKET_STEPS) + 1][32]; /* elements for which so many brackets begin before; each lane of a warp has its own. What the last ones count, of
                                                    mixed cells, tells nothing */
};

/* Of few brackets, what a thread has counted: in digits of 4 bits, and of 8 bits of every second one. */
struct digit_counts {
    static constexpr uint32_t mask = 0x0f0f0f0f;
    uint32_t digits, even, odd, tiles;
    __device__ __forceinline__ void widen()
    {
        even += digits & mask;
        odd += digits >> 4 & mask;
        digits = 0;
    }
    __device__ __forceinline__ void add_to(shared_address counters, uint32_t step)
    {
        for (uint32_t b = 0; b <= FEW_BRACKETS; b++)
            add_shared(counters + b * step, (b % 2 == 0 ? even : odd) >> b / 2 * 8 & 255);
        even = odd = tiles = 0;
    }
};

/* Whether elements can be looked at by value. One bracket, and a margin, is all that lies between 0 and 1; one that has all beyond an end is
   bounded there by a number that does not matter. Several begin a cell behind 0, and are each, with the numbers beside them, half a cell wide
   or more, so that few cells are mixed; or they are of one key, which many elements have then. What lies beyond the inner end of one that is open is in the first
   or last cell, or the next. */
template <class Way, bool several, class Key>
static __host__ __device__ bool map_values(const struct order_brackets &brackets, struct order_map order, uint64_t n, uint32_t multiprocessors, struct value_map *map)
{
    if (brackets.count == 0)
        return false;
    auto real = [&](uint64_t key) { return Way::template real_of<Key>(element_of_key((Key)key, order)); };
    const struct order_bracket &first = brackets.list[0], &end = brackets.list[brackets.count - 1];
    double low = real(first.low), last = real(end.last), narrowest = 0x1p200;
    bool begins = isfinite(low), ends = isfinite(last);
    if constexpr (several) {
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
    return is_normal && n < (uint64_t)multiprocessors << 28
           && (several ? narrowest * BRACKET_CELLS * 2 > width && fabsf(map->offset) < 256 : holds);
}

/* Brings what is known of the brackets to all threads, which call it. scratch: shared memory. */
template <class Way, bool several, class Key>
static __device__ __forceinline__ void set_up(bracket_setup<Key> &setup, const bracket_pass<Key> &pass, struct order_target *scratch)
{
    const struct order_chain *const chain = pass.chain;
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
        const struct order_brackets &brackets = setup.brackets;
        const Key base = brackets.count > 0 ? (Key)brackets.list[0].low : 0, length = brackets.count > 0 ? (Key)brackets.list[brackets.count - 1].last - base : 0;
        uint32_t shift = 0;
        while (length >> shift >= BRACKET_CELLS - 2)
            shift++;
        setup.scale.shift = shift;
        setup.scale.origin = (Key)(base >> shift > 0 ? base - ((Key)1 << shift) : 0);
        bool is_known = brackets.count > 0;
        if constexpr (is_by_value<Way>) {
            const bool ends = brackets.list[0].low == 0; /* else it begins, and has all above */
            is_known = map_values<Way, several, Key>(brackets, pass.map, pass.n, pass.multiprocessors, &setup.scale.values);
            setup.scale.side = ends ? -1 : 1;
            setup.scale.limit = setup.scale.side * Way::value_of(element_of_key((Key)(ends ? brackets.list[0].last : brackets.list[0].low), pass.map));
        }
        setup.scale.is_known = is_known || chain == NULL; /* else the host has seen that it is */
    }
    __syncthreads();
    if (chain != NULL && blockIdx.x == 0) {
        for (uint32_t i = threadIdx.x; i < setup.brackets.count; i += blockDim.x)
            pass.chain->brackets.list[i] = setup.brackets.list[i];
        if (threadIdx.x == 0) {
            pass.chain->brackets.count = setup.brackets.count;
            pass.chain->brackets.whole = setup.brackets.whole;
            pass.chain->is_done = setup.scale.is_known;
        }
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

/* The cell of an element, which never falls as keys rise; of NaN the first, by value. By value there is more in the upper two bits, which no address
   keeps. */
template <class Way, class Key> static __device__ __forceinline__ uint32_t cell_of(Key x, const bracket_scale<Key> &scale, struct order_map map)
{
    if constexpr (is_by_value<Way>) {
        return f32_bits(fmaf(bounded(Way::value_of(x), scale.values.scale, scale.values.offset), (BRACKET_CELLS - 1) * 0x1p-22f, 2.0f));
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
    uint32_t b = 0;
    for (uint32_t cell = threadIdx.x * own; cell < (threadIdx.x + 1) * own; cell++) {
        while (b < count && table.first_cells[b + 1] <= cell)
            b++;
        table.cells[cell] = b > 0 && cell <= table.last_cells[b] ? mixed : few ? 1u << 4 * b : b * (uint32_t)sizeof table.from[0];
    }
}

/* Stores the first `kept` of a warp's queue, which are keys now, from place `at` on; with indices, as far as the answer has room, there, too. False: there was no
   room for some. */
template <class Key, bool indexed>
static __device__ __forceinline__ bool store_kept(element_queue<Key, indexed> &queue, uint32_t kept, uint64_t at, const bracket_pass<Key> &pass, uint64_t first)
{
    const uint32_t lane = threadIdx.x % 32;
    uint64_t *const indices = pass.end.answer + pass.end.count;
    for (uint32_t i = lane; i < kept && at + i < pass.capacity; i += 32) {
        pass.keys[at + i] = queue.elements[i];
        if (indexed)
            pass.indices[at + i] = first + queue.places[i];
        if (indexed && at + i < pass.answer_room) {
            indices[at + i] = first + queue.places[i];
            ((Key *)(indices + pass.answer_room))[at + i] = queue.elements[i];
        }
    }
    return at + kept <= pass.capacity;
}

template <class Key, class Way, bool several, bool indexed>
__global__ void __launch_bounds__(ORDER_SHAPE.threads, ORDER_SHAPE.blocks)
    bracket_kernel(const __grid_constant__ bracket_pass<Key> pass, const __grid_constant__ cut_array<Key> cut)
{
    typedef bracket_shape<Key, indexed> shape;
    __shared__ element_queue<Key, indexed> queues[BRACKET_WARPS];
    __shared__ typename std::conditional<several, several_brackets<Key>, char>::type table;
    __shared__ uint32_t totals[ORDER_COUNTS + 1]; /* the last one: NaNs */
    __shared__ bracket_setup<Key> setup;
    __shared__ uint32_t tiles[2];
    element_queue<Key, indexed> &queue = queues[threadIdx.x / 32];
    const uint32_t lane = threadIdx.x % 32;
    if (threadIdx.x <= ORDER_COUNTS)
        totals[threadIdx.x] = 0;
    set_up<Way, several>(setup, pass, (struct order_target *)queues);
    if (!setup.scale.is_known) { /* of a chain: the host will see */
        end_pass(pass.end, pass.counts);
        return;
    }
    if constexpr (several)
        make_table<Way>(table, setup, pass.map);
    __syncthreads();
    const uint32_t count = setup.brackets.count;
    const struct order_bracket &only = setup.brackets.list[0]; /* read where it is used, as it would take registers */
    bool keeps = pass.keys != NULL;
    uint32_t from = 0;
    float behind = NONE_COUNTED;
    constexpr int row = 32 * (int)sizeof(Key); /* bytes between elements of a lane */
    const shared_address start = address_of(&queue.elements[lane]);
    shared_address to = start; /* where the lane's next element goes */
    shared_address counters = start;
    uint32_t mixed = 0;
    struct digit_counts digits = {};
    if constexpr (several) {
        counters = address_of(&table.from[0][lane]);
        mixed = table.mixed;
    }

    bool crowded = false; /* of a warp's last tile: for many lanes many elements were inside, or some were NaN */

    /* What a thread counts of some elements, apart from ORDER_FROM: few, so that it takes registers only then. The last one: NaNs. */
    struct counted {
        uint32_t of[ORDER_COUNTS + 1];
    };
    auto add_up = [&](const counted &own) {
#pragma unroll
        for (int i = 0; i <= ORDER_COUNTS; i++)
            if (own.of[i] > 0)
                atomicAdd(&totals[i], own.of[i]);
    };

    /* Counts an element that is looked at by key. Whether it is inside; to be kept. */
    auto count_key = [&](Key key, bool there, counted *own, bool *is_kept) {
        Key at = (Key)(key - (Key)only.low), end = (Key)(only.last - only.low);
        bool is_inside = there && at <= end && count > 0;
        if constexpr (several) {
            const uint32_t b = bracket_of(table, key, count);
            at = (Key)(key - table.lows[b]);
            end = table.widths[b];
            is_inside = there && b > 0 && at <= end;
            if (there)
                add_shared(counters + b * (uint32_t)sizeof table.from[0], 1u);
            if (is_inside)
                atomicAdd(&table.inside[b][at == 0 ? ORDER_LOW : at == end ? ORDER_LAST : ORDER_BETWEEN], 1u);
        } else {
            own->of[ORDER_LOW] += is_inside && at == 0;
            own->of[ORDER_LAST] += is_inside && at == end && at != 0;
            own->of[ORDER_BETWEEN] += is_inside && at != end && at != 0;
        }
        *is_kept = is_inside && keeps && (setup.brackets.whole || (at != 0 && at != end));
        return is_inside;
    };

    auto push = [&](Key x, int e) {
        store_shared(to, x);
        if (indexed)
            queue.places[lane + 32 * ((to - start) / row)] = tile_place<Key, ORDER_SHAPE.threads>(e);
        to += row;
    };

    /* What is kept is stored when the next elements have been loaded: the place takes time. */
    struct {
        uint32_t count;
        uint64_t at, first;
    } unstored = {};
    auto store = [&]() {
        if (unstored.count == 0)
            return;
        keeps = store_kept(queue, unstored.count, __shfl_sync(0xffffffffu, unstored.at, 0), pass, unstored.first); /* once there is no room, elements are only counted */
        unstored.count = 0;
        __syncwarp();
    };

    /* are_counted: all in the queue is to be kept. */
    auto empty_queue = [&](uint64_t first, bool are_counted) {
        const uint32_t end_of_lane = lane + 32 * (uint32_t)((to - start) / row);
        uint32_t kept = 0;
        counted own = {};
        for (uint32_t i = lane; __ballot_sync(0xffffffffu, i < end_of_lane) != 0; i += 32) {
            const bool there = i < end_of_lane;
            const Key x = there ? queue.elements[i] : (Key)0, key = key_of(x, pass.map);
            const uint32_t place = indexed && there ? queue.places[i] : 0;
            bool is_kept = there && keeps;
            if (!are_counted) {
                count_key(key, there, &own, &is_kept);
                if constexpr (is_by_value<Way> && !several && !indexed) /* what has been brought to 1 is counted */
                    own.of[ORDER_FROM] += there && key >= (Key)only.low && bounded(Way::value_of(x), setup.scale.values.scale, setup.scale.values.offset) < 1;
            }
            if (indexed && is_kept)
                is_kept = pass.first + first + place < pass.limit || key < (Key)pass.ties.low || key > (Key)pass.ties.last;
            const uint32_t lanes = __ballot_sync(0xffffffffu, is_kept);
            __syncwarp();
            if (is_kept) { /* it goes to where it is, or to a place before, which has been read */
                const uint32_t next = kept + (uint32_t)__popc(lanes & ((1u << lane) - 1));
                queue.elements[next] = key;
                if (indexed)
                    queue.places[next] = place;
            }
            kept += (uint32_t)__popc(lanes);
        }
        add_up(own);
        if (kept > 0 && lane == 0)
            unstored.at = atomicAdd((device_count *)&pass.counts[ORDER_KEPT], (device_count)kept);
        unstored.count = kept;
        unstored.first = pass.first + first;
        __syncwarp();
        to = start;
    };

    /* By value NaN has been taken for the least number: if that is not in the queue, NaN goes there now. */
    auto take_nan = [&](const Key (&x)[shape::each], auto there) {
        counted own = {};
        for (int e = 0; e < shape::each; e++) {
            const Key one = pick(x, e);
            if (!there(e) || key_of(one, pass.map) <= pass.last_number)
                continue;
            own.of[ORDER_COUNTS]++;
            bool is_queued = setup.scale.values.product > 0;
            if constexpr (several) {
                is_queued = table.cells[0] == mixed; /* else no bracket begins before it, and what is counted there tells nothing */
            }
            if (!is_queued)
                push(one, e);
        }
        add_up(own);
    };

    /* Whether the tile was crowded, for this lane. beyond: all ties in it lie behind the limit. */
    auto take_apart = [&](const Key (&x)[shape::each], auto there, bool beyond) {
        counted own = {};
        int inside = 0;
        bool is_kept;
#pragma unroll
        for (int e = 0; e < shape::each; e++) {
            const Key key = key_of(x[e], pass.map);
            own.of[ORDER_COUNTS] += pass.has_nan && there(e) && key > pass.last_number;
            own.of[ORDER_FROM] += !several && !indexed && there(e) && key >= (Key)only.low;
            inside += count_key(key, there(e), &own, &is_kept);
            if (is_kept && !(beyond && key >= (Key)pass.ties.low && key <= (Key)pass.ties.last))
                push(x[e], e);
        }
        add_up(own);
        return own.of[ORDER_COUNTS] > 0 || inside > shape::each / 4;
    };

    /* Whether some elements may be inside, or are NaN. With indices, a bracket has all beyond one end. */
    auto has_some = [&](const Key (&x)[shape::each]) {
        [[maybe_unused]] const float side = setup.scale.side, limit = setup.scale.limit;
        const Key low = (Key)only.low, width = (Key)(only.last - only.low);
        bool none = true;
#pragma unroll
        for (int e = 0; e < shape::each; e++) {
            if constexpr (is_by_value<Way>)
                none = none && Way::value_of(x[e]) * side < limit;
            else
                none = none && (Key)(key_of(x[e], pass.map) - low) > width && !(pass.has_nan && key_of(x[e], pass.map) > pass.last_number);
        }
        return !none;
    };

    auto take_sparse = [&](const Key (&x)[shape::each], auto there, auto few) {
        [[maybe_unused]] constexpr bool is_few = decltype(few)::value;
        [[maybe_unused]] const bracket_scale<Key> scale = setup.scale;
        [[maybe_unused]] const Key low = (Key)only.low, width = (Key)(only.last - only.low);
        float zero = 0; /* NaN if an element is NaN, or infinite */
        [[maybe_unused]] uint32_t found[shape::ahead]; /* in the table, of some elements, and then used: looking takes time */
        const shared_address before = to;
        [[maybe_unused]] counted own = {};
#pragma unroll
        for (int e = 0; e < shape::each; e++) {
            bool may_be_inside;
            for (int i = 0; several && e % shape::ahead == 0 && i < shape::ahead; i++)
                if constexpr (several)
                    found[i] = *(const uint32_t *)((const char *)table.cells + (cell_of<Way>(x[e + i], scale, pass.map) << 2));
            if constexpr (is_by_value<Way>)
                zero = fmaf(Way::value_of(x[e]), 0.0f, zero);
            else if (pass.has_nan)
                own.of[ORDER_COUNTS] += there(e) && key_of(x[e], pass.map) > pass.last_number;
            if constexpr (several) {
                const uint32_t add = found[e % shape::ahead];
                may_be_inside = add == (is_few ? 0 : mixed);
                if (is_few)
                    digits.digits += there(e) ? add : 0;
                else if (there(e)) /* no branch of mixed cells, in which lanes would part */
                    add_shared(counters + add, 1u);
                if (is_few && e % 8 == 7)
                    digits.widen();
            } else if constexpr (is_by_value<Way>) {
                const float at = bounded(Way::value_of(x[e]), scale.values.scale, scale.values.offset);
                if (!indexed)
                    behind = count_ones(behind, there(e) ? at : 0);
                may_be_inside = fmaf(at, scale.values.sum - at, scale.values.product) > 0;
            } else {
                const Key key = key_of(x[e], pass.map);
                from += !indexed && there(e) && key >= low;
                may_be_inside = (Key)(key - low) <= width && count > 0;
            }
            if (there(e) && may_be_inside)
                push(x[e], e);
        }
        if constexpr (!is_by_value<Way>)
            add_up(own);
        if (zero != 0)
            take_nan(x, there);
        return zero != 0 || to - before > shape::each / 4 * row;
    };

    auto take_digits = [&]() {
        if constexpr (several)
            digits.add_to(counters, sizeof table.from[0]);
    };

    auto take = [&](const Key (&x)[shape::each], auto there, uint64_t first) {
        const bool was_crowded = crowded;
        store();
        if (indexed && !was_crowded && __ballot_sync(0xffffffffu, has_some(x)) == 0)
            return;
        const bool is_few = several && count <= FEW_BRACKETS, beyond = indexed && pass.first + first >= pass.limit;
        const bool is_crowded = was_crowded ? take_apart(x, there, beyond)
                                : is_few    ? take_sparse(x, there, std::true_type())
                                            : take_sparse(x, there, std::false_type());
        crowded = __popc(__ballot_sync(0xffffffffu, is_crowded)) > 8;
        if (crowded != was_crowded || __ballot_sync(0xffffffffu, to - start > shape::waiting * row) != 0)
            empty_queue(first, was_crowded);
        if (is_few && ++digits.tiles == 255 / shape::each)
            take_digits();
    };
    if constexpr (several) /* which computes more: all blocks are as fast */
        each_tile<Key, ORDER_SHAPE.threads, shape::loads, true>(pass.x, cut, take, tiles_in_turn());
    else
        each_tile<Key, ORDER_SHAPE.threads, shape::loads, true>(pass.x, cut, take, tiles_left(pass.taken, tiles, tiles_of<Key, ORDER_SHAPE.threads, shape::loads>(cut)));

    store();
    empty_queue(0, crowded);
    store();
    take_digits();
    from += (uint32_t)(behind - NONE_COUNTED);
    if (from > 0)
        atomicAdd(&totals[ORDER_FROM], from);
    __syncthreads();
    if constexpr (several) {
        for (uint32_t b = threadIdx.x / 32 + 1; b <= count; b += BRACKET_WARPS) {
            uint32_t sum = table.from[b][lane];
#pragma unroll
            for (int lanes = 16; lanes > 0; lanes /= 2)
                sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
            table.from[b][lane] = sum;
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < count * ORDER_COUNTS; i += blockDim.x) {
            const uint32_t b = i / ORDER_COUNTS + 1, of = i % ORDER_COUNTS;
            uint32_t sum = table.inside[b][of];
            for (uint32_t next = b; of == ORDER_FROM && next <= count; next++)
                sum += table.from[next][0];
            add_count(&pass.counts[ORDER_FIRST_COUNT + i], sum);
        }
    } else if (count > 0 && threadIdx.x < ORDER_COUNTS) {
        add_count(&pass.counts[ORDER_FIRST_COUNT + threadIdx.x], totals[threadIdx.x]);
    }
    if (threadIdx.x == 0)
        add_count(&pass.counts[ORDER_NANS], totals[ORDER_COUNTS]);
    if (indexed)
        __threadfence_system(); /* the host will read what was kept */
    end_pass(pass.end, pass.counts);
}

template <class Key, class Way, bool several, bool indexed>
static cudaError_t bracket_start(const bracket_pass<Key> &pass, const cut_array<Key> &cut, int multiprocessors, void *stream)
{
    const uint64_t most = (uint64_t)multiprocessors * ORDER_SHAPE.blocks;
    const cudaLaunchConfig_t config =
        launch_config(blocks_for(cut.vectors, ORDER_SHAPE.threads, bracket_shape<Key, indexed>::loads, most), ORDER_SHAPE.threads, stream);
    return cudaLaunchKernelEx(&config, bracket_kernel<Key, Way, several, indexed>, pass, cut);
}

template <class Way, class Key>
static cudaError_t way_start(const bracket_pass<Key> &pass, const cut_array<Key> &cut, bool several, int multiprocessors, void *stream)
{
    return several                   ? bracket_start<Key, Way, true, false>(pass, cut, multiprocessors, stream)
           : pass.indices != nullptr ? bracket_start<Key, Way, false, true>(pass, cut, multiprocessors, stream)
                                     : bracket_start<Key, Way, false, false>(pass, cut, multiprocessors, stream);
}

template <class Key> static cudaError_t brackets_start(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    struct order_chain *const chain = work->chain;
    const cut_array<Key> cut(work->x, work->n);
    const bool several = chain != NULL ? work->q_count > 1 : work->brackets->count > 1, is_top = chain != NULL && work->q_count == 0;
    uint64_t *const taken = chain != NULL ? &chain->more[ORDER_MORE_COUNTS - 2] : end->answer != NULL ? &work->counts[end->count - 2] : NULL;
    bracket_pass<Key> pass = {(const Key *)work->x, work->first, work->n, order_map_of(work->type), (Key)order_last(work->type),
                              order_last(work->type) < order_most(work->type), (uint32_t)multiprocessors, {}, chain, is_top, work->smallest,
                              order_space_of(work->type), work->ties, work->limit, work->counts, taken,
                              (Key *)work->keys, work->indices, work->capacity, work->answer_room, *end};
    if (chain == NULL)
        pass.brackets = *work->brackets;
    else
        pass.brackets.whole = is_top;
    if (several && work->indices != NULL)
        return cudaErrorInvalidValue;
    switch (work->type) {
#define CASE(ID, ...)                                                                                                                         \
    case ALLFOLD_##ID:                                                                                                                        \
        if constexpr (sizeof(Key) == sizeof(element<ALLFOLD_##ID>::stored)) {                                                                 \
            typedef by_value<element<ALLFOLD_##ID>> Way;                                                                                      \
            struct value_map values;                                                                                                          \
            if (chain != NULL                                                                                                                 \
                || (several ? map_values<Way, true, Key>(pass.brackets, pass.map, pass.n, pass.multiprocessors, &values)                      \
                            : map_values<Way, false, Key>(pass.brackets, pass.map, pass.n, pass.multiprocessors, &values)))                   \
                return way_start<Way>(pass, cut, several, multiprocessors, stream);                                                           \
        }                                                                                                                                     \
        break;
        FLOAT_TYPES(CASE)
#undef CASE
    default:
        break;
    }
    return way_start<by_key>(pass, cut, several, multiprocessors, stream);
}

cudaError_t order_brackets_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    return with_key(work->type, [&](auto key) { return brackets_start<decltype(key)>(work, end, multiprocessors, stream); });
}
