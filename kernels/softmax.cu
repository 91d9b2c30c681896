/* The second pass of softmax: y[i] from x[i] and the global maximum and sum, for all element types.

     softmax_vectors    each thread: loads one vector of x, stores that of y, and ends
     softmax_rounds     each thread, for every round, from the last one on: copies its vectors of the round before to shared memory;
                            meanwhile y from those of this round
     softmax_elements   the same, an element at a time: types that differ, any alignment

   Backwards, because the first pass ended there, and left the last elements in the second-level cache. In place, the thread that writes an
   element has read it before, and no other thread touches it. */
#include "kernels/kernels.h"
#include "kernels/ptx.cuh"
#include "kernels/softmax.cuh"
#include "kernels/tuning.h"

#include <initializer_list>

/* What the second pass needs, in device memory, if the host does not launch that pass. */
struct between_passes {
    softmax_constants constants;
    uint64_t proceed; /* 0: leave y as it is */
};
/* The second pass gets its constants with the launch, or reads them there. */
struct constants_in_memory {
    const between_passes *at;
};
static __device__ __forceinline__ const softmax_constants &constants_of(const softmax_constants &c) { return c; }
static __device__ __forceinline__ softmax_constants constants_of(const constants_in_memory &c) { return c.at->constants; }
static __device__ __forceinline__ bool proceeds(const softmax_constants &) { return true; }
static __device__ __forceinline__ bool proceeds(const constants_in_memory &c) { return c.at->proceed != 0; }

template <bool in_vectors, class Arithmetic, class Element> struct softmax_plan {
    static constexpr struct softmax_shape shape =
        softmax_shape_of(in_vectors, sizeof(typename Element::stored), sizeof(typename Arithmetic::value));
    static constexpr int threads = shape.threads, blocks = shape.blocks, flight = shape.flight;
};

/* x and y of one type, both aligned to 16 bytes; loads and stores are marked to be evicted first. A thread takes one vector and ends: as
   blocks start one after the other, they go through memory in order. */
template <class Arithmetic, class Element, class Constants>
static __global__ void __launch_bounds__(softmax_plan<true, Arithmetic, Element>::threads,
                                         softmax_plan<true, Arithmetic, Element>::blocks)
softmax_vectors(const typename Element::stored *x, typename Element::stored *y, uint64_t n,
                const __grid_constant__ Constants given)
{
    constexpr int threads = softmax_plan<true, Arithmetic, Element>::threads;
    const uint64_t vectors = n / Element::per_vector, block = gridDim.x - 1 - blockIdx.x;
    const uint64_t mine = block * threads + threadIdx.x, last = vectors * Element::per_vector + threadIdx.x;
    const softmax_constants &c = constants_of(given);
    const bool proceed = proceeds(given);
    if (mine < vectors) {
        const uint4 results = vector_softmax<Arithmetic, Element>(__ldcs((const uint4 *)x + mine), c);
        if (proceed) /* tested after the loads have started */
            __stcs((uint4 *)y + mine, results);
    }
    if (blockIdx.x == 0 && last < n && proceed)
        round_to(&y[last], element_softmax<Arithmetic, Element>(x[last], c));
}

/* Starts to copy a thread's vectors of a round, the first of which is `first`, to its own slots of shared memory. */
template <int flight, int threads>
static __device__ __forceinline__ void round_copy(uint4 *slots, const uint4 *from, uint64_t first, uint64_t vectors)
{
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
#pragma unroll
    for (int i = 0; i < flight; i++)
        if (first + i * stride < vectors)
            copy_async(slots + i * threads, from + first + i * stride);
    copy_commit();
}

/* The same by blocks that stay, for vectors that take much arithmetic. Loads are not marked: that was slower. */
template <class Arithmetic, class Element>
static __global__ void __launch_bounds__(softmax_plan<true, Arithmetic, Element>::threads,
                                         softmax_plan<true, Arithmetic, Element>::blocks)
softmax_rounds(const typename Element::stored *x, typename Element::stored *y, uint64_t n,
               const __grid_constant__ softmax_constants c)
{
    typedef softmax_plan<true, Arithmetic, Element> plan;
    constexpr int flight = plan::flight, threads = plan::threads;
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x, mine = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint64_t vectors = n / Element::per_vector, rounds = (vectors + flight * stride - 1) / (flight * stride);
    const uint4 *const from = (const uint4 *)x;
    uint4 *const to = (uint4 *)y;

    const uint64_t last = vectors * Element::per_vector + mine;
    if (last < n)
        round_to(&y[last], element_softmax<Arithmetic, Element>(x[last], c));
    /* While a round is computed and stored, the next one is copied to the thread's own slots of shared memory. */
    __shared__ uint4 shared[flight * threads];
    uint4 *const slots = shared + threadIdx.x;
    if (rounds > 0)
        round_copy<flight, threads>(slots, from, (rounds - 1) * flight * stride + mine, vectors);
#pragma unroll 1
    for (uint64_t round = rounds; round-- > 0;) {
        const uint64_t first = round * flight * stride + mine;
        uint4 taken[flight];
        copy_wait(0);
#pragma unroll
        for (int i = 0; i < flight; i++)
            taken[i] = slots[i * threads];
        if (round > 0)
            round_copy<flight, threads>(slots, from, first - flight * stride, vectors);
#pragma unroll
        for (int i = 0; i < flight; i++)
            if (first + i * stride < vectors)
                __stcs(to + first + i * stride, vector_softmax<Arithmetic, Element>(taken[i], c));
    }
}

/* Any types and alignments, an element at a time. */
template <class Arithmetic, class Element>
static __global__ void __launch_bounds__(softmax_plan<false, Arithmetic, Element>::threads,
                                         softmax_plan<false, Arithmetic, Element>::blocks)
softmax_elements(const typename Element::stored *x, void *y, allfold_type y_type, uint64_t n,
                 const __grid_constant__ softmax_constants c)
{
    typedef typename Arithmetic::value value_type;
    constexpr int flight = softmax_plan<false, Arithmetic, Element>::flight;
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x, mine = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
    for (uint64_t round = (n + flight * stride - 1) / (flight * stride); round-- > 0;) {
        const uint64_t first = round * flight * stride + mine;
        typename Element::stored taken[flight];
        value_type values[flight];
#pragma unroll
        for (int i = 0; i < flight; i++)
            if (first + i * stride < n)
                taken[i] = x[first + i * stride];
#pragma unroll
        for (int i = 0; i < flight; i++)
            values[i] = element_softmax<Arithmetic, Element>(taken[i], c);
        switch (y_type) {
#define CASE(ID, type, ...)                                                                    \
    case ALLFOLD_##ID:                                                                         \
        _Pragma("unroll") for (int i = 0; i < flight; i++) if (first + i * stride < n)         \
            round_to((element_##type *)y + first + i * stride, values[i]);                     \
        break;
            FLOAT_TYPES(CASE)
#undef CASE
        default:
            break;
        }
    }
}

/* A launch of the second pass. */
struct second_pass {
    const struct softmax_work *work;
    const softmax_constants *constants;
    int multiprocessors;
    cudaStream_t stream;
};

/* A thread for each of `items`, in at most `most` blocks. */
static cudaLaunchConfig_t softmax_config(const struct second_pass *pass, struct softmax_shape shape, uint64_t items, uint64_t most)
{
    const uint64_t wanted = (items + shape.threads - 1) / shape.threads;
    return launch_config(u64_max(1, u64_min(wanted, most)), shape.threads, pass->stream);
}

/* For x and y of one type, aligned to 16 bytes. */
template <class Arithmetic, class Element, class Constants>
static cudaError_t vectors_start(const struct second_pass *pass, const Constants &constants)
{
    const auto *const x = (const typename Element::stored *)pass->work->x;
    auto *const y = (typename Element::stored *)pass->work->y;
    constexpr struct softmax_shape shape = softmax_plan<true, Arithmetic, Element>::shape;
    const uint64_t most = shape.flight == 1 ? UINT64_MAX : (uint64_t)pass->multiprocessors * shape.blocks;
    const cudaLaunchConfig_t config = softmax_config(pass, shape, pass->work->n / Element::per_vector, most);
    if constexpr (shape.flight == 1)
        return cudaLaunchKernelEx(&config, softmax_vectors<Arithmetic, Element, Constants>, x, y, pass->work->n, constants);
    else
        return cudaLaunchKernelEx(&config, softmax_rounds<Arithmetic, Element>, x, y, pass->work->n, constants);
}

template <class Arithmetic, class Element> static cudaError_t softmax_start(const struct second_pass *pass)
{
    typedef typename Element::stored stored;
    const stored *const x = (const stored *)pass->work->x;
    /* the type of y chooses the arithmetic: any other one means that y's type is not x's */
    constexpr bool one_type = Element::is_floating && (std::is_same<Arithmetic, softmax_arithmetic<Element, false>>::value
                                                       || std::is_same<Arithmetic, log_softmax_in_f64>::value);
    if constexpr (one_type)
        if (pass->work->x_type == pass->work->y_type && ((uintptr_t)pass->work->x | (uintptr_t)pass->work->y) % 16 == 0)
            return vectors_start<Arithmetic, Element>(pass, *pass->constants);
    constexpr struct softmax_shape shape = softmax_plan<false, Arithmetic, Element>::shape;
    const cudaLaunchConfig_t config =
        softmax_config(pass, shape, pass->work->n, (uint64_t)pass->multiprocessors * shape.blocks);
    return cudaLaunchKernelEx(&config, softmax_elements<Arithmetic, Element>, x, pass->work->y, pass->work->y_type, pass->work->n,
                              *pass->constants);
}

template <class Element> static cudaError_t element_start(const struct second_pass *pass)
{
    if (pass->work->logarithm)
        return softmax_start<log_softmax_in_f64, Element>(pass);
    if constexpr (std::is_same<typename Element::value, float>::value) {
        if (pass->work->y_type == ALLFOLD_F32)
            return softmax_start<softmax_in_f32, Element>(pass);
        if (pass->work->y_type != ALLFOLD_F64)
            return softmax_start<softmax_short_in_f32, Element>(pass);
    }
    return softmax_start<softmax_in_f64, Element>(pass);
}

int softmax_launch(const struct softmax_work *work, const struct softmax_constants *constants, int multiprocessors, void *stream)
{
    const struct second_pass pass = {work, constants, multiprocessors, (cudaStream_t)stream};
    if (!type_is_floating(work->y_type))
        return cudaErrorInvalidValue;
    if (work->n == 0)
        return cudaSuccess;
    return with_element(work->x_type, [&](auto element) { return element_start<decltype(element)>(&pass); });
}

/* Between the passes: the constants of the second one, from the fold's message. One thread. */
template <class Fold>
static __global__ void constants_kernel(const struct fold_mailbox *mailbox, uint32_t launch_id, between_passes *between)
{
    wait_for_last_kernel();
    const auto partial = message_receive<typename Fold::partial>(mailbox->partial.words, launch_id);
    constants_from<Fold>(partial, &between->constants);
    between->proceed = 1;
}

/* The same by the host's orders. One warp. */
static __global__ void orders_kernel(const struct fold_mailbox *mailbox, uint32_t launch_id, between_passes *between)
{
    __shared__ struct softmax_orders orders;
    wait_for_last_kernel();
    orders_receive(mailbox, launch_id, &orders);
    if (threadIdx.x == 0) {
        constants_from_orders(orders, &between->constants);
        between->proceed = orders.proceed;
    }
}

/* Tells the host that all before it in the stream is done. One thread. */
static __global__ void outcome_kernel(const between_passes *between, uint64_t *message, uint32_t launch_id)
{
    wait_for_last_kernel();
    __threadfence_system();
    message_send(message, between->proceed, launch_id);
}

template <bool exact> using chained_fold = softmax_fold<element<ALLFOLD_F32>, false, exact>;

/* Only f32. With f64 a thread would load five constants for its two elements, which was 2 to 5 % slower than a launch by the host; with
   types of 16 bits there was no difference. */
bool softmax_chained_fits(const struct softmax_call *call)
{
    const struct softmax_work *const work = &call->work;
    return (call->single_rank || call->capacity.shared_bytes > 0) && !work->logarithm && work->n > 0
           && work->x_type == ALLFOLD_F32 && work->y_type == ALLFOLD_F32 && ((uintptr_t)work->x | (uintptr_t)work->y) % 16 == 0;
}

/* Launches a kernel of one block. launches_overlap: it may start while the kernel before it in the stream ends. */
template <class Kernel, class... Arguments>
static cudaError_t small_start(bool launches_overlap, int threads, cudaStream_t stream, Kernel *kernel, const Arguments &...arguments)
{
    cudaLaunchAttribute serialization = {};
    serialization.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    serialization.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = launch_config(1, threads, stream);
    config.attrs = &serialization;
    config.numAttrs = launches_overlap;
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/* Code compiled for less than compute capability 9.0 has no instruction that waits for the kernel before: such kernels must not start
   early. */
static cudaError_t chained_prepare(struct softmax_capacity *capacity)
{
    cudaFuncAttributes attributes = {};
    cudaError_t code = cudaFuncGetAttributes(&attributes, softmax_vectors<softmax_in_f32, element<ALLFOLD_F32>, constants_in_memory>);
    for (const auto middle : {orders_kernel, constants_kernel<chained_fold<true>>, constants_kernel<chained_fold<false>>})
        if (code == cudaSuccess)
            code = cudaFuncGetAttributes(&attributes, middle);
    if (code == cudaSuccess)
        code = cudaFuncGetAttributes(&attributes, outcome_kernel);
    capacity->is_hopper = attributes.ptxVersion >= 90;
    return code;
}

int softmax_chained_launch(const struct softmax_call *call, void *stream)
{
    struct fold_space *const space = call->space;
    struct fold_mailbox *const inner = (struct fold_mailbox *)fold_scratch_end(space);
    struct fold_mailbox *const mailbox = call->single_rank ? inner : space->mailbox;
    between_passes *const between = (between_passes *)(inner + 1);
    static_assert(sizeof *inner + sizeof *between <= FOLD_SCRATCH_END_BYTES, "room for both");
    const struct softmax_work *const work = &call->work;
    const struct second_pass second = {work, NULL, space->multiprocessors, (cudaStream_t)stream};
    const struct work first = {softmax_monoid(work->x_type, work->y_type, false, work->level), work->x_type, work->x, work->n, 0, NULL, NULL};
    const auto middle = !call->single_rank                   ? orders_kernel
                        : work->level == ALLFOLD_LEVEL_EXACT ? constants_kernel<chained_fold<true>>
                                                             : constants_kernel<chained_fold<false>>;
    cudaError_t code = (cudaError_t)fold_launch_id_next(space, stream);
    if (code == cudaSuccess)
        code = (cudaError_t)fold_launch_to(mailbox, &first, space, stream);
    if (code == cudaSuccess)
        code = small_start(call->capacity.is_hopper, call->single_rank ? 1 : 32, second.stream, middle, (const struct fold_mailbox *)mailbox,
                           space->launch_id, between);
    if (code == cudaSuccess)
        code = vectors_start<softmax_in_f32, element<ALLFOLD_F32>>(&second, constants_in_memory{between});
    if (code == cudaSuccess)
        code = small_start(call->capacity.is_hopper, 1, second.stream, outcome_kernel, (const between_passes *)between,
                           (uint64_t *)space->mailbox->outcome.words, space->launch_id);
    return code;
}

int softmax_prepare(int device, struct softmax_capacity *capacity)
{
    const int code = softmax_resident_prepare(device, capacity);
    return code != cudaSuccess ? code : chained_prepare(capacity);
}

int softmax_launch_whole(const struct softmax_call *call, void *stream, bool *launched)
{
    *launched = true;
    if (softmax_resident_fits(call)) {
        const int code = softmax_resident_launch(call, stream);
        if (code != cudaErrorCooperativeLaunchTooLarge && code != cudaErrorNotSupported)
            return code;
        cudaGetLastError(); /* a part of a device (MIG), or a device that cannot run all blocks at the same time */
    }
    *launched = softmax_chained_fits(call);
    return *launched ? softmax_chained_launch(call, stream) : cudaSuccess;
}

int kernels_check(void)
{
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, softmax_elements<softmax_in_f32, element<ALLFOLD_F32>>);
}
