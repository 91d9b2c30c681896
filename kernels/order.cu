/* Passes of order statistics over elements in device memory: those that look at indices, and which file has the others.

     ties       a ballot counts neighbours, which have one range of indices mostly
     ends       the least and the largest key, of each block
     sample     gathers
     chain      a sample and the search in it, brackets, and the search in what they have kept: kernels that follow one another */
#include "kernels/order.cuh"

constexpr int GATHER_LOADS = 4; /* elements of a sample that a thread loads together, as they lie apart */

template <class Key> struct short_pass {
    const Key *x;
    uint64_t n, first;
    struct order_map map;
    struct order_ties ties;
    uint64_t stride, last;
    uint64_t *counts;
    Key *keys;
    struct order_end end;
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
    end_pass(pass.end, pass.counts);
}

template <class Key> struct ends_shape {
    typedef typename std::conditional<(sizeof(Key) < 4), uint32_t, Key>::type wide; /* which a warp exchanges */
    static constexpr int warps = ORDER_SHAPE.threads / 32, loads = order_loads(sizeof(Key)), each = elements_of<Key, loads>;
};

/* Keys that are no number's are above `last`. */
template <class Key> __global__ void __launch_bounds__(ORDER_SHAPE.threads)
    ends_kernel(const __grid_constant__ short_pass<Key> pass, const __grid_constant__ cut_array<Key> cut)
{
    typedef ends_shape<Key> shape;
    typedef typename shape::wide Wide;
    __shared__ Wide leasts[shape::warps], largests[shape::warps];
    const Wide last = (Wide)pass.last;
    Wide least = ~(Wide)0, largest = 0;
    auto take = [&](const Key (&x)[shape::each], auto there, uint64_t) {
#pragma unroll
        for (int e = 0; e < shape::each; e++) {
            const Wide key = key_of(x[e], pass.map);
            const bool is_number = there(e) && key <= last;
            least = is_number && key < least ? key : least;
            largest = is_number && key > largest ? key : largest;
        }
    };
    each_tile<Key, ORDER_SHAPE.threads, shape::loads, false>(pass.x, cut, take);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        const Wide low = __shfl_down_sync(0xffffffffu, least, step), high = __shfl_down_sync(0xffffffffu, largest, step);
        least = low < least ? low : least;
        largest = high > largest ? high : largest;
    }
    if (threadIdx.x % 32 == 0) {
        leasts[threadIdx.x / 32] = least;
        largests[threadIdx.x / 32] = largest;
    }
    __syncthreads();
    for (int warp = 1; threadIdx.x == 0 && warp < shape::warps; warp++) {
        least = leasts[warp] < least ? leasts[warp] : least;
        largest = largests[warp] > largest ? largests[warp] : largest;
    }
    if (threadIdx.x == 0 && largest >= least) {
        const uint64_t at = atomicAdd((device_count *)&pass.counts[ORDER_KEPT], (device_count)2);
        pass.keys[at] = (Key)least;
        pass.keys[at + 1] = (Key)largest;
    }
    end_pass(pass.end, pass.counts);
}

/* The key of element i of a sample; 0 behind the last one. */
template <class Key> static __device__ __forceinline__ Key sampled(const short_pass<Key> &pass, uint64_t i)
{
    return i < pass.n / pass.stride ? key_of(pass.x[order_sample_place(i, pass.stride)], pass.map) : (Key)0;
}

template <class Key> __global__ void __launch_bounds__(ORDER_SHAPE.threads) sample_kernel(const __grid_constant__ short_pass<Key> pass)
{
    const uint64_t found = pass.n / pass.stride, step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; first < found; first += GATHER_LOADS * step) {
        Key keys[GATHER_LOADS];
#pragma unroll
        for (int s = 0; s < GATHER_LOADS; s++)
            keys[s] = sampled(pass, first + s * step);
#pragma unroll
        for (int s = 0; s < GATHER_LOADS; s++)
            if (first + s * step < found)
                pass.keys[first + s * step] = keys[s];
    }
}

template <class Key> static cudaError_t short_start(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    const short_pass<Key> pass = {(const Key *)work->x, work->n, work->first, order_map_of(work->type), work->ties, work->stride, order_last(work->type),
                                  work->counts, (Key *)work->keys, *end};
    if (work->kind == ORDER_ENDS) {
        const cut_array<Key> cut(work->x, work->n);
        const cudaLaunchConfig_t config =
            launch_config(blocks_for(cut.vectors, ORDER_SHAPE.threads, ends_shape<Key>::loads, (uint64_t)multiprocessors * 8), ORDER_SHAPE.threads, stream);
        return cudaLaunchKernelEx(&config, ends_kernel<Key>, pass, cut);
    }
    const uint64_t items = work->kind == ORDER_SAMPLE ? work->n / work->stride : work->n;
    const cudaLaunchConfig_t config =
        launch_config(blocks_for(items, ORDER_SHAPE.threads, work->kind == ORDER_SAMPLE ? GATHER_LOADS : 1, (uint64_t)multiprocessors * 8),
                      ORDER_SHAPE.threads, stream);
    return work->kind == ORDER_SAMPLE ? cudaLaunchKernelEx(&config, sample_kernel<Key>, pass) : cudaLaunchKernelEx(&config, ties_kernel<Key>, pass);
}

/* A sample's answer goes to the chain. */
static cudaError_t chain_start(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream)
{
    struct order_chain *const chain = (struct order_chain *)work->counts;
    uint64_t *const of_search = work->counts + sizeof *chain / sizeof *work->counts;
    const bool is_top = work->q_count == 0;
    const struct order_end inner = {(uint64_t *)chain->targets, is_top ? end->count : (uint32_t)ORDER_SEARCH_COUNTS, NULL, 0}, none = {};
    const struct order_end last = {end->answer, ORDER_SEARCH_COUNTS, end->mailbox, end->launch_id};
    struct order_work sample = *work, part = *work, search = {};
    if (!is_top)
        sample.counts = of_search;
    sample.chain = part.chain = search.chain = chain;
    search.type = order_key_type(work->type);
    search.x = work->keys;
    search.n = work->capacity;
    search.counts = of_search;
    search.targets = work->wanted;
    search.target_count = work->wanted_count;
    search.rounds = UINT32_MAX;
    search.chain_elements = work->n;
    search.chain_last = order_last(work->type);
    cudaError_t code = order_sample_launch(&sample, &inner, multiprocessors, shared_bytes, stream);
    if (code == cudaSuccess)
        code = order_brackets_launch(&part, is_top ? end : &none, multiprocessors, stream);
    return is_top || code != cudaSuccess ? code : order_search_launch(&search, &last, multiprocessors, stream);
}

int order_launch(const struct order_work *work, uint64_t *answer, const struct fold_space *space, size_t shared_bytes, void *stream)
{
    const struct order_end end = {answer, (uint32_t)(work->answered / sizeof *answer), space->mailbox, space->launch_id};
    const int multiprocessors = space->multiprocessors;
    switch (work->kind) {
    case ORDER_BRACKETS: return order_brackets_launch(work, &end, multiprocessors, stream);
    case ORDER_TABLE:
    case ORDER_KEEP: return order_table_launch(work, &end, multiprocessors, shared_bytes, stream);
    case ORDER_DIGITS: return order_digits_launch(work, &end, multiprocessors, stream);
    case ORDER_SEARCH: return order_search_launch(work, &end, multiprocessors, stream);
    case ORDER_EVEN: return order_even_launch(work, &end, multiprocessors, shared_bytes, stream);
    case ORDER_CHAIN: return chain_start(work, &end, multiprocessors, shared_bytes, stream);
    case ORDER_TIES:
    case ORDER_ENDS:
    case ORDER_SAMPLE: break;
    }
    return with_key(work->type, [&](auto key) { return short_start<decltype(key)>(work, &end, multiprocessors, stream); });
}
