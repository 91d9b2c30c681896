/* Element types as C++ types, element<ALLFOLD_F32> and so on, and the 16-byte vectors in which elements are loaded. */
#pragma once

#include "base/elements.h"
#include "fold/table.h"
#include "kernels/ptx.cuh"

#include <cuda_runtime.h>

#include <type_traits>

/* Whether a value type is floating-point: integers have no NaN, and their sums are exact. */
template <class Value> constexpr bool is_floating_value = std::is_floating_point<Value>::value;

template <allfold_type type> struct element;
#define DEFINE_ELEMENT(ID, name, numpy, bytes, kind, value_name)                                \
    template <> struct element<ALLFOLD_##ID> {                                                  \
        typedef element_##name stored;                                                          \
        typedef value_##value_name value;                                                       \
        static constexpr allfold_type type = ALLFOLD_##ID;                                      \
        static constexpr bool is_floating = (kind) == 'f';                                      \
        static constexpr int per_vector = 16 / (bytes);                                         \
        static_assert(sizeof(stored) == (bytes), "the bytes of " #name);                        \
        static __device__ __forceinline__ value load(stored x) { return load_##name(x); }       \
    };
ALLFOLD_TYPES(DEFINE_ELEMENT)
#undef DEFINE_ELEMENT

/* Calls launch(element<type>()); an error for a number that is no type. */
template <class Launch> static cudaError_t with_element(allfold_type type, Launch launch)
{
    switch (type) {
#define CASE(ID, name, numpy, bytes, kind, value) \
    case ALLFOLD_##ID:                            \
        return launch(element<ALLFOLD_##ID>());
        ALLFOLD_TYPES(CASE)
#undef CASE
    case ALLFOLD_TYPE_NONE:
    case ALLFOLD_TYPE_COUNT:
        break;
    }
    return cudaErrorInvalidValue;
}

/* From one partial to the next where many lie together. */
template <class Partial> constexpr size_t PARTIAL_STRIDE = partial_bytes_aligned(sizeof(Partial));

static inline cudaLaunchConfig_t launch_config(uint64_t blocks, int threads, void *stream)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned int)blocks);
    config.blockDim = dim3((unsigned int)threads);
    config.stream = (cudaStream_t)stream;
    return config;
}

/* The least power of two that is at least x, and at most `most`, a power of two. */
static inline uint32_t power_up(uint64_t x, uint32_t most)
{
    uint32_t power = 1;
    while (power < most && power < x)
        power *= 2;
    return power;
}

/* Elements between x and the boundary of 16 bytes before it. */
template <class Stored> static inline __host__ __device__ uint32_t elements_before(const Stored *x) { return (uint32_t)((uintptr_t)x % sizeof(uint4) / sizeof *x); }

/* Element i of a vector, and a vector made of elements. i must be a constant to the compiler: all stays in registers. */
template <class Stored> static __device__ __forceinline__ Stored vector_element(const uint4 &vector, int i)
{
    const uint32_t words[4] = {vector.x, vector.y, vector.z, vector.w};
    Stored stored;
    if constexpr (sizeof stored == 16) {
        stored = vector;
    } else if constexpr (sizeof stored == 8) {
        const uint64_t bits = (uint64_t)words[2 * i + 1] << 32 | words[2 * i];
        memcpy(&stored, &bits, sizeof stored);
    } else {
        constexpr int per_word = 4 / sizeof stored;
        const uint32_t bits = words[i / per_word] >> (8 * sizeof stored * (i % per_word));
        memcpy(&stored, &bits, sizeof stored); /* little-endian: the low bytes */
    }
    return stored;
}

template <class Stored> static __device__ __forceinline__ uint4 vector_of(const Stored *stored)
{
    uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < (int)(16 / sizeof *stored); i++) {
        uint64_t bits = 0;
        memcpy(&bits, &stored[i], sizeof *stored);
        const int bit = 8 * (int)sizeof *stored * i;
        words[bit / 32] |= (uint32_t)bits << (bit % 32);
        if constexpr (sizeof *stored == 8)
            words[bit / 32 + 1] = (uint32_t)(bits >> 32);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

/* A vector of -inf. */
template <class Element> static __device__ __forceinline__ uint4 least_vector()
{
    typedef typename Element::stored stored;
    static_assert(Element::is_floating, "integers have no -inf");
    constexpr uint64_t bits = ~UINT64_C(0) << (float_format_of(Element::type).precision - 1);
    constexpr uint32_t low = sizeof(stored) == 2 ? (uint32_t)(bits << 16 | (bits & 0xffff)) : (uint32_t)bits;
    constexpr uint32_t high = sizeof(stored) == 8 ? (uint32_t)(bits >> 32) : low;
    return make_uint4(low, high, low, high);
}

static __device__ __forceinline__ bool is_vector_aligned(const void *x) { return ((uintptr_t)x & 15) == 0; }
