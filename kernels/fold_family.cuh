/* Body of the files that fold_family.h names: every fold of the element types TYPES. */
#include "kernels/exact.cuh"
#include "kernels/fold.cuh"
#include "kernels/fold_family.h"

template <class Fold, class Element, class plan>
static cudaError_t plan_start(const struct work *work, const struct fold_space *space, void *stream)
{
    const struct fold_cut cut = cut_of<Fold, Element, plan>(work->n / Element::per_vector, (uint64_t)space->multiprocessors);
    const cudaLaunchConfig_t config = launch_config(cut.blocks, plan::threads, stream);
    /* its own return value: cudaGetLastError might return an error that the caller's program left */
    return cudaLaunchKernelEx(&config, fold_kernel<Fold, Element, plan>, plan::input::of(work), work->n,
                              work->first, cut.rounds, (uint64_t *)space->scratch, (uint64_t *)&space->mailbox->partial,
                              space->launch_id);
}

template <class Fold, class Element>
static cudaError_t fold_start(const struct work *work, const struct fold_space *space, void *stream)
{
    if constexpr (Fold::cheap)
        if (work->n * sizeof(typename Element::stored) <= (uint64_t)space->multiprocessors * FOLD_SMALL_BYTES)
            return plan_start<Fold, Element, fold_plan<Fold, Element, true>>(work, space, stream);
    return plan_start<Fold, Element, fold_plan<Fold, Element>>(work, space, stream);
}

/* The kernels of one element type. */
template <class Element>
static cudaError_t element_start(const struct work *work, const struct fold_space *space, void *stream)
{
    typedef typename Element::value value;
    switch (work->monoid) {
#define CASE(name, ...)                                                                              \
    case MONOID_##name:                                                                              \
        if constexpr (monoid_takes(MONOID_##name, Element::type) && !monoid_has_mark(MONOID_##name)) \
            return fold_start<fold_of<MONOID_##name, value>, Element>(work, space, stream);         \
        break;
        STRUCT_MONOIDS(CASE)
#undef CASE
#define CASE(name, ...)                                                                              \
    case MONOID_##name:                                                                              \
        if constexpr (monoid_takes(MONOID_##name, Element::type))                                    \
            return exact_start<exact_of<MONOID_##name, value>, Element>(work, space, stream);       \
        break;
        WORD_MONOIDS(CASE)
#undef CASE
#define CASE(name, ...) case MONOID_##name: /* weighted.cu */
        WEIGHTED_MONOIDS(CASE)
#undef CASE
    case MONOID_COUNT:
        break;
    }
    return cudaErrorInvalidValue;
}

int FN_EXPAND(fold_launch, FAMILY)(const struct work *work, const struct fold_space *space, void *stream)
{
    switch (work->type) {
#define CASE(ID)         \
    case ALLFOLD_##ID: \
        return element_start<element<ALLFOLD_##ID>>(work, space, stream);
        TYPES(CASE)
#undef CASE
    default:
        return cudaErrorInvalidValue;
    }
}
