/* Makes the elements of generators in device memory, by the functions of base/draw.h, as on the CPU: the bits are the same.

     each thread, for its elements: a hash of the index; the element, by the distribution's function
     of normal numbers, each warp, for its tiles: makes those that are not in the tails, and notes the places of the others
         each lane makes some of these */
#include "base/draw.h"
#include "kernels/element.cuh"
#include "kernels/kernels.h"
#include "kernels/tuning.h"

/* How a number or its bits become a stored element. */
template <allfold_type type> struct drawn;
#define DEFINE_DRAWN(ID, name, ...)                                                                    \
    template <> struct drawn<ALLFOLD_##ID> {                                                           \
        typedef element_##name stored;                                                                 \
        static __device__ __forceinline__ stored of_real(const struct draw &d, double x)               \
        {                                                                                              \
            return round_##name(draw_clamp(x, d.least, d.greatest));                                   \
        }                                                                                              \
        static __device__ __forceinline__ stored of_bits(uint64_t bits)                                \
        {                                                                                              \
            stored element;                                                                            \
            memcpy(&element, &bits, sizeof element); /* little-endian: the low bytes */                \
            return element;                                                                            \
        }                                                                                              \
    };
FLOAT_TYPES(DEFINE_DRAWN)
#undef DEFINE_DRAWN

template <class Word> struct drawn_integer {
    typedef Word stored;
    static __device__ __forceinline__ Word of_real(const struct draw &d, double x) { return (Word)draw_whole(&d, x); }
    static __device__ __forceinline__ Word of_bits(uint64_t bits) { return (Word)bits; }
};

/* Elements of distributions without branches: make(index). */
template <class Stored, class Make> static __device__ __forceinline__ void each_element(struct range range, Stored *to, Make make)
{
    const uint64_t stride = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < range.count; i += stride)
        to[i] = make(range.first + i);
}

static constexpr uint32_t NORMAL_WARPS = GENERATE_SHAPE.threads / 32, NORMAL_TILE = 32 * GENERATE_SHAPE.elements;

static __device__ __forceinline__ double normal_number(const struct draw &d, uint64_t h, double deviate)
{
    const double x = draw_normal(&d, deviate);
    return d.outliers > 0 ? x * draw_outlier(&d, h) : x;
}

/* At most NORMAL_TILE elements, by one warp. Almost every 32 elements have a deviate of the tails among them, so every warp would take
   both branches. Instead the places of such deviates are noted; then each lane makes one of them. */
template <class Drawn>
static __device__ __forceinline__ void normal_tile(const struct draw &d, uint64_t first, uint32_t n, typename Drawn::stored *to,
                                                   uint16_t *places)
{
    const uint32_t lane = threadIdx.x % 32, lower_lanes = (1u << lane) - 1;
    uint32_t tails = 0;
#pragma unroll 4
    for (uint32_t i = lane; i < NORMAL_TILE; i += 32) {
        const uint64_t h = draw_hash(&d, first + i);
        const double q = draw_cell(h);
        const bool tail = i < n && draw_in_tail(q);
        const uint32_t tail_lanes = __ballot_sync(0xffffffffu, tail);
        if (tail)
            places[tails + (uint32_t)__popc(tail_lanes & lower_lanes)] = (uint16_t)i;
        else if (i < n)
            to[i] = Drawn::of_real(d, normal_number(d, h, draw_centre(q)));
        tails += (uint32_t)__popc(tail_lanes);
    }
    __syncwarp();
    for (uint32_t j = lane; j < tails; j += 32) {
        const uint32_t i = places[j];
        const uint64_t h = draw_hash(&d, first + i);
        const double q = draw_cell(h), argument = draw_tail_argument(q);
        const double deviate = argument > DRAW_FAR ? draw_far_tail(q, argument) : draw_near_tail(q, argument);
        to[i] = Drawn::of_real(d, normal_number(d, h, deviate));
    }
    __syncwarp(); /* before places are written again */
}

template <class Drawn>
static __device__ __forceinline__ void normal_elements(const struct draw &d, struct range range, typename Drawn::stored *to)
{
    __shared__ uint16_t places[NORMAL_WARPS][NORMAL_TILE];
    const uint32_t warp = threadIdx.x / 32;
    const uint64_t stride = (uint64_t)gridDim.x * NORMAL_WARPS * NORMAL_TILE;
    for (uint64_t i = ((uint64_t)blockIdx.x * NORMAL_WARPS + warp) * NORMAL_TILE; i < range.count; i += stride) {
        const uint32_t n = (uint32_t)(range.count - i < NORMAL_TILE ? range.count - i : NORMAL_TILE);
        normal_tile<Drawn>(d, range.first + i, n, to + i, places[warp]);
    }
}

template <class Drawn>
__global__ void __launch_bounds__(GENERATE_SHAPE.threads, GENERATE_SHAPE.blocks)
    generate_kernel(const __grid_constant__ struct draw d, struct range range, typename Drawn::stored *to)
{
    switch (d.kind) {
    case DRAW_NORMAL:
        normal_elements<Drawn>(d, range, to);
        break;
    case DRAW_UNIFORM:
        each_element(range, to, [&](uint64_t i) { return Drawn::of_real(d, draw_uniform(&d, draw_hash(&d, i))); });
        break;
    case DRAW_RAMP:
        each_element(range, to, [&](uint64_t i) { return Drawn::of_real(d, draw_ramp(&d, i)); });
        break;
    case DRAW_UNIFORM_WHOLE:
    case DRAW_RAMP_WHOLE:
    case DRAW_WIDE:
    case DRAW_CONSTANT:
        each_element(range, to, [&](uint64_t i) { return Drawn::of_bits(draw_bits(&d, d.kind, i)); });
        break;
    }
}

template <class Drawn>
static cudaError_t generate_start(const struct draw *draw, struct range range, void *to, int multiprocessors, void *stream)
{
    const uint64_t tile = (uint64_t)NORMAL_WARPS * NORMAL_TILE, tiles = (range.count + tile - 1) / tile;
    const uint64_t most = (uint64_t)multiprocessors * GENERATE_SHAPE.blocks;
    const cudaLaunchConfig_t config = launch_config(tiles < most ? tiles : most, GENERATE_SHAPE.threads, stream);
    return cudaLaunchKernelEx(&config, generate_kernel<Drawn>, *draw, range, (typename Drawn::stored *)to);
}

int generate_launch(const struct draw *draw, struct range range, void *to, int multiprocessors, void *stream)
{
    if (range.count == 0)
        return cudaSuccess;
    switch (draw->type) {
#define CASE(ID, ...) \
    case ALLFOLD_##ID: return generate_start<drawn<ALLFOLD_##ID>>(draw, range, to, multiprocessors, stream);
        FLOAT_TYPES(CASE)
#undef CASE
    default: break;
    }
    switch (allfold_type_bytes(draw->type)) {
    case 1: return generate_start<drawn_integer<uint8_t>>(draw, range, to, multiprocessors, stream);
    case 2: return generate_start<drawn_integer<uint16_t>>(draw, range, to, multiprocessors, stream);
    case 4: return generate_start<drawn_integer<uint32_t>>(draw, range, to, multiprocessors, stream);
    case 8: return generate_start<drawn_integer<uint64_t>>(draw, range, to, multiprocessors, stream);
    default: return cudaErrorInvalidValue;
    }
}
