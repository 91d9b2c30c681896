/* Counts the elements of a table's intervals (fold/order.h).

     each block: copies the table's cells to shared memory, if they fit
     each thread, for its elements: the key; its cell; of an exact table that is the interval
         else the interval, by one comparison with the cell's boundary; of a cell that has several, by bisection
         counters[interval] += 1, in shared memory, where each counter has copies; of very many intervals, in the caller's memory
     each block: adds the sum of each counter's copies to the caller's counter

   Or keeps what is in odd intervals: cells have what they share with one of these, and a warp collects its elements before it takes places for them. */
#include "kernels/order.cuh"

/* What a cell has: where its intervals begin; and of its one boundary the key below it. Of several, the boundaries are looked up. */
template <class Key> struct order_table_cell {
    Key below;
    uint32_t first;
};
constexpr uint32_t SEVERAL = 1u << 31;

template <class Key> struct table_shape {
    static constexpr int loads = order_loads(sizeof(Key)), each = elements_of<Key, loads>;
};

template <class Key> struct table_pass {
    const void *x;
    uint64_t n;
    struct order_map map;
    struct order_table table;
    uint64_t *counts;
    uint32_t first, intervals; /* those that are counted */
    uint32_t copies;           /* of counters in shared memory; 0: they are in the caller's */
    bool shared_cells;
    Key *keys;         /* where kept elements go, */
    uint64_t capacity; /* how many, at most */
    struct order_end end;
};

template <class Key> static __device__ __forceinline__ order_table_cell<Key> cell_of(const struct order_table &table, uint32_t cell)
{
    const uint32_t first = table.cells[cell], end = table.cells[cell + 1];
    const Key boundary = ((const Key *)table.keys)[first];
    const bool above = end > first && boundary == 0; /* every key is at the boundary or behind it */
    order_table_cell<Key> found;
    found.below = end == first || above ? (Key)~(Key)0 : (Key)(boundary - 1);
    found.first = end > first + 1 ? first | SEVERAL : above ? first + 1 : first;
    return found;
}

/* Where a block's shared memory has what: the splits of a guess by key, then cells, then counters. */
static __device__ __forceinline__ struct order_split *shared_splits(const struct order_guess &guess)
{
    extern __shared__ unsigned char bytes[];
    struct order_split *const splits = (struct order_split *)bytes;
    for (uint32_t i = threadIdx.x; i < guess.coarse; i += blockDim.x)
        splits[i] = guess.splits[i];
    return splits;
}
static __host__ __device__ __forceinline__ size_t split_bytes(const struct order_guess &guess) { return ((size_t)guess.coarse + 1) / 2 * 16; }

template <class Element, class Key>
static __device__ __forceinline__ uint32_t guess_cell(typename Element::stored x, Key key, const struct order_guess &guess, const struct order_split *splits)
{
    if (!guess.even)
        return cell_of_key(key, guess, splits);
    if constexpr (ORDER_IS_SHORT(sizeof(x), Element::is_floating ? 'f' : 'i'))
        return order_even_f32((float)Element::load(x), &guess);
    else
        return order_even_f64((double)Element::load(x), &guess);
}

template <class Element, class Key>
__global__ void __launch_bounds__(ORDER_TABLE_SHAPE.threads, ORDER_TABLE_SHAPE.blocks)
    table_kernel(const __grid_constant__ table_pass<Key> pass, const __grid_constant__ cut_array<Key> cut)
{
    extern __shared__ unsigned char bytes[];
    const struct order_table &table = pass.table;
    const uint32_t copy = threadIdx.x % (pass.copies > 0 ? pass.copies : 1);
    const struct order_split *const splits = shared_splits(table.guess);
    order_table_cell<Key> *const cells = (order_table_cell<Key> *)(bytes + split_bytes(table.guess));
    uint32_t *const counters = (uint32_t *)(cells + (pass.shared_cells ? table.guess.cells : 0));
    const bool exact = table.guess.exact;
    for (uint32_t i = threadIdx.x; i < pass.intervals * pass.copies; i += blockDim.x)
        counters[i] = 0;
    for (uint32_t i = threadIdx.x; pass.shared_cells && i < table.guess.cells; i += blockDim.x)
        cells[i] = cell_of<Key>(table, i);
    __syncthreads();
    auto take = [&](const Key (&x)[table_shape<Key>::each], auto there, uint64_t) {
#pragma unroll
        for (int e = 0; e < table_shape<Key>::each; e++) {
            typename Element::stored stored;
            memcpy(&stored, &x[e], sizeof stored);
            const Key key = key_of(x[e], pass.map);
            const uint32_t cell = guess_cell<Element, Key>(stored, key, table.guess, splits);
            uint32_t interval = cell;
            if (!exact) {
                const order_table_cell<Key> found = pass.shared_cells ? cells[cell] : cell_of<Key>(table, cell);
                interval = found.first + (key > found.below);
                if ((found.first & SEVERAL) != 0)
                    interval = interval_of((const Key *)table.keys, found.first & ~SEVERAL, table.cells[cell + 1], key);
            }
            interval -= pass.first; /* less than none is more than all */
            if (!there(e) || interval >= pass.intervals)
                continue;
            if (pass.copies > 0)
                atomicAdd(&counters[interval * pass.copies + copy], 1u);
            else
                atomicAdd((device_count *)&pass.counts[ORDER_FIRST_COUNT + interval], (device_count)1);
        }
    };
    each_tile<Key, ORDER_TABLE_SHAPE.threads, table_shape<Key>::loads, false>((const Key *)pass.x, cut, take);
    __syncthreads();
    for (uint32_t i = threadIdx.x; pass.copies > 0 && i < pass.intervals; i += blockDim.x) {
        uint64_t sum = 0;
        for (uint32_t of = 0; of < pass.copies; of++)
            sum += counters[i * pass.copies + (of + i) % pass.copies];
        add_count(&pass.counts[ORDER_FIRST_COUNT + pass.first + i], sum);
    }
    end_pass(pass.end, pass.counts);
}

/* What a warp has kept of several tiles: room for all that it has of one. */
template <class Key> struct keep_shape {
    static constexpr int warps = ORDER_TABLE_SHAPE.threads / 32, room = 32 * table_shape<Key>::each;
    static constexpr size_t bytes = (size_t)warps * room * sizeof(Key);
};

/* A warp's queue goes to memory. */
template <class Key> static __device__ __forceinline__ void flush(const table_pass<Key> &pass, const Key *queue, uint32_t count)
{
    const uint32_t lane = threadIdx.x % 32;
    uint64_t at = lane == 0 && count > 0 ? atomicAdd((device_count *)&pass.counts[ORDER_KEPT], (device_count)count) : 0;
    __syncwarp();
    at = __shfl_sync(0xffffffffu, at, 0);
    for (uint32_t i = lane; i < count && at + i < pass.capacity; i += 32)
        pass.keys[at + i] = queue[i];
    __syncwarp();
}

template <class Key>
__global__ void __launch_bounds__(ORDER_TABLE_SHAPE.threads, ORDER_TABLE_SHAPE.blocks)
    keep_kernel(const __grid_constant__ table_pass<Key> pass, const __grid_constant__ cut_array<Key> cut)
{
    typedef decltype(odd_of(pass.table, 0, Key())) Odd;
    extern __shared__ unsigned char bytes[];
    const struct order_table &table = pass.table;
    const struct order_split *const splits = shared_splits(table.guess);
    Key *const queue = (Key *)(bytes + split_bytes(table.guess)) + threadIdx.x / 32 * keep_shape<Key>::room;
    Odd *const cells = (Odd *)(bytes + split_bytes(table.guess) + keep_shape<Key>::bytes);
    const uint32_t lane = threadIdx.x % 32;
    uint32_t queued = 0; /* of the warp */
    for (uint32_t i = threadIdx.x; pass.shared_cells && i < table.guess.cells; i += blockDim.x)
        cells[i] = odd_of(table, i, Key());
    __syncthreads();
    auto take = [&](const Key (&x)[table_shape<Key>::each], auto there, uint64_t) {
        uint32_t own = 0; /* a bit for each element that is kept */
#pragma unroll
        for (int e = 0; e < table_shape<Key>::each; e++) {
            const Key key = key_of(x[e], pass.map);
            const uint32_t cell = cell_of_key(key, table.guess, splits);
            const Odd odd = pass.shared_cells ? cells[cell] : odd_of(table, cell, Key());
            bool is_odd = (Key)(key - odd.low) < odd.keys;
            if (odd.keys == (Key)~(Key)0)
                is_odd = interval_of((const Key *)table.keys, table.cells[cell], table.cells[cell + 1], key) % 2 != 0;
            own |= (uint32_t)(there(e) && is_odd) << e;
        }
        if (__ballot_sync(0xffffffffu, own != 0) == 0)
            return;
        uint32_t end = (uint32_t)__popc(own);
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const uint32_t before = __shfl_up_sync(0xffffffffu, end, step);
            end += lane >= (uint32_t)step ? before : 0;
        }
        const uint32_t more = __shfl_sync(0xffffffffu, end, 31);
        if (queued + more > keep_shape<Key>::room) {
            flush(pass, queue, queued);
            queued = 0;
        }
        uint32_t at = queued + end - (uint32_t)__popc(own);
        queued += more;
#pragma unroll
        for (int e = 0; e < table_shape<Key>::each; e++) {
            if ((own >> e & 1) != 0)
                queue[at++] = key_of(x[e], pass.map);
        }
    };
    each_tile<Key, ORDER_TABLE_SHAPE.threads, table_shape<Key>::loads, false>((const Key *)pass.x, cut, take);
    flush(pass, queue, queued);
    end_pass(pass.end, pass.counts);
}

template <class Key, class Kernel>
static cudaError_t table_run(Kernel kernel, const table_pass<Key> &pass, size_t bytes, size_t shared_bytes, int multiprocessors, void *stream)
{
    const cut_array<Key> cut(pass.x, pass.n);
    const uint64_t most = (uint64_t)multiprocessors * (bytes <= shared_bytes / ORDER_TABLE_SHAPE.blocks ? ORDER_TABLE_SHAPE.blocks : 1);
    cudaLaunchConfig_t config =
        launch_config(blocks_for(cut.vectors, ORDER_TABLE_SHAPE.threads, table_shape<Key>::loads, most), ORDER_TABLE_SHAPE.threads, stream);
    config.dynamicSmemBytes = bytes;
    const cudaError_t code = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared_bytes);
    return code != cudaSuccess ? code : cudaLaunchKernelEx(&config, kernel, pass, cut);
}

/* What fits shared memory: one copy of the counters, then the cells, then more copies, as many as keep several blocks on a multiprocessor. Counters that
   do not fit are counted some at a time, in a pass each, or, if they are very many, in the caller's memory. */
template <class Element, class Key>
static cudaError_t table_start(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream)
{
    const struct order_table &table = *work->table;
    const uint32_t all = table.count + 1, most = (uint32_t)((shared_bytes - split_bytes(table.guess)) / sizeof(uint32_t)), passes = (all + most - 1) / most;
    table_pass<Key> pass = {work->x, work->n, order_map_of(work->type), table, work->counts, 0, all, 0, false, NULL, 0, {}};
    pass.copies = passes <= ORDER_TABLE_PASSES;
    if (pass.copies > 0)
        pass.intervals = (all + passes - 1) / passes;
    const size_t counters = pass.intervals * sizeof(uint32_t), splits = split_bytes(table.guess);
    const size_t cells = table.guess.exact ? 0 : table.guess.cells * sizeof(order_table_cell<Key>);
    pass.shared_cells = cells > 0 && splits + pass.copies * counters + cells <= shared_bytes;
    while (pass.copies > 0 && pass.copies < 32 && splits + cells + 2 * pass.copies * counters <= shared_bytes / ORDER_TABLE_SHAPE.blocks)
        pass.copies *= 2;
    const size_t bytes = splits + pass.copies * counters + (pass.shared_cells ? cells : 0);
    cudaError_t code = cudaSuccess;
    for (; pass.first < all && code == cudaSuccess; pass.first += pass.intervals) {
        if (pass.first + pass.intervals >= all) /* the last one */
            pass.end = *end;
        code = table_run(table_kernel<Element, Key>, pass, bytes, shared_bytes, multiprocessors, stream);
    }
    return code;
}

/* Of elements of at least 4 bytes. */
template <class Key>
static cudaError_t keep_start(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream)
{
    const struct order_guess &guess = work->table->guess;
    const size_t least = split_bytes(guess) + keep_shape<Key>::bytes, cells = guess.cells * 2 * sizeof(Key);
    const bool shared_cells = least + cells <= shared_bytes / ORDER_TABLE_SHAPE.blocks;
    const table_pass<Key> pass = {work->x, work->n, order_map_of(work->type), *work->table, work->counts, 0, 0, 0, shared_cells,
                                  (Key *)work->keys, work->capacity, *end};
    return table_run(keep_kernel<Key>, pass, least + (shared_cells ? cells : 0), shared_bytes, multiprocessors, stream);
}

cudaError_t order_table_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream)
{
    if (work->kind == ORDER_KEEP)
        return allfold_type_bytes(work->type) == 8 ? keep_start<uint64_t>(work, end, multiprocessors, shared_bytes, stream)
                                                   : keep_start<uint32_t>(work, end, multiprocessors, shared_bytes, stream);
    return with_element(work->type, [&](auto element) {
        typedef decltype(element) Element;
        return table_start<Element, typename key_type<sizeof(typename Element::stored)>::type>(work, end, multiprocessors, shared_bytes, stream);
    });
}
