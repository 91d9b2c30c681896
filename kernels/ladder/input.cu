/* Makes the ladder's input on the GPU, and checks afterwards that it is unchanged. */
#include "kernels/ladder/input.h"

#include "measure/numbers.h"

#include <initializer_list>

template <class T> struct recipe {
    uint64_t n, peak;
    int bits;
    double unit;
    __device__ __forceinline__ T element(uint64_t i) const { return (T)((double)numbers_at(i, peak, bits) * unit); }
};

template <class T> static __global__ void input_kernel(T *x, struct recipe<T> recipe)
{
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < recipe.n; i += stride)
        x[i] = recipe.element(i);
}

template <class T>
static __global__ void changes_kernel(const T *x, struct recipe<T> recipe, unsigned long long *changes)
{
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x, first = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned char *const guard = (const unsigned char *)(x + recipe.n);
    unsigned long long found = 0;
    for (uint64_t i = first; i < recipe.n; i += stride)
        found += x[i] == recipe.element(i) ? 0 : 1;
    for (uint64_t i = first; i < LADDER_GUARD_BYTES; i += stride)
        found += guard[i] == LADDER_POISON ? 0 : 1;
    if (found > 0)
        atomicAdd(changes, found);
}

static unsigned int blocks_for(const struct gpu *gpu, uint64_t n)
{
    return (unsigned int)u64_max(1, u64_min(n / 256 + 1, 8 * (uint64_t)gpu->device.multiprocessors));
}

template <class T> static struct recipe<T> recipe_of(uint64_t n, int bits, double unit)
{
    return {n, n > 0 ? numbers_peak(n) : 0, bits, unit};
}

template <class T>
static allfold_status make_input(struct gpu *gpu, struct recipe<T> recipe, const void **x, struct error *error)
{
    const size_t bytes = (size_t)recipe.n * sizeof(T);
    T *memory;
    if (gpu_buffer(gpu, GPU_INPUT, bytes + LADDER_GUARD_BYTES, &memory, error) == ALLFOLD_OK
        && gpu_check(gpu_launch(input_kernel<T>, blocks_for(gpu, recipe.n), 256, 0, gpu->stream, memory, recipe),
                     "making the input", error) == ALLFOLD_OK
        && gpu_fill(gpu, memory + recipe.n, LADDER_POISON, LADDER_GUARD_BYTES, error) == ALLFOLD_OK)
        *x = memory;
    return error->status;
}

template <class T>
static allfold_status find_changes(struct gpu *gpu, struct recipe<T> recipe, uint64_t *changes,
                                   struct error *error)
{
    unsigned long long found = 0, *counter;
    if (gpu_buffer(gpu, GPU_COUNTER, sizeof found, &counter, error) != ALLFOLD_OK
        || gpu_fill(gpu, counter, 0, sizeof found, error) != ALLFOLD_OK
        || gpu_check(gpu_launch(changes_kernel<T>, blocks_for(gpu, recipe.n), 256, 0, gpu->stream,
                                (const T *)gpu->buffers[GPU_INPUT], recipe, counter), "looking whether the input changed", error)
               != ALLFOLD_OK
        || gpu_fetch(gpu, &found, counter, sizeof found, error) != ALLFOLD_OK)
        return error->status;
    *changes = found;
    return ALLFOLD_OK;
}

allfold_status ladder_input(struct gpu *gpu, allfold_type type, uint64_t n, const void **x, struct error *error)
{
    switch (type) {
#define CASE(ID, T, bits) \
    case ALLFOLD_##ID:    \
        return make_input(gpu, recipe_of<T>(n, bits, numbers_unit(bits, ALLFOLD_##ID != ALLFOLD_INT32)), x, error);
        LADDER_TYPES(CASE)
#undef CASE
    default:
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "the ladder has int32, f32 and f64 elements");
    }
}

allfold_status ladder_input_changes(struct gpu *gpu, allfold_type type, uint64_t n, uint64_t *changes,
                                    struct error *error)
{
    switch (type) {
#define CASE(ID, T, bits)                                                                                              \
    case ALLFOLD_##ID:                                                                                                 \
        return find_changes(gpu, recipe_of<T>(n, bits, numbers_unit(bits, ALLFOLD_##ID != ALLFOLD_INT32)), changes,  \
                            error);
        LADDER_TYPES(CASE)
#undef CASE
    default:
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "the ladder has int32, f32 and f64 elements");
    }
}

static allfold_status make_floats(struct gpu *gpu, struct recipe<float> recipe, const float **x, struct error *error)
{
    const void *memory = NULL;
    if (make_input(gpu, recipe, &memory, error) == ALLFOLD_OK)
        *x = (const float *)memory;
    return error->status;
}

allfold_status ladder_input_integers(struct gpu *gpu, int bits, uint64_t n, const float **x, struct error *error)
{
    return make_floats(gpu, recipe_of<float>(n, bits, 1.0), x, error);
}

allfold_status ladder_input_integers_changes(struct gpu *gpu, int bits, uint64_t n, uint64_t *changes, struct error *error)
{
    return find_changes(gpu, recipe_of<float>(n, bits, 1.0), changes, error);
}

static struct recipe<float> logits(uint64_t n)
{
    return recipe_of<float>(n, 24, numbers_unit(24, true) * LADDER_LOGITS);
}

allfold_status ladder_input_logits(struct gpu *gpu, uint64_t n, const float **x, struct error *error)
{
    return make_floats(gpu, logits(n), x, error);
}

allfold_status ladder_input_logits_changes(struct gpu *gpu, uint64_t n, uint64_t *changes, struct error *error)
{
    return find_changes(gpu, logits(n), changes, error);
}

allfold_status ladder_poison(struct gpu *gpu, struct error *error)
{
    for (const enum gpu_buffers which : {GPU_WORK, GPU_PARTIALS, GPU_PARTIALS_2, GPU_RESULT})
        if (gpu->buffers[which] != NULL)
            gpu_fill(gpu, gpu->buffers[which], LADDER_POISON, gpu->buffer_bytes[which], error);
    return error->status;
}
