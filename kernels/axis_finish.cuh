/* Finishes partials of folds along an axis on the device, with each fold's own function (fold/finish.h). Included by axis_family.cuh,
   for the value type FAMILY. */
#pragma once

#include "fold/finish.h"

#include "kernels/axis_element.cuh"
#include "kernels/ptx.cuh"
#include "kernels/softmax.cuh"

/* Finishes the partial of a monoid as `call` wants it. */
template <enum monoid monoid, class Partial>
static __device__ __forceinline__ allfold_status partial_finish(const Partial &partial, const struct axis_finish &call, const struct finish *finish)
{
    if constexpr (monoid == MONOID_logits)
        return FN_EXPAND(log_probs_finish, FAMILY)(&partial, finish);
    if constexpr (monoid == MONOID_logits_exact)
        return FN_EXPAND(log_probs_exact_finish, FAMILY)(&partial, finish);
    switch ((int)call.fold) {
#define CASE(ID, name, of_monoid, results, text)                                      \
    case ALLFOLD_##ID:                                                                \
        if constexpr (MONOID_##of_monoid == monoid)                                   \
            return FN_EXPAND(name##_finish, FAMILY)(&partial, finish);                \
        break;
        ALLFOLD_FOLDS(CASE)
#undef CASE
    }
#define FINISH(name, value_name)                                                      \
    if constexpr (FN_EXPAND(VALUE, FAMILY) == VALUE_##value_name)                     \
        return name##_finish_##value_name(&partial, finish);
#define METHOD(when, ID, name, of_monoid, values)                                     \
    if constexpr (MONOID_##of_monoid == monoid)                                       \
        if ((int)call.fold == (int)ID) {                                              \
            VALUES_##values(FINISH, name)                                             \
        }
    FOLD_METHODS(METHOD)
#undef METHOD
#undef FINISH
    return ALLFOLD_UNSUPPORTED;
}

/* Writes what `results` adds to a struct finish: `fields` results, or of stats all that are wanted. False: a result does not exist, or does not fit
   its type. */
template <bool is_stats, int fields = 1, class Results>
static __device__ __forceinline__ bool results_write(const struct axis_finish &call, uint64_t r, const Results &results)
{
    struct fold_results found;
    struct error error;
    const uint64_t place = call.first + result_place(r, call.run, call.step);
    struct stats_row row = {call.of, place, 0, true};
    const struct finish finish = {call.count, call.nan, call.ddof, call.format, false, &found, &error, nullptr, &row};
    found.field_count = 0;
    error.status = ALLFOLD_OK;
    if (!results(&finish))
        return false;
    if (!is_stats || call.fold != ALLFOLD_STATS) {
        bool fits = true;
#pragma unroll
        for (int i = 0; i < fields; i++)
            fits &= result_store(&found.fields[i], &call.of[i], place);
        return fits;
    }
    if (row.stored != (1u << STATISTIC_END) - 1)
#pragma unroll 1
        for (int i = 0; i < STATISTIC_END; i++)
            if ((row.stored >> i & 1) == 0)
                row.fits &= result_store(nullptr, &call.of[i], place);
    return row.fits;
}

/* Of a partial with a mark there are all of log_probs. */
template <enum monoid monoid> constexpr int FIELDS_OF = monoid_has_mark(monoid) ? 4 : 1;

template <enum monoid monoid, class Partial>
static __device__ __forceinline__ void result_write(const Partial &partial, const struct axis_finish &call, uint64_t r)
{
    const auto finish = [&](const struct finish *to) { return partial_finish<monoid>(partial, call, to) == ALLFOLD_OK; };
    if (!results_write<monoid_facts[monoid].cost == COST_STATS, FIELDS_OF<monoid>>(call, r, finish))
        *call.refused = 1;
}

/* Tells that result r is there, if the host waits for that. */
static __device__ __forceinline__ void result_tell(const struct axis_finish &call, uint64_t r)
{
    if (call.done != nullptr) {
        __threadfence_system();
        store_words(call.done + 2 * r, (uint64_t)call.launch_id << 32, (uint64_t)call.launch_id << 32);
    }
}

/* Finishes result r. */
template <enum monoid monoid, class Partial>
static __device__ __forceinline__ void result_finish(const Partial &partial, const struct axis_finish &call, uint64_t r)
{
    result_write<monoid>(partial, call, r);
    result_tell(call, r);
}

/* The same apart, because it takes many registers. */
template <enum monoid monoid, class Partial>
static __device__ __noinline__ void result_apart(const Partial *partial, const struct axis_finish *call, uint64_t r)
{
    result_finish<monoid>(*partial, *call, r);
}
