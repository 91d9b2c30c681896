/* Passes of order statistics over elements in device memory: those that look at indices, and which file has the others.

     ties       a ballot counts neighbours, which have one range of indices mostly
     sample     gathers */
#include "kernels/order.cuh"

template <class Key> struct short_pass {
    const Key *x;
    uint64_t n, first;
    struct order_map map;
    struct order_ties ties;
    uint64_t stride;
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

template <class Key> __global__ void __launch_bounds__(ORDER_SHAPE.threads) sample_kernel(const __grid_constant__ short_pass<Key> pass)
{
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < pass.n / pass.stride; i += (uint64_t)gridDim.x * blockDim.x)
        pass.keys[i] = key_of(pass.x[order_sample_place(i, pass.stride)], pass.map);
}

template <class Key> static cudaError_t short_start(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    const short_pass<Key> pass = {(const Key *)work->x, work->n, work->first, order_map_of(work->type), work->ties, work->stride, work->counts,
                                  (Key *)work->keys, *end};
    const uint64_t items = work->kind == ORDER_SAMPLE ? work->n / work->stride : work->n;
    const cudaLaunchConfig_t config =
        launch_config(blocks_for(items, ORDER_SHAPE.threads, 1, (uint64_t)multiprocessors * 8), ORDER_SHAPE.threads, stream);
    return work->kind == ORDER_SAMPLE ? cudaLaunchKernelEx(&config, sample_kernel<Key>, pass) : cudaLaunchKernelEx(&config, ties_kernel<Key>, pass);
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
    case ORDER_TIES:
    case ORDER_SAMPLE: break;
    }
    return with_key(work->type, [&](auto key) { return short_start<decltype(key)>(work, &end, multiprocessors, stream); });
}
