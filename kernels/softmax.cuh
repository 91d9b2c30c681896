/* What the kernels of softmax share: the softmax of an element and of a vector, in each arithmetic, and its constants. */
#pragma once

#include "fold/exponential.h"
#include "fold/softmax_constants.h"
#include "kernels/element.cuh"
#include "kernels/fold.cuh"

#include <type_traits>

/* The computations. softmax_short_in_f32: results of 16 bits. */
struct softmax_in_f32 {
    typedef float value;
    static __device__ __forceinline__ float of(float x, const softmax_constants &c) { return softmax_f32(x, &c); }
};
struct softmax_short_in_f32 {
    typedef float value;
    static __device__ __forceinline__ float of(float x, const softmax_constants &c) { return softmax_short(x, &c); }
};
struct softmax_in_f64 {
    typedef double value;
    static __device__ __forceinline__ double of(double x, const softmax_constants &c) { return softmax_f64(x, &c); }
};
struct log_softmax_in_f64 {
    typedef double value;
    static __device__ __forceinline__ double of(double x, const softmax_constants &c) { return log_softmax_f64(x, &c); }
};

/* Rounds to an element type: once, from either arithmetic. */
#define ROUND_TO(ID, name, ...)                                                                                            \
    static __device__ __forceinline__ void round_to(element_##name *y, float value) { *y = f32_to_##name(value); }         \
    static __device__ __forceinline__ void round_to(element_##name *y, double value) { *y = round_##name(value); }
FLOAT_TYPES(ROUND_TO)
#undef ROUND_TO

/* Two results of 16 bits, none of which is NaN with a sign or a payload. */
template <class Element> static __device__ __forceinline__ uint32_t round_two(float low, float high)
{
#if defined(__NVCC__) && __CUDA_ARCH__ >= 800
    if constexpr (Element::type == ALLFOLD_F16 || Element::type == ALLFOLD_BF16) {
        uint32_t both;
        if constexpr (Element::type == ALLFOLD_F16)
            asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
        else
            asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
        return both;
    } else
#endif
    {
        typename Element::stored elements[2];
        round_to(&elements[0], low);
        round_to(&elements[1], high);
        return (uint32_t)elements[1].bits << 16 | elements[0].bits;
    }
}

template <class Arithmetic, class Element>
static __device__ __forceinline__ typename Arithmetic::value element_softmax(typename Element::stored x,
                                                                             const softmax_constants &c)
{
    return Arithmetic::of((typename Arithmetic::value)Element::load(x), c);
}

/* Eight results of 16 bits, of which all are NaN or none. */
template <class Element> static __device__ __forceinline__ uint4 vector_rounded(const float y[8])
{
    typename Element::stored nan[8];
    if (y[0] == y[0])
        return make_uint4(round_two<Element>(y[0], y[1]), round_two<Element>(y[2], y[3]), round_two<Element>(y[4], y[5]), round_two<Element>(y[6], y[7]));
#pragma unroll
    for (int i = 0; i < 8; i++)
        round_to(&nan[i], y[0]);
    return vector_of(nan);
}

template <class Arithmetic, class Element>
static __device__ __forceinline__ uint4 vector_softmax(const uint4 &x, const softmax_constants &c)
{
    constexpr int count = Element::per_vector;
    typename Arithmetic::value y[count];
#pragma unroll
    for (int i = 0; i < count; i++)
        y[i] = element_softmax<Arithmetic, Element>(vector_element<typename Element::stored>(x, i), c);
    if constexpr (count == 8 && sizeof y[0] == 4) {
        return vector_rounded<Element>(y);
    } else {
        typename Element::stored rounded[count];
#pragma unroll
        for (int i = 0; i < count; i++)
            round_to(&rounded[i], y[i]);
        return vector_of(rounded);
    }
}

/* The fold of the first pass, of x and y of one type. */
template <class Element, bool logarithm, bool exact>
using softmax_fold = fold_of<softmax_monoid(Element::type, Element::type, logarithm, exact ? ALLFOLD_LEVEL_EXACT : ALLFOLD_LEVEL_FAST),
                             typename Element::value>;

/* What the second pass needs, from the whole array's partial. logarithm: of log-softmax, which needs no more than the maximum and the logarithm. */
template <class Fold, bool logarithm = false>
static __device__ __forceinline__ void constants_from(const typename Fold::partial &partial, struct softmax_constants *constants)
{
    pair sum;
    if constexpr (Fold::exact && Fold::f32_terms && !logarithm)
        sum = softmax_total_f32(&partial);
    else if constexpr (Fold::exact)
        sum = exp_bins_others(&partial, Fold::f32_terms);
    else
        sum = exp_others(partial.max, &partial.sum, Fold::f32_terms ? EXP_TERMS_F32 : EXP_TERMS_F64);
    if constexpr (logarithm) {
        constants->max = is_finite(partial.max) && sum.high == sum.high ? partial.max : (double)NAN;
        softmax_constants_log(partial.max, &sum, constants);
    } else {
        if constexpr (!Fold::exact || !Fold::f32_terms)
            sum = softmax_total(partial.max, sum);
        softmax_constants_from(partial.max, &sum, constants);
    }
}

/* Waits for the host's orders, for RESIDENT_WAIT_MILLISECONDS; without any they are not to write y. All lanes of a warp call it. *orders is
   shared memory. */
static __device__ __forceinline__ void orders_receive(const struct fold_mailbox *mailbox, uint32_t launch_id,
                                                      struct softmax_orders *orders)
{
    const uint64_t start = clock_nanoseconds();
#pragma unroll 1
    for (uint32_t look = 1; !message_look_by_warp(mailbox->orders.words, launch_id, orders); look++) {
        const bool late = look % 16 == 0 && clock_nanoseconds() - start > (uint64_t)RESIDENT_WAIT_MILLISECONDS * 1000000;
        if (__ballot_sync(0xffffffffu, late) != 0) {
            if (threadIdx.x % 32 == 0)
                memset(orders, 0, sizeof *orders);
            __syncwarp();
            return;
        }
    }
}

static __device__ __forceinline__ void constants_from_orders(const struct softmax_orders &orders, struct softmax_constants *constants)
{
    constants->max = orders.max;
    constants->log_sum = orders.log_sum;
    constants->log_low = orders.log_low;
    constants->inverse_high = orders.inverse_high;
    constants->inverse_low = orders.inverse_low;
    softmax_constants_derive(constants);
}

/* The arithmetic for x and y of one type; logarithms are always computed in f64. */
template <class Element, bool logarithm>
using softmax_arithmetic =
    std::conditional_t<logarithm, log_softmax_in_f64,
                       std::conditional_t<!std::is_same<typename Element::value, float>::value, softmax_in_f64,
                                          std::conditional_t<sizeof(typename Element::stored) == 2, softmax_short_in_f32, softmax_in_f32>>>;

/* Of a block's shared memory: a stage of softmax_resident.cu; and what kernels have beside their dynamic one, at most. */
constexpr size_t RESIDENT_STAGE_BYTES = (size_t)RESIDENT_SHAPE.threads * RESIDENT_SHAPE.stage * sizeof(uint4), OTHER_SHARED_BYTES = 2048;

/* Load the kernels of one launch for both passes (softmax_resident.cu), and of the second pass of f32. */
cudaError_t softmax_resident_load(const struct softmax_capacity *capacity);
cudaError_t second_pass_load(void);

/* Constants of the second pass. */
struct pass_constants {
    const softmax_constants *of; /* device memory, of each row in order; NULL: those of the only one are `given` */
    const uint64_t *proceed;     /* device memory, of rows in vectors: 0 leaves y as it is; or NULL */
    softmax_constants given;
    __device__ __forceinline__ softmax_constants of_row(uint64_t r) const { return of != nullptr ? of[r] : given; }
    __device__ __forceinline__ bool proceed_now() const { return proceed == nullptr || *proceed != 0; }
};
/* As normalise_launch. */
cudaError_t second_pass_start(const struct softmax_work *work, const struct pass_constants &constants, int multiprocessors, cudaStream_t stream);

static inline bool type_is_floating(allfold_type type)
{
    return with_element(type, [](auto element) { return decltype(element)::is_floating ? cudaSuccess : cudaErrorInvalidValue; })
           == cudaSuccess;
}
