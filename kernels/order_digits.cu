/* Counts the parts of ranges of keys (fold/order.h): of what a pass has kept mostly, which is few.

     each thread, for its elements: the key; the range that has it, by bisection; the key's digit in that range
         counters[digit] += 1, in shared memory, where each counter has copies
     each block: adds the sum of each counter's copies to the caller's counter

   A search does this in rounds, while targets are open, by blocks that wait for each other:

     all blocks alike: the ranges of the open targets, cut into digits
     each block: counts, as above, to the round's counters, and waits until all blocks have
     all blocks alike: the sums of the counters; from them a thread for each target its digit
     all blocks: set the counters of the round before to 0, which the round after the next one has */
#include "kernels/order.cuh"

constexpr int DIGITS_THREADS = 512, DIGITS_BLOCKS = 3, DIGITS_LOADS = 1, SEARCH_THREADS = 1024, DIGITS_STEPS = 6;
constexpr uint32_t DIGITS_COUNTERS = ORDER_DIGITS_MOST + ORDER_CUTS_MOST + 1;
constexpr uint32_t SEARCH_COUNTERS = ORDER_DIGITS_MOST + ORDER_SEARCH_MOST + 1; /* of a round */
static_assert(ORDER_CUTS_MOST < 1 << DIGITS_STEPS, "ranges are found in as many steps");
static_assert(ORDER_SEARCH_MOST == 32, "a lane has each target");
static_assert(SEARCH_THREADS == 32 * 32, "a lane has each warp's sum");

/* Ranges, and the counters of their digits. */
struct digits_shape {
    uint32_t cuts, digits, half; /* half: the power of two that begins the search for a range */
    int copies;                  /* of counters: 2^copies */
};

static __host__ __device__ struct digits_shape shape_of(uint32_t cuts, uint32_t digits)
{
    struct digits_shape shape = {cuts, digits, 1, 0};
    while (2 * shape.half <= cuts)
        shape.half *= 2;
    while ((digits << (shape.copies + 1)) <= DIGITS_COUNTERS && shape.copies < 5)
        shape.copies++;
    return shape;
}

/* Ranges in shared memory: lanes that look at different ones find them in different banks. */
template <class Key> struct key_cuts {
    Key lows[1 << DIGITS_STEPS], widths[1 << DIGITS_STEPS];
    uint32_t firsts[1 << DIGITS_STEPS], shifts[1 << DIGITS_STEPS];
    /* Called by all threads. Behind the last range no key is. */
    __device__ __forceinline__ void take(const struct order_cut *cuts, uint32_t count)
    {
        for (uint32_t i = threadIdx.x; i < 1 << DIGITS_STEPS; i += blockDim.x) {
            const order_cut &own = cuts[i < count ? i : 0];
            lows[i] = i < count ? (Key)own.low : (Key)~(Key)0;
            widths[i] = (Key)(own.last - own.low);
            firsts[i] = own.first + 1;
            shifts[i] = own.shift;
        }
    }
};

/* Adds what a block's part of the array has of each digit to counts. All threads call it when cuts are there; counters are its own. several: ranges; else
   the one. */
template <class Key, int threads, int loads, bool several, class Count>
static __device__ __forceinline__ void count_digits(const Key *x, const cut_array<Key> &array, struct order_map map, const struct digits_shape shape,
                                                    const key_cuts<Key> &cuts, uint32_t *counters, Count *counts)
{
    const uint32_t copies = 1u << shape.copies, copy = threadIdx.x % copies;
    for (uint32_t i = threadIdx.x; i < shape.digits * copies; i += blockDim.x)
        counters[i] = 0;
    __syncthreads();
    const Key only_low = cuts.lows[0], only_width = cuts.widths[0];
    const uint32_t only_first = cuts.firsts[0], only_shift = cuts.shifts[0];
    auto take = [&](const Key (&keys)[elements_of<Key, loads>], auto there, uint64_t) {
#pragma unroll
        for (int e = 0; e < elements_of<Key, loads>; e++) {
            const Key key = key_of(keys[e], map);
            uint32_t c = 0;
            for (uint32_t step = shape.half; several && step > 0; step /= 2)
                c += cuts.lows[c + step] <= key && c + step < shape.cuts ? step : 0;
            const Key at = (Key)(key - (several ? cuts.lows[c] : only_low));
            if (there(e) && at <= (several ? cuts.widths[c] : only_width))
                atomicAdd(&counters[((several ? cuts.firsts[c] : only_first) + (uint32_t)(at >> (several ? cuts.shifts[c] : only_shift))) * copies + copy], 1u);
        }
    };
    each_tile<Key, threads, loads, false>(x, array, take);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < shape.digits; i += blockDim.x) {
        Count sum = 0;
        for (uint32_t of = 0; of < copies; of++)
            sum += counters[i * copies + (of + i) % copies];
        add_count(&counts[i], sum);
    }
}

/* ---- one round, whose ranges the host has cut */

struct digits_pass {
    const void *x;
    struct order_map map;
    uint64_t *counts;
    struct digits_shape shape;
    struct order_end end;
    struct order_cut cuts[ORDER_CUTS_MOST];
};

template <class Key, bool several>
__global__ void __launch_bounds__(DIGITS_THREADS, DIGITS_BLOCKS)
    digits_kernel(const __grid_constant__ digits_pass pass, const __grid_constant__ cut_array<Key> array)
{
    __shared__ uint32_t counters[DIGITS_COUNTERS];
    __shared__ key_cuts<Key> cuts;
    cuts.take(pass.cuts, pass.shape.cuts);
    count_digits<Key, DIGITS_THREADS, DIGITS_LOADS, several>((const Key *)pass.x, array, pass.map, pass.shape, cuts, counters, &pass.counts[ORDER_FIRST_COUNT]);
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
    return work->cut_count > 1 ? cudaLaunchKernelEx(&config, digits_kernel<Key, true>, pass, array)
                               : cudaLaunchKernelEx(&config, digits_kernel<Key, false>, pass, array);
}

cudaError_t order_digits_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    return with_key(work->type, [&](auto key) { return digits_start<decltype(key)>(work, end, multiprocessors, stream); });
}

/* ---- a search */

struct search_pass {
    const void *x;
    uint64_t n;
    struct order_map map;
    uint64_t *counts; /* 32 bits each, of three rounds in turn; then how many blocks are where others wait for them */
    uint32_t targets, rounds;
    struct order_chain *chain; /* not NULL: the last search of a chain, in what its brackets have kept, if that is no more than n. The chain is the answer */
    uint64_t elements, last_number;
    struct order_end end;
    struct order_target target[ORDER_SEARCH_MOST];
};

struct search_state {
    struct order_target targets[ORDER_SEARCH_MOST];
    struct order_cut cuts[ORDER_SEARCH_MOST];
    uint32_t cut_of[ORDER_SEARCH_MOST]; /* of open targets */
    struct digits_shape shape;
};

/* The ranges of the open targets, each once: their order is that of the targets. Then all threads know them. */
static __device__ __forceinline__ void list_cuts(struct search_state &state, uint32_t targets)
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
        uint32_t room = 1; /* for the digits of each */
        while (__ballot_sync(all, cut.digits > room) != 0)
            room *= 2;
        cut.first = own * room;
        if (is_first)
            state.cuts[own] = cut;
        if (lane == 0)
            state.shape = shape_of(count, count * room + 1);
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

/* Sets sums[i] to what counters 0 to i have together. Called by all threads. */
static __device__ __forceinline__ void add_up(const uint32_t *counts, uint32_t count, uint32_t *sums)
{
    constexpr uint32_t MOST = (SEARCH_COUNTERS + SEARCH_THREADS - 1) / SEARCH_THREADS;
    __shared__ uint32_t of_warps[32];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32, each = (count + SEARCH_THREADS - 1) / SEARCH_THREADS;
    const uint32_t first = threadIdx.x * each, end = first + each < count ? first + each : count;
    uint32_t loaded[MOST], own = 0; /* all are loaded, and then used: that takes time */
#pragma unroll
    for (uint32_t i = 0; i < MOST; i++)
        loaded[i] = threadIdx.x + i * SEARCH_THREADS < count ? count_now(&counts[threadIdx.x + i * SEARCH_THREADS]) : 0;
#pragma unroll
    for (uint32_t i = 0; i < MOST; i++)
        if (threadIdx.x + i * SEARCH_THREADS < count)
            sums[threadIdx.x + i * SEARCH_THREADS] = loaded[i];
    __syncthreads();
    for (uint32_t i = first; i < end; i++)
        own += sums[i];
    const uint32_t sum = warp_running(own);
    if (lane == 31)
        of_warps[warp] = sum;
    __syncthreads();
    const uint32_t warps = warp_running(of_warps[lane]);
    uint32_t running = sum - own + (warp > 0 ? __shfl_sync(0xffffffffu, warps, (int)warp - 1) : 0);
    for (uint32_t i = first; i < end; i++)
        sums[i] = running += sums[i];
    __syncthreads();
}

/* Called by all threads when the block's counts are in memory: waits until all blocks have called it so often. */
static __device__ __forceinline__ void wait_for_blocks(uint64_t *arrived, uint64_t calls)
{
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        atomicAdd((device_count *)arrived, (device_count)1);
        while (count_now(arrived) < calls * gridDim.x)
            wait_for_others();
        __threadfence();
    }
    __syncthreads();
}

/* The digit in which a target is, and if none has it the last one, from the sums of counters. */
static __device__ __forceinline__ void find_digit(struct order_target *target, const struct order_cut &cut, const uint32_t *sums)
{
    const uint64_t wanted = target->rank - target->below, before = sums[cut.first];
    uint32_t digit = 0;
    for (uint32_t end = cut.digits - 1; digit < end;) {
        const uint32_t middle = (digit + end) / 2;
        if (sums[cut.first + 1 + middle] - before <= wanted)
            digit = middle + 1;
        else
            end = middle;
    }
    order_target_narrow(target, &cut, digit, sums[cut.first + digit] - before, sums[cut.first + digit + 1] - sums[cut.first + digit]);
}

template <class Key> struct search_shape {
    static constexpr int loads = order_loads(sizeof(Key));
};

/* The targets of a chain's last search; how many elements its brackets have kept, if they are to be searched. All threads call it. */
static __device__ __forceinline__ uint64_t take_chain(const search_pass &pass, struct search_state &state)
{
    __shared__ uint64_t counts[sizeof pass.chain->counts / sizeof(uint64_t)];
    __shared__ struct order_brackets brackets;
    for (uint32_t i = threadIdx.x; i < sizeof counts / sizeof *counts; i += blockDim.x)
        counts[i] = pass.chain->counts[i];
    for (uint32_t i = threadIdx.x; i < ORDER_CHAIN_BRACKETS; i += blockDim.x)
        brackets.list[i] = pass.chain->brackets.list[i];
    if (threadIdx.x == 0) {
        brackets.count = pass.chain->brackets.count;
        brackets.whole = pass.chain->brackets.whole;
    }
    __syncthreads();
    const bool is_kept = pass.chain->is_done && counts[ORDER_NANS] == 0 && counts[ORDER_KEPT] <= pass.n;
    if (threadIdx.x < pass.targets) {
        struct order_target &target = state.targets[threadIdx.x];
        const uint64_t before = order_target_locate(&target, &brackets, counts + ORDER_FIRST_COUNT, pass.elements, pass.elements, pass.last_number);
        if (before == UINT64_MAX || !is_kept)
            target.last = target.low; /* it is not looked for */
        target.rank -= target.below - before;
        target.below = before;
    }
    __syncthreads();
    return is_kept ? counts[ORDER_KEPT] : 0;
}

template <class Key>
__global__ void __launch_bounds__(SEARCH_THREADS, 1)
    search_kernel(const __grid_constant__ search_pass pass)
{
    __shared__ uint32_t counters[DIGITS_COUNTERS];
    __shared__ key_cuts<Key> cuts;
    __shared__ search_state state;
    uint32_t *const of_rounds = (uint32_t *)pass.counts;
    uint64_t *const arrived = &pass.counts[ORDER_SEARCH_COUNTS - 2];
    uint32_t digits_before = 0;
    for (uint32_t i = threadIdx.x; i < pass.targets; i += blockDim.x)
        state.targets[i] = pass.target[i];
    __syncthreads();
    const cut_array<Key> array(pass.x, pass.chain != NULL ? take_chain(pass, state) : pass.n);
    list_cuts(state, pass.targets);
    uint32_t round = 0;
#pragma unroll 1
    for (; state.shape.cuts > 0 && round < pass.rounds; round++) {
        uint32_t *const counts = &of_rounds[round % 3 * SEARCH_COUNTERS], *const before = &of_rounds[(round + 2) % 3 * SEARCH_COUNTERS];
        cuts.take(state.cuts, state.shape.cuts);
        if (array.vectors <= 2 * (uint64_t)gridDim.x * SEARCH_THREADS) /* few: all blocks get some */
            count_digits<Key, SEARCH_THREADS, 1, true>((const Key *)pass.x, array, pass.map, state.shape, cuts, counters, counts);
        else
            count_digits<Key, SEARCH_THREADS, search_shape<Key>::loads, true>((const Key *)pass.x, array, pass.map, state.shape, cuts, counters, counts);
        wait_for_blocks(arrived, round + 1);
        for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < digits_before; i += gridDim.x * blockDim.x)
            before[i] = 0;
        digits_before = state.shape.digits;
        add_up(counts, state.shape.digits, counters);
        if (threadIdx.x < pass.targets && order_target_is_open(&state.targets[threadIdx.x]))
            find_digit(&state.targets[threadIdx.x], state.cuts[state.cut_of[threadIdx.x]], counters);
        __syncthreads();
        list_cuts(state, pass.targets);
    }
    end_pass(pass.end, pass.counts, [&]() {
        for (uint32_t i = threadIdx.x; i < digits_before; i += blockDim.x)
            of_rounds[(round + 2) % 3 * SEARCH_COUNTERS + i] = 0;
        uint64_t *const targets = pass.chain != NULL ? (uint64_t *)pass.chain->targets : pass.end.answer;
        for (uint32_t i = threadIdx.x; i < sizeof(struct order_target) / 8 * pass.targets; i += blockDim.x)
            targets[i] = ((const uint64_t *)state.targets)[i];
        if (threadIdx.x < 2)
            arrived[threadIdx.x] = 0;
        __syncthreads();
        if (pass.chain != NULL)
            take_answer(pass.end.answer, (uint64_t *)pass.chain, sizeof *pass.chain / 8);
    });
}

template <class Key> static cudaError_t search_start(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    const cut_array<Key> array(work->x, work->n);
    static_assert(3 * SEARCH_COUNTERS <= 2 * (ORDER_SEARCH_COUNTS - 2), "the counters of three rounds, and two that count blocks");
    if (work->target_count > ORDER_SEARCH_MOST || end->count != ORDER_SEARCH_COUNTS || work->n > UINT32_MAX)
        return cudaErrorInvalidValue;
    search_pass pass = {work->x, work->n, order_map_of(work->type), work->counts, work->target_count, work->rounds, work->chain, work->chain_elements, work->chain_last,
                        *end, {}};
    for (uint32_t i = 0; i < work->target_count; i++)
        pass.target[i] = work->targets[i];
    cudaLaunchAttribute together = {}; /* blocks wait for each other */
    together.id = cudaLaunchAttributeCooperative;
    together.val.cooperative = 1;
    cudaLaunchConfig_t config =
        launch_config(blocks_for(array.vectors, SEARCH_THREADS, 1, (uint64_t)multiprocessors), SEARCH_THREADS, stream);
    config.attrs = &together;
    config.numAttrs = 1;
    const cudaError_t code = cudaLaunchKernelEx(&config, search_kernel<Key>, pass);
    if (code != cudaErrorCooperativeLaunchTooLarge && code != cudaErrorNotSupported)
        return code;
    cudaGetLastError(); /* a part of a device (MIG), say: one block need not wait */
    const cudaLaunchConfig_t alone = launch_config(1, SEARCH_THREADS, stream);
    return cudaLaunchKernelEx(&alone, search_kernel<Key>, pass);
}

cudaError_t order_search_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    return with_key(work->type, [&](auto key) { return search_start<decltype(key)>(work, end, multiprocessors, stream); });
}
