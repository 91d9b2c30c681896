/* Counts the elements of even bins (fold/order.h).

     each thread, for its elements: the interval, by arithmetic; if that is sure, counters[interval] += 1, in shared memory
         elements that are near an edge, and NaN, go to the lane's queue
     where a queue is nearly full: the lanes of the warp compare what is in theirs with edges
     if many of a warp's last elements were near edges: no queue, elements are compared at once
     each block: adds its counters to the caller's, which are short if there are so few elements that each holds all

   Coarse bins have counters of 32 bits, of which each has copies, and, for types of which f32 holds every element, a table of edges in f32. Fine bins have counters
   of 16 bits, two in a word. A lane whose addition finds EVEN_SHARE in one moves that to the caller's, before it counts more than `some` further elements. So do all
   lanes, so that a counter stays below EVEN_SHARE + 1024 * 8 + 32 * 128. Where a warp's last elements were mostly in one of these, one lane counts those of all. If
   the counters do not fit, each pass has some of the bins. */
#include "kernels/order.cuh"

constexpr uint32_t EVEN_SHARE = 1 << 15, EVEN_SHARES = EVEN_SHARE << 16 | EVEN_SHARE; /* the latter: of both counters in a word */
constexpr uint32_t EVEN_FIRST = 0x4b000000; /* the first interval: the bits of 2^23 in f32 */

struct even_pass {
    const void *x;
    struct order_even even;
    uint64_t *counts;
    bool is_short;    /* they are uint32_t */
    uint32_t copies;  /* of counters: a power of two */
    uint32_t waiting; /* elements that a lane's queue has room for, beside some that are looked at together */
    struct order_end end;
};

/* Whether a number is above the edge, or at least that. Integers of 64 bits are compared as integers. */
template <bool above, class Value> static __device__ __forceinline__ bool is_behind(Value x, double edge)
{
    constexpr double low = std::is_signed<Value>::value ? -0x1p63 : 0.0, end = std::is_signed<Value>::value ? 0x1p63 : 0x1p64;
    if constexpr (sizeof(Value) < 8 || is_floating_value<Value>)
        return above ? (double)x > edge : (double)x >= edge;
    else
        return edge < end && (above ? edge < low || x > (Value)floor(edge) : edge <= low || x >= (Value)ceil(edge));
}

/* Adds to the counter of 16 bits of an interval; returns what it and its neighbour were. In fewer instructions than compilers make of the second form. */
static __device__ __forceinline__ uint32_t fetch_add_half(shared_address first, uint32_t interval, uint32_t more)
{
#ifdef __NVCC__
    shared_address at;
    asm("mad.lo.u32 %0, %1, 4, %2;" : "=r"(at) : "r"(interval >> 1), "r"(first - EVEN_FIRST * 2));
    return fetch_add_shared(at, __funnelshift_l(0, more, interval << 4));
#else
    return fetch_add_shared(first + (interval - EVEN_FIRST) / 2 * 4, more << interval % 2 * 16);
#endif
}

/* The edge of this number among those of the pass. */
static __device__ __forceinline__ double even_edge(uint32_t edge, const struct order_even &even)
{
    return even.first + edge == even.bins ? even.high : (double)(even.first + edge) * even.step + even.low;
}
/* The least f32 that is at least the edge, or beyond the last one. */
static __device__ __forceinline__ float edge_in_f32(uint32_t edge, const struct order_even &even)
{
    const double exact = even_edge(edge, even);
    const float near = (float)exact;
    return (double)near < exact || (edge == even.bins && (double)near == exact) ? nextafterf(near, INFINITY) : near;
}

/* The interval that arithmetic tells, as the bits of its sum with 2^23, and how far the number is from its middle. It is right if the element is sure: a number,
   and not too near an edge. */
struct even_guess {
    uint32_t interval;
    float rest;
    bool is_sure;
};

/* A thread's part of a pass: the block's counters, which of fine bins have 16 bits, and edges; the thread's queue, and what its last elements were like. */
template <class Element, bool fine> struct even_thread {
    typedef typename Element::value Value;
    typedef typename key_type<sizeof(typename Element::stored)>::type Key;
    static constexpr bool is_short = ORDER_IS_SHORT(sizeof(Key), Element::is_floating ? 'f' : 'i'), has_edges = !fine && is_short;
    static constexpr int threads = fine ? 1024 : 512, blocks = fine ? 1 : 2;
    static constexpr int usual = order_loads(sizeof(Key)), loads = fine ? (usual + 1) / 2 : usual, each = elements_of<Key, loads>;
    static constexpr int some = sizeof(Key) == 8 ? 4 : 8, tiles = 32 / each; /* elements between two looks at the queue; tiles, at what warps' elements are like */
    static constexpr uint32_t row = threads * sizeof(Key), most_waiting = fine ? 15 : 8;
    static_assert(each % some == 0, "a tile is looked at some by some");
    static_assert(!fine || EVEN_SHARE + threads * some + threads / 32 * 128 < 1 << 16, "counters have 16 bits");

    const even_pass &pass;
    unsigned char *const bytes; /* shared memory: the threads' queues, the counters, the edges */
    const uint32_t pairs = (pass.even.count + 4) / 2, all = fine ? pairs : (2 * pairs + 1) * pass.copies; /* of intervals; counters */
    const uint32_t nan = EVEN_FIRST + pass.even.count + 2, nobody = EVEN_FIRST + 2 * pairs;               /* intervals; the latter: a coarse counter that is not read */
    /* What lies before or behind the bins of this pass, others count. */
    const uint32_t begin = pass.even.first > 0, end = pass.even.count + (pass.even.first + pass.even.count == pass.even.bins ? 3 : 1);
    uint32_t *const counters = (uint32_t *)(bytes + (some + pass.waiting) * row);
    float *const edges = (float *)(counters + all);
    const Key *const queue = (const Key *)bytes + threadIdx.x; /* of the thread's elements that are not sure */
    const shared_address start = address_of(queue), first = address_of(counters + (threadIdx.x & (pass.copies - 1)));
    const uint32_t step = pass.copies * (uint32_t)sizeof *counters; /* from an interval's counter to the next one's */
    shared_address to = start;              /* where the queue ends */
    bool together = false, crowded = false; /* the last elements of the warp's lanes were in one interval mostly; many were not sure */
    uint32_t nans = 0, last = 0;            /* how many; the interval of the last element, */
    bool unsure = false;                    /* and whether it was not sure */
    int taken = 0;                          /* tiles */

    __device__ __forceinline__ void begin_pass() const
    {
        for (uint32_t i = threadIdx.x; i < all; i += blockDim.x)
            counters[i] = 0;
        for (uint32_t i = threadIdx.x; has_edges && i <= pass.even.bins; i += blockDim.x)
            edges[i] = edge_in_f32(i, pass.even);
    }

    __device__ __forceinline__ even_guess guess_of(Value x) const
    {
        const float part = bounded((float)x, pass.even.scale, pass.even.offset), whole = fmaf(part, pass.even.parts, 0x1p23f);
        const float rest = fmaf(part, pass.even.parts, 0x1p23f - whole);
        return {f32_bits(whole), rest, fabsf(rest) <= (is_short ? pass.even.sure : pass.even.sure_rounded) && x == x};
    }
    /* By comparison with the edge that is nearest. */
    __device__ __forceinline__ uint32_t exact_interval(Value x, even_guess guess) const
    {
        const int32_t near = (int32_t)(guess.interval - EVEN_FIRST) - (guess.rest <= 0);
        const uint32_t edge = near < 0 ? 0 : (uint32_t)near < pass.even.count ? (uint32_t)near : pass.even.count;
        const bool is_last = pass.even.first + edge == pass.even.bins;
        const bool behind = has_edges ? (float)x >= edges[edge] : is_last ? is_behind<true>(x, pass.even.high) : is_behind<false>(x, even_edge(edge, pass.even));
        return EVEN_FIRST + (x == x ? edge + behind : pass.even.count + 2);
    }

    /* Adds to the caller's counters of two neighbours, of which the first has an even number. */
    __device__ __forceinline__ void add(uint32_t i, uint32_t count, uint32_t next) const
    {
        const uint32_t place = ORDER_FIRST_COUNT + pass.even.first + i;
        count = i >= begin && i < end ? count : 0;
        next = i + 1 < end ? next : 0;
        if (pass.is_short) {
            add_count(&pass.counts[place / 2], (uint64_t)next << 32 | count);
        } else {
            add_count(&pass.counts[place], count);
            add_count(&pass.counts[place + 1], next);
        }
    }
    __device__ __forceinline__ void move_shares(uint32_t interval) const
    {
        const uint32_t pair = (interval - EVEN_FIRST) / 2, shares = atomicAnd(&counters[pair], ~EVEN_SHARES) & EVEN_SHARES;
        add(2 * pair, shares & 0xffff, shares >> 16);
    }
    __device__ __forceinline__ void count(uint32_t interval, uint32_t more) const
    {
        if constexpr (!fine)
            add_shared(first + (interval - EVEN_FIRST) * step, more);
        else if ((fetch_add_half(first, interval, more) & EVEN_SHARES) != 0)
            move_shares(interval);
    }

    /* This and what calls it: by all lanes of a warp. */
    __device__ __forceinline__ void empty_queue()
    {
        while (__ballot_sync(0xffffffffu, to != start) != 0) {
            if (to == start)
                continue;
            to -= row;
            const Value x = element_value<Element>(queue[(to - start) / sizeof(Key)]);
            const uint32_t interval = exact_interval(x, guess_of(x));
            nans += fine && interval == nan;
            if (!fine || interval != nan)
                count(interval, 1);
        }
    }

    template <class There> __device__ __forceinline__ void take_sure(const Key (&keys)[some], There there)
    {
        uint32_t seen = 0;      /* in counters of 16 bits */
        shared_address at = to; /* of element i, i rows before: it goes back where an element is not stored */
#pragma unroll
        for (int group = 0; group < some; group += 4) {
            bool all_sure = true, is_sure[4];
            uint32_t intervals[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const even_guess guess = guess_of(element_value<Element>(keys[group + i]));
                intervals[i] = last = guess.interval;
                is_sure[i] = guess.is_sure;
                all_sure = all_sure && guess.is_sure;
            }
            unsure = !is_sure[3];
            at -= !fine && all_sure ? 4 * row : 0;
            if (fine || !all_sure) { /* of coarse bins nearly all are */
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const bool is_stored = there(group + i) && !is_sure[i];
                    if (is_stored)
                        store_shared(at + (group + i) * row, keys[group + i]);
                    at -= is_stored ? 0 : row;
                    if (!fine && !is_sure[i])
                        intervals[i] = nobody;
                }
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if constexpr (fine)
                    seen |= fetch_add_half(first, intervals[i], there(group + i) && is_sure[i]); /* 0, too: a branch would wait for what the addition returns */
                else if (there(group + i))
                    count(intervals[i], 1);
            }
        }
#pragma unroll 1
        for (int i = 0; i < some && fine && (seen & EVEN_SHARES) != 0; i++)
            move_shares(guess_of(element_value<Element>(pick(keys, i))).interval);
        to = at + some * row;
        if (__ballot_sync(0xffffffffu, to - start > pass.waiting * row) != 0)
            empty_queue();
    }

    /* Without the queue. If lanes are together, one counts what is in the interval of its own element. */
    template <class There> __device__ __forceinline__ void take_apart(const Key *keys, There there)
    {
        uint32_t intervals[4];
        bool is_one = true;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const Value x = element_value<Element>(keys[i]);
            const even_guess guess = guess_of(x);
            const uint32_t interval = guess.is_sure ? guess.interval : exact_interval(x, guess);
            intervals[i] = last = there(i) ? interval : nobody;
            nans += fine && intervals[i] == nan;
            is_one = is_one && intervals[i] == intervals[0];
            unsure = !guess.is_sure;
        }
        const uint32_t of_lane = __shfl_sync(0xffffffffu, last, 0);
        if (together && __ballot_sync(0xffffffffu, !is_one || last != of_lane) == 0) {
            if (threadIdx.x % 32 == 0 && last < nan)
                count(last, 32 * 4);
            return;
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint32_t more = 1;
            if (together) {
                const uint32_t of_first = __shfl_sync(0xffffffffu, intervals[i], 0), lanes = __ballot_sync(0xffffffffu, intervals[i] == of_first);
                more = threadIdx.x % 32 == 0 ? (uint32_t)__popc(lanes) : intervals[i] != of_first;
            }
            if (!fine || (intervals[i] < nan && more != 0))
                count(intervals[i], more);
        }
    }

    template <class There> __device__ __forceinline__ void take(const Key (&keys)[each], There there)
    {
        const bool apart = together || crowded;
#pragma unroll
        for (int i = 0; i < each; i += 4) {
            auto there_of = [&](int e) { return there(i + e); };
            if (apart)
                take_apart(keys + i, there_of);
            else if (i % some == 0)
                take_sure(*(const Key(*)[some])(keys + i), there_of);
        }
        if (++taken % tiles != 0)
            return;
        crowded = __popc(__ballot_sync(0xffffffffu, unsure)) > 8;
        together = fine && __popc(__ballot_sync(0xffffffffu, last == __shfl_sync(0xffffffffu, last, 0))) > 8;
    }

    /* The block's counters, to the caller's. Blocks begin at different ones, so that they do not wait for each other. */
    __device__ __forceinline__ void add_all(const uint32_t &block_nans) const
    {
        const uint32_t own = (uint32_t)((uint64_t)pairs * blockIdx.x / gridDim.x), copies = pass.copies;
        for (uint32_t i = threadIdx.x; i < pairs; i += blockDim.x) {
            const uint32_t pair = i + own < pairs ? i + own : i + own - pairs;
            uint32_t sums[2];
            for (uint32_t of = 0; of < 2; of++) {
                const uint32_t interval = 2 * pair + of;
                sums[of] = (EVEN_FIRST + interval == nan ? block_nans : 0) + (fine ? counters[pair] >> of * 16 & 0xffff : 0);
                for (uint32_t copy = 0; !fine && copy < copies; copy++)
                    sums[of] += counters[interval * copies + ((copy + interval) & (copies - 1))];
            }
            add(2 * pair, sums[0], sums[1]);
        }
    }
};

template <class Element, bool fine>
__global__ void __launch_bounds__(even_thread<Element, fine>::threads, even_thread<Element, fine>::blocks)
    even_kernel(const __grid_constant__ even_pass pass, const __grid_constant__ cut_array<typename even_thread<Element, fine>::Key> cut)
{
    typedef typename even_thread<Element, fine>::Key Key;
    extern __shared__ unsigned char bytes[];
    __shared__ uint32_t block_nans;
    even_thread<Element, fine> thread = {pass, bytes};
    thread.begin_pass();
    if (threadIdx.x == 0)
        block_nans = 0;
    __syncthreads();
    each_tile<Key, thread.threads, thread.loads, fine>((const Key *)pass.x, cut, [&](const auto &keys, auto there, uint64_t) { thread.take(keys, there); });
    thread.empty_queue();
    if (thread.nans > 0)
        atomicAdd(&block_nans, thread.nans);
    __syncthreads();
    thread.add_all(block_nans);
    end_pass(pass.end, pass.counts);
}

template <class Element, bool fine>
static cudaError_t even_start(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream)
{
    typedef even_thread<Element, fine> thread;
    const cut_array<typename thread::Key> cut(work->x, work->n);
    const uint32_t bins = work->even->bins, least = thread::some * thread::row, most = (uint32_t)(shared_bytes - least) / 4 * 2 - 4;
    const uint32_t passes = fine ? (bins + most - 1) / most : 1, count = ((bins + passes - 1) / passes + 1) & ~1u;
    even_pass pass = {work->x, *work->even, work->counts, work->short_counts, 1, 0, {}};
    const size_t each = fine ? (count + 4) / 2 * 4 : ((bins + 4) / 2 * 2 + 1) * 4, edges = thread::has_edges ? (bins + 1) * sizeof(float) : 0;
    pass.waiting = (uint32_t)((shared_bytes / thread::blocks - least - each - edges) / thread::row);
    pass.waiting = pass.waiting < thread::most_waiting ? pass.waiting : thread::most_waiting;
    const size_t others = (thread::some + pass.waiting) * thread::row + edges;
    while (!fine && pass.copies < 32 && others + each * pass.copies * 2 <= shared_bytes / thread::blocks)
        pass.copies *= 2;
    const uint64_t blocks = blocks_for(cut.vectors, thread::threads, thread::loads, (uint64_t)multiprocessors * thread::blocks);
    cudaLaunchConfig_t config = launch_config(blocks, thread::threads, stream);
    config.dynamicSmemBytes = others + each * pass.copies;
    cudaError_t code = cudaFuncSetAttribute((const void *)even_kernel<Element, fine>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    for (uint32_t first = 0; first < bins && code == cudaSuccess; first += count) {
        order_even_part(&pass.even, first, count < bins - first ? count : bins - first);
        if (count >= bins - first) /* the last one */
            pass.end = *end;
        code = cudaLaunchKernelEx(&config, even_kernel<Element, fine>, pass, cut);
    }
    return code;
}

/* Coarse bins' counters and edges, with a queue, leave room for a second block. */
cudaError_t order_even_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream)
{
    return with_element(work->type, [&](auto element) {
        typedef decltype(element) Element;
        typedef even_thread<Element, false> coarse;
        return (work->even->bins + 5) * sizeof(uint32_t) * (1 + coarse::has_edges) + coarse::some * coarse::row <= shared_bytes / coarse::blocks
                   ? even_start<Element, false>(work, end, multiprocessors, shared_bytes, stream)
                   : even_start<Element, true>(work, end, multiprocessors, shared_bytes, stream);
    });
}
