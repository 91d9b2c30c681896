/* Launches folds along an axis, whose kernels are in axis_VALUE.cu, and the second pass of softmax along an axis: a thread takes
   elements of one row, side by side with its neighbours. */
#include "kernels/axis_element.cuh"
#include "kernels/axis_family.h"
#include "kernels/softmax.cuh"

int axis_launch(const struct axis_work *work, int multiprocessors, void *stream)
{
#define ROW(nothing, value) axis_launch_##value,
    static decltype(&axis_launch_f32) const launches[] = {VALUES(ROW, )};
#undef ROW
    const enum value value = type_value(work->type);
    if (work->box.outer * work->box.inner == 0)
        return cudaSuccess;
    return value < VALUE_COUNT ? launches[value](work, multiprocessors, stream) : cudaErrorInvalidValue;
}

int axis_parts_launch(const struct axis_work *work, uint64_t parts, void *stream)
{
#define ROW(nothing, value) axis_parts_launch_##value,
    static decltype(&axis_parts_launch_f32) const launches[] = {VALUES(ROW, )};
#undef ROW
    const enum value value = type_value(work->type);
    if (work->box.outer * work->box.inner == 0)
        return cudaSuccess;
    return value < VALUE_COUNT ? launches[value](work, parts, stream) : cudaErrorInvalidValue;
}

static __global__ void __launch_bounds__(AXIS_SHAPE.threads)
axis_constants(const unsigned char *partials, size_t stride, uint64_t count, bool exact, bool f32_terms, struct softmax_constants *constants)
{
    const uint64_t r = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= count)
        return;
    softmax_constants_of(partials + r * stride, exact, f32_terms, &constants[r]);
}

int axis_constants_launch(const struct axis_work *work, uint64_t count, struct softmax_constants *constants, void *stream)
{
    const cudaLaunchConfig_t config = launch_config((count + AXIS_SHAPE.threads - 1) / AXIS_SHAPE.threads, AXIS_SHAPE.threads, stream);
    const bool exact = monoid_facts[work->monoid].level == ALLFOLD_LEVEL_EXACT;
    const size_t stride = ((exact ? sizeof(struct exp_bins) : sizeof(struct exp_partial)) + 15) / 16 * 16; /* as partial_stride */
    return cudaLaunchKernelEx(&config, axis_constants, (const unsigned char *)work->partials, stride, count, exact,
                              monoid_facts[work->monoid].terms != TERMS_F64, constants);
}

/* How the second pass is cut: a block's threads are members of groups, and a group has one row. */
struct pass_cut {
    struct softmax_axis_work work;
    uint64_t results, splits, chunk;
    uint32_t groups, members;
    bool columns;
};

template <class Value> static __device__ __forceinline__ void axis_store(void *y, uint64_t at, allfold_type type, Value value)
{
    switch (type) {
    case ALLFOLD_F16: round_to((element_f16 *)y + at, value); break;
    case ALLFOLD_BF16: round_to((element_bf16 *)y + at, value); break;
    case ALLFOLD_F32: round_to((element_f32 *)y + at, value); break;
    default: /* results in f32 arithmetic are never f64 */
        if constexpr (sizeof value == 8)
            round_to((element_f64 *)y + at, value);
    }
}

template <class Arithmetic, class Value>
static __global__ void __launch_bounds__(AXIS_SHAPE.threads)
axis_normalise(const __grid_constant__ struct pass_cut cut, const softmax_constants *constants)
{
    const struct softmax_axis_work &work = cut.work;
    const struct box &box = work.box;
    const uint32_t group = cut.columns ? threadIdx.x % cut.groups : threadIdx.x / cut.members;
    const uint32_t member = cut.columns ? threadIdx.x / cut.groups : threadIdx.x % cut.members;
    const uint64_t split = blockIdx.x % cut.splits, r = blockIdx.x / cut.splits * cut.groups + group;
    if (r >= cut.results)
        return;
    const softmax_constants c = constants[r];
    const uint64_t next = (split + 1) * cut.chunk, end = next < box.length ? next : box.length, o = r / box.inner, i = r % box.inner;
    const uint64_t x_at = o * box.outer_stride + i, y_at = o * work.y_outer_stride + i;
#pragma unroll 4
    for (uint64_t l = split * cut.chunk + member; l < end; l += cut.members) {
        const Value x = axis_load<Value>(work.x, x_at + l * box.axis_stride, work.x_type);
        axis_store(work.y, y_at + l * work.y_axis_stride, work.y_type, Arithmetic::of((typename Arithmetic::value)x, c));
    }
}

template <class Arithmetic, class Value>
static cudaError_t pass_start(const struct pass_cut *cut, const softmax_constants *constants, cudaStream_t stream)
{
    const uint64_t blocks = (cut->results + cut->groups - 1) / cut->groups * cut->splits;
    const cudaLaunchConfig_t config = launch_config(blocks, (int)(cut->groups * cut->members), stream);
    return blocks > INT32_MAX ? cudaErrorInvalidValue
                              : cudaLaunchKernelEx(&config, axis_normalise<Arithmetic, Value>, *cut, constants);
}

/* The arithmetic follows from the types as in softmax.cu and on the CPU. */
template <class Value> static cudaError_t value_start(const struct pass_cut *cut, const softmax_constants *constants, cudaStream_t stream)
{
    if (cut->work.logarithm)
        return pass_start<log_softmax_in_f64, Value>(cut, constants, stream);
    if constexpr (std::is_same<Value, float>::value) {
        if (cut->work.y_type == ALLFOLD_F32)
            return pass_start<softmax_in_f32, Value>(cut, constants, stream);
        if (cut->work.y_type != ALLFOLD_F64)
            return pass_start<softmax_short_in_f32, Value>(cut, constants, stream);
    }
    return pass_start<softmax_in_f64, Value>(cut, constants, stream);
}

int axis_normalise_launch(const struct softmax_axis_work *work, const struct softmax_constants *constants, int multiprocessors,
                          void *stream)
{
    const struct box *const box = &work->box;
    struct pass_cut cut = {};
    cut.work = *work;
    cut.results = box->outer * box->inner;
    cut.columns = box->inner > 1 || (box->outer_stride == 1 && box->axis_stride != 1);
    if (cut.results == 0 || box->length == 0)
        return cudaSuccess;
    cut.groups = cut.members = 1;
    while (cut.columns && cut.groups < AXIS_SHAPE.threads && cut.groups < cut.results)
        cut.groups *= 2;
    while (cut.groups * cut.members < AXIS_SHAPE.threads && cut.members < box->length)
        cut.members *= 2;
    while (cut.groups * cut.members < AXIS_SHAPE.threads && cut.groups < cut.results)
        cut.groups *= 2;
    const uint64_t blocks = (cut.results + cut.groups - 1) / cut.groups, wanted = (uint64_t)multiprocessors * AXIS_SHAPE.blocks;
    const uint64_t splits = u64_min(u64_max(1, 4 * wanted / blocks), (box->length + cut.members - 1) / cut.members);
    cut.chunk = ((box->length + splits - 1) / splits + cut.members - 1) / cut.members * cut.members;
    cut.splits = (box->length + cut.chunk - 1) / cut.chunk;
    switch (type_value(work->x_type)) {
#define CASE(nothing, value)  \
    case VALUE_##value: \
        return value_start<value_##value>(&cut, constants, (cudaStream_t)stream);
        VALUES(CASE, )
#undef CASE
    case VALUE_COUNT:
        break;
    }
    return cudaErrorInvalidValue;
}
