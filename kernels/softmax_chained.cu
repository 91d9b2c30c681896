/* Softmax of a whole array by four kernels that are launched together: the fold; a small one that makes the constants, or waits for the host's
   orders; the second pass, which reads the constants from memory; and one of one thread, which tells the host. */
#include "kernels/kernels.h"
#include "kernels/softmax.cuh"

#include <initializer_list>

/* What the second pass needs, in device memory. */
struct between_passes {
    softmax_constants constants;
    uint64_t proceed; /* 0: leave y as it is */
};

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
    return (call->single_rank || call->capacity.shared_bytes > 0) && !work->logarithm && work->box.length > 0
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

int softmax_chained_launch(const struct softmax_call *call, void *stream)
{
    struct fold_space *const space = call->space;
    struct fold_mailbox *const inner = (struct fold_mailbox *)fold_scratch_end(space);
    struct fold_mailbox *const mailbox = call->single_rank ? inner : space->mailbox;
    between_passes *const between = (between_passes *)(inner + 1);
    static_assert(sizeof *inner + sizeof *between <= FOLD_SCRATCH_END_BYTES, "room for both");
    const struct softmax_work *const work = &call->work;
    const cudaStream_t in = (cudaStream_t)stream;
    const struct pass_constants constants = {&between->constants, &between->proceed, {}};
    const struct work first = {softmax_monoid(work->x_type, work->y_type, false, work->level), work->x_type, work->x, work->box.length, 0, NULL, NULL};
    const auto middle = !call->single_rank                   ? orders_kernel
                        : work->level == ALLFOLD_LEVEL_EXACT ? constants_kernel<chained_fold<true>>
                                                             : constants_kernel<chained_fold<false>>;
    cudaError_t code = (cudaError_t)fold_launch_id_next(space, stream);
    if (code == cudaSuccess)
        code = (cudaError_t)fold_launch_to(mailbox, &first, space, stream);
    if (code == cudaSuccess)
        code = small_start(call->capacity.is_hopper, call->single_rank ? 1 : 32, in, middle, (const struct fold_mailbox *)mailbox,
                           space->launch_id, between);
    if (code == cudaSuccess)
        code = second_pass_start(work, constants, space->multiprocessors, in);
    if (code == cudaSuccess)
        code = small_start(call->capacity.is_hopper, 1, in, outcome_kernel, (const between_passes *)between,
                           (uint64_t *)space->mailbox->outcome.words, space->launch_id);
    return code;
}

/* Code compiled for less than compute capability 9.0 has no instruction that waits for the kernel before: such kernels must not start
   early. */
int softmax_capacity_of(int device, struct softmax_capacity *capacity)
{
    cudaFuncAttributes attributes = {};
    int most = 0, cache = 0;
    cudaError_t code = cudaFuncGetAttributes(&attributes, outcome_kernel);
    if (code == cudaSuccess)
        code = cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (code == cudaSuccess)
        code = cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device);
    capacity->block_bytes = u64_max((uint64_t)most, OTHER_SHARED_BYTES) - OTHER_SHARED_BYTES;
    capacity->shared_bytes = capacity->block_bytes / RESIDENT_STAGE_BYTES * RESIDENT_STAGE_BYTES;
    capacity->cache_bytes = (size_t)cache;
    capacity->is_hopper = attributes.ptxVersion >= 90;
    return code;
}

int softmax_load(const struct softmax_capacity *capacity)
{
    cudaFuncAttributes attributes = {};
    cudaError_t code = softmax_resident_load(capacity);
    if (code == cudaSuccess)
        code = second_pass_load();
    for (const auto middle : {orders_kernel, constants_kernel<chained_fold<true>>, constants_kernel<chained_fold<false>>})
        if (code == cudaSuccess)
            code = cudaFuncGetAttributes(&attributes, middle);
    return code;
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
    return cudaFuncGetAttributes(&attributes, outcome_kernel);
}
