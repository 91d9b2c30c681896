/* How kernels are cut: the one place to tune. The shapes follow from sizes alone, so a new fold or element type needs no
   line here. Changing a shape changes the order of additions, and with it the last bits of floating-point sums.

   What counts for reading at full speed: bytes in flight on a multiprocessor = threads * blocks * vectors * 16, 64 KiB or
   more on Hopper; and registers, of which a thread may have 65,536 / (threads * blocks). */
#ifndef ALLFOLD_TUNING_H
#define ALLFOLD_TUNING_H

#include <stddef.h>

struct fold_shape {
    int threads;  /* of a block */
    int blocks;   /* of a multiprocessor at one time; __launch_bounds__ makes the compiler keep to it */
    int vectors;  /* 16-byte loads a thread starts before it uses the first */
    int together; /* vectors given to the fold in one tile; 0: one at a time in a loop, for folds with much code */
};

/* f32_terms: the fold does much arithmetic on each element, in f32. */
constexpr struct fold_shape fold_shape_of(size_t partial_bytes, bool indexed, size_t element_bytes, bool f32_terms)
{
    if (partial_bytes > 64) /* stats */
        return {256, 2, 2, 0};
    if (indexed) /* vectors of one thread are not neighbours, so one tile cannot hold two of them */
        return {512, 2, 4, element_bytes == 1 ? 0 : 1};
    /* On an H200 the first pass of softmax over 2^28 f32 took 331 us with tiles of 16 values and takes 279 us with tiles of
       32, which share the work that is due once a tile; smaller tiles or more blocks were slower. */
    if (f32_terms && element_bytes == 4)
        return {512, 2, 8, 8};
    if (partial_bytes > 16) /* sumexp, products, scaled norms: tiles of 16 values, 8 of f64 */
        return {512, 2, 4, element_bytes >= 4 ? 4 : (int)element_bytes};
    return {512, 3, 4, 4}; /* sums and extremes */
}

constexpr int FOLD_BLOCKS_MAX = 8; /* no shape has more: scratch memory is sized by it */

/* One block folds what it can in so many rounds; beyond, blocks are added, one vector a thread, up to all that fit. */
constexpr int FOLD_ROUNDS_OF_ONE_BLOCK = 1;

/* Softmax of elements that stay on the chip: one block a multiprocessor, which keeps what its shared memory has room for
   and reads the rest, at most a quarter as much, a second time. A block has at least so many vectors for each thread. */
constexpr struct {
    int threads, stage /* vectors of a thread that arrive together */, least;
} RESIDENT_SHAPE = {512, 4, 2};

struct softmax_shape {
    int threads, blocks;
    int flight; /* loads a thread starts before it uses the first */
};

/* in_vectors: 16 bytes a load, where input and output have one type; else one element. compute_bytes: 4 or 8. */
constexpr struct softmax_shape softmax_shape_of(bool in_vectors, size_t compute_bytes)
{
    if (!in_vectors)
        return {256, 4, compute_bytes == 4 ? 8 : 4};
    return compute_bytes == 4 ? softmax_shape{512, 3, 4} : softmax_shape{512, 2, 2};
}

#endif
