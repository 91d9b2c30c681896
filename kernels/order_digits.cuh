/* What counts the parts of ranges of keys, their digits (fold/order.h), and what rounds of a search share. In a round

     each thread, for its elements: the range that has the key, by bisection; the key's digit in that range
         counters[digit] += 1, in shared memory, where each counter has copies
     each block: adds the sum of each counter's copies to the round's counters, and waits until all blocks have
     all blocks alike: the sums of the counters; from them a thread for each target its digit; the ranges that are left, cut into digits */
#pragma once

#include "kernels/order.cuh"

constexpr int SEARCH_THREADS = 1024;
constexpr int DIGITS_STEPS = 6, SEARCH_STEPS = 5, FEW_STEPS = 3; /* find one of 64 ranges, of 32, of 8 */
constexpr uint32_t DIGITS_COUNTERS = ORDER_DIGITS_MOST + ORDER_CUTS_MOST + 1;
constexpr uint32_t SEARCH_COUNTERS = ORDER_DIGITS_MOST + 4; /* of a round; elements that are listed, and how many they are */
constexpr uint32_t ALONE_MOST = 1 << 11; /* elements of a range that a block searches sooner than all count digits once more */
static_assert(ORDER_CUTS_MOST <= 1 << DIGITS_STEPS && ORDER_SEARCH_MOST <= 1 << SEARCH_STEPS, "ranges are found in as many steps");
static_assert(ORDER_SEARCH_MOST == 32, "a lane has each target");
static_assert(SEARCH_THREADS == 32 * 32, "a lane has each warp's sum");
static_assert(ORDER_DIGITS_MOST == 8 * SEARCH_THREADS, "a thread has 8 counters");
static_assert(SEARCH_COUNTERS % 4 == 0, "counters are loaded 4 by 4");
static_assert(ORDER_DIGITS_MOST <= DIGITS_COUNTERS && ALONE_MOST <= ORDER_DIGITS_MOST / 2, "a block lists and searches where its counters were");
static_assert(3 * SEARCH_COUNTERS / 2 + 2 == ORDER_SEARCH_COUNTS, "the counters of three rounds, and two that count blocks");
static_assert(sizeof(struct order_chain) % 16 == 0, "a search's counters, which lie behind a chain, are aligned");

/* Ranges, and the counters of their digits. */
struct digits_shape {
    uint32_t cuts, digits;
    int copies; /* of counters: 2^copies */
};

static inline __host__ __device__ struct digits_shape shape_of(uint32_t cuts, uint32_t digits)
{
    struct digits_shape shape = {cuts, digits, 0};
    while ((digits << (shape.copies + 1)) <= DIGITS_COUNTERS && shape.copies < 5)
        shape.copies++;
    return shape;
}

/* Ranges in shared memory: lanes that look at different ones find them in different banks. */
template <class Key> struct key_cuts {
    Key lows[1 << DIGITS_STEPS], widths[1 << DIGITS_STEPS];
    uint32_t firsts[1 << DIGITS_STEPS], shifts[1 << DIGITS_STEPS];
    uint32_t last;
    /* Called by all threads, which then wait for each other. */
    __device__ __forceinline__ void take(const struct order_cut *cuts, uint32_t count)
    {
        for (uint32_t i = threadIdx.x; i < 1 << DIGITS_STEPS; i += blockDim.x) {
            const order_cut &own = cuts[i < count ? i : count - 1];
            lows[i] = (Key)own.low;
            widths[i] = (Key)(own.last - own.low);
            firsts[i] = own.first;
            shifts[i] = own.shift;
        }
        if (threadIdx.x == 0)
            last = count - 1;
        __syncthreads();
    }
    /* The range that begins at the key or before, the first one if none does; of 2^steps ranges. */
    template <int steps> __device__ __forceinline__ uint32_t range_of(Key key, uint32_t last) const
    {
        uint32_t c = 0;
#pragma unroll
        for (int step = (1 << steps) / 2; step > 0; step /= 2)
            c += lows[c + step] <= key ? step : 0;
        return c < last ? c : last; /* behind the last one it is repeated */
    }
};

constexpr uint32_t NO_COUNTER = UINT32_MAX;

/* Adds what a block has of each digit to counts. each(take) calls take(elements, there, ...) for its elements, as each_tile does; counter_of(element) is a digit's
   counter. All threads call it; counters are its own. */
template <class Key, class Each, class CounterOf, class Count>
static __device__ __forceinline__ void count_digits(Each each, CounterOf counter_of, const struct digits_shape shape, uint32_t *counters, Count *counts)
{
    const uint32_t copies = 1u << shape.copies, copy = threadIdx.x % copies;
    for (uint32_t i = threadIdx.x; i < shape.digits * copies; i += blockDim.x)
        counters[i] = 0;
    __syncthreads();
    each([&](const auto &keys, auto there, uint64_t) {
#pragma unroll
        for (int e = 0; e < (int)(sizeof keys / sizeof(Key)); e++) {
            const uint32_t counter = counter_of(keys[e]);
            if (there(e) && counter != NO_COUNTER)
                atomicAdd(&counters[counter * copies + copy], 1u);
        }
    });
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < shape.digits; i += blockDim.x) {
        Count sum = 0;
        for (uint32_t of = 0; of < copies; of++)
            sum += counters[i * copies + (of + i) % copies];
        add_count(&counts[i], sum);
    }
}

/* ---- rounds of a search */

struct search_state {
    struct order_target targets[ORDER_SEARCH_MOST];
    struct order_cut cuts[ORDER_SEARCH_MOST];
    uint32_t cut_of[ORDER_SEARCH_MOST]; /* of open targets */
    struct digits_shape shape;
    uint32_t room;    /* counters of each range, from its first one on: a power of two */
    bool is_last;     /* the elements in the ranges are so few that they are listed */
};

/* The ranges of the open targets, each once: their order is that of the targets. Then all threads know them. */
static __device__ __forceinline__ void list_cuts(struct search_state &state, uint32_t targets, uint32_t most_listed)
{
    if (threadIdx.x < 32) {
        constexpr uint32_t all = 0xffffffffu;
        const uint32_t lane = threadIdx.x, before = (1u << lane) - 1;
        const struct order_target &target = state.targets[lane];
        const bool is_open = lane < targets && order_target_is_open(&target);
        const uint32_t open = __ballot_sync(all, is_open);
        uint32_t next = lane; /* after the open one before */
        while (next > 0 && (open >> (next - 1) & 1) == 0)
            next--;
        const bool is_first = is_open && (next == 0 || state.targets[next - 1].low != target.low);
        const uint32_t firsts = __ballot_sync(all, is_first), count = (uint32_t)__popc(firsts), own = (uint32_t)__popc(firsts & (before << 1 | 1)) - 1;
        uint32_t most = ORDER_DIGITS_MOST;
        while (most * count > ORDER_DIGITS_MOST)
            most /= 2;
        struct order_cut cut = {};
        cut.low = target.low;
        cut.last = target.last;
        if (is_open)
            state.cut_of[lane] = own;
        if (is_first)
            order_cut_into(&cut, most);
        uint32_t room = most;
        while (room > 1 && count > 0 && __ballot_sync(all, cut.digits > room / 2) == 0)
            room /= 2;
        cut.first = own * room;
        if (is_first)
            state.cuts[own] = cut;
        uint32_t inside = !is_first ? 0 : target.count < ORDER_DIGITS_MOST ? (uint32_t)target.count : ORDER_DIGITS_MOST + 1;
        const bool is_listed = __ballot_sync(all, is_open && (target.room > 0 || target.count > ALONE_MOST)) == 0; /* with room, no key is looked for */
#pragma unroll
        for (int lanes = 16; lanes > 0; lanes /= 2)
            inside += __shfl_xor_sync(all, inside, lanes);
        if (lane == 0) {
            state.shape = shape_of(count, count * room);
            state.room = room;
            state.is_last = is_listed && inside <= most_listed;
        }
    }
    __syncthreads();
}

/* The sum of a warp's lanes up to and with this one. */
static __device__ __forceinline__ uint32_t warp_running(uint32_t sum)
{
#pragma unroll
    for (uint32_t step = 1; step < 32; step *= 2) {
        const uint32_t more = __shfl_up_sync(0xffffffffu, sum, step);
        sum += threadIdx.x % 32 >= step ? more : 0;
    }
    return sum;
}

/* The sum of the threads' numbers up to and with this one's. Called by all threads, which wait for each other between calls. */
static __device__ __forceinline__ uint32_t block_running(uint32_t own)
{
    __shared__ uint32_t of_warps[32];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, sum = warp_running(own);
    if (lane == 31)
        of_warps[warp] = sum;
    __syncthreads();
    const uint32_t warps = warp_running(of_warps[lane]);
    return sum + (warp > 0 ? __shfl_sync(0xffffffffu, warps, (int)warp - 1) : 0);
}

/* Sets sums[i] to what counters 0 to i have together, of ORDER_DIGITS_MOST. Called by all threads. */
static __device__ __forceinline__ void add_up(const uint32_t *counts, uint32_t *sums)
{
    uint64_t words[4]; /* all are loaded, and then used: that takes time */
    uint32_t own[8];
#pragma unroll
    for (int half = 0; half < 2; half++)
        load_words((const uint64_t *)counts + 4 * threadIdx.x + 2 * half, &words[2 * half]);
#pragma unroll
    for (int i = 0; i < 8; i++)
        own[i] = (uint32_t)(words[i / 2] >> i % 2 * 32) + (i > 0 ? own[i > 0 ? i - 1 : 0] : 0);
    const uint32_t before = block_running(own[7]) - own[7];
#pragma unroll
    for (int half = 0; half < 2; half++)
        ((uint4 *)sums)[2 * threadIdx.x + half] = {before + own[4 * half], before + own[4 * half + 1], before + own[4 * half + 2], before + own[4 * half + 3]};
    __syncthreads();
}

/* The rounds of a search, which have three sets of counters in turn: in each, blocks set those of the round before to 0. */
struct search_rounds {
    uint32_t *counts;
    uint64_t *arrived; /* how many blocks are where others wait; and how many have ended */
    uint32_t round, waits, used; /* how many there have been; counters of the last round */
    __device__ explicit search_rounds(uint64_t *memory)
        : counts((uint32_t *)memory), arrived(&memory[ORDER_SEARCH_COUNTS - 2]), round(0), waits(0), used(0)
    {
    }
    /* Counters of the round `later` rounds after this one. */
    __device__ __forceinline__ uint32_t *counters(uint32_t later) const { return &counts[(round + later) % 3 * SEARCH_COUNTERS]; }
    /* Called by all threads when what the block writes is in memory: waits until all blocks have called it so often. */
    __device__ __forceinline__ void wait()
    {
        waits++;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) {
            atomicAdd((device_count *)arrived, (device_count)1);
            while (count_now(arrived) < (uint64_t)waits * gridDim.x)
                wait_for_others();
            __threadfence();
        }
        __syncthreads();
    }
    /* Called by all threads at the end of a round, which has waited. used_now: the counters that it used. */
    __device__ __forceinline__ void end(uint32_t used_now)
    {
        uint32_t *const before = counters(2);
        for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < used; i += gridDim.x * blockDim.x)
            before[i] = 0;
        used = used_now;
        round++;
        __syncthreads();
    }
    /* Called by all threads of the last block, when no other uses them any more: all counters are 0 again. */
    __device__ __forceinline__ void clear()
    {
        for (uint32_t i = threadIdx.x; i < used; i += blockDim.x)
            counters(2)[i] = 0;
        if (threadIdx.x < 2)
            arrived[threadIdx.x] = 0;
    }
};

/* The digit in which a target is, and if none has it the last one, from the sums of counters. */
static __device__ __forceinline__ void find_digit(struct order_target *target, const struct order_cut &cut, const uint32_t *sums)
{
    const uint64_t wanted = target->rank - target->below, before = cut.first > 0 ? sums[cut.first - 1] : 0;
    uint32_t digit = 0;
    for (uint32_t end = cut.digits - 1; digit < end;) {
        const uint32_t middle = (digit + end) / 2;
        if (sums[cut.first + middle] - before <= wanted)
            digit = middle + 1;
        else
            end = middle;
    }
    const uint64_t below = digit > 0 ? sums[cut.first + digit - 1] - before : 0;
    order_target_narrow(target, &cut, digit, below, sums[cut.first + digit] - before - below);
}

/* The counter of a key's digit in its range, which is found by `steps` steps. What lies behind a range may be counted in its last digit, or in one behind that, in
   which no target's rank is. */
template <class Key, int steps> static __device__ __forceinline__ uint32_t counter_in(const key_cuts<Key> &cuts, Key key, uint32_t last, uint32_t room)
{
    const uint32_t c = cuts.template range_of<steps>(key, last);
    const Key digit = (Key)((Key)(key - cuts.lows[c]) >> cuts.shifts[c]);
    return digit < room ? c * room + (uint32_t)digit : NO_COUNTER;
}

/* A round. Called by all threads of all blocks, as `each` calls its argument for all keys (count_digits). Afterwards `own`, of the block, has the running sums of the
   counters. */
template <class Key, class Each, class CounterOf>
static __device__ __forceinline__ void take_round(Each each, CounterOf counter_of, search_state &state, uint32_t targets, uint32_t *own, search_rounds &rounds)
{
    count_digits<Key>(each, counter_of, state.shape, own, rounds.counters(0));
    rounds.wait();
    add_up(rounds.counters(0), own);
    if (threadIdx.x < targets && order_target_is_open(&state.targets[threadIdx.x]))
        find_digit(&state.targets[threadIdx.x], state.cuts[state.cut_of[threadIdx.x]], own);
    rounds.end(state.shape.digits);
}

/* launch(config) of a kernel whose blocks wait for each other; of one block where they may not, in a part of a device (MIG), say. */
template <class Launch> static cudaError_t launch_together(uint64_t blocks, void *stream, Launch launch)
{
    cudaLaunchAttribute together = {};
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t config = launch_config(blocks, SEARCH_THREADS, stream);
    config.attrs = &together;
    config.numAttrs = 1;
    const cudaError_t code = launch(config);
    if (code != cudaErrorCooperativeLaunchTooLarge && code != cudaErrorNotSupported)
        return code;
    cudaGetLastError();
    return launch(launch_config(1, SEARCH_THREADS, stream));
}
