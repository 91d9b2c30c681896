/* Counts the elements of even bins (fold/order.h).

     each thread, for its elements: the bin, by arithmetic; near an edge, by comparing with the edges
         counters[bin] += 1, in shared memory. Counters have 32 bits, and copies; or 16 bits if they are many: such a counter that is half
         full gives that to the caller's
         where a warp's last elements were mostly in one bin, one lane counts those of all
     each block: adds its counters to the caller's */
#include "kernels/order.cuh"

/* A tile has 16,384 elements at most: a counter of 16 bits that is less than 2^15 holds them. */
constexpr int EVEN_THREADS = 1024;
constexpr uint32_t EVEN_HALF = 1 << 15;

struct even_pass {
    const void *x;
    uint64_t n;
    struct order_even even;
    uint64_t *counts;
    uint32_t first, intervals; /* those that are counted */
    int copies;                /* of counters: 2^copies */
};

/* Whether a number is at least the edge; larger. Integers of 64 bits are compared as integers. */
template <class Value> static __device__ __forceinline__ bool at_least(Value x, double edge)
{
    if constexpr (sizeof(Value) < 8 || is_floating_value<Value>)
        return (double)x >= edge;
    else
        return edge < (std::is_signed<Value>::value ? 0x1p63 : 0x1p64) && (edge <= (std::is_signed<Value>::value ? -0x1p63 : 0.0) || x >= (Value)ceil(edge));
}
template <class Value> static __device__ __forceinline__ bool is_above(Value x, double edge)
{
    if constexpr (sizeof(Value) < 8 || is_floating_value<Value>)
        return (double)x > edge;
    else
        return edge < (std::is_signed<Value>::value ? 0x1p63 : 0x1p64) && (edge < (std::is_signed<Value>::value ? -0x1p63 : 0.0) || x > (Value)floor(edge));
}

/* The interval of an element that is beside this edge, or NaN. */
template <class Value> static __device__ __forceinline__ uint32_t exact_interval(Value x, int32_t place, const struct order_even &even)
{
    if (!(x == x))
        return even.bins + 2;
    const uint32_t edge = place < 0 ? 0 : (uint32_t)place < even.bins ? (uint32_t)place : even.bins;
    return edge + (edge == even.bins ? is_above(x, even.high) : at_least(x, (double)edge * even.step + even.low));
}

template <class Element> static __device__ __forceinline__ uint32_t interval_of(typename Element::stored stored, const struct order_even &even)
{
    const typename Element::value x = Element::load(stored);
    int32_t place;
    bool is_behind, is_sure;
    if constexpr (ORDER_IS_SHORT(sizeof stored, Element::is_floating ? 'f' : 'i')) {
        const float number = (float)x, at = fminf(fmaxf(number, even.from_f32), even.to_f32);
        const float rough = fmaf(at, even.scale_f32, even.offset_f32) + ORDER_WHOLE_F32;
        const float rest = fmaf(at, even.scale_f32, even.offset_whole - rough) + fmaf(at, even.scale_rest, even.offset_rest);
        place = (int32_t)(f32_bits(rough) - f32_bits(ORDER_WHOLE_F32));
        is_behind = rest > 0;
        is_sure = fabsf(rest) > ORDER_NEAR_F32 && number == number;
    } else {
        const double number = (double)x, at = number < even.from ? even.from : number > even.to ? even.to : number; /* NaN stays */
        const double exact = fma(at, even.scale, even.offset), rough = exact + ORDER_WHOLE_F64, rest = exact - (rough - ORDER_WHOLE_F64);
        place = (int32_t)(uint32_t)f64_bits(rough);
        is_behind = rest > 0;
        is_sure = fabs(rest) > even.near;
    }
    return is_sure ? (uint32_t)(place + is_behind) : exact_interval(x, place, even);
}

template <class Element, bool half> struct even_shape {
    static constexpr int loads = order_loads(sizeof(typename Element::stored));
    static constexpr int blocks = half || !ORDER_IS_SHORT(sizeof(typename Element::stored), Element::is_floating ? 'f' : 'i') ? 1 : 2;
};

template <bool half> static __device__ __forceinline__ void count_interval(uint32_t *counters, uint32_t interval, uint32_t more, const even_pass &pass)
{
    if (!half) {
        atomicAdd(&counters[(interval << pass.copies) + (threadIdx.x & ((1u << pass.copies) - 1))], more);
        return;
    }
    const uint32_t shift = interval % 2 * 16, old = atomicAdd(&counters[interval / 2], more << shift) >> shift & 0xffff;
    if (old < EVEN_HALF && old + more >= EVEN_HALF) {
        atomicAdd(&counters[interval / 2], 0u - (EVEN_HALF << shift));
        add_count(&pass.counts[ORDER_FIRST_COUNT + pass.first + interval], EVEN_HALF);
    }
}

template <class Element, class Key, bool half>
__global__ void __launch_bounds__(EVEN_THREADS, even_shape<Element, half>::blocks)
    even_kernel(const __grid_constant__ even_pass pass, const __grid_constant__ cut_array<Key> cut)
{
    extern __shared__ unsigned char bytes[];
    uint32_t *const counters = (uint32_t *)bytes;
    const uint32_t copies = 1u << pass.copies;
    bool together = false; /* the last elements of the warp's lanes were in one interval mostly */
    uint32_t last = 0;
    for (uint32_t i = threadIdx.x; i < (half ? (pass.intervals + 1) / 2 : pass.intervals * copies); i += blockDim.x)
        counters[i] = 0;
    __syncthreads();
    auto take = [&](Key bits, uint64_t, uint32_t, bool there) {
        typename Element::stored x;
        memcpy(&x, &bits, sizeof x);
        const uint32_t interval = there ? interval_of<Element>(x, pass.even) - pass.first : ~0u; /* less than none is more than all */
        uint32_t more = 1;
        last = interval;
        if (together) {
            const bool same = interval == __shfl_sync(0xffffffffu, interval, 0);
            const uint32_t lanes = __ballot_sync(0xffffffffu, same);
            if (same)
                more = threadIdx.x % 32 == 0 ? (uint32_t)__popc(lanes) : 0;
        }
        if (interval < pass.intervals && more != 0)
            count_interval<half>(counters, interval, more, pass);
    };
    each_element<Key, EVEN_THREADS, even_shape<Element, half>::loads>((const Key *)pass.x, cut, take, [&](uint64_t) {
        if (half)
            __syncthreads(); /* counters are less than half full */
        together = copies < 32 && __popc(__ballot_sync(0xffffffffu, last == __shfl_sync(0xffffffffu, last, 0))) > 8;
    });
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < pass.intervals; i += blockDim.x) {
        uint64_t sum = half ? counters[i / 2] >> i % 2 * 16 & 0xffff : 0;
        for (uint32_t of = 0; !half && of < copies; of++)
            sum += counters[i * copies + (of + i) % copies];
        add_count(&pass.counts[ORDER_FIRST_COUNT + pass.first + i], sum);
    }
}

template <class Element, bool half> static cudaError_t even_start(const struct order_work *work, int multiprocessors, size_t shared_bytes, void *stream)
{
    typedef typename key_type<sizeof(typename Element::stored)>::type Key;
    constexpr int blocks = even_shape<Element, half>::blocks, loads = even_shape<Element, half>::loads;
    const cut_array<Key> cut(work->x, work->n);
    const uint32_t all = work->even->bins + 3, most = (uint32_t)(shared_bytes / (half ? 2 : 4)), passes = (all + most - 1) / most;
    even_pass pass = {work->x, work->n, *work->even, work->counts, 0, (all + passes - 1) / passes, 0};
    const size_t each = half ? (pass.intervals + 1) / 2 * 4 : pass.intervals * 4;
    while (!half && pass.copies < 5 && (each << (pass.copies + 1)) <= shared_bytes / blocks)
        pass.copies++;
    const size_t bytes = each << pass.copies;
    const uint64_t fit = (uint64_t)multiprocessors * (bytes <= shared_bytes / blocks ? blocks : 1);
    cudaLaunchConfig_t config = launch_config(blocks_for(cut.vectors, EVEN_THREADS, loads, fit), EVEN_THREADS, stream);
    config.dynamicSmemBytes = bytes;
    cudaError_t code = cudaFuncSetAttribute((const void *)even_kernel<Element, Key, half>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    for (; pass.first < all && code == cudaSuccess; pass.first += pass.intervals)
        code = cudaLaunchKernelEx(&config, even_kernel<Element, Key, half>, pass, cut);
    return code;
}

cudaError_t order_even_launch(const struct order_work *work, int multiprocessors, size_t shared_bytes, void *stream)
{
    return with_element(work->type, [&](auto element) {
        typedef decltype(element) Element;
        return (work->even->bins + 3) * sizeof(uint32_t) <= shared_bytes ? even_start<Element, false>(work, multiprocessors, shared_bytes, stream)
                                                                       : even_start<Element, true>(work, multiprocessors, shared_bytes, stream);
    });
}
