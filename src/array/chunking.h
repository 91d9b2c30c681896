/* How an array in chunks is cut: the order of its elements in its source, and which chunks have elements of a box. An
   array in one file has a regular grid of chunks; an array that is joined of several has one for each file, one behind
   the other along the first dimension. */
#pragma once

#include "base/base.h"

#define ARRAY_DIMENSIONS_MAX 32

struct chunk_grid {
    struct range rows;                      /* indices of the array's first dimension that it covers */
    uint64_t before;                        /* chunks of the grids before this one */
    uint64_t lead[ARRAY_DIMENSIONS_MAX];    /* what the first chunk along each dimension lacks, since the array begins inside of it */
    uint64_t extent[ARRAY_DIMENSIONS_MAX];  /* of a whole chunk */
    uint64_t count[ARRAY_DIMENSIONS_MAX];   /* of chunks along each dimension */
};

/* A source gives the chunks in the order of the grids, in row-major order inside of a grid; the elements of a chunk in
   row-major order. Each has `granule` positions. Those behind its elements are empty. */
struct chunking {
    uint32_t dimensions;
    uint64_t shape[ARRAY_DIMENSIONS_MAX]; /* of the array */
    uint64_t granule;                     /* elements of the largest chunk */
    uint64_t grid_count;                  /* at least 1 */
    const struct chunk_grid *grids;
};

/* The elements of the array that a chunk has. */
struct chunk_box {
    uint64_t start[ARRAY_DIMENSIONS_MAX], extent[ARRAY_DIMENSIONS_MAX];
    uint64_t elements;
    uint64_t grid; /* the number of its grid */
};

/* Makes the grid of an array of this shape, the first index of which has place `first` in a grid of chunks of this
   extent. rows and before are those of an array in one file. Returns the number of chunks; it is at most that of an array
   that `first` and `shape` together have. */
uint64_t chunk_grid_make(struct chunk_grid *grid, uint32_t dimensions, const uint64_t *shape, const uint64_t *first, const uint64_t *extent);

struct chunk_box chunking_box(const struct chunking *chunking, uint64_t number);

/* The row-major index of the element at a position, and in *run how many elements follow one another from there on,
   itself included, in row-major order too. Inside of a chunk positions and indices have one order. */
uint64_t chunking_index(const struct chunking *chunking, uint64_t position, uint64_t *run);

/* How many chunks have elements of a box: a range for each dimension, none of them empty. */
uint64_t chunking_count(const struct chunking *chunking, const struct range *box);
/* The number of one of these, from 0, among all chunks. */
uint64_t chunking_find(const struct chunking *chunking, const struct range *box, uint64_t which);
