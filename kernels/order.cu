/* Passes of order statistics over elements in device memory, those that count intervals apart (order_digits.cu, order_even.cu, order_table.cu):

     brackets   each thread, for its elements: the key; how many brackets begin at it or before; whether it is inside that one.
                Few are inside: these go through a buffer of the warp to the array of what is kept
     ties       a ballot counts neighbours, which have one range of indices mostly
     sample     gathers */
#include "kernels/order.cuh"

/* ---- brackets */

constexpr int BRACKET_THREADS = 256;

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

/* steps: there are less than 2^steps brackets; 0: there is one. */
template <class Key, int steps, bool indexed> struct bracket_shape {
    static constexpr int loads = order_loads(sizeof(Key)), each = loads * (16 / (int)sizeof(Key)), warps = BRACKET_THREADS / 32;
    static constexpr int blocks = steps == 0 && !indexed ? 5 : 4;
    static constexpr int waiting = indexed ? 0 : steps == 6 ? 16 * each : 32 * each; /* keys that wait for those of the next tile; with indices none do */
    static constexpr int room = 32 * each + waiting;
};

/* A warp's elements inside brackets wait in shared memory, with their places in the tile, until they fill it: then the warp counts and stores them. Those
   that equal the ends of a single bracket, and are not kept, may be many: they do not wait. */
template <class Key, int steps, bool indexed>
__global__ void __launch_bounds__(BRACKET_THREADS, bracket_shape<Key, steps, indexed>::blocks)
    bracket_kernel(const __grid_constant__ bracket_pass<Key> pass)
{
    typedef bracket_shape<Key, steps, indexed> shape;
    constexpr int lanes = steps == 6 ? 16 : 32, most = steps == 0 ? 1 : (1 << steps) - 1, each = shape::each;
    struct ends {
        Key low, width;
    };
    __shared__ ends brackets[most + 1]; /* from 1 on */
    __shared__ uint32_t counters[most + 1][ORDER_COUNTS][lanes]; /* each lane of a warp has its own, or two have */
    __shared__ Key kept[shape::warps][shape::room];
    __shared__ uint32_t places[indexed ? shape::warps : 1][indexed ? shape::room : 1];
    const uint32_t count = pass.brackets.count, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (uint32_t i = threadIdx.x; i < (most + 1) * ORDER_COUNTS * lanes; i += blockDim.x)
        ((uint32_t *)counters)[i] = 0;
    for (uint32_t b = threadIdx.x; b <= most; b += blockDim.x) {
        const bool there = b >= 1 && b <= count;
        const struct order_bracket bracket = pass.brackets.list[there ? b - 1 : 0];
        brackets[b] = {there ? (Key)bracket.low : (Key)~(Key)0, there ? (Key)(bracket.last - bracket.low) : (Key)0};
    }
    __syncthreads();
    const ends only = brackets[1];
    const bool whole = pass.brackets.whole, keeps = pass.keys != NULL;
    const Key edge = steps == 0 && !whole, between = (Key)(only.width - 2 * edge);
    const bool none = count == 0 || (edge == 1 && only.width < 2); /* nothing is between the ends */
    Key *const mine = kept[warp];
    uint32_t *const my_places = places[indexed ? warp : 0];
    uint32_t from = 0, lows = 0, lasts = 0, nans = 0, held = 0, even = 0, odd = 0, groups = 0;
    auto bracket_of = [&](Key key) { /* or one behind the last, if the key is the largest there is */
        uint32_t b = steps == 0;
#pragma unroll
        for (int step = 1 << steps >> 1; step > 0; step /= 2)
            b += brackets[b + step].low <= key ? step : 0;
        return b;
    };
    auto add_one = [&](uint32_t b, int which) { atomicAdd(&counters[b][which][lane % lanes], 1u); };
    /* Counts an element inside a bracket. Whether it may be kept. */
    auto count_inside = [&](Key key) {
        const uint32_t found = bracket_of(key), b = found < count ? found : count;
        const ends own = brackets[b];
        const Key at = (Key)(key - own.low);
        if (b == 0 || at > own.width)
            return false;
        add_one(b, at == 0 ? ORDER_LOW : at == own.width ? ORDER_LAST : ORDER_BETWEEN);
        return keeps && (whole || (at != 0 && at != own.width));
    };
    auto store = [&](uint64_t first) {
        uint32_t stored = 0;
        __syncwarp();
        for (uint32_t i = lane; i - lane < held; i += 32) {
            const Key key = i < held ? mine[i] : (Key)0;
            const uint32_t place = indexed && i < held ? my_places[i] : 0;
            const bool is_late_tie = indexed && first + place >= pass.limit && key >= pass.ties.low && key <= pass.ties.last;
            const bool keep = i < held && count_inside(key) && !is_late_tie;
            const uint32_t votes = __ballot_sync(0xffffffffu, keep), to = stored + (uint32_t)__popc(votes & ((1u << lane) - 1));
            if (keep) {
                mine[to] = key;
                if (indexed)
                    my_places[to] = place;
            }
            stored += (uint32_t)__popc(votes);
            __syncwarp();
        }
        uint64_t begin = 0;
        if (lane == 0 && stored > 0)
            begin = atomicAdd((device_count *)&pass.counts[ORDER_KEPT], (device_count)stored);
        begin = __shfl_sync(0xffffffffu, begin, 0);
        for (uint32_t i = lane; i < stored && begin + i < pass.capacity; i += 32) {
            pass.keys[begin + i] = mine[i];
            if (indexed)
                pass.indices[begin + i] = first + my_places[i];
        }
        __syncwarp();
        held = 0;
    };
    auto spill = [&]() {
#pragma unroll
        for (uint32_t b = 0; b <= most && steps == 3; b++)
            atomicAdd(&counters[b][ORDER_FROM][lane % lanes], (b % 2 == 0 ? even : odd) >> 4 * (b - b % 2) & 0xff);
        even = odd = groups = 0;
    };
    each_tile<Key, BRACKET_THREADS, shape::loads>(pass.x, pass.cut, [&](auto element, auto is_there, uint64_t start) {
        Key keys[each];
        uint32_t inside = 0, nibbles = 0;
#pragma unroll
        for (int i = 0; i < each; i++) {
            const bool there = is_there(i);
            const Key key = keys[i] = key_of(element(i), pass.map);
            uint32_t b = 1;
            if (pass.has_nan)
                nans += there && key > pass.last_number;
            if constexpr (steps == 0) {
                from += there && key >= only.low;
            } else {
                b = bracket_of(key);
                nibbles += (uint32_t)there << 4 * (b % 8);
                if (steps == 6 && there)
                    add_one(b, ORDER_FROM);
            }
            const ends own = steps == 0 ? only : brackets[b];
            const Key at = (Key)(key - own.low);
            if (steps == 0) {
                lows += there && at == 0;
                lasts += there && at == own.width;
            }
            inside |= (uint32_t)(there && (steps == 0 ? (Key)(at - edge) <= between : at <= own.width)) << i;
            if (steps == 3 && i % 8 == 7) { /* of 8 elements a nibble counts each bracket's; of 31 times as many a byte does */
                even += nibbles & 0x0f0f0f0fu;
                odd += nibbles >> 4 & 0x0f0f0f0fu;
                nibbles = 0;
            }
        }
        groups += each / 8;
        if (steps == 3 && groups + each / 8 > 31)
            spill();
        if (none || __ballot_sync(0xffffffffu, inside != 0) == 0)
            return;
        uint32_t behind = (uint32_t)__popc(inside);
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const uint32_t others = __shfl_up_sync(0xffffffffu, behind, step);
            behind += lane >= (uint32_t)step ? others : 0;
        }
        uint32_t to = held + behind - (uint32_t)__popc(inside);
        held += __shfl_sync(0xffffffffu, behind, 31);
#pragma unroll
        for (int i = 0; i < each; i++)
            if ((inside >> i & 1) != 0) {
                mine[to] = keys[i];
                if (indexed)
                    my_places[to] = place_of<Key, BRACKET_THREADS>(i);
                to++;
            }
        if (held > shape::waiting)
            store(pass.first + start);
    });
    if (held > 0)
        store(0);
    spill();
    if (steps == 0) {
        atomicAdd(&counters[1][ORDER_FROM][lane], from);
        atomicAdd(&counters[1][ORDER_LOW][lane], whole ? 0 : lows);
        atomicAdd(&counters[1][ORDER_LAST][lane], whole || only.width == 0 ? 0 : lasts);
    }
    add_count(&pass.counts[ORDER_NANS], nans);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count * ORDER_COUNTS; i += blockDim.x) {
        uint64_t sum = 0;
        const uint32_t own = i / ORDER_COUNTS + 1, end = i % ORDER_COUNTS == ORDER_FROM ? most : own; /* from: of the brackets behind, too */
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
    typedef bracket_shape<Key, steps, indexed> shape;
    const uint64_t most = (uint64_t)multiprocessors * shape::blocks;
    const cudaLaunchConfig_t config = launch_config(blocks_for(pass.cut.vectors, BRACKET_THREADS, shape::loads, most), BRACKET_THREADS, stream);
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

/* ---- ties and samples */

constexpr int SHORT_THREADS = 256;

template <class Key> struct short_pass {
    const Key *x;
    uint64_t n, first;
    struct order_map map;
    struct order_ties ties;
    uint64_t stride;
    uint64_t *counts;
    Key *keys;
};

template <class Key> __global__ void __launch_bounds__(SHORT_THREADS) ties_kernel(const __grid_constant__ short_pass<Key> pass)
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

template <class Key> __global__ void __launch_bounds__(SHORT_THREADS) sample_kernel(const __grid_constant__ short_pass<Key> pass)
{
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pass.n / pass.stride; i += (uint64_t)gridDim.x * blockDim.x)
        pass.keys[i] = key_of(pass.x[order_sample_place(i, pass.stride)], pass.map);
}

template <class Key> static cudaError_t short_launch(const struct order_work *work, int multiprocessors, void *stream)
{
    const short_pass<Key> pass = {(const Key *)work->x, work->n, work->first, order_map_of(work->type), work->ties, work->stride, work->counts, (Key *)work->keys};
    const uint64_t items = work->kind == ORDER_SAMPLE ? work->n / work->stride : work->n;
    const cudaLaunchConfig_t config =
        launch_config(blocks_for(items, SHORT_THREADS, 1, (uint64_t)multiprocessors * 8), SHORT_THREADS, stream);
    return work->kind == ORDER_SAMPLE ? cudaLaunchKernelEx(&config, sample_kernel<Key>, pass) : cudaLaunchKernelEx(&config, ties_kernel<Key>, pass);
}

/* ---- launching */

template <class Key> static cudaError_t launch_key(const struct order_work *work, int multiprocessors, void *stream)
{
    return work->kind == ORDER_BRACKETS ? brackets_launch<Key>(work, multiprocessors, stream) : short_launch<Key>(work, multiprocessors, stream);
}

int order_launch(const struct order_work *work, int multiprocessors, size_t shared_bytes, void *stream)
{
    if (work->n == 0)
        return cudaSuccess;
    if (work->kind == ORDER_TABLE)
        return order_table_launch(work, multiprocessors, shared_bytes, stream);
    if (work->kind == ORDER_DIGITS)
        return order_digits_launch(work, multiprocessors, stream);
    if (work->kind == ORDER_EVEN)
        return order_even_launch(work, multiprocessors, shared_bytes, stream);
    switch (allfold_type_bytes(work->type)) {
#define CASE(bytes, bits, type, signed_type) \
    case bytes: return launch_key<type>(work, multiprocessors, stream);
        ORDER_WIDTHS(CASE)
#undef CASE
    default: return cudaErrorInvalidValue;
    }
}
