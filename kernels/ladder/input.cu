/* The input: made on the GPU, and found unchanged there afterwards. */
#include "kernels/ladder/measure.h"

#include "kernels/ladder/numbers.h"

template <class T> struct recipe {
    uint64_t n, peak;
    int bits;
    double unit;
    __device__ __forceinline__ T element(uint64_t i) const { return (T)((double)ladder_number(i, peak, bits) * unit); }
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

static unsigned int blocks_for(const struct ladder *ladder, uint64_t n)
{
    return (unsigned int)u64_max(1, u64_min(n / 256 + 1, 8 * (uint64_t)ladder->device.multiprocessors));
}

template <class T> static struct recipe<T> recipe_of(uint64_t n, int bits, double unit)
{
    return {n, n > 0 ? ladder_peak(n) : 0, bits, unit};
}

template <class T>
static allfold_status make_input(struct ladder *ladder, struct recipe<T> recipe, const void **x, struct error *error)
{
    static const char what[] = "making the input";
    const size_t bytes = (size_t)recipe.n * sizeof(T);
    void *memory;
    if (ladder_room(ladder, LADDER_INPUT, bytes + LADDER_GUARD_BYTES, &memory, error) != ALLFOLD_OK
        || ladder_cuda(ladder_launch(input_kernel<T>, blocks_for(ladder, recipe.n), 256, 0, ladder->stream, (T *)memory,
                                     recipe),
                       what, error)
               != ALLFOLD_OK
        || ladder_cuda(cudaMemsetAsync((char *)memory + bytes, LADDER_POISON, LADDER_GUARD_BYTES, ladder->stream), what,
                       error)
               != ALLFOLD_OK)
        return error->status;
    *x = memory;
    return ALLFOLD_OK;
}

template <class T>
static allfold_status find_changes(struct ladder *ladder, struct recipe<T> recipe, uint64_t *changes,
                                   struct error *error)
{
    static const char what[] = "looking whether the input changed";
    unsigned long long found = 0;
    void *counter;
    if (ladder_room(ladder, LADDER_COUNTER, sizeof found, &counter, error) != ALLFOLD_OK
        || ladder_cuda(cudaMemsetAsync(counter, 0, sizeof found, ladder->stream), what, error) != ALLFOLD_OK
        || ladder_cuda(ladder_launch(changes_kernel<T>, blocks_for(ladder, recipe.n), 256, 0, ladder->stream,
                                     (const T *)ladder->places[LADDER_INPUT], recipe, (unsigned long long *)counter),
                       what, error)
               != ALLFOLD_OK
        || ladder_cuda(cudaMemcpyAsync(&found, counter, sizeof found, cudaMemcpyDeviceToHost, ladder->stream), what,
                       error)
               != ALLFOLD_OK
        || ladder_wait(ladder, what, error) != ALLFOLD_OK)
        return error->status;
    *changes = found;
    return ALLFOLD_OK;
}

allfold_status ladder_input(struct ladder *ladder, allfold_type type, uint64_t n, const void **x, struct error *error)
{
    switch (type) {
#define CASE(ID, T, bits) \
    case ALLFOLD_##ID:    \
        return make_input(ladder, recipe_of<T>(n, bits, ladder_unit(bits, ALLFOLD_##ID != ALLFOLD_INT32)), x, error);
        LADDER_TYPES(CASE)
#undef CASE
    default:
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "the ladder has int32, f32 and f64 elements");
    }
}

allfold_status ladder_input_changes(struct ladder *ladder, allfold_type type, uint64_t n, uint64_t *changes,
                                    struct error *error)
{
    switch (type) {
#define CASE(ID, T, bits)                                                                                              \
    case ALLFOLD_##ID:                                                                                                 \
        return find_changes(ladder, recipe_of<T>(n, bits, ladder_unit(bits, ALLFOLD_##ID != ALLFOLD_INT32)), changes,  \
                            error);
        LADDER_TYPES(CASE)
#undef CASE
    default:
        return error_set(error, ALLFOLD_BAD_ARGUMENT, "the ladder has int32, f32 and f64 elements");
    }
}

static struct recipe<float> logits(uint64_t n)
{
    return recipe_of<float>(n, 24, ladder_unit(24, true) * LADDER_LOGITS);
}

allfold_status ladder_input_logits(struct ladder *ladder, uint64_t n, const float **x, struct error *error)
{
    const void *memory = NULL;
    if (make_input(ladder, logits(n), &memory, error) == ALLFOLD_OK)
        *x = (const float *)memory;
    return error->status;
}

allfold_status ladder_input_logits_changes(struct ladder *ladder, uint64_t n, uint64_t *changes, struct error *error)
{
    return find_changes(ladder, logits(n), changes, error);
}
