/* Copies elements from one layout to another, of which any dimension may have any stride. Runs that lie side by side in both are copied as
   fewer, wider elements. Then, if neighbours are the same in both:

     each thread, for every (threads of the grid)-th element:
         its number, the last dimension the fastest, is taken apart to a place in each dimension
         to[sum of place * to_step] = from[sum of place * from_step]

   and if those of one are not those of the other:

     each block, for every (blocks)-th tile of these two dimensions, of as many elements along each:
         its threads read the tile along the dimension whose elements are neighbours there, into shared memory,
         and write it along the one whose elements will be

   Pieces of an array whose dimensions or strides no other kernel takes become dense so, and the other way round (core/load.c). */
#include "kernels/kernels.h"
#include "kernels/element.cuh"
#include "kernels/tuning.h"

#include <stdlib.h>

/* Divides numbers below 2^31 by a constant: multiplies, adds and shifts. (Granlund and Montgomery, Division by invariant integers using
   multiplication, 1994.) */
struct divider {
    uint32_t by, multiplier, shift;
};

static struct divider divider_of(uint64_t by)
{
    struct divider divider = {(uint32_t)by, 0, 0};
    while ((uint64_t)1 << divider.shift < by)
        divider.shift++;
    divider.multiplier = (uint32_t)(((((uint64_t)1 << divider.shift) - by) << 32) / by) + 1;
    return divider;
}

static __device__ __forceinline__ uint32_t quotient(const struct divider &divider, uint32_t number)
{
    return ((uint32_t)((uint64_t)number * divider.multiplier >> 32) + number) >> divider.shift;
}

/* A copy, and into how many places each dimension is taken apart: its elements, or its tiles. */
struct strided_plan {
    struct strided_copy copy;
    struct divider places[STRIDED_DIMENSIONS_MAX];
};

/* The place in dimension d of what is number `rest` in it and those before, which becomes its number in those before. */
static __device__ __forceinline__ uint32_t place_in(const struct strided_plan &plan, uint32_t d, uint32_t &rest)
{
    const uint32_t before = quotient(plan.places[d], rest), place = rest - before * plan.places[d].by;
    rest = before;
    return place;
}
static __device__ __forceinline__ uint64_t place_in(const struct strided_plan &plan, uint32_t d, uint64_t &rest)
{
    const uint64_t before = rest / plan.copy.extent[d], place = rest - before * plan.copy.extent[d];
    rest = before;
    return place;
}

/* Number: counts the elements. */
template <class Stored, class Number>
__global__ void __launch_bounds__(STRIDED_SHAPE.threads, STRIDED_SHAPE.blocks)
    strided_kernel(const __grid_constant__ struct strided_plan plan, Number count)
{
    constexpr int together = STRIDED_SHAPE.together;
    const struct strided_copy &copy = plan.copy;
    const Stored *const from = (const Stored *)copy.from;
    Stored *const to = (Stored *)copy.to;
    const uint64_t step = (uint64_t)blockDim.x * together;
    for (uint64_t first = blockIdx.x * step + threadIdx.x; first < count; first += gridDim.x * step) {
        Stored found[together];
        int64_t to_at[together];
#pragma unroll
        for (int k = 0; k < together; k++) {
            Number rest = (Number)(first + (uint64_t)k * blockDim.x);
            int64_t from_at = 0;
            to_at[k] = 0;
            if (rest >= count)
                continue;
            for (uint32_t d = copy.dimensions; d-- > 0;) {
                const int64_t place = (int64_t)place_in(plan, d, rest);
                from_at += place * copy.from_step[d];
                to_at[k] += place * copy.to_step[d];
            }
            found[k] = from[from_at];
        }
#pragma unroll
        for (int k = 0; k < together; k++)
            if (first + (uint64_t)k * blockDim.x < count)
                to[to_at[k]] = found[k];
    }
}

/* Elements along each side of a tile: 128 bytes of most types. */
template <class Stored> constexpr int tile_side = sizeof(Stored) >= 4 ? 32 : 64;

/* The last two dimensions are those of the tiles: the one along which `from` is read, and the one along which `to` is written. */
template <class Stored>
__global__ void __launch_bounds__(TRANSPOSED_SHAPE.threads, TRANSPOSED_SHAPE.blocks)
    transposed_kernel(const __grid_constant__ struct strided_plan plan, uint32_t tiles)
{
    constexpr int side = tile_side<Stored>, rows = TRANSPOSED_SHAPE.threads / side;
    __shared__ Stored tile[side][side + 1];
    const struct strided_copy &copy = plan.copy;
    const uint32_t read = copy.dimensions - 2, written = copy.dimensions - 1;
    const int lane = (int)threadIdx.x % side, row = (int)threadIdx.x / side;
    for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        uint32_t rest = t;
        const int64_t w = (int64_t)place_in(plan, written, rest) * side, r = (int64_t)place_in(plan, read, rest) * side;
        const int64_t across = (int64_t)copy.extent[written] - w, along = (int64_t)copy.extent[read] - r; /* elements from there on */
        int64_t from_at = w * copy.from_step[written] + r * copy.from_step[read], to_at = w * copy.to_step[written] + r * copy.to_step[read];
        for (uint32_t d = read; d-- > 0;) {
            const int64_t place = place_in(plan, d, rest);
            from_at += place * copy.from_step[d];
            to_at += place * copy.to_step[d];
        }
        const Stored *const from = (const Stored *)copy.from + from_at + lane * copy.from_step[read] + row * copy.from_step[written];
        Stored *const to = (Stored *)copy.to + to_at + lane * copy.to_step[written] + row * copy.to_step[read];
#pragma unroll
        for (int k = 0; k < side / rows; k++)
            if (lane < along && row + k * rows < across)
                tile[row + k * rows][lane] = from[k * rows * copy.from_step[written]];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < side / rows; k++)
            if (lane < across && row + k * rows < along)
                to[k * rows * copy.to_step[read]] = tile[lane][row + k * rows];
        __syncthreads();
    }
}

static void exchange(struct strided_copy *copy, uint32_t a, uint32_t b)
{
    const uint64_t extent = copy->extent[a];
    const int64_t from_step = copy->from_step[a], to_step = copy->to_step[a];
    copy->extent[a] = copy->extent[b];
    copy->from_step[a] = copy->from_step[b];
    copy->to_step[a] = copy->to_step[b];
    copy->extent[b] = extent;
    copy->from_step[b] = from_step;
    copy->to_step[b] = to_step;
}

/* The dimension of the shortest steps. Steps of 0 are those of an element that is copied to several places. */
static uint32_t nearest(const struct strided_copy *copy, const int64_t *steps)
{
    uint32_t found = 0;
    for (uint32_t d = 1; d < copy->dimensions; d++)
        if (steps[d] != 0 && (steps[found] == 0 || llabs(steps[d]) < llabs(steps[found])))
            found = d;
    return found;
}

/* Whether two neighbours in dimension `along`, all of which are neighbours in both, can become one element. */
static bool widens(const struct strided_copy *copy, uint32_t along)
{
    bool does = copy->bytes < 16 && copy->extent[along] % 2 == 0 && ((uintptr_t)copy->from | (uintptr_t)copy->to) % (2 * copy->bytes) == 0;
    for (uint32_t d = 0; d < copy->dimensions; d++)
        does = does && (d == along || (copy->from_step[d] % 2 == 0 && copy->to_step[d] % 2 == 0));
    return does;
}

static void widen(struct strided_copy *copy, uint32_t along)
{
    while (widens(copy, along)) {
        copy->bytes *= 2;
        copy->extent[along] /= 2;
        for (uint32_t d = 0; d < copy->dimensions; d++)
            if (d != along) {
                copy->from_step[d] /= 2;
                copy->to_step[d] /= 2;
            }
    }
}

enum { DIVIDED_MOST = INT32_MAX }; /* what dividers take */

template <class Stored> static cudaError_t strided_start(const struct strided_copy &copy, uint64_t count, int multiprocessors, void *stream)
{
    struct strided_plan plan = {copy, {}};
    const uint64_t step = (uint64_t)STRIDED_SHAPE.threads * STRIDED_SHAPE.together, most = (uint64_t)multiprocessors * STRIDED_SHAPE.blocks;
    const cudaLaunchConfig_t config = launch_config(u64_min((count + step - 1) / step, most), STRIDED_SHAPE.threads, stream);
    for (uint32_t d = 0; d < copy.dimensions; d++)
        plan.places[d] = divider_of(copy.extent[d]);
    if (count <= DIVIDED_MOST)
        return cudaLaunchKernelEx(&config, strided_kernel<Stored, uint32_t>, plan, (uint32_t)count);
    return cudaLaunchKernelEx(&config, strided_kernel<Stored, uint64_t>, plan, count);
}

/* The dimensions of the tiles are the last two. */
template <class Stored> static cudaError_t transposed_start(const struct strided_copy &copy, uint64_t count, int multiprocessors, void *stream)
{
    constexpr uint64_t side = tile_side<Stored>;
    struct strided_plan plan = {copy, {}};
    uint64_t tiles = 1;
    for (uint32_t d = 0; d < copy.dimensions; d++) {
        const uint64_t places = d + 2 < copy.dimensions ? copy.extent[d] : (copy.extent[d] + side - 1) / side;
        plan.places[d] = divider_of(places);
        tiles *= places;
    }
    if (tiles > DIVIDED_MOST)
        return strided_start<Stored>(copy, count, multiprocessors, stream);
    const cudaLaunchConfig_t config = launch_config(u64_min(tiles, (uint64_t)multiprocessors * TRANSPOSED_SHAPE.blocks), TRANSPOSED_SHAPE.threads,
                                                    stream);
    return cudaLaunchKernelEx(&config, transposed_kernel<Stored>, plan, (uint32_t)tiles);
}

int strided_launch(const struct strided_copy *given, int multiprocessors, void *stream)
{
    struct strided_copy copy = *given;
    uint64_t count = 1;
    uint32_t read = nearest(&copy, copy.from_step), written = nearest(&copy, copy.to_step);
    if (copy.dimensions > 0 && read == written && copy.from_step[read] == 1 && copy.to_step[read] == 1)
        widen(&copy, read);
    for (uint32_t d = 0; d < copy.dimensions; d++)
        count *= copy.extent[d];
    const bool transposes = read != written && u64_min(copy.extent[read], copy.extent[written]) >= STRIDED_SHAPE.shortest;
    if (transposes) {
        exchange(&copy, written, copy.dimensions - 1);
        exchange(&copy, read == copy.dimensions - 1 ? written : read, copy.dimensions - 2);
    }
    switch (copy.bytes) {
#define CASE(stored)                                                                       \
    case sizeof(stored):                                                                   \
        return transposes ? transposed_start<stored>(copy, count, multiprocessors, stream) \
                          : strided_start<stored>(copy, count, multiprocessors, stream);
        CASE(uint8_t)
        CASE(uint16_t)
        CASE(uint32_t)
        CASE(uint64_t)
#undef CASE
    case sizeof(uint4): return strided_start<uint4>(copy, count, multiprocessors, stream);
    default: return cudaErrorInvalidValue;
    }
}
