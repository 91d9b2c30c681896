/* Short rows and columns: a block copies the elements of its rows to shared memory, in whole vectors, and threads take them from there.
   The elements are lines of neighbours: some whole planes of the box; or, of a plane that is too large, some columns. In shared memory a line
   lies as in global memory, 16 bytes for 16 bytes, so a line begins with as many unused bytes as its address is beyond a multiple of 16.
   Chunks of 16 bytes are permuted so that the rows of neighbouring threads lie in other banks. Included by axis.cuh. */
#pragma once

#include "kernels/axis_element.cuh"
#include "kernels/ptx.cuh"

/* How the elements of a block lie. Computed on the host. */
struct axis_stage {
    uint32_t rows;       /* of a block, at most; 0: the elements of this cut are not staged */
    uint32_t planes;     /* of a block, at most; 0: columns of one plane */
    uint32_t plane_cuts; /* of columns: blocks of a plane */
    bool merged;         /* planes follow one another without gaps, and are one line */
    bool quads;          /* four neighbours of a row are aligned to their size or to 16 bytes, and rows consist of them */
    int bytes_bits;      /* log2 of an element's bytes */
    int wide_bits;       /* log2 of the threads that copy one line: 4 at least */
    uint32_t pitch;      /* bytes from line to line in shared memory, or from plane to plane of one line */
    uint64_t line_bytes; /* the same in global memory */
};

/* A block's own part. */
struct staged {
    uint64_t first; /* result */
    uint32_t rows, lines, run_bytes;
    const unsigned char *start;
    unsigned char *copy; /* in shared memory */
};

static __device__ __forceinline__ struct staged staged_of(const void *x, const struct axis_stage &stage, const struct box &box, unsigned char *copy)
{
    const int bytes_bits = stage.bytes_bits;
    struct staged part;
    part.copy = copy;
    if (stage.planes > 0) {
        const uint64_t plane = (uint64_t)blockIdx.x * stage.planes, left = box.outer - plane;
        const uint32_t planes = left < stage.planes ? (uint32_t)left : stage.planes;
        const uint32_t plane_bytes = (uint32_t)(box.length * box.inner) << bytes_bits;
        part.first = plane * box.inner;
        part.rows = planes * (uint32_t)box.inner;
        part.lines = stage.merged ? 1 : planes;
        part.run_bytes = stage.merged ? planes * plane_bytes : plane_bytes;
        part.start = (const unsigned char *)x + (plane * box.outer_stride << bytes_bits);
    } else {
        const uint32_t plane = blockIdx.x / stage.plane_cuts;
        const uint64_t column = (uint64_t)(blockIdx.x % stage.plane_cuts) * stage.rows, left = box.inner - column;
        part.first = plane * box.inner + column;
        part.rows = left < stage.rows ? (uint32_t)left : stage.rows;
        part.lines = (uint32_t)box.length;
        part.run_bytes = part.rows << bytes_bits;
        part.start = (const unsigned char *)x + ((plane * box.outer_stride + column) << bytes_bits);
    }
    return part;
}

/* Where byte `at` of the lines lies. */
static __device__ __forceinline__ uint32_t stage_place(uint32_t at) { return at ^ (at >> 3 & 0x70); }

/* Copies the block's lines and waits for them: whole vectors, and byte by byte what lies before the first and behind the last. All threads of
   the block call it. */
static __device__ __forceinline__ void stage_copy(const struct staged &part, const struct axis_stage &stage)
{
    unsigned char *const to = part.copy;
    const uint32_t wide = 1u << stage.wide_bits, column = threadIdx.x & (wide - 1);
#pragma unroll 1
    for (uint32_t line = threadIdx.x >> stage.wide_bits; line < part.lines; line += blockDim.x >> stage.wide_bits) {
        const unsigned char *const first = part.start + line * stage.line_bytes;
        const uint32_t begin = (uintptr_t)first & 15, end = begin + part.run_bytes, base = line * stage.pitch;
        const uint32_t whole = (begin + 15) & ~15u, whole_end = end & ~15u, tail = whole_end > whole ? whole_end : whole;
        const unsigned char *const from = first - begin;
#pragma unroll 4
        for (uint32_t at = whole + column * 16; at < whole_end; at += wide * 16)
            copy_async((uint4 *)(to + stage_place(base + at)), (const uint4 *)(from + at));
        if (begin + column < whole && begin + column < end)
            to[stage_place(base + begin + column)] = from[begin + column];
        if (tail + column < end)
            to[stage_place(base + tail + column)] = from[tail + column];
    }
    copy_commit();
    copy_wait(0);
    __syncthreads();
}

/* The way of a row through the lines: element l lies at byte at + l * step + (slack + l * slip) % 16. */
struct stage_walk {
    const unsigned char *from;
    uint32_t at, step, slack, slip;
};
static __device__ __forceinline__ struct stage_walk stage_walk_of(const struct staged &part, const struct axis_stage &stage, const struct box &box,
                                                                  uint32_t row)
{
    const int bytes_bits = stage.bytes_bits;
    const uint32_t slack = (uintptr_t)part.start & 15, slip = stage.merged ? 0 : (uint32_t)stage.line_bytes & 15;
    if (stage.planes == 0)
        return {part.copy, row << bytes_bits, stage.pitch, slack, slip};
    const uint32_t inner = (uint32_t)box.inner, plane = inner == 1 ? row : row / inner;
    return {part.copy, plane * stage.pitch + ((slack + plane * slip) & 15) + ((row - plane * inner) << bytes_bits), inner << bytes_bits, 0, 0};
}

/* The elements that a thread takes at a time: element `first` and each `jump` further, of those before `end`; or a quad. */
constexpr uint32_t STAGE_TILE = 4;
struct staged_tile {
    uint32_t first, jump, end;
    bool is_quad;
};

template <class Element, class Value>
static __device__ __forceinline__ void staged_load_as(Value *values, const struct stage_walk &walk, const struct staged_tile &tile, Value rest)
{
    typedef typename Element::stored stored;
    constexpr uint32_t bytes = sizeof(stored) * STAGE_TILE < 16 ? sizeof(stored) * STAGE_TILE : 16, count = bytes / sizeof(stored);
    struct __align__(bytes) chunk {
        stored of[count];
    };
    if (tile.is_quad) {
#pragma unroll
        for (uint32_t i = 0; i < STAGE_TILE; i += count) {
            const chunk chunk = *(const struct chunk *)(walk.from + stage_place(walk.at + (tile.first + i) * (uint32_t)sizeof(stored)));
#pragma unroll
            for (uint32_t j = 0; j < count; j++)
                values[i + j] = Element::load(chunk.of[j]);
        }
        return;
    }
#pragma unroll
    for (uint32_t i = 0; i < STAGE_TILE; i++) {
        const uint32_t l = tile.first + i * tile.jump;
        const uint32_t at = stage_place(walk.at + l * walk.step + ((walk.slack + l * walk.slip) & 15));
        values[i] = l < tile.end ? Element::load(*(const stored *)(walk.from + at)) : rest;
    }
}

/* The elements of a tile; those behind the end of the row are `rest`. */
template <class Value>
static __device__ __forceinline__ void staged_load(Value *values, allfold_type type, const struct stage_walk &walk, const struct staged_tile &tile,
                                                   Value rest)
{
    switch (type) {
#define CASE(ID, name, numpy, bytes, kind, value_name)                                                  \
    case ALLFOLD_##ID:                                                                                  \
        if constexpr (std::is_same<value_##value_name, Value>::value)                                   \
            staged_load_as<element<ALLFOLD_##ID>>(values, walk, tile, rest);                            \
        break;
        ALLFOLD_TYPES(CASE)
#undef CASE
    default:
        break;
    }
}
