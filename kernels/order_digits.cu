/* Counts the parts of ranges of keys (fold/order.h): of what a pass has kept mostly, which is few.

     each thread, for its elements: the key; the range that has it, by bisection; the key's digit in that range
         counters[digit] += 1, in shared memory, where each counter has copies
     each block: adds the sum of each counter's copies to the caller's counter */
#include "kernels/order.cuh"

constexpr int DIGITS_THREADS = 512, DIGITS_BLOCKS = 3, DIGITS_LOADS = 1, DIGITS_STEPS = 6;
constexpr uint32_t DIGITS_COUNTERS = ORDER_DIGITS_MOST + ORDER_CUTS_MOST + 1;
static_assert(ORDER_CUTS_MOST < 1 << DIGITS_STEPS, "ranges are found in as many steps");

struct digits_pass {
    const void *x;
    uint64_t n;
    struct order_map map;
    uint64_t *counts;
    uint32_t cut_count, digits, half; /* half: the power of two that begins the search for a range */
    int copies;                       /* of counters: 2^copies */
    struct order_end end;
    struct order_cut cuts[ORDER_CUTS_MOST];
};

template <class Key> struct key_cut {
    Key low, width;
    uint32_t first, shift;
};

/* several: ranges; else the one. */
template <class Key, bool several>
__global__ void __launch_bounds__(DIGITS_THREADS, DIGITS_BLOCKS)
    digits_kernel(const __grid_constant__ digits_pass pass, const __grid_constant__ cut_array<Key> cut)
{
    __shared__ uint32_t counters[DIGITS_COUNTERS];
    __shared__ key_cut<Key> cuts[1 << DIGITS_STEPS];
    const uint32_t copies = 1u << pass.copies, copy = threadIdx.x % copies;
    for (uint32_t i = threadIdx.x; i < pass.digits * copies; i += blockDim.x)
        counters[i] = 0;
    for (uint32_t i = threadIdx.x; i < 1 << DIGITS_STEPS; i += blockDim.x) { /* behind the last one no key is */
        const order_cut &own = pass.cuts[i < pass.cut_count ? i : 0];
        cuts[i] = {i < pass.cut_count ? (Key)own.low : (Key)~(Key)0, (Key)(own.last - own.low), own.first + 1, own.shift};
    }
    __syncthreads();
    const key_cut<Key> only = cuts[0];
    auto take = [&](const Key (&x)[elements_of<Key, DIGITS_LOADS>], auto there, uint64_t) {
#pragma unroll
        for (int e = 0; e < elements_of<Key, DIGITS_LOADS>; e++) {
            const Key key = key_of(x[e], pass.map);
            uint32_t c = 0;
            for (uint32_t step = pass.half; several && step > 0; step /= 2)
                c += cuts[c + step].low <= key && c + step < pass.cut_count ? step : 0;
            const key_cut<Key> own = several ? cuts[c] : only;
            const Key at = (Key)(key - own.low);
            if (there(e) && at <= own.width)
                atomicAdd(&counters[(own.first + (uint32_t)(at >> own.shift)) * copies + copy], 1u);
        }
    };
    each_tile<Key, DIGITS_THREADS, DIGITS_LOADS, false>((const Key *)pass.x, cut, take);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < pass.digits; i += blockDim.x) {
        uint64_t sum = 0;
        for (uint32_t of = 0; of < copies; of++)
            sum += counters[i * copies + (of + i) % copies];
        add_count(&pass.counts[ORDER_FIRST_COUNT + i], sum);
    }
    end_pass(pass.end, pass.counts);
}

template <class Key> static cudaError_t digits_start(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    const cut_array<Key> cut(work->x, work->n);
    digits_pass pass = {work->x, work->n, order_map_of(work->type), work->counts, work->cut_count, work->digits, 1, 0, *end, {}};
    if (work->cut_count > ORDER_CUTS_MOST || work->digits > DIGITS_COUNTERS)
        return cudaErrorInvalidValue;
    for (uint32_t i = 0; i < work->cut_count; i++)
        pass.cuts[i] = work->cuts[i];
    while (2 * pass.half <= pass.cut_count)
        pass.half *= 2;
    while ((pass.digits << (pass.copies + 1)) <= DIGITS_COUNTERS && pass.copies < 5)
        pass.copies++;
    const cudaLaunchConfig_t config =
        launch_config(blocks_for(cut.vectors, DIGITS_THREADS, DIGITS_LOADS, (uint64_t)multiprocessors * DIGITS_BLOCKS), DIGITS_THREADS, stream);
    return work->cut_count > 1 ? cudaLaunchKernelEx(&config, digits_kernel<Key, true>, pass, cut) : cudaLaunchKernelEx(&config, digits_kernel<Key, false>, pass, cut);
}

cudaError_t order_digits_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    return with_key(work->type, [&](auto key) { return digits_start<decltype(key)>(work, end, multiprocessors, stream); });
}
