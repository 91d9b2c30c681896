/* Passes of order statistics over elements in device memory: those that look at indices, and which file has the others.

     ties       a ballot counts neighbours, which have one range of indices mostly
     sample     gathers
     top        each block gathers a group of a sample, of which it writes the largest element; the last block finds among these the one of a given rank
     chain      the sample, the search in it, brackets, and the search in what they have kept: kernels that follow one another */
#include "kernels/order.cuh"

constexpr int SAMPLE_LOADS = 4; /* elements of a sample that a thread loads together, as they lie apart */

template <class Key> struct short_pass {
    const Key *x;
    uint64_t n, first;
    struct order_map map;
    struct order_ties ties;
    uint64_t stride;
    uint64_t *counts;
    Key *keys;
    bool smallest;
    struct order_target target;
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

/* The key of element i of a sample; 0 behind the last one. */
template <class Key> static __device__ __forceinline__ Key sampled(const short_pass<Key> &pass, uint64_t i)
{
    return i < pass.n / pass.stride ? key_of(pass.x[order_sample_place(i, pass.stride)], pass.map) : (Key)0;
}

template <class Key> __global__ void __launch_bounds__(ORDER_SHAPE.threads) sample_kernel(const __grid_constant__ short_pass<Key> pass)
{
    const uint64_t found = pass.n / pass.stride, step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; first < found; first += SAMPLE_LOADS * step) {
        Key keys[SAMPLE_LOADS];
#pragma unroll
        for (int s = 0; s < SAMPLE_LOADS; s++)
            keys[s] = sampled(pass, first + s * step);
#pragma unroll
        for (int s = 0; s < SAMPLE_LOADS; s++)
            if (first + s * step < found)
                pass.keys[first + s * step] = keys[s];
    }
}

/* Neighbours are in different groups, so that the largest of a sorted array are, too; and a group has no period. */
template <class Key> __global__ void __launch_bounds__(ORDER_CHAIN_GROUPS) top_kernel(const __grid_constant__ short_pass<Key> pass)
{
    __shared__ Key largest[ORDER_CHAIN_GROUPS];
    const Key flip = pass.smallest ? (Key)~(Key)0 : (Key)0;
    const uint64_t found = pass.n / pass.stride;
    auto place_of = [](uint64_t row) { return row * ORDER_CHAIN_GROUPS + (blockIdx.x + row) % ORDER_CHAIN_GROUPS; };
    uint64_t own = 0;
    for (uint64_t first = threadIdx.x; first * ORDER_CHAIN_GROUPS < found; first += SAMPLE_LOADS * blockDim.x) {
        Key keys[SAMPLE_LOADS];
#pragma unroll
        for (int s = 0; s < SAMPLE_LOADS; s++)
            keys[s] = sampled(pass, place_of(first + s * blockDim.x));
#pragma unroll
        for (int s = 0; s < SAMPLE_LOADS; s++) {
            const Key key = place_of(first + s * blockDim.x) < found ? (Key)(keys[s] ^ flip) : (Key)0;
            own = key > own ? key : own;
        }
    }
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        const uint64_t other = __shfl_xor_sync(0xffffffffu, own, lanes);
        own = other > own ? other : own;
    }
    if (threadIdx.x % 32 == 0)
        largest[threadIdx.x / 32] = (Key)own;
    __syncthreads();
    for (uint32_t warp = 0; warp < blockDim.x / 32 && threadIdx.x == 0; warp++)
        own = largest[warp] > own ? largest[warp] : own;
    if (threadIdx.x == 0)
        pass.keys[blockIdx.x] = (Key)own;
    end_pass(pass.end, pass.counts, [&]() {
        const Key key = count_now(&pass.keys[threadIdx.x]);
        uint32_t rank = 0, at_least = 0;
        largest[threadIdx.x] = key;
        __syncthreads();
        for (uint32_t i = 0; i < ORDER_CHAIN_GROUPS; i++) {
            at_least += largest[i] >= key;
            rank += largest[i] > key || (largest[i] == key && i < threadIdx.x);
        }
        if (rank == pass.target.rank) {
            struct order_target target = pass.target;
            target.low = target.last = (Key)(key ^ flip);
            target.count = at_least;
            *(struct order_target *)pass.end.answer = target;
            pass.counts[pass.end.count - 1] = 0;
        }
    });
}

template <class Key> static cudaError_t short_start(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    const bool is_top = work->kind == ORDER_CHAIN;
    const short_pass<Key> pass = {(const Key *)work->x, work->n, work->first, order_map_of(work->type), work->ties, work->stride, work->counts,
                                  (Key *)work->keys, work->smallest, is_top ? *work->targets : order_target(), *end};
    const cudaLaunchConfig_t groups = launch_config(ORDER_CHAIN_GROUPS, ORDER_CHAIN_GROUPS, stream);
    if (is_top)
        return cudaLaunchKernelEx(&groups, top_kernel<Key>, pass);
    const uint64_t items = work->kind == ORDER_SAMPLE ? work->n / work->stride : work->n;
    const cudaLaunchConfig_t config =
        launch_config(blocks_for(items, ORDER_SHAPE.threads, work->kind == ORDER_SAMPLE ? SAMPLE_LOADS : 1, (uint64_t)multiprocessors * 8),
                      ORDER_SHAPE.threads, stream);
    return work->kind == ORDER_SAMPLE ? cudaLaunchKernelEx(&config, sample_kernel<Key>, pass) : cudaLaunchKernelEx(&config, ties_kernel<Key>, pass);
}

static cudaError_t chain_start(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    struct order_chain *const chain = (struct order_chain *)work->counts;
    const bool is_top = work->wanted_count == 0;
    const struct order_end inner = {(uint64_t *)chain->targets, is_top ? end->count : (uint32_t)ORDER_SEARCH_COUNTS, NULL, 0}, none = {};
    const struct order_end last = {end->answer, ORDER_SEARCH_COUNTS, end->mailbox, end->launch_id};
    struct order_work search = {}, part = *work;
    search.type = order_key_type(work->type);
    search.x = work->keys;
    search.n = work->n / work->stride;
    search.targets = work->targets;
    search.target_count = work->target_count;
    search.rounds = work->rounds;
    search.counts = work->counts + sizeof *chain / sizeof *work->counts;
    part.kind = is_top ? ORDER_CHAIN : ORDER_SAMPLE;
    cudaError_t code = with_key(work->type, [&](auto key) { return short_start<decltype(key)>(&part, &inner, multiprocessors, stream); });
    if (code == cudaSuccess && !is_top)
        code = order_search_launch(&search, &inner, multiprocessors, stream);
    part.chain = search.chain = chain;
    part.chain_elements = search.n;
    if (code == cudaSuccess)
        code = order_brackets_launch(&part, is_top ? end : &none, multiprocessors, stream);
    search.n = work->capacity;
    search.targets = work->wanted;
    search.target_count = work->wanted_count;
    search.rounds = UINT32_MAX;
    search.chain_elements = work->n;
    search.chain_last = order_last(work->type);
    return is_top || code != cudaSuccess ? code : order_search_launch(&search, &last, multiprocessors, stream);
}

int order_launch(const struct order_work *work, uint64_t *answer, const struct fold_space *space, size_t shared_bytes, void *stream)
{
    const struct order_end end = {answer, (uint32_t)(work->answered / sizeof *answer), space->mailbox, space->launch_id};
    const int multiprocessors = space->multiprocessors;
    switch (work->kind) {
    case ORDER_BRACKETS: return order_brackets_launch(work, &end, multiprocessors, stream);
    case ORDER_TABLE: return order_table_launch(work, &end, multiprocessors, shared_bytes, stream);
    case ORDER_DIGITS: return order_digits_launch(work, &end, multiprocessors, stream);
    case ORDER_SEARCH: return order_search_launch(work, &end, multiprocessors, stream);
    case ORDER_EVEN: return order_even_launch(work, &end, multiprocessors, shared_bytes, stream);
    case ORDER_CHAIN: return chain_start(work, &end, multiprocessors, stream);
    case ORDER_TIES:
    case ORDER_SAMPLE: break;
    }
    return with_key(work->type, [&](auto key) { return short_start<decltype(key)>(work, &end, multiprocessors, stream); });
}
