/* The search for elements of given ranks among keys, in rounds (order_digits.cuh), by blocks that wait for each other. If the open targets' ranges have few
   elements, there is but one more round:

     each block: lists the elements that are in these ranges, and waits until all blocks have
     a block for each target: finds it among those in its range */
#include "kernels/order_digits.cuh"

constexpr int SEARCH_LOADS = 1;

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

/* How many elements are listed at most: the counters' memory has room for them. */
template <class Key> constexpr uint32_t listed_most = ORDER_DIGITS_MOST / (sizeof(Key) == 8 ? 2 : 1);

/* Finds a target among `count` keys of its range, all in shared memory, by digits. Called by all threads with the same. */
template <class Key> static __device__ __forceinline__ void search_alone(struct order_target &target, const Key *keys, uint32_t count)
{
    __shared__ uint32_t digits[SEARCH_THREADS], found[3];
    while (target.low < target.last) {
        struct order_cut cut = {target.low, target.last, 0, 0, 0};
        order_cut_into(&cut, SEARCH_THREADS);
        digits[threadIdx.x] = 0;
        if (threadIdx.x < 3)
            found[threadIdx.x] = 0;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < count; i += SEARCH_THREADS)
            if (keys[i] >= (Key)cut.low && keys[i] <= (Key)cut.last)
                atomicAdd(&digits[(Key)(keys[i] - (Key)cut.low) >> cut.shift], 1u);
        __syncthreads();
        const uint32_t own = digits[threadIdx.x], before = block_running(own) - own;
        const uint64_t wanted = target.rank - target.below;
        if (before <= wanted && wanted < before + own) {
            found[0] = threadIdx.x;
            found[1] = before;
            found[2] = own;
        }
        __syncthreads();
        order_target_narrow(&target, &cut, found[0], found[1], found[2]);
        __syncthreads();
    }
}

/* The last round: finds the open targets among the elements of their ranges. Called by all threads of all blocks. own: shared memory, for listed_most<Key>
   keys. What is known of all targets then is where the next round's counters would be, and must be read when all blocks are done. */
template <class Key, int steps, class Each>
static __device__ __forceinline__ void find_in_list(Each each, const key_cuts<Key> &cuts, const search_state &state, uint32_t targets, Key *own, search_rounds &rounds)
{
    __shared__ uint32_t count, first;
    uint32_t *const all = &rounds.counters(0)[ORDER_DIGITS_MOST], last = cuts.last;
    Key *const list = (Key *)rounds.counters(0);
    struct order_target *const found = (struct order_target *)rounds.counters(1);
    auto is_inside = [&](Key key) {
        const uint32_t c = cuts.template range_of<steps>(key, last);
        return (Key)(key - cuts.lows[c]) <= cuts.widths[c];
    };
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
    rounds.wait();
    constexpr int each_thread = listed_most<Key> / SEARCH_THREADS;
    const uint32_t listed = count_now(all);
    for (uint32_t t = blockIdx.x; t < targets; t += gridDim.x) {
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
            search_alone(target, own, count);
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
    search_rounds rounds(pass.counts);
    for (uint32_t i = threadIdx.x; i < pass.targets; i += blockDim.x)
        state.targets[i] = pass.target[i];
    __syncthreads();
    const cut_array<Key> array(pass.x, pass.chain != NULL ? take_chain(pass, state) : pass.n);
    auto each = [&](auto take) { each_tile<Key, SEARCH_THREADS, SEARCH_LOADS, true>((const Key *)pass.x, array, take); };
    bool is_listed = false;
    auto take = [&](auto steps) {
        constexpr int of_range = decltype(steps)::value;
        is_listed = state.is_last;
        if (is_listed) {
            find_in_list<Key, of_range>(each, cuts, state, pass.targets, (Key *)counters, rounds);
            rounds.end(ORDER_DIGITS_MOST + 1);
        } else {
            const uint32_t last = cuts.last, room = state.room;
            take_round<Key>(each, [&](Key key) { return counter_in<Key, of_range>(cuts, key, last, room); }, state, pass.targets, counters, rounds);
        }
    };
    list_cuts(state, pass.targets, listed_most<Key>);
#pragma unroll 1
    while (state.shape.cuts > 0 && rounds.round < pass.rounds && !is_listed) {
        cuts.take(state.cuts, state.shape.cuts);
        if (state.shape.cuts <= 1 << FEW_STEPS)
            take(std::integral_constant<int, FEW_STEPS>());
        else
            take(std::integral_constant<int, SEARCH_STEPS>());
        if (!is_listed)
            list_cuts(state, pass.targets, listed_most<Key>);
    }
    end_pass(pass.end, pass.counts, [&]() {
        const uint64_t *const found = is_listed ? (const uint64_t *)rounds.counters(0) : (const uint64_t *)state.targets;
        uint64_t *const targets = pass.chain != NULL ? (uint64_t *)pass.chain->targets : pass.end.answer;
        for (uint32_t i = threadIdx.x; i < sizeof(struct order_target) / 8 * pass.targets; i += blockDim.x)
            targets[i] = is_listed ? count_now(&found[i]) : found[i];
        __syncthreads();
        for (uint32_t i = threadIdx.x; is_listed && i < sizeof(struct order_target) / 4 * pass.targets; i += blockDim.x)
            rounds.counters(0)[i] = 0;
        rounds.clear();
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
    return launch_together(blocks_for(array.vectors, SEARCH_THREADS, 1, (uint64_t)multiprocessors), stream,
                           [&](const cudaLaunchConfig_t &config) { return cudaLaunchKernelEx(&config, search_kernel<Key>, pass); });
}

cudaError_t order_search_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    return with_key(work->type, [&](auto key) { return search_start<decltype(key)>(work, end, multiprocessors, stream); });
}
