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
    switch ((int)call.fold) {
#define CASE(ID, name, of_monoid, results, text)                                      \
    case ALLFOLD_##ID:                                                                \
        if constexpr (MONOID_##of_monoid == monoid)                                   \
            return FN_EXPAND(name##_finish, FAMILY)(&partial, finish);                \
        break;
        ALLFOLD_FOLDS(CASE)
#undef CASE
    }
    switch ((int)call.fold) {
#define FINISH(name, value_name)                                                      \
    if constexpr (FN_EXPAND(VALUE, FAMILY) == VALUE_##value_name)                     \
        return name##_finish_##value_name(&partial, finish);
#define CASE(ID, name, of_monoid, values)                                             \
    case ID:                                                                          \
        if constexpr (MONOID_##of_monoid == monoid) {                                 \
            VALUES_##values(FINISH, name)                                             \
        }                                                                             \
        break;
        EXACT_FOLDS(CASE)
#undef CASE
#undef FINISH
    }
    return ALLFOLD_UNSUPPORTED;
}

/* A value, which has the kind of the output's type already. False: it has not, as the integers of stats that are missing or do not fit. */
static __device__ __forceinline__ bool value_write(const struct axis_output &output, uint64_t place, const allfold_value &value)
{
    if (real_store(output.values, place, output.type, value.f64))
        return true;
    ((uint64_t *)output.values)[place] = value.u64; /* or an int64's bits */
    return value.kind != ALLFOLD_VALUE_F64;
}

/* Statistic i among the results, or -1: an axis of NaN alone has no mean, variance, min and max. */
static __device__ __forceinline__ int field_of(const struct fold_results &found, int i)
{
    enum { MEAN = 3, NORM1 = 7 };
    if (found.field_count == 10 || i < MEAN)
        return i;
    return i < NORM1 ? -1 : i - (NORM1 - MEAN);
}

static __device__ __forceinline__ uint64_t result_place(const struct axis_finish &call, uint64_t r)
{
    return call.first + (call.run == call.step ? r : r / call.run * call.step + r % call.run);
}

template <enum monoid monoid, class Value, class Partial>
static __device__ __forceinline__ void result_write(const Partial &partial, const struct axis_finish &call, uint64_t r)
{
    struct fold_results found;
    struct error error;
    const uint64_t place = result_place(call, r);
    const struct finish finish = {call.count, call.nan, call.ddof, call.format, false, &found, &error, nullptr};
    found.field_count = 0;
    error.status = ALLFOLD_OK;
    if (partial_finish<monoid>(partial, call, &finish) != ALLFOLD_OK) {
        *call.refused = 1;
        return;
    }
    const bool many = monoid_facts[monoid].cost == COST_STATS && call.fold == ALLFOLD_STATS;
#pragma unroll 1
    for (int i = 0; i < (many ? (int)call.outputs : 1); i++) {
        const int field = many ? field_of(found, i) : 0;
        allfold_value value;
        value.kind = ALLFOLD_VALUE_F64;
        value.f64 = (double)NAN;
        if (field >= 0)
            value = found.fields[field].value;
        if (call.of[i].values != nullptr && !value_write(call.of[i], place, value) && many && !is_floating_value<Value>)
            *call.refused = 1;
        if (call.of[i].indices != nullptr)
            call.of[i].indices[place] = field < 0 ? -1 : (int64_t)found.fields[field].index;
    }
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
template <enum monoid monoid, class Value, class Partial>
static __device__ __forceinline__ void result_finish(const Partial &partial, const struct axis_finish &call, uint64_t r)
{
    result_write<monoid, Value>(partial, call, r);
    result_tell(call, r);
}
