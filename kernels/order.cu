/* Passes of order statistics (fold/order.h) over elements in device memory:

     brackets   each thread, for its elements: the key; how many brackets begin at it or before; whether it is inside that one.
                Few are inside: these go through a buffer of the block to the array of what is kept
     table      the cell; the boundary in it, in shared memory; a counter of the interval in shared memory, of which there are copies
     ties       a ballot counts neighbours, which have one range of indices mostly
     sample     gathers

   Blocks stay, and go through the array in tiles. Counters of blocks are added to the caller's at their ends: integers, so the order does not
   matter. */
#include "kernels/kernels.h"
#include "kernels/element.cuh"
#include "kernels/tuning.h"

typedef unsigned long long device_count;

static __device__ __forceinline__ void add_count(uint64_t *count, uint64_t more)
{
    if (more != 0)
        atomicAdd((device_count *)count, (device_count)more);
}

/* A barrier. Whether any thread of the block says so. */
static __device__ __forceinline__ bool block_any(bool mine)
{
#ifdef __NVCC__
    return __syncthreads_or(mine) != 0;
#else
    __shared__ int any;
    __syncthreads();
    if (threadIdx.x == 0)
        any = 0;
    __syncthreads();
    if (mine)
        any = 1;
    __syncthreads();
    return any != 0;
#endif
}

/* The key functions by type. */
#define DEFINE(bytes, bits, type, signed_type)                                                                    \
    static __device__ __forceinline__ type key_of(type x, struct order_map map) { return order_key_##bits(x, map); } \
    static __device__ __forceinline__ uint32_t interval_of(const type *keys, uint32_t first, uint32_t end, type key) \
    {                                                                                                             \
        return order_interval_##bits(keys, first, end, key);                                                      \
    }
ORDER_WIDTHS(DEFINE)
#undef DEFINE

/* An array whose middle can be loaded in vectors: [head, head + vectors * per) of n elements. */
template <class Stored> struct cut_array {
    uint64_t n, head, vectors;
    cut_array(const void *x, uint64_t n) : n(n)
    {
        constexpr uint64_t per = 16 / sizeof(Stored);
        const uint64_t off = (uint64_t)(uintptr_t)x % 16 / sizeof(Stored);
        head = off == 0 ? 0 : per - off < n ? per - off : n;
        vectors = (n - head) / per;
    }
};

/* Calls take(element, first, its index less first, is there) for all elements, and round(first) when each thread has had some: all threads call both
   equally often. */
template <class Stored, int threads, int loads, class Take, class Round>
static __device__ __forceinline__ void each_element(const Stored *x, const cut_array<Stored> &cut, Take take, Round round)
{
    constexpr int per = 16 / sizeof(Stored);
    constexpr uint64_t tile = (uint64_t)threads * loads;
    const Stored *const middle = x + cut.head;
    for (uint64_t first = blockIdx.x * tile; first < cut.vectors; first += gridDim.x * tile) {
        const uint64_t start = cut.head + first * per;
        uint4 vectors[loads];
        if (first + tile <= cut.vectors) {
#pragma unroll
            for (int v = 0; v < loads; v++)
                vectors[v] = load_read_only(middle + (first + (uint64_t)v * threads + threadIdx.x) * per);
#pragma unroll
            for (int v = 0; v < loads; v++)
#pragma unroll
                for (int e = 0; e < per; e++)
                    take(vector_element<Stored>(vectors[v], e), start, (v * threads + threadIdx.x) * per + e, true);
        } else {
            for (int v = 0; v < loads; v++) {
                const uint64_t at = first + (uint64_t)v * threads + threadIdx.x;
                const bool there = at < cut.vectors;
                const uint4 vector = there ? load_read_only(middle + at * per) : make_uint4(0, 0, 0, 0);
#pragma unroll
                for (int e = 0; e < per; e++)
                    take(vector_element<Stored>(vector, e), start, (v * threads + threadIdx.x) * per + e, there);
            }
        }
        round(start);
    }
    for (int end = 0; end < 2 && blockIdx.x == gridDim.x - 1; end++) { /* what lies before the first vector; behind the last */
        const uint64_t start = end == 0 ? 0 : cut.head + cut.vectors * per, at = start + threadIdx.x;
        const bool there = at < (end == 0 ? cut.head : cut.n);
        take(there ? x[at] : Stored(), start, threadIdx.x, there);
        round(start);
    }
}

static uint64_t blocks_for(uint64_t vectors, int threads, int loads, uint64_t most)
{
    const uint64_t tile = (uint64_t)threads * loads, tiles = (vectors + tile - 1) / tile;
    return tiles == 0 ? 1 : tiles < most ? tiles : most;
}

/* ---- brackets */

template <class Key> struct bracket_pass {
    const Key *x;
    cut_array<Key> cut;
    uint64_t first;
    struct order_map map;
    Key last_number;
    bool has_nan;
    struct order_brackets brackets;
    struct order_ties ties;
    uint64_t limit;
    uint64_t *counts;
    Key *keys; /* NULL: none is kept */
    uint64_t *indices;
    uint64_t capacity;
};

template <class Key, bool indexed> struct bracket_shape {
    static constexpr int loads = order_loads(sizeof(Key)), tile = ORDER_SHAPE.threads * loads * (16 / (int)sizeof(Key));
    static constexpr int blocks = indexed ? ORDER_SHAPE.blocks_indexed : ORDER_SHAPE.blocks;
    static constexpr int waiting = indexed ? 0 : tile / 4; /* elements that wait for those of the next tile; with indices none do */
};

/* What a block has kept and not stored yet. Indices count from the tile's first. */
template <class Key, bool indexed> struct kept_buffer {
    static constexpr int room = bracket_shape<Key, indexed>::tile + bracket_shape<Key, indexed>::waiting;
    uint64_t at;
    uint32_t count;
    Key keys[room];
    uint32_t indices[indexed ? room : 1];
};

template <class Key, bool indexed>
static __device__ void store_kept(kept_buffer<Key, indexed> &kept, const bracket_pass<Key> &pass, uint64_t first)
{
    const uint32_t count = kept.count;
    if (threadIdx.x == 0)
        kept.at = atomicAdd((device_count *)&pass.counts[ORDER_KEPT], (device_count)count);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count && kept.at + i < pass.capacity; i += blockDim.x) {
        pass.keys[kept.at + i] = kept.keys[i];
        if (indexed)
            pass.indices[kept.at + i] = first + kept.indices[i];
    }
    __syncthreads();
    if (threadIdx.x == 0)
        kept.count = 0;
    __syncthreads();
}

/* steps: there are less than 2^steps brackets; 0: there is one. */
template <class Key, int steps, bool indexed>
__global__ void __launch_bounds__(ORDER_SHAPE.threads, bracket_shape<Key, indexed>::blocks)
    bracket_kernel(const __grid_constant__ bracket_pass<Key> pass)
{
    typedef bracket_shape<Key, indexed> shape;
    constexpr int lanes = steps == 6 ? 16 : 32, most = steps == 0 ? 1 : (1 << steps) - 1;
    struct ends {
        Key low, width;
    };
    __shared__ ends brackets[most + 1]; /* from 1 on */
    __shared__ uint32_t counters[most + 1][ORDER_COUNTS][lanes]; /* each lane of a warp has its own, or two have */
    __shared__ kept_buffer<Key, indexed> kept;
    const uint32_t count = pass.brackets.count;
    const int lane = (int)(threadIdx.x % lanes);
    for (uint32_t i = threadIdx.x; i < (most + 1) * ORDER_COUNTS * lanes; i += blockDim.x)
        ((uint32_t *)counters)[i] = 0;
    for (uint32_t b = threadIdx.x; b <= most; b += blockDim.x) {
        const bool there = b >= 1 && b <= count;
        const struct order_bracket bracket = pass.brackets.list[there ? b - 1 : 0];
        brackets[b].low = there ? (Key)bracket.low : (Key)~(Key)0;
        brackets[b].width = there ? (Key)(bracket.last - bracket.low) : 0;
    }
    if (threadIdx.x == 0)
        kept.count = 0;
    __syncthreads();
    const Key only_low = (Key)pass.brackets.list[0].low, only_width = (Key)(pass.brackets.list[0].last - pass.brackets.list[0].low);
    const bool whole = pass.brackets.whole, keeps = pass.keys != NULL;
    uint32_t from = 0, nans = 0;
    auto take = [&](Key x, uint64_t first, uint32_t place, bool there) {
        const Key key = key_of(x, pass.map);
        uint32_t b = 1;
        if (pass.has_nan)
            nans += there && key > pass.last_number;
        if constexpr (steps == 0) {
            from += there && key >= only_low;
        } else {
            b = 0;
#pragma unroll
            for (int step = 1 << (steps - 1); step > 0; step /= 2)
                b += brackets[b + step].low <= key ? step : 0;
            b = b < count ? b : count;
            if (there)
                atomicAdd(&counters[b][ORDER_FROM][lane], 1u);
        }
        const Key low = steps == 0 ? only_low : brackets[b].low, width = steps == 0 ? only_width : brackets[b].width, at = (Key)(key - low);
        if (!there || at > width || b == 0 || count == 0)
            return;
        atomicAdd(&counters[b][at == 0 ? ORDER_LOW : at == width ? ORDER_LAST : ORDER_BETWEEN][lane], 1u);
        if (!keeps || (!whole && (at == 0 || at == width)))
            return;
        if (indexed && pass.first + first + place >= pass.limit && key >= pass.ties.low && key <= pass.ties.last)
            return;
        const uint32_t to = atomicAdd(&kept.count, 1u);
        kept.keys[to] = key;
        if (indexed)
            kept.indices[to] = place;
    };
    each_element<Key, ORDER_SHAPE.threads, shape::loads>(pass.x, pass.cut, take, [&](uint64_t first) {
        if (keeps && block_any(*(volatile uint32_t *)&kept.count > shape::waiting))
            store_kept(kept, pass, pass.first + first);
    });
    if (steps == 0)
        atomicAdd(&counters[1][ORDER_FROM][lane], from);
    add_count(&pass.counts[ORDER_NANS], nans);
    __syncthreads();
    if (keeps && kept.count > 0)
        store_kept(kept, pass, 0);
    for (uint32_t i = threadIdx.x; i < count * ORDER_COUNTS; i += blockDim.x) {
        uint64_t sum = 0;
        const uint32_t own = i / ORDER_COUNTS + 1, end = i % ORDER_COUNTS == ORDER_FROM ? count : own; /* from: of the brackets behind, too */
        for (uint32_t b = own; b <= end; b++)
            for (int of = 0; of < lanes; of++)
                sum += counters[b][i % ORDER_COUNTS][of];
        add_count(&pass.counts[ORDER_FIRST_COUNT + i], sum);
    }
}

template <class Key, int steps, bool indexed>
static cudaError_t bracket_start(const struct order_work *work, int multiprocessors, void *stream)
{
    const bracket_pass<Key> pass = {(const Key *)work->x, cut_array<Key>(work->x, work->n), work->first, order_map_of(work->type),
                                    (Key)order_last(work->type), order_last(work->type) < order_most(work->type), *work->brackets, work->ties,
                                    work->limit, work->counts, (Key *)work->keys, work->indices, work->capacity};
    const uint64_t most = (uint64_t)multiprocessors * bracket_shape<Key, indexed>::blocks;
    const cudaLaunchConfig_t config =
        launch_config(blocks_for(pass.cut.vectors, ORDER_SHAPE.threads, bracket_shape<Key, indexed>::loads, most), ORDER_SHAPE.threads, stream);
    return cudaLaunchKernelEx(&config, bracket_kernel<Key, steps, indexed>, pass);
}

template <class Key> static cudaError_t brackets_launch(const struct order_work *work, int multiprocessors, void *stream)
{
    const uint32_t count = work->brackets->count;
    if (work->indices != NULL)
        return count > 1 ? cudaErrorInvalidValue : bracket_start<Key, 0, true>(work, multiprocessors, stream);
    return count <= 1   ? bracket_start<Key, 0, false>(work, multiprocessors, stream)
           : count <= 7 ? bracket_start<Key, 3, false>(work, multiprocessors, stream)
                        : bracket_start<Key, 6, false>(work, multiprocessors, stream);
}

/* ---- a table */

/* What a cell has: where its intervals begin; and of its one boundary the key below it. Of several, the boundaries are looked up. */
template <class Key> struct order_table_cell {
    Key below;
    uint32_t first;
};
constexpr uint32_t SEVERAL = 1u << 31;

template <class Key> struct table_pass {
    const void *x;
    uint64_t n;
    struct order_map map;
    struct order_table table;
    uint64_t *counts;
    uint32_t first, intervals; /* those that are counted */
    uint32_t copies;           /* of counters in shared memory; 0: they are in the caller's */
    bool shared_cells;
};

template <class Key> static __device__ __forceinline__ order_table_cell<Key> cell_of(const struct order_table &table, uint32_t cell)
{
    const uint32_t first = table.cells[cell], end = table.cells[cell + 1];
    const Key boundary = ((const Key *)table.keys)[first];
    const bool above = end > first && boundary == 0; /* every key is at the boundary or behind it */
    order_table_cell<Key> found;
    found.below = end == first || above ? (Key)~(Key)0 : (Key)(boundary - 1);
    found.first = end > first + 1 ? first | SEVERAL : above ? first + 1 : first;
    return found;
}

template <class Element, class Key>
static __device__ __forceinline__ uint32_t guess_cell(typename Element::stored x, Key key, const struct order_guess &guess, bool by_value)
{
    if (!by_value)
        return order_cell_key(key, &guess);
    if constexpr (ORDER_IS_SHORT(sizeof(x), Element::is_floating ? 'f' : 'i'))
        return order_cell_f32((float)Element::load(x), &guess);
    else
        return order_cell_f64((double)Element::load(x), &guess);
}

/* simple: cells are by value, have one boundary at most, and lie in shared memory, as do the counters of all intervals. */
template <class Element, class Key, bool simple>
__global__ void __launch_bounds__(ORDER_TABLE_SHAPE.threads, ORDER_TABLE_SHAPE.blocks)
    table_kernel(const __grid_constant__ table_pass<Key> pass, const __grid_constant__ cut_array<Key> cut)
{
    extern __shared__ unsigned char bytes[];
    const struct order_table &table = pass.table;
    const uint32_t copy = threadIdx.x % (pass.copies > 0 ? pass.copies : 1);
    order_table_cell<Key> *const cells = (order_table_cell<Key> *)bytes;
    uint32_t *const counters = (uint32_t *)(bytes + (pass.shared_cells ? table.guess.cells * sizeof *cells : 0));
    for (uint32_t i = threadIdx.x; i < pass.intervals * pass.copies; i += blockDim.x)
        counters[i] = 0;
    for (uint32_t i = threadIdx.x; pass.shared_cells && i < table.guess.cells; i += blockDim.x)
        cells[i] = cell_of<Key>(table, i);
    __syncthreads();
    auto take = [&](Key bits, uint64_t, uint32_t, bool there) {
        typename Element::stored x;
        memcpy(&x, &bits, sizeof x);
        const Key key = key_of(bits, pass.map);
        const uint32_t cell = guess_cell<Element, Key>(x, key, table.guess, simple || table.guess.by_value);
        const order_table_cell<Key> found = simple || pass.shared_cells ? cells[cell] : cell_of<Key>(table, cell);
        uint32_t interval = found.first + (key > found.below);
        if (!simple && (found.first & SEVERAL) != 0)
            interval = interval_of((const Key *)table.keys, found.first & ~SEVERAL, table.cells[cell + 1], key);
        interval -= pass.first; /* less than none is more than all */
        if (!there || (!simple && interval >= pass.intervals))
            return;
        if (simple || pass.copies > 0)
            atomicAdd(&counters[interval * pass.copies + copy], 1u);
        else
            atomicAdd((device_count *)&pass.counts[ORDER_FIRST_COUNT + interval], (device_count)1);
    };
    each_element<Key, ORDER_TABLE_SHAPE.threads, ORDER_TABLE_SHAPE.loads>((const Key *)pass.x, cut, take, [](uint64_t) {});
    __syncthreads();
    for (uint32_t i = threadIdx.x; pass.copies > 0 && i < pass.intervals; i += blockDim.x) {
        uint64_t sum = 0;
        for (uint32_t of = 0; of < pass.copies; of++)
            sum += counters[i * pass.copies + (of + i) % pass.copies];
        add_count(&pass.counts[ORDER_FIRST_COUNT + pass.first + i], sum);
    }
}

template <class Element, class Key, bool simple>
static cudaError_t table_run(const table_pass<Key> &pass, size_t bytes, size_t shared_bytes, int multiprocessors, void *stream)
{
    const cut_array<Key> cut(pass.x, pass.n);
    const uint64_t most = (uint64_t)multiprocessors * (bytes <= shared_bytes / ORDER_TABLE_SHAPE.blocks ? ORDER_TABLE_SHAPE.blocks : 1);
    cudaLaunchConfig_t config = launch_config(blocks_for(cut.vectors, ORDER_TABLE_SHAPE.threads, ORDER_TABLE_SHAPE.loads, most), ORDER_TABLE_SHAPE.threads, stream);
    config.dynamicSmemBytes = bytes;
    const cudaError_t code =
        cudaFuncSetAttribute((const void *)table_kernel<Element, Key, simple>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    return code != cudaSuccess ? code : cudaLaunchKernelEx(&config, table_kernel<Element, Key, simple>, pass, cut);
}

/* What fits shared memory: one copy of the counters, then the cells, then more copies, as many as keep several blocks on a multiprocessor. Counters that
   do not fit are counted some at a time, in a pass each, or, if they are very many, in the caller's memory. */
template <class Element, class Key>
static cudaError_t table_start(const struct order_work *work, int multiprocessors, size_t shared_bytes, void *stream)
{
    const struct order_table &table = *work->table;
    const uint32_t all = table.count + 1, most = (uint32_t)(shared_bytes / sizeof(uint32_t)), passes = (all + most - 1) / most;
    table_pass<Key> pass = {work->x, work->n, order_map_of(work->type), table, work->counts, 0, all, 0, false};
    pass.copies = passes <= ORDER_TABLE_PASSES;
    if (pass.copies > 0)
        pass.intervals = (all + passes - 1) / passes;
    const size_t counters = pass.intervals * sizeof(uint32_t), cells = table.guess.cells * sizeof(order_table_cell<Key>);
    pass.shared_cells = pass.copies * counters + cells <= shared_bytes;
    while (pass.copies > 0 && pass.copies < 32 && cells + 2 * pass.copies * counters <= shared_bytes / ORDER_TABLE_SHAPE.blocks)
        pass.copies *= 2;
    const size_t bytes = pass.copies * counters + (pass.shared_cells ? cells : 0);
    if (table.guess.by_value && !table.several && pass.shared_cells && pass.intervals == all && pass.copies > 0)
        return table_run<Element, Key, true>(pass, bytes, shared_bytes, multiprocessors, stream);
    cudaError_t code = cudaSuccess;
    for (; pass.first < all && code == cudaSuccess; pass.first += pass.intervals)
        code = table_run<Element, Key, false>(pass, bytes, shared_bytes, multiprocessors, stream);
    return code;
}

/* ---- ties and samples */

template <class Key> struct short_pass {
    const Key *x;
    uint64_t n, first;
    struct order_map map;
    struct order_ties ties;
    uint64_t stride;
    uint64_t *counts;
    Key *keys;
};

template <class Key> __global__ void __launch_bounds__(ORDER_SHAPE.threads) ties_kernel(const __grid_constant__ short_pass<Key> pass)
{
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x, end = (pass.n + step - 1) / step * step; /* lanes of a warp stay together */
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < end; i += step) {
        const Key key = i < pass.n ? key_of(pass.x[i], pass.map) : 0;
        const bool is_tie = i < pass.n && key >= pass.ties.low && key <= pass.ties.last;
        const uint64_t range = (pass.first + i) >> pass.ties.shift, first = (pass.first + i - threadIdx.x % 32) >> pass.ties.shift;
        const uint32_t with_first = __ballot_sync(0xffffffffu, is_tie && range == first);
        if (threadIdx.x % 32 == 0)
            add_count(&pass.counts[ORDER_FIRST_COUNT + range], (uint64_t)__popc(with_first));
        else if (is_tie && range != first)
            add_count(&pass.counts[ORDER_FIRST_COUNT + range], 1);
    }
}

template <class Key> __global__ void __launch_bounds__(ORDER_SHAPE.threads) sample_kernel(const __grid_constant__ short_pass<Key> pass)
{
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pass.n / pass.stride; i += (uint64_t)gridDim.x * blockDim.x)
        pass.keys[i] = key_of(pass.x[order_sample_place(i, pass.stride)], pass.map);
}

template <class Key> static cudaError_t short_launch(const struct order_work *work, int multiprocessors, void *stream)
{
    const short_pass<Key> pass = {(const Key *)work->x, work->n, work->first, order_map_of(work->type), work->ties, work->stride, work->counts, (Key *)work->keys};
    const uint64_t items = work->kind == ORDER_SAMPLE ? work->n / work->stride : work->n;
    const cudaLaunchConfig_t config =
        launch_config(blocks_for(items, ORDER_SHAPE.threads, 1, (uint64_t)multiprocessors * 8), ORDER_SHAPE.threads, stream);
    return work->kind == ORDER_SAMPLE ? cudaLaunchKernelEx(&config, sample_kernel<Key>, pass) : cudaLaunchKernelEx(&config, ties_kernel<Key>, pass);
}

/* ---- launching */

template <class Key> static cudaError_t launch_key(const struct order_work *work, int multiprocessors, void *stream)
{
    return work->kind == ORDER_BRACKETS ? brackets_launch<Key>(work, multiprocessors, stream) : short_launch<Key>(work, multiprocessors, stream);
}

template <size_t bytes> struct key_type;
#define DEFINE(size, bits, unsigned_type, signed_type) \
    template <> struct key_type<size> {                \
        typedef unsigned_type type;                    \
    };
ORDER_WIDTHS(DEFINE)
#undef DEFINE

int order_launch(const struct order_work *work, int multiprocessors, size_t shared_bytes, void *stream)
{
    if (work->n == 0)
        return cudaSuccess;
    if (work->kind == ORDER_TABLE)
        return with_element(work->type, [&](auto element) {
            typedef decltype(element) Element;
            return table_start<Element, typename key_type<sizeof(typename Element::stored)>::type>(work, multiprocessors, shared_bytes, stream);
        });
    switch (allfold_type_bytes(work->type)) {
#define CASE(bytes, bits, type, signed_type) \
    case bytes: return launch_key<type>(work, multiprocessors, stream);
        ORDER_WIDTHS(CASE)
#undef CASE
    default: return cudaErrorInvalidValue;
    }
}
