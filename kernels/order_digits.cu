/* Counts the parts of ranges of keys, which the host has cut, once: of what a pass has kept mostly. */
#include "kernels/order_digits.cuh"

constexpr int DIGITS_THREADS = 512, DIGITS_BLOCKS = 3, DIGITS_LOADS = 1;

struct digits_pass {
    const void *x;
    struct order_map map;
    uint64_t *counts;
    struct digits_shape shape;
    struct order_end end;
    struct order_cut cuts[ORDER_CUTS_MOST];
};

/* steps: by which ranges are found; 0: there is one. */
template <class Key, int steps>
__global__ void __launch_bounds__(DIGITS_THREADS, DIGITS_BLOCKS)
    digits_kernel(const __grid_constant__ digits_pass pass, const __grid_constant__ cut_array<Key> array)
{
    __shared__ uint32_t counters[DIGITS_COUNTERS];
    __shared__ key_cuts<Key> cuts;
    cuts.take(pass.cuts, pass.shape.cuts);
    constexpr bool several = steps > 0;
    const uint32_t last = cuts.last;
    const Key only_low = cuts.lows[0], only_width = cuts.widths[0];
    const uint32_t only_first = cuts.firsts[0], only_shift = cuts.shifts[0];
    auto counter_of = [&](Key x) {
        const Key key = key_of(x, pass.map);
        uint32_t c = 0;
        if constexpr (several)
            c = cuts.template range_of<steps>(key, last);
        const Key at = (Key)(key - (several ? cuts.lows[c] : only_low));
        const bool is_inside = at <= (several ? cuts.widths[c] : only_width);
        return is_inside ? (several ? cuts.firsts[c] : only_first) + 1 + (uint32_t)(at >> (several ? cuts.shifts[c] : only_shift)) : NO_COUNTER;
    };
    count_digits<Key>([&](auto take) { each_tile<Key, DIGITS_THREADS, DIGITS_LOADS, false>((const Key *)pass.x, array, take); }, counter_of, pass.shape, counters,
                      &pass.counts[ORDER_FIRST_COUNT]);
    end_pass(pass.end, pass.counts);
}

template <class Key> static cudaError_t digits_start(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    const cut_array<Key> array(work->x, work->n);
    if (work->cut_count > ORDER_CUTS_MOST || work->digits > DIGITS_COUNTERS)
        return cudaErrorInvalidValue;
    digits_pass pass = {work->x, order_map_of(work->type), work->counts, shape_of(work->cut_count, work->digits), *end, {}};
    for (uint32_t i = 0; i < work->cut_count; i++)
        pass.cuts[i] = work->cuts[i];
    const cudaLaunchConfig_t config =
        launch_config(blocks_for(array.vectors, DIGITS_THREADS, DIGITS_LOADS, (uint64_t)multiprocessors * DIGITS_BLOCKS), DIGITS_THREADS, stream);
    const uint32_t cuts = work->cut_count;
    return cudaLaunchKernelEx(&config, cuts == 1 ? digits_kernel<Key, 0> : cuts <= 1 << FEW_STEPS ? digits_kernel<Key, FEW_STEPS> : digits_kernel<Key, DIGITS_STEPS>, pass, array);
}

cudaError_t order_digits_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    return with_key(work->type, [&](auto key) { return digits_start<decltype(key)>(work, end, multiprocessors, stream); });
}
