/* The samples of chains (fold/order.h): vectors from all over the array, loaded as a whole.

   Of quantiles, pieces of 32 bytes, which memory brings to the multiprocessor for one element, too. Blocks wait for each other:

     each block: loads its pieces, whose keys it keeps in shared memory
     a round or two of a search (order_digits.cuh): where the quantiles of the sample are, roughly
     each block: how many elements of some of its pieces lie below each. Their variance tells how far neighbours are alike, so how wide brackets must be
     rounds of a search: the elements of the sample at the brackets' ends

   Of top-k, single vectors: each block has a group of the sample, of which it writes the largest element; the last block finds among these the one of a given
   rank. What lies beyond it is in as many vectors, so neighbours that are alike make what the pass keeps more, not less. */
#include "kernels/order_digits.cuh"

constexpr int SAMPLE_LOADS = 4; /* vectors that a thread loads together, as they lie apart */
constexpr uint32_t PIECE_VECTORS = 2;
static_assert(32 % PIECE_VECTORS == 0, "neighbours in a warp have a piece");

template <class Key> constexpr uint32_t keys_of_vector = 16 / (uint32_t)sizeof(Key);

template <class Key> struct sample_pass {
    const Key *x; /* where pieces may begin */
    struct order_map map;
    uint64_t pieces, stride; /* how many, one of each `stride` */
    struct order_chain *chain;
    uint64_t *counts; /* of rounds */
    struct order_end end;
    bool smallest; /* of top-k, as the next two: */
    Key *largest;  /* of each group */
    struct order_target target;
    uint32_t count, rounds; /* of quantiles; of the second search */
    double q[ORDER_CHAIN_BRACKETS];
};

/* Chooses pieces of `vectors` vectors, which begin at a multiple of their size, with at most work->sample elements, and no more than `most` pieces. */
template <class Key> static void choose_pieces(sample_pass<Key> *pass, const struct order_work *work, uint64_t vectors, uint64_t most)
{
    const cut_array<Key> cut(work->x, work->n);
    const uint64_t off = (uint64_t)(uintptr_t)((const Key *)work->x + cut.head) / sizeof(uint4) % vectors, skipped = off > 0 ? vectors - off : 0;
    const uint64_t all = cut.vectors > skipped ? (cut.vectors - skipped) / vectors : 0;
    const uint64_t wanted = work->sample / (vectors * keys_of_vector<Key>), fit = wanted < most ? wanted : most;
    pass->x = (const Key *)work->x + cut.head + skipped * keys_of_vector<Key>;
    pass->map = order_map_of(work->type);
    pass->stride = fit > 0 && all > fit ? (all + fit - 1) / fit : 1;
    pass->pieces = fit > 0 ? all / pass->stride : 0;
}

/* Calls take(keys, i) for those of `count` vectors that are the thread's, one of `step`, and has(i). Vector i is at place_of(i). Several are loaded together. */
template <class Index, class Key, class Has, class PlaceOf, class Take>
static __device__ __forceinline__ void each_vector(const sample_pass<Key> &pass, uint32_t step, Index count, Has has, PlaceOf place_of, Take take)
{
#pragma unroll 1
    for (Index first = threadIdx.x; first < count; first += SAMPLE_LOADS * step) {
        uint4 loaded[SAMPLE_LOADS];
#pragma unroll
        for (uint32_t s = 0; s < SAMPLE_LOADS; s++)
            if (has(first + s * step))
                loaded[s] = load_read_only(pass.x + place_of(first + s * step) * keys_of_vector<Key>);
#pragma unroll
        for (uint32_t s = 0; s < SAMPLE_LOADS; s++) {
            Key keys[keys_of_vector<Key>];
#pragma unroll
            for (int e = 0; e < (int)keys_of_vector<Key>; e++)
                keys[e] = key_of(vector_element<Key>(loaded[s], e), pass.map);
            if (has(first + s * step))
                take(keys, first + s * step);
        }
    }
}

/* The range of keys that a first search has cut, and which has nearly all of the sample; and what is counted of it. */
struct sample_root {
    struct order_cut cut;
    uint64_t below, count;
};

/* What a thread knows of its block. All threads call each method. */
template <class Key> struct sample_block {
    static constexpr uint32_t per = keys_of_vector<Key>;
    const sample_pass<Key> &pass;
    uint4 *const vectors;     /* the keys of its pieces; in shared memory, as the next four */
    uint32_t *const counters; /* of a search, or their running sums */
    key_cuts<Key> &cuts;
    search_state &state;
    sample_root &root;
    search_rounds rounds;
    const uint64_t found = pass.pieces * PIECE_VECTORS * per; /* elements of the sample; vectors of the block: */
    const uint32_t own = blockIdx.x < pass.pieces ? (uint32_t)((pass.pieces - 1 - blockIdx.x) / gridDim.x + 1) * PIECE_VECTORS : 0;
    /* This and the next call take(keys, there, ...) for all keys, as each_tile does. */
    template <class Take> __device__ __forceinline__ void load(Take take) const
    {
        auto piece_of = [&](uint32_t at) { return order_sample_place(blockIdx.x + (uint64_t)(at / PIECE_VECTORS) * gridDim.x, pass.stride); };
        auto place_of = [&](uint32_t at) { return piece_of(at) * PIECE_VECTORS + at % PIECE_VECTORS; };
        each_vector(pass, SEARCH_THREADS, own, [&](uint32_t at) { return at < own; }, place_of, [&](const Key (&keys)[per], uint32_t at) {
            memcpy(&vectors[at], keys, sizeof keys);
            take(keys, all_there(), 0);
        });
    }
    template <class Take> __device__ __forceinline__ void each(Take take) const
    {
        for (uint32_t at = threadIdx.x; at < own; at += SEARCH_THREADS) {
            Key keys[per];
            memcpy(keys, &vectors[at], sizeof keys);
            take(keys, all_there(), 0);
        }
    }
    /* Where the quantiles of the sample are, roughly: while one digit has nearly all. */
    __device__ __forceinline__ void search_roughly()
    {
        constexpr uint32_t most = (8 * sizeof(Key) + 12) / 13; /* rounds: all bits */
        if (threadIdx.x < pass.count)
            state.targets[threadIdx.x] = {found > 0 ? (uint64_t)(pass.q[threadIdx.x] * (double)(found - 1)) : 0, 0, (Key)~(Key)0, 0, found, found / 8 * 7};
        __syncthreads();
#pragma unroll 1
        for (list_cuts(state, pass.count, 0); state.shape.cuts > 0 && most > rounds.round; list_cuts(state, pass.count, 0)) {
            for (uint32_t i = 0; i < pass.count && threadIdx.x == 0; i++)
                if (order_target_is_open(&state.targets[i]))
                    root = {state.cuts[0], state.targets[i].below, state.targets[i].count};
            cuts.take(state.cuts, 1);
            const Key low = cuts.lows[0];
            const uint32_t shift = cuts.shifts[0], room = state.room;
            auto counter_of = [&](Key key) { return (Key)((Key)(key - low) >> shift) < room ? (uint32_t)((Key)(key - low) >> shift) : NO_COUNTER; };
            if (rounds.round == 0)
                take_round<Key>([&](auto take) { load(take); }, counter_of, state, pass.count, counters, rounds);
            else
                take_round<Key>([&](auto take) { each(take); }, counter_of, state, pass.count, counters, rounds);
        }
    }
    /* For each quantile, of some pieces from all over the block's, the sums of their elements up to that edge, and of squares. How many pieces, of all blocks. */
    __device__ __forceinline__ uint64_t look_at_pieces(const Key *edges)
    {
        __shared__ uint32_t sums[ORDER_CHAIN_BRACKETS], squares[ORDER_CHAIN_BRACKETS];
        constexpr uint32_t all = 0xffffffffu, most = SEARCH_THREADS / PIECE_VECTORS, piece = PIECE_VECTORS * per;
        static_assert(32 / PIECE_VECTORS * piece * piece <= 1 << 15, "16 bits hold the squares of a warp's pieces");
        Key keys[per] = {};
        const bool there = threadIdx.x < own;
        const uint32_t pieces = own / PIECE_VECTORS, place = threadIdx.x / PIECE_VECTORS * (pieces > most ? pieces : most) / most;
        if (there)
            memcpy(keys, &vectors[place * PIECE_VECTORS + threadIdx.x % PIECE_VECTORS], sizeof keys);
        for (uint32_t i = threadIdx.x; i < pass.count; i += blockDim.x)
            sums[i] = squares[i] = 0;
        __syncthreads();
        for (uint32_t i = 0; i < pass.count; i++) {
            const Key edge = edges[i];
            uint32_t count = 0;
#pragma unroll
            for (int e = 0; e < (int)per; e++)
                count += there && keys[e] <= edge;
#pragma unroll
            for (uint32_t lanes = 1; lanes < PIECE_VECTORS; lanes *= 2)
                count += __shfl_xor_sync(all, count, lanes);
            uint32_t both = count * count << 16 | count;
#pragma unroll
            for (uint32_t lanes = PIECE_VECTORS; lanes < 32; lanes *= 2)
                both += __shfl_xor_sync(all, both, lanes);
            if (threadIdx.x % 32 == 0) {
                atomicAdd(&sums[i], both & 0xffff);
                atomicAdd(&squares[i], both >> 16);
            }
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < pass.count; i += blockDim.x)
            add_count(&pass.chain->spread[i], (uint64_t)squares[i] << 32 | sums[i]);
        rounds.wait();
        return pass.pieces < (uint64_t)most * gridDim.x ? pass.pieces : (uint64_t)most * gridDim.x;
    }
    /* Narrows a target of the sample to a digit of the root, or to what lies before or behind that. */
    __device__ __forceinline__ void narrow(struct order_target &target) const
    {
        const uint64_t behind = root.below + root.count;
        if (target.rank < root.below) {
            target.last = root.cut.low - 1;
            target.count = root.below;
        } else if (target.rank >= behind) {
            target.low = root.cut.last + 1;
            target.below = behind;
            target.count = found - behind;
        } else {
            target.below = root.below;
            find_digit(&target, root.cut, counters);
        }
    }
    /* The targets at the ends of brackets around the quantiles that the first search has found roughly. How many pairs. */
    __device__ __forceinline__ uint32_t take_targets()
    {
        __shared__ Key edges[ORDER_CHAIN_BRACKETS];
        __shared__ double offs[ORDER_CHAIN_BRACKETS];
        __shared__ uint32_t pairs;
        const uint32_t i = threadIdx.x;
        if (i < pass.count) { /* the end of the digit that is nearer */
            const struct order_target &target = state.targets[i];
            const bool is_low = target.below > 0 && target.rank - target.below < target.count / 2;
            edges[i] = (Key)(is_low ? target.low - 1 : target.last);
        }
        __syncthreads();
        const uint64_t looked = look_at_pieces(edges);
        if (i < pass.count) {
            const uint64_t spread = count_now(&pass.chain->spread[i]);
            offs[i] = order_sample_off(pass.q[i], found, order_sample_spread(spread >> 32, (uint32_t)spread, looked, PIECE_VECTORS * per));
        }
        __syncthreads();
        if (i < pass.count)
            order_sample_pair(&state.targets[2 * i], pass.q[i], order_sample_part(offs, pass.count) * offs[i], found, (Key)~(Key)0);
        __syncthreads();
        if (i == 0)
            pairs = found > 0 ? order_sample_join(state.targets, pass.count) : 0;
        __syncthreads();
        if (i < 2 * pairs)
            narrow(state.targets[i]);
        __syncthreads();
        return pairs;
    }
    /* Which target's range each digit of the root is. False: some ranges are not digits of that. */
    __device__ __forceinline__ bool make_table(uint8_t *ranges) const
    {
        __shared__ bool are_digits;
        for (uint32_t i = threadIdx.x; i < ORDER_DIGITS_MOST; i += blockDim.x)
            ranges[i] = UINT8_MAX;
        if (threadIdx.x == 0)
            are_digits = true;
        __syncthreads();
        if (threadIdx.x < state.shape.cuts) {
            const uint64_t low = state.cuts[threadIdx.x].low;
            if (low >= root.cut.low && low <= root.cut.last)
                ranges[(low - root.cut.low) >> root.cut.shift] = (uint8_t)threadIdx.x;
            else
                are_digits = false;
        }
        __syncthreads();
        return are_digits;
    }
    /* The elements of the sample at its targets: a search, whose first round finds ranges in a table, if they are digits. */
    __device__ __forceinline__ void search_targets(uint32_t targets)
    {
        __shared__ uint8_t ranges[ORDER_DIGITS_MOST];
        const uint32_t before = rounds.round;
        auto each_key = [&](auto take) { each(take); };
#pragma unroll 1
        for (list_cuts(state, targets, 0); state.shape.cuts > 0 && rounds.round - before < pass.rounds; list_cuts(state, targets, 0)) {
            const bool are_digits = rounds.round == before && make_table(ranges);
            cuts.take(state.cuts, state.shape.cuts);
            const Key low = (Key)root.cut.low;
            const uint32_t shift = root.cut.shift, room = state.room, last = cuts.last;
            auto counter_of_digit = [&](Key key) {
                const Key digit = (Key)((Key)(key - low) >> shift);
                const uint32_t c = digit < ORDER_DIGITS_MOST ? ranges[digit] : UINT8_MAX;
                return c <= last ? c * room + (uint32_t)((Key)(key - cuts.lows[c]) >> cuts.shifts[c]) : NO_COUNTER;
            };
            if (are_digits)
                take_round<Key>(each_key, counter_of_digit, state, targets, counters, rounds);
            else
                take_round<Key>(each_key, [&](Key key) { return counter_in<Key, SEARCH_STEPS>(cuts, key, last, room); }, state, targets, counters, rounds);
        }
    }
};

template <class Key> __global__ void __launch_bounds__(SEARCH_THREADS, 1) pieces_kernel(const __grid_constant__ sample_pass<Key> pass)
{
    extern __shared__ __align__(16) unsigned char bytes[];
    __shared__ __align__(16) uint32_t counters[DIGITS_COUNTERS];
    __shared__ key_cuts<Key> cuts;
    __shared__ search_state state;
    __shared__ sample_root root;
    sample_block<Key> block = {pass, (uint4 *)bytes, counters, cuts, state, root, search_rounds(pass.counts)};
    block.search_roughly();
    const uint32_t pairs = block.take_targets();
    block.search_targets(2 * pairs);
    end_pass(pass.end, pass.counts, [&]() {
        for (uint32_t i = threadIdx.x; i < 2 * pairs; i += blockDim.x)
            pass.chain->targets[i] = state.targets[i];
        if (threadIdx.x == 0) {
            pass.chain->pairs = pairs;
            pass.chain->sampled = block.found;
        }
        block.rounds.clear();
    });
}

template <class Key>
static cudaError_t sample_start(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream)
{
    sample_pass<Key> pass = {};
    pass.chain = work->chain;
    pass.counts = work->counts;
    pass.end = *end;
    pass.rounds = work->rounds;
    pass.count = work->q_count;
    if (pass.count > ORDER_CHAIN_BRACKETS || end->count != ORDER_SEARCH_COUNTS)
        return cudaErrorInvalidValue;
    memcpy(pass.q, work->q, pass.count * sizeof *pass.q);
    const size_t piece = PIECE_VECTORS * sizeof(uint4), small = 1 << 10;
    const size_t own = sizeof(uint32_t) * DIGITS_COUNTERS + ORDER_DIGITS_MOST + sizeof(key_cuts<Key>) + sizeof(search_state) + small; /* of a block, besides */
    const uint64_t room = (shared_bytes - own) / piece;
    const cudaError_t code = cudaFuncSetAttribute((const void *)pieces_kernel<Key>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)(room * piece));
    return code != cudaSuccess ? code : launch_together((uint64_t)multiprocessors, stream, [&](cudaLaunchConfig_t config) {
        const uint64_t blocks = config.gridDim.x;
        choose_pieces(&pass, work, PIECE_VECTORS, room * blocks);
        config.dynamicSmemBytes = (pass.pieces + blocks - 1) / blocks * piece;
        return cudaLaunchKernelEx(&config, pieces_kernel<Key>, pass);
    });
}

/* ---- top-k: neighbours are in different groups, so that the largest of a sorted array are, too; and a group has no period */
template <class Key> __global__ void __launch_bounds__(ORDER_CHAIN_GROUPS) top_kernel(const __grid_constant__ sample_pass<Key> pass)
{
    __shared__ Key largest[ORDER_CHAIN_GROUPS];
    const Key flip = pass.smallest ? (Key)~(Key)0 : (Key)0;
    auto piece_of = [](uint64_t row) { return row * ORDER_CHAIN_GROUPS + (blockIdx.x + row) % ORDER_CHAIN_GROUPS; };
    auto place_of = [&](uint64_t row) { return order_sample_place(piece_of(row), pass.stride); };
    uint64_t own = 0, rows = (pass.pieces + ORDER_CHAIN_GROUPS - 1) / ORDER_CHAIN_GROUPS;
    each_vector(pass, blockDim.x, rows, [&](uint64_t row) { return piece_of(row) < pass.pieces; }, place_of, [&](const auto &keys, uint64_t) {
#pragma unroll
        for (int e = 0; e < (int)keys_of_vector<Key>; e++)
            own = (Key)(keys[e] ^ flip) > own ? (Key)(keys[e] ^ flip) : own;
    });
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2) {
        const uint64_t other = __shfl_xor_sync(0xffffffffu, own, lanes);
        own = other > own ? other : own;
    }
    if (threadIdx.x % 32 == 0)
        largest[threadIdx.x / 32] = (Key)own;
    __syncthreads();
    for (uint32_t warp = 0; warp < blockDim.x / 32 && threadIdx.x == 0; warp++)
        own = largest[warp] > own ? largest[warp] : own;
    if (threadIdx.x == 0)
        pass.largest[blockIdx.x] = (Key)own;
    end_pass(pass.end, pass.counts, [&]() {
        const Key key = count_now(&pass.largest[threadIdx.x]);
        uint32_t rank = 0, at_least = 0;
        largest[threadIdx.x] = key;
        __syncthreads();
#pragma unroll 16
        for (uint32_t i = 0; i < ORDER_CHAIN_GROUPS; i++) {
            at_least += largest[i] >= key;
            rank += largest[i] > key || (largest[i] == key && i < threadIdx.x);
        }
        if (rank == pass.target.rank) {
            struct order_target target = pass.target;
            target.low = target.last = (Key)(key ^ flip);
            target.count = at_least;
            *(struct order_target *)pass.end.answer = target;
            pass.counts[pass.end.count - 1] = 0;
        }
    });
}

template <class Key> static cudaError_t top_start(const struct order_work *work, const struct order_end *end, void *stream)
{
    sample_pass<Key> pass = {};
    choose_pieces(&pass, work, 1, UINT64_MAX);
    pass.counts = work->counts;
    pass.end = *end;
    pass.smallest = work->smallest;
    pass.largest = (Key *)work->keys;
    pass.target = *work->targets;
    const cudaLaunchConfig_t groups = launch_config(ORDER_CHAIN_GROUPS, ORDER_CHAIN_GROUPS, stream);
    return cudaLaunchKernelEx(&groups, top_kernel<Key>, pass);
}

cudaError_t order_sample_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream)
{
    return with_key(work->type, [&](auto key) {
        typedef decltype(key) Key;
        return work->q_count > 0 ? sample_start<Key>(work, end, multiprocessors, shared_bytes, stream) : top_start<Key>(work, end, stream);
    });
}
