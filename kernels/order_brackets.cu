/* Counts the elements below, at the ends of, and in brackets of keys, and keeps those that are inside (fold/order.h).

     each block: makes the brackets of what was found in a sample (of a chain), the scale, and of several brackets the table: order_brackets.cuh
     each thread, for its elements of a tile:
         with indices (top-k): has_some compares them with the bracket's end; in nearly all tiles none is inside
         take_sparse, of one bracket: the key less the bracket's begin: is it behind that, and not beyond the end?
             of several: the key's cell; if that has no key of a bracket, the table says how many brackets begin before it: of few as a number with a digit for each,
             which the thread adds up, else as the place of a counter in shared memory
             of floating-point types the same by value, which multiplications do faster than comparisons: these bring the bracket, and little more, to what lies
             between 0 and 1, all else to 0 or 1; NaN is told by what it leaves behind
             elements that may be inside go to the lane's queue: few
         take_apart, if for many lanes of the warp the tile before had many of these, or NaN: element by element, by key; only what is kept goes to the queue
         empty_queue, if one is nearly full: the lanes of the warp look at what is in theirs: which bracket, which part of it; what is kept is moved together
         store, before the next tile is looked at: what is kept
     each block: adds its counters to the caller's */
#include "kernels/order_brackets.cuh"

/* A thread, which looks at its elements of each tile. */
template <class Key, class Way, bool several, bool indexed> struct bracket_thread {
    static constexpr int each = element_queue<Key, indexed>::each, ahead = 4;
    static constexpr int row = 32 * (int)sizeof(Key); /* bytes between elements of a lane */
    typedef Key tile_elements[each];
    /* What is counted of some elements, apart from ORDER_FROM: few, so that it takes registers only then. The last one: NaNs. */
    typedef uint32_t counted[ORDER_COUNTS + 1];

    const bracket_pass<Key> &pass;
    const bracket_setup<Key> &setup;
    bracket_table<Key, several> &table;
    uint32_t *const totals;
    element_queue<Key, indexed> &queue;
    const uint32_t lane = threadIdx.x % 32;
    const struct order_bracket &only = setup.brackets.list[0]; /* read where it is used, as it would take registers */
    const uint32_t count = setup.brackets.count;
    bool keeps = pass.keys != NULL;
    bool crowded = false; /* of a warp's last tile: for many lanes many elements were inside, or some were NaN */
    uint32_t from = 0;
    float behind = NONE_COUNTED;
    const shared_address start = address_of(&queue.elements[lane]);
    shared_address to = start; /* where the lane's next element goes */
    shared_address counters = start;
    uint32_t mixed = 0;
    struct digit_counts digits = {};
    uint32_t unstored = 0; /* keys at the begin of the queue that are kept; */
    uint64_t unstored_at = 0, unstored_first = 0; /* the place of the first one in the caller's memory, which lane 0 knows; where their tile begins */

    __device__ __forceinline__ void add_up(const counted &own)
    {
#pragma unroll
        for (int i = 0; i <= ORDER_COUNTS; i++)
            if (own[i] > 0)
                atomicAdd(&totals[i], own[i]);
    }

    /* Counts an element that is looked at by key. Whether it is inside; to be kept. */
    __device__ __forceinline__ bool count_key(Key key, bool there, counted &own, bool &is_kept)
    {
        Key at = (Key)(key - (Key)only.low), end = (Key)(only.last - only.low);
        bool is_inside = there && at <= end && count > 0;
        if constexpr (several) {
            const uint32_t b = bracket_of(table, key, count);
            at = (Key)(key - table.lows[b]);
            end = table.widths[b];
            is_inside = there && b > 0 && at <= end;
            if (there)
                add_shared(counters + b * (uint32_t)sizeof table.from[0], 1u);
            if (!is_inside)
                return is_kept = false;
            atomicAdd(&table.inside[b][at == 0 ? ORDER_LOW : at == end ? ORDER_LAST : ORDER_BETWEEN], 1u);
        } else {
            own[ORDER_LOW] += is_inside && at == 0;
            own[ORDER_LAST] += is_inside && at == end && at != 0;
            own[ORDER_BETWEEN] += is_inside && at != end && at != 0;
        }
        is_kept = is_inside && keeps && (setup.brackets.whole || (at != 0 && at != end));
        return is_inside;
    }

    /* Puts element e of the tile into the queue. */
    __device__ __forceinline__ void push(Key x, int e)
    {
        store_shared(to, x);
        if (indexed)
            queue.places[lane + 32 * ((to - start) / row)] = tile_place<Key, ORDER_SHAPE.threads>(e);
        to += row;
    }

    /* Stores the kept keys; with indices also in the answer, as far as it has room. Called when the next tile has been loaded, as it takes time to get their place. */
    __device__ __forceinline__ void store()
    {
        if (unstored == 0)
            return;
        const uint64_t at = __shfl_sync(0xffffffffu, unstored_at, 0), first = unstored_first;
        uint64_t *const indices = pass.end.answer + pass.end.count;
        for (uint32_t i = lane; i < unstored && at + i < pass.capacity; i += 32) {
            pass.keys[at + i] = queue.elements[i];
            if (indexed)
                pass.indices[at + i] = first + queue.places[i];
            if (indexed && at + i < pass.answer_room) {
                indices[at + i] = first + queue.places[i];
                ((Key *)(indices + pass.answer_room))[at + i] = queue.elements[i];
            }
        }
        keeps = at + unstored <= pass.capacity; /* once there is no room, elements are only counted */
        unstored = 0;
        __syncwarp();
    }

    /* The lanes of a warp look at what is in their queue; what is kept is moved together. are_counted: all of it is to be kept. */
    __device__ __forceinline__ void empty_queue(uint64_t first, bool are_counted)
    {
        const uint32_t end_of_lane = lane + 32 * (uint32_t)((to - start) / row);
        uint32_t kept = 0;
        counted own = {};
        for (uint32_t i = lane; __ballot_sync(0xffffffffu, i < end_of_lane) != 0; i += 32) {
            const bool there = i < end_of_lane;
            const Key x = there ? queue.elements[i] : (Key)0, key = key_of(x, pass.map);
            const uint32_t place = indexed && there ? queue.places[i] : 0;
            bool is_kept = there && keeps;
            if (!are_counted) {
                count_key(key, there, own, is_kept);
                if constexpr (is_by_value<Way> && !several && !indexed) /* what has been brought to 1 is counted */
                    own[ORDER_FROM] += there && key >= (Key)only.low && setup.scale.values.place_of(Way::value_of(x)) < 1;
            }
            if (indexed && is_kept)
                is_kept = pass.first + first + place < pass.limit || key < (Key)pass.ties.low || key > (Key)pass.ties.last;
            const uint32_t lanes = __ballot_sync(0xffffffffu, is_kept);
            __syncwarp();
            if (is_kept) { /* it goes to where it is, or to a place before, which has been read */
                const uint32_t next = kept + (uint32_t)__popc(lanes & ((1u << lane) - 1));
                queue.elements[next] = key;
                if (indexed)
                    queue.places[next] = place;
            }
            kept += (uint32_t)__popc(lanes);
        }
        add_up(own);
        if (kept > 0 && lane == 0)
            unstored_at = atomicAdd((device_count *)&pass.counts[ORDER_KEPT], (device_count)kept);
        unstored = kept;
        unstored_first = pass.first + first;
        __syncwarp();
        to = start;
    }

    /* By value NaN has been taken for the least number: if that is not in the queue, NaN goes there now. */
    template <class There> __device__ __forceinline__ void take_nan(const tile_elements &x, There there)
    {
        counted own = {};
        for (int e = 0; e < each; e++) {
            const Key one = pick(x, e);
            if (!there(e) || key_of(one, pass.map) <= pass.last_number)
                continue;
            own[ORDER_COUNTS]++;
            bool is_queued = setup.scale.values.product > 0;
            if constexpr (several)
                is_queued = table.cells[0] == mixed; /* else no bracket begins before it, and what is counted there tells nothing */
            if (!is_queued)
                push(one, e);
        }
        add_up(own);
    }

    /* Looks at a tile element by element. Whether it was crowded, for this lane. beyond: all ties in it lie behind the limit. */
    template <class There> __device__ __forceinline__ bool take_apart(const tile_elements &x, There there, bool beyond)
    {
        counted own = {};
        int inside = 0;
        bool is_kept;
#pragma unroll
        for (int e = 0; e < each; e++) {
            const Key key = key_of(x[e], pass.map);
            own[ORDER_COUNTS] += pass.has_nan && there(e) && key > pass.last_number;
            own[ORDER_FROM] += !several && !indexed && there(e) && key >= (Key)only.low;
            inside += count_key(key, there(e), own, is_kept);
            if (is_kept && !(beyond && key >= (Key)pass.ties.low && key <= (Key)pass.ties.last))
                push(x[e], e);
        }
        add_up(own);
        return own[ORDER_COUNTS] > 0 || inside > each / 4;
    }

    /* Whether some elements may be inside, or are NaN. With indices, a bracket has all beyond one end. */
    __device__ __forceinline__ bool has_some(const tile_elements &x)
    {
        [[maybe_unused]] const Key low = (Key)only.low, width = (Key)(only.last - only.low);
        bool none = true;
#pragma unroll
        for (int e = 0; e < each; e++)
            if constexpr (is_by_value<Way>)
                none = none && Way::value_of(x[e]) * setup.scale.side < setup.scale.limit;
            else
                none = none && (Key)(key_of(x[e], pass.map) - low) > width && !(pass.has_nan && key_of(x[e], pass.map) > pass.last_number);
        return !none;
    }

    /* Of one bracket: counts an element if it begins before that. Whether it may be inside. */
    __device__ __forceinline__ bool count_from(Key x, bool there, const bracket_scale<Key> &scale, Key low, Key width)
    {
        if constexpr (is_by_value<Way>) {
            const float at = scale.values.place_of(Way::value_of(x));
            if (!indexed)
                behind = count_ones(behind, there ? at : 0);
            return fmaf(at, scale.values.sum - at, scale.values.product) > 0;
        } else {
            const Key key = key_of(x, pass.map);
            from += !indexed && there && key >= low;
            return (Key)(key - low) <= width && count > 0;
        }
    }

    /* Counts a tile's elements; those that may be inside go to the queue. Whether it was crowded, for this lane. few: of several brackets. */
    template <bool few, class There> __device__ __forceinline__ bool take_sparse(const tile_elements &x, There there)
    {
        const bracket_scale<Key> scale = setup.scale;
        [[maybe_unused]] const Key low = (Key)only.low, width = (Key)(only.last - only.low);
        [[maybe_unused]] uint32_t found[ahead]; /* in the table, of some elements, and then used: looking takes time */
        float zero = 0; /* NaN if an element is NaN, or infinite */
        const shared_address before = to;
        [[maybe_unused]] counted own = {};
#pragma unroll
        for (int e = 0; e < each; e++) {
            bool may_be_inside;
            for (int i = 0; several && e % ahead == 0 && i < ahead; i++)
                if constexpr (several)
                    found[i] = *(const uint32_t *)((const char *)table.cells + (cell_of<Way>(x[e + i], scale, pass.map) << 2));
            if constexpr (is_by_value<Way>)
                zero = fmaf(Way::value_of(x[e]), 0.0f, zero);
            else if (pass.has_nan)
                own[ORDER_COUNTS] += there(e) && key_of(x[e], pass.map) > pass.last_number;
            if constexpr (several) {
                const uint32_t add = found[e % ahead];
                may_be_inside = add == (few ? 0 : mixed);
                if (few)
                    digits.digits += there(e) ? add : 0;
                else if (there(e)) /* no branch of mixed cells, in which lanes would part */
                    add_shared(counters + add, 1u);
                if (few && e % 8 == 7)
                    digits.widen();
            } else {
                may_be_inside = count_from(x[e], there(e), scale, low, width);
            }
            if (there(e) && may_be_inside)
                push(x[e], e);
        }
        if constexpr (!is_by_value<Way>)
            add_up(own);
        if (zero != 0) {
            take_nan(x, there);
            return true;
        }
        return to - before > each / 4 * row;
    }

    /* Takes the thread's elements of a tile. All threads of a warp call it. */
    template <class There> __device__ __forceinline__ void take(const tile_elements &x, There there, uint64_t first)
    {
        const bool was_crowded = crowded;
        store();
        if (indexed && !was_crowded && __ballot_sync(0xffffffffu, has_some(x)) == 0)
            return;
        const bool few = several && count <= FEW_BRACKETS, beyond = indexed && pass.first + first >= pass.limit;
        const bool is_crowded = was_crowded ? take_apart(x, there, beyond) : few ? take_sparse<several>(x, there) : take_sparse<false>(x, there);
        crowded = __popc(__ballot_sync(0xffffffffu, is_crowded)) > 8;
        if (crowded != was_crowded || __ballot_sync(0xffffffffu, to - start > queue.waiting * row) != 0)
            empty_queue(first, was_crowded);
        if (few && ++digits.tiles == 255 / each)
            digits.add_to(counters);
    }

    /* Behind the last tile. */
    __device__ __forceinline__ void end()
    {
        store();
        empty_queue(0, crowded);
        store();
        if (several)
            digits.add_to(counters);
        from += (uint32_t)(behind - NONE_COUNTED);
        if (from > 0)
            atomicAdd(&totals[ORDER_FROM], from);
    }
};

/* Adds what the block has counted of several brackets to the pass's counters. */
template <class Key> static __device__ __forceinline__ void add_table(several_brackets<Key> &table, uint32_t count, uint64_t *counts)
{
    for (uint32_t b = threadIdx.x / 32 + 1; b <= count; b += ORDER_SHAPE.threads / 32) {
        uint32_t sum = table.from[b][threadIdx.x % 32];
#pragma unroll
        for (int lanes = 16; lanes > 0; lanes /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, lanes);
        table.from[b][threadIdx.x % 32] = sum;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < count * ORDER_COUNTS; i += blockDim.x) {
        const uint32_t b = i / ORDER_COUNTS + 1, of = i % ORDER_COUNTS;
        uint32_t sum = table.inside[b][of];
        for (uint32_t next = b; of == ORDER_FROM && next <= count; next++)
            sum += table.from[next][0];
        add_count(&counts[ORDER_FIRST_COUNT + i], sum);
    }
}

template <class Key, class Way, bool several, bool indexed>
__global__ void __launch_bounds__(ORDER_SHAPE.threads, ORDER_SHAPE.blocks)
    bracket_kernel(const __grid_constant__ bracket_pass<Key> pass, const __grid_constant__ cut_array<Key> cut)
{
    constexpr int threads = ORDER_SHAPE.threads, loads = element_queue<Key, indexed>::loads;
    __shared__ element_queue<Key, indexed> queues[threads / 32];
    __shared__ bracket_table<Key, several> table;
    __shared__ uint32_t totals[ORDER_COUNTS + 1]; /* the last one: NaNs */
    __shared__ bracket_setup<Key> setup;
    __shared__ uint32_t tiles[2];
    element_queue<Key, indexed> &queue = queues[threadIdx.x / 32];
    if (threadIdx.x <= ORDER_COUNTS)
        totals[threadIdx.x] = 0;
    set_up<Way, several>(setup, pass, (struct order_target *)queues);
    if (!setup.scale.is_known) { /* of a chain: the host will see */
        end_pass(pass.end, pass.counts);
        return;
    }
    if constexpr (several)
        make_table<Way>(table, setup, pass.map);
    __syncthreads();
    bracket_thread<Key, Way, several, indexed> thread = {pass, setup, table, totals, queue};
    if constexpr (several) {
        thread.counters = address_of(&table.from[0][thread.lane]);
        thread.mixed = table.mixed;
    }
    auto take = [&](const auto &x, auto there, uint64_t first) { thread.take(x, there, first); };
    if constexpr (several) /* which computes more: all blocks are as fast */
        each_tile<Key, threads, loads, true>(pass.x, cut, take, tiles_in_turn());
    else
        each_tile<Key, threads, loads, true>(pass.x, cut, take, tiles_left(pass.taken, tiles, tiles_of<Key, threads, loads>(cut)));
    thread.end();
    __syncthreads();
    if constexpr (several)
        add_table(table, thread.count, pass.counts);
    else if (thread.count > 0 && threadIdx.x < ORDER_COUNTS)
        add_count(&pass.counts[ORDER_FIRST_COUNT + threadIdx.x], totals[threadIdx.x]);
    if (threadIdx.x == 0)
        add_count(&pass.counts[ORDER_NANS], totals[ORDER_COUNTS]);
    if (indexed)
        __threadfence_system(); /* the host will read what was kept */
    end_pass(pass.end, pass.counts);
}

template <class Way, class Key> static cudaError_t way_start(const bracket_pass<Key> &pass, const cut_array<Key> &cut, bool several, void *stream)
{
    const uint64_t blocks = blocks_for(cut.vectors, ORDER_SHAPE.threads, order_loads(sizeof(Key)), (uint64_t)pass.multiprocessors * ORDER_SHAPE.blocks);
    const cudaLaunchConfig_t config = launch_config(blocks, ORDER_SHAPE.threads, stream);
    const auto kernel = several ? bracket_kernel<Key, Way, true, false> : pass.indices != NULL ? bracket_kernel<Key, Way, false, true> : bracket_kernel<Key, Way, false, false>;
    return cudaLaunchKernelEx(&config, kernel, pass, cut);
}

template <class Element> static cudaError_t brackets_start(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    typedef typename key_type<sizeof(typename Element::stored)>::type Key;
    struct order_chain *const chain = work->chain;
    const cut_array<Key> cut(work->x, work->n);
    const bool several = chain != NULL ? work->q_count > 1 : work->brackets->count > 1, is_top = chain != NULL && work->q_count == 0;
    const struct order_brackets to_make = {0, is_top, {}};
    uint64_t *const taken = chain != NULL ? &chain->more[ORDER_MORE_COUNTS - 2] : end->answer != NULL ? &work->counts[end->count - 2] : NULL;
    const bracket_pass<Key> pass = {(const Key *)work->x, work->first, work->n, order_map_of(work->type), (Key)order_last(work->type),
                                    order_last(work->type) < order_most(work->type), (uint32_t)multiprocessors, chain != NULL ? to_make : *work->brackets, chain, is_top,
                                    work->smallest, order_space_of(work->type), work->ties, work->limit, work->counts, taken,
                                    (Key *)work->keys, work->indices, work->capacity, work->answer_room, *end};
    if (several && work->indices != NULL)
        return cudaErrorInvalidValue;
    if constexpr (Element::is_floating) {
        struct value_map values;
        if (chain != NULL || map_values<by_value<Element>>(pass.brackets, pass, several, &values))
            return way_start<by_value<Element>>(pass, cut, several, stream);
    }
    return way_start<by_key>(pass, cut, several, stream);
}

cudaError_t order_brackets_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, void *stream)
{
    return with_element(work->type, [&](auto element) { return brackets_start<decltype(element)>(work, end, multiprocessors, stream); });
}
