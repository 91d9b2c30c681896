/* Body of fold_VALUE.cu: every fold of every element type whose value type is FAMILY. */
#include "kernels/fold.cuh"
#include "kernels/fold_family.h"

#include <type_traits>

template <class Fold, class Element>
static cudaError_t fold_start(const struct fold_input *input, struct fold_space *space, void *stream)
{
    typedef fold_plan<Fold, Element> plan;
    const uint64_t vectors = input->n / Element::per_vector;
    const uint64_t most = (uint64_t)space->multiprocessors * plan::shape.blocks;
    const uint64_t wanted = (vectors + plan::threads - 1) / plan::threads;
    const bool one = vectors <= (uint64_t)plan::block_vectors * FOLD_ROUNDS_OF_ONE_BLOCK;
    const uint64_t blocks = one ? 1 : u64_min(wanted, most);
    const uint64_t rounds = vectors / (blocks * plan::block_vectors);

    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned int)blocks);
    config.blockDim = dim3(plan::threads);
    config.stream = (cudaStream_t)stream;
    /* what it returns is this launch's error; cudaGetLastError may hold one that the caller's program left */
    return cudaLaunchKernelEx(&config, fold_kernel<Fold, Element, plan>, (const typename Element::stored *)input->x, input->n,
                              input->first, rounds, (uint64_t *)space->scratch, (uint64_t *)&space->mailbox->partial, space->number);
}

/* The kernels of one element type; nothing where its value type is another family's. */
template <class Element>
static cudaError_t element_start(enum monoid monoid, const struct fold_input *input, struct fold_space *space,
                                 void *stream)
{
    if constexpr (std::is_same<typename Element::value, FN_EXPAND(value, FAMILY)>::value) {
        switch (monoid) {
#define CASE(name, indexed, nan) \
    case MONOID_##name:          \
        return fold_start<fold_of<MONOID_##name, typename Element::value>, Element>(input, space, stream);
            MONOIDS(CASE)
#undef CASE
        case MONOID_COUNT:
            break;
        }
    }
    return cudaErrorInvalidValue;
}

int FN_EXPAND(fold_launch, FAMILY)(enum monoid monoid, allfold_type type, const struct fold_input *input,
                                   struct fold_space *space, void *stream)
{
    switch (type) {
#define CASE(ID, name, numpy, bytes, kind, value) \
    case ALLFOLD_##ID:                            \
        return element_start<element<ALLFOLD_##ID>>(monoid, input, space, stream);
        ALLFOLD_TYPES(CASE)
#undef CASE
    case ALLFOLD_TYPE_COUNT:
        break;
    }
    return cudaErrorInvalidValue;
}
