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

/* Number: counts the elements; divisions of 32 bits are several times as quick as those of 64. */
template <class Stored, class Number>
__global__ void __launch_bounds__(STRIDED_SHAPE.threads, STRIDED_SHAPE.blocks)
    strided_kernel(const __grid_constant__ struct strided_copy copy, Number count)
{
    const Stored *const from = (const Stored *)copy.from;
    Stored *const to = (Stored *)copy.to;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (uint64_t)gridDim.x * blockDim.x) {
        Number rest = (Number)i;
        int64_t from_at = 0, to_at = 0;
        for (uint32_t d = copy.dimensions; d-- > 0;) {
            const Number extent = (Number)copy.extent[d], place = rest % extent;
            rest /= extent;
            from_at += (int64_t)place * copy.from_step[d];
            to_at += (int64_t)place * copy.to_step[d];
        }
        to[to_at] = from[from_at];
    }
}

/* Elements along each side of a tile: 128 bytes of most types. */
template <class Stored> constexpr int tile_side = sizeof(Stored) >= 4 ? 32 : 64;

/* The last two dimensions are those of the tiles: the one along which `from` is read, and the one along which `to` is written. */
template <class Stored>
__global__ void __launch_bounds__(STRIDED_SHAPE.threads, STRIDED_SHAPE.blocks)
    transposed_kernel(const __grid_constant__ struct strided_copy copy, uint32_t tiles)
{
    constexpr int side = tile_side<Stored>, rows = STRIDED_SHAPE.threads / side;
    __shared__ Stored tile[side][side + 1];
    const uint32_t read = copy.dimensions - 2, written = copy.dimensions - 1;
    const uint64_t read_extent = copy.extent[read], written_extent = copy.extent[written];
    const uint32_t along_read = (uint32_t)((read_extent + side - 1) / side), along_written = (uint32_t)((written_extent + side - 1) / side);
    const int lane = (int)threadIdx.x % side, row = (int)threadIdx.x / side;
    for (uint32_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        uint32_t rest = t / along_written;
        const uint64_t w = (uint64_t)(t % along_written) * side, r = (uint64_t)(rest % along_read) * side;
        rest /= along_read;
        int64_t from_at = 0, to_at = 0;
        for (uint32_t d = read; d-- > 0;) {
            const uint32_t extent = (uint32_t)copy.extent[d], place = rest % extent;
            rest /= extent;
            from_at += (int64_t)place * copy.from_step[d];
            to_at += (int64_t)place * copy.to_step[d];
        }
        const Stored *const from = (const Stored *)copy.from + from_at;
        Stored *const to = (Stored *)copy.to + to_at;
#pragma unroll
        for (int k = 0; k < side / rows; k++) {
            const int i = row + k * rows;
            if (r + lane < read_extent && w + i < written_extent)
                tile[i][lane] = from[(int64_t)(r + lane) * copy.from_step[read] + (int64_t)(w + i) * copy.from_step[written]];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < side / rows; k++) {
            const int i = row + k * rows;
            if (r + i < read_extent && w + lane < written_extent)
                to[(int64_t)(r + i) * copy.to_step[read] + (int64_t)(w + lane) * copy.to_step[written]] = tile[lane][i];
        }
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

static uint64_t blocks_of(uint64_t wanted, int multiprocessors) { return u64_min(wanted, (uint64_t)multiprocessors * STRIDED_SHAPE.blocks); }

template <class Stored> static cudaError_t strided_start(const struct strided_copy &copy, uint64_t count, int multiprocessors, void *stream)
{
    const uint64_t blocks = blocks_of((count + STRIDED_SHAPE.threads - 1) / STRIDED_SHAPE.threads, multiprocessors);
    const cudaLaunchConfig_t config = launch_config(blocks, STRIDED_SHAPE.threads, stream);
    if (count <= UINT32_MAX)
        return cudaLaunchKernelEx(&config, strided_kernel<Stored, uint32_t>, copy, (uint32_t)count);
    return cudaLaunchKernelEx(&config, strided_kernel<Stored, uint64_t>, copy, count);
}

/* The dimensions of the tiles are the last two. */
template <class Stored> static cudaError_t transposed_start(const struct strided_copy &copy, uint64_t count, int multiprocessors, void *stream)
{
    constexpr uint64_t side = tile_side<Stored>;
    uint64_t tiles = 1;
    for (uint32_t d = 0; d < copy.dimensions; d++)
        tiles *= d + 2 < copy.dimensions ? copy.extent[d] : (copy.extent[d] + side - 1) / side;
    if (tiles > UINT32_MAX)
        return strided_start<Stored>(copy, count, multiprocessors, stream);
    const cudaLaunchConfig_t config = launch_config(blocks_of(tiles, multiprocessors), STRIDED_SHAPE.threads, stream);
    return cudaLaunchKernelEx(&config, transposed_kernel<Stored>, copy, (uint32_t)tiles);
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
