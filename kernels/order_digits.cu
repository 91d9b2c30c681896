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
    uint32_t cut_count, digits;
    int copies; /* of counters: 2^copies */
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
    auto take = [&](Key bits, uint64_t, uint32_t, bool there) {
        const Key key = key_of(bits, pass.map);
        uint32_t c = 0;
#pragma unroll
        for (int step = 1 << (DIGITS_STEPS - 1); several && step > 0; step /= 2)
            c += cuts[c + step].low <= key && c + step < pass.cut_count ? step : 0;
        const key_cut<Key> own = several ? cuts[c] : only;
        const Key at = (Key)(key - own.low);
        if (there && at <= own.width)
            atomicAdd(&counters[(own.first + (uint32_t)(at >> own.shift)) * copies + copy], 1u);
    };
    each_element<Key, DIGITS_THREADS, DIGITS_LOADS>((const Key *)pass.x, cut, take, [](uint64_t) {});
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < pass.digits; i += blockDim.x) {
        uint64_t sum = 0;
        for (uint32_t of = 0; of < copies; of++)
            sum += counters[i * copies + (of + i) % copies];
        add_count(&pass.counts[ORDER_FIRST_COUNT + i], sum);
    }
}

template <class Key> static cudaError_t digits_start(const struct order_work *work, int multiprocessors, void *stream)
{
    const cut_array<Key> cut(work->x, work->n);
    digits_pass pass = {work->x, work->n, order_map_of(work->type), work->counts, work->cut_count, work->digits, 0, {}};
    if (work->cut_count > ORDER_CUTS_MOST || work->digits > DIGITS_COUNTERS)
        return cudaErrorInvalidValue;
    for (uint32_t i = 0; i < work->cut_count; i++)
        pass.cuts[i] = work->cuts[i];
    while ((pass.digits << (pass.copies + 1)) <= DIGITS_COUNTERS && pass.copies < 5)
        pass.copies++;
    const cudaLaunchConfig_t config =
        launch_config(blocks_for(cut.vectors, DIGITS_THREADS, DIGITS_LOADS, (uint64_t)multiprocessors * DIGITS_BLOCKS), DIGITS_THREADS, stream);
    return work->cut_count > 1 ? cudaLaunchKernelEx(&config, digits_kernel<Key, true>, pass, cut) : cudaLaunchKernelEx(&config, digits_kernel<Key, false>, pass, cut);
}

cudaError_t order_digits_launch(const struct order_work *work, int multiprocessors, void *stream)
{
    switch (allfold_type_bytes(work->type)) {
#define CASE(bytes, bits, type, signed_type) \
    case bytes: return digits_start<type>(work, multiprocessors, stream);
        ORDER_WIDTHS(CASE)
#undef CASE
    default: return cudaErrorInvalidValue;
    }
}
