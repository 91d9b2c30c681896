/* Passes of order statistics over elements in device memory, those that count intervals apart (order_digits.cu, order_even.cu, order_table.cu):

     brackets   each thread, for its elements: the key; how many brackets begin at it or before; whether it is inside that one.
                Few are inside: these go through a buffer of the block to the array of what is kept
     ties       a ballot counts neighbours, which have one range of indices mostly
     sample     gathers

   An answer tells the host at once what a pass has counted: one block copies the counters to the host's memory and leaves 0 */
#include "kernels/message.cuh"
#include "kernels/order.cuh"

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

/* ---- answers */

constexpr int ANSWER_THREADS = 512;

static __global__ void __launch_bounds__(ANSWER_THREADS) answer_kernel(uint64_t *counts, uint64_t *answer, uint32_t count, struct fold_mailbox *mailbox,
                                                                      uint32_t launch_id)
{
    struct {
        uint32_t halves[ORDER_ANSWER_BYTES / 4];
    } done = {};
    for (uint32_t i = threadIdx.x; i < count; i += ANSWER_THREADS) {
        answer[i] = counts[i];
        counts[i] = 0;
    }
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0)
        message_send(mailbox->partial.words, done, launch_id);
}

int order_answer_launch(const struct order_work *work, uint64_t *answer, const struct fold_space *space, void *stream)
{
    const cudaLaunchConfig_t config = launch_config(1, ANSWER_THREADS, stream);
    return cudaLaunchKernelEx(&config, answer_kernel, work->counts, answer, (uint32_t)(work->answered / sizeof *answer), space->mailbox, space->launch_id);
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
