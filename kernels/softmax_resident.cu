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

static_assert(sizeof(struct softmax_constants) <= sizeof(((struct softmax_orders *)nullptr)->constants), "orders hold them");

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
    typedef fold_plan<Fold, Element> plan;
    constexpr int threads = RESIDENT_SHAPE.threads, stage = RESIDENT_SHAPE.stage, tile = plan::together;
    typename Fold::partial partial = Fold::identity();
#pragma unroll 1
    for (int turn = 0; turn < more; turn += 4) {
        uint4 vectors[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            vectors[i] = turn + i < more ? load_read_only(from + skip + (turn + i) * threads) : make_uint4(0, 0, 0, 0);
#pragma unroll 1
        for (int i = 0; i < 4 && turn + i < more; i++) {
            vectors_take<Fold, Element, 1>(&partial, vectors, 0);
#pragma unroll
            for (int j = 1; j < 4; j++)
                vectors[j - 1] = vectors[j];
        }
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

/* The partials of all blocks, combined; thread 0 has it. Takes whole blocks. */
template <class Fold>
static __device__ __forceinline__ typename Fold::partial grid_gather(const struct resident_work &work)
{
    constexpr int threads = RESIDENT_SHAPE.threads;
    typename Fold::partial partial = Fold::identity();
#pragma unroll 1
    for (uint32_t block = threadIdx.x; block < gridDim.x; block += threads) {
        const auto other = message_receive<typename Fold::partial>(work.scratch[block].words, work.number);
        Fold::combine(&partial, &other);
    }
    __syncthreads();
    block_combine<Fold, threads>(&partial);
    return partial;
}

/* The first warp of the first block: asks the host what to do with `partial`, which thread 0 has, and tells the others. */
template <class Partial>
static __device__ __forceinline__ void host_ask(const struct resident_work &work, const Partial &partial,
                                                struct softmax_orders *orders)
{
    const uint64_t start = clock_nanoseconds();
    if (threadIdx.x == 0)
        message_send(work.mailbox->partial.words, partial, work.number);
    while (!message_look_together(work.mailbox->orders.words, work.number, orders)) {
        const bool late = clock_nanoseconds() - start > (uint64_t)RESIDENT_WAIT_MILLISECONDS * 1000000;
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

/* Whether to go on, and with which constants; the same in all threads of all blocks. Takes whole blocks. */
template <class Fold>
static __device__ __forceinline__ bool orders_get(const struct resident_work &work, struct softmax_constants *constants)
{
    __shared__ struct softmax_orders orders;
    if (work.alone) {
        const typename Fold::partial partial = grid_gather<Fold>(work);
        if (threadIdx.x == 0) {
            softmax_constants_from(partial.max, &partial.sum, constants);
            memcpy(orders.constants, constants, sizeof *constants);
            orders.proceed = 1;
        }
    } else {
        const uint64_t *const passed_on = work.scratch[2 * gridDim.x].words;
        if (blockIdx.x == 0) {
            const typename Fold::partial partial = grid_gather<Fold>(work);
            if (threadIdx.x < 32)
                host_ask(work, partial, &orders);
        } else if (threadIdx.x < 32)
            while (!message_look_together(passed_on, work.number, &orders))
                wait_for_others();
    }
    __syncthreads();
    memcpy(constants, orders.constants, sizeof *constants);
    return orders.proceed != 0;
}

/* Tells the host, once all blocks are here, that all that they wrote is written. Takes whole blocks. */
static __device__ __forceinline__ void outcome_tell(const struct resident_work &work, bool written)
{
    const uint64_t outcome = written;
    __syncthreads();
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
    block_combine<Fold, threads>(&partial);
    if (threadIdx.x == 0)
        message_send(work.scratch[blockIdx.x].words, partial, work.number);

    struct softmax_constants constants;
    const bool proceed = orders_get<Fold>(work, &constants);
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
        CASE(F16)
        CASE(BF16)
        CASE(F32)
        CASE(F64)
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
        for (const allfold_type type : {ALLFOLD_F16, ALLFOLD_BF16, ALLFOLD_F32, ALLFOLD_F64})
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
        return cudaLaunchKernelEx(&config, kernel, (const stored *)call->x, (stored *)call->y, work);
    });
}

void softmax_order(struct fold_mailbox *mailbox, uint32_t number, const struct softmax_constants *constants)
{
    struct softmax_orders orders = {};
    orders.proceed = constants != nullptr;
    if (constants != nullptr)
        memcpy(orders.constants, constants, sizeof *constants);
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
