/* Launches folds along an axis, whose kernels are in axis_VALUE.cu, and makes the constants of softmax from their partials. */
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

int axis_send_launch(const struct axis_work *work, void *stream)
{
    const struct axis_window *const window = &work->window;
    if (window->memory == nullptr || window->step == 0)
        return cudaSuccess;
    return cudaMemcpyAsync(window->memory, work->partials, window->step, cudaMemcpyDefault, (cudaStream_t)stream);
}

/* The partials of sums of exponentials, in a row. */
struct sumexp_partials {
    const unsigned char *first;
    size_t stride;
    uint64_t count;
    bool exact, f32_terms, logarithm;
};

static __global__ void __launch_bounds__(AXIS_SHAPE.threads)
axis_constants(const __grid_constant__ struct sumexp_partials partials, struct softmax_constants *constants)
{
    const uint64_t r = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (r < partials.count)
        softmax_constants_of(partials.first + r * partials.stride, partials.exact, partials.f32_terms, partials.logarithm, &constants[r]);
}

int axis_constants_launch(const struct axis_work *work, uint64_t count, struct softmax_constants *constants, void *stream)
{
    const cudaLaunchConfig_t config = launch_config((count + AXIS_SHAPE.threads - 1) / AXIS_SHAPE.threads, AXIS_SHAPE.threads, stream);
    const bool exact = monoid_facts[work->monoid].level == ALLFOLD_LEVEL_EXACT;
    const struct sumexp_partials partials = {(const unsigned char *)work->partials,
                                             exact ? PARTIAL_STRIDE<struct exp_bins> : PARTIAL_STRIDE<struct exp_partial>, count, exact,
                                             monoid_facts[work->monoid].terms != TERMS_F64,
                                             work->monoid != MONOID_sumexp /* nothing but softmax from f32 */};
    return cudaLaunchKernelEx(&config, axis_constants, partials, constants);
}
