/* Softmax in one launch, for elements that fit on the chip: each block copies its part of x into shared memory, folds it
   there, learns the global maximum and sum, and writes y from there: 8 bytes of memory traffic an element of f32 instead of
   12, and one launch instead of two. What shared memory has no room for is read again, from the second-level cache.

   The global pair: where the device has all of the array, every block combines the partials of all blocks, in the same
   order. Else the first block hands the combined partial to the host, which exchanges it with other ranks, and waits for
   orders, but not for ever; then it passes them on. */
#include "fold/softmax_constants.h"
#include "kernels/fold.cuh"
#include "kernels/softmax.cuh"

#include <initializer_list>

/* The fold of the first pass. */
template <class Element>
using resident_fold = fold_of<std::is_same<typename Element::value, float>::value ? MONOID_sumexp : MONOID_sumexp_f64,
                              typename Element::value>;

/* To go on with these. */
static __host__ __device__ struct softmax_orders softmax_orders_of(const struct softmax_constants *constants)
{
    struct softmax_orders orders = {};
    orders.proceed = 1;
    orders.max = constants->max;
    orders.log_sum = constants->log_sum;
    orders.inverse_high = constants->inverse_high;
    orders.inverse_low = constants->inverse_low;
    return orders;
}

/* What a block has to do with which part, and where messages go; scratch is room for 2 * blocks + 1 of them. */
struct resident_work {
    uint64_t n;
    uint64_t room; /* vectors that shared memory keeps, a multiple of the threads */
    struct fold_message *scratch;
    struct fold_mailbox *mailbox;
    uint32_t number;
    bool alone;
};

/* A block's vectors: `count` from `first` on, of which the first `kept` stay. Thread t has every threads-th, from t on. */
struct resident_part {
    uint64_t first, count, kept;
};
static __device__ __forceinline__ struct resident_part part_of_block(uint64_t vectors, uint64_t room)
{
    const uint64_t each = vectors / gridDim.x, longer = vectors % gridDim.x;
    struct resident_part part;
    part.first = blockIdx.x * each + (blockIdx.x < longer ? blockIdx.x : longer);
    part.count = each + (blockIdx.x < longer ? 1 : 0);
    part.kept = part.count < room ? part.count : room;
    return part;
}

/* How many of `count` things that threads take in turns are this thread's. */
static __device__ __forceinline__ int turns_of_thread(uint64_t count)
{
    constexpr int threads = RESIDENT_SHAPE.threads;
    return (int)((count + threads - 1 - threadIdx.x) / threads);
}

/* Starts copying; returns how many groups it has committed. */
static __device__ __forceinline__ int part_copy(uint4 *shared, const uint4 *from, int turns)
{
    constexpr int threads = RESIDENT_SHAPE.threads, stage = RESIDENT_SHAPE.stage;
    int groups = 0;
#pragma unroll 1
    for (int turn = 0; turn < turns; turn += stage) {
#pragma unroll
        for (int i = 0; i < stage; i++)
            if (turn + i < turns)
                copy_async(shared + (turn + i) * threads, from + (turn + i) * threads);
        copy_commit();
        groups++;
    }
    return groups;
}

/* Folds what has no room in shared memory, then what arrives there. */
template <class Fold, class Element>
static __device__ __forceinline__ typename Fold::partial part_fold(const uint4 *shared, const uint4 *from, int turns,
                                                                   int groups, int more, int skip)
{
    constexpr int threads = RESIDENT_SHAPE.threads, stage = RESIDENT_SHAPE.stage, tile = RESIDENT_SHAPE.tile;
    typename Fold::partial partial = Fold::identity();
#pragma unroll 1
    for (int turn = 0; turn < more; turn += tile) {
        uint4 vectors[tile];
#pragma unroll
        for (int i = 0; i < tile; i++)
            vectors[i] = turn + i < more ? load_read_only(from + skip + (turn + i) * threads) : least_vector<Element>();
        vectors_take<Fold, Element, tile>(&partial, vectors, 0);
    }
#pragma unroll 1
    for (int turn = 0; turn < turns; turn += tile) {
        const int arrived = (turn + tile - 1) / stage;
        uint4 vectors[tile];
        copy_wait(arrived < groups ? groups - 1 - arrived : 0);
#pragma unroll
        for (int i = 0; i < tile; i++)
            vectors[i] = turn + i < turns ? shared[(turn + i) * threads] : least_vector<Element>();
        vectors_take<Fold, Element, tile>(&partial, vectors, 0);
    }
    return partial;
}

/* Thread 0 gets the partial of the block, and, where the block asks for it, of all blocks. Takes whole blocks. The same code
   twice over: the second time it is in the instruction cache. */
template <class Fold>
static __device__ __forceinline__ void grid_combine(const struct resident_work &work, typename Fold::partial *partial)
{
    constexpr int threads = RESIDENT_SHAPE.threads;
#pragma unroll 1
    for (int pass = 0;; pass++) {
        block_combine<Fold, threads>(partial);
        if (pass == 1)
            return;
        if (threadIdx.x == 0)
            message_send(work.scratch[blockIdx.x].words, *partial, work.number);
        if (blockIdx.x > 0 && !work.alone)
            return;
        *partial = Fold::identity();
#pragma unroll 1
        for (uint32_t block = threadIdx.x; block < gridDim.x; block += threads) {
            const auto other = message_receive<typename Fold::partial>(work.scratch[block].words, work.number);
            Fold::combine(partial, &other);
        }
        __syncthreads();
    }
}

/* The first warp of the first block: asks the host what to do with `partial`, which thread 0 has, and tells the others. */
template <class Partial>
static __device__ __forceinline__ void host_ask(const struct resident_work &work, const Partial &partial,
                                                struct softmax_orders *orders)
{
    const uint64_t start = clock_nanoseconds();
    if (threadIdx.x == 0)
        message_send(work.mailbox->partial.words, partial, work.number);
#pragma unroll 1
    for (uint32_t look = 1; !message_look_together(work.mailbox->orders.words, work.number, orders); look++) {
        const bool late = look % 16 == 0 && clock_nanoseconds() - start > (uint64_t)RESIDENT_WAIT_MILLISECONDS * 1000000;
        if (__ballot_sync(0xffffffffu, late) != 0) {
            if (threadIdx.x == 0)
                memset(orders, 0, sizeof *orders);
            __syncwarp();
            break;
        }
    }
    if (threadIdx.x == 0)
        message_send(work.scratch[2 * gridDim.x].words, *orders, work.number);
}

/* Whether to go on, and with which constants; the same in all threads of all blocks. *partial is the threads' own. Takes whole
   blocks. */
template <class Fold>
static __device__ __forceinline__ bool orders_get(const struct resident_work &work, typename Fold::partial *partial,
                                                  struct softmax_constants *constants)
{
    __shared__ struct softmax_orders orders;
    grid_combine<Fold>(work, partial);
    if (work.alone) {
        if (threadIdx.x == 0) {
            softmax_constants_from(partial->max, &partial->sum, constants);
            orders = softmax_orders_of(constants);
        }
    } else if (threadIdx.x < 32) {
        if (blockIdx.x == 0)
            host_ask(work, *partial, &orders);
        else
            while (!message_look_together(work.scratch[2 * gridDim.x].words, work.number, &orders))
                wait_for_others();
    }
    __syncthreads();
    constants->max = orders.max;
    constants->log_sum = orders.log_sum;
    constants->inverse_high = orders.inverse_high;
    constants->inverse_low = orders.inverse_low;
    softmax_constants_derive(constants);
    return orders.proceed != 0;
}

/* Tells the host, once all blocks are here, that all that they wrote is written. Takes whole blocks. */
static __device__ __forceinline__ void outcome_tell(const struct resident_work &work, bool written)
{
    const uint64_t outcome = written;
    __syncthreads();
#ifdef V_ENDS
    if (threadIdx.x == 0) {
        __threadfence_system();
        __stcg((unsigned long long *)&work.mailbox->ended[blockIdx.x], (unsigned long long)work.number << 32 | outcome);
    }
    return;
#endif
    if (blockIdx.x > 0) {
        if (threadIdx.x == 0) {
            __threadfence();
            message_send(work.scratch[gridDim.x + blockIdx.x].words, outcome, work.number);
        }
        return;
    }
#pragma unroll 1
    for (uint32_t block = threadIdx.x + 1; block < gridDim.x; block += RESIDENT_SHAPE.threads)
        message_receive<uint64_t>(work.scratch[gridDim.x + block].words, work.number);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence_system();
        message_send(work.mailbox->outcome.words, outcome, work.number);
    }
}

template <class Element, bool logarithm>
static __global__ void __launch_bounds__(RESIDENT_SHAPE.threads, 1)
softmax_resident_kernel(const typename Element::stored *x, typename Element::stored *y,
                        const __grid_constant__ struct resident_work work)
{
    typedef resident_fold<Element> Fold;
    typedef softmax_arithmetic<Element, logarithm> Arithmetic;
    extern __shared__ __align__(16) unsigned char bytes[];
    constexpr int threads = RESIDENT_SHAPE.threads;
    const uint64_t vectors = work.n / Element::per_vector;
    const struct resident_part part = part_of_block(vectors, work.room);
    const int turns = turns_of_thread(part.kept), more = turns_of_thread(part.count - part.kept);
    const uint4 *const from = (const uint4 *)x + part.first + threadIdx.x;
    uint4 *const to = (uint4 *)y + part.first + threadIdx.x, *const shared = (uint4 *)bytes + threadIdx.x;
    const uint64_t last = vectors * Element::per_vector + threadIdx.x; /* less than a vector is left: the last block's */
    const bool has_last = blockIdx.x == gridDim.x - 1 && last < work.n;

    const int groups = part_copy(shared, from, turns);
    typename Fold::partial partial =
        part_fold<Fold, Element>(shared, from, turns, groups, more, (int)part.kept);
    if (has_last) {
        const typename Element::value value = Element::load(x[last]);
        Fold::tile(&partial, &value, 1, 0);
    }
    struct softmax_constants constants;
    const bool proceed = orders_get<Fold>(work, &partial, &constants);
    if (proceed) {
        if (has_last)
            round_to(&y[last], element_softmax<Arithmetic, Element>(x[last], constants));
#pragma unroll 2
        for (int turn = 0; turn < more; turn++)
            to[part.kept + turn * threads] =
                vector_softmax<Arithmetic, Element>(from[part.kept + turn * threads], constants);
#pragma unroll 2
        for (int turn = 0; turn < turns; turn++)
            to[turn * threads] = vector_softmax<Arithmetic, Element>(shared[turn * threads], constants);
    }
    outcome_tell(work, proceed);
}

/* Calls `use` with the kernel of each type that has one, as type and kernel. */
template <class Use> static cudaError_t kernel_of(allfold_type type, bool logarithm, Use use)
{
    switch (type) {
#define CASE(ID)                                                                                               \
    case ALLFOLD_##ID:                                                                                         \
        return logarithm ? use(element<ALLFOLD_##ID>(), softmax_resident_kernel<element<ALLFOLD_##ID>, true>)   \
                         : use(element<ALLFOLD_##ID>(), softmax_resident_kernel<element<ALLFOLD_##ID>, false>);
#ifndef V_ONLY_F32
        CASE(F16)
        CASE(BF16)
        CASE(F64)
#endif
        CASE(F32)
#undef CASE
    default:
        return cudaErrorInvalidValue;
    }
}

int softmax_resident_prepare(int device, size_t *shared_bytes)
{
    int most = 0;
    cudaError_t code = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    const int own = 4096; /* at most, of the kernels' other shared memory */
    const int vectors = RESIDENT_SHAPE.threads * (int)sizeof(uint4), stages = 8 * RESIDENT_SHAPE.stage;
    const int turns = most > own ? (most - own) / vectors : 0;
    *shared_bytes = (size_t)(turns < stages ? turns : stages) * (size_t)vectors;
    for (const bool logarithm : {false, true})
#ifdef V_ONLY_F32
        for (const allfold_type type : {ALLFOLD_F32})
#else
        for (const allfold_type type : {ALLFOLD_F16, ALLFOLD_BF16, ALLFOLD_F32, ALLFOLD_F64})
#endif
            if (code == cudaSuccess)
                code = kernel_of(type, logarithm, [=](auto, auto *kernel) {
                    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                (int)*shared_bytes);
                });
    return code;
}

bool softmax_resident_fits(const struct softmax_resident *call)
{
    const uint64_t room = (uint64_t)call->space->multiprocessors * call->shared_bytes;
    return call->n > 0 && call->n <= room && call->n * allfold_type_bytes(call->type) <= room / 4 * 5
           && ((uintptr_t)call->x | (uintptr_t)call->y) % 16 == 0 && type_is_floating(call->type);
}

int softmax_resident_launch(const struct softmax_resident *call, void *stream)
{
    struct fold_space *const space = call->space;
    const cudaError_t numbered = (cudaError_t)fold_number_next(space, stream);
    if (numbered != cudaSuccess)
        return numbered;
    return kernel_of(call->type, call->logarithm, [=](auto element, auto *kernel) {
        typedef typename decltype(element)::stored stored;
        constexpr uint64_t least = (uint64_t)RESIDENT_SHAPE.threads * RESIDENT_SHAPE.least;
        const uint64_t vectors = call->n / decltype(element)::per_vector;
        const uint64_t blocks = u64_max(1, u64_min((vectors + least - 1) / least, (uint64_t)space->multiprocessors));
        const uint64_t kept = u64_min((vectors + blocks - 1) / blocks, call->shared_bytes / sizeof(uint4));
        const struct resident_work work = {call->n,        call->shared_bytes / sizeof(uint4), (struct fold_message *)space->scratch,
                                           space->mailbox, space->number,                      call->alone};
        cudaLaunchAttribute together = {}; /* blocks wait for each other */
        together.id = cudaLaunchAttributeCooperative;
        together.val.cooperative = 1;
        cudaLaunchConfig_t config = {};
        config.gridDim = dim3((unsigned int)blocks);
        config.blockDim = dim3(RESIDENT_SHAPE.threads);
        config.dynamicSmemBytes = kept * sizeof(uint4);
        config.stream = (cudaStream_t)stream;
        config.attrs = &together;
        config.numAttrs = 1;
#ifdef V_PLAIN
        config.numAttrs = 0;
#endif
#ifdef V_ENDS
        space->blocks = (uint32_t)blocks;
#endif
        return cudaLaunchKernelEx(&config, kernel, (const stored *)call->x, (stored *)call->y, work);
    });
}

void softmax_order(struct fold_mailbox *mailbox, uint32_t number, const struct softmax_constants *constants)
{
    struct softmax_orders orders = {};
    if (constants != nullptr)
        orders = softmax_orders_of(constants);
    message_put(&mailbox->orders, number, &orders, sizeof orders);
}

bool softmax_outcome(const struct fold_mailbox *mailbox, uint32_t number, bool *written)
{
    uint64_t outcome;
    if (!message_take(&mailbox->outcome, number, &outcome, sizeof outcome))
        return false;
    *written = outcome != 0;
    return true;
}
