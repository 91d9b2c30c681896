/* Copies elements from one layout to another, of which any dimension may have any stride. Runs that lie side by side in both are copied as
   fewer, wider elements. Then, if neighbours are the same in both:

     each group of threads, for every (groups of the grid)-th chunk of the last dimension:
         the chunk's number is taken apart to a place in each dimension
         each of its elements: to[sum of place * to_step] = from[sum of place * from_step]

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

/* A copy, and into how many places each dimension is taken apart: its elements, chunks or tiles. */
struct strided_plan {
    struct strided_copy copy;
    struct divider places[STRIDED_DIMENSIONS_MAX];
    uint64_t many[STRIDED_DIMENSIONS_MAX]; /* the same numbers, where they are too large */
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
    const uint64_t before = rest / plan.many[d], place = rest - before * plan.many[d];
    rest = before;
    return place;
}

/* Number: counts the chunks, of which `lanes` threads share one: `together` elements of the last dimension each. */
template <class Stored, class Number>
__global__ void __launch_bounds__(STRIDED_SHAPE.threads, STRIDED_SHAPE.blocks)
    strided_kernel(const __grid_constant__ struct strided_plan plan, Number count, int lanes)
{
    constexpr int together = STRIDED_SHAPE.together;
    const struct strided_copy &copy = plan.copy;
    const uint32_t last = copy.dimensions - 1, lane = threadIdx.x % lanes;
    const int64_t from_step = copy.from_step[last], to_step = copy.to_step[last];
    for (uint64_t chunk = ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x) / lanes; chunk < count; chunk += (uint64_t)gridDim.x * blockDim.x / lanes) {
        Stored found[together];
        Number rest = (Number)chunk;
        const int64_t first = (int64_t)place_in(plan, last, rest) * together * lanes + lane, behind = (int64_t)copy.extent[last] - first;
        int64_t from_at = first * from_step, to_at = first * to_step;
        for (uint32_t d = last; d-- > 0;) {
            const int64_t place = (int64_t)place_in(plan, d, rest);
            from_at += place * copy.from_step[d];
            to_at += place * copy.to_step[d];
        }
        const Stored *const from = (const Stored *)copy.from + from_at;
        Stored *const to = (Stored *)copy.to + to_at;
#pragma unroll
        for (int k = 0; k < together; k++)
            if (k * lanes < behind)
                found[k] = from[k * lanes * from_step];
#pragma unroll
        for (int k = 0; k < together; k++)
            if (k * lanes < behind)
                to[k * lanes * to_step] = found[k];
    }
}

/* Elements along each side of a tile. */
template <class Stored> constexpr int tile_side = sizeof(Stored) > 4 ? 32 : 64;

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

/* Takes dimensions apart, the last `cut` of them into pieces of `size` elements. Returns the number of places of all. */
static uint64_t plan_make(struct strided_plan *plan, uint32_t cut, uint64_t size)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < plan->copy.dimensions; d++) {
        const uint64_t extent = plan->copy.extent[d];
        plan->many[d] = d + cut < plan->copy.dimensions ? extent : (extent + size - 1) / size;
        plan->places[d] = divider_of(plan->many[d]);
        count *= plan->many[d];
    }
    return count;
}

/* A group has the fewest threads that take all of the last dimension, but no more than read 128 bytes together. */
template <class Stored> static cudaError_t strided_start(const struct strided_copy &copy, int multiprocessors, void *stream)
{
    struct strided_plan plan = {copy, {}, {}};
    int lanes = 1;
    while (lanes < (int)(128 / sizeof(Stored)) && lanes < 32 && (uint64_t)lanes * STRIDED_SHAPE.together < copy.extent[copy.dimensions - 1])
        lanes *= 2;
    const uint64_t count = plan_make(&plan, 1, (uint64_t)lanes * STRIDED_SHAPE.together);
    const uint64_t blocks = (count + STRIDED_SHAPE.threads / lanes - 1) / (STRIDED_SHAPE.threads / lanes);
    const cudaLaunchConfig_t config = launch_config(u64_min(blocks, (uint64_t)multiprocessors * STRIDED_SHAPE.blocks), STRIDED_SHAPE.threads, stream);
    if (count <= DIVIDED_MOST)
        return cudaLaunchKernelEx(&config, strided_kernel<Stored, uint32_t>, plan, (uint32_t)count, lanes);
    return cudaLaunchKernelEx(&config, strided_kernel<Stored, uint64_t>, plan, count, lanes);
}

/* The dimensions of the tiles are the last two. */
template <class Stored> static cudaError_t transposed_start(const struct strided_copy &copy, int multiprocessors, void *stream)
{
    struct strided_plan plan = {copy, {}, {}};
    const uint64_t tiles = plan_make(&plan, 2, tile_side<Stored>);
    const cudaLaunchConfig_t config = launch_config(u64_min(tiles, (uint64_t)multiprocessors * TRANSPOSED_SHAPE.blocks), TRANSPOSED_SHAPE.threads,
                                                    stream);
    return tiles > DIVIDED_MOST ? strided_start<Stored>(copy, multiprocessors, stream)
                                : cudaLaunchKernelEx(&config, transposed_kernel<Stored>, plan, (uint32_t)tiles);
}

int strided_launch(const struct strided_copy *given, int multiprocessors, void *stream)
{
    struct strided_copy copy = *given;
    if (copy.dimensions == 0) {
        copy.dimensions = 1;
        copy.extent[0] = 1;
        copy.from_step[0] = copy.to_step[0] = 1;
    }
    const uint32_t read = nearest(&copy, copy.from_step), written = nearest(&copy, copy.to_step);
    if (read == written && copy.from_step[read] == 1 && copy.to_step[read] == 1)
        widen(&copy, read);
    const bool transposes = read != written && u64_min(copy.extent[read], copy.extent[written]) >= STRIDED_SHAPE.shortest;
    if (transposes) {
        exchange(&copy, written, copy.dimensions - 1);
        exchange(&copy, read == copy.dimensions - 1 ? written : read, copy.dimensions - 2);
    }
    switch (copy.bytes) {
#define CASE(stored)                                                                       \
    case sizeof(stored):                                                                   \
        return transposes ? transposed_start<stored>(copy, multiprocessors, stream) \
                          : strided_start<stored>(copy, multiprocessors, stream);
        CASE(uint8_t)
        CASE(uint16_t)
        CASE(uint32_t)
        CASE(uint64_t)
#undef CASE
    case sizeof(uint4): return strided_start<uint4>(copy, multiprocessors, stream);
    default: return cudaErrorInvalidValue;
    }
}
