/* Counts the elements of even bins (fold/order.h).

     each thread, for its elements, some at a time: the interval, by arithmetic
         if one of them is near an edge, or NaN: of these, by comparing with the edge
         counters[interval] += 1, in shared memory
     each block: adds its counters to the caller's

   Coarse bins have counters of 32 bits, of which each has copies, simple arithmetic, and a table of edges in f32. Fine bins have counters of 16 bits; where a sum of that many bits
   is some way up, the block moves what all have of EVEN_SHARE to the caller's. Where a warp's last elements were mostly in one of these, one lane counts those
   of all. */
#include "kernels/order.cuh"

constexpr uint32_t EVEN_SHARE = 1 << 14;

enum even_way { EVEN_COARSE, EVEN_IN_F64, EVEN_FINE };

struct even_pass {
    const void *x;
    struct order_even even;
    uint64_t *counts;
    uint32_t first, intervals; /* those that are counted */
    uint32_t copies;           /* of counters: a power of two */
    struct order_end end;
};

template <class Element, even_way way> struct even_shape {
    static constexpr bool is_short = ORDER_IS_SHORT(sizeof(typename Element::stored), Element::is_floating ? 'f' : 'i');
    static constexpr int threads = way == EVEN_FINE ? 1024 : 512, blocks = way == EVEN_FINE ? 1 : 2;
    static constexpr int usual = order_loads(sizeof(typename Element::stored)), loads = way == EVEN_FINE ? (usual + 1) / 2 : usual;
    static constexpr int each = elements_of<typename Element::stored, loads>;
    static constexpr int tiles = 32 / each; /* between two looks at what counters of 16 bits have */
    static_assert(way != EVEN_FINE || threads * each * tiles + EVEN_SHARE + 32 < 1 << 16, "counters have 16 bits");
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

/* An element's interval; whether the next edge is nearer than the one before. */
struct even_guess {
    uint32_t interval;
    bool is_high, is_sure;
};
template <class Element, even_way way>
static __device__ __forceinline__ even_guess guess_of(typename Element::stored stored, const struct order_even &even)
{
    const typename Element::value x = Element::load(stored);
    const bool is_number = x == x;
    if constexpr (way == EVEN_COARSE) {
        const float part = bounded((float)x, even.part_scale, even.part_offset), whole = fmaf(part, even.parts, 0x1p23f);
        const float rest = fmaf(part, even.parts, 0x1p23f - whole);
        return {f32_bits(whole) - f32_bits(0x1p23f), rest > 0, fabsf(rest) <= even.part_sure && is_number};
    } else if constexpr (even_shape<Element, way>::is_short) {
        const float at = fminf(fmaxf((float)x, even.from_f32), even.to_f32), rough = fmaf(at, even.scale_f32, even.offset_f32) + ORDER_WHOLE_F32;
        const float more = fmaf(at, even.scale_f32, even.offset_whole - rough) + fmaf(at, even.scale_rest, even.offset_rest);
        const float whole = more + ORDER_WHOLE_F32, rest = more - (whole - ORDER_WHOLE_F32);
        return {f32_bits(rough) + f32_bits(whole) - 2 * f32_bits(ORDER_WHOLE_F32), rest > 0, fabsf(rest) <= 0.5f - ORDER_NEAR_F32 && is_number};
    } else {
        const double number = (double)x, at = number < even.from ? even.from : number > even.to ? even.to : number; /* NaN stays */
        const double exact = fma(at, even.scale, even.offset), rough = exact + ORDER_WHOLE_F64, rest = exact - (rough - ORDER_WHOLE_F64);
        return {(uint32_t)f64_bits(rough) + (rest > 0), rest <= 0, fabs(rest) > even.near};
    }
}

/* The least f32 that is at least the edge, or beyond the last one. */
static __device__ __forceinline__ float edge_in_f32(uint32_t edge, const struct order_even &even)
{
    const double exact = edge == even.bins ? even.high : (double)edge * even.step + even.low;
    const float near = (float)exact;
    return (double)near < exact || (edge == even.bins && (double)near == exact) ? nextafterf(near, INFINITY) : near;
}

/* The interval of an element that is near an edge, or NaN. edges: of coarse bins, in shared memory. */
template <class Element, even_way way>
static __device__ __forceinline__ uint32_t exact_interval(typename Element::stored stored, even_guess guess, const struct order_even &even, const float *edges)
{
    const typename Element::value x = Element::load(stored);
    const uint32_t near = guess.interval - !guess.is_high, edge = (int32_t)near < 0 ? 0 : near < even.bins ? near : even.bins;
    if (!(x == x))
        return even.bins + 2;
    if constexpr (way == EVEN_COARSE)
        return edge + ((float)x >= edges[edge]);
    else
        return edge + (edge == even.bins ? is_above(x, even.high) : at_least(x, (double)edge * even.step + even.low));
}

template <class Element, class Key, even_way way>
__global__ void __launch_bounds__(even_shape<Element, way>::threads, even_shape<Element, way>::blocks)
    even_kernel(const __grid_constant__ even_pass pass, const __grid_constant__ cut_array<Key> cut)
{
    typedef even_shape<Element, way> shape;
    typedef typename Element::stored stored;
    extern __shared__ unsigned char bytes[];
    __shared__ int is_full[3]; /* for rounds in turn: some counter of 16 bits is some way up */
    uint32_t *const counters = (uint32_t *)bytes;
    constexpr bool fine = way == EVEN_FINE;
    const uint32_t copies = pass.copies, intervals = pass.intervals, all = fine ? intervals / 2 + 1 : (intervals + 1) * copies;
    const shared_address at = address_of(counters + (threadIdx.x & (copies - 1)));
    bool together = false; /* the last elements of the warp's lanes were in one interval mostly */
    uint32_t seen = 0;     /* in counters of 16 bits */
    int tiles = 0, round = 0;
    float *const edges = (float *)(counters + all);
    for (uint32_t i = threadIdx.x; i < all; i += blockDim.x)
        counters[i] = 0;
    for (uint32_t i = threadIdx.x; way == EVEN_COARSE && i <= pass.even.bins; i += blockDim.x)
        edges[i] = edge_in_f32(i, pass.even);
    if (threadIdx.x < 3)
        is_full[threadIdx.x] = 0;
    __syncthreads();
    auto count = [&](uint32_t interval, uint32_t more) {
        if (way != EVEN_COARSE) {
            interval -= pass.first; /* less than the first is more than all: behind all is a counter that nobody reads */
            interval = interval < intervals ? interval : intervals;
        }
        if constexpr (fine)
            seen |= fetch_add_shared(at + (interval * 2 & ~3u), more * ((interval & 1) * 0xffff + 1));
        else
            add_shared(at + interval * copies * (uint32_t)sizeof *counters, more);
    };
    auto look = [&]() {
        int *const full = &is_full[round % 3];
        if ((seen & (EVEN_SHARE | EVEN_SHARE << 16)) != 0)
            *(volatile int *)full = 1;
        __syncthreads();
        if (threadIdx.x == 0)
            is_full[(round + 2) % 3] = 0; /* which all have read, and none sets before the next barrier */
        for (uint32_t i = threadIdx.x; *(volatile int *)full != 0 && i < all; i += blockDim.x) {
            const uint32_t word = counters[i], low = word & 0xc000, high = word >> 16 & 0xc000;
            counters[i] = word - (high << 16 | low);
            add_count(&pass.counts[ORDER_FIRST_COUNT + pass.first + 2 * i], 2 * i < intervals ? low : 0);
            add_count(&pass.counts[ORDER_FIRST_COUNT + pass.first + 2 * i + 1], 2 * i + 1 < intervals ? high : 0);
        }
        if (*(volatile int *)full != 0)
            __syncthreads();
        round++;
        seen = 0;
    };
    auto take = [&](const Key (&keys)[shape::each], auto there, uint64_t) {
        constexpr int some = shape::each < 4 ? shape::each : 4;
        stored x[shape::each];
        uint32_t intervals_of[some];
        memcpy(x, keys, sizeof x);
#pragma unroll
        for (int first = 0; first < shape::each; first += some) {
            bool all_sure = true;
#pragma unroll
            for (int i = 0; i < some; i++) {
                const even_guess guess = guess_of<Element, way>(x[first + i], pass.even);
                intervals_of[i] = guess.interval;
                all_sure = all_sure && guess.is_sure;
            }
#pragma unroll
            for (int i = 0; i < some && !all_sure; i++) {
                const even_guess guess = guess_of<Element, way>(x[first + i], pass.even);
                if (!guess.is_sure)
                    intervals_of[i] = exact_interval<Element, way>(x[first + i], guess, pass.even, edges);
            }
            if (!together) {
#pragma unroll
                for (int i = 0; i < some; i++)
                    if (there(first + i))
                        count(intervals_of[i], 1);
            } else if constexpr (way != EVEN_COARSE) {
#pragma unroll
                for (int i = 0; i < some; i++) {
                    const uint32_t interval = there(first + i) ? intervals_of[i] : ~0u, of_first = __shfl_sync(0xffffffffu, interval, 0);
                    const uint32_t lanes = __ballot_sync(0xffffffffu, interval == of_first);
                    if (there(first + i) && (threadIdx.x % 32 == 0 || interval != of_first))
                        count(interval, threadIdx.x % 32 == 0 ? (uint32_t)__popc(lanes) : 1);
                }
            }
        }
        const uint32_t last = intervals_of[some - 1];
        together = way != EVEN_COARSE && copies == 1 && __popc(__ballot_sync(0xffffffffu, last == __shfl_sync(0xffffffffu, last, 0))) > 8;
        if (fine && ++tiles % shape::tiles == 0)
            look();
    };
    each_tile<Key, shape::threads, shape::loads, fine>((const Key *)pass.x, cut, take);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < intervals; i += blockDim.x) {
        uint32_t sum = fine ? counters[i / 2] >> i % 2 * 16 & 0xffff : 0;
        for (uint32_t of = 0; !fine && of < copies; of++)
            sum += counters[i * copies + (of + i) % copies];
        add_count(&pass.counts[ORDER_FIRST_COUNT + pass.first + i], sum);
    }
    end_pass(pass.end, pass.counts);
}

template <class Element, even_way way>
static cudaError_t even_start(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream)
{
    typedef even_shape<Element, way> shape;
    typedef typename key_type<sizeof(typename Element::stored)>::type Key;
    constexpr bool fine = way == EVEN_FINE;
    const cut_array<Key> cut(work->x, work->n);
    const uint32_t all = work->even->bins + 3, most = (uint32_t)(shared_bytes / (fine ? 2 : 4)) - 2, passes = (all + most - 1) / most;
    even_pass pass = {work->x, *work->even, work->counts, 0, (all + passes - 1) / passes, 1, {}};
    const size_t each = fine ? (pass.intervals / 2 + 1) * 4 : (pass.intervals + 1) * 4;
    const size_t edges = way == EVEN_COARSE ? (work->even->bins + 1) * sizeof(float) : 0;
    while (!fine && pass.copies < 32 && each * pass.copies * 2 + edges <= shared_bytes / shape::blocks)
        pass.copies *= 2;
    const size_t bytes = each * pass.copies + edges;
    const uint64_t fit = (uint64_t)multiprocessors * (bytes <= shared_bytes / shape::blocks ? shape::blocks : 1);
    cudaLaunchConfig_t config = launch_config(blocks_for(cut.vectors, shape::threads, shape::loads, fit), shape::threads, stream);
    config.dynamicSmemBytes = bytes;
    cudaError_t code = cudaFuncSetAttribute((const void *)even_kernel<Element, Key, way>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    for (; pass.first < all && code == cudaSuccess; pass.first += pass.intervals) {
        if (pass.first + pass.intervals >= all) /* the last one */
            pass.end = *end;
        code = cudaLaunchKernelEx(&config, even_kernel<Element, Key, way>, pass, cut);
    }
    return code;
}

cudaError_t order_even_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream)
{
    return with_element(work->type, [&](auto element) {
        typedef decltype(element) Element;
        constexpr even_way coarse = even_shape<Element, EVEN_COARSE>::is_short ? EVEN_COARSE : EVEN_IN_F64;
        const bool fits = (work->even->bins + 4) * sizeof(uint32_t) <= shared_bytes && (coarse == EVEN_IN_F64 || work->even->part_sure > 0);
        return fits ? even_start<Element, coarse>(work, end, multiprocessors, shared_bytes, stream)
                    : even_start<Element, EVEN_FINE>(work, end, multiprocessors, shared_bytes, stream);
    });
}
