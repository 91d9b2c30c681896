/* The kernel of exact sums. A thread takes its elements through the windows of src/fold/exact.h; what these do not hold goes
   to words of its own in shared memory, a column of 64-bit integers that no other thread touches. At the end of a block the
   windows of a warp are added up as integers, columns by rows; the words of all blocks are added in scratch memory by
   atomics, and the last block to do so hands them to the host. Integers are added in any order, so all of this may depend
   on timing. Included by fold_family.cuh. */
#ifndef ALLFOLD_EXACT_CUH
#define ALLFOLD_EXACT_CUH

#include "kernels/fold.cuh"
#include "kernels/fold_family.h"

#include <type_traits>

/* What blocks share, zero before and after every launch. */
struct exact_scratch {
    unsigned int ticket, unused[15];
    unsigned long long words[PARTIAL_BYTES_MAX / 8];
};
constexpr size_t EXACT_SCRATCH_BYTES = (sizeof(struct exact_scratch) + 255) / 256 * 256;

/* An exact monoid at a value type, in the shape of fold_of: what a thread carries stands for the partial. */
template <enum monoid monoid, class Value> struct exact_of;
#define DEFINE_EXACT(name, value_name)                                                                      \
    template <> struct exact_of<MONOID_##name, value_##value_name> {                                        \
        typedef value_##value_name value;                                                                   \
        typedef name##_##value_name##_front front_type;                                                     \
        struct partial {                                                                                    \
            front_type front;                                                                               \
            struct exact_sink sink;                                                                         \
        };                                                                                                  \
        static constexpr bool indexed = false, floating = (value)0.5 != 0;                                  \
        static constexpr int limbs = name##_limbs_##value_name, words = name##_words_##value_name;          \
        static constexpr int lowest = name##_lowest_##value_name, windows = name##_windows_of_##value_name; \
        static __device__ __forceinline__ void start(front_type *front) { name##_start_##value_name(front); } \
        static __device__ __forceinline__ void tile(partial *p, const value *x, uint32_t n, uint64_t)       \
        {                                                                                                   \
            name##_run_##value_name(&p->front, &p->sink, x, n);                                             \
        }                                                                                                   \
        static __device__ __forceinline__ void combine(front_type *a, const front_type *b)                  \
        {                                                                                                   \
            name##_front_combine_##value_name(a, b);                                                        \
        }                                                                                                   \
        static __device__ __forceinline__ void finish(front_type *front, struct exact_sink *sink)           \
        {                                                                                                   \
            name##_finish_front_##value_name(front, sink);                                                  \
        }                                                                                                   \
    };
#define DEFINE_EXACTS(name, indexed, nan) VALUES(DEFINE_EXACT, name)
EXACT_MONOIDS(DEFINE_EXACTS)
#undef DEFINE_EXACTS
#undef DEFINE_EXACT

template <class Exact, class Element> struct exact_plan {
    static constexpr struct exact_shape shape =
        exact_shape_of(Exact::words * 8, Exact::floating, sizeof(typename Element::value));
    static constexpr int threads = shape.threads, blocks = shape.blocks, vectors = shape.vectors, together = vectors;
    static constexpr int block_vectors = threads * vectors;
    static constexpr size_t column_bytes = shape.columns ? sizeof(int64_t) * Exact::words * threads : 0;
};

static __device__ __forceinline__ int64_t warp_sum(int64_t value)
{
#pragma unroll
    for (int lanes = 16; lanes > 0; lanes /= 2)
        value += (int64_t)__shfl_xor_sync(0xffffffffu, (unsigned long long)value, lanes);
    return value;
}

/* Adds the windows of a warp to the block's words. Lanes whose windows are alike are added first: usually all. */
static __device__ __forceinline__ void warp_windows_add(struct exact_front *front, int windows, const struct exact_sink *block)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int w = 0; w < windows; w++) {
        int32_t exponent;
        const int64_t value = exact_window_take(front, w, &exponent);
        unsigned int left = __ballot_sync(0xffffffffu, value != 0);
#pragma unroll 1
        while (left != 0) {
            int leader = 0;
            while ((left >> leader & 1) == 0)
                leader++;
            const int32_t common = __shfl_sync(0xffffffffu, exponent, leader);
            const bool alike = value != 0 && exponent == common;
            const int64_t sum = warp_sum(alike ? value : 0);
            if (lane == 0)
                exact_add_integer(block, sum, common);
            left &= ~__ballot_sync(0xffffffffu, alike);
        }
    }
    if (__ballot_sync(0xffffffffu, front->others) != 0 && lane == 0)
        exact_count(block, EXACT_OTHERS, 1);
}

/* Adds the columns of a block to its words, row by row, if any thread has used its own. Takes whole blocks. */
template <class Exact, int threads>
static __device__ __forceinline__ void columns_add(struct exact_sink *column, const int64_t *columns, int64_t *words)
{
    __shared__ int used;
    if (threadIdx.x == 0)
        used = 0;
    __syncthreads();
    if (column->ready)
        used = 1;
    __syncthreads();
    if (used == 0)
        return;
    exact_sink_prepare(column);
    __syncthreads();
#pragma unroll 1
    for (int row = threadIdx.x / 32; row < Exact::words; row += threads / 32) {
        int64_t sum = 0;
#pragma unroll
        for (int i = 0; i < threads; i += 32)
            sum += columns[row * threads + i + threadIdx.x % 32];
        sum = warp_sum(sum);
        if (threadIdx.x % 32 == 0)
            words[row] += sum;
    }
}

/* Word i of the block's sum, with its carries moved one limb up: at most 2^33, so that those of all blocks fit 64 bits. */
template <class Exact> static __device__ __forceinline__ int64_t word_carried(const int64_t *words, int i)
{
    const int64_t own = i < Exact::limbs - 1 ? words[i] & 0xffffffff : words[i];
    return i > 0 && i < Exact::limbs ? own + (words[i - 1] >> 32) : own;
}

static __device__ __forceinline__ void word_send(uint64_t *result, int i, uint64_t word, uint32_t number)
{
    store_words(result + 2 * i, (uint64_t)number << 32 | (uint32_t)word, (uint64_t)number << 32 | word >> 32);
}

template <class Exact, class Element, class plan>
static __global__ void __launch_bounds__(plan::threads, plan::blocks)
exact_kernel(const typename Element::stored *x, uint64_t n, uint64_t rounds, struct exact_scratch *scratch, uint64_t *result,
             uint32_t number)
{
    constexpr int threads = plan::threads;
    extern __shared__ __align__(16) unsigned char bytes[];
    __shared__ int64_t words[Exact::words];
    __shared__ bool is_last;
    int64_t *const columns = (int64_t *)bytes;
    struct exact_sink block = exact_sink_of(words, Exact::limbs, Exact::lowest);
    block.shared = true;
    for (int i = threadIdx.x; i < Exact::words; i += threads)
        words[i] = 0;
    __syncthreads();

    typename Exact::partial thread;
    thread.sink = block;
    if constexpr (plan::column_bytes > 0) {
        thread.sink.words = columns + threadIdx.x;
        thread.sink.stride = threads;
        thread.sink.shared = thread.sink.ready = false;
    }
    Exact::start(&thread.front);
    const bool aligned = is_vector_aligned(x);
    const uint64_t vectors = n / Element::per_vector, last = vectors * Element::per_vector + threadIdx.x;
    rounds_take<Exact, Element, plan>(&thread, x, 0, rounds, aligned);
    rest_take<Exact, Element, plan>(&thread, x, 0, rounds * gridDim.x * plan::block_vectors, vectors, aligned);
    if (blockIdx.x == gridDim.x - 1 && last < n) { /* less than a vector is left */
        const typename Element::value value = Element::load(x[last]);
        Exact::tile(&thread, &value, 1, 0);
    }

    __syncwarp();
    if constexpr (Exact::floating) {
        warp_windows_add(&thread.front, Exact::windows, &block);
    } else {
#pragma unroll 1
        for (int lanes = 1; lanes < 32; lanes *= 2) {
            const typename Exact::front_type other = partial_shuffle_down(thread.front, lanes);
            Exact::combine(&thread.front, &other);
        }
        if (threadIdx.x % 32 == 0)
            Exact::finish(&thread.front, &block);
    }
    if constexpr (plan::column_bytes > 0)
        columns_add<Exact, threads>(&thread.sink, columns, words);
    __syncthreads();
    if (gridDim.x == 1) {
        for (int i = threadIdx.x; i < Exact::words; i += threads)
            word_send(result, i, (uint64_t)words[i], number);
        return;
    }
    for (int i = threadIdx.x; i < Exact::words; i += threads) {
        const int64_t word = word_carried<Exact>(words, i);
        if (word != 0)
            atomicAdd(&scratch->words[i], (unsigned long long)word);
    }
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        is_last = atomicInc(&scratch->ticket, gridDim.x - 1) == gridDim.x - 1;
    __syncthreads();
    if (!is_last)
        return;
    __threadfence();
    for (int i = threadIdx.x; i < Exact::words; i += threads) {
        word_send(result, i, __ldcg(&scratch->words[i]), number);
        scratch->words[i] = 0;
    }
}

template <class Exact, class Element>
static cudaError_t exact_start(const struct fold_input *input, struct fold_space *space, void *stream)
{
    typedef exact_plan<Exact, Element> plan;
    const auto kernel = exact_kernel<Exact, Element, plan>;
    const uint64_t vectors = input->n / Element::per_vector;
    const uint64_t most = (uint64_t)space->multiprocessors * plan::blocks;
    const uint64_t wanted = (vectors + plan::threads - 1) / plan::threads;
    const uint64_t blocks = vectors <= (uint64_t)plan::block_vectors ? 1 : u64_min(wanted, most);

    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned int)blocks);
    config.blockDim = dim3(plan::threads);
    config.dynamicSmemBytes = plan::column_bytes;
    config.stream = (cudaStream_t)stream;
    if (plan::column_bytes > 40 << 10) { /* beyond 48 KiB, with what is static, only where it is asked for */
        const cudaError_t code =
            cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)plan::column_bytes);
        if (code != cudaSuccess)
            return code;
    }
    return cudaLaunchKernelEx(&config, kernel, (const typename Element::stored *)input->x, input->n,
                              vectors / (blocks * plan::block_vectors), (struct exact_scratch *)space->scratch,
                              (uint64_t *)space->result, space->number);
}

#endif
