/* The shapes of kernels: the one place to tune. The shapes follow from what a monoid costs (src/fold/monoids.h) and from sizes, so a
   new fold or element type needs no line here. Changing a shape changes the order of additions, and with it the last bits of floating-point sums.

   Reading at full speed takes enough bytes in flight on a multiprocessor, threads * blocks * vectors * 16: 64 KiB or more on Hopper. A
   thread may have 65,536 / (threads * blocks) registers. */
#pragma once

#include "fold/table.h"

/* A fold of two operands has half of the loads, and of a tile's vectors, for each. */
struct fold_shape {
    int threads;  /* of a block, a power of two */
    int blocks;   /* of a multiprocessor at one time; __launch_bounds__ makes the compiler keep to it */
    int vectors;  /* 16-byte loads a thread starts before it uses the first */
    int vectors_per_tile; /* vectors given to the fold in one tile; 0: one at a time in a loop, for folds with much code */
    int least;    /* vectors for each thread; a shorter array gets fewer blocks than there are multiprocessors */
};

/* What a monoid costs at a value type. */
constexpr enum cost cost_of(enum cost cost, enum value value)
{
    const bool little = value == VALUE_f32 || (cost == COST_PRODUCTS && value == VALUE_f64);
    return cost != COST_SQUARES && cost != COST_PRODUCTS ? cost : little ? COST_LITTLE : COST_MUCH;
}

/* Vectors of each operand, of `vectors` of all; 0 of 0. */
constexpr int vectors_of_each(int vectors, int operands) { return vectors == 0 || vectors >= operands ? vectors / operands : 1; }

/* Whether folds that cost so much have one copy of their code for all tiles of a round. */
template <enum cost cost> constexpr bool code_is_long = cost == COST_STATS || cost == COST_BINS || cost == COST_EXPONENTIAL || cost == COST_MUCH;

/* f32_terms: the fold does much arithmetic on each element, in f32. padded: incomplete tiles are. small: a multiprocessor has at most
   FOLD_SMALL_BYTES of the array; only folds that cost little have a kernel for that. */
constexpr struct fold_shape fold_shape_of(enum cost cost, size_t element_bytes, int operands, bool f32_terms, bool padded, bool small)
{
    switch (cost) {
    case COST_STATS:
        return {256, 2, 2, 0, 1};
    case COST_INDEX: /* vectors of one thread are not adjacent, so a tile cannot hold two of them */
        return {512, 2, 4, element_bytes == 1 ? 0 : 1, 1};
    case COST_BINS:
        if (!padded && element_bytes == 1)
            return {256, 2, 4, 0, 1};
        /* tiles of 32 values (f32 terms), or at most 16 */
        if (f32_terms)
            return element_bytes == 4 ? fold_shape{256, 2, 8, 8, 1} : fold_shape{256, 2, 4, 4, 1};
        return {256, 2, element_bytes == 8 ? 8 : 4, element_bytes >= 4 ? 4 : (int)element_bytes, 1};
    case COST_EXPONENTIAL:
        if (!padded && element_bytes == 1)
            return {512, 2, 4, 0, 1};
        if (f32_terms) /* long tiles: some of the work is done once a tile */
            return element_bytes == 4 ? fold_shape{512, 2, 8, 8, 4} : fold_shape{512, 2, 4, 4, 2};
        break;
    case COST_LITTLE:
        if (small) /* the time after the last load counts more than bytes in flight */
            return {256, 4, 4, 4, 4};
        return element_bytes >= 4 || operands > 1 ? fold_shape{512, 2, 4, 4, 4} : fold_shape{512, 4, 4, 2, 4};
    case COST_SQUARES:
    case COST_PRODUCTS:
    case COST_MUCH:
    case COST_COMPARE:
        break;
    }
    return {512, 2, 4, element_bytes >= 4 ? 4 : (int)element_bytes, 1}; /* tiles of 16 values, 8 of f64 */
}

constexpr int FOLD_BLOCKS_MAX = 8; /* no shape has more: scratch memory is sized by it */

/* Folds with little code have blocks that end after `rounds` rounds, if there are enough blocks to fill the device `least` times. They
   take more rounds if there would be more than `most` blocks a multiprocessor. Three rounds were faster than two and four. */
constexpr struct {
    uint64_t rounds, least, most;
} FOLD_WAVES = {3, 8, 256};
constexpr size_t FOLD_SMALL_BYTES = 32 << 10;

/* Generated elements; elements: normal deviates of a thread in one tile. With more, the warps that make the tails are fuller. */
constexpr struct {
    int threads, blocks, elements;
} GENERATE_SHAPE = {256, 5, 16};

/* Elements that are copied from one layout to another; together: those that a thread reads before it writes any. By tiles if both their sides
   are at least so long. */
constexpr struct {
    int threads, blocks, together;
    uint64_t shortest;
} STRIDED_SHAPE = {256, 6, 4, 8};
constexpr struct {
    int threads, blocks;
} TRANSPOSED_SHAPE = {256, 8};

/* Weighted folds: results of a block, at most, and log2 of the elements of each that it takes, at most. */
constexpr struct {
    int threads, blocks, groups, chunk_bits;
} WEIGHTED_SHAPE = {128, 8, 8, 24};

/* Softmax of elements that stay in registers and shared memory: one block a multiprocessor. */
constexpr struct {
    int threads;
    int stage; /* vectors that a thread loads, folds and writes together; those of the first stage stay in registers */
    int least; /* vectors for each thread; a shorter array gets fewer blocks than there are multiprocessors */
} RESIDENT_SHAPE = {512, 4, 2};
/* What does not fit registers and shared memory may take this number of quarters of the second-level cache. Beyond that two launches are
   faster. */
constexpr int RESIDENT_CACHE_QUARTERS = 3;

/* The kernel of exact sums adds to columns of words in shared memory. Each thread has a column of its own, and needs no atomics; or, if
   a column is long, the same lanes of all warps share one. The columns of a block take at most 72 KiB: one block fits every GPU since Ampere, three fit Hopper's. */
enum exact_columns { EXACT_COLUMN_A_THREAD, EXACT_COLUMN_A_LANE };
struct exact_shape {
    int threads, blocks, vectors;
    int vectors_per_tile; /* vectors of one run */
    enum exact_columns columns;
    int ahead; /* rounds that are loaded before they are folded: 0; 1, in registers, for shapes of few threads; or up to 8, in shared memory */
};
constexpr struct exact_shape exact_shape_of(enum cost cost, size_t value_bytes, size_t element_bytes)
{
    const bool squares = cost == COST_SQUARES || cost == COST_PRODUCTS;
    if (cost == COST_STATS)
        return {256, 2, 2, 1, EXACT_COLUMN_A_LANE, 0};
    if (cost == COST_COMPARE) /* equal elements cost nothing: it must keep the memory busy. A tile of f32 or i32 has two vectors of each array */
        return element_bytes == 4 ? exact_shape{256, 2, 4, 4, EXACT_COLUMN_A_LANE, 3} : exact_shape{256, 2, 2, 2, EXACT_COLUMN_A_LANE, 4};
    if (value_bytes == 4)
        return squares ? exact_shape{256, 4, 4, cost == COST_PRODUCTS ? 2 : 4, EXACT_COLUMN_A_THREAD, 0}
                       : exact_shape{512, 2, 4, 4, EXACT_COLUMN_A_THREAD, 0};
    if (!squares)
        return {96, 4, 8, 8, EXACT_COLUMN_A_THREAD, 1};
    if (cost == COST_PRODUCTS) /* twice the bytes of a square for the same work: it must keep the memory busy */
        return {256, 2, 4, 4, EXACT_COLUMN_A_LANE, 1};
    return {256, 2, element_bytes == 8 ? 2 : 4, element_bytes == 8 ? 2 : 4, EXACT_COLUMN_A_LANE, 0};
}

/* Blocks with a column for each thread claim `rounds` rounds at a time, if there are at least `least` for each block. */
constexpr struct {
    uint32_t rounds, least;
} EXACT_CLAIM = {4, 32};

/* Folds and softmax along an axis. */
struct axis_shape {
    int threads;        /* of a block, a power of two; half of them where partials are large */
    int tile;           /* elements that a thread loads before it uses the first: a multiple of 16 */
    int blocks;         /* wanted for each multiprocessor: long rows are split */
    int least;          /* tiles for each thread of a split */
    size_t words_bytes; /* of shared memory for words of exact sums */
    size_t stage_bytes; /* of shared memory for the elements of short rows */
    uint64_t quick;     /* length of rows whose exact sums are tried without words and splits, at most */
    uint64_t apart;     /* length of such rows of at most 4 bytes an element that kernels of their own try, at least: they have fewer registers */
};
constexpr struct axis_shape AXIS_SHAPE = {256, 16, 8, 4, 32 << 10, 32 << 10, 1 << 18, 1 << 12};
constexpr uint32_t TILES_THREADS = AXIS_SHAPE.threads / 2; /* of a block that has tiles in shared memory, at most */
/* Bytes of a row, or of a plane of columns, that is staged, at most. Of larger planes, columns of up to STAGED_COLUMNS.length elements are, if at
   least STAGED_COLUMNS.least lie side by side. Folds with much code are not staged, as their code would be there twice. */
constexpr size_t axis_staged_bytes(enum cost cost)
{
    return cost == COST_INDEX ? 128 : cost == COST_LITTLE || cost == COST_SQUARES || cost == COST_MUCH ? 512 : 0;
}
constexpr struct {
    uint64_t length, least;
} STAGED_COLUMNS = {7, 128};
/* Folds of little code, which exists once for each type of aligned elements. LIGHT_LEAST: the length of rows of elements of 4 bytes, at least, as these
   gain less. */
constexpr bool axis_is_light(enum cost cost, size_t value_bytes)
{
    return value_bytes == 4 && (cost == COST_LITTLE || cost == COST_INDEX);
}
constexpr uint64_t LIGHT_LEAST = 1024;
/* words: of exact sums, which need more registers than others of their cost. */
constexpr int axis_blocks(enum cost cost, bool words)
{
    return cost == COST_LITTLE || cost == COST_EXPONENTIAL || (cost == COST_STATS && !words) ? 4 : cost == COST_STATS ? 2 : 3;
}
/* Tiles for each thread of a row, if there are enough rows: more where combining two partials takes long, but not all of a row of several. */
constexpr uint64_t axis_rounds(enum cost cost, bool words, uint64_t tiles)
{
    return !words && (cost == COST_EXPONENTIAL || cost == COST_BINS || cost == COST_STATS) ? (tiles >= 64 ? 32 : tiles > 16 ? tiles / 2 : 8) : 8;
}
/* Columns whose exact sums, or stats, are tried without words as a whole, not in splits. side: the fewest columns side by side in a block, which has fewer than fit if there
   would be too few blocks and each member still has `tiles` tiles. Columns that would be split are tried so if a multiprocessor has `few` of them, or `many` if they
   are long. */
struct whole_columns {
    uint32_t side, few, many;
    uint64_t tiles, longest;
    constexpr uint32_t enough(uint64_t length) const { return length > longest ? many : few; }
};
constexpr struct whole_columns whole_columns_of(enum cost cost) { return cost == COST_STATS ? whole_columns{16, 16, 16, 0, 0} : whole_columns{32, 128, 256, 16, 4096}; }
/* What is found of rows and columns in one read (found.cuh): log-probabilities, sums of exponentials, places of extremes. A warp has a row, or a part of it, or several short
   ones, of `lanes` each. vectors: of a thread's tile. parts: of rows, that a block has at most. rounds: a device has work for this multiple of the blocks that it has room for. */
struct found_shape {
    int threads, lanes, vectors, parts, blocks, columns_threads, columns_blocks;
    uint64_t rounds;
};
constexpr struct found_shape found_shape_of(size_t bytes) { return {128, 8, 4, 128, bytes == 2 ? 10 : 9, 128, 8, 6}; }
/* Elements of a row, or column, or split of one: of fewer a trial often does not suffice, and then all columns of a block, or several rows of a warp, are taken again. */
constexpr uint64_t LEAST_TRIED = 512;
/* The same at level exact, of exponentials; and the least length of rows. bf16 has a table in each block. */
constexpr struct found_shape exponentials_shape_of(allfold_type type, bool weighted)
{
    return type == ALLFOLD_BF16 ? found_shape{512, 8, weighted ? 4 : 2, weighted ? 64 : 128, weighted ? 1 : 2, 256, 2, 2} : found_shape{128, 8, 4, weighted ? 64 : 32, weighted ? 5 : 8, 128, type == ALLFOLD_F32 ? 8 : 6, 4};
}
constexpr uint64_t EXACT_LEAST = 128;
/* The least length of rows that begin within vectors: of exponentials that are no log-probabilities, and of extremes. */
constexpr uint64_t EXACT_LEAST_UNALIGNED = 384;
constexpr uint64_t extremes_least_unaligned(size_t element_bytes) { return element_bytes == 4 ? 1024 : 384; }
/* Elements of a row for each thread that mends the gradient's target, or zeroes the row: a warp, at most. */
constexpr uint64_t GRADIENT_EACH = 64;
/* Whole arrays of those, a block for each multiprocessor: tiles for each warp, at least. */
constexpr struct {
    int threads;
    uint64_t tiles;
} EXACT_WHOLE_SHAPE = {1024, 8};
/* Sums of exponentials, and log-probabilities, of long rows of bf16: blocks that stay, count values in shared memory, and have a table of their terms there, of 74 KiB together, or 99. What
   a row ends with takes as long as some thousand elements. least, least_weighted: of a row. */
constexpr struct {
    int threads, vectors, blocks;
    uint64_t least, least_weighted;
} COUNTED_SHAPE = {384, 4, 2, 24576, 16384};
constexpr int AXIS_CHUNK_BITS = 28; /* at most about 2^28 elements of a split: words that threads share cannot overflow */

/* Folds of several arrays. A block takes `split` elements; of arrays that would have more than `most` splits, more. */
constexpr struct {
    uint64_t split, most;
} MANY_SHAPE = {1 << 16, 1 << 12};

/* The second pass of softmax along rows: `vectors` of each thread. What a result takes: little arithmetic; much, in f32; or f64. */
enum pass_cost { PASS_LITTLE, PASS_MUCH, PASS_WIDE };
struct pass_shape {
    int threads, blocks, vectors;
};
constexpr struct pass_shape pass_shape_of(enum pass_cost cost, size_t element_bytes)
{
    return cost == PASS_LITTLE ? pass_shape{128, 12, 2} : element_bytes == 2 ? pass_shape{128, 8, 4} : pass_shape{128, 16, 1};
}
/* The same of columns: blocks, and bytes that lie side by side in one. */
constexpr struct {
    int few, many;
    uint32_t across;
    constexpr int blocks(enum pass_cost cost) const { return cost == PASS_WIDE ? few : many; }
} COLUMN_PASS_SHAPE = {3, 4, 512};
/* Softmax of rows that stay in registers: `vectors` of each thread. threads: of a block, at most. */
constexpr struct {
    int threads, vectors;
} ROW_SHAPE = {256, 4};
/* Threads of a block, if one row does not need more: fewer wait less for each other. */
constexpr uint32_t row_threads(bool logarithm, bool exact, size_t element_bytes, bool aligned)
{
    return element_bytes == 2 && (!aligned || (exact && logarithm)) ? 256 : !exact && aligned && element_bytes != 8 ? 64 : 128;
}
constexpr uint64_t SHORT_VECTORS = ROW_SHAPE.threads * ROW_SHAPE.vectors; /* of a row, at most */
/* Whether a block's short rows pass through shared memory together: such as are no whole vectors, of which threads
   would load and store single elements; and rows of 64 and 128 bytes, of which a warp would touch pieces of many lines.
   Not where computing takes longer. vectors: of a row, the last of which may be a part. */
constexpr bool has_rows_together(bool exact, size_t element_bytes) { return element_bytes == 2 || (element_bytes == 4 && !exact); }
constexpr bool rows_pass_together(bool logarithm, bool exact, size_t element_bytes, bool aligned, uint64_t vectors)
{
    if (aligned)
        return !exact && (vectors == 4 || (vectors == 8 && !logarithm));
    return element_bytes == 2 ? vectors >= 2 && (!exact || !logarithm || vectors <= 32) : vectors >= 3 && vectors <= 16;
}
/* Blocks of a multiprocessor at one time. Terms in f64 or integers need more registers. */
constexpr int row_blocks(bool exact, size_t element_bytes) { return element_bytes == 8 ? 2 : exact ? 4 : 5; }
/* Threads of a group, at least, of which one computes what results follow from, where terms are integers or f64. Those of smaller ones each compute it, and none waits. */
constexpr int results_least(bool logarithm, size_t value_bytes) { return logarithm || value_bytes == 8 ? 8 : 64; }
/* A block keeps a longer row in registers, or a part of it, of 8 or 16 vectors of each thread. Exact ones of 16 bits and f32 have half of the threads, if there are many and
   they fill 7/8 of these vectors or all. */
constexpr int LONG_THREADS = 256, HALF_THREADS = 128;
constexpr uint64_t HALF_LEAST = HALF_THREADS * 7;
static_assert(SHORT_VECTORS == HALF_THREADS * 8, "longer rows have all threads");
constexpr int threads_most(int fixed) { return fixed > 0 ? fixed : LONG_THREADS; }
constexpr int long_blocks(int vectors) { return vectors <= 8 ? 3 : 2; }
constexpr uint32_t CLUSTER_BLOCKS = 16; /* of a row, at most */
/* Vectors of a row that blocks share by messages, at most, unless all rows are on the chip at the same time: two passes take longer ones in less time. */
constexpr uint64_t long_rows_most(bool heavy, size_t element_bytes)
{
    return element_bytes == 8 || (element_bytes == 2 && !heavy) ? UINT64_MAX : heavy ? 1 << 16 : 1 << 19;
}
/* Else it keeps them in shared memory. stage: vectors of a thread that are copied together. places: of a block, for a stage each. The blocks of a
   multiprocessor have 1 KiB each for anything else. */
constexpr struct {
    int threads, stage, blocks, places;
} HEAVY_SHAPE = {256, 4, 2, 7};

/* Softmax of columns that stay in shared memory, in tiles of 64 bytes of each thread. least: bytes of a row that a block has, at least: with fewer, memory is slow. */
constexpr struct {
    int threads, blocks, blocks_heavy;
    uint32_t tiles, tiles_most; /* of a thread: what columns side by side may take, and long ones */
    uint32_t least;
    uint32_t elements_most; /* the longest columns of which elements are loaded and stored one by one */
} COLUMNS_SHAPE = {256, 4, 3, 4, 6, 64, 512};
/* Shorter ones stay in registers. most: elements of a column. heavy: terms in f64 or integers. */
constexpr struct {
    int threads;
    uint32_t most;
    constexpr int blocks(bool heavy) const { return heavy ? 5 : 8; }
} FEW_SHAPE = {128, 8};
/* Not log-softmax of f32 at level fast: columns of 8 took longer there. */
constexpr bool has_few_columns(bool logarithm, bool exact, size_t element_bytes) { return exact || !logarithm || element_bytes != 4; }

/* Passes of order statistics: a thread has 16 elements of a tile, 8 of 8 bytes. A table: counters in shared memory leave room for two blocks, mostly. */
constexpr struct {
    int threads, blocks; /* the latter where elements are kept: a tile is loaded while the one before is taken, and that takes registers */
} ORDER_SHAPE = {256, 3};
constexpr int order_loads(size_t element_bytes) { return element_bytes >= 4 ? 4 : (int)element_bytes; }
constexpr struct {
    int threads, blocks;
} ORDER_TABLE_SHAPE = {512, 2};
constexpr uint32_t ORDER_TABLE_PASSES = 4; /* over the elements, at most, if counters do not fit shared memory */
