/* Counts the elements of a table's intervals (fold/order.h).

     each block: copies the table's cells to shared memory, if they fit
     each thread, for its elements: the key; its cell, guessed from the value; the interval, by one comparison with the cell's boundary
         of a cell that has several boundaries: by bisection
         counters[interval] += 1, in shared memory, where each counter has copies; of very many intervals, in the caller's memory
     each block: adds the sum of each counter's copies to the caller's counter

   Or keeps what is in odd intervals: lanes say how many of their elements are, and a warp takes places for all of them at once. */
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
    uint64_t capacity; /* so many at most */
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

template <class Element, class Key>
static __device__ __forceinline__ uint32_t guess_cell(typename Element::stored x, Key key, const struct order_guess &guess, bool by_value)
{
    if (!by_value)
        return order_cell_key(key, &guess);
    if constexpr (ORDER_IS_SHORT(sizeof(x), Element::is_floating ? 'f' : 'i'))
        return order_cell_f32((float)Element::load(x), &guess);
    else
        return order_cell_f64((double)Element::load(x), &guess);
}

template <class Element, class Key>
__global__ void __launch_bounds__(ORDER_TABLE_SHAPE.threads, ORDER_TABLE_SHAPE.blocks)
    table_kernel(const __grid_constant__ table_pass<Key> pass, const __grid_constant__ cut_array<Key> cut)
{
    extern __shared__ unsigned char bytes[];
    const struct order_table &table = pass.table;
    const uint32_t copy = threadIdx.x % (pass.copies > 0 ? pass.copies : 1);
    order_table_cell<Key> *const cells = (order_table_cell<Key> *)bytes;
    uint32_t *const counters = (uint32_t *)(bytes + (pass.shared_cells ? table.guess.cells * sizeof *cells : 0));
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
            const uint32_t cell = guess_cell<Element, Key>(stored, key, table.guess, table.guess.by_value);
            const order_table_cell<Key> found = pass.shared_cells ? cells[cell] : cell_of<Key>(table, cell);
            uint32_t interval = found.first + (key > found.below);
            if ((found.first & SEVERAL) != 0)
                interval = interval_of((const Key *)table.keys, found.first & ~SEVERAL, table.cells[cell + 1], key);
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

template <class Element, class Key>
__global__ void __launch_bounds__(ORDER_TABLE_SHAPE.threads, ORDER_TABLE_SHAPE.blocks)
    keep_kernel(const __grid_constant__ table_pass<Key> pass, const __grid_constant__ cut_array<Key> cut)
{
    extern __shared__ unsigned char bytes[];
    const struct order_table &table = pass.table;
    typedef decltype(odd_of(table, 0, Key())) Odd;
    Odd *const cells = (Odd *)bytes;
    const uint32_t lane = threadIdx.x % 32;
    for (uint32_t i = threadIdx.x; pass.shared_cells && i < table.guess.cells; i += blockDim.x)
        cells[i] = odd_of(table, i, Key());
    __syncthreads();
    auto take = [&](const Key (&x)[table_shape<Key>::each], auto there, uint64_t) {
        uint32_t own = 0; /* a bit for each element that is kept */
#pragma unroll
        for (int e = 0; e < table_shape<Key>::each; e++) {
            typename Element::stored stored;
            memcpy(&stored, &x[e], sizeof stored);
            const Key key = key_of(x[e], pass.map);
            const uint32_t cell = guess_cell<Element, Key>(stored, key, table.guess, Element::is_floating && table.guess.by_value);
            const Odd odd = pass.shared_cells ? cells[cell] : odd_of(table, cell, Key());
            bool is_odd = (Key)(key - odd.low) < odd.keys;
            if (odd.keys == (Key)~(Key)0)
                is_odd = interval_of((const Key *)table.keys, table.cells[cell], table.cells[cell + 1], key) % 2 != 0;
            own |= (uint32_t)(there(e) && is_odd) << e;
        }
        if (__ballot_sync(0xffffffffu, own != 0) == 0)
            return;
        const uint32_t count = (uint32_t)__popc(own);
        uint32_t end = count;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const uint32_t before = __shfl_up_sync(0xffffffffu, end, step);
            end += lane >= (uint32_t)step ? before : 0;
        }
        uint64_t at = lane == 31 ? atomicAdd((device_count *)&pass.counts[ORDER_KEPT], (device_count)end) : 0;
        at = __shfl_sync(0xffffffffu, at, 31) + end - count;
#pragma unroll
        for (int e = 0; e < table_shape<Key>::each; e++) {
            if ((own >> e & 1) != 0 && at < pass.capacity)
                pass.keys[at++] = key_of(x[e], pass.map);
        }
    };
    each_tile<Key, ORDER_TABLE_SHAPE.threads, table_shape<Key>::loads, false>((const Key *)pass.x, cut, take);
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
    const uint32_t all = table.count + 1, most = (uint32_t)(shared_bytes / sizeof(uint32_t)), passes = (all + most - 1) / most;
    table_pass<Key> pass = {work->x, work->n, order_map_of(work->type), table, work->counts, 0, all, 0, false, NULL, 0, {}};
    pass.copies = passes <= ORDER_TABLE_PASSES;
    if (pass.copies > 0)
        pass.intervals = (all + passes - 1) / passes;
    const size_t counters = pass.intervals * sizeof(uint32_t), cells = table.guess.cells * sizeof(order_table_cell<Key>);
    pass.shared_cells = pass.copies * counters + cells <= shared_bytes;
    while (pass.copies > 0 && pass.copies < 32 && cells + 2 * pass.copies * counters <= shared_bytes / ORDER_TABLE_SHAPE.blocks)
        pass.copies *= 2;
    const size_t bytes = pass.copies * counters + (pass.shared_cells ? cells : 0);
    cudaError_t code = cudaSuccess;
    for (; pass.first < all && code == cudaSuccess; pass.first += pass.intervals) {
        if (pass.first + pass.intervals >= all) /* the last one */
            pass.end = *end;
        code = table_run(table_kernel<Element, Key>, pass, bytes, shared_bytes, multiprocessors, stream);
    }
    return code;
}

template <class Element, class Key>
static cudaError_t keep_start(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream)
{
    const size_t cells = work->table->guess.cells * 2 * sizeof(Key);
    const bool shared_cells = cells <= shared_bytes / ORDER_TABLE_SHAPE.blocks;
    const table_pass<Key> pass = {work->x, work->n, order_map_of(work->type), *work->table, work->counts, 0, 0, 0, shared_cells,
                                  (Key *)work->keys, work->capacity, *end};
    return table_run(keep_kernel<Element, Key>, pass, shared_cells ? cells : 0, shared_bytes, multiprocessors, stream);
}

cudaError_t order_table_launch(const struct order_work *work, const struct order_end *end, int multiprocessors, size_t shared_bytes, void *stream)
{
    const bool keeps = work->kind == ORDER_KEEP;
    const allfold_type as = keeps && order_space_of(work->type).kind != 'f' ? order_key_type(work->type) : work->type; /* integers are looked at by key */
    return with_element(as, [&](auto element) {
        typedef decltype(element) Element;
        typedef typename key_type<sizeof(typename Element::stored)>::type Key;
        if (!keeps)
            return table_start<Element, Key>(work, end, multiprocessors, shared_bytes, stream);
        if constexpr (sizeof(Key) >= 4 && (Element::is_floating || std::is_same<typename Element::stored, Key>::value))
            return keep_start<Element, Key>(work, end, multiprocessors, shared_bytes, stream);
        return cudaErrorInvalidValue;
    });
}
