/* Takes softmax in one launch, for arrays that fit in registers and shared memory, or are a little larger. An element of f32 costs 8 bytes of
   memory traffic instead of 12.

     each block: loads its part of x into registers and shared memory
                 what it has no room for passes through shared memory, and the second-level cache is asked to keep it
         partial = its elements, folded
         constants = from the maximum and the sum of all blocks, and of all ranks (see below)
         y from the elements that it has kept; the others are read again
     the first block: tells the host, once all have written

   The global pair: if the device has all of the array, every block combines the partials of all blocks, in the same order. Otherwise the
   first block sends the combined partial to the host, which exchanges it with the other ranks. The block waits for the host's orders, for
   a limited time, and passes them on. */
#include "kernels/softmax.cuh"

/* The order to proceed with these constants. */
static __host__ __device__ struct softmax_orders softmax_orders_of(const struct softmax_constants *constants)
{
    struct softmax_orders orders = {};
    orders.proceed = 1;
    orders.max = constants->max;
    orders.log_sum = constants->log_sum;
    orders.log_low = constants->log_low;
    orders.inverse_high = constants->inverse_high;
    orders.inverse_low = constants->inverse_low;
    return orders;
}

/* The work of all blocks. scratch: room for 2 * blocks + 1 messages. */
struct resident_work {
    uint64_t n;
    struct fold_message *scratch;
    struct fold_mailbox *mailbox;
    uint32_t launch_id;
    bool single_rank;
    int stay; /* turns of a thread that stay in registers and shared memory, if others pass through */
};

/* A block's vectors: `count`, beginning with `first`. Thread t has those of number t, t + threads, t + 2 threads, ... */
struct resident_part {
    uint64_t first, count;
};
static __device__ __forceinline__ struct resident_part part_of_block(uint64_t vectors)
{
    const uint64_t each = vectors / gridDim.x, longer = vectors % gridDim.x;
    struct resident_part part;
    part.first = blockIdx.x * each + (blockIdx.x < longer ? blockIdx.x : longer);
    part.count = each + (blockIdx.x < longer ? 1 : 0);
    return part;
}

/* How many of a block's `count` vectors this thread has: its turns. */
static __device__ __forceinline__ int turns_of_thread(uint64_t count)
{
    constexpr int threads = RESIDENT_SHAPE.threads;
    return (int)((count + threads - 1 - threadIdx.x) / threads);
}

/* A thread's vectors: the first stage in registers, the others in shared memory. passes: some do not stay; they go through the last
   place of shared memory, one stage after the other. */
template <bool passes> struct resident_kept {
    uint4 first[RESIDENT_SHAPE.stage];
    uint4 *others;
    const uint4 *from;
    int turns;
    int rounds; /* the turns of the block's first thread, which has the most */
    int stay;
};

/* Where the stage that begins with `turn` is in shared memory. */
template <bool passes> static __device__ __forceinline__ uint4 *stage_place(const resident_kept<passes> *kept, int turn)
{
    return kept->others + ((passes && turn > kept->stay ? kept->stay : turn) - RESIDENT_SHAPE.stage) * RESIDENT_SHAPE.threads;
}

/* Starts to copy the stage that begins with `turn`, if there is one. use: what the cache is to do with it if it passes through; a stage
   that stays is not kept there. */
template <bool passes>
static __device__ __forceinline__ void stage_ask(const resident_kept<passes> *kept, int turn, enum cache_use use)
{
    constexpr int threads = RESIDENT_SHAPE.threads;
    uint4 *const place = stage_place(kept, turn);
    [[maybe_unused]] const uint64_t policy = passes ? cache_policy(turn < kept->stay ? CACHE_DROP : use) : 0;
#pragma unroll
    for (int i = 0; i < RESIDENT_SHAPE.stage; i++)
        if (turn + i < kept->turns) {
            if constexpr (passes)
                copy_async(place + i * threads, kept->from + (turn + i) * threads, policy);
            else
                copy_async(place + i * threads, kept->from + (turn + i) * threads);
        }
    copy_commit();
}

template <class Element, bool passes> static __device__ __forceinline__ void part_begin(resident_kept<passes> *kept)
{
    constexpr int threads = RESIDENT_SHAPE.threads;
#pragma unroll
    for (int i = 0; i < RESIDENT_SHAPE.stage; i++)
        kept->first[i] = i < kept->turns ? load_read_only(kept->from + i * threads) : least_vector<Element>();
}

/* The stage that begins with `turn`; vectors behind the thread's last are -inf. */
template <class Element, bool passes>
static __device__ __forceinline__ void stage_take(const resident_kept<passes> *kept, int turn, uint4 vectors[RESIDENT_SHAPE.stage])
{
#pragma unroll
    for (int i = 0; i < RESIDENT_SHAPE.stage; i++)
        if (turn == 0)
            vectors[i] = kept->first[i];
        else
            vectors[i] = turn + i < kept->turns ? stage_place(kept, turn)[i * RESIDENT_SHAPE.threads] : least_vector<Element>();
}

/* The copy of a stage starts when the stage before it is folded, not at the beginning: a warp with too many copies under way stalls,
   and folds nothing meanwhile. */
template <class Fold, class Element, bool passes>
static __device__ __forceinline__ typename Fold::partial part_fold(const resident_kept<passes> *kept)
{
    constexpr int stage = RESIDENT_SHAPE.stage;
    typename Fold::partial partial = Fold::identity();
    [[maybe_unused]] double shared_max = -INFINITY;
#pragma unroll 1
    for (int turn = 0; turn < kept->rounds; turn += stage) {
        uint4 vectors[stage];
        if (turn > 0)
            copy_wait(0);
        stage_take<Element>(kept, turn, vectors);
        const bool again = turn + 2 * stage < kept->rounds; /* the last stage is still in its place when it is written */
        stage_ask(kept, turn + stage, again ? CACHE_KEEP : CACHE_DROP);
        vectors_take<Fold, Element, stage>(&partial, vectors, 0);
        if constexpr (!Fold::exact)
            shared_max = warp_share_max<Fold>(&partial, shared_max);
    }
    return partial;
}

/* Writes first what passes through, backwards, because its last stage is still in shared memory. */
template <class Arithmetic, class Element, bool passes>
static __device__ __forceinline__ void part_write(const resident_kept<passes> *kept, uint4 *to,
                                                  const struct softmax_constants &constants)
{
    constexpr int threads = RESIDENT_SHAPE.threads, stage = RESIDENT_SHAPE.stage;
    const int passing = passes ? (kept->rounds - kept->stay + stage - 1) / stage * stage : 0;
    const int staying = passes ? kept->stay : kept->turns;
#pragma unroll 1
    for (int step = 0; step < passing + staying; step += stage) {
        const int turn = step < passing ? kept->stay + passing - stage - step : step - passing;
        uint4 vectors[stage];
        if constexpr (passes)
            copy_wait(0);
        stage_take<Element>(kept, turn, vectors);
        if constexpr (passes)
            if (turn > kept->stay)
                stage_ask(kept, turn - stage, CACHE_DROP);
#pragma unroll
        for (int i = 0; i < stage; i++)
            if (turn + i < kept->turns)
                to[(turn + i) * threads] = vector_softmax<Arithmetic, Element>(vectors[i], constants);
    }
}

/* Thread 0 gets the partial of all blocks, if this is the first block or single_rank is set; else that of its own. All threads call it.
   One loop for both combines, so that the code is in the instruction cache the second time. */
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
            message_send(work.scratch[blockIdx.x].words, *partial, work.launch_id);
        if (blockIdx.x > 0 && !work.single_rank)
            return;
        *partial = Fold::identity();
#pragma unroll 1
        for (uint32_t block = threadIdx.x; block < gridDim.x; block += threads) {
            const auto other = message_receive<typename Fold::partial>(work.scratch[block].words, work.launch_id);
            Fold::combine(partial, &other);
        }
        __syncthreads();
    }
}

/* The first warp of the first block: sends `partial`, which thread 0 has, to the host, waits for its orders, and tells the other blocks. */
template <class Partial>
static __device__ __forceinline__ void host_ask(const struct resident_work &work, const Partial &partial,
                                                struct softmax_orders *orders)
{
    if (threadIdx.x == 0)
        message_send(work.mailbox->partial.words, partial, work.launch_id);
    orders_receive(work.mailbox, work.launch_id, orders);
    if (threadIdx.x == 0)
        message_send(work.scratch[2 * gridDim.x].words, *orders, work.launch_id);
}

/* Whether to proceed, and the constants: the same for all threads of all blocks. *partial is each thread's own. All threads call it. */
template <class Fold>
static __device__ __forceinline__ bool orders_get(const struct resident_work &work, typename Fold::partial *partial,
                                                  struct softmax_constants *constants)
{
    __shared__ struct softmax_orders orders;
    grid_combine<Fold>(work, partial);
    if (work.single_rank) {
        if (threadIdx.x == 0) {
            constants_from<Fold>(*partial, constants);
            orders = softmax_orders_of(constants);
        }
    } else if (threadIdx.x < 32) {
        if (blockIdx.x == 0)
            host_ask(work, *partial, &orders);
        else
            while (!message_look_by_warp(work.scratch[2 * gridDim.x].words, work.launch_id, &orders))
                wait_for_others();
    }
    __syncthreads();
    constants_from_orders(orders, constants);
    return orders.proceed != 0;
}

/* Tells the host that all blocks have written y, or that none has. Each block makes what it wrote visible to the whole system before it
   reports to the first block. All threads call it. */
static __device__ __forceinline__ void outcome_tell(const struct resident_work &work, bool written)
{
    const uint64_t outcome = written;
    __syncthreads();
    if (threadIdx.x == 0)
        __threadfence_system();
    if (blockIdx.x > 0) {
        if (threadIdx.x == 0)
            message_send(work.scratch[gridDim.x + blockIdx.x].words, outcome, work.launch_id);
        return;
    }
#pragma unroll 1
    for (uint32_t block = threadIdx.x + 1; block < gridDim.x; block += RESIDENT_SHAPE.threads)
        message_receive<uint64_t>(work.scratch[gridDim.x + block].words, work.launch_id);
    __syncthreads();
    if (threadIdx.x == 0)
        message_send(work.mailbox->outcome.words, outcome, work.launch_id);
}

template <class Element, bool logarithm, bool exact, bool passes>
static __global__ void __launch_bounds__(RESIDENT_SHAPE.threads, 1)
softmax_resident_kernel(const typename Element::stored *x, typename Element::stored *y,
                        const __grid_constant__ struct resident_work work)
{
    typedef softmax_fold<Element, logarithm, exact> Fold;
    typedef softmax_arithmetic<Element, logarithm> Arithmetic;
    extern __shared__ __align__(16) unsigned char bytes[];
    const uint64_t vectors = work.n / Element::per_vector;
    const struct resident_part part = part_of_block(vectors);
    resident_kept<passes> kept;
    const uint64_t last = vectors * Element::per_vector + threadIdx.x; /* less than a vector is left: the last block's */
    const bool has_last = blockIdx.x == gridDim.x - 1 && last < work.n;

    kept.others = (uint4 *)bytes + threadIdx.x;
    kept.from = (const uint4 *)x + part.first + threadIdx.x;
    kept.turns = turns_of_thread(part.count);
    kept.rounds = (int)((part.count + RESIDENT_SHAPE.threads - 1) / RESIDENT_SHAPE.threads);
    kept.stay = work.stay;
    part_begin<Element>(&kept);
    typename Fold::partial partial = part_fold<Fold, Element>(&kept);
    if (has_last) {
        typename Element::value value = Element::load(x[last]);
        Fold::tile(&partial, &value, 1, 0);
    }
    struct softmax_constants constants;
    const bool proceed = orders_get<Fold>(work, &partial, &constants);
    if (proceed) {
        if (has_last)
            round_to(&y[last], element_softmax<Arithmetic, Element>(x[last], constants));
        part_write<Arithmetic, Element>(&kept, (uint4 *)y + part.first + threadIdx.x, constants);
    }
    outcome_tell(work, proceed);
}

/* Calls `use` with the element type and its kernel. */
template <class Element, bool logarithm, bool exact, bool passes, class Use> static cudaError_t kernel_of_element(Use use)
{
    if constexpr (Element::is_floating)
        return use(Element(), softmax_resident_kernel<Element, logarithm, exact, passes>);
    else
        return cudaErrorInvalidValue;
}
template <bool logarithm, bool exact, bool passes, class Use> static cudaError_t kernel_of_type(allfold_type type, Use use)
{
    return with_element(type, [=](auto element) { return kernel_of_element<decltype(element), logarithm, exact, passes>(use); });
}
template <bool passes, class Use> static cudaError_t kernel_of(allfold_type type, bool logarithm, bool exact, Use use)
{
    if (logarithm) /* takes exact sums at both levels */
        return kernel_of_type<true, true, passes>(type, use);
    return exact ? kernel_of_type<false, true, passes>(type, use) : kernel_of_type<false, false, passes>(type, use);
}
template <class Use> static cudaError_t kernel_of(allfold_type type, bool logarithm, bool exact, bool passes, Use use)
{
    return passes ? kernel_of<true>(type, logarithm, exact, use) : kernel_of<false>(type, logarithm, exact, use);
}

cudaError_t softmax_resident_load(const struct softmax_capacity *capacity)
{
    cudaError_t code = cudaSuccess;
    for (int variant = 0; variant < 8; variant++)
        for (int type = ALLFOLD_TYPE_NONE + 1; type < ALLFOLD_TYPE_COUNT; type++)
            if (code == cudaSuccess && type_is_floating((allfold_type)type))
                code = kernel_of((allfold_type)type, (variant & 1) != 0, (variant & 2) != 0, (variant & 4) != 0, [=](auto, auto *kernel) {
                    return cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                (int)capacity->shared_bytes);
                });
    return code;
}

bool softmax_resident_fits(const struct softmax_call *call)
{
    const uint64_t on_chip = (uint64_t)call->space->multiprocessors * (RESIDENT_STAGE_BYTES + call->capacity.shared_bytes);
    const uint64_t most = on_chip + call->capacity.cache_bytes / 4 * RESIDENT_CACHE_QUARTERS;
    return call->capacity.shared_bytes > 0 && call->work.box.length > 0 && call->work.box.length <= most / allfold_type_bytes(call->work.x_type)
           && ((uintptr_t)call->work.x | (uintptr_t)call->work.y) % 16 == 0 && type_is_floating(call->work.x_type)
           && call->work.x_type == call->work.y_type;
}

/* How n elements of a type are cut. */
struct resident_cut {
    uint64_t blocks, places; /* places: of stages in a block's shared memory */
    int stay; /* as resident_work's */
    bool passes;
};
static struct resident_cut cut_to_fit(const struct softmax_call *call)
{
    constexpr uint64_t threads = RESIDENT_SHAPE.threads, stage = RESIDENT_SHAPE.stage, least = threads * RESIDENT_SHAPE.least;
    const uint64_t vectors = call->work.box.length / (sizeof(uint4) / allfold_type_bytes(call->work.x_type));
    struct resident_cut cut;
    cut.blocks = u64_max(1, u64_min((vectors + least - 1) / least, (uint64_t)call->space->multiprocessors));
    const uint64_t turns = ((vectors + cut.blocks - 1) / cut.blocks + threads - 1) / threads;
    const uint64_t others = turns > stage ? (turns - 1) / stage : 0; /* stages that are not in registers */
    cut.places = u64_min(others, call->capacity.shared_bytes / RESIDENT_STAGE_BYTES);
    cut.passes = others > cut.places;
    cut.stay = (int)(cut.places * stage); /* in registers, and in all places but the last */
    return cut;
}

int softmax_resident_launch(const struct softmax_call *call, void *stream)
{
    struct fold_space *const space = call->space;
    const struct resident_cut cut = cut_to_fit(call);
    const cudaError_t numbered = (cudaError_t)fold_launch_id_next(space, stream);
    if (numbered != cudaSuccess)
        return numbered;
    return kernel_of(call->work.x_type, call->work.logarithm, call->work.level == ALLFOLD_LEVEL_EXACT, cut.passes, [=](auto element, auto *kernel) {
        typedef typename decltype(element)::stored stored;
        const struct resident_work work = {call->work.box.length, (struct fold_message *)space->scratch, space->mailbox, space->launch_id,
                                           call->single_rank, cut.stay};
        cudaLaunchAttribute together = {}; /* blocks wait for each other */
        together.id = cudaLaunchAttributeCooperative;
        together.val.cooperative = 1;
        cudaLaunchConfig_t config = launch_config(cut.blocks, RESIDENT_SHAPE.threads, stream);
        config.dynamicSmemBytes = cut.places * RESIDENT_STAGE_BYTES;
        config.attrs = &together;
        config.numAttrs = 1;
        return cudaLaunchKernelEx(&config, kernel, (const stored *)call->work.x, (stored *)call->work.y, work);
    });
}

void softmax_order(struct fold_mailbox *mailbox, uint32_t launch_id, const struct softmax_constants *constants)
{
    struct softmax_orders orders = {};
    if (constants != nullptr)
        orders = softmax_orders_of(constants);
    message_put(&mailbox->orders, launch_id, &orders, sizeof orders);
}

bool softmax_outcome(const struct fold_mailbox *mailbox, uint32_t launch_id, bool *written)
{
    uint64_t outcome;
    if (!message_take(&mailbox->outcome, launch_id, &outcome, sizeof outcome))
        return false;
    *written = outcome != 0;
    return true;
}
