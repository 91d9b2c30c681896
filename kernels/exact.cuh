/* The kernel of exact sums. Included by fold_family.cuh.

     each thread: adds its elements to its windows (src/fold/exact.h), round by round. Rounds are its block's, or are claimed
         what windows do not hold goes to a column of words (64-bit integers) or bins (doubles) in shared memory. A column belongs to
         one thread; or, if it is long, to the same lane of all warps of the block, which add to it by atomics
     each block: adds up the windows of each warp as integers, and columns row by row
         adds these words to those of all blocks, in scratch memory, by atomics
     the last block: sends the words to the host, with the extremes and indices of all blocks, and clears scratch for the next launch

   The order of additions depends on timing; the sum does not, because integers are added. */
#pragma once

#include "kernels/exact_monoid.cuh"
#include "kernels/fold_family.h"

/* What the blocks share; zero before and after every launch. */
struct exact_scratch {
    unsigned long long claimed; /* chunks, beyond the first of each block */
    unsigned int ticket, most[4], unused[9]; /* most: compare_aside */
    unsigned long long words[PARTIAL_BYTES_MAX / 8];
};
constexpr size_t EXACT_SCRATCH_BYTES = (sizeof(struct exact_scratch) + 255) / 256 * 256;
/* Scratch memory begins with messages: those of a fold's blocks, which carry ordered partials, or of softmax in one launch. */
static inline size_t fold_messages_bytes(int multiprocessors)
{
    static_assert(2 * sizeof(struct fold_message) >= FOLD_BLOCKS_MAX * STRUCT_BYTES_MAX * 2, "room for those of blocks that stay");
    static_assert(2 * sizeof(struct fold_message) >= FOLD_WAVES.most * CHEAP_PARTIAL_BYTES * 2, "and of those that end");
    return (2 * (size_t)multiprocessors + 1) * sizeof(struct fold_message);
}
/* Behind it: blocks' ordered data, beside their words. */
constexpr size_t EXACT_ENDS_BYTES = 192;

template <class Exact, class Element> struct exact_plan {
    static constexpr struct exact_shape shape =
        exact_shape_of(Exact::cost, sizeof(typename Exact::value), sizeof(typename Element::stored));
    typedef input_of<Element, Exact::operands> input;
    static constexpr int threads = shape.threads, blocks = shape.blocks, vectors = vectors_of_each(shape.vectors, Exact::operands);
    static constexpr int vectors_per_tile = vectors_of_each(shape.vectors_per_tile, Exact::operands);
    static_assert(!Exact::indexed || vectors_per_tile == 1 || shape.ahead > 1, "a thread's vectors are not adjacent, as the elements of a tile with indices are");
    static constexpr bool ahead = shape.ahead == 1, claims = shape.columns == EXACT_COLUMN_A_THREAD;
    static constexpr int block_vectors = threads * vectors;
    static_assert(shape.threads <= 512, "columns, of bins below 2^53 or of limbs below 2^32, are added up in 64 bits");
    static constexpr int columns = shape.columns == EXACT_COLUMN_A_THREAD ? threads : 32;
    static constexpr bool shared = columns != threads, bins = !shared && Exact::bins > 0;
    static constexpr int rows = bins ? Exact::bins : Exact::words;
    static constexpr size_t column_bytes = sizeof(int64_t) * rows * columns;
    static constexpr int stages = shape.ahead > 1 ? shape.ahead : 0;
    static constexpr size_t shared_bytes = column_bytes + sizeof(typename input::vector) * stages * block_vectors;
};

/* Where the sinks of a thread are its column: number threadIdx.x, or that of its lane. Columns that are shared start as 0. */
template <class Exact, class plan>
static __device__ __forceinline__ void columns_start(typename Exact::partial *thread, int64_t *columns)
{
    if constexpr (plan::shared)
        for (int i = threadIdx.x; i < plan::rows * plan::columns; i += plan::threads)
            columns[i] = 0;
    Exact::place(thread->sinks, columns + threadIdx.x % plan::columns, plan::columns);
    for (struct exact_sink &sink : thread->sinks) {
        sink.shared = plan::shared;
        sink.ready = false;
    }
    if constexpr (plan::shared)
        __syncthreads();
}

/* Adds the columns of a block to its words, row by row, if any thread has used its own. All threads of the block call it. */
template <class Exact, class plan>
static __device__ __forceinline__ void columns_add(typename Exact::partial *thread, const int64_t *columns, int64_t *words)
{
    __shared__ int used;
    if (threadIdx.x == 0)
        used = 0;
    __syncthreads();
    for (const struct exact_sink &sink : thread->sinks)
        if (sink.ready)
            used = 1;
    __syncthreads();
    if (used == 0)
        return;
    if constexpr (!plan::shared) { /* with carries in order: a column's limbs may hold up to 2^63 before */
        for (struct exact_sink &sink : thread->sinks) {
            exact_sink_prepare(&sink);
            exact_sink_normalise(&sink);
        }
        __syncthreads();
    }
#pragma unroll 1
    for (int row = threadIdx.x / 32; row < plan::rows; row += plan::threads / 32) {
        int64_t sum = 0;
#pragma unroll
        for (int i = 0; i < plan::columns; i += 32)
            sum += columns[row * plan::columns + i + threadIdx.x % 32];
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0)
            words[row] += sum;
    }
}

/* Adds the bins of a block. */
template <class Exact, int threads>
static __device__ __forceinline__ void bins_add(struct exact_sink *column, const double *columns, const struct exact_sink *block)
{
    __shared__ int used;
    if (threadIdx.x == 0)
        used = 0;
    __syncthreads();
    if (column->bins.ready)
        used = 1;
    __syncthreads();
    if (used == 0)
        return;
    exact_bins_prepare(&column->bins);
    __syncthreads();
#pragma unroll 1
    for (int b = threadIdx.x / 32; b < EXACT_BINS; b += threads / 32) {
        int64_t sum = 0; /* of at most 512 integers below 2^53 */
#pragma unroll 1
        for (int i = 0; i < threads; i += 32)
            sum += exact_bin_integer(block, b, columns[b * threads + i + threadIdx.x % 32]);
        __syncwarp();
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0)
            exact_add_integer(block, sum, 16 * b - 150);
    }
}

/* Word i of the block's sum, with its carries moved one limb up: at most 2^33, so that those of all blocks fit 64 bits. */
template <class Exact> static __device__ __forceinline__ int64_t word_carried(const int64_t *words, int i)
{
    const int64_t own = Exact::carries(i) ? words[i] & 0xffffffff : words[i];
    return i > 0 && Exact::carries(i - 1) ? own + (words[i - 1] >> 32) : own;
}

static __device__ __forceinline__ void word_send(uint64_t *result, int i, uint64_t word, uint32_t launch_id)
{
    store_words(result + 2 * i, (uint64_t)launch_id << 32 | (uint32_t)word, (uint64_t)launch_id << 32 | word >> 32);
}

/* The ordered data of all blocks, in thread 0. Ends says how it is combined. All threads of the block call it. */
template <class Ends, int threads> static __device__ __forceinline__ typename Ends::type ends_of_grid(const char *blocks)
{
    typedef typename Ends::type type;
    type all = Ends::identity();
    for (uint32_t block = threadIdx.x; block < gridDim.x; block += threads) {
        unsigned long long words[sizeof(type) / 8];
        type other;
        for (size_t i = 0; i < sizeof(type) / 8; i++)
            words[i] = __ldcg((const unsigned long long *)(blocks + block * EXACT_ENDS_BYTES) + i);
        memcpy(&other, words, sizeof other);
        Ends::combine(&all, &other);
    }
    Ends::template block_take<threads>(&all);
    return all;
}

template <class Type> static __device__ __forceinline__ void ends_send(const Type &ends, uint64_t *result, int first, uint32_t launch_id)
{
    unsigned long long words[sizeof(Type) / 8];
    static_assert(sizeof(Type) <= EXACT_ENDS_BYTES && sizeof(Type) % 8 == 0, "room for them");
    memcpy(words, &ends, sizeof ends);
    for (int i = 0; i < (int)(sizeof(Type) / 8); i++)
        word_send(result, first + i, words[i], launch_id);
}

/* How the array is cut: into chunks of `rounds` rounds of a block; what is left, less than a chunk, is spread over all blocks.
   claims: blocks take the next chunk when they are ready, so that together they go through memory in order; else every
   gridDim.x-th. */
struct exact_cut {
    uint64_t chunks;
    uint32_t rounds;
    bool claims;
};

/* All threads of the block call it. */
template <class Exact, class Element, class plan>
static __device__ __forceinline__ void chunks_take(typename Exact::partial *thread, typename plan::input::array x, uint64_t first,
                                                   const struct exact_cut &cut, unsigned long long *claimed)
{
    const bool aligned = is_vector_aligned(x);
    __shared__ uint64_t claims[2]; /* in turns: asked for one chunk before, so that few wait for the answer */
    const uint64_t chunk_vectors = (uint64_t)cut.rounds * plan::block_vectors;
    const bool asks = plan::claims && cut.claims;
    uint64_t chunk = blockIdx.x, index = chunk * chunk_vectors + threadIdx.x;
    typename plan::input::vector next[plan::vectors];
    if (asks && threadIdx.x == 0)
        claims[0] = gridDim.x + atomicAdd(claimed, 1ull);
    if (plan::ahead && chunk < cut.chunks)
        round_load<Element, plan>(next, x, index, aligned);
#pragma unroll 1
    for (int turn = 0; chunk < cut.chunks; turn ^= 1) {
        if (asks) {
            __syncthreads();
            if (threadIdx.x == 0)
                claims[turn ^ 1] = gridDim.x + atomicAdd(claimed, 1ull);
        }
#pragma unroll 1
        for (uint32_t round = cut.rounds; round-- > 0;) {
            typename plan::input::vector vectors[plan::vectors];
            if constexpr (plan::ahead) {
#pragma unroll
                for (int i = 0; i < plan::vectors; i++)
                    vectors[i] = next[i];
            } else {
                round_load<Element, plan>(vectors, x, index, aligned);
            }
            const uint64_t here = index;
            if (round == 0)
                chunk = asks ? claims[turn] : chunk + gridDim.x;
            index = round > 0 ? index + plan::block_vectors : chunk * chunk_vectors + threadIdx.x;
            if (plan::ahead && (round > 0 || chunk < cut.chunks))
                round_load<Element, plan>(next, x, index, aligned);
            tiles_take<Exact, Element, plan>(thread, vectors, first + here * Element::per_vector, plan::threads * Element::per_vector);
        }
    }
}

/* Where a launch leaves what it finds. blocks: room for each block's extremes. */
struct exact_output {
    struct exact_scratch *scratch;
    char *blocks;
    uint64_t *result;
    uint32_t launch_id;
};

/* A thread's accumulator, whose sinks are columns or bins of its own. All threads of the block call it. */
template <class Exact, class plan>
static __device__ __forceinline__ void thread_start(typename Exact::partial *thread, unsigned char *bytes, int64_t *words,
                                                    typename Exact::aside *aside)
{
    if constexpr (!plan::bins) {
        columns_start<Exact, plan>(thread, (int64_t *)bytes);
    } else {
        Exact::place(thread->sinks, words, 1);
        thread->sinks[0].has_bins = true;
        thread->sinks[0].bins.at = (double *)bytes + threadIdx.x;
        thread->sinks[0].bins.stride = plan::threads;
    }
    Exact::start(thread, aside);
}

/* Adds what the threads found to the block's words. All threads of the block call it. */
template <class Exact, class plan>
static __device__ __forceinline__ void threads_add(typename Exact::partial *thread, const unsigned char *bytes, int64_t *words)
{
    typename Exact::partial block;
    Exact::place(block.sinks, words, 1);
    __syncwarp();
    Exact::add(thread, block.sinks);
    if constexpr (plan::bins)
        bins_add<Exact, plan::threads>(&thread->sinks[0], (const double *)bytes, &block.sinks[0]);
    else
        columns_add<Exact, plan>(thread, (const int64_t *)bytes, words);
}

/* Adds a block's words to those of the grid, and lays down its ordered data. Whether this is the last block to do so, which then sees
   what all have left. All threads of the block call it. */
template <class Exact, class plan>
static __device__ __forceinline__ bool grid_add(const int64_t *words, const typename Exact::ends::type &ends, const struct exact_output &output)
{
    __shared__ bool is_last;
    for (int i = threadIdx.x; i < Exact::words; i += plan::threads) {
        const int64_t word = word_carried<Exact>(words, i);
        if (word != 0)
            atomicAdd(&output.scratch->words[i], (unsigned long long)word);
    }
    if (Exact::indexed && threadIdx.x == 0)
        memcpy(output.blocks + blockIdx.x * EXACT_ENDS_BYTES, &ends, sizeof ends);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicInc(&output.scratch->ticket, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    return is_last;
}

/* Sends the grid's sum, and makes scratch ready for the next launch. All threads of the block call it. */
template <class Exact, class plan>
static __device__ __forceinline__ void grid_send(const struct exact_output &output)
{
    if (threadIdx.x == 0)
        output.scratch->claimed = 0;
    if (threadIdx.x < 4)
        output.scratch->most[threadIdx.x] = 0;
    __threadfence();
    for (int i = threadIdx.x; i < Exact::words; i += plan::threads) {
        const uint64_t word = __ldcg(&output.scratch->words[i]);
        output.scratch->words[i] = 0;
        word_send(output.result, i, word, output.launch_id);
    }
    if constexpr (Exact::indexed) {
        const auto ends = ends_of_grid<typename Exact::ends, plan::threads>(output.blocks);
        if (threadIdx.x == 0)
            ends_send(ends, output.result, Exact::words, output.launch_id);
    }
}

template <class Exact, class Element, class plan>
static __global__ void __launch_bounds__(plan::threads, plan::blocks)
exact_kernel(typename plan::input::array x, uint64_t n, uint64_t first, const __grid_constant__ struct exact_cut cut,
             const __grid_constant__ struct exact_output output, const __grid_constant__ struct compare_rule rule)
{
    extern __shared__ __align__(128) unsigned char bytes[];
    __shared__ int64_t words[Exact::words];
    typename Exact::partial thread;
    typename Exact::aside aside;
    aside.rule = &rule;
    aside.most = output.scratch->most;
    for (int i = threadIdx.x; i < Exact::words; i += plan::threads)
        words[i] = 0;
    __syncthreads();

    thread_start<Exact, plan>(&thread, bytes, words, &aside);
    if constexpr (plan::stages > 0) {
        stages_take<Exact, Element, plan>(&thread, x, first, n, (uint4 *)(bytes + plan::column_bytes));
    } else {
        const uint64_t vectors = n / Element::per_vector, last = vectors * Element::per_vector + threadIdx.x;
        chunks_take<Exact, Element, plan>(&thread, x, first, cut, &output.scratch->claimed);
        remainder_take<Exact, Element, plan>(&thread, x, first, cut.chunks * cut.rounds * plan::block_vectors, vectors);
        if (blockIdx.x == gridDim.x - 1 && last < n) /* less than a vector is left */
            element_take<Exact, Element>(&thread, x, last, first);
    }
    threads_add<Exact, plan>(&thread, bytes, words);
    typename Exact::ends::type ends;
    if constexpr (Exact::indexed) {
        ends = Exact::ends::of(thread);
        Exact::ends::template block_take<plan::threads>(&ends);
    }
    __syncthreads();
    if (gridDim.x > 1) {
        if (grid_add<Exact, plan>(words, ends, output))
            grid_send<Exact, plan>(output);
        return;
    }
    if (threadIdx.x < 4)
        output.scratch->most[threadIdx.x] = 0;
    for (int i = threadIdx.x; i < Exact::words; i += plan::threads)
        word_send(output.result, i, (uint64_t)words[i], output.launch_id);
    if constexpr (Exact::indexed)
        if (threadIdx.x == 0)
            ends_send(ends, output.result, Exact::words, output.launch_id);
}

template <class Exact, class Element>
static cudaError_t exact_start(const struct work *work, const struct fold_space *space, void *stream)
{
    typedef exact_plan<Exact, Element> plan;
    const auto kernel = exact_kernel<Exact, Element, plan>;
    const uint64_t vectors = work->n / Element::per_vector;
    const uint64_t most = (uint64_t)space->multiprocessors * plan::blocks;
    const uint64_t wanted = (vectors + plan::threads - 1) / plan::threads;
    const uint64_t blocks = vectors <= (uint64_t)plan::block_vectors ? 1 : u64_min(wanted, most);
    const uint64_t whole = vectors / plan::block_vectors;
    struct exact_cut cut = {whole < blocks ? 0 : whole, 1, false}; /* too few rounds for all: evenly, then */
    /* whoever claims much, its words do not overflow: exact.h */
    if (plan::claims && whole / blocks >= EXACT_CLAIM.least && work->n / plan::threads < (uint64_t)1 << 28)
        cut = {whole / EXACT_CLAIM.rounds, EXACT_CLAIM.rounds, true};

    /* words that a block shares get digits of 32 bits, two of an element at most, or eight of a pair that is compared, and no carries are put
       in order */
    if (plan::shared && work->n / blocks >= (uint64_t)1 << (Exact::cost == COST_COMPARE ? 27 : 29))
        return cudaErrorInvalidValue;

    cudaLaunchConfig_t config = launch_config(blocks, plan::threads, stream);
    config.dynamicSmemBytes = plan::shared_bytes;
    if (plan::shared_bytes > 40 << 10) { /* beyond 48 KiB, with what is static, only where it is asked for */
        const cudaError_t code =
            cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)plan::shared_bytes);
        if (code != cudaSuccess)
            return code;
    }
    char *const scratch = (char *)space->scratch + fold_messages_bytes(space->multiprocessors);
    const struct exact_output output = {(struct exact_scratch *)scratch, scratch + EXACT_SCRATCH_BYTES,
                                        (uint64_t *)&space->mailbox->partial, space->launch_id};
    const struct compare_rule rule = work->rule != NULL ? *work->rule : compare_rule{};
    return cudaLaunchKernelEx(&config, kernel, plan::input::of(work), work->n, work->first, cut, output, rule);
}
