/* Counts the parts of ranges of keys (fold/order.h): of what a pass has kept mostly, which is few.

     each thread, for its elements: the key; the range that has it, by bisection; the key's digit in that range
         counters[digit] += 1, in shared memory, where each counter has copies
     each block: adds the sum of each counter's copies to the caller's counter

   A search does this in rounds, while targets are open, by blocks that wait for each other:

     all blocks alike: the ranges of the open targets, cut into digits
     each block: counts, as above, to the round's counters, and waits until all blocks have
     all blocks alike: the sums of the counters; from them a thread for each target its digit
     all blocks: set the counters of the round before to 0, which the round after the next one has
     if the open targets' ranges have few elements, there is but one more round:
         each block: lists the elements that are in these ranges, and waits until all blocks have
         a block for each target: sorts those in its range; the target's key is where its rank says */
#include "kernels/order.cuh"

constexpr int DIGITS_THREADS = 512, DIGITS_BLOCKS = 3, DIGITS_LOADS = 1, SEARCH_THREADS = 1024, SEARCH_LOADS = 2;
constexpr int DIGITS_STEPS = 6, SEARCH_STEPS = 5, FEW_STEPS = 3; /* find one of 64 ranges, of 32, of 8 */
constexpr uint32_t DIGITS_COUNTERS = ORDER_DIGITS_MOST + ORDER_CUTS_MOST + 1;
constexpr uint32_t SEARCH_COUNTERS = ORDER_DIGITS_MOST + 4; /* of a round; elements that are listed, and how many they are */
constexpr uint32_t SORTED_MOST = 1 << 11;                   /* elements of a range that a block sorts sooner than all count digits once more */
static_assert(ORDER_CUTS_MOST <= 1 << DIGITS_STEPS && ORDER_SEARCH_MOST <= 1 << SEARCH_STEPS, "ranges are found in as many steps");
static_assert(ORDER_SEARCH_MOST == 32, "a lane has each target");
static_assert(SEARCH_THREADS == 32 * 32, "a lane has each warp's sum");
static_assert(ORDER_DIGITS_MOST == 8 * SEARCH_THREADS, "a thread has 8 counters");
static_assert(SEARCH_COUNTERS % 4 == 0, "counters are loaded 4 by 4");
static_assert(ORDER_DIGITS_MOST <= DIGITS_COUNTERS && SORTED_MOST <= ORDER_DIGITS_MOST / 2, "a block lists and sorts where its counters were");
static_assert(3 * SEARCH_COUNTERS / 2 + 2 == ORDER_SEARCH_COUNTS, "the counters of three rounds, and two that count blocks");
static_assert(sizeof(struct order_chain) % 16 == 0, "a search's counters, which lie behind a chain, are aligned");

/* Ranges, and the counters of their digits. */
struct digits_shape {
    uint32_t cuts, digits;
    int copies; /* of counters: 2^copies */
};

static __host__ __device__ struct digits_shape shape_of(uint32_t cuts, uint32_t digits)
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
        for (int step = 1 << (steps - 1); step > 0; step /= 2)
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

/* ---- one round, whose ranges the host has cut */

struct digits_pass {
    const void *x;
    struct order_map map;
    uint64_t *counts;
    struct digits_shape shape;
    struct order_end end;
    struct order_cut cuts[ORDER_CUTS_MOST];
};

/* Ranges are found by so many steps; 0: there is one. */
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

/* ---- a search */

struct search_pass {
    const void *x; /* keys */
    uint64_t n;
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
        uint32_t room = 1;
        while (__ballot_sync(all, cut.digits > room) != 0)
            room *= 2;
        cut.first = own * room;
        if (is_first)
            state.cuts[own] = cut;
        uint64_t inside = is_first ? target.count : 0;
        const bool is_listed = __ballot_sync(all, is_open && (target.room > 0 || target.count > SORTED_MOST)) == 0; /* with room, no key is looked for */
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

/* Sets sums[i] to what counters 0 to i have together, of ORDER_DIGITS_MOST. Called by all threads. */
static __device__ __forceinline__ void add_up(const uint32_t *counts, uint32_t *sums)
{
    __shared__ uint32_t of_warps[32];
    const uint32_t lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    uint64_t words[4]; /* all are loaded, and then used: that takes time */
    uint32_t own[8];
#pragma unroll
    for (int half = 0; half < 2; half++)
        load_words((const uint64_t *)counts + 4 * threadIdx.x + 2 * half, &words[2 * half]);
#pragma unroll
    for (int i = 0; i < 8; i++)
        own[i] = (uint32_t)(words[i / 2] >> i % 2 * 32) + (i > 0 ? own[i > 0 ? i - 1 : 0] : 0);
    const uint32_t sum = warp_running(own[7]);
    if (lane == 31)
        of_warps[warp] = sum;
    __syncthreads();
    const uint32_t warps = warp_running(of_warps[lane]);
    const uint32_t before = sum - own[7] + (warp > 0 ? __shfl_sync(0xffffffffu, warps, (int)warp - 1) : 0);
#pragma unroll
    for (int half = 0; half < 2; half++)
        ((uint4 *)sums)[2 * threadIdx.x + half] = {before + own[4 * half], before + own[4 * half + 1], before + own[4 * half + 2], before + own[4 * half + 3]};
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

/* How many elements are listed at most: the counters' memory has room for them. */
template <class Key> constexpr uint32_t listed_most = ORDER_DIGITS_MOST / (sizeof(Key) == 8 ? 2 : 1);

/* Sorts `count` keys, a power of two. Called by all threads; those of a warp compare neighbours, so that others need not wait for these steps. */
template <class Key> static __device__ __forceinline__ void sort_keys(Key *keys, uint32_t count)
{
    __syncthreads();
    for (uint32_t size = 2; size <= count; size *= 2)
        for (uint32_t step = size / 2; step > 0; step /= 2) {
            for (uint32_t pair = threadIdx.x; pair < count / 2; pair += blockDim.x) {
                const uint32_t at = 2 * pair - (pair & (step - 1));
                const Key a = keys[at], b = keys[at + step];
                if ((a > b) == ((at & size) == 0)) {
                    keys[at] = b;
                    keys[at + step] = a;
                }
            }
            if (step > 32 || (step == 1 && size > 32))
                __syncthreads();
            else
                __syncwarp();
        }
    __syncthreads();
}

/* The last round: finds the open targets among the elements of their ranges. Called by all threads of all blocks. memory: of a round. own: shared memory, for
   listed_most<Key> keys. found: what is known of all targets then, which must be read when all blocks are done. */
template <class Key, class Each, class IsInside>
static __device__ __forceinline__ void find_in_list(Each each, IsInside is_inside, const search_pass &pass, const search_state &state, Key *own, uint32_t *memory,
                                                    uint64_t *arrived, uint64_t calls, struct order_target *found)
{
    __shared__ uint32_t count, first;
    uint32_t *const all = &memory[ORDER_DIGITS_MOST];
    Key *const list = (Key *)memory;
    if (threadIdx.x == 0)
        count = 0;
    __syncthreads();
    each([&](const auto &keys, auto there, uint64_t) {
#pragma unroll
        for (int e = 0; e < (int)(sizeof keys / sizeof(Key)); e++) {
            if (there(e) && is_inside(keys[e]))
                own[atomicAdd(&count, 1u)] = keys[e];
        }
    });
    __syncthreads();
    if (threadIdx.x == 0)
        first = count > 0 ? atomicAdd(all, count) : 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count; i += blockDim.x)
        list[first + i] = own[i];
    wait_for_blocks(arrived, calls);
    constexpr int each_thread = listed_most<Key> / SEARCH_THREADS;
    const uint32_t listed = count_now(all);
    for (uint32_t t = blockIdx.x; t < pass.targets; t += gridDim.x) {
        struct order_target target = state.targets[t];
        if (order_target_is_open(&target)) {
            if (threadIdx.x == 0)
                count = 0;
            __syncthreads();
            Key keys[each_thread];
#pragma unroll
            for (int i = 0; i < each_thread; i++)
                keys[i] = threadIdx.x + i * SEARCH_THREADS < listed ? count_now(&list[threadIdx.x + i * SEARCH_THREADS]) : 0;
#pragma unroll
            for (int i = 0; i < each_thread; i++)
                if (threadIdx.x + i * SEARCH_THREADS < listed && keys[i] >= (Key)target.low && keys[i] <= (Key)target.last)
                    own[atomicAdd(&count, 1u)] = keys[i];
            __syncthreads();
            uint32_t sorted = 2;
            while (sorted < count)
                sorted *= 2;
            for (uint32_t i = count + threadIdx.x; i < sorted; i += blockDim.x)
                own[i] = (Key)~(Key)0;
            sort_keys(own, sorted);
            const uint64_t place = target.rank - target.below;
            const Key key = own[place < sorted ? place : sorted - 1];
            const uint32_t at = key > 0 ? interval_of(own, 0, count, (Key)(key - 1)) : 0;
            target.low = target.last = key;
            target.below += at;
            target.count = interval_of(own, 0, count, key) - at;
            __syncthreads(); /* before the next ones are written */
        }
        if (threadIdx.x == 0)
            found[t] = target;
    }
}

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
    __shared__ __align__(16) uint32_t counters[DIGITS_COUNTERS];
    __shared__ key_cuts<Key> cuts;
    __shared__ search_state state;
    uint32_t *const of_rounds = (uint32_t *)pass.counts;
    uint64_t *const arrived = &pass.counts[ORDER_SEARCH_COUNTS - 2];
    auto of_round = [&](uint32_t round) { return &of_rounds[round % 3 * SEARCH_COUNTERS]; };
    uint32_t used = 0; /* counters of the round before */
    for (uint32_t i = threadIdx.x; i < pass.targets; i += blockDim.x)
        state.targets[i] = pass.target[i];
    __syncthreads();
    const cut_array<Key> array(pass.x, pass.chain != NULL ? take_chain(pass, state) : pass.n);
    list_cuts(state, pass.targets, listed_most<Key>);
    auto each = [&](auto take) { each_tile<Key, SEARCH_THREADS, SEARCH_LOADS, false>((const Key *)pass.x, array, take); };
    /* A round, in which ranges are found by so many steps. */
    auto take_round = [&](uint32_t *counts, uint32_t round, auto steps) {
        constexpr int of_range = decltype(steps)::value;
        const uint32_t room = state.room, last = cuts.last;
        auto is_inside = [&](Key key) {
            const uint32_t c = cuts.template range_of<of_range>(key, last);
            return (Key)(key - cuts.lows[c]) <= cuts.widths[c];
        };
        /* What lies behind a range may be counted in its last digit, or in one behind that, in which no target's rank is. */
        auto counter_of = [&](Key key) {
            const uint32_t c = cuts.template range_of<of_range>(key, last);
            const Key digit = (Key)((Key)(key - cuts.lows[c]) >> cuts.shifts[c]);
            return digit < room ? c * room + (uint32_t)digit : NO_COUNTER;
        };
        if (state.is_last) {
            find_in_list<Key>(each, is_inside, pass, state, (Key *)counters, counts, arrived, round + 1, (struct order_target *)of_round(round + 1));
            return;
        }
        count_digits<Key>(each, counter_of, state.shape, counters, counts);
        wait_for_blocks(arrived, round + 1);
        add_up(counts, counters);
        if (threadIdx.x < pass.targets && order_target_is_open(&state.targets[threadIdx.x]))
            find_digit(&state.targets[threadIdx.x], state.cuts[state.cut_of[threadIdx.x]], counters);
    };
    uint32_t round = 0;
    bool is_listed = false;
#pragma unroll 1
    for (; state.shape.cuts > 0 && round < pass.rounds && !is_listed; round++) {
        uint32_t *const counts = of_round(round), *const before = of_round(round + 2);
        is_listed = state.is_last;
        cuts.take(state.cuts, state.shape.cuts);
        if (state.shape.cuts <= 1 << FEW_STEPS)
            take_round(counts, round, std::integral_constant<int, FEW_STEPS>());
        else
            take_round(counts, round, std::integral_constant<int, SEARCH_STEPS>());
        for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < used; i += gridDim.x * blockDim.x)
            before[i] = 0;
        used = is_listed ? ORDER_DIGITS_MOST + 1 : state.shape.digits;
        __syncthreads();
        if (!is_listed)
            list_cuts(state, pass.targets, listed_most<Key>);
    }
    end_pass(pass.end, pass.counts, [&]() {
        const uint64_t *const found = is_listed ? (const uint64_t *)of_round(round) : (const uint64_t *)state.targets;
        uint64_t *const targets = pass.chain != NULL ? (uint64_t *)pass.chain->targets : pass.end.answer;
        for (uint32_t i = threadIdx.x; i < sizeof(struct order_target) / 8 * pass.targets; i += blockDim.x)
            targets[i] = is_listed ? count_now(&found[i]) : found[i];
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < used; i += blockDim.x)
            of_round(round + 2)[i] = 0;
        for (uint32_t i = threadIdx.x; is_listed && i < sizeof(struct order_target) / 4 * pass.targets; i += blockDim.x)
            of_round(round)[i] = 0;
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
    const struct order_map map = order_map_of(work->type);
    if (work->target_count > ORDER_SEARCH_MOST || end->count != ORDER_SEARCH_COUNTS || work->n > UINT32_MAX || map.flip != 0 || map.add != 0)
        return cudaErrorInvalidValue;
    search_pass pass = {work->x, work->n, work->counts, work->target_count, work->rounds, work->chain, work->chain_elements, work->chain_last,
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
